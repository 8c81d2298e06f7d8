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

fn shown(path: &std::path::Path, id: &str, options: ShowOptions) -> Vec<ShownMessage> {
    ReadDatabase::with(path, |database| {
        let mut messages = Vec::new();
        session(database, id, options, &Unobserved, |message| {
            messages.push(message);
            Ok(())
        })?;
        Ok::<_, ReadError>(messages)
    })
    .unwrap()
}

/// Kind, tool, status, title, text.
type Seen<'a> = (&'a str, Option<&'a str>, Option<&'a str>, Option<&'a str>, Option<&'a str>);

fn items(message: &ShownMessage) -> Vec<Seen<'_>> {
    message
        .items
        .iter()
        .map(|item| {
            (
                item.kind.as_str(),
                item.tool.as_deref(),
                item.status.as_deref(),
                item.title.as_deref(),
                item.text.as_ref().map(|text| text.text.as_str()),
            )
        })
        .collect()
}

const V1_ANSWER: &str = r#"
INSERT INTO message VALUES ('msg_z', 'ses_a', 1500, 1500,
  '{"role":"assistant","modelID":"big","agent":"build","error":{"name":"APIError"},"time":{"created":1500,"completed":1600}}');
INSERT INTO part VALUES
  ('prt_2', 'msg_z', 'ses_a', 1, 1, '{"type":"tool","tool":"bash","callID":"c","state":{"status":"completed","input":{"command":"ls"},"output":"a\nb","title":"List","metadata":{},"time":{"start":1,"end":2}}}'),
  ('prt_1', 'msg_z', 'ses_a', 1, 1, '{"type":"reasoning","text":"thinking","time":{"start":1}}'),
  ('prt_3', 'msg_z', 'ses_a', 1, 1, 'not json'),
  ('prt_4', 'msg_z', 'ses_a', 1, 1, '{"type":"text","text":"say \"hi\" \ud83d\ude00"}'),
  ('prt_5', 'msg_z', 'ses_a', 1, 1, 17);
"#;

#[test]
fn a_v1_session_is_shown_in_order_with_text_only() {
    let (_folder, path) = made(&(v1_session("ses_a") + V1_ANSWER));
    let messages = shown(&path, "ses_a", ShowOptions::default());
    assert_eq!(
        messages.iter().map(|message| message.role.as_str()).collect::<Vec<_>>(),
        ["user", "assistant"]
    );
    assert_eq!(items(&messages[0]), [("text", None, None, None, Some("hello from ses_a"))]);
    let answer = &messages[1];
    assert_eq!(answer.completed, Some(UnixMillis::new(1600)));
    assert_eq!((answer.model.as_deref(), answer.agent.as_deref()), (Some("big"), Some("build")));
    assert_eq!(answer.error.as_deref(), Some("APIError"));
    assert_eq!(
        items(answer),
        [
            ("reasoning", None, None, None, None),
            ("tool", Some("bash"), Some("completed"), Some("List"), None),
            ("unreadable", None, None, None, None),
            ("text", None, None, None, Some("say \"hi\" 😀")),
            ("unreadable", None, None, None, None),
        ]
    );
    assert_eq!(answer.items[3].bytes, ByteCount::new(48));
    assert_eq!(answer.items[1].id.as_deref(), Some("prt_2"));
}

#[test]
fn technical_content_is_shown_on_demand() {
    let (_folder, path) = made(&(v1_session("ses_a") + V1_ANSWER));
    let options = ShowOptions { technical: true, ..ShowOptions::default() };
    let messages = shown(&path, "ses_a", options);
    let items = items(&messages[1]);
    assert_eq!(items[0].4, Some("thinking"));
    assert_eq!(items[1].4, Some("{\"command\":\"ls\"}\na\nb"));
}

const V2: &str = r#"
INSERT INTO session_v2 (id, project_id, directory, title, time_created, time_updated) VALUES ('ses_a', 'prj_a', '/a', 't', 1, 1);
INSERT INTO session_message VALUES
  ('smg_2', 'ses_a', 'assistant', 7, 1, 1, '{"model":{"id":"small","providerID":"p"},"agent":"build","time":{"created":1,"completed":2},"content":[
     {"type":"text","text":"one"},{"type":"reasoning","text":"deep"},
     {"type":"tool","id":"call_1","name":"read","state":{"status":"completed","input":{"path":"x"},"content":[{"type":"text","text":"p1"},{"type":"text","text":"p2"}]}},
     {"type":"tool","id":"call_2","name":"bash","state":{"status":"error","input":{},"error":{"type":"x","message":"no"}}}]}'),
  ('smg_1', 'ses_a', 'user', 3, 9, 9, '{"time":{"created":1},"text":"question"}'),
  ('smg_3', 'ses_a', 'compaction', 8, 1, 1, '{"time":{"created":1},"status":"completed","summary":"so far","recent":""}'),
  ('smg_4', 'ses_a', 'shell', 9, 1, 1, '{"command":"ls","output":{"output":"files"},"time":{"created":1}}'),
  ('smg_5', 'ses_a', 'idle', 10, 1, 1, '{"time":{"created":1},"outcome":"succeeded"}'),
  ('smg_6', 'ses_a', 'user', 11, 1, 1, '{broken');
"#;

#[test]
fn the_live_layout_of_a_session_in_both_is_shown() {
    let (_folder, path) = made(&(v1_session("ses_a") + V2));
    let messages = shown(&path, "ses_a", ShowOptions { technical: true, ..ShowOptions::default() });
    let roles: Vec<_> = messages.iter().map(|message| message.role.as_str()).collect();
    assert_eq!(roles, ["user", "assistant", "compaction", "shell", "idle", "user"]);
    assert!(messages.iter().all(|message| message.layout == Layout::V2));
    assert_eq!(items(&messages[0]), [("user", None, None, None, Some("question"))]);
    let expected = [
        ("text", None, None, None, Some("one")),
        ("reasoning", None, None, None, Some("deep")),
        ("tool", Some("read"), Some("completed"), None, Some("{\"path\":\"x\"}\np1\np2")),
        ("tool", Some("bash"), Some("error"), None, Some("no")),
    ];
    assert_eq!(items(&messages[1]), expected);
    assert_eq!(messages[1].items[0].bytes, ByteCount::new(28));
    assert_eq!(messages[1].model.as_deref(), Some("small"));
    assert_eq!((messages[2].is_summary, items(&messages[2])[0].4), (true, Some("so far")));
    assert_eq!(items(&messages[3])[0].4, Some("ls\nfiles"));
    assert_eq!(items(&messages[4]), []);
    assert!(!messages[5].is_readable);
}

#[test]
fn texts_are_cut_with_a_mark_and_streamed_whole() {
    let long = "数".repeat(100_000);
    let (_folder, path) = made(&(v1_session("ses_a")
        + &format!(
            "INSERT INTO message VALUES ('msg_x', 'ses_a', 3000, 1, '{{\"role\":\"user\"}}');
             INSERT INTO part VALUES ('prt_x', 'msg_x', 'ses_a', 1, 1, '{{\"type\":\"text\",\"text\":\"{long}\"}}');"
        )));
    let options = ShowOptions { text_bytes_max: 1000, technical: false };
    ReadDatabase::with(&path, |database| {
        let found = message(database, "msg_x", options)?;
        let text = found.items[0].text.as_ref().unwrap();
        assert_eq!(text.text, "数".repeat(333));
        assert!(text.is_cut);
        assert_eq!(text.stored_bytes, ByteCount::new(300_002));
        let mut out = Vec::new();
        write_text(database, &found.items[0], &mut out)?;
        assert_eq!(String::from_utf8(out).unwrap(), long);
        Ok::<_, ReadError>(())
    })
    .unwrap();
}

#[test]
fn a_message_holds_no_more_text_than_its_budget() {
    let mut sql = v1_session("ses_a");
    sql.push_str("INSERT INTO message VALUES ('msg_x', 'ses_a', 3000, 1, '{\"role\":\"user\"}');");
    sql.push_str(
        "INSERT INTO part SELECT 'prt_x' || value, 'msg_x', 'ses_a', 1, 1,
           json_object('type', 'text', 'text', printf('%.*c', 3000000, 'x'))
         FROM (WITH RECURSIVE n(value) AS (VALUES (1) UNION ALL SELECT value + 1 FROM n WHERE value < 5) SELECT * FROM n);",
    );
    let (_folder, path) = made(&sql);
    let options = ShowOptions { text_bytes_max: usize::MAX, technical: false };
    let messages = shown(&path, "ses_a", options);
    let lengths: Vec<_> = messages[1].items.iter().map(|item| item.text.as_ref().unwrap()).collect();
    let held: usize = lengths.iter().map(|text| text.text.len()).sum();
    assert_eq!(held, MESSAGE_TEXT_BYTES_MAX);
    assert_eq!(lengths.iter().filter(|text| text.is_cut).count(), 3);
}

#[test]
fn unknown_ids_are_told_and_rows_without_a_session_row_are_shown() {
    let (_folder, path) =
        made("INSERT INTO message VALUES ('msg_o', 'ses_gone', 1, 1, '{\"role\":\"user\"}');");
    let messages = shown(&path, "ses_gone", ShowOptions::default());
    assert_eq!(messages[0].id, "msg_o");
    ReadDatabase::with(&path, |database| {
        let nothing = session(database, "ses_x", ShowOptions::default(), &Unobserved, |_| Ok(()));
        assert!(matches!(nothing, Err(ReadError::NoSuchSession)));
        let nothing = message(database, "msg_x", ShowOptions::default());
        assert!(matches!(nothing, Err(ReadError::NoSuchMessage)));
        Ok::<_, ReadError>(())
    })
    .unwrap();
}

#[test]
fn a_failing_writer_is_an_output_error() {
    struct Full;
    impl io::Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let (_folder, path) = made(&v1_session("ses_a"));
    ReadDatabase::with(&path, |database| {
        let found = message(database, "msg_ses_a", ShowOptions::default())?;
        match write_text(database, &found.items[0], &mut Full) {
            Err(ReadError::Output(error)) => assert_eq!(error.kind(), io::ErrorKind::StorageFull),
            other => panic!("{other:?}"),
        }
        Ok::<_, ReadError>(())
    })
    .unwrap();
}
