//! `stats` against SQLite's own account of the file.

use headwater_testkit::fixture::Fixture;
use headwater_testkit::opencode::OpenCode;
use serde_json::Value;

use crate::headwater::{Headwater, find};

/// Checks that the figures add up to the file: rows and bytes of every table, pages of every table and index, and each breakdown to its
/// table.
pub(crate) fn assert_adds_up(opencode: &OpenCode, headwater: &Headwater) {
    let stats = headwater.run(&["stats", "--exact"]);
    let db = Fixture::reopen(opencode.database());
    let count = |sql: &str| u64::try_from(db.integer(sql)).unwrap();
    let (mut pages_bytes, mut bytes_of) = (0, std::collections::BTreeMap::new());
    for table in items(&stats, "tables") {
        let name = table["name"].as_str().unwrap();
        assert_eq!(
            number(table, "rows"),
            count(&format!("SELECT count(*) FROM \"{name}\"")),
            "rows of {name}"
        );
        let pages = count(&format!("SELECT coalesce(sum(pgsize), 0) FROM dbstat WHERE name = '{name}'"));
        assert_eq!(number(table, "page_bytes"), pages, "pages of {name}");
        pages_bytes += pages;
        if count(&format!("SELECT count(*) FROM pragma_table_info('{name}') WHERE name = 'data'")) == 1 {
            let data = count(&format!("SELECT coalesce(sum(octet_length(data)), 0) FROM \"{name}\""));
            assert_eq!(number(table, "bytes"), data, "bytes of {name}");
            bytes_of.insert(name.to_owned(), data);
        }
    }
    for index in items(&stats, "indexes") {
        let name = index["name"].as_str().unwrap();
        let pages = count(&format!("SELECT coalesce(sum(pgsize), 0) FROM dbstat WHERE name = '{name}'"));
        assert_eq!(number(index, "page_bytes"), pages, "pages of {name}");
        pages_bytes += pages;
    }
    let schema = count("SELECT sum(pgsize) FROM dbstat WHERE name = 'sqlite_schema'");
    let free = number(find(&stats, "database").unwrap(), "free_bytes");
    let file = count("SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()");
    assert_eq!(pages_bytes + schema + free, file, "tables, indexes and free pages are the whole file");
    for (breakdown, table) in [
        ("event_types", "event"),
        ("part_kinds", "part"),
        ("roles", "message"),
        ("message_types", "session_message"),
    ] {
        let sum: u64 = items(&stats, breakdown).iter().map(|group| number(group, "bytes")).sum();
        assert_eq!(sum, bytes_of[table], "{breakdown} adds up to {table}");
    }
    let sessions = find(&stats, "session_count").unwrap();
    assert_eq!(number(sessions, "total"), count("SELECT count(*) FROM session"), "sessions");
}

fn items<'a>(stats: &'a Value, name: &str) -> &'a [Value] {
    find(stats, name).and_then(Value::as_array).unwrap_or_else(|| panic!("stats has no {name}: {stats}"))
}

fn number(value: &Value, name: &str) -> u64 {
    value[name].as_u64().unwrap_or_else(|| panic!("no number {name} in {value}"))
}
