use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use headwater_testkit::fixture::{DAY, Fixture, Layout, NOW, Session, message, part, v2};
use rusqlite::types::Value as Stored;
use serde_json::Value;
use tempfile::TempDir;

use super::*;
use crate::observer::Unobserved;

fn built(layout: Layout, rows: impl FnOnce(&Fixture)) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let db = Fixture::create(folder.path().join("opencode.db"), layout);
    rows(&db);
    let path = db.close();
    (folder, path)
}

fn export(path: &Path, scope: &ExportScope, format: ExportFormat) -> (String, ExportTotals) {
    let database = ReadDatabase::open(path).unwrap();
    let mut out = Vec::new();
    let totals = run(&database, scope, format, &Unobserved, &mut out).unwrap();
    (String::from_utf8(out).unwrap(), totals)
}

fn only(id: &str, with_children: bool) -> ExportScope {
    ExportScope::Sessions { ids: vec![SessionId::new(id).unwrap()], with_children }
}

/// A value as the documentation of the format says.
fn restored(value: &Value) -> Stored {
    match value {
        Value::Null => Stored::Null,
        Value::String(text) => Stored::Text(text.clone()),
        Value::Number(number) => Stored::Integer(number.as_i64().unwrap()),
        Value::Object(members) => {
            let (kind, value) = members.iter().next().unwrap();
            let value = value.as_str().unwrap();
            match kind.as_str() {
                "integer" => Stored::Integer(value.parse().unwrap()),
                "real" => Stored::Real(value.parse().unwrap()),
                "blob" => Stored::Blob(STANDARD.decode(value).unwrap()),
                other => panic!("{other}"),
            }
        }
        Value::Bool(_) | Value::Array(_) => panic!("not a value of the format"),
    }
}

/// Fills an empty database of the same tables from an export.
fn import(db: &Fixture, lines: &str) {
    db.sql("PRAGMA foreign_keys = off; DELETE FROM project");
    let mut lines = lines.lines();
    assert_eq!(lines.next(), Some("{\"format\":\"headwater-export\",\"version\":1}"));
    for line in lines {
        let line: Value = serde_json::from_str(line).unwrap();
        let row = line["row"].as_object().unwrap();
        let (mut names, mut places, mut values) = (Vec::new(), Vec::new(), Vec::new());
        for (name, value) in row {
            names.push(format!("\"{}\"", name.replace('"', "\"\"")));
            // Text that is not UTF-8 has no type of its own in the driver.
            let is_raw_text = value.get("text").is_some();
            places.push(if is_raw_text { "CAST(? AS TEXT)" } else { "?" });
            values.push(if is_raw_text {
                Stored::Blob(STANDARD.decode(value["text"].as_str().unwrap()).unwrap())
            } else {
                restored(value)
            });
        }
        let table = line["table"].as_str().unwrap().replace('"', "\"\"");
        let sql = format!("INSERT INTO \"{table}\" ({}) VALUES ({})", names.join(","), places.join(","));
        db.connection().execute(&sql, rusqlite::params_from_iter(values)).unwrap();
    }
}

/// Every row of every table, with types and bytes.
fn content(db: &Fixture) -> Vec<(String, Vec<String>)> {
    let schema = crate::schema::Schema::read(db.connection()).unwrap();
    schema
        .tables()
        .iter()
        .map(|(name, table)| {
            let columns: Vec<String> = table
                .columns
                .iter()
                .map(|column| {
                    let column = subjects::quoted(column);
                    // Seventeen digits tell two reals apart; a cast to text keeps fewer.
                    format!("typeof({column}) || quote(CAST({column} AS BLOB)) || iif(typeof({column}) = 'real', quote({column}), '')")
                })
                .collect();
            let sql = format!("SELECT {} FROM {} ORDER BY 1", columns.join("||'|'||"), subjects::quoted(name));
            let mut statement = db.connection().prepare(&sql).unwrap();
            let rows = statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
            (name.clone(), rows)
        })
        .filter(|(name, _)| name != "migration")
        .collect()
}

const ODD: &str = "
    CREATE TABLE \"odd \"\"table\" (session_id TEXT, \"a \"\"column\", other);
    ALTER TABLE part ADD COLUMN later;
";

fn odd_rows(db: &Fixture) {
    db.sql(ODD);
    db.session(&Session { title: "zero \0 quote \" backslash \\ \u{1b} 数", ..Session::named("ses_a") });
    db.session(&Session { parent: Some("ses_a"), ..Session::named("ses_child") });
    db.session_v2(&Session::named("ses_a"));
    db.user("msg_a", "ses_a");
    for (n, later) in [
        "NULL",
        "5",
        "-9223372036854775808",
        "9007199254740993",
        "0.1",
        "-0.0",
        "1e300",
        "9e999",
        "1.0",
        "'1.0'",
        "x'00ff'",
        "CAST(x'61ff62' AS TEXT)",
        "''",
        "x''",
        "'\u{2028}</script>'",
    ]
    .into_iter()
    .enumerate()
    {
        let id = format!("prt_{n:02}");
        db.part(&id, "msg_a", "ses_a", &part::text("text"));
        db.sql(&format!("UPDATE part SET later = {later} WHERE id = '{id}'"));
    }
    // Values beyond what is read whole: text with characters across the chunks, text that is not UTF-8 at its end, and a blob.
    db.part("prt_large", "msg_a", "ses_a", &part::text(&"0数\"\n".repeat(400_000)));
    db.sql(
        "UPDATE part SET later = CAST(zeroblob(1500000) || x'ff' AS TEXT) WHERE id = 'prt_large';
         INSERT INTO \"odd \"\"table\" VALUES ('ses_a', randomblob(1500000), 1), ('ses_child', 2, 2.5);",
    );
    db.session_message("smg_1", "ses_a", "user", 1, NOW, "not JSON");
    db.part_event("ses_a", "msg_a", "prt_00", &part::text("text"));
    db.event("ses_gone", "session.text.ended.1", "{}");
}

#[test]
fn json_lines_restore_every_row_with_type_and_bytes() {
    let (_folder, path) = built(Layout::Both, odd_rows);
    let (lines, totals) = export(&path, &ExportScope::All, ExportFormat::JsonLines);
    let expected = content(&Fixture::reopen(&path));
    let folder = tempfile::tempdir().unwrap();
    let db = Fixture::create(folder.path().join("opencode.db"), Layout::Both);
    db.sql(ODD);
    import(&db, &lines);
    for (ours, theirs) in content(&db).into_iter().zip(expected) {
        assert_eq!(ours.0, theirs.0);
        assert!(ours.1 == theirs.1, "rows of {} differ", ours.0);
    }
    assert_eq!((totals.sessions, totals.recovered, totals.entries), (3, 1, lines.lines().count() as u64 - 1));
}

#[test]
fn a_session_comes_with_its_children_and_nothing_of_others() {
    let (_folder, path) = built(Layout::V1, |db| {
        for (id, parent) in
            [("ses_a", None), ("ses_c", Some("ses_a")), ("ses_b", Some("ses_c")), ("ses_other", None)]
        {
            db.session(&Session { parent, ..Session::named(id) });
            db.user(&format!("msg_{id}"), id);
        }
        // A loop of parents ends.
        db.sql("UPDATE session SET parent_id = 'ses_b' WHERE id = 'ses_a'");
    });
    let sessions = |with_children| {
        let (lines, totals) = export(&path, &only("ses_a", with_children), ExportFormat::JsonLines);
        let rows: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let of = |table: &str| {
            rows.iter()
                .filter(|row| row["table"] == table)
                .map(|row| row["row"]["id"].as_str().unwrap().to_owned())
                .collect::<Vec<_>>()
        };
        (of("session"), of("message"), of("project"), totals.sessions)
    };
    let (found, messages, projects, count) = sessions(true);
    assert_eq!(found, ["ses_a", "ses_c", "ses_b"]);
    assert_eq!(messages, ["msg_ses_a", "msg_ses_c", "msg_ses_b"]);
    assert_eq!((projects.len(), count), (1, 3));
    assert_eq!(sessions(false).0, ["ses_a"]);
}

#[test]
fn an_unknown_session_is_an_error_before_anything_is_written() {
    let (_folder, path) = built(Layout::V1, |db| db.session(&Session::named("ses_a")));
    let database = ReadDatabase::open(&path).unwrap();
    let mut out = Vec::new();
    let ids = ["ses_a", "ses_x"].map(|id| SessionId::new(id).unwrap()).to_vec();
    let scope = ExportScope::Sessions { ids, with_children: true };
    let error = run(&database, &scope, ExportFormat::JsonLines, &Unobserved, &mut out);
    assert!(matches!(error, Err(ReadError::NoSuchSession)), "{error:?}");
    assert!(out.is_empty());
}

/// Takes some bytes and fails then, like a full disk.
struct Full(usize);

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if bytes.len() > self.0 {
            return Err(std::io::ErrorKind::StorageFull.into());
        }
        self.0 -= bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_is_an_error_of_the_output() {
    let (_folder, path) = built(Layout::Both, odd_rows);
    let database = ReadDatabase::open(&path).unwrap();
    for room in [0, 100, 100_000, 3_000_000] {
        let error = run(&database, &ExportScope::All, ExportFormat::JsonLines, &Unobserved, &mut Full(room));
        let Err(ReadError::Output(error)) = error else { panic!("{room}: {error:?}") };
        assert_eq!(error.kind(), std::io::ErrorKind::StorageFull, "{room}");
    }
}

#[test]
fn markdown_reads_like_the_conversation() {
    let (_folder, path) = built(Layout::Both, |db| {
        db.session(&Session {
            title: "Fix the\nbuild",
            archived: Some(NOW + DAY),
            ..Session::named("ses_a")
        });
        db.user("msg_1", "ses_a");
        db.part("prt_1", "msg_1", "ses_a", &part::text("Why does it **fail**?"));
        db.part("prt_2", "msg_1", "ses_a", &part::file("a/b", "log.txt", "data:,x"));
        db.message("msg_2", "ses_a", NOW + 1000, &message::assistant("msg_1", NOW + 1000));
        db.part("prt_3", "msg_2", "ses_a", &part::reasoning("one\ntwo"));
        db.part("prt_4", "msg_2", "ses_a", &part::bash("call_1", "```\nfenced\n```"));
        db.part("prt_5", "msg_2", "ses_a", &part::text("A missing file."));
        db.session_v2(&Session { parent: Some("ses_a"), ..Session::named("ses_b") });
        db.sql("PRAGMA foreign_keys = off");
        db.session_message("smg_1", "ses_b", "user", 1, NOW, &v2::user("Look."));
    });
    let (plain, totals) =
        export(&path, &only("ses_a", true), ExportFormat::Markdown { with_technical: false });
    assert_eq!((totals.sessions, totals.entries, totals.unreadable), (2, 3, 0));
    insta::assert_snapshot!("plain", plain);
    let (technical, _) =
        export(&path, &only("ses_a", false), ExportFormat::Markdown { with_technical: true });
    insta::assert_snapshot!("technical", technical);
}

#[test]
fn markdown_has_no_heading_with_nothing_below_it() {
    let (_folder, path) = built(Layout::V1, |db| {
        db.session(&Session::named("ses_a"));
        db.user("msg_1", "ses_a");
        db.part("prt_1", "msg_1", "ses_a", &part::text("Why?"));
        db.message("msg_2", "ses_a", NOW + 1000, &message::assistant("msg_1", NOW + 1000));
        db.part("prt_2", "msg_2", "ses_a", &part::reasoning("thinking"));
        db.part("prt_3", "msg_2", "ses_a", &part::bash("call_1", "out"));
        db.part("prt_4", "msg_2", "ses_a", &part::text("  \n"));
        db.message("msg_3", "ses_a", NOW + 2000, &message::assistant("msg_1", NOW + 2000));
        db.part("prt_5", "msg_3", "ses_a", &part::text("Because."));
        for (id, of, data) in
            [("prt_6", "msg_4", part::bash("c", "out")), ("prt_7", "msg_5", part::text("A word."))]
        {
            db.message_event("ses_gone", of, &message::assistant("msg_0", NOW));
            db.part_event("ses_gone", of, id, &data);
        }
    });
    for (session, technical, headings) in [
        ("ses_a", false, ["## User", "## Assistant"].as_slice()),
        ("ses_a", true, &["## User", "## Assistant", "## Assistant"]),
        ("ses_gone", false, &["## Assistant"]),
        ("ses_gone", true, &["## Assistant", "## Assistant"]),
    ] {
        let format = ExportFormat::Markdown { with_technical: technical };
        let (text, totals) = export(&path, &only(session, false), format);
        let found: Vec<_> = text
            .lines()
            .filter(|line| line.starts_with("## "))
            .filter_map(|line| line.split([' ', ',']).nth(1))
            .collect();
        let expected: Vec<_> = headings.iter().map(|heading| &heading[3..]).collect();
        assert_eq!(found, expected, "{session} {technical}: {text}");
        assert_eq!(totals.entries, if session == "ses_a" { 3 } else { 2 }, "every message counts");
    }
}

#[test]
fn a_conversation_is_put_together_from_its_events() {
    let (_folder, path) = built(Layout::V1, |db| {
        db.event("ses_gone", "session.created.1", r#"{"info":{"title":"first title"}}"#);
        db.message_event("ses_gone", "msg_1", &message::user(NOW));
        db.part_event("ses_gone", "msg_1", "prt_1", &part::text(""));
        db.part_event("ses_gone", "msg_1", "prt_1", &part::text("What was lost?"));
        db.part_event("ses_gone", "msg_1", "prt_2", &part::text("removed"));
        db.event("ses_gone", "message.part.removed.1", r#"{"messageID":"msg_1","partID":"prt_2"}"#);
        db.message_event("ses_gone", "msg_2", &message::assistant("msg_1", NOW));
        db.part_event("ses_gone", "msg_2", "prt_3", &part::bash("c", "out"));
        db.part_event("ses_gone", "msg_2", "prt_4", &part::text("Nothing."));
        db.part_event("ses_gone", "msg_3", "prt_5", &part::text("of a removed message"));
        db.event("ses_gone", "message.removed.1", r#"{"messageID":"msg_3"}"#);
        db.event("ses_gone", "session.updated.1", r#"{"info":{"id":"ses_gone","title":"last title"}}"#);
    });
    for scope in [ExportScope::Recoverable, only("ses_gone", true)] {
        let (text, totals) = export(&path, &scope, ExportFormat::Markdown { with_technical: false });
        assert_eq!((totals.recovered, totals.entries), (1, 2));
        insta::assert_snapshot!("recovered", text);
    }
}
