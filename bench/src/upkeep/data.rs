//! The databases that are measured, written once and kept.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use headwater_testkit::large;

/// Part of every name: a change of the generator or its options needs a new one.
const GENERATION: u32 = 1;

/// Size of the row of the giant database: the largest that was reported.
const GIANT_BYTES: usize = 461 << 20;

const GIB: f64 = 1_073_741_824.0;

/// Where the databases are.
pub(super) struct Data {
    folder: PathBuf,
    /// The reference mix.
    pub(super) main: PathBuf,
    gib: f64,
}

impl Data {
    /// Makes the main database where it is not there yet.
    pub(super) fn prepare(gib: f64) -> Result<Self> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/bench-data");
        fs::create_dir_all(&folder)?;
        let folder = folder.canonicalize()?;
        let mut data = Self { folder, main: PathBuf::new(), gib };
        data.main = data.made("main", &large::Options::of_bytes(bytes(gib)))?;
        warm(&data.main)?;
        Ok(data)
    }

    /// 2.x rows only, a quarter of the size.
    pub(super) fn only_v2(&self) -> Result<PathBuf> {
        let options = large::Options {
            event_share: 0.0,
            v2_share: 1.0,
            ..large::Options::of_bytes(bytes(self.gib / 4.0))
        };
        let path = self.made("v2", &options)?;
        warm(&path)?;
        Ok(path)
    }

    /// A small database with a message of 461 MiB and three copies of it as events.
    pub(super) fn giant(&self) -> Result<PathBuf> {
        self.made("giant", &large::Options { giant_bytes: GIANT_BYTES, ..large::Options::of_bytes(64 << 20) })
    }

    /// A copy of the main database that may be changed; gone with the guard.
    pub(super) fn copy(&self) -> Result<Copy> {
        let folder = tempfile::tempdir_in(&self.folder)?;
        let path = folder.path().join("opencode.db");
        fs::copy(&self.main, &path).context("copy the database")?;
        // What the copy still has to write must not fall into the measured time.
        File::open(&path)?.sync_all()?;
        Ok(Copy { path, folder })
    }

    /// Bytes of the main database.
    pub(super) fn bytes(&self) -> Result<u64> {
        Ok(fs::metadata(&self.main)?.len())
    }

    /// A folder for results.
    pub(super) fn scratch(&self) -> Result<tempfile::TempDir> {
        Ok(tempfile::tempdir_in(&self.folder)?)
    }

    /// Where peers are installed.
    pub(super) fn peers(&self) -> PathBuf {
        self.folder.join("peers")
    }

    fn made(&self, name: &str, options: &large::Options) -> Result<PathBuf> {
        let path = self.folder.join(format!("{name}-{}-{GENERATION}.db", options.bytes));
        if !path.exists() {
            writeln!(io::stderr(), "writing {} ...", path.display())?;
            let part = path.with_extension("part");
            large::write(&part, options);
            fs::rename(&part, &path)?;
        }
        Ok(path)
    }
}

/// A database that may be changed.
pub(super) struct Copy {
    pub(super) path: PathBuf,
    folder: tempfile::TempDir,
}

impl Copy {
    /// The folder it lies in alone.
    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }
}

/// Reads a file once, so that both sides find it in the page cache.
pub(super) fn warm(path: &Path) -> Result<()> {
    io::copy(&mut File::open(path)?, &mut io::sink())?;
    Ok(())
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "checked to be between 0 and 64 GiB"
)]
fn bytes(gib: f64) -> u64 {
    (gib * GIB) as u64
}
