use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;

use super::*;
use crate::fixture::{self, Folder, OtherProcess, v1_session, with_suffix};

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
fn a_locked_database_is_told_and_left_alone() {
    let folder = folder();
    let path = sample(folder.path());
    let mut server = OtherProcess::open(&path);
    assert_eq!(server.run("PRAGMA locking_mode=EXCLUSIVE"), "ok");
    assert_eq!(server.run("BEGIN EXCLUSIVE"), "ok");
    let names = Folder::of(folder.path()).names();
    assert_kind(ReadDatabase::open_within(&path, Duration::ZERO).map(drop), "Busy");
    assert_kind(WriteDatabase::open(&path, Duration::ZERO).map(drop), "Busy");
    assert_eq!(Folder::of(folder.path()).names(), names);
    assert_eq!(server.run(&v1_session("ses_b")), "ok");
    assert_eq!(server.run("COMMIT"), "ok");
    // Still exclusive, with frames in the log and no index beside it.
    assert_kind(ReadDatabase::open_within(&path, Duration::ZERO).map(drop), "Busy");
}

#[test]
fn an_interrupted_write_is_told_and_left_alone() {
    let folder = folder();
    let path = sample(folder.path());
    fixture::connect(&path).pragma_update(None, "journal_mode", "delete").unwrap();
    let mut writer = OtherProcess::open(&path);
    assert_eq!(writer.run("PRAGMA cache_size=1"), "ok");
    assert_eq!(writer.run("BEGIN IMMEDIATE"), "ok");
    assert_eq!(
        writer.run(
            "INSERT INTO part SELECT 'p' || value, 'msg_ses_a', 'ses_a', 1, 1, hex(zeroblob(4000)) FROM \
             (WITH RECURSIVE n(value) AS (VALUES (1) UNION ALL SELECT value + 1 FROM n WHERE value < 500) SELECT * FROM n)"
        ),
        "ok"
    );
    writer.kill();
    assert!(fs::metadata(with_suffix(&path, "-journal")).unwrap().len() > 0);
    refused(&path, "NeedsRecovery");
    let mut bytes = fs::read(&path).unwrap();
    (bytes[18], bytes[19]) = (2, 2);
    fs::write(&path, bytes).unwrap();
    refused(&path, "NeedsRecovery");
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

/// Neither a reader nor a writer opens `path`, and the folder stays as it was.
fn refused(path: &Path, expected: &str) {
    let folder = path.parent().filter(|folder| folder.is_dir());
    let before = folder.map(Folder::of);
    assert_kind(ReadDatabase::open_within(path, Duration::ZERO).map(drop), expected);
    assert_kind(WriteDatabase::open(path, Duration::ZERO).map(drop), expected);
    assert_eq!(before, folder.map(Folder::of), "{expected}");
}

#[test]
fn what_is_not_a_database_is_refused_and_left_alone() {
    let folder = folder();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("folder")).unwrap();
    fs::write(at("empty"), b"").unwrap();
    fs::write(at("short"), b"SQLite format 3").unwrap();
    fs::write(at("text"), "not a database ".repeat(1000)).unwrap();
    symlink(at("loop_b"), at("loop_a")).unwrap();
    symlink(at("loop_a"), at("loop_b")).unwrap();
    symlink(at("nowhere"), at("dangling")).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        at("pipe"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
        0,
    )
    .unwrap();
    symlink(at("pipe"), at("to_pipe")).unwrap();
    let socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
    for (path, expected) in [
        (at("missing"), "NotFound"),
        (at("missing/deeper"), "NotFound"),
        (at("text/below_a_file"), "NotFound"),
        (at("dangling"), "NotFound"),
        (PathBuf::from(":memory:"), "InMemory"),
        (PathBuf::new(), "NotFound"),
        (at("folder"), "Directory"),
        (at("empty"), "Empty"),
        (at("short"), "NotADatabase"),
        (at("text"), "NotADatabase"),
        (at("loop_a"), "SymlinkLoop"),
        (at("pipe"), "NotAFile"),
        (at("to_pipe"), "NotAFile"),
        (at("socket"), "NotAFile"),
        (PathBuf::from("/dev/null"), "NotAFile"),
        (at("nul\0byte"), "InvalidPath"),
        (at(&"x".repeat(300)), "InvalidPath"),
        (at(&"y/".repeat(3000)), "NotFound"),
    ] {
        refused(&path, expected);
    }
    drop(socket);
}

#[test]
fn a_path_longer_than_sqlite_opens_is_told_so() {
    let folder = folder();
    let mut deep = folder.path().to_owned();
    while deep.as_os_str().len() < PATH_BYTES_MAX {
        deep.push("d".repeat(100));
    }
    fs::create_dir_all(&deep).unwrap();
    let near = sample(folder.path());
    let path = deep.join("opencode.db");
    fs::rename(near, &path).unwrap();
    refused(&path, "PathTooLong");
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
fn other_schemas_are_refused_with_what_was_found() {
    let folder = folder();
    let path = folder.path().join("other.db");
    let connection = fixture::connect(&path);
    connection.execute_batch("CREATE TABLE contacts (name); CREATE TABLE phones (number);").unwrap();
    connection.close().unwrap();
    refused(&path, "WrongSchema");
    let error = ReadDatabase::open(&path).unwrap_err().to_string();
    assert!(error.ends_with("no OpenCode tables in this database (2 tables: contacts, phones)"), "{error}");

    let path = folder.path().join("future.db");
    let connection = fixture::connect(&path);
    connection
        .execute_batch(
            "CREATE TABLE session (id); CREATE TABLE message (id, chat_id, body); \
             CREATE TABLE part (id, message_id, session_id, data);",
        )
        .unwrap();
    connection.close().unwrap();
    refused(&path, "UnknownLayout");
    let error = ReadDatabase::open(&path).unwrap_err().to_string();
    assert!(error.ends_with("message.session_id, message.data missing"), "{error}");
}

#[test]
fn a_hostile_schema_is_refused_before_it_fills_the_memory() {
    let folder = folder();
    let many = folder.path().join("many.db");
    let connection = fixture::connect(&many);
    connection.execute_batch("PRAGMA synchronous=OFF; BEGIN").unwrap();
    for number in 0..5_000 {
        connection.execute_batch(&format!("CREATE TABLE t{number} (a)")).unwrap();
    }
    connection.execute_batch("COMMIT").unwrap();
    connection.close().unwrap();
    refused(&many, "SchemaTooLarge");

    let long = folder.path().join("long.db");
    let connection = fixture::connect(&long);
    connection.execute_batch(&format!("CREATE TABLE t (a /* {} */)", "x".repeat(1 << 20))).unwrap();
    connection.close().unwrap();
    refused(&long, "SchemaTooLarge");
}

#[test]
fn damage_of_the_schema_is_told_and_left_alone() {
    let folder = folder();
    let path = sample(folder.path());
    let mut bytes = fs::read(&path).unwrap();
    bytes[100..2000].fill(0xA5);
    fs::write(&path, bytes).unwrap();
    refused(&path, "Damaged");
}

#[test]
fn a_file_deleted_or_replaced_before_the_connection_is_told() {
    let folder = folder();
    let path = sample(folder.path());
    let found = DatabaseFile::find(&path).unwrap();
    fs::rename(&path, folder.path().join("away.db")).unwrap();
    let before = Folder::of(folder.path());
    assert_kind(ReadDatabase::from_file(found.clone(), Duration::ZERO).map(drop), "Replaced");
    assert_eq!(before, Folder::of(folder.path()));
    sample(folder.path());
    let before = Folder::of(folder.path());
    assert_kind(ReadDatabase::from_file(found, Duration::ZERO).map(drop), "Replaced");
    assert_eq!(before, Folder::of(folder.path()));
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

#[test]
fn an_ordinary_user_is_told_what_access_is_missing() {
    let folder = folder();
    let make = |name: &str| {
        let inner = folder.path().join(name);
        fs::create_dir(&inner).unwrap();
        inner
    };
    let mode = |path: PathBuf, bits| fs::set_permissions(path, fs::Permissions::from_mode(bits)).unwrap();
    mode(folder.path().to_owned(), 0o755);
    mode(sample(&make("unreadable")), 0o000);
    sample(&make("unsearchable"));
    mode(folder.path().join("unsearchable"), 0o000);
    mode(sample(&make("frozen")), 0o666);
    mode(folder.path().join("frozen"), 0o555);
    let path = copied_pair(&make("log"));
    mode(path.clone(), 0o666);
    mode(with_suffix(&path, "-wal"), 0o000);
    let path = sample(&make("index"));
    let mut server = OtherProcess::open(&path);
    assert_eq!(server.run(&v1_session("ses_b")), "ok");
    mode(with_suffix(&path, "-shm"), 0o000);
    fixture::as_ordinary_user("open::tests::denied_user_entry", DENIED, folder.path());
    mode(folder.path().join("unsearchable"), 0o755);
    mode(folder.path().join("frozen"), 0o755);
}

const DENIED: &str = "HEADWATER_TEST_DENIED_USER";

#[test]
fn denied_user_entry() {
    let Some(folder) = std::env::var_os(DENIED) else { return };
    let at = |name: &str| Path::new(&folder).join(name).join("opencode.db");
    let read = |name| ReadDatabase::open_within(&at(name), Duration::ZERO).map(drop);
    assert_kind(read("unreadable"), "PermissionDenied");
    assert_kind(read("unsearchable"), "PermissionDenied");
    assert_kind(read("log"), "SideFileDenied");
    assert_kind(read("index"), "SideFileDenied");
    read("frozen").unwrap();
    assert_kind(WriteDatabase::open(&at("frozen"), Duration::ZERO).map(drop), "ReadOnlyFolder");
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
