//! Reading members that may be cut off.

use headwater_wire::json::{JsonError, Kind, Reader};

use super::Facts;

/// Runs `read` over the prefix and sorts its outcome.
pub(super) fn facts<'a, T>(
    prefix: &'a [u8],
    is_whole: bool,
    read: impl FnOnce(&mut Reader<'a>) -> Result<T, JsonError>,
) -> Facts<T> {
    let mut reader = if is_whole { Reader::new(prefix) } else { Reader::prefix(prefix) };
    match read(&mut reader) {
        Ok(facts) => Facts::Known(facts),
        Err(error) if error.is_end() && !is_whole => Facts::NeedMore,
        Err(_) => Facts::Unreadable,
    }
}

/// The string that comes next, decoded (as it is spelled where it has no decoded form); `None` where something else comes next.
pub(super) fn string(reader: &mut Reader<'_>) -> Result<Option<Box<str>>, JsonError> {
    if reader.peek()? != Kind::String {
        reader.skip()?;
        return Ok(None);
    }
    let text = reader.string()?;
    Ok(Some(text.decode().map_or_else(|_| text.raw().into(), Into::into)))
}

/// Whether the value that comes next is an object, which is then entered; anything else is skipped.
pub(super) fn enter(reader: &mut Reader<'_>) -> Result<bool, JsonError> {
    if reader.peek()? == Kind::Object {
        reader.begin_object()?;
        return Ok(true);
    }
    reader.skip()?;
    Ok(false)
}

/// A member of which the first occurrence counts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Once<T> {
    /// Whether it was met, or cannot be met any more.
    pub(super) is_met: bool,
    /// Its value, where it has a usable one.
    pub(super) value: Option<T>,
}

impl<T> Default for Once<T> {
    fn default() -> Self {
        Self { is_met: false, value: None }
    }
}

impl<T> Once<T> {
    /// Records the first occurrence.
    pub(super) fn meet(&mut self, value: Option<T>) {
        *self = Self { is_met: true, value };
    }
}
