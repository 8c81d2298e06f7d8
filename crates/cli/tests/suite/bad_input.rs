//! What is no healthy OpenCode database: one clear error with the right exit status from every verb, and not a byte changed.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use headwater_testkit::fixture::{Fixture, Layout};
use headwater_testkit::program::find;
use headwater_testkit::sqlite3::Shell;

use crate::folder::Contents;
use crate::program::{self, Run, run};
use crate::scene::{self, CANARY};
use crate::verbs::{READING, VERBS};

/// Something at the path of a database.
struct Scene {
    name: &'static str,
    status: i32,
    code: &'static str,
    /// Makes it in a folder and answers the path for `--db`.
    make: fn(&Path) -> PathBuf,
}

const SCENES: [Scene; 11] = [
    Scene { name: "nothing", status: 1, code: "not-found", make: |folder| folder.join("absent.db") },
    Scene { name: "a folder", status: 5, code: "directory", make: |folder| make_folder(folder) },
    Scene { name: "an empty file", status: 5, code: "empty-file", make: |folder| file(folder, b"") },
    Scene { name: "a short text", status: 5, code: "not-a-database", make: |folder| file(folder, b"short") },
    Scene {
        name: "a long text",
        status: 5,
        code: "not-a-database",
        make: |folder| file(folder, &[b'x'; 9000]),
    },
    Scene {
        name: "an encrypted file",
        status: 5,
        code: "not-a-database",
        make: |folder| file(folder, &noise()),
    },
    Scene { name: "another program's database", status: 5, code: "wrong-schema", make: other_schema },
    Scene { name: "a damaged schema", status: 5, code: "damaged", make: damaged_schema },
    Scene { name: "a pipe", status: 5, code: "not-a-file", make: pipe },
    Scene { name: "a dangling link", status: 1, code: "not-found", make: |folder| link(folder, "absent.db") },
    Scene {
        name: "a link to itself",
        status: 1,
        code: "symlink-loop",
        make: |folder| link(folder, "link.db"),
    },
];

#[test]
fn every_verb_refuses_what_is_no_database_with_one_clear_error() {
    for scene in &SCENES {
        for verb in VERBS {
            let folder = tempfile::tempdir().unwrap();
            let database = (scene.make)(folder.path());
            let before = Contents::of(folder.path());
            let refused = run(folder.path(), verb.with(&database));
            let name = format!("{} on {}: {refused:?}", verb.name, scene.name);
            assert_eq!(refused.status, scene.status, "{name}");
            assert_one_error(&refused, &name);
            let json = run(folder.path(), verb.with(&database).chain([("--json").into()]));
            assert_eq!(json.json()["error"]["code"], scene.code, "{name}");
            assert_eq!(Contents::of(folder.path()), before, "{name}");
        }
    }
}

#[test]
fn a_database_that_may_not_be_read_is_named_with_the_way_out() {
    let folder = open_folder();
    let database = healthy(folder.path());
    fs::set_permissions(&database, fs::Permissions::from_mode(0o000)).unwrap();
    for verb in VERBS {
        let before = Contents::of(folder.path());
        let refused = run_as_nobody(folder.path(), verb.with(&database));
        assert_eq!(refused.status, 1, "{}: {refused:?}", verb.name);
        assert_one_error(&refused, verb.name);
        assert!(refused.stderr.contains("permission denied"), "{}: {}", verb.name, refused.stderr);
        assert_eq!(Contents::of(folder.path()), before, "{}", verb.name);
    }
}

#[test]
fn reading_works_in_a_folder_that_cannot_be_written() {
    let folder = open_folder();
    let database = healthy(folder.path());
    fs::set_permissions(&database, fs::Permissions::from_mode(0o444)).unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o555)).unwrap();
    let before = Contents::of(folder.path());
    for verb in READING {
        let done = run_as_nobody(folder.path(), verb.with(&database));
        assert_eq!(done.status, verb.status_without_sessions, "{}: {done:?}", verb.name);
        assert_eq!(Contents::of(folder.path()), before, "{}", verb.name);
    }
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn odd_paths_and_links_are_followed() {
    let folder = tempfile::tempdir().unwrap();
    let odd = folder.path().join("a b\nc?%41#é");
    fs::create_dir(&odd).unwrap();
    let database = healthy(&odd);
    symlink(&database, folder.path().join("link.db")).unwrap();
    let before = Contents::of(folder.path());
    for verb in READING {
        for path in [&database, &folder.path().join("link.db")] {
            let done = run(folder.path(), verb.with(path));
            assert_eq!(done.status, verb.status_without_sessions, "{}: {done:?}", verb.name);
            assert!(!done.stdout.contains('\u{7}'), "{}", verb.name);
        }
        assert_eq!(Contents::of(folder.path()), before, "{}", verb.name);
    }
}

#[test]
fn an_exclusive_lock_is_reported_as_busy() {
    let folder = tempfile::tempdir().unwrap();
    let database = healthy(folder.path());
    let mut shell = Shell::open(&database);
    shell.run("PRAGMA journal_mode=delete; PRAGMA locking_mode=exclusive; BEGIN EXCLUSIVE;");
    let before = fs::read(&database).unwrap();
    for verb in READING {
        let refused = run(folder.path(), verb.with(&database));
        assert_eq!(refused.status, 3, "{}: {refused:?}", verb.name);
        assert_one_error(&refused, verb.name);
    }
    assert!(fs::read(&database).unwrap() == before);
}

#[test]
fn rows_that_are_not_json_or_not_utf8_stop_no_reading_verb() {
    let home = tempfile::tempdir().unwrap();
    let path = scene::database(home.path());
    let db = Fixture::reopen(&path);
    for (number, value) in
        ["'{'", "CAST(x'7bff' AS TEXT)", "x'00ff'", "5", "''", "'[1,2]'", "'{\"type\":7}'"].iter().enumerate()
    {
        db.sql(&format!("INSERT INTO part VALUES ('prt_odd_{number}', 'msg_a_2', 'ses_a', 1, 1, {value})"));
        db.sql(&format!("INSERT INTO event VALUES ('evt_odd_{number}', 'ses_a', {}, 'message.part.updated.1', {value}, 0)", 100 + number));
        db.sql(&format!(
            "INSERT INTO session_message VALUES ('msg_odd_{number}', 'ses_v2', 'assistant', {}, 1, 1, {value})",
            100 + number
        ));
    }
    db.sql("UPDATE message SET data = CAST(x'ff' AS TEXT) WHERE id = 'msg_c_1'");
    db.sql(
        "UPDATE session SET title = CAST(x'41ff1b5b' AS TEXT), time_updated = 9e99 WHERE id = 'ses_child'",
    );
    db.close();
    let before = Contents::of(home.path());
    for (arguments, status) in [
        (&["stats"][..], 0),
        (&["stats", "--exact"], 0),
        (&["sessions"], 0),
        (&["show", "ses_a", "--technical"], 0),
        (&["show", "ses_child"], 0),
        (&["show", "ses_v2", "--full"], 0),
        (&["search", "uploads", "--technical", "--events"], 0),
        (&["preview", "--class", "events", "--class", "technical", "--newest-turn"], 0),
        (&["preview", "--message", "msg_a_2"], 3),
        (&["check"], 5),
        (&["retention", "plan"], 0),
    ] {
        for json in [&["--db", "opencode.db"][..], &["--db", "opencode.db", "--json"]] {
            let done = run(home.path(), arguments.iter().chain(json));
            assert_eq!(done.status, status, "{arguments:?}: {done:?}");
            assert!(!done.stdout.contains('\u{1b}'), "{arguments:?}");
            assert!(!done.stderr.contains(CANARY), "{arguments:?}: {}", done.stderr);
        }
        assert_eq!(Contents::of(home.path()), before, "{arguments:?}");
    }
}

fn assert_one_error(refused: &Run, name: &str) {
    let starting = |word: &str| refused.stderr.lines().filter(|line| line.starts_with(word)).count();
    assert_eq!([starting("error: "), starting("hint: ")], [1, 1], "{name}");
    assert_eq!(refused.stderr.lines().count(), 2, "{name}");
}

/// A database without sessions.
fn healthy(folder: &Path) -> PathBuf {
    Fixture::create(folder.join("opencode.db"), Layout::V1).close()
}

fn file(folder: &Path, bytes: &[u8]) -> PathBuf {
    let path = folder.join("file.db");
    fs::write(&path, bytes).unwrap();
    path
}

fn make_folder(folder: &Path) -> PathBuf {
    let path = folder.join("folder.db");
    fs::create_dir(&path).unwrap();
    path
}

fn link(folder: &Path, target: &str) -> PathBuf {
    let path = folder.join("link.db");
    symlink(target, &path).unwrap();
    path
}

fn pipe(folder: &Path) -> PathBuf {
    let path = folder.join("pipe.db");
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    path
}

/// Bytes without a pattern, as a cipher gives them.
fn noise() -> Vec<u8> {
    let mut state = 1_u32;
    let mut byte = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_be_bytes()[0]
    };
    (0..8192).map(|_| byte()).collect()
}

fn other_schema(folder: &Path) -> PathBuf {
    let path = folder.join("other.db");
    Shell::open(&path)
        .run("CREATE TABLE bookmarks (url); INSERT INTO bookmarks VALUES ('https://example.org/');");
    path
}

fn damaged_schema(folder: &Path) -> PathBuf {
    let path = healthy(folder);
    let mut bytes = fs::read(&path).unwrap();
    // The header of the b-tree that holds the schema.
    bytes[100..112].fill(0xff);
    fs::write(&path, bytes).unwrap();
    path
}

/// A folder that every user may enter.
pub(crate) fn open_folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    folder
}

/// Runs the program without the rights of root: where the tests run as root, as the user nobody.
pub(crate) fn run_as_nobody<S: AsRef<std::ffi::OsStr>>(
    home: &Path,
    arguments: impl IntoIterator<Item = S>,
) -> Run {
    if fs::metadata("/proc/self").is_ok_and(|found| std::os::unix::fs::MetadataExt::uid(&found) != 0) {
        return run(home, arguments);
    }
    // Folders above the program may be closed to others, so the program is given a place of its own.
    let place = open_folder();
    let copy = place.path().join("headwater");
    fs::copy(program::path(), &copy).unwrap();
    let mut command = Command::new(find("setpriv", "package util-linux on Debian and Ubuntu"));
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--"]).arg(copy).args(arguments);
    command.env_clear().env("HOME", home).env("TZ", "UTC").env("PATH", "/usr/bin:/bin").current_dir(home);
    command.output().unwrap().into()
}
