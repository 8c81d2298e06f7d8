//! The shapes of `--json`.

use insta::assert_json_snapshot;

use super::{FIRST, HOST, JOURNAL, host, on};
use crate::scrub::scrubbed;

#[test]
fn every_verb_has_the_documented_shape() {
    let home = tempfile::tempdir().unwrap();
    let lines = |db: &str, arguments: &[&str], status: i32, measured: &[&str]| {
        let run = on(home.path(), db, &[arguments, &["--json"]].concat()).expect_status(status);
        scrubbed(run.json_lines(), measured)
    };
    assert_json_snapshot!("conversation_init", lines("a.db", &["init"], 0, &[]));
    let times = ["startedAt", "updatedAt", "createdAt", "order_time", "orderTime", "lastActivity", "next"];
    assert_json_snapshot!("conversation_post", lines("a.db", &FIRST, 0, &[]));
    on(home.path(), "a.db", &["post", "ses_a", "two", "--id", "m2"]).expect_status(0);
    assert_json_snapshot!("conversation_sessions", lines("a.db", &["sessions"], 0, &times));
    assert_json_snapshot!("conversation_show", lines("a.db", &["show", "ses_a", "--limit", "1"], 0, &times));
    assert_json_snapshot!("conversation_turns", lines("a.db", &["show", "ses_a", "--turns"], 0, &times));
    assert_json_snapshot!("conversation_backup", lines("a.db", &["backup", "b.db"], 0, &["path", "bytes"]));
    let measured = ["path", "bytes", "bytes_before", "bytes_after", "previous"];
    assert_json_snapshot!("conversation_restore", lines("a.db", &["restore", "b.db", "--yes"], 0, &measured));
    assert_json_snapshot!("conversation_export", lines("a.db", &["export", "--output", "all.jsonl"], 0, &[]));
    on(home.path(), "c.db", &["init"]).expect_status(0);
    assert_json_snapshot!("conversation_import", lines("c.db", &["import", "all.jsonl"], 0, &[]));
    host(home.path(), &format!("{HOST}{JOURNAL}"));
    assert_json_snapshot!(
        "conversation_cutover",
        lines("host.db", &["cutover", "--yes"], 0, &["bytes", "journal_bytes"])
    );
    assert_json_snapshot!("conversation_check", lines("host.db", &["check"], 0, &[]));
}
