//! The lines of `--json`.

use std::io::{self, Write};

use serde::Serialize;
use serde::ser::SerializeMap;
use serde_json::ser::{CompactFormatter, Formatter, Serializer};

use crate::failure::Failure;
use crate::render::text::is_active;
use crate::status::Status;

/// One thing of a list.
pub(super) struct Item<'a, T> {
    pub(super) kind: &'static str,
    pub(super) value: &'a T,
}

impl<T: Serialize> Serialize for Item<'_, T> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(1))?;
        map.serialize_entry(self.kind, self.value)?;
        map.end()
    }
}

/// The last line of a command that did what it was asked, or found nothing to do.
#[derive(Serialize)]
pub(super) struct Ended<'a, T> {
    pub(super) command: &'static str,
    pub(super) status: Status,
    pub(super) result: &'a T,
}

/// The last line of a command that failed.
#[derive(Serialize)]
pub(super) struct Failed<'a> {
    pub(super) command: &'static str,
    pub(super) status: Status,
    pub(super) error: &'a Failure,
}

/// Writes `value` as one line of JSON in which no character can move a terminal: JSON leaves DEL, C1 and direction marks as they are,
/// so these are written as escapes, which read back as the same text.
pub(super) fn write_line(writer: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    value.serialize(&mut Serializer::with_formatter(&mut *writer, Safe)).map_err(io::Error::from)?;
    writer.write_all(b"\n")
}

struct Safe;

impl Formatter for Safe {
    fn write_string_fragment<W: ?Sized + Write>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        let mut rest = fragment;
        while let Some((start, active)) = rest.char_indices().find(|(_, character)| is_active(*character)) {
            CompactFormatter.write_string_fragment(writer, &rest[..start])?;
            write!(writer, "\\u{:04x}", u32::from(active))?;
            rest = &rest[start + active.len_utf8()..];
        }
        CompactFormatter.write_string_fragment(writer, rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(value: &impl Serialize) -> String {
        let mut bytes = Vec::new();
        write_line(&mut bytes, value).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn escaped_text_reads_back_as_it_was() {
        let text = "a\x1b[2J\u{9b}1m\u{7f}\u{202e}\u{feff} 数据\n\"\\";
        let written = line(&text);
        assert!(!written.trim_end().contains(is_active), "{written}");
        assert_eq!(serde_json::from_str::<String>(&written).unwrap(), text);
    }

    #[test]
    fn lines_have_the_documented_shape() {
        assert_eq!(line(&Item { kind: "session", value: &1 }), "{\"session\":1}\n");
        assert_eq!(
            line(&Ended { command: "stats", status: Status::Nothing, result: &[1] }),
            "{\"command\":\"stats\",\"status\":4,\"result\":[1]}\n"
        );
        let failure = Failure::new(Status::Blocked, "busy", "locked").with_hint("wait");
        assert_eq!(
            line(&Failed { command: "stats", status: failure.status, error: &failure }),
            "{\"command\":\"stats\",\"status\":3,\"error\":{\"code\":\"busy\",\"message\":\"locked\",\"hint\":\"wait\"}}\n"
        );
    }
}
