//! Which rows a class may change, and how.

use headwater_testkit::rows::Rows;

/// Checks that a class changed rows of its own kind and no others, in the session's rows before and after.
pub(crate) fn assert_own(class: &str, before: &Rows, after: &Rows) {
    let changes = before.changes(after);
    assert!(!changes.is_empty(), "{class} has changed nothing");
    let (table, change) = match class {
        "superseded-events" | "events" => ("event", "gone"),
        "diffs" => ("message", "changed data"),
        "metadata" | "attachments" | "compacted" => ("part", "changed data"),
        "technical" => ("part", "gone"),
        other => panic!("no such class: {other}"),
    };
    for line in &changes {
        let fits = line.starts_with(&format!("{table} '")) && line.ends_with(&format!(": {change}"));
        assert!(fits, "{class}: {line}");
    }
    if class == "events" {
        assert_eq!(after.of_tables(&["event"]).count(), 0);
    }
    assert_eq!(after.of_tables(&["event_sequence"]).count(), 1, "{class}: the counter stays");
}
