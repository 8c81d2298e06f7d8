use std::fmt::Write as _;
use std::path::PathBuf;

use tempfile::TempDir;

use super::*;
use crate::fixture::{self, v1_session};
use crate::observer::Unobserved;

fn made(sql: &str) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("opencode.db");
    fixture::database(&path, sql);
    (folder, path)
}

fn listed(path: &std::path::Path, query: &SessionQuery) -> (Vec<SessionSummary>, SessionCounts) {
    ReadDatabase::with(path, |database| collect(database, query, &Unobserved)).unwrap()
}

fn ids(sessions: &[SessionSummary]) -> Vec<&str> {
    sessions.iter().map(|session| session.id.as_str()).collect()
}

const BOTH: &str = "
INSERT INTO session_v2 (id, project_id, directory, title, time_created, time_updated, time_idle, revert, time_compacting, time_suspended)
  VALUES ('ses_a', 'prj_a', '/home/user/a', 'newer title', 1000, 1500, 9000, '{}', 1, 1);
INSERT INTO session_message VALUES ('smg_1', 'ses_a', 'user', 0, 1, 1, '12345'), ('smg_2', 'ses_a', 'assistant', 3, 1, 1, '1234567');
INSERT INTO event_sequence VALUES ('ses_a', 1, NULL);
INSERT INTO event VALUES ('evt_1', 'ses_a', 0, 'x.1', 'abc'), ('evt_2', 'ses_a', 1, 'x.1', 'd');
";

#[test]
fn a_session_in_both_layouts_is_one_with_its_live_row_and_all_its_bytes() {
    let (_folder, path) = made(&(v1_session("ses_a") + &v1_session("ses_b") + BOTH));
    let (sessions, counts) = listed(&path, &SessionQuery::default());
    assert_eq!(ids(&sessions), ["ses_a", "ses_b"]);
    assert_eq!(counts, SessionCounts { sessions: 2, matching: 2, listed: 2, unreadable: 0 });
    let first = &sessions[0];
    assert_eq!(first.title.as_deref(), Some("newer title"));
    assert_eq!(first.layouts, Layouts { v1: true, v2: true });
    assert_eq!((first.created.get(), first.last_used.get(), first.messages), (1000, 9000, 2));
    let v1 = sessions[1].bytes;
    let expected = SessionBytes {
        session_messages: ByteCount::new(12),
        events: ByteCount::new(4),
        total: v1.total + ByteCount::new(16),
        ..v1
    };
    assert_eq!(first.bytes, expected);
    assert_eq!(v1.parts, ByteCount::new(41));
    assert_eq!(
        first.state,
        SessionState { executing: true, compacting: true, revert_staged: true, input_waiting: false }
    );
    assert_eq!(sessions[1].state, SessionState::default());
}

#[test]
fn a_pass_and_the_indexes_give_the_same_sizes() {
    let (_folder, path) = made(&(v1_session("ses_a") + &v1_session("ses_b") + BOTH));
    let indexed = listed(&path, &SessionQuery::default());
    fixture::connect(&path).execute_batch("DROP INDEX part_session_idx").unwrap();
    assert_eq!(listed(&path, &SessionQuery::default()), indexed);
}

#[test]
fn filters_keep_boundaries_and_orders_are_total() {
    let mut sql = String::new();
    for (id, parent, project, directory, created, updated, archived) in [
        ("ses_1", "NULL", "prj_a", "/w/app", 1, 30, "NULL"),
        ("ses_2", "'ses_1'", "prj_a", "/w/app/sub", 2, 20, "NULL"),
        ("ses_3", "'gone'", "prj_a", "/w/application", 3, 20, "5"),
        ("ses_4", "NULL", "prj_b", "/w/app", 4, 10, "NULL"),
    ] {
        write!(
            sql,
            "INSERT INTO session (id, project_id, parent_id, directory, title, time_created, time_updated, time_archived)
             VALUES ('{id}', '{project}', {parent}, '{directory}', 't', {created}, {updated}, {archived});"
        )
        .unwrap();
    }
    sql.push_str("INSERT INTO message VALUES ('m', 'ses_4', 1, 1, '0123456789');");
    let (_folder, path) = made(&sql);
    let default = SessionQuery::default;
    for (name, query, expected) in [
        ("all", default(), &["ses_1", "ses_2", "ses_3", "ses_4"][..]),
        ("project", SessionQuery { project: Some("prj_b".into()), ..default() }, &["ses_4"]),
        (
            "directory",
            SessionQuery { directory: Some("/w/app/".into()), ..default() },
            &["ses_1", "ses_2", "ses_4"],
        ),
        (
            "top directory",
            SessionQuery { directory: Some("/".into()), ..default() },
            &["ses_1", "ses_2", "ses_3", "ses_4"],
        ),
        (
            "not archived",
            SessionQuery { archived: Archived::Excluded, ..default() },
            &["ses_1", "ses_2", "ses_4"],
        ),
        ("archived", SessionQuery { archived: Archived::Only, ..default() }, &["ses_3"]),
        ("roots", SessionQuery { roots_only: true, ..default() }, &["ses_1", "ses_3", "ses_4"]),
        (
            "created",
            SessionQuery { sort: SessionSort::Created, ..default() },
            &["ses_4", "ses_3", "ses_2", "ses_1"],
        ),
        (
            "bytes",
            SessionQuery { sort: SessionSort::Bytes, ..default() },
            &["ses_4", "ses_1", "ses_2", "ses_3"],
        ),
        ("limit", SessionQuery { limit: Some(2), ..default() }, &["ses_1", "ses_2"]),
        ("largest", SessionQuery { sort: SessionSort::Bytes, limit: Some(1), ..default() }, &["ses_4"]),
        ("nothing", SessionQuery { limit: Some(0), ..default() }, &[]),
    ] {
        let (sessions, counts) = listed(&path, &query);
        assert_eq!(ids(&sessions), expected, "{name}");
        assert_eq!(counts.sessions, 4, "{name}");
    }
    let (sessions, _) = listed(&path, &default());
    assert_eq!((sessions[0].children, sessions[1].parent.as_deref()), (1, Some("ses_1")));
    assert_eq!((sessions[1].parent_missing, sessions[2].parent_missing), (false, true));
}

#[test]
fn odd_rows_are_listed_or_counted_and_never_fatal() {
    let (_folder, path) = made(&format!(
        "INSERT INTO session (id, project_id, directory, title, time_created, time_updated) VALUES
           ('ses_blob', 'prj_a', x'2fff', x'61ff', 'soon', -5),
           ('{}', 'prj_a', '/a', 't', 1, 1),
           ('ses_long', 'prj_a', '/a', '{}', 9e30, 9e30);
         INSERT INTO message VALUES ('m', x'00ff', 1, 1, '{{}}');",
        "x".repeat(5000),
        "數".repeat(1000),
    ));
    let (sessions, counts) = listed(&path, &SessionQuery::default());
    assert_eq!(ids(&sessions), ["ses_long", "ses_blob"]);
    assert_eq!(counts.unreadable, 1);
    assert_eq!(sessions[1].title.as_deref(), Some("a\u{fffd}"));
    assert_eq!(sessions[0].title.as_ref().map(String::len), Some(1023));
    assert_eq!(sessions[0].last_used.get(), i64::MAX);
    assert_eq!((sessions[1].created.get(), sessions[1].last_used.get()), (0, 0));
}

#[test]
fn an_empty_database_lists_nothing() {
    let (_folder, path) = made("");
    assert_eq!(listed(&path, &SessionQuery::default()), (Vec::new(), SessionCounts::default()));
}
