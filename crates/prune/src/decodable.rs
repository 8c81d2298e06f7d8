//! Whether OpenCode can decode a row (P8b): one row that it cannot makes its whole session unreadable (facts A6, B2).
//!
//! Checked are the members that OpenCode's schemas require, and their JSON types; values are not judged. A repeated key counts as
//! unreadable: which of the two counts depends on the reader.

mod v1;
mod v2;

use headwater_wire::json::Kind;

use crate::object::{Object, Value, document};
use crate::rewrite::RowKind;
use crate::row_error::RowError;

/// Why OpenCode cannot decode a row. Holds no content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Undecodable {
    /// Not JSON, or an object repeats a key.
    #[error(transparent)]
    Unreadable(#[from] RowError),
    /// A required member is missing, or has another type or a value outside a closed set.
    #[error("{0} is missing or of another type")]
    Member(&'static str),
}

/// Checks that OpenCode can decode the row of table `kind` with this `data`. `row_type` is the column `type` of a `session_message`
/// row; other tables have none.
///
/// # Errors
/// The first [`Undecodable`] found.
pub fn ensure_decodable(kind: RowKind, row_type: Option<&str>, data: &[u8]) -> Result<(), Undecodable> {
    problems(kind, row_type, data)?.first().map_or(Ok(()), |path| Err(Undecodable::Member(path)))
}

/// Checks that a row that is to be stored as `after` has no problem that it does not have as `before`. To be asked before every write:
/// a row that OpenCode could decode stays so, and one that it could not (written by another version) is not a reason to refuse.
///
/// # Errors
/// The first [`Undecodable`] that `after` has and `before` has not.
pub fn ensure_not_worse(
    kind: RowKind,
    row_type: Option<&str>,
    before: &[u8],
    after: &[u8],
) -> Result<(), Undecodable> {
    let found = problems(kind, row_type, after)?;
    let Some(first) = found.first() else { return Ok(()) };
    let Ok(mut known) = problems(kind, row_type, before) else { return Err(Undecodable::Member(first)) };
    for path in found {
        match known.iter().position(|other| *other == path) {
            Some(at) => known.swap_remove(at),
            None => return Err(Undecodable::Member(path)),
        };
    }
    Ok(())
}

/// The required members that a row lacks, by path, one entry per place.
fn problems(kind: RowKind, row_type: Option<&str>, data: &[u8]) -> Result<Vec<&'static str>, RowError> {
    let mut check = Check::default();
    let Some(row) = document(data)?.object()? else { return Ok(vec!["row"]) };
    match kind {
        RowKind::Part => v1::part(&mut check, &row)?,
        RowKind::Message => v1::message(&mut check, &row)?,
        RowKind::SessionMessage => v2::row(&mut check, row_type.unwrap_or_default(), &row)?,
    }
    Ok(check.problems)
}

/// What a required member must be.
#[derive(Clone, Copy)]
enum Want {
    String,
    Number,
    Bool,
    Object,
    Array,
}

impl Want {
    fn takes(self, kind: Kind) -> bool {
        match self {
            Self::String => kind == Kind::String,
            Self::Number => kind == Kind::Number,
            Self::Bool => matches!(kind, Kind::True | Kind::False),
            Self::Object => kind == Kind::Object,
            Self::Array => kind == Kind::Array,
        }
    }
}

/// Collects problems.
#[derive(Default)]
struct Check {
    problems: Vec<&'static str>,
}

impl Check {
    /// `object` must have each of these members: name, type, path in messages.
    fn require(&mut self, object: &Object<'_>, members: &[(&str, Want, &'static str)]) {
        for (name, want, path) in members {
            if !object.get(name).is_some_and(|value| want.takes(value.kind)) {
                self.problems.push(path);
            }
        }
    }

    /// `object` may have this member, which must then be of this type.
    fn allow(&mut self, object: &Object<'_>, name: &str, want: Want, path: &'static str) {
        if object.get(name).is_some_and(|value| !want.takes(value.kind)) {
            self.problems.push(path);
        }
    }

    /// The object in member `name`, a problem where there is none.
    fn object<'a>(
        &mut self,
        object: &Object<'a>,
        name: &str,
        path: &'static str,
    ) -> Result<Option<Object<'a>>, RowError> {
        let found = object.object(name)?;
        if found.is_none() {
            self.problems.push(path);
        }
        Ok(found)
    }

    /// The elements of an array as objects, a problem for each that is none.
    fn objects<'a>(
        &mut self,
        elements: Vec<Value<'a>>,
        path: &'static str,
    ) -> Result<Vec<Object<'a>>, RowError> {
        let mut objects = Vec::with_capacity(elements.len());
        for element in elements {
            match element.object()? {
                Some(object) => objects.push(object),
                None => self.problems.push(path),
            }
        }
        Ok(objects)
    }

    fn fail(&mut self, path: &'static str) {
        self.problems.push(path);
    }
}

/// The decoded text of member `name`, empty where it is no string.
fn name_of<'a>(object: &Object<'a>, name: &str) -> Result<std::borrow::Cow<'a, str>, RowError> {
    Ok(object.text(name)?.and_then(|text| text.decode().ok()).unwrap_or_default())
}

#[cfg(test)]
mod tests;
