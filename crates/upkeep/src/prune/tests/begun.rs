//! A turn that begins after the servers were asked and before the lock is had, for everything that writes: each class, an undo, a
//! retention run, in both layouts.

use std::sync::Mutex;

use headwater_prune::Class;
use headwater_testkit::fixture::{message as message_json, part};

use super::*;
use crate::plan::{self, Selection};
use crate::retention;
use crate::undo::{self, UndoOptions};

const LATER: i64 = NOW + 60_000;

/// Lets a turn begin at the first of these steps, and keeps the rows as they are then.
struct TurnAt<'a> {
    step: &'static str,
    path: &'a Path,
    layout: Layout,
    /// When the turn begins, by the clock of the prune.
    at: i64,
    rows: Mutex<Option<String>>,
}

impl<'a> TurnAt<'a> {
    fn new(step: &'static str, path: &'a Path, layout: Layout, at: i64) -> Self {
        Self { step, path, layout, at, rows: Mutex::default() }
    }

    /// The rows when the turn began; it must have begun.
    fn rows(&self) -> String {
        self.rows.lock().unwrap().clone().expect("the step was reached")
    }
}

impl Observer for TurnAt<'_> {
    fn reached(&self, step: &'static str) {
        let mut rows = self.rows.lock().unwrap();
        if step != self.step || rows.is_some() {
            return;
        }
        let db = Fixture::reopen(self.path);
        if self.layout == Layout::V1 {
            let turn = message_json::assistant_unfinished("msg_3", self.at);
            db.message("msg_9", "ses_a", self.at, &turn);
        } else {
            db.sql("UPDATE session_v2 SET time_suspended = 7");
        }
        drop(db);
        *rows = Some(dump(self.path));
    }
}

/// A session with something for every class, in a turn that is not the newest.
pub(super) fn rich(folder: &Path, layout: Layout, with_events: bool) -> PathBuf {
    let db = Fixture::create(folder.join("opencode.db"), layout);
    let url = format!("data:image/png;base64,{}", "A".repeat(2000));
    let output = "output ".repeat(200);
    if layout == Layout::V1 {
        db.session(&Session::named("ses_a"));
        let patch = "@@ patch @@".repeat(100);
        db.message("msg_1", "ses_a", NOW, &message_json::user_with_diffs(NOW, &[("a.rs", &patch)]));
        db.assistant("msg_2", "ses_a");
        db.part("prt_1", "msg_2", "ses_a", &part::bash_twice("call_1", &output));
        db.part("prt_2", "msg_2", "ses_a", &part::bash_compacted("call_2", &output));
        db.part("prt_3", "msg_2", "ses_a", &part::read_attachment("call_3", &url));
        db.message("msg_3", "ses_a", NOW + 1, &message_json::user(NOW + 1));
        db.message("msg_4", "ses_a", NOW + 2, &message_json::assistant("msg_3", NOW + 2));
    } else {
        db.session_v2(&Session::named("ses_a"));
        let tool = v2::tool("call_1", "bash", &output)
            .replace("\"truncated\"", &format!("\"output\":\"{output}\",\"truncated\""));
        let file = format!("\"files\":[{{\"uri\":\"{url}\",\"mime\":\"image/png\",\"name\":\"a.png\"}}]");
        let user = v2::user("see").replace("\"files\":[]", &file);
        db.session_message("msg_1", "ses_a", "user", 0, NOW, &user);
        db.session_message("msg_2", "ses_a", "assistant", 1, NOW, &v2::assistant(&[tool, v2::text("done")]));
        db.session_message("msg_3", "ses_a", "user", 2, NOW, &v2::user("more"));
        db.session_message("msg_4", "ses_a", "assistant", 3, NOW, &v2::assistant(&[v2::text("more")]));
    }
    if with_events {
        for _ in 0..3 {
            db.part_event("ses_a", "msg_2", "prt_1", &part::text("copy"));
        }
    }
    db.close()
}

fn selection(class: Class) -> Selection {
    let mut selection = Selection::new([class].into_iter().collect(), UnixMillis::new(LATER));
    selection.sessions = vec![session()];
    selection
}

/// Applies the plan of one class, which must hold something.
fn apply(path: &Path, class: Class, archive: Option<&Path>, observer: &dyn Observer) -> PruneReport {
    let selection = selection(class);
    let plan = {
        let database = crate::ReadDatabase::open(path).unwrap();
        plan::compute(database.connection(), database.schema(), &selection, &Unobserved).unwrap()
    };
    assert!(!plan.fates.is_empty(), "{class}");
    let database = WriteDatabase::open(path, Duration::ZERO).unwrap();
    let mut state = StateFile::open(&state_path(path)).unwrap();
    let identity = DatabaseIdentity::read(database.connection(), database.file()).unwrap();
    let mut archive = archive.map(|archive| undo::Archive::open(archive, &identity).unwrap());
    let options = PruneOptions::batch();
    let mut pruner =
        Pruner::new(&database, &mut state, &NoServers, options, selection.now, observer).unwrap();
    if let Some(archive) = &mut archive {
        pruner = pruner.with_archive(archive);
    }
    let (report, outcome) = pruner.apply(&plan, &selection);
    outcome.unwrap();
    report
}

/// Each class with the layouts that have something for it.
fn cases() -> impl Iterator<Item = (Class, Layout)> {
    let only_1x = [Class::Diffs, Class::Compacted];
    Class::ALL
        .into_iter()
        .filter(|class| *class != Class::Leftover)
        .flat_map(|class| [(class, Layout::V1), (class, Layout::V2)])
        .filter(move |(class, layout)| *layout == Layout::V1 || !only_1x.contains(class))
}

pub(super) fn is_of_events(class: Class) -> bool {
    matches!(class, Class::Events | Class::SupersededEvents)
}

#[test]
fn every_class_leaves_a_session_alone_whose_turn_begins_before_the_lock() {
    for (class, layout) in cases() {
        let folder = tempfile::tempdir().unwrap();
        let path = rich(folder.path(), layout, is_of_events(class));
        let turn = TurnAt::new(Step::Asked.name(), &path, layout, LATER);
        let report = apply(&path, class, None, &turn);
        assert!(report.is_empty(), "{class} {layout:?}: {report:?}");
        assert!(report.kept_count > 0, "{class} {layout:?}");
        assert!(dump(&path) == turn.rows(), "{class} {layout:?}");
        assert_eq!(receipts(&path), 0, "{class} {layout:?}");
    }
}

#[test]
fn an_undo_leaves_a_session_alone_whose_turn_begins_before_the_lock() {
    for (class, layout) in cases().filter(|(class, _)| *class != Class::Sessions) {
        let folder = tempfile::tempdir().unwrap();
        let path = rich(folder.path(), layout, is_of_events(class));
        let archive = folder.path().join("undo.zst");
        assert!(!apply(&path, class, Some(&archive), &Unobserved).is_empty(), "{class} {layout:?}");
        let turn = TurnAt::new(undo::Step::Asked.name(), &path, layout, LATER);
        let database = WriteDatabase::open(&path, Duration::ZERO).unwrap();
        let mut state = StateFile::open(&state_path(&path)).unwrap();
        let (options, now) = (UndoOptions::default(), UnixMillis::new(LATER));
        let report = undo::run(&database, &mut state, &archive, &NoServers, options, now, &turn).unwrap();
        assert_eq!(report.rows_restored, 0, "{class} {layout:?}: {report:?}");
        assert!(!report.rows_left.is_empty(), "{class} {layout:?}");
        drop((database, state));
        assert!(dump(&path) == turn.rows(), "{class} {layout:?}");
    }
}

#[test]
fn a_retention_run_leaves_a_session_alone_whose_turn_begins_before_the_lock() {
    for class in [Class::Technical, Class::Metadata, Class::Events, Class::Sessions] {
        for layout in [Layout::V1, Layout::V2] {
            let folder = tempfile::tempdir().unwrap();
            let path = rich(folder.path(), layout, is_of_events(class));
            let file = folder.path().join("retention.toml");
            let text = format!("enabled = true\nolder_than = \"1d\"\nclasses = [\"{class}\"]\n");
            std::fs::write(&file, text).unwrap();
            let policy = retention::Policy::load(&file).unwrap();
            let now = NOW + 10 * 86_400_000;
            let turn = TurnAt::new(Step::Asked.name(), &path, layout, now);
            // The first run with a policy is a preview.
            for _ in 0..2 {
                let database = WriteDatabase::open(&path, Duration::ZERO).unwrap();
                let mut state = StateFile::open(&state_path(&path)).unwrap();
                let (options, now) = (PruneOptions::batch(), UnixMillis::new(now));
                retention::run(&database, &mut state, &policy, &NoServers, options, now, &turn, |_| {})
                    .unwrap();
            }
            assert!(dump(&path) == turn.rows(), "{class} {layout:?}");
        }
    }
}
