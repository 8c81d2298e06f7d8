//! A plan applied to a database in use.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};

use headwater_prune::{Class, KeptReason};
use headwater_testkit::cases;
use headwater_testkit::fixture::{message as message_json, part};

use super::*;
use crate::observer::Progress;
use crate::plan::{self, Plan, Selection};
use crate::undo::{self, Archive, UndoOptions};

/// A minute after the last use.
const LATER: i64 = NOW + 60_000;

fn selection(classes: &[Class]) -> Selection {
    let mut selection = Selection::new(classes.iter().copied().collect(), UnixMillis::new(LATER));
    selection.newest_turn = true;
    selection
}

fn planned(path: &Path, selection: &Selection) -> Plan {
    let database = crate::ReadDatabase::open(path).unwrap();
    plan::compute(database.connection(), database.schema(), selection, &Unobserved).unwrap()
}

fn apply(path: &Path, plan: &Plan, selection: &Selection) -> PruneReport {
    apply_with(path, plan, selection, &Unobserved, None)
}

fn apply_with(
    path: &Path,
    plan: &Plan,
    selection: &Selection,
    observer: &dyn Observer,
    archive: Option<&Path>,
) -> PruneReport {
    let database = WriteDatabase::open(path, Duration::ZERO).unwrap();
    let mut state = StateFile::open(&state_path(path)).unwrap();
    let identity = DatabaseIdentity::read(database.connection(), database.file()).unwrap();
    let mut archive = archive.map(|archive| Archive::open(archive, &identity).unwrap());
    let options = PruneOptions::batch();
    let mut pruner =
        Pruner::new(&database, &mut state, &NoServers, options, selection.now, observer).unwrap();
    if let Some(archive) = &mut archive {
        pruner = pruner.with_archive(archive);
    }
    let (report, outcome) = pruner.apply(plan, selection);
    outcome.unwrap();
    report
}

fn undo(path: &Path, archive: &Path) -> undo::UndoReport {
    let database = WriteDatabase::open(path, Duration::ZERO).unwrap();
    let mut state = StateFile::open(&state_path(path)).unwrap();
    let now = UnixMillis::new(LATER);
    undo::run(&database, &mut state, archive, &NoServers, UndoOptions::default(), now, &Unobserved).unwrap()
}

fn ids(path: &Path, table: &str) -> Vec<String> {
    let text = Fixture::reopen(path)
        .text(&format!("SELECT coalesce(group_concat(id), '') FROM (SELECT id FROM {table} ORDER BY id)"));
    text.split(',').filter(|id| !id.is_empty()).map(str::to_owned).collect()
}

/// Case `changed_after_preview`.
#[test]
fn only_planned_parts_that_nobody_changed_go_and_each_skip_has_its_reason() {
    let folder = tempfile::tempdir().unwrap();
    let case = cases::changed_after_preview(folder.path());
    let selection = Selection { now: UnixMillis::new(NOW), ..selection(&[Class::Technical]) };
    let plan = planned(&case.path, &selection);
    assert!(plan.kept.iter().any(|kept| kept.session.as_str() == case.busy));
    case.change();
    // Applied a minute later, so that the session has settled.
    let later = |path: &Path| {
        let database = WriteDatabase::open(path, Duration::ZERO).unwrap();
        let mut state = StateFile::open(&state_path(path)).unwrap();
        let now = UnixMillis::new(LATER);
        let mut pruner =
            Pruner::new(&database, &mut state, &NoServers, PruneOptions::batch(), now, &Unobserved).unwrap();
        let (report, outcome) = pruner.apply(&plan, &selection);
        outcome.unwrap();
        report
    };
    let report = later(&case.path);
    assert_eq!(ids(&case.path, "part"), ["prt_1", "prt_b0", "prt_b1", "prt_new"]);
    let done = report.classes[&Class::Technical];
    assert_eq!((done.messages, done.rows_dropped), (1, 2));
    assert_eq!(report.rows_left[&Class::Technical], RowsLeft { changed: 1, gone: 1 });
    assert!(report.has_kept(KeptReason::Changed));
    assert_eq!(receipts(&case.path), 1);

    let before = dump(&case.path);
    let again = later(&case.path);
    assert!(again.is_empty(), "{again:?}");
    assert_eq!(again.rows_left[&Class::Technical], RowsLeft { changed: 1, gone: 3 });
    assert_eq!(dump(&case.path), before);
    assert_eq!(receipts(&case.path), 1);
}

/// Case `superseded_events`.
#[test]
fn superseded_events_go_and_everything_else_stays() {
    let folder = tempfile::tempdir().unwrap();
    let case = cases::superseded_events(folder.path());
    let rows = |path: &Path| {
        let text = dump(path);
        let (rows, events) = text.split_once("event:\n").unwrap();
        (rows.to_owned(), events.split_once("event_sequence:\n").unwrap().1.to_owned())
    };
    let before = (rows(&case.path), dump(&case.path));
    let selection = selection(&[Class::SupersededEvents]);
    let plan = planned(&case.path, &selection);
    let archive = folder.path().join("undo.zst");
    let report = apply_with(&case.path, &plan, &selection, &Unobserved, Some(&archive));
    let done = report.classes[&Class::SupersededEvents];
    assert_eq!(done.rows_dropped, plan.totals[&Class::SupersededEvents].rows_dropped);
    assert_eq!(done.bytes, plan.totals[&Class::SupersededEvents].bytes);
    assert!(done.rows_dropped > 0 && report.rows_left.is_empty(), "{report:?}");
    assert_eq!(rows(&case.path), before.0);
    assert!(report.space.freed().get() > 0, "{:?}", report.space);
    assert!(planned(&case.path, &selection).fates.is_empty(), "nothing superseded is left");

    let undone = undo(&case.path, &archive);
    assert_eq!((undone.rows_restored, undone.rows_left), (done.rows_dropped, BTreeMap::new()));
    assert_eq!(dump(&case.path), before.1);
}

/// A session in 1.x with something for every field class, in an older turn.
fn fields(folder: &Path) -> PathBuf {
    let db = Fixture::create(folder.join("opencode.db"), Layout::V1);
    db.session(&Session::named("ses_a"));
    let patch = "@@ patch @@".repeat(100);
    db.message("msg_1", "ses_a", NOW, &message_json::user_with_diffs(NOW, &[("a.rs", &patch)]));
    db.assistant("msg_2", "ses_a");
    db.part("prt_1", "msg_2", "ses_a", &part::bash_twice("call_1", &"output ".repeat(200)));
    db.part("prt_2", "msg_2", "ses_a", &part::bash_compacted("call_2", &"cleared ".repeat(200)));
    let url = format!("data:image/png;base64,{}", "A".repeat(2000));
    db.part("prt_3", "msg_2", "ses_a", &part::read_attachment("call_3", &url));
    db.part("prt_4", "msg_2", "ses_a", &part::text("answer"));
    db.message("msg_3", "ses_a", NOW + 1, &message_json::user(NOW + 1));
    db.message("msg_4", "ses_a", NOW + 2, &message_json::assistant("msg_3", NOW + 2));
    db.close()
}

const FIELDS: [Class; 4] = [Class::Diffs, Class::Metadata, Class::Attachments, Class::Compacted];

#[test]
fn field_classes_shorten_their_field_and_can_be_undone() {
    for class in FIELDS {
        let folder = tempfile::tempdir().unwrap();
        let path = fields(folder.path());
        let before = dump(&path);
        let selection = selection(&[class]);
        let plan = planned(&path, &selection);
        let archive = folder.path().join("undo.zst");
        let report = apply_with(&path, &plan, &selection, &Unobserved, Some(&archive));
        let done = report.classes[&class];
        assert_eq!(done.rows_rewritten, plan.totals[&class].rows_rewritten, "{class}");
        assert!(done.rows_rewritten > 0 && done.bytes.get() > 500, "{class}: {done:?}");
        assert_eq!(before.len() - dump(&path).len(), usize::try_from(done.bytes.get()).unwrap(), "{class}");
        assert!(apply(&path, &plan, &selection).is_empty(), "{class} again");
        assert_eq!(undo(&path, &archive).rows_restored, done.rows_rewritten, "{class}");
        assert_eq!(dump(&path), before, "{class}");
    }
}

#[test]
fn all_content_classes_together_are_undone_in_reverse() {
    let folder = tempfile::tempdir().unwrap();
    let path = fields(folder.path());
    let before = dump(&path);
    let selection =
        Selection { newest_turn: false, ..selection(&[FIELDS.as_slice(), &[Class::Technical]].concat()) };
    let plan = planned(&path, &selection);
    let archive = folder.path().join("undo.zst");
    let report = apply_with(&path, &plan, &selection, &Unobserved, Some(&archive));
    assert_eq!(report.classes[&Class::Technical].rows_dropped, 3);
    assert_eq!(report.classes[&Class::Diffs].rows_rewritten, 1);
    assert_eq!(ids(&path, "part"), ["prt_4"]);
    let undone = undo(&path, &archive);
    assert_eq!(undone.rows_left, BTreeMap::new());
    assert_eq!(dump(&path), before);
    assert_eq!(receipts(&path), 0);
}

/// Rewrites a row when the fence has been asked: after the new data was computed, before the lock.
struct Meddling<'a>(&'a Path, AtomicU32);

impl Observer for Meddling<'_> {
    fn progress(&self, _progress: Progress) {}
    fn is_cancelled(&self) -> bool {
        false
    }
    fn reached(&self, step: &'static str) {
        if step == Step::FieldsRead.name() && self.1.fetch_add(1, Ordering::Relaxed) == 0 {
            Fixture::reopen(self.0)
                .sql("UPDATE part SET data = replace(data, '\"title\"', '\"title\" ') WHERE id = 'prt_1'");
        }
    }
}

#[test]
fn a_row_that_changes_while_it_is_rewritten_stays_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = fields(folder.path());
    let selection = selection(&[Class::Metadata]);
    let plan = planned(&path, &selection);
    let report = apply_with(&path, &plan, &selection, &Meddling(&path, AtomicU32::new(0)), None);
    assert_eq!(report.rows_left[&Class::Metadata].changed, 1, "{report:?}");
    let data = Fixture::reopen(&path).text("SELECT data FROM part WHERE id = 'prt_1'");
    assert!(data.contains("\"title\" ") && data.matches("output output").count() > 100);
}

#[test]
fn technical_in_2x_leaves_one_receipt_per_message_in_the_database() {
    for (storage, layout) in STORAGES {
        let folder = tempfile::tempdir().unwrap();
        let path = build(folder.path(), storage, layout);
        let before = dump(&path);
        let selection = selection(&[Class::Technical]);
        let plan = planned(&path, &selection);
        let archive = folder.path().join("undo.zst");
        let report = apply_with(&path, &plan, &selection, &Unobserved, Some(&archive));
        assert_eq!(report.classes[&Class::Technical].messages, 1, "{storage:?} {report:?}");
        let kinds: Vec<_> = preview(&path).items.iter().map(|item| item.kind.clone()).collect();
        assert_eq!(kinds, ["text"]);
        assert_eq!(receipts(&path), 1);
        undo(&path, &archive);
        assert_eq!((dump(&path), receipts(&path)), (before, 0), "{storage:?}");
    }
}

#[test]
fn retained_events_close_a_2x_session_unless_they_go_first() {
    let folder = tempfile::tempdir().unwrap();
    let path = build(folder.path(), Storage::V2, Layout::V2);
    let db = Fixture::reopen(&path);
    let event = part::event("ses_a", "msg_a", "prt_x", &part::text("old"));
    db.event("ses_a", "message.part.updated.1", &event);
    db.close();
    let technical = selection(&[Class::Technical]);
    let plan = planned(&path, &technical);
    assert!(plan.fates.is_empty());
    let both = selection(&[Class::Technical, Class::Events]);
    let plan = planned(&path, &both);
    let report = apply(&path, &plan, &both);
    assert_eq!(report.classes[&Class::Events].rows_dropped, 1, "{report:?}");
    assert_eq!(report.classes[&Class::Technical].messages, 1);
    assert_eq!(Fixture::reopen(&path).integer("SELECT seq FROM event_sequence"), 0, "the counter stays");
}

/// A turn begins between the plan and its application.
#[test]
fn a_session_that_runs_by_then_is_left_alone_by_every_class() {
    let classes =
        [Class::Events, Class::SupersededEvents, Class::Technical, Class::Metadata, Class::Sessions];
    for class in classes {
        let folder = tempfile::tempdir().unwrap();
        let path = fields(folder.path());
        let db = Fixture::reopen(&path);
        for _ in 0..3 {
            db.part_event("ses_a", "msg_2", "prt_4", &part::text("answer"));
        }
        db.close();
        let selection = Selection { sessions: vec![session()], newest_turn: true, ..selection(&[class]) };
        let plan = planned(&path, &selection);
        assert!(!plan.fates.is_empty(), "{class}");
        let turn = message_json::assistant_unfinished("msg_3", NOW + 3);
        Fixture::reopen(&path).message("msg_5", "ses_a", LATER - 100, &turn);
        let before = dump(&path);
        let report = apply(&path, &plan, &selection);
        assert!(report.is_empty(), "{class}: {report:?}");
        assert!(report.kept_count > 0, "{class}");
        assert_eq!(dump(&path), before, "{class}");
    }
}

/// A family in 1.x and rows in every table that belongs to a session.
fn family(folder: &Path) -> PathBuf {
    let db = Fixture::create(folder.join("opencode.db"), Layout::V1);
    for (id, parent) in
        [("ses_a", None), ("ses_b", Some("ses_a")), ("ses_c", Some("ses_b")), ("ses_other", None)]
    {
        db.session(&Session { parent, ..Session::named(id) });
        let message = format!("msg_{id}");
        db.user(&message, id);
        db.part(&format!("prt_{id}"), &message, id, &part::text("hello"));
        db.part_event(id, &message, &format!("prt_{id}"), &part::text("hello"));
        db.sql(&format!(
            "INSERT INTO todo VALUES ('{id}', 'c', 's', 'p', 0, 1, 1);
             INSERT INTO session_share VALUES ('{id}', 'i', 's', 'u', 1, 1);
             INSERT INTO session_context_epoch VALUES ('{id}', '', '', 0);
             INSERT INTO session_input VALUES ('in_{id}', '{id}', '', '', 1, 1, 1)"
        ));
    }
    db.close()
}

#[test]
fn a_tree_goes_with_every_row_and_comes_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = family(folder.path());
    let before = dump_all(&path);
    let selection = Selection { sessions: vec![session()], ..selection(&[Class::Sessions]) };
    let plan = planned(&path, &selection);
    let archive = folder.path().join("undo.zst");
    let report = apply_with(&path, &plan, &selection, &Unobserved, Some(&archive));
    assert_eq!(report.classes[&Class::Sessions].rows_dropped, 3 * 9, "{report:?}");
    let db = Fixture::reopen(&path);
    for table in [
        "session",
        "message",
        "part",
        "event",
        "event_sequence",
        "todo",
        "session_share",
        "session_context_epoch",
        "session_input",
    ] {
        assert_eq!(db.integer(&format!("SELECT count(*) FROM {table}")), 1, "{table}");
    }
    assert_eq!(db.integer("SELECT count(*) FROM pragma_foreign_key_check"), 0);
    drop(db);
    let undone = undo(&path, &archive);
    assert_eq!((undone.rows_restored, undone.rows_left), (27, BTreeMap::new()));
    assert_eq!(dump_all(&path), before);
}

fn dump_all(path: &Path) -> String {
    let db = Fixture::reopen(path);
    let more = ["todo", "session_share", "session_context_epoch", "session_input"];
    let more = more.map(|table| {
        db.text(&format!("SELECT group_concat(session_id) FROM (SELECT * FROM {table} ORDER BY rowid)"))
    });
    drop(db);
    format!("{}{more:?}", dump(path))
}

#[test]
fn a_tree_that_grew_or_is_referred_to_stays_whole() {
    let changes = [
        ("INSERT INTO todo VALUES ('ses_c', 'c', 's', 'p', 1, 1, 1)", KeptReason::Changed),
        ("UPDATE session SET parent_id = 'ses_c' WHERE id = 'ses_other'", KeptReason::Changed),
        ("UPDATE session SET revert = '{}' WHERE id = 'ses_b'", KeptReason::RevertStaged),
        ("CREATE TABLE mine (session_id text); INSERT INTO mine VALUES ('ses_b')", KeptReason::ReferredTo),
        (
            "CREATE TABLE mine (s text REFERENCES session(id)); INSERT INTO mine VALUES ('ses_c')",
            KeptReason::ReferredTo,
        ),
    ];
    for (change, reason) in changes {
        let folder = tempfile::tempdir().unwrap();
        let path = family(folder.path());
        let selection = Selection { sessions: vec![session()], ..selection(&[Class::Sessions]) };
        let plan = planned(&path, &selection);
        Fixture::reopen(&path).sql(change);
        let before = dump_all(&path);
        let report = apply(&path, &plan, &selection);
        assert!(report.is_empty(), "{change}: {report:?}");
        assert!(report.has_kept(reason), "{change}: {report:?}");
        assert_eq!(dump_all(&path), before, "{change}");
    }
}

/// Case `leftover`.
#[test]
fn left_over_rows_go_on_evidence_and_an_only_copy_stays() {
    let folder = tempfile::tempdir().unwrap();
    let case = cases::leftover(folder.path());
    let before = dump(&case.path);
    let selection = selection(&[Class::Leftover]);
    let plan = planned(&case.path, &selection);
    let archive = folder.path().join("undo.zst");
    apply_with(&case.path, &plan, &selection, &Unobserved, Some(&archive));
    assert_eq!(ids(&case.path, "session"), ["ses_both", "ses_v1_only"]);
    assert_eq!(ids(&case.path, "message"), ["msg_ses_both", "msg_ses_v1_only"]);
    assert_eq!(ids(&case.path, "part"), ["prt_ses_both", "prt_ses_v1_only"]);
    undo(&case.path, &archive);
    assert_eq!(dump(&case.path), before);
}

/// Cancels after a number of looks.
struct Impatient(AtomicU32);

impl Observer for Impatient {
    fn is_cancelled(&self) -> bool {
        self.0.fetch_add(1, Ordering::Relaxed) >= 2
    }
}

#[test]
fn a_cancelled_prune_says_so_and_the_next_one_does_the_rest() {
    let folder = tempfile::tempdir().unwrap();
    let db = Fixture::create(folder.path().join("opencode.db"), Layout::V1);
    db.session(&Session::named("ses_a"));
    for i in 0..40 {
        let message = format!("msg_{i:02}");
        db.assistant(&message, "ses_a");
        db.part(&format!("prt_{i:02}"), &message, "ses_a", &part::bash("call", "out"));
    }
    let path = db.close();
    let selection = selection(&[Class::Technical]);
    let plan = planned(&path, &selection);
    let report = apply_with(&path, &plan, &selection, &Impatient(AtomicU32::new(0)), None);
    assert_eq!(report.stopped, Some(Stopped::Cancelled));
    assert_eq!(report.classes[&Class::Technical].messages, 16, "one batch");
    let rest = apply(&path, &plan, &selection);
    assert_eq!((rest.stopped, rest.classes[&Class::Technical].messages), (None, 24));
    assert_eq!(rest.rows_left[&Class::Technical], RowsLeft { changed: 0, gone: 16 });
    assert_eq!(receipts(&path), 40);
}

/// Counts how often a step is reached.
struct Counting {
    step: Step,
    times: AtomicU32,
}

impl Observer for Counting {
    fn progress(&self, _progress: Progress) {}
    fn is_cancelled(&self) -> bool {
        false
    }
    fn reached(&self, step: &'static str) {
        if step == self.step.name() {
            self.times.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[test]
fn a_busy_database_is_waited_for_once_however_many_messages_are_to_go() {
    for layout in [Layout::V1, Layout::V2] {
        let folder = tempfile::tempdir().unwrap();
        let db = Fixture::create(folder.path().join("opencode.db"), layout);
        let session = Session::named("ses_a");
        if layout == Layout::V1 {
            db.session(&session);
        } else {
            db.session_v2(&session);
        }
        for number in 0..5 {
            let id = format!("msg_{number}");
            if layout == Layout::V1 {
                db.assistant(&id, "ses_a");
                db.part(&format!("prt_{number}"), &id, "ses_a", &part::bash("call", "out"));
            } else {
                let content = v2::assistant(&[v2::tool("call", "bash", "out"), v2::text("done")]);
                db.session_message(&id, "ses_a", "assistant", number, NOW, &content);
            }
        }
        let path = db.close();
        let selection = selection(&[Class::Technical]);
        let plan = planned(&path, &selection);
        let before = dump(&path);
        let writer = Fixture::reopen(&path);
        writer.sql("BEGIN IMMEDIATE");
        let database = WriteDatabase::open(&path, Duration::ZERO).unwrap();
        let mut state = StateFile::open(&state_path(&path)).unwrap();
        let asked = Counting { step: Step::Asked, times: AtomicU32::new(0) };
        let options = PruneOptions::immediate();
        let mut pruner =
            Pruner::new(&database, &mut state, &NoServers, options, selection.now, &asked).unwrap();
        let (report, outcome) = pruner.apply(&plan, &selection);
        outcome.unwrap();
        assert_eq!(report.stopped, Some(Stopped::Blocked(Why::Busy)), "{layout:?}");
        assert_eq!(asked.times.load(Ordering::Relaxed), 1, "{layout:?}: one wait");
        drop(database);
        writer.sql("ROLLBACK");
        drop(writer);
        assert_eq!(dump(&path), before, "{layout:?}");
        let report = apply(&path, &plan, &selection);
        assert_eq!(report.classes[&Class::Technical].messages, 5, "{layout:?}: {report:?}");
    }
}

#[test]
fn a_pinned_log_stops_a_bulk_prune_with_its_reason() {
    let folder = tempfile::tempdir().unwrap();
    let case = cases::pinned_log(folder.path());
    let selection = selection(&[Class::Technical]);
    let plan = planned(&case.path, &selection);
    let database = WriteDatabase::open(&case.path, Duration::ZERO).unwrap();
    let mut state = StateFile::open(&state_path(&case.path)).unwrap();
    let mut options = PruneOptions::immediate();
    options.locks.log_bytes_max = headwater_model::ByteCount::from_mib(4);
    let now = UnixMillis::new(LATER);
    let mut pruner = Pruner::new(&database, &mut state, &NoServers, options, now, &Unobserved).unwrap();
    let (report, outcome) = pruner.apply(&plan, &selection);
    outcome.unwrap();
    assert_eq!(report.stopped, Some(Stopped::Blocked(Why::LogPinned)));
    assert!(report.is_empty());
    assert_eq!(std::fs::metadata(case.path.with_extension("db-wal")).unwrap().len(), case.log_bytes);
}

/// Ends the writer also where the test fails, which a scope would wait for otherwise.
struct Stop<'a>(&'a std::sync::atomic::AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Another process writes all the time; its longest wait stays short and everything is done all the same.
#[test]
fn a_competing_writer_is_let_in_between_transactions() {
    let folder = tempfile::tempdir().unwrap();
    let case = cases::superseded_events(folder.path());
    let selection = selection(&[Class::SupersededEvents]);
    let plan = planned(&case.path, &selection);
    let mut writer = crate::fixture::OtherProcess::open(&case.path);
    assert_eq!(writer.run("PRAGMA busy_timeout = 5000"), "ok");
    let stop = std::sync::atomic::AtomicBool::new(false);
    let (report, writes) = std::thread::scope(|scope| {
        let stopped = Stop(&stop);
        let writing = scope.spawn(|| {
            let mut writes = 0;
            while !stop.load(Ordering::Relaxed) || writes == 0 {
                assert_eq!(writer.run("UPDATE project SET time_updated = time_updated + 1"), "ok");
                writes += 1;
            }
            writes
        });
        let report = apply(&case.path, &plan, &selection);
        drop(stopped);
        (report, writing.join().unwrap())
    });
    assert!(writes > 0);
    assert_eq!(
        report.classes[&Class::SupersededEvents].rows_dropped,
        plan.totals[&Class::SupersededEvents].rows_dropped
    );
    assert!(report.locks.longest_lock_us > 0 && report.locks.transactions > 0);
}
