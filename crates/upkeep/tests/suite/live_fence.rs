//! The fence beside a running OpenCode: what it says of a turn that streams, and of its neighbours.

use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use headwater_model::{MessageId, SessionId, UnixMillis};
use headwater_prune::{Indexes, KeptReason, PruneRequest};
use headwater_testkit::opencode::OpenCode;
use headwater_upkeep::fence::{Activity, Holders, OpenCodeServers, ServerProbe};
use headwater_upkeep::observer::Unobserved;
use headwater_upkeep::prune::{Answer, MessagePreview, PruneOptions, Pruner, Why, preview_message};
use headwater_upkeep::state::StateFile;
use headwater_upkeep::{ReadDatabase, WriteDatabase};

#[test]
fn a_streaming_turn_closes_its_session_and_no_other() {
    let mut opencode = OpenCode::start();
    let database = opencode.database();
    let (busy, idle) = (opencode.new_session("busy"), opencode.new_session("idle"));
    for session in [&busy, &idle] {
        opencode.say(session, "[[tools=1 out=2000 reasoning=200]] first");
        opencode.say(session, "second");
    }
    opencode.say_async(&busy, "[[hold=turn]] third");
    opencode.provider().wait_held("turn");

    let probe = OpenCodeServers::new(&database, Duration::from_secs(10));
    let project = opencode.home().project();
    let directory = project.to_str().unwrap();
    assert_eq!(probe.holders(), Holders::Others);
    assert_eq!(probe.activity(&busy, directory), Activity::Busy);
    assert_eq!(probe.activity(&idle, directory), Activity::Idle);

    let message = message_with_tool(&database, &busy);
    let before = preview(&database, &busy, &message);
    match prune(&database, &before) {
        Answer::Blocked(blocked) => assert_eq!(blocked.why, Why::Kept(KeptReason::Executing)),
        Answer::Pruned(receipt) => panic!("pruned a session that runs: {receipt:?}"),
    }
    assert_eq!(preview(&database, &busy, &message), before);
    let neighbour = preview(&database, &idle, &message_with_tool(&database, &idle));
    ensure_pruned(prune(&database, &neighbour));

    opencode.provider().release("turn");
    opencode.settle(&busy);
    ensure_pruned(prune(&database, &before));
    for session in [&busy, &idle] {
        opencode.say(session, "goes on");
        assert_eq!(
            opencode.export(session)["messages"].as_array().unwrap().len(),
            opencode.messages(session).len()
        );
    }
    opencode.stop();
    let probe = OpenCodeServers::new(&database, Duration::from_secs(10));
    assert_eq!(probe.holders(), Holders::Nobody);
}

#[test]
fn a_turn_of_the_newer_routes_closes_its_session_too() {
    let opencode = OpenCode::start();
    let database = opencode.database();
    let session = opencode.new_v2_session();
    opencode.say_v2(&session, "[[tools=1 out=2000 reasoning=200]] first");
    let body = serde_json::json!({"prompt": {"text": "[[hold=turn]] second"}});
    opencode.post(&format!("/api/session/{session}/prompt"), &body);
    opencode.provider().wait_held("turn");
    let probe = OpenCodeServers::new(&database, Duration::from_secs(10));
    let project = opencode.home().project();
    assert_eq!(probe.activity(&session, project.to_str().unwrap()), Activity::Busy);

    let message = message_with_tool(&database, &session);
    let before = preview(&database, &session, &message);
    match prune(&database, &before) {
        Answer::Blocked(blocked) => assert_eq!(blocked.why, Why::Kept(KeptReason::Executing)),
        Answer::Pruned(receipt) => panic!("pruned a session that runs: {receipt:?}"),
    }
    assert_eq!(preview(&database, &session, &message), before);
    opencode.provider().release("turn");
    while opencode.is_active_v2(&session) {}
    ensure_pruned(prune(&database, &before));
    opencode.say_v2(&session, "goes on");
}

fn ensure_pruned(answer: Answer) {
    match answer {
        Answer::Pruned(receipt) => assert!(receipt.removed.total() > 0),
        Answer::Blocked(blocked) => panic!("{blocked}"),
    }
}

/// The message of `session` that holds a tool call: in either storage, the oldest one with something to remove.
fn message_with_tool(database: &Path, session: &str) -> String {
    let database = ReadDatabase::open(database).unwrap();
    let mut statement = database
        .connection()
        .prepare(
            "SELECT id FROM (SELECT message_id AS id FROM part WHERE session_id = ?1 AND json_extract(data, '$.type') = 'tool' \
             UNION ALL SELECT id FROM session_message WHERE session_id = ?1 AND data LIKE '%\"type\":\"tool\"%') ORDER BY id LIMIT 1",
        )
        .unwrap();
    statement.query_row([session], |row| row.get(0)).unwrap()
}

fn preview(database: &Path, session: &str, message: &str) -> MessagePreview {
    let database = ReadDatabase::open(database).unwrap();
    let (session, message) = (SessionId::new(session).unwrap(), MessageId::new(message).unwrap());
    preview_message(database.connection(), database.schema(), &session, &message).unwrap().unwrap()
}

/// Removes everything that `preview` says may go, as a request from a program does, an hour later: sessions have settled by then.
fn prune(database: &Path, preview: &MessagePreview) -> Answer {
    let removable = preview.items.iter().filter(|item| item.removable).map(|item| item.index);
    let request = PruneRequest {
        session: preview.place.session.clone(),
        message: preview.message.clone(),
        indexes: Indexes::new(removable).unwrap(),
        revision: preview.revision,
    };
    let probe = OpenCodeServers::new(database, Duration::from_secs(10));
    let writer = WriteDatabase::open(database, Duration::from_secs(5)).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut state = StateFile::open(&folder.path().join("receipts.db")).unwrap();
    let options = PruneOptions::batch();
    Pruner::new(&writer, &mut state, &probe, options, in_an_hour(), &Unobserved)
        .unwrap()
        .message(&request, Some(&preview.place))
        .unwrap()
}

#[expect(
    clippy::disallowed_methods,
    reason = "OpenCode writes real times, and the test has to be after them"
)]
fn in_an_hour() -> UnixMillis {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap() + Duration::from_hours(1);
    UnixMillis::new(i64::try_from(since.as_millis()).unwrap())
}
