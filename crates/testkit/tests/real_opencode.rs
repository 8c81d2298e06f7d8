//! The harness around the real OpenCode works: it is installed, answers through the mock provider, and ends.

use headwater_testkit::fixture::{Fixture, Layout, Session, part};
use headwater_testkit::opencode::OpenCode;

#[test]
fn real_opencode_answers_through_the_mock_provider() {
    let mut opencode = OpenCode::start();
    let session = opencode.new_session("first");
    let events = opencode.events();
    opencode.say(&session, "look [[reasoning=100 tools=1 out=300 text=50]]");
    events.wait("session.idle", |properties| properties["sessionID"] == session.as_str());

    let messages = opencode.messages(&session);
    let kinds: Vec<_> =
        messages.iter().flat_map(|m| m["parts"].as_array().unwrap()).map(|p| &p["type"]).collect();
    for kind in ["text", "reasoning", "tool", "step-finish"] {
        assert!(kinds.iter().any(|found| **found == kind), "{kind} is missing: {kinds:?}");
    }
    assert_eq!(opencode.export(&session)["messages"].as_array().unwrap().len(), messages.len());
    let request = opencode.provider().last_with("look [[").unwrap();
    let tool = request["messages"].as_array().unwrap().last().unwrap();
    assert_eq!((&tool["role"], tool["content"].as_str().unwrap().len()), (&"tool".into(), 300));

    let copy = opencode.fork(&session, None);
    opencode.say(&copy, "go on [[text=20]]");
    opencode.summarize(&copy);
    opencode.stop();
    assert!(opencode.database().exists());
    opencode.restart();
    assert_eq!(opencode.sessions().len(), 2);
    assert_eq!(opencode.messages(&session), messages);
    let prompt = messages[0]["info"]["id"].as_str().unwrap();
    opencode.revert(&session, prompt);
    opencode.unrevert(&session);

    let v2 = opencode.new_v2_session();
    opencode.say_v2(&v2, "hello [[tools=1 out=100 text=30]]");
    assert!(opencode.v2_messages(&v2).len() >= 2);
}

#[test]
fn a_held_stream_is_a_turn_that_runs_and_can_be_aborted_or_killed() {
    let mut opencode = OpenCode::start();
    let (aborted, killed) = (opencode.new_session("aborted"), opencode.new_session("killed"));
    opencode.say_async(&aborted, "wait [[text=100 hold=a]]");
    opencode.provider().wait_held("a");
    assert!(opencode.is_busy(&aborted) && !opencode.is_busy(&killed));
    opencode.abort(&aborted);
    let error = &opencode.messages(&aborted)[1]["info"]["error"]["name"];
    assert_eq!(error, "MessageAbortedError");

    opencode.say_async(&killed, "wait [[text=100 hold=b]]");
    opencode.provider().wait_held("b");
    opencode.kill();
    opencode.provider().release("b");
    opencode.restart();
    let info = &opencode.messages(&killed)[1]["info"];
    assert!(
        info["time"]["completed"].is_null() && info["error"].is_null(),
        "left unfinished, as fact A9 says: {info}"
    );
}

#[test]
fn the_real_program_opens_a_fixture_of_its_own_layout() {
    let mut opencode = OpenCode::start();
    let project = opencode.home().project();
    let id = opencode.get("/project/current")["id"].as_str().unwrap().to_owned();
    opencode.stop();
    let db = Fixture::create(opencode.database(), Layout::V1);
    let directory = project.to_str().unwrap();
    db.project(&id, directory);
    db.session(&Session { project: &id, directory, ..Session::named("ses_a") });
    db.user("msg_a", "ses_a");
    db.part("prt_a", "msg_a", "ses_a", &part::text("made by hand"));
    db.assistant("msg_b", "ses_a");
    db.part("prt_b1", "msg_b", "ses_a", &part::reasoning("hm"));
    db.part("prt_b2", "msg_b", "ses_a", &part::bash_twice("call_1", "out"));
    db.part("prt_b3", "msg_b", "ses_a", &part::Tool::bash("call_2").failed("no"));
    db.part("prt_b4", "msg_b", "ses_a", &part::text("done"));
    db.close();
    opencode.restart();
    assert_eq!(opencode.sessions()[0]["id"], "ses_a");
    let messages = opencode.messages("ses_a");
    assert_eq!(messages[1]["parts"].as_array().unwrap().len(), 4);
    opencode.say("ses_a", "go on [[text=30]]");
    let request = opencode.provider().last_with("go on").unwrap();
    assert_eq!(request["messages"][1]["content"], "made by hand");
}
