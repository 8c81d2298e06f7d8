//! What commands may cost: memory beside one huge row, and how much a rebuild reads.

use std::fs;
use std::path::Path;

use headwater_testkit::fixture::{Fixture, Layout, NOW, Session, message, part};
use headwater_testkit::large;
use headwater_testkit::measure::{self, Measured};
use serde_json::Value;

use crate::program;

const MIB: u64 = 1 << 20;

/// The size that was reported for one message, because a vendored tree got into its diff summary.
const HUGE_MIB: u64 = 461;

/// Private memory that a command may have in all, and how much of it may be resident at its peak.
const LIMIT_BYTES: u64 = 200 * MIB;
const PEAK_BYTES: u64 = 64 * MIB;

/// Runs the program with little memory.
fn limited(home: &Path, arguments: &[&str]) -> Measured {
    let mut command = measure::limited(&program::path(), LIMIT_BYTES);
    command.env_clear().env("HOME", home).env("TZ", "UTC").env("PATH", "/usr/bin:/bin").current_dir(home);
    measure::run(command.args(arguments).args(["--json", "--db", "opencode.db"]))
}

#[test]
fn a_message_of_461_mib_is_no_obstacle_within_200_mib() {
    let home = tempfile::tempdir().unwrap();
    let db = Fixture::create(home.path().join("opencode.db"), Layout::V1);
    db.session(&Session { title: "install", ..Session::named("ses_big") });
    db.message("msg_big", "ses_big", NOW, &message::user_with_diffs(NOW, &[("vendor.js", "PATCH")]));
    db.part("prt_big", "msg_big", "ses_big", &part::text("npm install please"));
    // SQLite makes the text, 64 bytes at a time, and no journal keeps it twice.
    db.sql("PRAGMA journal_mode = off");
    let line = "0123456789 + const vendored = require('left-pad'); // 0123456789 ";
    db.sql(&format!(
        "UPDATE message SET data = replace(data, 'PATCH', replace(hex(zeroblob({})), '00', '{}'))",
        HUGE_MIB * MIB / line.len() as u64 + 1,
        line.replace('\'', "''"),
    ));
    db.sql("PRAGMA journal_mode = wal");
    assert!(db.integer("SELECT octet_length(data) FROM message") >= i64::try_from(HUGE_MIB * MIB).unwrap());
    db.close();
    for (arguments, status) in
        [(&["stats"][..], 0), (&["sessions"], 0), (&["check"], 0), (&["search", "npm install please"], 0)]
    {
        let measured = limited(home.path(), arguments);
        let told = String::from_utf8_lossy(&measured.output.stderr);
        assert_eq!(measured.output.status.code(), Some(status), "{arguments:?}: {told}");
        assert!(measured.peak_bytes < PEAK_BYTES, "{arguments:?}: {} MiB", measured.peak_bytes / MIB);
    }
}

/// Pages of tables and of indexes, in bytes.
fn pages(path: &Path) -> (u64, u64) {
    let db = Fixture::reopen(path);
    let sum = |kind: &str| {
        let query = format!(
            "SELECT coalesce(sum(pgsize), 0) FROM dbstat JOIN sqlite_schema USING (name) WHERE type = '{kind}'"
        );
        u64::try_from(db.integer(&query)).unwrap()
    };
    let found = (sum("table"), sum("index"));
    db.close();
    found
}

#[test]
fn a_rebuild_reads_what_survives_and_not_what_goes() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("opencode.db");
    large::write(&path, &large::Options::of_bytes(64 * MIB));
    let (tables_before, indexes_before) = pages(&path);
    let mut command = program::command(home.path());
    let measured = measure::run(command.args([
        "rebuild",
        "--class",
        "events",
        "--yes",
        "--json",
        "--db",
        "opencode.db",
    ]));
    assert!(measured.output.status.success(), "{measured:?}");
    let report: Value =
        serde_json::from_slice(measured.output.stdout.split(|byte| *byte == b'\n').nth(1).unwrap()).unwrap();
    let (survivors, _) = pages(&path);
    assert!(survivors < tables_before * 3 / 10, "{survivors} of {tables_before} bytes survive");

    let read = |phase: &str| report["result"]["read_bytes"][phase].as_u64().unwrap();
    let allowed = survivors + survivors / 5 + indexes_before;
    let written = read("copy") + read("index") + read("sync");
    assert!(written <= allowed, "the copy read {written} of {allowed} bytes");
    // The plan needs to know what each row is, and not what stands in it.
    assert!(read("plan") <= allowed, "the plan read {} of {allowed} bytes", read("plan"));
    // What the report says is what the system has counted, but for opening files and looking around.
    let phases = ["plan", "copy", "index", "sync", "verify", "takeover"].map(read).iter().sum::<u64>();
    assert!(
        phases <= measured.read_bytes && measured.read_bytes - phases < 2 * MIB,
        "{phases} of {}",
        measured.read_bytes
    );
    // Verifying reads what survives in the old file again, and the new file: its rows, its pages, its references.
    let new_file = fs::metadata(&path).unwrap().len();
    assert!(read("verify") <= 4 * new_file, "verifying read {} of a file of {new_file}", read("verify"));
    assert!(read("takeover") <= MIB, "the takeover read {}", read("takeover"));
    // So the whole process reads the survivors six times at most, and never what goes (docs/spec/rebuild-protocol.md).
    let whole = 2 * allowed + 4 * new_file + 2 * MIB;
    assert!(measured.read_bytes <= whole, "the process read {} of {whole} bytes", measured.read_bytes);
    assert_eq!(report["result"]["log_growth"], 0);
    assert_eq!(report["result"]["way"], "lease");
    assert!(measured.peak_bytes < PEAK_BYTES, "{} MiB", measured.peak_bytes / MIB);
}
