//! A database with a canary in every text column of every table, in every text of its JSON, and in its JSON keys.

use std::path::{Path, PathBuf};

use headwater_testkit::fixture::{DAY, Fixture, Layout, NOW, Session, message, part, v2};
use rusqlite::types::Value as Stored;
use serde_json::{Map, Value, json};

/// Stands in everything that was said, thought, run, answered, configured or stored for later.
pub(crate) const CONTENT: &str = "zqcontent7f3a";

/// Stands in what lists of sessions are for: titles, directories, names of projects, agents and models.
pub(crate) const TITLE: &str = "zqtitle7f3a";

/// Stands in what gives access: tokens and keys.
pub(crate) const SECRET: &str = "zqsecret7f3a";

/// Columns with names and kinds that programs decide by, which messages and receipts may name: no canary stands there.
const PLAIN: [&str; 8] = ["type", "kind", "seq", "role", "vcs", "strategy", "delivery", "status"];

/// Tables that hold nothing of a conversation: which migrations have run.
const PLAIN_TABLES: [&str; 3] = ["migration", "data_migration", "event_sequence"];

/// Columns that say where something stands or what it is called.
const TITLES: [&str; 13] = [
    "title",
    "directory",
    "path",
    "worktree",
    "slug",
    "name",
    "branch",
    "version",
    "agent",
    "model",
    "label",
    "fork_boundary",
    "summary_title",
];

/// Tables whose texts give access. `session_share` goes into an export, and nowhere else.
const SECRET_TABLES: [&str; 3] = ["account", "control_account", "credential"];

/// Sessions that may be pruned, and one whose every column is filled.
const SESSIONS: [&str; 3] = ["ses_a", "ses_child", "ses_full"];

/// Makes `opencode.db` in `folder`: both layouts, everything that OpenCode writes, and a table that nobody knows.
pub(crate) fn database(folder: &Path) -> PathBuf {
    let db = Fixture::create(folder.join("opencode.db"), Layout::Both);
    let directory = format!("/home/user/{TITLE}");
    let session = |id, title, days| Session {
        title,
        directory: &directory,
        updated: NOW - days * DAY,
        ..Session::named(id)
    };
    let title = format!("{TITLE} session");
    db.session(&session("ses_a", &title, 1));
    db.session(&Session { parent: Some("ses_a"), ..session("ses_child", &title, 2) });
    db.session(&session("ses_full", &title, 3));
    db.session(&session("ses_live", &title, 0));
    db.session_v2(&session("ses_v2", &title, 4));
    db.session_v2(&session("ses_v2_full", &title, 5));
    for (session, letter) in SESSIONS.into_iter().zip(["a", "c", "f"]) {
        turn(&db, session, letter);
    }
    // A turn that runs.
    db.user("msg_live_1", "ses_live");
    db.message("msg_live_2", "ses_live", NOW, &salted(&message::assistant_unfinished("msg_live_1", NOW)));
    db.part("prt_live", "msg_live_2", "ses_live", &salted(&part::Tool::bash("call_l").running()));
    newer(&db);
    db.sql(&format!(
        "CREATE TABLE notes (id text PRIMARY KEY, session_id text, body text, more blob);
         INSERT INTO notes VALUES ('note_1', 'ses_a', '{CONTENT} note', CAST('{CONTENT} bytes' AS blob));"
    ));
    db.sql("PRAGMA foreign_keys = off");
    fill(&db);
    assert_complete(&db);
    db.close()
}

/// A question, a step with tools of every kind, and the answer, each with the events that writing it leaves.
fn turn(db: &Fixture, session: &str, letter: &str) {
    let id = |kind: &str, number: u8| format!("{kind}_{letter}_{number}");
    let write_part = |number: u8, message: &str, data: &str| {
        let (part, data) = (id("prt", number), salted(data));
        for _ in 0..2 {
            db.part_event(session, message, &part, &data);
        }
        db.part(&part, message, session, &data);
    };
    let user = id("msg", 1);
    let diffs = [("src/a.rs", "+patch")];
    let data = salted(&message::user_with_diffs(NOW, &diffs));
    db.message(&user, session, NOW, &data);
    db.message_event(session, &user, &data);
    write_part(1, &user, &part::text("please"));
    write_part(2, &user, &part::file("text/plain", "a.txt", "data:text/plain;base64,AAAA"));
    let step = id("msg", 2);
    db.message(&step, session, NOW + 1, &salted(&message::assistant(&user, NOW + 1)));
    write_part(3, &step, &part::reasoning_with_state("let me look", "state"));
    write_part(4, &step, &part::bash_twice("call_1", "12 tests ran"));
    write_part(5, &step, &part::Tool::bash("call_2").failed("no such file"));
    write_part(6, &step, &part::bash_compacted("call_3", "long ago"));
    write_part(7, &step, &part::read_attachment("call_4", "data:image/png;base64,AAAA"));
    write_part(8, &step, &part::patch("src/a.rs"));
    write_part(9, &step, &part::text("Done."));
    let failed = id("msg", 3);
    db.message(&failed, session, NOW + 2, &salted(&message::assistant_failed(&user, NOW + 2, "overloaded")));
    if session == "ses_full" {
        db.event(session, "session.next.prompted.1", &salted(r#"{"prompt":"x"}"#));
    }
    // A kind that nobody knows keeps its message whole.
    let odd = id("msg", 4);
    db.message(&odd, session, NOW + 3, &salted(&message::assistant(&user, NOW + 3)));
    db.part(&format!("prt_{letter}_odd"), &odd, session, &salted(&part::unknown("hologram")));
}

/// Rows of every type of the 2.x layout.
fn newer(db: &Fixture) {
    for (session, letter) in [("ses_v2", "v"), ("ses_v2_full", "w")] {
        let content = [
            v2::reasoning("thinking"),
            v2::tool("call_v2", "shell", "12 uploads"),
            v2::tool_failed("call_v3", "read", "no such file"),
            v2::text("Twelve."),
        ];
        let rows = [
            ("user", v2::user("how many")),
            ("assistant", v2::assistant(&content)),
            ("system", v2::system("be brief")),
            ("shell", v2::shell("make", "built")),
            ("compaction", v2::compaction("completed", "all of it")),
            ("idle", v2::idle("succeeded")),
        ];
        for (number, (kind, data)) in (1_i64..).zip(rows) {
            let id = format!("msg_{letter}_{number}");
            db.session_message(&id, session, kind, number, NOW, &salted(&data));
        }
    }
    db.kv("setting", &json!({ format!("{CONTENT} key"): format!("{CONTENT} value") }).to_string());
}

/// JSON with the canary behind every text but ids, kinds and states, and a member more in every object whose key is one.
fn salted(data: &str) -> String {
    const PLAIN_MEMBERS: [&str; 19] = [
        "id",
        "sessionID",
        "messageID",
        "parentID",
        "callID",
        "type",
        "role",
        "status",
        "tool",
        "mime",
        "mode",
        "url",
        "hash",
        "snapshot",
        "finish",
        "reason",
        "encoding",
        "shellID",
        "outcome",
    ];
    fn salt(value: &mut Value, key: &str) {
        match value {
            Value::String(text) if !PLAIN_MEMBERS.contains(&key) => {
                let word = if matches!(
                    key,
                    "agent" | "modelID" | "providerID" | "title" | "cwd" | "root" | "name"
                ) {
                    TITLE
                } else {
                    CONTENT
                };
                *text = format!("{text} {word}");
            }
            Value::String(url) if key == "url" => *url = format!("{url}{CONTENT}"),
            Value::Array(items) => items.iter_mut().for_each(|item| salt(item, key)),
            Value::Object(members) => {
                members.iter_mut().for_each(|(key, member)| salt(member, key));
                members.insert(format!("{CONTENT} key"), Value::from(format!("{CONTENT} member")));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    let mut value: Map<String, Value> = serde_json::from_str(data).unwrap();
    // The tool's own name stays, which lists of tools show.
    let name = value.get("name").cloned();
    value.iter_mut().for_each(|(key, member)| salt(member, key));
    value.extend(name.map(|name| ("name".to_owned(), name)));
    value.insert(format!("{CONTENT} key"), Value::from(format!("{CONTENT} member")));
    Value::Object(value).to_string()
}

struct Column {
    name: String,
    is_text: bool,
    parent: Option<(String, String)>,
}

/// Gives every table a row, and fills every text column of `session` and `session_v2` for the sessions that are for this.
fn fill(db: &Fixture) {
    for table in tables(db) {
        let columns = columns(db, &table);
        if matches!(table.as_str(), "session" | "session_v2") {
            let own = if table == "session" { "ses_full" } else { "ses_v2_full" };
            for column in columns.iter().filter(|column| takes_canary(&table, column)) {
                let (name, word) = (&column.name, word(&table, &column.name));
                db.sql(&format!(
                    "UPDATE \"{table}\" SET \"{name}\" = coalesce(\"{name}\", '') || ' {word} {name}' WHERE id = '{own}'"
                ));
            }
        } else if db.integer(&format!("SELECT count(*) FROM \"{table}\"")) == 0 {
            let values = columns.iter().map(|column| generated(db, &table, column));
            let marks = vec!["?"; columns.len()].join(", ");
            let sql = format!("INSERT INTO \"{table}\" VALUES ({marks})");
            db.connection().execute(&sql, rusqlite::params_from_iter(values)).unwrap();
        } else if table == "project" {
            for column in columns.iter().filter(|column| takes_canary(&table, column)) {
                let (name, word) = (&column.name, word(&table, &column.name));
                db.sql(&format!(
                    "UPDATE project SET \"{name}\" = coalesce(\"{name}\", '') || ' {word} {name}'"
                ));
            }
        }
    }
}

fn generated(db: &Fixture, table: &str, column: &Column) -> Stored {
    if let Some((parent, key)) = &column.parent {
        let own = if parent == "session" { "'ses_full'" } else { "'ses_v2_full'" };
        let by = if parent.starts_with("session") { format!("WHERE id = {own}") } else { String::new() };
        return db
            .connection()
            .query_row(&format!("SELECT \"{key}\" FROM \"{parent}\" {by} LIMIT 1"), [], |row| row.get(0))
            .unwrap_or(Stored::Null);
    }
    if takes_canary(table, column) {
        return Stored::Text(format!("{} {}", word(table, &column.name), column.name));
    }
    if column.is_text { Stored::Text(format!("{table}_{}", column.name)) } else { Stored::Integer(1) }
}

fn word(table: &str, column: &str) -> &'static str {
    if SECRET_TABLES.contains(&table) {
        SECRET
    } else if TITLES.contains(&column) {
        TITLE
    } else {
        CONTENT
    }
}

fn takes_canary(table: &str, column: &Column) -> bool {
    let name = column.name.as_str();
    let is_id = name == "id" || name.ends_with("_id") || name == "hash" || table == "kv" && name == "key";
    column.is_text
        && !is_id
        && column.parent.is_none()
        && !PLAIN.contains(&name)
        && !PLAIN_TABLES.contains(&table)
}

fn tables(db: &Fixture) -> Vec<String> {
    let sql = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite@_%' ESCAPE '@'";
    let mut statement = db.connection().prepare(sql).unwrap();
    let names = statement.query_map([], |row| row.get(0)).unwrap();
    names.map(Result::unwrap).collect()
}

fn columns(db: &Fixture, table: &str) -> Vec<Column> {
    let sql = "SELECT c.name, lower(c.type) = 'text', f.\"table\", f.\"to\" FROM pragma_table_info(?1) c \
               LEFT JOIN pragma_foreign_key_list(?1) f ON f.\"from\" = c.name ORDER BY c.cid";
    let mut statement = db.connection().prepare(sql).unwrap();
    let columns = statement.query_map([table], |row| {
        let parent: Option<String> = row.get(2)?;
        let key: Option<String> = row.get(3)?;
        Ok(Column { name: row.get(0)?, is_text: row.get(1)?, parent: parent.zip(key) })
    });
    columns.unwrap().map(Result::unwrap).collect()
}

/// Every text column that takes a canary has one in some row, whatever tables the layouts have.
fn assert_complete(db: &Fixture) {
    for table in tables(db) {
        for column in columns(db, &table).iter().filter(|column| takes_canary(&table, column)) {
            let name = &column.name;
            let found = db.integer(&format!(
                "SELECT count(*) FROM \"{table}\" WHERE instr(\"{name}\", '{CONTENT}') OR instr(\"{name}\", '{TITLE}') \
                 OR instr(\"{name}\", '{SECRET}')"
            ));
            assert!(found > 0, "no canary in {table}.{name}");
        }
    }
}
