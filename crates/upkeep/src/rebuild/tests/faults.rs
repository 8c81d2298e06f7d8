//! A full disk and failing writes at every step, damage in either file, and everything a rebuild refuses.

use std::cell::Cell;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::Duration;

use super::sample::{Sample, content, expected, rebuild};
use crate::fixture::{self, OtherProcess, v1_session};
use crate::observer::Observer;
use crate::rebuild::{RebuildErrorKind, RebuildOptions, Step, temporary};

/// Does something once, when a step is reached.
struct At<F: Fn()>(Step, Mutex<F>);

impl<F: Fn() + Send> Observer for At<F> {
    fn reached(&self, step: &'static str) {
        if step == self.0.name() {
            self.1.lock().unwrap()();
        }
    }
}

fn at<F: Fn() + Send>(step: Step, act: F) -> At<F> {
    At(step, Mutex::new(act))
}

/// Writes down the steps.
#[derive(Default)]
struct Trace(Mutex<Vec<&'static str>>);

impl Observer for Trace {
    fn reached(&self, step: &'static str) {
        self.0.lock().unwrap().push(step);
    }
}

#[test]
fn every_step_is_reached_once_in_order() {
    let sample = Sample::new();
    let trace = Trace::default();
    sample.rebuild_with(&RebuildOptions::default(), &trace).unwrap();
    assert_eq!(*trace.0.lock().unwrap(), Step::BY_LEASE.map(Step::name));
    let sample = Sample::new();
    let trace = Trace::default();
    // An idle process that ran no statement refuses the lease and nothing else.
    let opener = OtherProcess::open(&sample.path);
    let options = RebuildOptions { in_place: true, ..RebuildOptions::default() };
    sample.rebuild_with(&options, &trace).unwrap();
    assert_eq!(*trace.0.lock().unwrap(), Step::IN_PLACE.map(Step::name));
    opener.close();
}

/// How long the takeover had waited for openers at each step.
#[derive(Default)]
struct Waits(Mutex<Vec<(&'static str, Duration)>>);

impl Observer for Waits {
    fn reached(&self, step: &'static str) {
        self.0.lock().unwrap().push((step, crate::rebuild::takeover::WAITED.with(Cell::get)));
    }
}

#[test]
fn an_opener_under_way_is_waited_for_before_the_exchange_and_before_the_lock_is_given_back() {
    let sample = Sample::new();
    let waits = Waits::default();
    sample.rebuild_with(&RebuildOptions::default(), &waits).unwrap();
    let waits = waits.0.into_inner().unwrap();
    let until = |step: Step| waits.iter().find(|(found, _)| *found == step.name()).unwrap().1;
    for (from, to) in [(Step::Leased, Step::Settled), (Step::FolderSynced, Step::Retired)] {
        assert_eq!(until(to).checked_sub(until(from)), Some(Duration::from_millis(50)), "{from:?} to {to:?}");
    }
}

#[test]
fn the_new_file_is_on_the_disk_before_it_is_verified_and_the_exchange_before_the_old_one_goes() {
    let sample = Sample::new();
    let seen = Mutex::new(Vec::new());
    let synced = || crate::rebuild::place::FOLDERS_SYNCED.with(Cell::get);
    let before = synced();
    let path = sample.path.clone();
    let observer = At(
        Step::Synced,
        Mutex::new(|| {
            let file = File::open(super::paused::temporary_of(&path)).unwrap();
            seen.lock().unwrap().push(u64::from(crate::os::unwritten_pages(&file).unwrap()));
        }),
    );
    sample.rebuild_with(&RebuildOptions::default(), &observer).unwrap();
    assert_eq!(*seen.lock().unwrap(), [0], "pages of the new file are in memory only");
    assert_eq!(synced() - before, 2, "the folder is synced before and after the exchange");
}

/// What a bit error between writing and reading would do.
fn corrupt(database: &Path) {
    let path = super::paused::temporary_of(database);
    let mut bytes = fs::read(&path).unwrap();
    let at = bytes.windows(11).position(|found| found == b"event 4 eee").unwrap();
    bytes[at + 500] ^= 1;
    File::options()
        .write(true)
        .open(&path)
        .unwrap()
        .write_all_at(&bytes[at + 500..=at + 500], (at + 500) as u64)
        .unwrap();
}

#[test]
fn a_flipped_bit_in_the_new_file_is_found_and_nothing_takes_over() {
    for step in [Step::Copied, Step::Indexed, Step::Synced] {
        let sample = Sample::new();
        let before = content(&sample.path);
        let path = sample.path.clone();
        let refused =
            sample.rebuild_with(&RebuildOptions::default(), &at(step, move || corrupt(&path))).unwrap_err();
        assert!(
            matches!(&refused, RebuildErrorKind::Verification(what) if what.contains("event")),
            "{refused}"
        );
        assert!(content(&sample.path) == before);
        assert_eq!(sample.names(), ["opencode.db"]);
    }
}

#[test]
fn damage_in_the_source_is_an_error_and_the_source_stays() {
    let sample = Sample::new();
    let bytes = fs::read(&sample.path).unwrap();
    // A page of the table that is copied whole, found by its content.
    let at = bytes.windows(9).position(|found| found == b"prt_ses_a").unwrap() / 4096 * 4096;
    File::options().write(true).open(&sample.path).unwrap().write_all_at(&[0xA5; 4096], at as u64).unwrap();
    let damaged = fs::read(&sample.path).unwrap();
    let refused = sample.rebuild().unwrap_err();
    assert!(matches!(refused, RebuildErrorKind::Damaged | RebuildErrorKind::Open(_)), "{refused}");
    assert_eq!(fs::read(&sample.path).unwrap(), damaged);
    assert_eq!(sample.names(), ["opencode.db"]);
}

const FAULT: &str = "HEADWATER_TEST_FAULT";

/// Before the name of a step of a rebuild in place.
const IN_PLACE: &str = "in-place ";
const SMALL_DISK: &str = "HEADWATER_TEST_SMALL_DISK";

/// A child that sees a small file system of its own at a folder. Where the tests run as an ordinary user it becomes root of a user
/// namespace for that.
fn on_small_disk(name: &str, folder: &Path, fault: &str) -> std::process::Output {
    let mut command = Command::new("unshare");
    command.arg("--mount");
    if !rustix::process::geteuid().is_root() {
        command.args(["--user", "--map-root-user"]);
    }
    command
        .args(["sh", "-c", "mount -t tmpfs -o size=48m none \"$1\" && shift && exec \"$@\"", "sh"])
        .arg(folder)
        .arg(std::env::current_exe().unwrap())
        .args([name, "--exact", "--nocapture", "--quiet"])
        .env(SMALL_DISK, folder)
        .env(FAULT, fault);
    command.output().unwrap()
}

fn assert_passed(output: &std::process::Output, what: &str) {
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{what}: {text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("said: checked"), "{what}: {text}");
}

/// A database in `folder` with rows in its log, and its content.
fn with_log(
    folder: &Path,
) -> (PathBuf, std::collections::BTreeMap<String, Vec<Vec<rusqlite::types::Value>>>) {
    let sample = Sample::new();
    let path = folder.join("opencode.db");
    fs::copy(&sample.path, &path).unwrap();
    let mut server = OtherProcess::open(&path);
    assert_eq!(server.run(&v1_session("ses_log")), "ok");
    // The session is in the log alone; the content is read through another connection that merges nothing.
    let before = content(&path);
    server.kill();
    (path, before)
}

/// Old content with an error, or new content without one; never rubbish.
fn assert_old_or_new(
    path: &Path,
    before: std::collections::BTreeMap<String, Vec<Vec<rusqlite::types::Value>>>,
    outcome: &Result<crate::rebuild::RebuildReport, RebuildErrorKind>,
) {
    let is_new = matches!(outcome, Ok(_) | Err(RebuildErrorKind::Unmerged { .. }));
    let wanted = if is_new { expected(before) } else { before };
    assert!(content(path) == wanted, "{outcome:?}");
    assert!(temporary::leftovers(path).unwrap().is_empty());
    println!("said: checked");
}

/// Names a step of a rebuild by lease or in place, for a process of its own.
fn fault_at(step: Step, in_place: bool) -> String {
    format!("{}{}", if in_place { IN_PLACE } else { "" }, step.name())
}

/// What the name in the environment says: the step, and whether the rebuild is in place.
fn fault() -> (Step, bool) {
    let fault = std::env::var(FAULT).unwrap();
    let (name, in_place) = fault.strip_prefix(IN_PLACE).map_or((&fault[..], false), |name| (name, true));
    (*Step::BY_LEASE.iter().chain(&Step::IN_PLACE).find(|found| found.name() == name).unwrap(), in_place)
}

#[test]
fn a_disk_that_fills_up_at_any_step() {
    for (steps, in_place) in [(&Step::BY_LEASE[..], false), (&Step::IN_PLACE[..], true)] {
        for step in steps {
            let folder = tempfile::tempdir().unwrap();
            let fault = fault_at(*step, in_place);
            let output = on_small_disk("rebuild::tests::faults::small_disk_entry", folder.path(), &fault);
            assert_passed(&output, &fault);
        }
    }
}

#[test]
fn small_disk_entry() {
    let Some(folder) = std::env::var_os(SMALL_DISK) else { return };
    let (step, in_place) = fault();
    let (path, before) = with_log(Path::new(&folder));
    let reader = in_place.then(|| OtherProcess::open(&path));
    let fill = Path::new(&folder).join("fill");
    let filled = fill.clone();
    let observer = at(step, move || {
        let mut file = File::create(&filled).unwrap();
        while file.write_all(&[7; 4096]).is_ok() {}
        while file.write_all(&[7]).is_ok() {}
    });
    let options = RebuildOptions { in_place, ..RebuildOptions::default() };
    let outcome = rebuild(&path, &options, &observer);
    drop(reader);
    fs::remove_file(&fill).unwrap();
    let must_fail = (Step::Checked..=Step::Planned).contains(&step);
    assert!(!must_fail || outcome.is_err(), "{outcome:?}");
    assert_old_or_new(&path, before, &outcome);
}

/// Writes that fail, as on a disk with errors: a limit on the size of files, with its signal ignored, makes write(2) fail with EFBIG,
/// which SQLite reports as it reports EIO.
#[test]
fn writes_that_fail_at_any_step() {
    for (steps, in_place) in [(&Step::BY_LEASE[..], false), (&Step::IN_PLACE[..], true)] {
        for step in steps {
            let folder = tempfile::tempdir().unwrap();
            let fault = fault_at(*step, in_place);
            let output = Command::new("sh")
                .args(["-c", "trap '' XFSZ; exec \"$@\"", "sh"])
                .arg(std::env::current_exe().unwrap())
                .args(["rebuild::tests::faults::failing_writes_entry", "--exact", "--nocapture", "--quiet"])
                .env(SMALL_DISK, folder.path())
                .env(FAULT, &fault)
                .output()
                .unwrap();
            assert_passed(&output, &fault);
        }
    }
}

#[test]
fn failing_writes_entry() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Some(folder) = std::env::var_os(SMALL_DISK) else { return };
    let (step, in_place) = fault();
    let (path, before) = with_log(Path::new(&folder));
    let reader = in_place.then(|| OtherProcess::open(&path));
    let usual = getrlimit(Resource::Fsize);
    let observer = at(step, || {
        setrlimit(Resource::Fsize, Rlimit { current: Some(8192), maximum: usual.maximum }).unwrap();
    });
    let options = RebuildOptions { in_place, ..RebuildOptions::default() };
    let outcome = rebuild(&path, &options, &observer);
    setrlimit(Resource::Fsize, usual).unwrap();
    drop(reader);
    let must_fail = (Step::Checked..=Step::Planned).contains(&step);
    assert!(!must_fail || outcome.is_err(), "{outcome:?}");
    assert_old_or_new(&path, before, &outcome);
}

fn assert_refused(sample: &Sample, is_expected: impl Fn(&RebuildErrorKind) -> bool) {
    let before = fs::read(&sample.path).unwrap();
    let names = sample.names();
    let refused = sample.rebuild().unwrap_err();
    assert!(is_expected(&refused), "{refused}");
    assert_eq!(fs::read(&sample.path).unwrap(), before);
    assert_eq!(sample.names(), names);
}

#[test]
fn a_replicated_database_is_refused() {
    for state in [".opencode.db-litestream", "opencode.db-litestream"] {
        let sample = Sample::new();
        fs::create_dir(sample.folder.path().join(state)).unwrap();
        assert_refused(
            &sample,
            |kind| matches!(kind, RebuildErrorKind::Replicated { beside } if beside.ends_with(state)),
        );
    }
}

#[test]
fn a_database_with_a_second_name_is_refused() {
    let sample = Sample::new();
    fs::hard_link(&sample.path, sample.folder.path().join("second.db")).unwrap();
    assert_refused(&sample, |kind| matches!(kind, RebuildErrorKind::HardLinks { names: 2 }));
}

#[test]
fn a_deleted_log_in_use_is_refused() {
    let sample = Sample::new();
    let mut server = OtherProcess::open(&sample.path);
    assert_eq!(server.run(&v1_session("ses_gone")), "ok");
    fs::remove_file(fixture::with_suffix(&sample.path, "-wal")).unwrap();
    let pid = server.pid();
    assert_refused(
        &sample,
        |kind| matches!(kind, RebuildErrorKind::DeletedLog { holders } if holders.0.iter().any(|holder| holder.pid == pid)),
    );
}

#[test]
fn a_plan_that_is_declined_under_the_lock_changes_nothing() {
    let sample = Sample::new();
    let (options, rewriter) = (RebuildOptions::default(), &super::sample::Shorten);
    let observer = &crate::observer::Unobserved;
    let planner = |db: &rusqlite::Connection, _: &crate::schema::Schema| Ok(super::sample::plan(db));
    let before = fs::read(&sample.path).unwrap();
    let seen = Cell::new(0);
    let on_plan = |plan: &crate::plan::Plan, forecast: &crate::rebuild::Forecast| {
        seen.set(plan.fates.len() as u64 * forecast.bytes_before.get());
        false
    };
    let declined = crate::rebuild::Rebuild {
        options: &options,
        planner: &planner,
        on_plan: &on_plan,
        rewriter,
        observer,
    }
    .run(&sample.path)
    .unwrap_err();
    assert!(matches!(declined, RebuildErrorKind::Cancelled), "{declined}");
    assert!(seen.get() > 0);
    assert!(fs::read(&sample.path).unwrap() == before);
    assert_eq!(sample.names(), ["opencode.db"]);
}

#[test]
fn a_database_without_anything_to_gain_is_left_alone() {
    let sample = Sample::new();
    let options = RebuildOptions::default();
    let planner = |_: &rusqlite::Connection, _: &crate::schema::Schema| Ok(crate::plan::Plan::default());
    let run = |options: &RebuildOptions| {
        let observer = &crate::observer::Unobserved;
        let rewriter = &super::sample::Shorten;
        crate::rebuild::Rebuild { options, planner: &planner, on_plan: &|_, _| true, rewriter, observer }
            .run(&sample.path)
    };
    let before = fs::read(&sample.path).unwrap();
    let refused = run(&options).unwrap_err();
    assert!(matches!(refused, RebuildErrorKind::NothingToGain { free_bytes: 0, .. }), "{refused}");
    assert_eq!(fs::read(&sample.path).unwrap(), before);
    assert_eq!(sample.names(), ["opencode.db"]);
    let wanted = content(&sample.path);
    run(&RebuildOptions { force: true, ..options }).unwrap();
    assert!(content(&sample.path) == wanted);
}

#[test]
fn another_file_that_takes_the_path_meanwhile_is_left_alone() {
    for step in [Step::Verified, Step::Settled] {
        let sample = Sample::new();
        let other = Sample::with("other.db", |db| db.execute_batch(&v1_session("ses_other")).unwrap());
        let (from, to) = (other.path.clone(), sample.path.clone());
        let wanted = fs::read(&other.path).unwrap();
        let refused = sample
            .rebuild_with(
                &RebuildOptions::default(),
                &at(step, move || {
                    fs::rename(&from, &to).unwrap();
                }),
            )
            .unwrap_err();
        assert!(matches!(refused, RebuildErrorKind::Replaced), "{refused}");
        assert_eq!(fs::read(&sample.path).unwrap(), wanted);
    }
}

struct Cancelling(Step, Mutex<bool>);

impl Observer for Cancelling {
    fn reached(&self, step: &'static str) {
        if step == self.0.name() {
            *self.1.lock().unwrap() = true;
        }
    }

    fn is_cancelled(&self) -> bool {
        *self.1.lock().unwrap()
    }
}

#[test]
fn a_caller_may_stop_at_any_step_before_the_lease() {
    for step in &Step::BY_LEASE[..10] {
        let sample = Sample::new();
        let before = content(&sample.path);
        let outcome = sample.rebuild_with(&RebuildOptions::default(), &Cancelling(*step, Mutex::new(false)));
        assert!(matches!(outcome, Err(RebuildErrorKind::Cancelled)), "{}: {outcome:?}", step.name());
        assert!(content(&sample.path) == before);
        assert_eq!(sample.names(), ["opencode.db"]);
    }
}

/// Asks to stop once the rebuild has gone on from a step, and remembers whether the next one was reached.
struct CancellingAfter {
    step: Step,
    next: Step,
    /// How often it was asked since the step; the rebuild itself asks once.
    asked: Mutex<Option<u32>>,
    went_on: Mutex<bool>,
}

impl Observer for CancellingAfter {
    fn reached(&self, step: &'static str) {
        if step == self.step.name() {
            *self.asked.lock().unwrap() = Some(0);
        }
        if step == self.next.name() {
            *self.went_on.lock().unwrap() = true;
        }
    }

    fn is_cancelled(&self) -> bool {
        let mut asked = self.asked.lock().unwrap();
        let Some(times) = asked.as_mut() else { return false };
        *times += 1;
        *times > 1
    }
}

#[test]
fn a_caller_may_stop_while_the_new_file_is_verified() {
    let sample = Sample::new();
    let before = content(&sample.path);
    let (asked, went_on) = (Mutex::new(None), Mutex::new(false));
    let observer = CancellingAfter { step: Step::Synced, next: Step::Verified, asked, went_on };
    let outcome = sample.rebuild_with(&RebuildOptions::default(), &observer);
    assert!(matches!(outcome, Err(RebuildErrorKind::Cancelled)), "{outcome:?}");
    assert!(!*observer.went_on.lock().unwrap(), "the verification went on to its end");
    assert!(content(&sample.path) == before);
    assert_eq!(sample.names(), ["opencode.db"]);
}
