use std::cell::Cell;
use std::path::{Path, PathBuf};

use headwater_model::SessionId;
use headwater_testkit::fixture::{Fixture, Layout, NOW, PROJECT, Session, message, part, v2};
use tempfile::TempDir;

use super::*;
use crate::ReadDatabase;
use crate::search::{EXCERPT_CHARS_MAX, Field, Hit, Query};

const KEY: CursorKey = CursorKey::new([3; 32]);

fn built(layout: Layout, rows: impl FnOnce(&Fixture)) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let db = Fixture::create(folder.path().join("opencode.db"), layout);
    rows(&db);
    let path = db.close();
    (folder, path)
}

fn session(id: &str) -> Scope {
    Scope::Session(SessionId::new(id).unwrap())
}

fn workspace(directory: &str) -> Scope {
    Scope::Workspace(Workspace { directory: directory.into(), project: PROJECT.into(), workspace: None })
}

fn text(query: &str) -> Request {
    Request::Search { query: Box::new(Query::new(query).unwrap()), with_technical: false, with_events: false }
}

fn stopped() -> Duration {
    Duration::ZERO
}

fn one(path: &Path, scope: &Scope, request: &Request, cursor: Option<&str>) -> Page {
    let database = ReadDatabase::open(path).unwrap();
    page(&database, scope, request, cursor, &KEY, &stopped).unwrap()
}

fn pages(path: &Path, scope: &Scope, request: &Request) -> Vec<Page> {
    let mut all = vec![one(path, scope, request, None)];
    while let Some(cursor) = all.last().unwrap().next.clone() {
        all.push(one(path, scope, request, Some(&cursor)));
        assert!(all.len() < 1000, "the traversal ends");
    }
    all
}

fn hits(pages: Vec<Page>) -> Vec<Hit> {
    let hits = pages.into_iter().map(|page| match page.content {
        PageContent::Search(hits) => hits,
        PageContent::Stats(_) | PageContent::Prune(_) => panic!("another kind of page"),
    });
    hits.flatten().collect()
}

fn messages(hits: &[Hit]) -> Vec<&str> {
    hits.iter().filter_map(|hit| hit.message.as_deref()).collect()
}

#[test]
fn a_session_comes_in_pages_of_32_messages_in_its_order() {
    let (_folder, path) = built(Layout::V1, |db| {
        db.session(&Session::named("ses_a"));
        db.session(&Session::named("ses_b"));
        for n in 0..70 {
            let id = format!("msg_{n:02}");
            let session = if n == 40 { "ses_b" } else { "ses_a" };
            db.message(&id, session, NOW - n, &message::user(NOW - n));
            db.part(&format!("prt_{n:02}a"), &id, session, &part::text("a needle, one needle"));
            db.part(&format!("prt_{n:02}b"), &id, session, &part::text("needle"));
        }
    });
    let all = pages(&path, &session("ses_a"), &text("NEEDLE"));
    assert_eq!(all.iter().map(|page| page.scanned).collect::<Vec<_>>(), [32, 32, 5]);
    let hits = hits(all);
    let expected: Vec<String> = (0..70).rev().filter(|&n| n != 40).map(|n| format!("msg_{n:02}")).collect();
    assert_eq!(messages(&hits), expected);
    assert!(hits.iter().all(|hit| hit.occurrences == 3 && hit.part_index == Some(0)));
    assert!(pages(&path, &session("ses_none"), &text("needle")).iter().all(|page| page.scanned == 0));
}

#[test]
fn technical_parts_and_event_copies_are_found_when_asked_for() {
    let (_folder, path) = built(Layout::V1, |db| {
        db.session(&Session::named("ses_a"));
        db.assistant("msg_a", "ses_a");
        db.part(
            "prt_1",
            "msg_a",
            "ses_a",
            &part::bash("call_1", &format!("{}needle{}", "x".repeat(999), "é".repeat(999))),
        );
        db.part_event("ses_a", "msg_a", "prt_1", &part::text("an old needle"));
    });
    assert_eq!(hits(pages(&path, &session("ses_a"), &text("needle"))), []);
    let query = Box::new(Query::new("needle").unwrap());
    let request = Request::Search { query, with_technical: true, with_events: true };
    let found = hits(pages(&path, &session("ses_a"), &request));
    assert_eq!(found.iter().map(|hit| hit.field).collect::<Vec<_>>(), [Field::ToolOutput, Field::Text]);
    assert_eq!(found[0].excerpt.text.chars().count(), EXCERPT_CHARS_MAX);
    assert_eq!(found[1].event.as_deref(), Some("evt_ses_a_000000"));
}

#[test]
fn a_cursor_belongs_to_one_traversal() {
    let (_folder, path) = built(Layout::V2, |db| {
        for id in ["ses_a", "ses_b"] {
            db.session_v2(&Session::named(id));
            for n in 0..40 {
                db.session_message(&format!("{id}_{n:02}"), id, "user", n, NOW, &v2::user("needle"));
            }
        }
    });
    let database = ReadDatabase::open(&path).unwrap();
    let cursor = one(&path, &session("ses_a"), &text("needle"), None).next.unwrap();
    let technical = Request::Search {
        query: Box::new(Query::new("needle").unwrap()),
        with_technical: true,
        with_events: false,
    };
    let foreign = [
        (session("ses_b"), text("needle")),
        (workspace("/home/user/a"), text("needle")),
        (session("ses_a"), text("needl")),
        (session("ses_a"), technical),
        (session("ses_a"), Request::Stats),
    ];
    for (scope, request) in foreign {
        let refused = page(&database, &scope, &request, Some(&cursor), &KEY, &stopped);
        assert!(matches!(refused, Err(HistoryError::Cursor(InvalidCursor))), "{scope:?}");
    }
    let other_process = CursorKey::new([4; 32]);
    let refused =
        page(&database, &session("ses_a"), &text("needle"), Some(&cursor), &other_process, &stopped);
    assert!(matches!(refused, Err(HistoryError::Cursor(InvalidCursor))));
    // The same folded text is the same query.
    assert_eq!(one(&path, &session("ses_a"), &text("NEEDLE"), Some(&cursor)).scanned, 8);
}

#[test]
fn a_running_generation_does_not_extend_a_traversal() {
    let (_folder, path) = built(Layout::Both, |db| {
        db.session(&Session::named("ses_a"));
        db.session_v2(&Session::named("ses_a"));
        for n in 0..40 {
            db.session_message(&format!("msg_{n:02}"), "ses_a", "user", n, NOW, &v2::user("needle"));
        }
        db.message("msg_40", "ses_a", NOW, &message::user(NOW));
        db.part("prt_40", "msg_40", "ses_a", &part::text("needle"));
        db.message("msg_39", "ses_a", NOW, &message::user(NOW));
        db.part("prt_39", "msg_39", "ses_a", &part::text("needle, the frozen copy"));
    });
    let first = one(&path, &session("ses_a"), &text("needle"), None);
    let db = Fixture::reopen(&path);
    db.session_message("msg_later", "ses_a", "user", 99, NOW, &v2::user("needle"));
    db.message("msg_later_1x", "ses_a", NOW + 1, &message::user(NOW));
    db.close();
    let second = one(&path, &session("ses_a"), &text("needle"), first.next.as_deref());
    assert_eq!(second.next, None);
    let found = hits(vec![first, second]);
    let expected: Vec<String> = (0..41).map(|n| format!("msg_{n:02}")).collect();
    assert_eq!(messages(&found), expected);
}

#[test]
fn a_page_ends_when_its_time_is_over() {
    let (_folder, path) = built(Layout::V2, |db| {
        db.session_v2(&Session::named("ses_a"));
        for n in 0..20 {
            db.session_message(&format!("msg_{n:02}"), "ses_a", "user", n, NOW, &v2::user("needle"));
        }
    });
    let database = ReadDatabase::open(&path).unwrap();
    // Every look at the clock takes 9 ms: the first one begins, the fifth after it is beyond 40 ms.
    let now = Cell::new(Duration::ZERO);
    let clock = || {
        now.set(now.get() + Duration::from_millis(9));
        now.get()
    };
    let first = page(&database, &session("ses_a"), &text("needle"), None, &KEY, &clock).unwrap();
    // One look belongs to the step into the session.
    assert_eq!(first.scanned, 4);
    let late = || {
        now.set(now.get() + Duration::from_secs(9));
        now.get()
    };
    let second =
        page(&database, &session("ses_a"), &text("needle"), first.next.as_deref(), &KEY, &late).unwrap();
    assert_eq!(second.scanned, 1, "every page goes on");
}

#[test]
fn a_workspace_is_a_directory_tree_of_one_project() {
    let (_folder, path) = built(Layout::Both, |db| {
        // In an upgraded file the messages of 2.x still refer to 1.x sessions.
        db.sql("PRAGMA foreign_keys = off");
        db.project("global", "/");
        db.project("prj_other", "/x");
        let rows = [
            ("ses_01", "/a/b", PROJECT, true),
            ("ses_02", "/a/b/c", PROJECT, true),
            ("ses_03", "/a/bc", PROJECT, false),
            ("ses_04", "/a", PROJECT, false),
            ("ses_05", "/clone/b", PROJECT, false),
            ("ses_06", "/a/b", "prj_other", false),
            ("ses_07", "/a/b/d", "global", true),
            ("ses_08", "/home/user", "global", false),
            ("ses_09", "/A/B", PROJECT, false),
            ("ses_10", "/a/b%", PROJECT, false),
        ];
        for (id, directory, project, _) in rows {
            let session = Session { directory, project, ..Session::named(id) };
            if id < "ses_05" {
                db.session(&session);
            } else {
                db.session_v2(&session);
            }
            db.session_message(&format!("msg_{id}"), id, "user", 1, NOW, &v2::user("needle"));
        }
        // In another workspace of the same directory, and moved away in the storage that is in use.
        db.session_v2(&Session { directory: "/a/b", ..Session::named("ses_11") });
        db.sql("UPDATE session_v2 SET workspace_id = 'wrk_1' WHERE id = 'ses_11'");
        db.session_message("msg_ses_11", "ses_11", "user", 1, NOW, &v2::user("needle"));
        db.session(&Session { directory: "/a/b", ..Session::named("ses_12") });
        db.session_v2(&Session { directory: "/elsewhere", ..Session::named("ses_12") });
        db.session_message("msg_ses_12", "ses_12", "user", 1, NOW, &v2::user("needle"));
        let wanted: Vec<&str> = rows.iter().filter(|row| row.3).map(|row| row.0).collect();
        assert_eq!(wanted, ["ses_01", "ses_02", "ses_07"]);
    });
    for directory in ["/a/b", "/a/b/"] {
        let found = hits(pages(&path, &workspace(directory), &text("needle")));
        assert_eq!(messages(&found), ["msg_ses_01", "msg_ses_02", "msg_ses_07"], "{directory}");
    }
    let identity =
        Workspace { directory: "/a/b".into(), project: PROJECT.into(), workspace: Some("wrk_1".into()) };
    let found = hits(pages(&path, &Scope::Workspace(identity), &text("needle")));
    assert_eq!(messages(&found), ["msg_ses_07", "msg_ses_11"]);
}

#[test]
fn rows_that_cannot_be_read_are_counted_and_passed_over() {
    let (_folder, path) = built(Layout::Both, |db| {
        db.session(&Session::named("ses_a"));
        db.session_v2(&Session::named("ses_b"));
        db.user("msg_1", "ses_a");
        db.part("prt_1", "msg_1", "ses_a", "{\"type\":\"te");
        db.part("prt_2", "msg_1", "ses_a", &part::text("needle"));
        db.user("msg_2", "ses_a");
        for n in 0..3 {
            db.part(&format!("prt_2{n}"), "msg_2", "ses_a", &part::text(&"needle ".repeat(1 << 20)));
        }
        db.session_message("msg_3", "ses_b", "user", 1, NOW, "1");
        db.sql("UPDATE session_message SET data = x'00ff' WHERE id = 'msg_3'");
        db.session_message("msg_4", "ses_b", "user", 2, NOW, &v2::user("needle"));
    });
    let first = one(&path, &session("ses_a"), &text("needle"), None);
    assert_eq!((first.scanned, first.skipped), (2, Skipped { unreadable: 1, oversized: 1 }));
    assert_eq!(messages(&hits(vec![first])), ["msg_1"]);
    let second = one(&path, &session("ses_b"), &text("needle"), None);
    assert_eq!(second.skipped, Skipped { unreadable: 1, oversized: 0 });
    assert_eq!(messages(&hits(vec![second])), ["msg_4"]);
}

#[test]
fn planning_names_what_a_prune_needs() {
    let (_folder, path) = built(Layout::Both, |db| {
        db.session(&Session::named("ses_a"));
        db.user("msg_0", "ses_a");
        db.part("prt_0", "msg_0", "ses_a", &part::text("question"));
        db.assistant("msg_1", "ses_a");
        for (id, data) in
            [("prt_1", part::reasoning("hm")), ("prt_2", part::bash("c", "out")), ("prt_3", part::text("x"))]
        {
            db.part(id, "msg_1", "ses_a", &data);
        }
        db.session_v2(&Session::named("ses_b"));
        let content = [v2::tool("c1", "shell", "out")];
        db.session_message("msg_2", "ses_b", "assistant", 1, NOW, &v2::assistant(&content));
        db.session_message("msg_3", "ses_b", "assistant", 2, NOW, &v2::assistant_unfinished(&content));
    });
    let PageContent::Prune(found) = one(&path, &session("ses_a"), &Request::Prune, None).content else {
        panic!()
    };
    let [found] = found.try_into().unwrap();
    assert_eq!(
        (found.message.as_str(), found.indexes.as_slice(), found.is_emptied),
        ("msg_1", &[0, 1][..], false)
    );
    let database = ReadDatabase::open(&path).unwrap();
    let (id, message) = (SessionId::new("ses_a").unwrap(), headwater_model::MessageId::new("msg_1").unwrap());
    let preview = crate::prune::preview_message(database.connection(), database.schema(), &id, &message);
    assert_eq!(found.revision, preview.unwrap().unwrap().revision);
    let PageContent::Prune(found) = one(&path, &session("ses_b"), &Request::Prune, None).content else {
        panic!()
    };
    let [found] = found.try_into().unwrap();
    assert_eq!((found.message.as_str(), found.is_emptied), ("msg_2", true));
    let PageContent::Stats(totals) = one(&path, &session("ses_a"), &Request::Stats, None).content else {
        panic!()
    };
    let shown: Vec<_> = totals
        .iter()
        .map(|total| (total.kind.as_str(), total.tool.as_deref(), total.items, total.removable_items))
        .collect();
    assert_eq!(shown, [("reasoning", None, 1, 1), ("text", None, 2, 0), ("tool", Some("bash"), 1, 1)]);
}
