use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;

use super::*;
use crate::fixture::{self, Folder, OtherProcess, v1_session, with_suffix};

mod refused;

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

fn sample(folder: &Path) -> PathBuf {
    let path = folder.join("opencode.db");
    fixture::database(&path, &v1_session("ses_a"));
    path
}

fn titles(database: &ReadDatabase) -> Vec<String> {
    let mut statement = database.connection().prepare("SELECT title FROM session ORDER BY id").unwrap();
    statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

/// The name of the variant, as `Debug` writes it.
fn kind_name(error: &OpenError) -> String {
    let text = format!("{:?}", error.kind);
    text.split(['(', ' ', '{']).next().unwrap().to_owned()
}

fn assert_kind(outcome: Result<(), OpenError>, expected: &str) {
    let error = outcome.expect_err(expected);
    assert_eq!(kind_name(&error), expected, "{error}");
    assert!(error.kind.advice().is_some() || expected == "Io", "{error}");
    assert!(!error.to_string().contains('\n'), "{error}");
}

/// Reads as a verb does and asserts that the folder is as it was.
fn read_without_a_trace(path: &Path, expected_access: Access, expected: &[&str]) {
    let before = Folder::of(path.parent().unwrap());
    let database = ReadDatabase::open(path).unwrap();
    assert_eq!(database.access(), expected_access);
    let second = database.another().unwrap();
    assert_eq!(titles(&database), expected);
    assert_eq!(titles(&second), expected);
    second.finish().unwrap();
    database.finish().unwrap();
    assert_eq!(before, Folder::of(path.parent().unwrap()));
}

#[test]
fn a_rollback_journal_database_is_read_without_a_trace() {
    let folder = folder();
    let path = sample(folder.path());
    fixture::connect(&path).pragma_update(None, "journal_mode", "delete").unwrap();
    read_without_a_trace(&path, Access::Locked, &["title ses_a"]);
}

#[test]
fn a_log_database_without_side_files_is_read_without_a_trace() {
    let folder = folder();
    let path = sample(folder.path());
    read_without_a_trace(&path, Access::Unattended, &["title ses_a"]);
}

#[test]
fn an_empty_log_or_an_index_left_over_is_read_without_a_trace() {
    for suffixes in [&["-wal"][..], &["-shm"], &["-wal", "-shm"]] {
        let folder = folder();
        let path = sample(folder.path());
        for suffix in suffixes {
            fs::write(with_suffix(&path, suffix), b"").unwrap();
        }
        let access = if suffixes.len() == 2 { Access::SharedLog } else { Access::Unattended };
        read_without_a_trace(&path, access, &["title ses_a"]);
    }
}

#[test]
fn rows_in_the_log_of_a_running_server_are_seen_without_a_trace() {
    let folder = folder();
    let path = sample(folder.path());
    let mut server = OtherProcess::open(&path);
    assert_eq!(server.run(&v1_session("ses_b")), "ok");
    read_without_a_trace(&path, Access::SharedLog, &["title ses_a", "title ses_b"]);
    assert_eq!(server.run(&v1_session("ses_c")), "ok");
    read_without_a_trace(&path, Access::SharedLog, &["title ses_a", "title ses_b", "title ses_c"]);
}

#[test]
fn rows_in_the_log_of_a_killed_server_are_seen_without_a_trace() {
    let folder = folder();
    let path = sample(folder.path());
    let mut server = OtherProcess::open(&path);
    assert_eq!(server.run(&v1_session("ses_b")), "ok");
    server.kill();
    assert_eq!(Folder::of(folder.path()).names(), ["opencode.db", "opencode.db-shm", "opencode.db-wal"]);
    read_without_a_trace(&path, Access::SharedLog, &["title ses_a", "title ses_b"]);
}

#[test]
fn rows_in_the_log_of_a_copied_pair_are_seen_without_a_trace() {
    let folder = folder();
    let path = copied_pair(folder.path());
    read_without_a_trace(&path, Access::PrivateLog, &["title ses_a", "title ses_b"]);
}

fn copied_pair(folder: &Path) -> PathBuf {
    let path = sample(folder);
    let mut server = OtherProcess::open(&path);
    assert_eq!(server.run(&v1_session("ses_b")), "ok");
    server.kill();
    fs::remove_file(with_suffix(&path, "-shm")).unwrap();
    path
}

#[test]
fn a_log_cut_off_inside_a_frame_shows_its_whole_commits() {
    let folder = folder();
    let path = copied_pair(folder.path());
    let log = with_suffix(&path, "-wal");
    let whole = fs::read(&log).unwrap();
    fs::write(&log, &whole[..32 + 24 + 4095]).unwrap();
    read_without_a_trace(&path, Access::PrivateLog, &["title ses_a"]);
    fs::write(&log, &whole[..20]).unwrap();
    read_without_a_trace(&path, Access::PrivateLog, &["title ses_a"]);
}

#[test]
fn a_server_that_starts_while_a_killed_ones_log_is_read_does_not_tear_the_reading() {
    let folder = folder();
    let path = sample(folder.path());
    let mut killed = OtherProcess::open(&path);
    assert_eq!(killed.run(&v1_session("ses_b")), "ok");
    killed.kill();
    let database = ReadDatabase::open(&path).unwrap();
    let transaction = database.connection().unchecked_transaction().unwrap();
    assert_eq!(titles(&database).len(), 2);
    let mut server = OtherProcess::open(&path);
    assert_eq!(server.run(&v1_session("ses_c")), "ok");
    assert_eq!(server.run("PRAGMA wal_checkpoint(PASSIVE)"), "ok");
    assert_eq!(titles(&database).len(), 2);
    transaction.finish().unwrap();
    assert_eq!(titles(&database).len(), 3);
    database.finish().unwrap();
}

#[test]
fn a_writer_during_an_unlocked_reading_is_told_at_the_end() {
    for make in [sample, copied_pair] {
        let folder = folder();
        let path = make(folder.path());
        let database = ReadDatabase::open(&path).unwrap();
        let before = titles(&database);
        let mut server = OtherProcess::open(&path);
        assert_eq!(server.run(&v1_session("ses_z")), "ok");
        assert_eq!(titles(&database), before);
        assert_kind(database.another().map(drop), "ChangedWhileReading");
        assert_kind(database.finish(), "ChangedWhileReading");
        // A server that came and went leaves no log, only another file content.
        let database = ReadDatabase::open(&path).unwrap();
        assert_eq!(database.access(), Access::SharedLog);
        drop(database);
    }
    let folder = folder();
    let path = sample(folder.path());
    let database = ReadDatabase::open(&path).unwrap();
    fixture_process_writes_and_closes(&path);
    assert!(!with_suffix(&path, "-wal").exists());
    assert_kind(database.finish(), "ChangedWhileReading");
}

fn fixture_process_writes_and_closes(path: &Path) {
    let mut server = OtherProcess::open(path);
    assert_eq!(server.run(&v1_session("ses_y")), "ok");
    server.close();
}

#[test]
fn with_prefers_the_news_of_a_writer_over_the_error_of_a_torn_reading() {
    let folder = folder();
    let path = sample(folder.path());
    let outcome: Result<(), OpenError> = ReadDatabase::with(&path, |database| {
        fixture_process_writes_and_closes(&path);
        Err(OpenError { path: database.file().path().to_owned(), kind: OpenErrorKind::Damaged })
    });
    assert_kind(outcome, "ChangedWhileReading");
}

#[test]
fn every_byte_of_a_path_reaches_the_file_system() {
    let folder = folder();
    for name in [
        &b"with space"[..],
        b"new\nline",
        b"question?mode=memory",
        b"hash#tag",
        b"per%20cent",
        b"amp&vfs=x",
        b"not-utf8-\xff\xfe",
        b"semi;colon",
        b":memory:",
        "数据库".as_bytes(),
    ] {
        let inner = folder.path().join(OsStr::from_bytes(name));
        fs::create_dir(&inner).unwrap();
        let path = inner.join(OsStr::from_bytes(name));
        let plain = inner.join("plain.db");
        fixture::database(&plain, &v1_session("ses_a"));
        fs::rename(plain, &path).unwrap();
        read_without_a_trace(&path, Access::Unattended, &["title ses_a"]);
    }
}

#[test]
fn a_symlink_leads_to_the_database_and_its_log() {
    let folder = folder();
    fs::create_dir(folder.path().join("real")).unwrap();
    fs::create_dir(folder.path().join("link")).unwrap();
    let path = copied_pair(&folder.path().join("real"));
    let link = folder.path().join("link/opencode.db");
    symlink(&path, &link).unwrap();
    let before = Folder::of(&folder.path().join("real"));
    read_without_a_trace(&link, Access::PrivateLog, &["title ses_a", "title ses_b"]);
    assert_eq!(before, Folder::of(&folder.path().join("real")));
}

#[test]
fn a_reader_never_drops_the_locks_of_a_writer_in_the_same_process() {
    let folder = folder();
    let path = sample(folder.path());
    let writer = WriteDatabase::open(&path, Duration::ZERO).unwrap();
    writer.connection().execute_batch("BEGIN IMMEDIATE; UPDATE session SET title = 'held'").unwrap();
    let reader = ReadDatabase::open(&path).unwrap();
    assert_eq!(titles(&reader), ["title ses_a"]);
    reader.finish().unwrap();
    let mut other = OtherProcess::open(&path);
    assert_eq!(other.run("BEGIN IMMEDIATE"), "database is locked");
    writer.connection().execute_batch("COMMIT").unwrap();
    assert_eq!(other.run("BEGIN IMMEDIATE"), "ok");
}

#[test]
fn a_writer_waits_for_the_readers_of_its_own_process() {
    let folder = folder();
    let path = sample(folder.path());
    let reader = ReadDatabase::open(&path).unwrap();
    assert_kind(WriteDatabase::open(&path, Duration::ZERO).map(drop), "HeldForReading");
    reader.finish().unwrap();
    WriteDatabase::open(&path, Duration::ZERO).unwrap();
}

const ORDINARY: &str = "HEADWATER_TEST_ORDINARY_USER";

#[test]
fn an_ordinary_user_reads_where_nothing_may_be_written() {
    let folder = folder();
    let closed = folder.path().join("closed");
    let pair = folder.path().join("pair");
    let rollback = folder.path().join("rollback");
    for inner in [&closed, &pair, &rollback] {
        fs::create_dir(inner).unwrap();
    }
    sample(&closed);
    copied_pair(&pair);
    let path = sample(&rollback);
    fixture::connect(&path).pragma_update(None, "journal_mode", "delete").unwrap();
    for inner in [&closed, &pair, &rollback] {
        for entry in fs::read_dir(inner).unwrap() {
            fs::set_permissions(entry.unwrap().path(), fs::Permissions::from_mode(0o444)).unwrap();
        }
        fs::set_permissions(inner, fs::Permissions::from_mode(0o555)).unwrap();
    }
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    fixture::as_ordinary_user("open::tests::ordinary_user_entry", ORDINARY, folder.path());
    for inner in [&closed, &pair, &rollback] {
        fs::set_permissions(inner, fs::Permissions::from_mode(0o755)).unwrap();
    }
}

#[test]
fn ordinary_user_entry() {
    let Some(folder) = std::env::var_os(ORDINARY) else { return };
    let folder = Path::new(&folder);
    assert!(fs::write(folder.join("closed/x"), b"").is_err(), "this test needs a user without rights");
    read_without_a_trace(&folder.join("closed/opencode.db"), Access::Unattended, &["title ses_a"]);
    let both = ["title ses_a", "title ses_b"];
    read_without_a_trace(&folder.join("pair/opencode.db"), Access::PrivateLog, &both);
    read_without_a_trace(&folder.join("rollback/opencode.db"), Access::Locked, &["title ses_a"]);
    assert_kind(
        WriteDatabase::open(&folder.join("closed/opencode.db"), Duration::ZERO).map(drop),
        "PermissionDenied",
    );
}

const DENIED: &str = "HEADWATER_TEST_DENIED_USER";

#[test]
fn a_log_that_does_not_begin_as_one_is_read_as_empty_whatever_index_is_beside_it() {
    for index in [Vec::new(), vec![0x5a; 32768]] {
        let folder = folder();
        let path = sample(folder.path());
        fs::write(with_suffix(&path, "-wal"), [0x5a; 9000]).unwrap();
        fs::write(with_suffix(&path, "-shm"), index).unwrap();
        read_without_a_trace(&path, Access::PrivateLog, &["title ses_a"]);
    }
}

#[test]
fn a_writer_that_wrote_nothing_leaves_no_log() {
    let folder = folder();
    let path = sample(folder.path());
    let before = Folder::of(folder.path());
    drop(WriteDatabase::open(&path, Duration::ZERO).unwrap());
    assert_eq!(Folder::of(folder.path()), before);
}

/// Inserts a row through a [`WriteDatabase`] and closes it.
fn write_and_close(path: &Path) {
    let database = WriteDatabase::open(path, Duration::ZERO).unwrap();
    database.connection().execute_batch("INSERT INTO migration VALUES ('m', 1)").unwrap();
}

#[test]
fn writing_leaves_the_folder_as_it_was_found() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("opencode.db");
    fixture::database(&path, &v1_session("ses_a"));
    write_and_close(&path);
    assert_eq!(Folder::of(folder.path()).names(), ["opencode.db"], "nobody else has it open");
    assert!(ReadDatabase::open(&path).is_ok());

    // A log that a killed process left stays, with what is in it.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("opencode.db");
    fixture::database(&path, "");
    let mut other = OtherProcess::open(&path);
    assert_eq!(other.run(&v1_session("ses_a")), "ok");
    other.kill();
    let names = ["opencode.db", "opencode.db-shm", "opencode.db-wal"];
    assert_eq!(Folder::of(folder.path()).names(), names);
    write_and_close(&path);
    assert_eq!(Folder::of(folder.path()).names(), names);
}

#[test]
fn writing_leaves_the_log_of_another_process_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("opencode.db");
    fixture::database(&path, "");
    let writer = WriteDatabase::open(&path, Duration::ZERO).unwrap();
    writer.connection().execute_batch("INSERT INTO migration VALUES ('m', 1)").unwrap();
    // It comes after the writer has found no log.
    let mut other = OtherProcess::open(&path);
    assert_eq!(other.run("SELECT count(*) FROM session"), "ok");
    drop(writer);
    let names = ["opencode.db", "opencode.db-shm", "opencode.db-wal"];
    assert_eq!(Folder::of(folder.path()).names(), names);
    assert_eq!(other.run(&v1_session("ses_b")), "ok");
    other.close();
    let database = ReadDatabase::open(&path).unwrap();
    let sql = "SELECT (SELECT count(*) FROM migration) + (SELECT count(*) FROM session)";
    assert_eq!(database.connection().query_row(sql, [], |row| row.get::<_, u32>(0)).unwrap(), 2);
}
