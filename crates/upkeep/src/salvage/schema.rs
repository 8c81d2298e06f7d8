//! The definitions of tables, indexes, views and triggers: read as far as they can be, and made again.

use rusqlite::ErrorCode;
use serde::Serialize;

use super::SalvageErrorKind;
use super::source::Source;
use super::target::Target;
use crate::reading::text_of;

/// One definition of the damaged file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Definition {
    kind: String,
    pub(super) name: String,
    sql: String,
}

impl Definition {
    pub(super) fn is_table(&self) -> bool {
        self.kind == "table"
    }
}

/// A definition that could not be made again in the new file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LostObject {
    /// `table`, `index`, `view` or `trigger`.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Why, in SQLite's words.
    pub reason: String,
}

/// Reads every definition that can be read, in stored order. SQLite's own tables and automatic indexes make themselves.
pub(super) fn read(source: &Source) -> Result<Vec<Definition>, SalvageErrorKind> {
    let connection = source.connection();
    let mut statement = connection
        .prepare("SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'")
        .map_err(|_| SalvageErrorKind::SchemaLost)?;
    let mut rows = statement.query([]).map_err(|_| SalvageErrorKind::SchemaLost)?;
    let mut definitions = Vec::new();
    // Damage ends the list: what was read before it counts.
    while let Ok(Some(row)) = rows.next() {
        let text = |index| text_of(row, index).ok().flatten();
        if let (Some(kind), Some(name), Some(sql)) = (text(0), text(1), text(2)) {
            definitions.push(Definition { kind, name, sql });
        }
    }
    if definitions.iter().any(Definition::is_table) {
        Ok(definitions)
    } else {
        Err(SalvageErrorKind::SchemaLost)
    }
}

/// Makes one object in the new file. The inner error is the object's own fault, the outer one that of the new file.
pub(super) fn make(
    target: &Target,
    definition: &Definition,
) -> Result<Result<(), LostObject>, SalvageErrorKind> {
    let lost = |reason: &str| {
        Ok(Err(LostObject {
            kind: definition.kind.clone(),
            name: definition.name.clone(),
            reason: reason.to_owned(),
        }))
    };
    let words: Vec<String> =
        definition.sql.split_ascii_whitespace().take(2).map(str::to_ascii_uppercase).collect();
    match words.as_slice() {
        [create, kind] if create == "CREATE" && kind == "VIRTUAL" => {
            return lost("virtual tables are not supported");
        }
        [create, _] if create == "CREATE" => {}
        _ => return lost("not a definition"),
    }
    match target.connection()?.execute(&definition.sql, []) {
        Ok(_) => Ok(Ok(())),
        Err(error) if is_about_the_target(&error) => Err(SalvageErrorKind::Write(error)),
        Err(error) => {
            lost(&error.sqlite_error().map_or_else(|| "not one statement".to_owned(), ToString::to_string))
        }
    }
}

/// Whether an error is one of the new file and not of what is put into it.
pub(super) fn is_about_the_target(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(
            ErrorCode::DiskFull
                | ErrorCode::SystemIoFailure
                | ErrorCode::OutOfMemory
                | ErrorCode::DatabaseCorrupt
                | ErrorCode::CannotOpen
                | ErrorCode::ReadOnly
                | ErrorCode::PermissionDenied
        )
    )
}
