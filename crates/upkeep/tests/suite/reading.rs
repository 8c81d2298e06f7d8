//! Verbs that only read: sessions, show, check, locate.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use headwater_testkit::cases::{huge_rows, leftover, session_tree, without_side_files};
use headwater_testkit::fixture::{Fixture, part};
use headwater_upkeep::check::{self, CheckOptions, CheckReport, Code};
use headwater_upkeep::observer::Unobserved;
use headwater_upkeep::sessions::{self, SessionQuery, SessionSort, SessionSummary};
use headwater_upkeep::show::{self, ShowOptions};
use headwater_upkeep::{ReadDatabase, ReadError};

fn listed(path: &Path, query: &SessionQuery) -> Vec<SessionSummary> {
    ReadDatabase::with(path, |database| sessions::collect(database, query, &Unobserved)).unwrap().0
}

fn checked(path: &Path) -> CheckReport {
    ReadDatabase::with(path, |database| check::run(database, CheckOptions::default(), &Unobserved)).unwrap()
}

/// Examples of a finding, none where there is none.
fn examples(report: &CheckReport, code: Code) -> Vec<&str> {
    let findings = report.findings.iter().filter(|finding| finding.code == code);
    findings.flat_map(|finding| finding.examples.iter().map(String::as_str)).collect()
}

fn names(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(folder).unwrap().map(Result::unwrap);
    entries.map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap())).collect()
}

#[test]
fn trees_are_listed_with_their_faults() {
    let folder = tempfile::tempdir().unwrap();
    let case = session_tree(folder.path());
    let sessions = listed(&case.path, &SessionQuery::default());
    assert_eq!(sessions.len(), 9);
    assert_eq!(sessions[0].id, "grand_1");
    let by_id = |id: &str| sessions.iter().find(|session| session.id == id).unwrap();
    assert_eq!((by_id("root_2").children, by_id("loop_a").children), (2, 1));
    let report = checked(&case.path);
    assert_eq!(examples(&report, Code::ParentMissing), ["child_lost"]);
    let loops = examples(&report, Code::ParentLoop);
    assert!(loops.len() == 1 && case.reported.contains(&loops[0]), "{loops:?}");
    let roots = listed(&case.path, &SessionQuery { roots_only: true, ..SessionQuery::default() });
    let mut roots: Vec<_> = roots.iter().map(|session| session.id.as_str()).collect();
    roots.sort_unstable();
    assert_eq!(roots, ["child_lost", "root_1", "root_2"]);
}

#[test]
fn a_session_in_two_layouts_counts_once_and_what_is_left_over_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let case = leftover(folder.path());
    let sessions = listed(&case.path, &SessionQuery::default());
    assert_eq!(sessions.len() as u64, case.sessions);
    let report = checked(&case.path);
    assert_eq!(examples(&report, Code::Leftover), case.left_over);
    assert_eq!(examples(&report, Code::SessionInBothLayouts), ["ses_both"]);
}

#[test]
fn a_database_alone_in_a_read_only_folder_is_read_and_its_later_log_is_seen() {
    let folder = tempfile::tempdir().unwrap();
    let case = without_side_files(folder.path());
    let parent = case.path.parent().unwrap();
    let before = names(parent);
    assert_eq!(before.keys().collect::<Vec<_>>(), ["opencode.db"]);
    assert_eq!(listed(&case.path, &SessionQuery::default())[0].messages, 1);
    assert_eq!(checked(&case.path).rows_decoded, 2);
    assert_eq!(names(parent), before);
    case.unlock();
    let db = Fixture::reopen(&case.path);
    db.user("msg_b", "ses_a");
    db.part("prt_b", "msg_b", "ses_a", &part::text("only in the log"));
    db.close_leaving_log();
    let before = names(parent);
    assert_eq!(listed(&case.path, &SessionQuery::default())[0].messages, 2);
    assert_eq!(checked(&case.path).rows_decoded, 4);
    assert_eq!(names(parent), before);
}

const HUGE: &str = "HEADWATER_TEST_HUGE";

/// Larger than all memory that a command may use, so that one copy of the row is too much.
const HUGE_MIB: usize = 70;
const MEMORY_KIB_MAX: u64 = 64 * 1024;

#[test]
fn a_huge_row_is_listed_shown_and_checked_in_bounded_memory() {
    let folder = tempfile::tempdir().unwrap();
    let case = huge_rows(folder.path(), HUGE_MIB);
    // A process of its own: the one that built the case has held the row.
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["reading::huge_entry", "--exact", "--nocapture"])
        .env(HUGE, &case.path)
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    // A name that is no test any more would pass as well.
    assert!(
        output.status.success() && told.contains("1 passed"),
        "{told}{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn huge_entry() {
    let Some(path) = std::env::var_os(HUGE) else { return };
    let path = Path::new(&path);
    for sort in [SessionSort::LastUsed, SessionSort::Bytes] {
        let sessions = listed(path, &SessionQuery { sort, ..SessionQuery::default() });
        let big = sessions.iter().find(|session| session.id == "ses_big").unwrap();
        assert!(big.bytes.messages.get() >= (HUGE_MIB as u64) << 20);
        assert!(big.bytes.events.get() >= 3 * ((HUGE_MIB as u64) << 20));
    }
    let report = checked(path);
    assert_eq!(examples(&report, Code::RowNotJudged), ["msg_big"]);
    assert_eq!(examples(&report, Code::UndecodableRow), [""; 0]);
    ReadDatabase::with(path, |database| {
        let shown = show::message(database, "msg_big", ShowOptions::default())?;
        assert_eq!((shown.role.as_str(), shown.is_readable), ("user", true));
        assert_eq!(shown.items[0].text.as_ref().unwrap().text, "npm install please");
        Ok::<_, ReadError>(())
    })
    .unwrap();
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let peak_kib: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(peak_kib < MEMORY_KIB_MAX, "{peak_kib} KiB");
}
