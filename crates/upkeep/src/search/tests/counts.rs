//! Which rows are found, against every row decoded with another JSON library and against SQL.

use headwater_testkit::large;
use serde_json::Value;

use super::*;

/// The tables of a search over everything, with the column that holds text.
const TEXTS: [(&str, &str); 6] = [
    ("session", "title"),
    ("session_v2", "title"),
    ("session_message", "data"),
    ("message", "data"),
    ("part", "data"),
    ("event", "data"),
];

/// Whether a string anywhere in `value` holds `word`, which is ASCII in lower case.
fn holds(value: &Value, word: &str) -> bool {
    match value {
        Value::String(text) => text.to_ascii_lowercase().contains(word),
        Value::Array(items) => items.iter().any(|item| holds(item, word)),
        Value::Object(members) => members.values().any(|member| holds(member, word)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Rows that hold `word` in a decoded string, and rows whose stored text is `LIKE` it.
fn expected(db: &Fixture, word: &str) -> (u64, u64) {
    let (mut decoded, mut like) = (0, 0);
    for (table, column) in TEXTS {
        let mut statement = db.connection().prepare(&format!("SELECT {column} FROM {table}")).unwrap();
        let mut rows = statement.query([]).unwrap();
        while let Some(row) = rows.next().unwrap() {
            let stored: String = row.get(0).unwrap();
            let value = if column == "title" {
                Value::String(stored)
            } else {
                serde_json::from_str(&stored).unwrap()
            };
            decoded += u64::from(holds(&value, word));
        }
        like += count(db, &format!("SELECT count(*) FROM {table} WHERE {column} LIKE '%{word}%'"));
    }
    (decoded, like)
}

fn count(db: &Fixture, sql: &str) -> u64 {
    u64::try_from(db.integer(sql)).unwrap()
}

#[test]
fn every_row_of_a_generated_database_that_holds_a_word_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("opencode.db");
    large::write(&path, &large::Options { v2_share: 0.2, ..large::Options::of_bytes(6 << 20) });
    let db = Fixture::reopen(&path);
    // What a provider keeps with its reasoning is no text, but the generator takes it from the same pool.
    for (table, entity) in [("part", "$"), ("event", "$.part")] {
        db.sql(&format!(
            "UPDATE {table} SET data = json_remove(data, '{entity}.metadata') WHERE data ->> '{entity}.type' = 'reasoning'"
        ));
    }
    // Words that stand in texts only: neither in an id nor in a member that is not searched.
    for (word, is_found) in [("zzyzxqq", false), ("cargo test", true), ("buffer", true), ("cursor", true)] {
        let (decoded, like) = expected(&db, word);
        let (hits, totals) = search(&path, word, &everything());
        assert_eq!(totals.rows_matched, decoded, "{word}");
        assert_eq!(totals.rows_unreadable, 0, "{word}");
        assert_eq!(hits.len() as u64, totals.hits, "{word}");
        assert_eq!(decoded, like, "{word}");
        assert_eq!(decoded > 0, is_found, "{word}: {decoded}");
        let upper = search(&path, &word.to_ascii_uppercase(), &everything()).1;
        assert_eq!(upper, totals, "{word}");
    }
}

#[test]
fn a_word_at_every_joint_of_pages_is_found() {
    let (_folder, path) = built(Layout::ReducedV1, |db| {
        db.session(&Session::named("ses_a"));
        db.user("msg_a", "ses_a");
        db.transaction(|db| {
            // The local part of a row ends between 489 bytes and a page; each overflow page holds 4092 bytes.
            let joints = (380..520).chain(3950..4110).chain(8000..8300);
            for before in joints {
                let data =
                    part::text(&format!("{}Needle{}", "n".repeat(before), "e".repeat(before % 7 * 1000)));
                db.part(&format!("prt_{before}"), "msg_a", "ses_a", &data);
            }
        });
    });
    let db = Fixture::reopen(&path);
    let like = count(&db, "SELECT count(*) FROM part WHERE data LIKE '%needle%'");
    assert_eq!(like, 600);
    for word in ["needle", "NNEEDL", "eedle"] {
        let (hits, totals) = search(&path, word, &SearchOptions::default());
        assert_eq!((hits.len() as u64, totals.rows_unreadable), (like, 0), "{word}");
    }
}
