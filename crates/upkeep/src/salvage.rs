//! Saves what can be read of a damaged database into a new file (P17). The damaged file is only read.
//!
//! Every table is walked in storage order. Where damage stops the walk, the rows around it are found from the indexes, which name the
//! rows of a table even where its own pages are gone, and by halving the range of rowids that is left. Rows whose payload is not JSON any
//! more are left out and named: one of them would make its whole session unreadable (fact A6).

use std::io;
use std::path::{Path, PathBuf};

use headwater_model::ByteCount;
use serde::Serialize;

use crate::observer::Observer;
use crate::open::{OpenError, OpenErrorKind};

mod header;
mod known;
mod leaves;
mod schema;
mod shape;
mod source;
mod table;
mod target;
mod verify;
mod writer;

use schema::Definition;
use source::Source;
use target::Target;

pub use schema::LostObject;
pub use writer::SalvagedTable;

/// What a salvage does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SalvageOptions {
    /// Keeps rows whose payload is not JSON, instead of leaving them out.
    pub keep_invalid: bool,
}

/// What a salvage saved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SalvageReport {
    /// The damaged file.
    pub source: PathBuf,
    /// The new file.
    pub target: PathBuf,
    /// Size of the new file.
    pub target_bytes: ByteCount,
    /// Whether the header of the damaged file had to be rebuilt in a private copy.
    pub header_rebuilt: bool,
    /// Tables, in the order of the schema.
    pub tables: Vec<SalvagedTable>,
    /// Indexes, triggers and views that could not be made again.
    pub lost_objects: Vec<LostObject>,
    /// Rows recovered in all.
    pub rows_recovered: u64,
    /// Rows known to be lost in all.
    pub rows_lost: u64,
    /// Rows left out because their payload is not JSON any more.
    pub rows_invalid: u64,
    /// Rows of the new file that name rows that were lost; `check` lists them.
    pub broken_references: u64,
}

/// Why nothing was saved. No new file is left under the name of the target.
#[derive(Debug, thiserror::Error)]
#[error("cannot salvage {}: {kind}", .path.display())]
pub struct SalvageError {
    /// The file that it is about.
    pub path: PathBuf,
    /// What is in the way.
    pub kind: SalvageErrorKind,
}

/// What stopped a salvage.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SalvageErrorKind {
    /// The damaged file cannot be opened at all.
    #[error("{0}")]
    Source(OpenErrorKind),
    /// Nothing in the file looks like a page of a database.
    #[error("nothing in it looks like a database")]
    NoPages,
    /// The list of tables is gone, and with it the meaning of every page.
    #[error("the list of its tables is destroyed")]
    SchemaLost,
    /// Something is at the target's path.
    #[error("the target exists")]
    TargetExists,
    /// Another salvage writes to the same target.
    #[error("another salvage writes to this target")]
    TargetInUse,
    /// The caller asked to stop.
    #[error("cancelled")]
    Cancelled,
    /// The new file is not what was written to it.
    #[error("the new file failed its verification")]
    VerificationFailed,
    /// Writing the new file failed, as on a full disk.
    #[error("cannot write the new file: {0}")]
    Write(#[source] rusqlite::Error),
    /// Any other error of the file system.
    #[error("{0}")]
    Io(#[source] io::Error),
}

impl SalvageErrorKind {
    fn at(self, path: &Path) -> SalvageError {
        SalvageError { path: path.to_owned(), kind: self }
    }
}

/// The steps of a salvage, in order. Killed at any of them it leaves the damaged file as it was and at most files that begin with the
/// target's name after a dot and end with `.salvage`, which the next salvage to the same target takes over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SalvageStep {
    /// The damaged file is open, through a private copy where its header had to be rebuilt.
    SourceOpened,
    /// The new file exists under its temporary name.
    TargetCreated,
    /// Every table is copied.
    TablesCopied,
    /// Indexes, views and triggers are made.
    ObjectsMade,
    /// The new file is verified.
    Verified,
    /// The new file is on the disk.
    Synced,
    /// The new file has its name.
    Renamed,
}

impl SalvageStep {
    /// Every step, in order.
    pub const ALL: [Self; 7] = [
        Self::SourceOpened,
        Self::TargetCreated,
        Self::TablesCopied,
        Self::ObjectsMade,
        Self::Verified,
        Self::Synced,
        Self::Renamed,
    ];

    /// The name that an observer is told.
    pub const fn name(self) -> &'static str {
        match self {
            Self::SourceOpened => "salvage-source-opened",
            Self::TargetCreated => "salvage-target-created",
            Self::TablesCopied => "salvage-tables-copied",
            Self::ObjectsMade => "salvage-objects-made",
            Self::Verified => "salvage-verified",
            Self::Synced => "salvage-synced",
            Self::Renamed => "salvage-renamed",
        }
    }
}

/// Saves what can be read of the database at `source` into a new file at `target`.
///
/// Memory: a page cache for each file, and three times the largest row.
///
/// # Errors
/// [`SalvageError`]. The damaged file is unchanged in every case.
pub fn run(
    source: &Path,
    target: &Path,
    options: SalvageOptions,
    observer: &dyn Observer,
) -> Result<SalvageReport, SalvageError> {
    if target.symlink_metadata().is_ok() {
        return Err(SalvageErrorKind::TargetExists.at(target));
    }
    let mut new = Target::reserve(target).map_err(|kind| kind.at(target))?;
    let source = Source::open(source, &new)?;
    observer.reached(SalvageStep::SourceOpened.name());
    let definitions = schema::read(&source).map_err(|kind| kind.at(source.path()))?;
    let outcome = save(&source, &mut new, &definitions, options, observer);
    source.ensure_unchanged()?;
    let mut report = outcome.map_err(|kind| kind.at(target))?;
    drop(source);
    observer.reached(SalvageStep::Verified.name());
    report.target_bytes = new.publish(observer).map_err(|kind| kind.at(target))?;
    observer.reached(SalvageStep::Renamed.name());
    Ok(report)
}

fn save(
    source: &Source,
    new: &mut Target,
    definitions: &[Definition],
    options: SalvageOptions,
    observer: &dyn Observer,
) -> Result<SalvageReport, SalvageErrorKind> {
    new.create(source)?;
    observer.reached(SalvageStep::TargetCreated.name());
    let mut lost_objects = Vec::new();
    let mut tables = Vec::new();
    let mut stray = leaves::Stray::default();
    for definition in definitions.iter().filter(|definition| definition.is_table()) {
        if let Err(lost) = schema::make(new, definition)? {
            lost_objects.push(lost);
            continue;
        }
        tables.push(table::copy(source, new, definition, &mut stray, options, observer)?);
    }
    observer.reached(SalvageStep::TablesCopied.name());
    for definition in definitions.iter().filter(|definition| !definition.is_table()) {
        if let Err(lost) = schema::make(new, definition)? {
            lost_objects.push(lost);
        }
    }
    new.settle(source)?;
    observer.reached(SalvageStep::ObjectsMade.name());
    let broken_references = verify::run(new, &tables, observer)?;
    let sum = |count: fn(&SalvagedTable) -> u64| tables.iter().map(count).sum();
    Ok(SalvageReport {
        source: source.path().to_owned(),
        target: new.path().to_owned(),
        target_bytes: ByteCount::ZERO,
        header_rebuilt: source.is_rebuilt(),
        rows_recovered: sum(|table| table.rows_recovered),
        rows_lost: sum(|table| table.rows_lost),
        rows_invalid: sum(|table| table.rows_invalid),
        tables,
        lost_objects,
        broken_references,
    })
}

impl From<OpenError> for SalvageError {
    fn from(error: OpenError) -> Self {
        SalvageErrorKind::Source(error.kind).at(&error.path)
    }
}

#[cfg(test)]
mod tests;
