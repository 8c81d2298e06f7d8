//! The lines of an export: JSON, one object each.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value as Json, json};

use super::{StoredRow, Table, Value};

/// The version of the format that this program writes and reads.
pub const FORMAT_VERSION: u64 = 1;

const FORMAT: &str = "headwater-conversation";

/// Integers that every reader of JSON keeps (2^53).
const EXACT_MAX: u64 = 1 << 53;

/// A line.
#[derive(Clone, Debug, PartialEq)]
pub enum Line {
    /// The first.
    Begin,
    /// A row.
    Row(StoredRow),
    /// The last: how many rows were before it.
    End {
        /// Rows.
        rows: u64,
    },
}

/// Why a text is no line of an export. Says nothing of what stands in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LineError {
    /// It is no JSON object of the format.
    #[error("not a line of an export")]
    Malformed,
    /// A later version of the program wrote it.
    #[error("version {0} of the format is newer than this program")]
    Newer(u64),
    /// The name of the table is none of those that are exported.
    #[error("an unknown table")]
    UnknownTable,
    /// A column that the table does not have.
    #[error("an unknown column of {0}")]
    UnknownColumn(&'static str),
    /// A value that is none.
    #[error("{1} of {0} holds no value of the format")]
    BadValue(&'static str, &'static str),
    /// A row without its id.
    #[error("a row of {0} without its {1}")]
    NoKey(&'static str, &'static str),
}

impl Line {
    /// The line as JSON, without a line break.
    pub fn to_json(&self) -> String {
        match self {
            Self::Begin => json!({ "format": FORMAT, "version": FORMAT_VERSION }),
            Self::End { rows } => json!({ "end": { "rows": rows } }),
            Self::Row(row) => {
                let columns = row.table.columns().iter().zip(&row.values);
                let members =
                    columns.filter_map(|((name, _), value)| Some(((*name).to_owned(), written(value)?)));
                json!({ "table": row.table.name(), "row": members.collect::<Map<_, _>>() })
            }
        }
        .to_string()
    }

    /// Reads a line.
    ///
    /// # Errors
    /// [`LineError`].
    pub fn parse(text: &str) -> Result<Self, LineError> {
        let Ok(Json::Object(mut line)) = serde_json::from_str(text) else { return Err(LineError::Malformed) };
        if line.get("format").and_then(Json::as_str) == Some(FORMAT) {
            return match line.get("version").and_then(Json::as_u64) {
                Some(FORMAT_VERSION) => Ok(Self::Begin),
                Some(version) if version > FORMAT_VERSION => Err(LineError::Newer(version)),
                _ => Err(LineError::Malformed),
            };
        }
        if let Some(rows) = line.get("end").and_then(|end| end.get("rows")).and_then(Json::as_u64) {
            return Ok(Self::End { rows });
        }
        let name = line.get("table").and_then(Json::as_str).ok_or(LineError::Malformed)?;
        let table = Table::named(name).ok_or(LineError::UnknownTable)?;
        let Some(Json::Object(members)) = line.remove("row") else { return Err(LineError::Malformed) };
        row(table, members).map(Self::Row)
    }
}

fn row(table: Table, mut members: Map<String, Json>) -> Result<StoredRow, LineError> {
    let mut values = Vec::with_capacity(table.columns().len());
    for (column, _) in table.columns() {
        values.push(match members.remove(*column) {
            None => Value::Absent,
            Some(json) => read(json).ok_or(LineError::BadValue(table.name(), column))?,
        });
    }
    if !members.is_empty() {
        return Err(LineError::UnknownColumn(table.name()));
    }
    let row = StoredRow { table, values };
    let has_key = row.key().is_some_and(|key| !key.is_empty()) || table == Table::Workspaces;
    if has_key && row.key().is_some() { Ok(row) } else { Err(LineError::NoKey(table.name(), table.key())) }
}

fn written(value: &Value) -> Option<Json> {
    Some(match value {
        Value::Absent => return None,
        Value::Null => Json::Null,
        Value::Integer(number) if number.unsigned_abs() <= EXACT_MAX => json!(number),
        Value::Integer(number) => json!({ "integer": number.to_string() }),
        // Rust's shortest text reads back as the same number; JSON has none for what is not finite.
        Value::Real(number) => json!({ "real": number.to_string() }),
        Value::Text(text) => json!(text),
        Value::BrokenText(bytes) => json!({ "text": STANDARD.encode(bytes) }),
        Value::Blob(bytes) => json!({ "blob": STANDARD.encode(bytes) }),
    })
}

fn read(json: Json) -> Option<Value> {
    match json {
        Json::Null => Some(Value::Null),
        Json::Number(number) => number.as_i64().map(Value::Integer),
        Json::String(text) => Some(Value::Text(text)),
        Json::Object(members) => {
            let mut members = members.into_iter();
            let (name, Json::String(text)) = members.next()? else { return None };
            if members.next().is_some() {
                return None;
            }
            match name.as_str() {
                "integer" => text.parse().ok().map(Value::Integer),
                "real" => text.parse().ok().map(Value::Real),
                "text" => STANDARD.decode(text).ok().map(Value::BrokenText),
                "blob" => STANDARD.decode(text).ok().map(Value::Blob),
                _ => None,
            }
        }
        Json::Bool(_) | Json::Array(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_reads_back_as_it_was() {
        let values = [
            Value::Text("ses_1".into()),
            Value::Text("t".into()),
            Value::Absent,
            Value::Null,
            Value::BrokenText(vec![0x66, 0xff]),
            Value::Blob(vec![0, 1]),
            Value::Integer(i64::MAX),
            Value::Real(0.1),
        ];
        let row = Line::Row(StoredRow { table: Table::Sessions, values: values.into() });
        assert_eq!(Line::parse(&row.to_json()), Ok(row));
        for line in [Line::Begin, Line::End { rows: 7 }] {
            assert_eq!(Line::parse(&line.to_json()), Ok(line));
        }
    }

    #[test]
    fn other_texts_are_refused_without_a_word_of_them() {
        for (text, error) in [
            ("secret", LineError::Malformed),
            ("[]", LineError::Malformed),
            (r#"{"format":"headwater-conversation","version":2}"#, LineError::Newer(2)),
            (r#"{"format":"headwater-export","version":1}"#, LineError::Malformed),
            (r#"{"table":"secret","row":{}}"#, LineError::UnknownTable),
            (r#"{"table":"tasks","row":{"id":"a","secret":1}}"#, LineError::UnknownColumn("tasks")),
            (r#"{"table":"tasks","row":{"id":"a","title":true}}"#, LineError::BadValue("tasks", "title")),
            (r#"{"table":"tasks","row":{"title":"secret"}}"#, LineError::NoKey("tasks", "id")),
        ] {
            assert_eq!(Line::parse(text), Err(error), "{text}");
            assert!(!error.to_string().contains("secret"));
        }
    }

    #[test]
    fn a_typed_row_has_its_times_in_one_spelling() {
        let row = |started: &str| {
            let line = json!({ "table": "task_sessions", "row": { "id": "s", "started_at": started } });
            let Ok(Line::Row(row)) = Line::parse(&line.to_string()) else { panic!("a row") };
            row
        };
        let typed = row("2026-01-01T01:00:00.1234567+01:00").typed().unwrap();
        assert_eq!(typed.text("started_at"), Some("2026-01-01 00:00:00.123456+00:00"));
        assert_eq!(row("yesterday").typed(), Err(crate::BadMutation::NotStorable));
    }
}
