//! Rows that OpenCode cannot decode: one makes its whole session unreadable (facts A6, B2).

use headwater_prune::{RowKind, ensure_decodable};
use rusqlite::MAIN_DB;
use rusqlite::types::ValueRef;

use super::{Check, Code};
use crate::json_stream::{JsonError, walk};
use crate::observer::{Progress, Unit};
use crate::reading::{ReadError, count_of, short, text_of};

/// Largest row that is held and judged as a whole. Of a larger one only its JSON is read through.
const JUDGED_BYTES_MAX: u64 = 8 << 20;

/// Rows between two reports of progress.
const REPORT_ROWS: u64 = 1 << 12;

pub(super) fn check(check: &mut Check<'_>) -> Result<(), ReadError> {
    for (table, kind) in
        [("message", RowKind::Message), ("part", RowKind::Part), ("session_message", RowKind::SessionMessage)]
    {
        if check.has(table, "data") {
            check_table(check, table, kind)?;
        }
    }
    Ok(())
}

fn check_table(check: &mut Check<'_>, table: &'static str, kind: RowKind) -> Result<(), ReadError> {
    let schema = check.database.schema();
    let mut statement = check.database.connection().prepare(&format!(
        "SELECT rowid, {}, {}, octet_length(data), \
         CASE WHEN octet_length(data) <= {JUDGED_BYTES_MAX} THEN data END FROM {table} NOT INDEXED",
        short(schema, table, "id"),
        short(schema, table, "type"),
    ))?;
    let mut rows = statement.query([])?;
    let mut done = 0;
    while let Some(row) = rows.next()? {
        done += 1;
        if done % REPORT_ROWS == 0 {
            let progress = Progress { phase: "decoding rows", done, total: None, unit: Unit::Rows };
            check.observer.progress(progress);
            if check.observer.is_cancelled() {
                return Err(ReadError::Cancelled);
            }
        }
        let reason = match row.get_ref(4)? {
            ValueRef::Text(data) => {
                check.rows_decoded += 1;
                let row_type = text_of(row, 2)?;
                ensure_decodable(kind, row_type.as_deref(), data).err().map(|why| why.to_string())
            }
            ValueRef::Null if count_of(row, 3)? > JUDGED_BYTES_MAX => {
                let problem = read_through(check, table, row.get(0)?)?;
                if problem.is_none() {
                    let id = text_of(row, 1)?.unwrap_or_default();
                    check.findings.add(Code::RowNotJudged, Some(table), &id);
                }
                problem
            }
            ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_) | ValueRef::Blob(_) => {
                Some("not text".to_owned())
            }
        };
        if let Some(reason) = reason {
            let id = text_of(row, 1)?.unwrap_or_else(|| "without a usable id".to_owned());
            check.findings.add(Code::UndecodableRow, Some(table), &format!("{id}: {reason}"));
        }
    }
    Ok(())
}

/// Reads a large row to its end; what is wrong with its JSON.
fn read_through(check: &Check<'_>, table: &str, rowid: i64) -> Result<Option<String>, ReadError> {
    let blob = check.database.connection().blob_open(MAIN_DB, table, "data", rowid, true)?;
    match walk(blob, |_, _| {}) {
        Ok(()) => Ok(None),
        Err(JsonError::Io(error)) => Err(match error.downcast::<rusqlite::Error>() {
            Ok(error) => error.into(),
            Err(error) => ReadError::Output(error),
        }),
        Err(problem @ (JsonError::Malformed(_) | JsonError::TooDeep)) => Ok(Some(problem.to_string())),
    }
}
