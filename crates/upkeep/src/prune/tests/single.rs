use headwater_prune::{KeptReason, Layout as ReceiptLayout};
use headwater_testkit::cases;

use super::*;

#[test]
fn a_preview_names_every_item_and_reads_only() {
    for (storage, layout) in STORAGES {
        let folder = tempfile::tempdir().unwrap();
        let path = build(folder.path(), storage, layout);
        let before = std::fs::read(&path).unwrap();
        let preview = preview(&path);
        let items: Vec<_> = preview
            .items
            .iter()
            .map(|item| (item.index, item.kind.as_str(), item.tool.as_deref(), item.removable))
            .collect();
        let expected = [
            (0, "reasoning", None, true),
            (1, "tool", Some("bash"), true),
            (2, "text", None, false),
            (3, "tool", Some("bash"), true),
        ];
        assert_eq!(items, expected, "{storage:?}");
        assert_eq!(preview.blocked, None);
        assert_eq!(preview.place.storage, storage);
        assert!(preview.items[1].bytes.get() > 9_900);
        assert_eq!(std::fs::read(&path).unwrap(), before);
        assert!(!serde_json::to_string(&preview).unwrap().contains("CANARY"));
    }
}

#[test]
fn exactly_the_selected_items_go_and_the_receipt_says_so() {
    for (storage, layout) in STORAGES {
        let folder = tempfile::tempdir().unwrap();
        let path = build(folder.path(), storage, layout);
        let before = preview(&path);
        let whole = dump(&path);
        let receipt = receipt(prune(&path, &request(&path, &[0, 3])));
        assert_eq!((receipt.removed.tools, receipt.removed.reasoning), (1, 1));
        let expected = if storage == Storage::V1 { ReceiptLayout::V1 } else { ReceiptLayout::V2 };
        assert_eq!(receipt.layout, expected);
        assert_eq!(receipt.before, before.revision);
        let after = preview(&path);
        assert_eq!(receipt.after, after.revision, "{storage:?}");
        let kinds: Vec<_> = after.items.iter().map(|item| item.kind.as_str()).collect();
        assert_eq!(kinds, ["tool", "text"]);
        let expected = match storage {
            Storage::V1 => without_lines(&whole, &["'prt_0'", "'prt_3'"]),
            Storage::V2 | Storage::V2OnV1Session => {
                let gone = [
                    v2::reasoning("CANARY thought") + ",",
                    ",".to_owned() + &v2::tool("call_3", "bash", "CANARY more"),
                ];
                gone.iter().fold(whole, |text, item| {
                    assert!(text.contains(item.as_str()));
                    text.replace(item.as_str(), "")
                })
            }
        };
        assert_eq!(dump(&path), expected, "{storage:?}");
        assert_eq!(receipts(&path), 1);
    }
}

fn without_lines(text: &str, starts: &[&str]) -> String {
    let stays = |line: &str| !starts.iter().any(|start| line.starts_with(start));
    text.split_inclusive('\n').filter(|line| stays(line)).collect()
}

#[test]
fn the_same_request_again_answers_with_the_same_receipt_and_changes_nothing() {
    for (storage, layout) in STORAGES {
        let folder = tempfile::tempdir().unwrap();
        let path = build(folder.path(), storage, layout);
        let request = request(&path, &[1]);
        let first = receipt(prune(&path, &request));
        let after = dump(&path);
        assert_eq!(receipt(prune(&path, &request)), first, "{storage:?}");
        // Also where nothing could be removed at this moment.
        Fixture::reopen(&path).sql(&format!("UPDATE {} SET revert = '{{}}'", storage.session_table()));
        assert_eq!(receipt(prune(&path, &request)), first, "{storage:?}");
        Fixture::reopen(&path).sql(&format!("UPDATE {} SET revert = NULL", storage.session_table()));
        assert_eq!(dump(&path), after);
        assert_eq!(receipts(&path), 1);
    }
}

#[test]
fn a_receipt_is_superseded_when_the_content_is_back() {
    for (storage, layout) in STORAGES {
        let folder = tempfile::tempdir().unwrap();
        let path = build(folder.path(), storage, layout);
        let request = request(&path, &[1]);
        let table = if storage == Storage::V1 { "part" } else { "session_message" };
        let db = Fixture::reopen(&path);
        db.sql(&format!("CREATE TEMP TABLE kept AS SELECT * FROM {table}"));
        let first = receipt(prune(&path, &request));
        let pruned = dump(&path);
        db.sql(&format!("DELETE FROM {table}; INSERT INTO {table} SELECT * FROM kept"));
        drop(db);
        let second = receipt(prune(&path, &request));
        assert_eq!((second.before, second.after), (first.before, first.after));
        assert_eq!(dump(&path), pruned, "{storage:?}");
        assert_eq!(receipts(&path), 1);
    }
}

#[test]
fn changed_content_is_a_conflict_and_nothing_changes() {
    for (storage, layout) in STORAGES {
        let folder = tempfile::tempdir().unwrap();
        let path = build(folder.path(), storage, layout);
        let request = request(&path, &[1]);
        let change = match storage {
            Storage::V1 => "UPDATE part SET data = replace(data, 'answer', 'ANSWER') WHERE id = 'prt_2'",
            Storage::V2 | Storage::V2OnV1Session => {
                "UPDATE session_message SET data = replace(data, 'answer', 'ANSWER') WHERE id = 'msg_a'"
            }
        };
        Fixture::reopen(&path).sql(change);
        let before = dump(&path);
        assert_eq!(blocked(prune(&path, &request)), ("conflict".to_owned(), Why::Kept(KeptReason::Changed)));
        assert_eq!(dump(&path), before);
        assert_eq!(receipts(&path), 0);
    }
}

/// Changes the database when a step is reached.
struct At<'a> {
    step: Step,
    path: &'a Path,
    sql: String,
}

impl Observer for At<'_> {
    fn reached(&self, step: &'static str) {
        if step == self.step.name() {
            Fixture::reopen(self.path).sql(&self.sql);
        }
    }
}

#[test]
fn a_turn_that_begins_between_the_question_and_the_lock_refuses() {
    let turn = "{\"role\":\"assistant\",\"time\":{\"created\":1}}";
    for (storage, layout) in STORAGES {
        let sql = match storage {
            Storage::V1 => {
                format!("INSERT INTO message VALUES ('msg_z', 'ses_a', {NOW} + 1, {NOW} + 1, '{turn}')")
            }
            Storage::V2 if layout == Layout::V2 => "UPDATE session_v2 SET time_suspended = 7".to_owned(),
            Storage::V2 | Storage::V2OnV1Session => format!(
                "INSERT INTO session_message VALUES ('msg_z', 'ses_a', 'assistant', 9, {NOW} + 1, {NOW} + 1, '{turn}')"
            ),
        };
        for step in [Step::Prepared, Step::Asked] {
            let folder = tempfile::tempdir().unwrap();
            let path = build(folder.path(), storage, layout);
            let request = request(&path, &[1]);
            let at = At { step, path: &path, sql: sql.clone() };
            let expected = if layout == Layout::V2 { KeptReason::Executing } else { KeptReason::Interrupted };
            let answer = blocked(prune_observed(&path, &request, &at));
            assert_eq!(
                answer,
                ("maintenance_required".to_owned(), Why::Kept(expected)),
                "{storage:?} {step:?}"
            );
            assert_eq!(preview(&path).revision, request.revision);
            assert_eq!(receipts(&path), 0, "{storage:?}");
        }
    }
}

#[test]
fn content_that_changes_between_the_preparation_and_the_lock_is_a_conflict() {
    for (storage, layout) in STORAGES {
        let folder = tempfile::tempdir().unwrap();
        let path = build(folder.path(), storage, layout);
        let request = request(&path, &[1]);
        let table = if storage == Storage::V1 { "part" } else { "session_message" };
        let sql = format!("UPDATE {table} SET data = replace(data, 'answer', 'ANSWER')");
        let at = At { step: Step::Asked, path: &path, sql };
        let answer = blocked(prune_observed(&path, &request, &at));
        assert_eq!(answer, ("conflict".to_owned(), Why::Kept(KeptReason::Changed)), "{storage:?}");
        assert_eq!(receipts(&path), 0);
        assert!(dump(&path).contains("ANSWER"));
        assert_eq!(preview(&path).items.len(), 4);
    }
}

#[test]
fn what_is_never_removed_is_refused() {
    for (storage, layout) in STORAGES {
        let folder = tempfile::tempdir().unwrap();
        let path = build(folder.path(), storage, layout);
        let before = dump(&path);
        for index in [2, 4] {
            let answer = blocked(prune(&path, &request(&path, &[1, index])));
            assert_eq!(answer, ("not_deletable".to_owned(), Why::NoSuchItem), "{storage:?} {index}");
        }
        assert_eq!(dump(&path), before);

        let table = if storage == Storage::V1 { "part" } else { "session_message" };
        let sets = [
            (table, "'status':'completed'", "'status':'running'", KeptReason::ToolUnfinished),
            (table, "'type':'text'", "'type':'hologram'", KeptReason::UnknownKind),
        ];
        for (table, from, to, reason) in sets {
            let folder = tempfile::tempdir().unwrap();
            let path = build(folder.path(), storage, layout);
            let (from, to) = (from.replace('\'', "\""), to.replace('\'', "\""));
            let change = format!("UPDATE {table} SET data = replace(data, '{from}', '{to}')");
            Fixture::reopen(&path).sql(&change);
            let before = dump(&path);
            assert!(before.contains(&to), "{storage:?}");
            assert_eq!(preview(&path).blocked.map(|blocked| blocked.why), Some(Why::Kept(reason)));
            let answer = blocked(prune(&path, &request(&path, &[0])));
            assert_eq!(answer, ("not_deletable".to_owned(), Why::Kept(reason)), "{storage:?} {to}");
            assert_eq!(dump(&path), before);
        }
    }
}

#[test]
fn a_message_of_more_than_16_mib_is_closed() {
    for (storage, layout) in STORAGES {
        let folder = tempfile::tempdir().unwrap();
        let path = build(folder.path(), storage, layout);
        let request = request(&path, &[1]);
        let table = if storage == Storage::V1 { "part" } else { "session_message" };
        let big = format!("UPDATE {table} SET data = replace(data, 'CANARY answer', hex(zeroblob(8400000)))");
        Fixture::reopen(&path).sql(&big);
        let answer = blocked(prune(&path, &request));
        assert_eq!(answer, ("not_deletable".to_owned(), Why::Kept(KeptReason::Oversized)), "{storage:?}");
    }
}

#[test]
fn a_busy_database_is_an_answer() {
    for (storage, layout) in STORAGES {
        let folder = tempfile::tempdir().unwrap();
        let path = build(folder.path(), storage, layout);
        let request = request(&path, &[1]);
        let writer = Fixture::reopen(&path);
        writer.sql("BEGIN IMMEDIATE");
        assert_eq!(
            blocked(prune(&path, &request)),
            ("maintenance_required".to_owned(), Why::Busy),
            "{storage:?}"
        );
        writer.sql("ROLLBACK");
        drop(writer);
        assert_eq!(receipts(&path), 0);
        receipt(prune(&path, &request));
    }
}

#[test]
fn another_prune_of_the_same_database_is_an_answer() {
    let folder = tempfile::tempdir().unwrap();
    let path = build(folder.path(), Storage::V1, Layout::V1);
    let request = request(&path, &[1]);
    let mut state = StateFile::open(&state_path(&path)).unwrap();
    let identity = {
        let database = crate::ReadDatabase::open(&path).unwrap();
        DatabaseIdentity::read(database.connection(), database.file()).unwrap()
    };
    let key = state.database(&identity).unwrap();
    let claim = state.claim(key, Duration::ZERO).unwrap();
    assert_eq!(blocked(prune(&path, &request)), ("maintenance_required".to_owned(), Why::OtherPrune));
    drop(claim);
    receipt(prune(&path, &request));
}

#[test]
fn a_message_that_is_not_there_is_unavailable() {
    for (storage, layout) in STORAGES {
        let folder = tempfile::tempdir().unwrap();
        let path = build(folder.path(), storage, layout);
        let mut request = request(&path, &[1]);
        for (session, message) in [("ses_b", "msg_a"), ("ses_a", "msg_b")] {
            request.session = SessionId::new(session).unwrap();
            request.message = MessageId::new(message).unwrap();
            let answer = blocked(prune(&path, &request));
            assert_eq!(
                answer,
                ("unavailable".to_owned(), Why::Kept(KeptReason::Gone)),
                "{storage:?} {session}"
            );
        }
    }
}

#[test]
fn a_session_that_moved_since_the_preview_is_a_conflict() {
    let folder = tempfile::tempdir().unwrap();
    let path = build(folder.path(), Storage::V1, Layout::V1);
    let place = preview(&path).place;
    let request = request(&path, &[1]);
    Fixture::reopen(&path).sql("UPDATE session SET directory = '/elsewhere'");
    let database = WriteDatabase::open(&path, Duration::ZERO).unwrap();
    let mut state = StateFile::open(&state_path(&path)).unwrap();
    let now = UnixMillis::new(NOW + 60_000);
    let mut pruner =
        Pruner::new(&database, &mut state, &NoServers, PruneOptions::immediate(), now, &Unobserved).unwrap();
    assert_eq!(blocked(pruner.message(&request, Some(&place)).unwrap()), ("conflict".to_owned(), Why::Moved));
    receipt(pruner.message(&request, None).unwrap());
}

/// Case `v2_content`: all content of a message in one row.
#[test]
fn every_byte_of_a_2x_row_that_is_not_removed_stays() {
    let folder = tempfile::tempdir().unwrap();
    let case = cases::v2_content(folder.path());
    let database = crate::ReadDatabase::open(&case.path).unwrap();
    let session = SessionId::new(case.session).unwrap();
    let message = MessageId::new(case.message).unwrap();
    let preview =
        preview_message(database.connection(), database.schema(), &session, &message).unwrap().unwrap();
    drop(database);
    let removable: Vec<_> = preview
        .items
        .iter()
        .filter(|item| item.removable)
        .map(|item| (item.index, item.kind.as_str()))
        .collect();
    assert_eq!(removable, case.removable);
    let indexes = Indexes::new(removable.iter().map(|(index, _)| *index)).unwrap();
    let request = PruneRequest { session, message, indexes, revision: preview.revision };
    let others = "SELECT group_concat(quote(id) || quote(type) || seq || time_created || time_updated || \
         iif(id = 'smg_1', '', data)) FROM session_message";
    let before = Fixture::reopen(&case.path).text(others);
    receipt(prune(&case.path, &request));
    let db = Fixture::reopen(&case.path);
    assert_eq!(db.text(others), before);
    assert_eq!(db.text("SELECT data FROM session_message WHERE id = 'smg_1'"), case.after);
}

#[test]
fn nothing_of_the_content_is_in_the_receipts() {
    for (storage, layout) in STORAGES {
        let folder = tempfile::tempdir().unwrap();
        let path = build(folder.path(), storage, layout);
        let receipt = receipt(prune(&path, &request(&path, &[0, 1, 3])));
        assert!(!format!("{receipt:?}").contains("CANARY"));
        for entry in std::fs::read_dir(folder.path()).unwrap() {
            let file = entry.unwrap().path();
            let name = file.file_name().unwrap().to_str().unwrap();
            if name.starts_with("receipts") {
                let bytes = std::fs::read(&file).unwrap();
                assert!(!bytes.windows(6).any(|window| window == b"CANARY"), "{name}");
            }
        }
        if layout == Layout::V2 {
            assert!(
                !Fixture::reopen(&path).text("SELECT group_concat(key || value) FROM kv").contains("CANARY")
            );
        }
    }
}
