use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use super::{binary, run};
use crate::program;
use crate::random::filler;

/// The folders of a private OpenCode. They are removed on drop.
#[derive(Debug)]
pub struct Home {
    root: TempDir,
}

impl Home {
    /// Makes the folders and a git project with one commit and a file `sample.txt`.
    pub(super) fn create() -> Self {
        let root = tempfile::Builder::new()
            .prefix("headwater-opencode-")
            .tempdir()
            .expect("make a temporary folder");
        let home = Self { root };
        for folder in ["home", "data", "config/opencode", "state", "cache", "tmp", "project"] {
            fs::create_dir_all(home.path(folder)).expect("make a folder of the private home");
        }
        fs::write(home.project().join("sample.txt"), filler(900, "sample")).expect("write the sample file");
        git(&home.project(), &["init", "--quiet", "--initial-branch=main"]);
        let author = ["-c", "user.name=test", "-c", "user.email=test@example.invalid"];
        git(&home.project(), &[&author[..], &["commit", "--quiet", "--allow-empty", "-m", "start"]].concat());
        home
    }

    /// A path under the root.
    pub fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// The project that the server works in. Its first commit, and so its id, is always the same.
    pub fn project(&self) -> PathBuf {
        self.path("project")
    }

    /// `$XDG_DATA_HOME`: OpenCode's folder is `opencode` in it.
    pub fn data(&self) -> PathBuf {
        self.path("data")
    }

    /// The database file.
    pub fn database(&self) -> PathBuf {
        self.path("data/opencode/opencode.db")
    }

    pub(super) fn write_config(&self, config: &Value) {
        fs::write(self.path("config/opencode/opencode.json"), config.to_string())
            .expect("write opencode.json");
    }

    /// A command of OpenCode in this home. It sees nothing else of the environment than `PATH`.
    ///
    /// `PWD` is set because OpenCode trusts it more than the real working directory (fact A1).
    pub fn command(&self) -> Command {
        let mut command = Command::new(binary());
        command.env_clear().current_dir(self.project()).stdin(Stdio::null());
        command.envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
        for (name, folder) in [
            ("PWD", "project"),
            ("HOME", "home"),
            ("TMPDIR", "tmp"),
            ("XDG_DATA_HOME", "data"),
            ("XDG_CONFIG_HOME", "config"),
            ("XDG_STATE_HOME", "state"),
            ("XDG_CACHE_HOME", "cache"),
        ] {
            command.env(name, self.path(folder));
        }
        for name in
            ["OPENCODE_DISABLE_AUTOUPDATE", "OPENCODE_DISABLE_MODELS_FETCH", "OPENCODE_DISABLE_LSP_DOWNLOAD"]
        {
            command.env(name, "1");
        }
        command
    }

    pub(super) fn export(&self, session: &str) -> Value {
        let path = self.path("tmp").join(format!("{session}.json"));
        let file = File::create(&path).expect("create the export's file");
        let output =
            self.command().args(["export", session]).stdout(file).output().expect("start opencode export");
        assert!(output.status.success(), "export: {}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_reader(File::open(&path).expect("open the export")).expect("read the export")
    }

    /// What the servers of this home have printed.
    pub fn server_log(&self) -> String {
        fs::read_to_string(self.server_log_path()).unwrap_or_default()
    }

    pub(super) fn server_log_path(&self) -> PathBuf {
        self.path("serve.log")
    }

    /// The root folder.
    pub fn root(&self) -> &Path {
        self.root.path()
    }
}

/// Runs git without anybody's configuration, and with a fixed date, so that commits have the same hash everywhere.
fn git(folder: &Path, arguments: &[&str]) {
    run(Command::new(program::git()).args(arguments).current_dir(folder).envs([
        ("GIT_CONFIG_GLOBAL", "/dev/null"),
        ("GIT_CONFIG_SYSTEM", "/dev/null"),
        ("GIT_AUTHOR_DATE", "2026-01-01T00:00:00Z"),
        ("GIT_COMMITTER_DATE", "2026-01-01T00:00:00Z"),
    ]));
}
