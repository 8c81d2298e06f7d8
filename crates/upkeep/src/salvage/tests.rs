use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;

use tempfile::TempDir;

use super::*;
use crate::fixture::{self, Folder, OtherProcess, v1_session, with_suffix};
use crate::observer::Unobserved;

/// A database of some 500 pages with rows on one page, on several, and indexes; folder, damaged file, target.
fn made() -> (TempDir, PathBuf, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("opencode.db");
    fixture::database(
        &path,
        &(v1_session("ses_a")
            + "WITH RECURSIVE n(v) AS (VALUES (1) UNION ALL SELECT v + 1 FROM n WHERE v < 1500)
               INSERT INTO part SELECT printf('prt_%05d', v), 'msg_ses_a', 'ses_a', v, v,
                 json_object('type', 'text', 'text', printf('%.*c', CASE WHEN v % 100 = 7 THEN 20000 ELSE 700 END, char(97 + v % 26)))
               FROM n;
               WITH RECURSIVE n(v) AS (VALUES (1) UNION ALL SELECT v + 1 FROM n WHERE v < 300)
               INSERT INTO message SELECT printf('msg_%05d', v), 'ses_a', v, v, '{\"role\":\"user\"}' FROM n;
               INSERT INTO migration VALUES ('m1', 1);"),
    );
    let target = folder.path().join("saved.db");
    (folder, path, target)
}

/// Rowid, id and data of every row of a table.
fn rows(path: &Path, table: &str) -> BTreeMap<i64, (String, String)> {
    let connection = fixture::connect(path);
    let mut statement = connection.prepare(&format!("SELECT rowid, id, data FROM {table}")).unwrap();
    let rows = statement.query_map([], |row| Ok((row.get(0)?, (row.get(1)?, row.get(2)?)))).unwrap();
    rows.map(Result::unwrap).collect()
}

/// Pages of a table or index: number, type, cells.
fn pages(path: &Path, name: &str) -> Vec<(u64, String, u64)> {
    let connection = fixture::connect(path);
    let mut statement =
        connection.prepare("SELECT pageno, pagetype, ncell FROM dbstat WHERE name = ?1").unwrap();
    let number =
        |row: &rusqlite::Row<'_>, at| row.get::<_, i64>(at).map(|number| u64::try_from(number).unwrap());
    let pages =
        statement.query_map([name], |row| Ok((number(row, 0)?, row.get(1)?, number(row, 2)?))).unwrap();
    pages.map(Result::unwrap).collect()
}

fn page_of(pages: &[(u64, String, u64)], kind: &str, nth: usize) -> (u64, u64) {
    let (page, _, cells) = pages.iter().filter(|(_, found, _)| found == kind).nth(nth).unwrap();
    (*page, *cells)
}

fn overwrite(path: &Path, page: u64, byte: u8) {
    let mut bytes = fs::read(path).unwrap();
    let start = usize::try_from((page - 1) * 4096).unwrap();
    bytes[start..start + 4096].fill(byte);
    fs::write(path, bytes).unwrap();
}

/// Runs a salvage and asserts that the damaged file is as it was and nothing but the new file is left.
fn saved(path: &Path, target: &Path) -> SalvageReport {
    let before = Folder::of(path.parent().unwrap());
    let report = run(path, target, SalvageOptions::default(), &Unobserved).unwrap();
    let bytes = fs::read(target).unwrap();
    assert_eq!(report.target_bytes, ByteCount::new(bytes.len() as u64));
    fs::remove_file(target).unwrap();
    assert_eq!(before, Folder::of(path.parent().unwrap()));
    fs::write(target, bytes).unwrap();
    let integrity: String =
        fixture::connect(target).query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(integrity, "ok");
    report
}

fn table<'a>(report: &'a SalvageReport, name: &str) -> &'a SalvagedTable {
    report.tables.iter().find(|table| table.name == name).unwrap()
}

#[test]
fn a_sound_database_is_saved_whole() {
    let (_folder, path, target) = made();
    let report = saved(&path, &target);
    for name in ["part", "message"] {
        assert_eq!(rows(&path, name), rows(&target, name));
    }
    assert_eq!((report.rows_recovered, report.rows_lost, report.rows_invalid), (1805, 0, 0));
    assert_eq!((report.broken_references, report.header_rebuilt), (0, false));
    assert!(
        report
            .tables
            .iter()
            .filter(|table| table.name != "project_directory")
            .all(|table| table.rows_lost == 0)
    );
    let schema = |path: &Path| -> Vec<String> {
        let connection = fixture::connect(path);
        let mut statement = connection
            .prepare("SELECT type || name || coalesce(sql, '') FROM sqlite_schema ORDER BY 1")
            .unwrap();
        statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    };
    assert_eq!(schema(&path), schema(&target));
    assert_eq!(fs::read(&target).unwrap()[18..20], [2, 2]);
    crate::ReadDatabase::open(&target).unwrap().finish().unwrap();
}

#[test]
fn a_damaged_leaf_loses_its_own_rows_and_names_them() {
    for byte in [0, 0xff, 0x0d] {
        for nth in [0, 5, usize::MAX] {
            let (_folder, path, target) = made();
            let all = rows(&path, "part");
            let pages = pages(&path, "part");
            let leaves = pages.iter().filter(|(_, kind, _)| kind == "leaf").count();
            let (page, cells) = page_of(&pages, "leaf", nth.min(leaves - 1));
            overwrite(&path, page, byte);
            let report = saved(&path, &target);
            let part = table(&report, "part");
            assert_eq!((part.rows_lost, part.lost_is_exact), (cells, true), "{byte} {nth}");
            assert_eq!(part.rows_recovered, 1501 - cells);
            assert_eq!(part.lost_examples.len(), 5.min(usize::try_from(cells).unwrap()));
            let kept = rows(&target, "part");
            assert!(kept.iter().all(|(rowid, row)| all.get(rowid) == Some(row)));
            let lost: Vec<&String> =
                all.iter().filter(|(rowid, _)| !kept.contains_key(*rowid)).map(|(_, (id, _))| id).collect();
            assert!(part.lost_examples.iter().zip(lost).all(|(example, id)| example == id), "{byte} {nth}");
            assert_eq!(table(&report, "message").rows_recovered, 301);
        }
    }
}

#[test]
fn leaves_below_a_damaged_interior_page_are_found_by_the_index() {
    let (_folder, path, target) = made();
    let all = rows(&path, "part");
    let (page, _) = page_of(&pages(&path, "part"), "internal", 0);
    overwrite(&path, page, 0);
    let report = saved(&path, &target);
    let part = table(&report, "part");
    assert_eq!((part.rows_recovered, part.rows_from_stray_pages, part.rows_lost), (1501, 1501, 0));
    assert_eq!(rows(&target, "part"), all);
}

#[test]
fn a_damaged_overflow_page_loses_one_row() {
    let (_folder, path, target) = made();
    let (page, _) = page_of(&pages(&path, "part"), "overflow", 2);
    overwrite(&path, page, 0xee);
    let report = saved(&path, &target);
    let part = table(&report, "part");
    assert_eq!((part.rows_recovered, part.rows_lost + part.rows_invalid), (1500, 1));
    let named = part.lost_examples.iter().chain(&part.invalid_examples).next().unwrap();
    assert!(named.starts_with("prt_") && named.ends_with("07"), "{named}");
}

#[test]
fn damaged_indexes_cost_no_row() {
    for name in ["sqlite_autoindex_part_1", "part_session_idx", "part_message_id_id_idx"] {
        let (_folder, path, target) = made();
        let all = rows(&path, "part");
        for (page, _, _) in pages(&path, name) {
            overwrite(&path, page, 0);
        }
        let report = saved(&path, &target);
        assert_eq!(table(&report, "part").rows_recovered, 1501, "{name}");
        assert_eq!(rows(&target, "part"), all);
    }
}

#[test]
fn without_any_index_the_rows_around_the_damage_are_found_by_halving() {
    let (_folder, path, target) = made();
    fixture::connect(&path)
        .execute_batch(
            "CREATE TABLE plain (a text); INSERT INTO plain SELECT data FROM part;
             DELETE FROM plain WHERE rowid BETWEEN 300 AND 900;",
        )
        .unwrap();
    let pages = pages(&path, "plain");
    let damaged = [page_of(&pages, "leaf", 2), page_of(&pages, "leaf", 20), page_of(&pages, "leaf", 90)];
    for (page, _) in damaged {
        overwrite(&path, page, 0);
    }
    let lost: u64 = damaged.iter().map(|(_, cells)| cells).sum();
    let report = saved(&path, &target);
    let plain = table(&report, "plain");
    assert_eq!((plain.rows_recovered, plain.lost_is_exact), (900 - lost, false));
}

#[test]
fn a_truncated_file_gives_what_is_left_of_it() {
    let (_folder, path, target) = made();
    let all = rows(&path, "part");
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() / 2 + 100]).unwrap();
    let report = saved(&path, &target);
    let kept = rows(&target, "part");
    assert!(kept.len() > 300, "{}", kept.len());
    assert!(kept.iter().all(|(rowid, row)| all.get(rowid) == Some(row)));
    assert_eq!(table(&report, "part").rows_recovered, kept.len() as u64);
}

#[test]
fn a_broken_header_is_rebuilt_in_a_private_copy() {
    for (name, range) in [("magic", 0..16), ("page size", 16..18), ("fractions", 21..24), ("all", 0..100)] {
        let (_folder, path, target) = made();
        let all = rows(&path, "part");
        let mut bytes = fs::read(&path).unwrap();
        bytes[range].fill(0);
        fs::write(&path, bytes).unwrap();
        let report = saved(&path, &target);
        assert!(report.header_rebuilt, "{name}");
        assert_eq!(report.source, fs::canonicalize(&path).unwrap());
        assert_eq!(rows(&target, "part"), all, "{name}");
    }
}

#[test]
fn a_page_size_other_than_usual_is_found() {
    let (_folder, path, target) = made();
    for page_bytes in [512, 1024, 16384, 65536] {
        let connection = fixture::connect(&path);
        connection
            .execute_batch(&format!("PRAGMA journal_mode=DELETE; PRAGMA page_size={page_bytes}; VACUUM;"))
            .unwrap();
        connection.close().unwrap();
        let all = rows(&path, "part");
        let mut bytes = fs::read(&path).unwrap();
        bytes[..24].fill(0);
        let damaged = path.with_file_name("damaged.db");
        fs::write(&damaged, bytes).unwrap();
        let report = saved(&damaged, &target);
        assert_eq!((report.rows_lost, rows(&target, "part") == all), (0, true), "{page_bytes}");
        fs::remove_file(&target).unwrap();
    }
}

#[test]
fn rows_in_the_log_are_saved() {
    let (_folder, path, target) = made();
    let mut server = OtherProcess::open(&path);
    assert_eq!(server.run(&v1_session("ses_log")), "ok");
    server.kill();
    let (page, cells) = page_of(&pages_of_main(&path), "leaf", 3);
    overwrite(&path, page, 0);
    let report = saved(&path, &target);
    assert_eq!(table(&report, "session").rows_recovered, 2);
    assert_eq!(table(&report, "part").rows_recovered, 1502 - cells);
}

/// Pages of `part` as the file itself has them; `dbstat` runs on a copy, so that the log stays as it is.
fn pages_of_main(path: &Path) -> Vec<(u64, String, u64)> {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy.db");
    fs::copy(path, &copy).unwrap();
    pages(&copy, "part")
}

#[test]
fn rows_that_are_not_json_are_left_out_and_named() {
    let (_folder, path, target) = made();
    let connection = fixture::connect(&path);
    connection
        .execute_batch("UPDATE part SET data = 'x' || data WHERE id = 'prt_00003'; UPDATE part SET data = x'7b7d' WHERE id = 'prt_00004';")
        .unwrap();
    connection.close().unwrap();
    let report = saved(&path, &target);
    let part = table(&report, "part");
    assert_eq!((part.rows_recovered, part.rows_invalid, part.rows_lost), (1499, 2, 0));
    assert_eq!(part.invalid_examples, ["prt_00003", "prt_00004"]);
    fs::remove_file(&target).unwrap();
    let options = SalvageOptions { keep_invalid: true };
    let report = run(&path, &target, options, &Unobserved).unwrap();
    assert_eq!((table(&report, "part").rows_recovered, report.rows_invalid), (1501, 0));
}

#[test]
fn hostile_definitions_and_odd_tables_are_kept_or_named() {
    let folder = tempfile::tempdir().unwrap();
    let (path, target) = (folder.path().join("odd.db"), folder.path().join("saved.db"));
    let connection = fixture::connect(&path);
    connection
        .execute_batch(
            "CREATE TABLE \"we\"\"ird name\" (\"a b\" integer PRIMARY KEY, c); INSERT INTO \"we\"\"ird name\" VALUES (-5, x'00ff'), (7, 1.5);
             CREATE TABLE keyed (k text PRIMARY KEY, v) WITHOUT ROWID; INSERT INTO keyed VALUES ('a', 1), ('b', NULL);
             CREATE TABLE made (a, b AS (a * 2) STORED); INSERT INTO made (a) VALUES (21);
             CREATE TABLE counted (id integer PRIMARY KEY AUTOINCREMENT); INSERT INTO counted VALUES (9);
             CREATE VIRTUAL TABLE words USING fts5(x); CREATE VIEW v AS SELECT 1; PRAGMA user_version = 7;",
        )
        .unwrap();
    connection.close().unwrap();
    let report = saved(&path, &target);
    let lost: Vec<_> = report.lost_objects.iter().map(|object| object.name.as_str()).collect();
    assert_eq!(lost, ["words"]);
    let new = fixture::connect(&target);
    let text = |sql: &str| -> String { new.query_row(sql, [], |row| row.get(0)).unwrap() };
    assert_eq!(text("SELECT group_concat(\"a b\" || quote(c)) FROM \"we\"\"ird name\""), "-5X'00FF',71.5");
    assert_eq!(text("SELECT group_concat(k || quote(v)) FROM keyed"), "a1,bNULL");
    assert_eq!(text("SELECT b || '' FROM made"), "42");
    assert_eq!(text("SELECT seq || '' FROM sqlite_sequence"), "9");
    assert_eq!(text("SELECT user_version || '' FROM pragma_user_version"), "7");
}

/// A salvage that is refused leaves every file as it was.
fn refused(path: &Path, target: &Path) -> SalvageErrorKind {
    let before = Folder::of(target.parent().unwrap());
    let error = run(path, target, SalvageOptions::default(), &Unobserved).unwrap_err();
    assert_eq!(before, Folder::of(target.parent().unwrap()));
    error.kind
}

#[test]
fn what_cannot_be_saved_is_refused_without_a_trace() {
    let (folder, path, target) = made();
    let at = |name: &str| folder.path().join(name);
    assert!(matches!(refused(&path, &path), SalvageErrorKind::TargetExists));
    assert!(matches!(refused(&at("missing"), &target), SalvageErrorKind::Source(OpenErrorKind::NotFound)));
    assert!(matches!(refused(folder.path(), &target), SalvageErrorKind::Source(OpenErrorKind::Directory)));
    fs::write(at("empty"), b"").unwrap();
    assert!(matches!(refused(&at("empty"), &target), SalvageErrorKind::Source(OpenErrorKind::Empty)));
    fs::write(at("text"), "no database at all ".repeat(5000)).unwrap();
    assert!(matches!(refused(&at("text"), &target), SalvageErrorKind::NoPages));
    let nowhere = run(&path, &at("no/such/folder.db"), SalvageOptions::default(), &Unobserved).unwrap_err();
    assert!(matches!(nowhere.kind, SalvageErrorKind::Io(_)));
    let mut bytes = fs::read(&path).unwrap();
    bytes[100..4096].fill(0);
    fs::write(&path, bytes).unwrap();
    assert!(matches!(refused(&path, &target), SalvageErrorKind::SchemaLost));
}

#[test]
fn two_salvages_to_one_target_exclude_each_other() {
    let (_folder, path, target) = made();
    let first = Target::reserve(&target).unwrap();
    let error = run(&path, &target, SalvageOptions::default(), &Unobserved).unwrap_err();
    assert!(matches!(error.kind, SalvageErrorKind::TargetInUse));
    drop(first);
    saved(&path, &target);
}

struct Cancelled;

impl Observer for Cancelled {
    fn is_cancelled(&self) -> bool {
        true
    }
}

#[test]
fn a_cancelled_salvage_leaves_nothing() {
    let (folder, path, target) = made();
    let before = Folder::of(folder.path());
    let error = run(&path, &target, SalvageOptions::default(), &Cancelled).unwrap_err();
    assert!(matches!(error.kind, SalvageErrorKind::Cancelled));
    assert_eq!(before, Folder::of(folder.path()));
}

const KILLED: (&str, &str) = ("HEADWATER_TEST_SALVAGE", "HEADWATER_TEST_SALVAGE_STEP");

#[test]
fn killed_at_any_step_it_leaves_the_old_file_and_at_most_hidden_ones() {
    for step in SalvageStep::ALL {
        let (folder, path, target) = made();
        let mut bytes = fs::read(&path).unwrap();
        bytes[..16].fill(0);
        fs::write(&path, &bytes).unwrap();
        let status = fixture::test_process("salvage::tests::killed_entry")
            .env(KILLED.0, folder.path())
            .env(KILLED.1, step.name())
            .status()
            .unwrap();
        assert_eq!(status.signal(), Some(9), "{}", step.name());
        assert_eq!(fs::read(&path).unwrap(), bytes, "{}", step.name());
        let names = Folder::of(folder.path()).names();
        let is_expected = |name: &String| name == "opencode.db" || name.starts_with(".saved.db.salvage");
        if step == SalvageStep::Renamed {
            assert_eq!(names, ["opencode.db", "saved.db"]);
            assert_eq!(rows(&target, "part").len(), 1501);
            continue;
        }
        assert!(names.iter().all(is_expected), "{} {names:?}", step.name());
        run(&path, &target, SalvageOptions::default(), &Unobserved).unwrap();
        assert_eq!(Folder::of(folder.path()).names(), ["opencode.db", "saved.db"], "{}", step.name());
    }
}

struct KillAt(String);

impl Observer for KillAt {
    fn reached(&self, step: &'static str) {
        if self.0 == step {
            rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL).unwrap();
        }
    }
}

#[test]
fn killed_entry() {
    let Some(folder) = std::env::var_os(KILLED.0) else { return };
    let folder = Path::new(&folder);
    let observer = KillAt(std::env::var(KILLED.1).unwrap());
    let outcome =
        run(&folder.join("opencode.db"), &folder.join("saved.db"), SalvageOptions::default(), &observer);
    panic!("not killed: {:?}", outcome.map(|report| report.rows_recovered));
}

#[test]
fn a_salvaged_log_pair_leaves_its_files_alone() {
    let (folder, path, target) = made();
    let mut server = OtherProcess::open(&path);
    assert_eq!(server.run(&v1_session("ses_log")), "ok");
    server.kill();
    fs::remove_file(with_suffix(&path, "-shm")).unwrap();
    let report = saved(&path, &target);
    assert_eq!(table(&report, "session").rows_recovered, 2);
    fs::remove_file(&target).unwrap();
    assert_eq!(Folder::of(folder.path()).names(), ["opencode.db", "opencode.db-wal"]);
}
