//! What the schema has beyond OpenCode's, and what it lacks.

use super::{Check, Code};
use crate::survey::roster::has_leading_index;

/// Columns that OpenCode looks rows up by (fact A2).
const INDEXED: [(&str, &str); 5] = [
    ("message", "session_id"),
    ("part", "message_id"),
    ("part", "session_id"),
    ("event", "aggregate_id"),
    ("session_message", "session_id"),
];

pub(super) fn check(check: &mut Check<'_>) {
    let schema = check.database.schema();
    let findings = &mut check.findings;
    for table in schema.unknown_tables() {
        findings.add(Code::UnknownTable, None, table);
    }
    for (table, column) in schema.unknown_columns() {
        findings.add(Code::UnknownColumn, Some(table), column);
    }
    for trigger in schema.triggers() {
        findings.add(Code::Trigger, None, trigger);
    }
    for view in schema.views() {
        findings.add(Code::View, None, view);
    }
    for (table, column) in INDEXED {
        let is_missing = schema.has(table, column)
            && has_leading_index(check.database.connection(), table, column).is_ok_and(|found| !found);
        if is_missing {
            findings.add(Code::MissingIndex, Some(table), column);
        }
    }
    if let Some(name) = check.database.file().network_file_system() {
        findings.add(Code::NetworkFileSystem, None, name);
    }
}
