//! Whole searches on small databases.

use std::ops::ControlFlow;
use std::path::Path;

use headwater_testkit::cases;
use headwater_testkit::fixture::{Fixture, Layout, NOW, Session, message, part, quote, v2};
use tempfile::TempDir;

use super::*;
use crate::observer::Unobserved;

mod counts;
mod memory;
mod oracle;
mod reading;
mod stopping;

fn technical() -> SearchOptions {
    SearchOptions { with_technical: true, ..SearchOptions::default() }
}

fn everything() -> SearchOptions {
    SearchOptions { with_technical: true, with_events: true, ..SearchOptions::default() }
}

fn search(path: &Path, query: &str, options: &SearchOptions) -> (Vec<Hit>, SearchTotals) {
    let query = Query::new(query).unwrap();
    ReadDatabase::with(path, |database| {
        let mut hits = Vec::new();
        let totals = run(database, &query, options, &Unobserved, &mut |hit| {
            hits.push(hit);
            ControlFlow::Continue(())
        })?;
        Ok::<_, ReadError>((hits, totals))
    })
    .unwrap()
}

fn built(layout: Layout, rows: impl FnOnce(&Fixture)) -> (TempDir, std::path::PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let db = Fixture::create(folder.path().join("opencode.db"), layout);
    rows(&db);
    let path = db.close();
    (folder, path)
}

#[test]
fn scripts_without_spaces_and_special_characters_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let case = cases::scripts(folder.path());
    for query in &case.queries {
        let options = SearchOptions { with_technical: query.technical, ..SearchOptions::default() };
        let (hits, _) = search(&case.path, query.text, &options);
        let mut found: Vec<&str> = hits.iter().map(|hit| hit.session.as_str()).collect();
        found.sort_unstable();
        found.dedup();
        assert_eq!(found, query.finds, "{}", query.text);
        for hit in hits {
            assert_eq!(hit.is_archived, hit.session == case.archived, "{}", query.text);
        }
    }
}

#[test]
fn a_database_alone_in_a_read_only_folder_is_searched_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let case = cases::without_side_files(folder.path());
    let (hits, _) = search(&case.path, "MAIN FILE", &SearchOptions::default());
    assert_eq!(hits.len(), 1);
    let names: Vec<_> =
        case.path.parent().unwrap().read_dir().unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, case.files);
    case.unlock();
    let db = Fixture::reopen(&case.path);
    db.part("prt_b", "msg_a", "ses_a", &part::text("only in the log"));
    let path = db.close_leaving_log();
    assert_eq!(search(&path, "in the LOG", &SearchOptions::default()).0.len(), 1);
}

#[test]
fn hits_of_1x_name_their_place() {
    let (_folder, path) = built(Layout::V1, |db| {
        db.session(&Session { title: "a Needle in a title", ..Session::named("ses_a") });
        db.message("msg_u", "ses_a", NOW, &message::user(NOW));
        db.part("prt_1", "msg_u", "ses_a", &part::text("no such thing"));
        db.part("prt_2", "msg_u", "ses_a", &part::text("needle needle"));
        db.message("msg_c", "ses_a", NOW + 1, &message::assistant_summary("msg_u", NOW + 1));
        db.part_at("prt_3", "msg_c", "ses_a", NOW + 2, &part::text("summary: needle"));
        db.assistant("msg_a", "ses_a");
        db.part("prt_4", "msg_a", "ses_a", &part::reasoning_with_state("think of a needle", "needle"));
        db.part("prt_5", "msg_a", "ses_a", &part::bash_twice("call_1", "a needle"));
        db.message("msg_e", "ses_a", NOW, &message::assistant_failed("msg_u", NOW, "needle not found"));
        db.message("msg_d", "ses_a", NOW, &message::user_with_diffs(NOW, &[("src/needle.rs", "+needle")]));
    });
    let options = SearchOptions { oldest_first: true, ..technical() };
    let (hits, totals) = search(&path, "NEEDLE", &options);
    let shown: Vec<_> = hits
        .iter()
        .map(|hit| {
            (
                hit.part.as_deref().or(hit.message.as_deref()),
                hit.part_index,
                hit.field,
                hit.origin,
                hit.occurrences,
            )
        })
        .collect();
    let expected = [
        (None, None, Field::Title, Origin::Other, 1),
        (Some("msg_e"), None, Field::Error, Origin::Assistant, 1),
        (Some("msg_d"), None, Field::Diff, Origin::User, 2),
        (Some("prt_2"), Some(1), Field::Text, Origin::User, 2),
        (Some("prt_3"), Some(0), Field::Text, Origin::Compaction, 1),
        (Some("prt_4"), Some(0), Field::Reasoning, Origin::Assistant, 1),
        (Some("prt_5"), Some(1), Field::ToolOutput, Origin::Assistant, 1),
    ];
    assert_eq!(shown, expected);
    assert_eq!((totals.hits, totals.rows_matched, totals.rows_unreadable), (7, 7, 0));
    assert_eq!(hits[4].time.map(headwater_model::UnixMillis::get), Some(NOW + 2));
    assert_eq!(hits[6].tool.as_deref(), Some("bash"));
    let (plain, _) =
        search(&path, "needle", &SearchOptions { oldest_first: true, ..SearchOptions::default() });
    assert!(plain.iter().all(|hit| !hit.field.is_technical()));
    assert_eq!(plain.len(), 5);
    let (mut latest_first, _) = search(&path, "needle", &technical());
    latest_first[1..3].reverse();
    latest_first[3..].reverse();
    assert_eq!(latest_first, hits, "the same hits, each table backwards");
}

#[test]
fn hits_of_2x_name_their_place() {
    let (_folder, path) = built(Layout::V2, |db| {
        db.session_v2(&Session { archived: Some(NOW), ..Session::named("ses_a") });
        let content = [
            v2::text("no"),
            v2::reasoning("NEEDLE"),
            v2::tool("c1", "shell", "a needle"),
            v2::text("needle"),
        ];
        for (seq, kind, data) in [
            (1, "user", v2::user("where is the needle")),
            (2, "assistant", v2::assistant(&content)),
            (3, "system", v2::system("needle moved")),
            (4, "shell", v2::shell("find needle", "needle\nneedle")),
            (5, "compaction", v2::compaction("completed", "we sought a needle")),
            (6, "idle", v2::idle("needle")),
            (7, "hologram", "{\"note\":\"needle\",\"id\":\"needle\"}".to_owned()),
        ] {
            db.session_message(&format!("msg_{seq}"), "ses_a", kind, seq, NOW, &data);
        }
    });
    let options = SearchOptions { oldest_first: true, ..technical() };
    let (hits, _) = search(&path, "needle", &options);
    let shown: Vec<_> =
        hits.iter().map(|hit| (hit.message.as_deref(), hit.part_index, hit.field, hit.origin)).collect();
    let expected = [
        (Some("msg_1"), None, Field::Text, Origin::User),
        (Some("msg_2"), Some(1), Field::Reasoning, Origin::Assistant),
        (Some("msg_2"), Some(2), Field::ToolOutput, Origin::Assistant),
        (Some("msg_2"), Some(3), Field::Text, Origin::Assistant),
        (Some("msg_3"), None, Field::System, Origin::System),
        (Some("msg_4"), None, Field::Shell, Origin::Shell),
        (Some("msg_5"), None, Field::Compaction, Origin::Compaction),
        (Some("msg_7"), None, Field::Other, Origin::Other),
    ];
    assert_eq!(shown, expected);
    assert!(hits.iter().all(|hit| hit.is_archived && hit.title.as_deref() == Some("ses_a")));
    assert_eq!(hits[5].occurrences, 3);
}

#[test]
fn copies_in_the_event_log_are_searched_when_asked_for() {
    let (_folder, path) = built(Layout::V1, |db| {
        db.session(&Session::named("ses_a"));
        db.user("msg_u", "ses_a");
        db.part("prt_1", "msg_u", "ses_a", &part::text("needle"));
        db.part_event("ses_a", "msg_u", "prt_1", &part::text("needle"));
        db.message_event("ses_a", "msg_s", &message::assistant_failed("msg_u", NOW, "needle"));
        db.event(
            "ses_lost",
            "session.text.ended.1",
            r#"{"sessionID":"needle","text":"needle","kept":["needle"]}"#,
        );
    });
    assert_eq!(search(&path, "needle", &technical()).0.len(), 1);
    let (hits, _) = search(&path, "needle", &SearchOptions { oldest_first: true, ..everything() });
    let shown: Vec<_> = hits[1..]
        .iter()
        .map(|hit| (hit.session.as_str(), hit.message.as_deref(), hit.part.as_deref(), hit.field, hit.origin))
        .collect();
    let expected = [
        ("ses_a", Some("msg_u"), Some("prt_1"), Field::Text, Origin::User),
        ("ses_a", Some("msg_s"), None, Field::Error, Origin::Assistant),
        ("ses_lost", None, None, Field::Text, Origin::Other),
        ("ses_lost", None, None, Field::Other, Origin::Other),
    ];
    assert_eq!(shown, expected);
    assert_eq!(hits[1].event.as_deref(), Some("evt_ses_a_000000"));
    assert_eq!(hits[3].title, None, "the session is gone");
}

#[test]
fn a_migrated_message_is_reported_once_and_a_differing_copy_is_not_hidden() {
    let (_folder, path) = built(Layout::Both, |db| {
        for title in ["old needle", "new needle"] {
            let session = Session { title, ..Session::named("ses_a") };
            if title == "old needle" { db.session(&session) } else { db.session_v2(&session) }
        }
        for (id, old, new) in
            [("msg_1", "needle", "needle"), ("msg_2", "needle, later", "other"), ("msg_3", "other", "needle")]
        {
            db.user(id, "ses_a");
            db.part(&id.replace("msg", "prt"), id, "ses_a", &part::text(old));
            let seq = i64::from(id.as_bytes()[4]);
            db.session_message(id, "ses_a", "user", seq, NOW, &v2::user(new));
        }
    });
    let (hits, totals) = search(&path, "needle", &SearchOptions { oldest_first: true, ..technical() });
    let shown: Vec<_> = hits.iter().map(|hit| (hit.source, hit.message.as_deref())).collect();
    let expected = [
        (Source::Session, None),
        (Source::SessionMessage, Some("msg_1")),
        (Source::SessionMessage, Some("msg_3")),
        (Source::Part, Some("msg_2")),
    ];
    assert_eq!(shown, expected);
    assert_eq!(hits[0].excerpt.text, "new needle");
    assert_eq!((totals.rows_duplicate, totals.rows_matched), (1, 4));
}

#[test]
fn rows_that_cannot_be_decoded_are_counted_and_passed_over() {
    let (_folder, path) = built(Layout::V1, |db| {
        db.session(&Session::named("ses_a"));
        db.user("msg_a", "ses_a");
        let rows = [
            ("prt_1", quote("needle in a bare string")),
            ("prt_2", "{\"type\":\"text\",\"text\":\"needle, cut o".to_owned()),
            ("prt_3", "needle".to_owned()),
            ("prt_4", part::text("a good needle")),
        ];
        for (id, data) in rows {
            db.part(id, "msg_a", "ses_a", &data);
        }
        db.sql(
            "INSERT INTO part SELECT 'prt_5', message_id, session_id, 1, 1, CAST(data AS BLOB) FROM part WHERE id = 'prt_4';
             INSERT INTO part SELECT 'prt_6', message_id, session_id, 1, 1, \
               CAST(replace(CAST(data AS BLOB), 'good', x'ff80') AS TEXT) FROM part WHERE id = 'prt_4';
             INSERT INTO part SELECT 'prt_7', message_id, session_id, 1, 1, '' FROM part WHERE id = 'prt_4';",
        );
    });
    let (hits, totals) = search(&path, "NEEDLE", &SearchOptions { oldest_first: true, ..technical() });
    let found: Vec<_> = hits.iter().filter_map(|hit| hit.part.as_deref()).collect();
    assert_eq!(found, ["prt_1", "prt_4", "prt_5", "prt_6"]);
    assert_eq!(totals.rows_unreadable, 2);
    assert_eq!(hits[3].excerpt.text, "a \u{fffd}\u{fffd} needle");
}

#[test]
fn sparse_and_extreme_rowids_are_all_searched() {
    let (_folder, path) = built(Layout::V1, |db| {
        db.session(&Session::named("ses_a"));
        db.user("msg_a", "ses_a");
        for (n, rowid) in
            [i64::MIN, -700, -1, 0, 1, 511, 512, 513, 1 << 40, i64::MAX - 1, i64::MAX].into_iter().enumerate()
        {
            db.part(&format!("prt_{n:02}"), "msg_a", "ses_a", &part::text("needle"));
            db.sql(&format!("UPDATE part SET rowid = {rowid} WHERE id = 'prt_{n:02}'"));
        }
    });
    for oldest_first in [true, false] {
        let (hits, totals) = search(&path, "needle", &SearchOptions { oldest_first, ..technical() });
        let mut found: Vec<_> = hits.iter().filter_map(|hit| hit.part.clone()).collect();
        if !oldest_first {
            found.reverse();
        }
        assert_eq!(found, (0..11).map(|n| format!("prt_{n:02}")).collect::<Vec<_>>());
        assert_eq!(totals.rows_scanned, 13);
    }
}

#[test]
fn rows_out_of_their_order_are_damage() {
    let (_folder, path) = built(Layout::V1, |db| {
        db.session(&Session::named("ses_a"));
        db.user("msg_a", "ses_a");
        for n in 0..4 {
            db.part(&format!("prt_{n}"), "msg_a", "ses_a", &part::text("a needle"));
        }
        db.sql("PRAGMA journal_mode = DELETE");
    });
    let mut bytes = std::fs::read(&path).unwrap();
    let is_of_part =
        |page: &[u8]| page[0] == 13 && page.windows(8).filter(|text| text == b"a needle").count() == 4;
    let page = bytes.chunks_exact_mut(4096).find(|page| is_of_part(page)).unwrap();
    // The second row and the third change places.
    for at in [10, 11] {
        page.swap(at, at + 2);
    }
    std::fs::write(&path, bytes).unwrap();
    let found = ReadDatabase::with(&path, |database| {
        run(database, &Query::new("needle").unwrap(), &technical(), &Unobserved, &mut |_| {
            ControlFlow::Continue(())
        })
    });
    assert!(matches!(found, Err(ReadError::Damaged(_))), "{found:?}");
}
