//! What cannot be opened, and what is said about it.

use super::*;

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
    fixture::as_ordinary_user("open::tests::refused::denied_user_entry", DENIED, folder.path());
    mode(folder.path().join("unsearchable"), 0o755);
    mode(folder.path().join("frozen"), 0o755);
}

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

#[test]
fn names_beside_the_database_that_are_no_files_are_refused_and_not_opened() {
    for suffix in ["-wal", "-shm", "-journal"] {
        let folder = folder();
        let path = sample(folder.path());
        let beside = with_suffix(&path, suffix);
        let mkfifo = std::process::Command::new("mkfifo").arg(&beside).status().unwrap();
        assert!(mkfifo.success());
        assert_kind(ReadDatabase::open(&path).map(drop), "SideFileNotAFile");
        assert_kind(WriteDatabase::open(&path, Duration::ZERO).map(drop), "SideFileNotAFile");
        assert_kind(DatabaseFile::find_damaged(&path, true).map(drop), "SideFileNotAFile");
        fs::remove_file(&beside).unwrap();
        fs::create_dir(&beside).unwrap();
        assert_kind(ReadDatabase::open(&path).map(drop), "SideFileNotAFile");
    }
}

#[test]
fn another_encoding_than_utf8_is_refused() {
    let folder = folder();
    let path = folder.path().join("opencode.db");
    fixture::connect(&path)
        .execute_batch(&format!("PRAGMA encoding = 'UTF-16'; {}", fixture::SCHEMA))
        .unwrap();
    refused(&path, "Encoding");
}

#[test]
fn a_format_newer_than_sqlite_knows_is_told() {
    let folder = folder();
    let path = sample(folder.path());
    // File format write version, which forbids writing, and read version, which forbids reading too.
    for (offset, is_readable) in [(18, true), (19, false)] {
        let mut bytes = fs::read(&path).unwrap();
        bytes[offset] = 3;
        fs::write(&path, &bytes).unwrap();
        if is_readable {
            ReadDatabase::open(&path).unwrap().finish().unwrap();
        } else {
            refused(&path, "NewerFormat");
        }
        let before = Folder::of(folder.path());
        assert_kind(WriteDatabase::open(&path, Duration::ZERO).map(drop), "NewerFormat");
        let vacuum =
            crate::vacuum::run(&path, crate::vacuum::VacuumOptions::default(), &crate::observer::Unobserved);
        let refusal = vacuum.unwrap_err().kind;
        assert!(
            matches!(refusal, crate::rebuild::RebuildErrorKind::Open(OpenErrorKind::NewerFormat)),
            "{refusal}"
        );
        assert_eq!(Folder::of(folder.path()).names(), before.names());
    }
}
