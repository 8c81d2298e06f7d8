//! Who has a database, its log or the log's index open, as far as the system tells.
//!
//! Linux shows it in `/proc`: open descriptors, mappings and locks. A process list is never proof that nobody is there (P10): another
//! user's processes are hidden, and one may start at any moment. It serves to name holders to a person.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;

use crate::locks::{HeldLock, KernelLock};
use crate::open::{DatabaseFile, FileId, FileState, OpenError, OpenErrorKind};

#[cfg(target_os = "linux")]
mod proc;

/// A process that holds a database.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Holder {
    /// Process id, as this process sees it.
    pub pid: u32,
    /// Name of the program: base name of the executable, else the kernel's short name. Never arguments, which may carry secrets.
    pub command: String,
    /// What it holds, sorted.
    pub files: Vec<HeldFile>,
    /// Whether one of these was deleted while the process holds it: what it writes there is lost when it ends.
    pub holds_deleted: bool,
    /// Locks it had at the moment of looking, sorted.
    pub locks: Vec<HeldLock>,
}

impl Holder {
    /// Whether it reads an older state at this moment, so that the log cannot be reset.
    pub fn pins_log(&self) -> bool {
        self.locks.contains(&HeldLock::ReadsLog)
    }
}

/// Which file of a database is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum HeldFile {
    /// The database itself.
    Database,
    /// The write-ahead log (`-wal`).
    Log,
    /// The index of the log (`-shm`).
    Index,
}

/// How much of the system could be looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "state")]
pub enum Coverage {
    /// Every process of the system.
    Complete,
    /// Some processes belong to other users and hide what they hold.
    Partial {
        /// How many.
        hidden_processes: u32,
    },
    /// This system shows nothing.
    Unknown,
}

/// Everybody but this process who holds a database.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Holders {
    /// Sorted by process id.
    pub holders: Vec<Holder>,
    /// How far the list can be trusted.
    pub coverage: Coverage,
    /// Whether every process was looked at.
    pub complete: bool,
}

/// Lists the processes that hold the database at `path`. Opens none of its files.
///
/// # Errors
/// [`OpenError`] where nothing is at the path.
pub fn of(path: &Path) -> Result<Holders, OpenError> {
    let fail = |kind| OpenError { path: path.to_owned(), kind };
    let resolved = std::fs::canonicalize(path).map_err(|error| fail(error.into()))?;
    let targets = Targets::of(&resolved).map_err(fail)?;
    let (found, coverage) = seek(&targets);
    let locks = KernelLock::all();
    let own = std::process::id();
    let holders = found
        .into_iter()
        .filter(|(pid, _)| *pid != own)
        .map(|(pid, held)| targets.holder(pid, held, &locks))
        .collect();
    Ok(Holders { holders, coverage, complete: coverage == Coverage::Complete })
}

impl DatabaseFile {
    /// Who else holds this database; empty where the system does not tell.
    pub fn holders(&self) -> Vec<Holder> {
        of(self.path()).map_or_else(|_| Vec::new(), |found| found.holders)
    }
}

/// What to look for.
#[derive(Debug)]
struct Targets {
    /// Names as the kernel writes them in links and mappings.
    names: [(HeldFile, String); 3],
    ids: BTreeMap<FileId, HeldFile>,
}

impl Targets {
    fn of(path: &Path) -> Result<Self, OpenErrorKind> {
        let suffixes = [(HeldFile::Database, ""), (HeldFile::Log, "-wal"), (HeldFile::Index, "-shm")];
        let mut ids = BTreeMap::new();
        let names = suffixes.map(|(file, suffix)| {
            let mut name = path.as_os_str().to_owned();
            name.push(suffix);
            (file, name)
        });
        for (file, name) in &names {
            if let Some(state) = FileState::of(Path::new(name))? {
                ids.insert(state.id, *file);
            }
        }
        let names = names.map(|(file, name)| (file, name.to_string_lossy().into_owned()));
        Ok(Self { names, ids })
    }

    /// Which file a name marked as deleted was.
    fn deleted(&self, name: &str) -> Option<HeldFile> {
        let name = name.strip_suffix(" (deleted)")?;
        self.names.iter().find(|(_, known)| known == name).map(|(file, _)| *file)
    }

    fn holder(&self, pid: u32, held: Held, locks: &[KernelLock]) -> Holder {
        let mut meanings: Vec<HeldLock> = locks
            .iter()
            .filter(|lock| lock.pid == pid)
            .filter_map(|lock| {
                let (_, file) = self.ids.iter().find(|(id, _)| lock.is_on(**id))?;
                match file {
                    HeldFile::Database => lock.on_database(),
                    HeldFile::Index => lock.on_index(),
                    HeldFile::Log => None,
                }
            })
            .collect();
        meanings.sort_unstable();
        meanings.dedup();
        let mut files = held.files;
        files.sort_unstable();
        files.dedup();
        Holder { pid, command: held.command, files, holds_deleted: held.deleted, locks: meanings }
    }
}

/// What one process was seen to hold.
#[derive(Clone, Debug, Default)]
struct Held {
    command: String,
    files: Vec<HeldFile>,
    deleted: bool,
}

#[cfg(target_os = "linux")]
fn seek(targets: &Targets) -> (BTreeMap<u32, Held>, Coverage) {
    proc::seek(targets)
}

#[cfg(not(target_os = "linux"))]
fn seek(_: &Targets) -> (BTreeMap<u32, Held>, Coverage) {
    (BTreeMap::new(), Coverage::Unknown)
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::fs;

    use super::*;
    use crate::fixture::{self, OtherProcess, v1_session, with_suffix};

    fn sample() -> (tempfile::TempDir, std::path::PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new\nline (deleted).db");
        fixture::database(&path, &v1_session("ses_a"));
        (folder, path)
    }

    #[test]
    fn a_process_that_reads_is_named_with_what_it_holds_and_pins() {
        let (_folder, path) = sample();
        assert_eq!(of(&path).unwrap().holders, []);
        let mut server = OtherProcess::open(&path);
        assert_eq!(server.run(&v1_session("ses_b")), "ok");
        let found = of(&path).unwrap().holders;
        assert_eq!(found.iter().map(|holder| holder.pid).collect::<Vec<_>>(), [server.pid()]);
        assert!(found[0].command.starts_with("headwater_upkee"), "{}", found[0].command);
        assert_eq!(found[0].files, [HeldFile::Database, HeldFile::Log, HeldFile::Index]);
        assert_eq!(found[0].locks, [HeldLock::Attached]);
        assert!(!found[0].pins_log());
        assert_eq!(server.run("BEGIN"), "ok");
        assert_eq!(server.run("CREATE TEMP TABLE kept AS SELECT * FROM session"), "ok");
        assert!(of(&path).unwrap().holders[0].pins_log());
        assert_eq!(server.run("COMMIT"), "ok");
        assert!(!of(&path).unwrap().holders[0].pins_log());
        server.close();
        assert_eq!(of(&path).unwrap().holders, []);
    }

    #[test]
    fn a_log_that_was_deleted_under_a_process_is_told() {
        let (_folder, path) = sample();
        let mut server = OtherProcess::open(&path);
        assert_eq!(server.run(&v1_session("ses_b")), "ok");
        assert!(!of(&path).unwrap().holders[0].holds_deleted);
        fs::remove_file(with_suffix(&path, "-wal")).unwrap();
        let holder = of(&path).unwrap().holders.remove(0);
        assert!(holder.holds_deleted);
        assert_eq!(holder.files, [HeldFile::Database, HeldFile::Log, HeldFile::Index]);
    }

    #[test]
    fn this_process_is_not_in_its_own_list() {
        let (_folder, path) = sample();
        let open = crate::ReadDatabase::open(&path).unwrap();
        assert_eq!(open.file().holders(), []);
        open.finish().unwrap();
    }

    const HIDDEN: &str = "HEADWATER_TEST_HIDDEN";

    #[test]
    fn processes_that_another_user_may_not_see_make_the_list_partial() {
        let (folder, path) = sample();
        let mut server = OtherProcess::open(&path);
        assert_eq!(server.run(&v1_session("ses_b")), "ok");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(folder.path(), mode).unwrap();
        if rustix::process::geteuid().is_root() {
            fixture::as_ordinary_user("holders::tests::hidden_entry", HIDDEN, &path);
        }
    }

    #[test]
    fn hidden_entry() {
        let Some(path) = std::env::var_os(HIDDEN) else { return };
        let found = of(Path::new(&path)).unwrap();
        assert_eq!(found.holders, []);
        assert!(!found.complete);
        assert!(matches!(found.coverage, Coverage::Partial { hidden_processes } if hidden_processes >= 1));
    }

    #[test]
    fn nothing_at_the_path_is_an_error() {
        assert!(matches!(of(Path::new("/nowhere/x.db")).unwrap_err().kind, OpenErrorKind::NotFound));
    }
}
