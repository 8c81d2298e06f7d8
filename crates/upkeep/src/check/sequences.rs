//! Counters against the rows they number (fact A4: numbering must never go back).

use std::collections::BTreeMap;

use super::{Check, Code};
use crate::reading::{ReadError, integer_of, short, text_of};
use crate::survey::roster::Roster;

pub(super) fn check(check: &mut Check<'_>, roster: &Roster) -> Result<(), ReadError> {
    if !check.has("event_sequence", "seq") {
        return Ok(());
    }
    let counters = highest(check, "event_sequence", "aggregate_id", "seq")?;
    for (table, column) in [("event", "aggregate_id"), ("session_message", "session_id")] {
        if !(check.has(table, column) && check.has(table, "seq")) {
            continue;
        }
        for (aggregate, seq) in highest(check, table, column, "max(seq)")? {
            match counters.get(&aggregate) {
                Some(counter) if *counter < seq => {
                    let example = format!("{aggregate}: counter {counter}, rows to {seq}");
                    check.findings.add(Code::SequenceBehind, Some(table), &example);
                }
                // Messages of an imported session have no counter until OpenCode writes to it; events always have one.
                None if table == "event" && roster.position(&aggregate).is_some() => {
                    check.findings.add(Code::EventsWithoutSequence, Some(table), &aggregate);
                }
                Some(_) | None => {}
            }
        }
    }
    Ok(())
}

/// The highest number of each aggregate.
fn highest(
    check: &Check<'_>,
    table: &str,
    column: &str,
    value: &str,
) -> Result<BTreeMap<String, i64>, ReadError> {
    let id = short(check.database.schema(), table, column);
    let mut statement = check
        .database
        .connection()
        .prepare(&format!("SELECT {id}, {value} FROM {table} GROUP BY {column}"))?;
    let mut rows = statement.query([])?;
    let mut found = BTreeMap::new();
    while let Some(row) = rows.next()? {
        if let (Some(id), Some(seq)) = (text_of(row, 0)?, integer_of(row, 1)?) {
            found.insert(id, seq);
        }
    }
    Ok(found)
}
