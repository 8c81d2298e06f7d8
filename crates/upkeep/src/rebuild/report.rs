//! What a rebuild did.

use std::collections::BTreeMap;
use std::path::PathBuf;

use headwater_model::ByteCount;
use headwater_prune::Class;
use serde::Serialize;

use crate::plan::ClassTotal;
use crate::rebuild::meter::Phase;

/// How the new content took the place of the old.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    /// The two files exchanged their names under a write lease; the old log did not grow.
    Lease,
    /// The new content was copied into the old file as one transaction.
    InPlace,
}

/// What became of the rows of one table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TableReport {
    /// Its name.
    pub table: String,
    /// Rows in the new file.
    pub rows_kept: u64,
    /// Rows that are gone.
    pub rows_dropped: u64,
    /// Of those kept, rows whose content is shorter.
    pub rows_rewritten: u64,
    /// Of those kept, rows that were to be rewritten and are as they were: their content is not of a known form.
    pub rows_left: u64,
}

/// A number per phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct ByPhase<T> {
    /// Learning what survives.
    pub plan: T,
    /// Copying rows.
    pub copy: T,
    /// Building indexes.
    pub index: T,
    /// Putting the new file on the disk.
    pub sync: T,
    /// Verifying it.
    pub verify: T,
    /// Checkpoint, lease, exchange; or copying back.
    pub takeover: T,
}

/// What a rebuild did.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RebuildReport {
    /// The database, symlinks resolved.
    pub path: PathBuf,
    /// How the new content took over.
    pub way: Way,
    /// Bytes of the file and of its log before.
    pub bytes_before: ByteCount,
    /// Bytes of the file and of its log after.
    pub bytes_after: ByteCount,
    /// Rows by table, sorted by name.
    pub tables: Vec<TableReport>,
    /// Totals by class, as planned under the lock.
    pub totals: BTreeMap<Class, ClassTotal>,
    /// Seconds per phase.
    pub seconds: ByPhase<f64>,
    /// Bytes read by system calls per phase (`rchar` of /proc/self/io).
    pub read_bytes: ByPhase<ByteCount>,
    /// Bytes that were added to the log of the old file.
    pub log_growth: ByteCount,
    /// Milliseconds for which the database was locked.
    pub locked_ms: u64,
    /// Files of earlier, killed runs that were removed.
    pub swept: Vec<PathBuf>,
}

impl ByPhase<Phase> {
    pub(crate) fn seconds(&self) -> ByPhase<f64> {
        self.map(|phase| phase.seconds)
    }

    pub(crate) fn read_bytes(&self) -> ByPhase<ByteCount> {
        self.map(|phase| ByteCount::new(phase.read_bytes))
    }

    fn map<U>(&self, turn: impl Fn(Phase) -> U) -> ByPhase<U> {
        ByPhase {
            plan: turn(self.plan),
            copy: turn(self.copy),
            index: turn(self.index),
            sync: turn(self.sync),
            verify: turn(self.verify),
            takeover: turn(self.takeover),
        }
    }
}
