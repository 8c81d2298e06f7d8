//! Rewriting a whole database offline (P16): one pass writes a new file that holds only what survives, and it takes the old one's place.
//!
//! The database is locked from before the plan until after the takeover, so nobody can commit in between. The payload of what is
//! dropped is never read: which rows go is known by rowid before `data` is touched. The new file is compared with what was read before
//! it takes over. `docs/spec/rebuild-protocol.md` says for each step what a crash or another process finds.
//!
//! The new file needs its own bytes of free disk beside the database. What SQLite sorts for the largest index lies there at the same time,
//! never in the system's temporary folder, and is counted with it.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use headwater_model::ByteCount;
use rusqlite::Connection;

use crate::DatabaseFile;
use crate::observer::Observer;
use crate::plan::{self, Plan, PlanErrorKind, Selection};
use crate::restore;
use crate::schema::Schema;

pub(crate) mod attributes;
pub(crate) mod connect;
mod copy;
mod encoded;
pub(crate) mod error;
pub(crate) mod exclusive;
mod forecast;
mod large;
mod meter;
pub(crate) mod new_file;
pub(crate) mod pages;
pub(crate) mod place;
mod ranges;
mod report;
mod rewrite;
mod rows;
pub(crate) mod shape;
mod step;
pub(crate) mod takeover;
pub(crate) mod temporary;
#[cfg(test)]
mod tests;
pub(crate) mod verify;
pub(crate) mod watch;

pub use error::{Named, RebuildError, RebuildErrorKind};
pub use forecast::Forecast;
pub use report::{ByPhase, RebuildReport, TableReport, Way};
pub use step::Step;

use error::Doing;
use exclusive::ExclusiveDatabase;
use meter::{Meter, Phase};
use rewrite::Rewriter;
use takeover::Taken;
use temporary::TemporaryFile;
use watch::Watch;

/// How a rebuild is to be done.
#[derive(Clone, Debug, Default)]
pub struct RebuildOptions {
    /// Rewrite also where nothing would be gained.
    pub force: bool,
    /// Where no exchange is possible, copy the new content back into the old file. It costs disk and time: see [`Forecast`].
    pub in_place: bool,
    /// The plan that was shown and confirmed; a rebuild refuses where the plan under the lock is another.
    pub confirmed: Option<Plan>,
}

/// Is told the plan under the lock and what it needs before anything is written. An answer of false cancels the rebuild.
pub type OnPlan<'a> = dyn Fn(&Plan, &Forecast) -> bool + 'a;

/// Rewrites the database at `path` without what `selection` takes. Nobody may have it open.
///
/// # Errors
/// [`RebuildError`]; the database is as it was, unless its kind says otherwise.
pub fn run(
    path: &Path,
    selection: &Selection,
    options: &RebuildOptions,
    observer: &dyn Observer,
) -> Result<RebuildReport, RebuildError> {
    run_showing(path, selection, options, &|_, _| true, observer)
}

/// As [`run`], and shows `on_plan` what is about to be done: who has confirmed beforehand needs no plan of its own, which would cost as
/// much as the one under the lock.
///
/// # Errors
/// As [`run`].
pub fn run_showing(
    path: &Path,
    selection: &Selection,
    options: &RebuildOptions,
    on_plan: &OnPlan<'_>,
    observer: &dyn Observer,
) -> Result<RebuildReport, RebuildError> {
    let planner = |db: &Connection, schema: &Schema| {
        plan::compute(db, schema, selection, observer).map_err(|error| {
            if matches!(error.kind, PlanErrorKind::Cancelled) {
                RebuildErrorKind::Cancelled
            } else {
                RebuildErrorKind::Plan(Box::new(error))
            }
        })
    };
    let rebuild = Rebuild { options, planner: &planner, on_plan, rewriter: &rewrite::ByClass, observer };
    rebuild.run(path).map_err(|kind| kind.at(path))
}

/// Makes the plan under the lock.
type Planner<'a> = dyn Fn(&Connection, &Schema) -> Result<Plan, RebuildErrorKind> + 'a;

/// Everything that a rebuild does besides what it is given.
struct Rebuild<'a> {
    options: &'a RebuildOptions,
    planner: &'a Planner<'a>,
    on_plan: &'a OnPlan<'a>,
    rewriter: &'a dyn Rewriter,
    observer: &'a dyn Observer,
}

impl Rebuild<'_> {
    fn run(&self, path: &Path) -> Result<RebuildReport, RebuildErrorKind> {
        let file = DatabaseFile::find(path).map_err(|error| RebuildErrorKind::Open(error.kind))?;
        place::ensure_replaceable(&file)?;
        self.reached(Step::Checked)?;
        let locked = ExclusiveDatabase::lock(file)?;
        let built = match self.build(&locked) {
            Ok(built) => built,
            Err(kind) => {
                locked.release();
                return Err(kind);
            }
        };
        let path = locked.file().path().to_owned();
        let taken = takeover::take_over(locked, built.new, self.options.in_place, None, self.observer)?;
        Ok(built.summary.report(path, taken))
    }

    fn reached(&self, step: Step) -> Result<(), RebuildErrorKind> {
        self.observer.reached(step.name());
        if self.observer.is_cancelled() { Err(RebuildErrorKind::Cancelled) } else { Ok(()) }
    }

    /// Builds and verifies the new file beside the locked database, which only reads.
    fn build(&self, locked: &ExclusiveDatabase) -> Result<Built, RebuildErrorKind> {
        let source = locked.connection();
        let schema = locked.schema()?;
        self.reached(Step::Locked)?;
        let swept = sweep(locked)?;
        self.reached(Step::Swept)?;
        let mut meter = Meter::start();
        let mut phases = ByPhase::default();
        let plan = (self.planner)(source, &schema)?;
        if self.options.confirmed.as_ref().is_some_and(|confirmed| *confirmed != plan) {
            return Err(RebuildErrorKind::PlanChanged);
        }
        let forecast = Forecast::of(source, locked.file(), &plan)?;
        if !(self.on_plan)(&plan, &forecast) {
            return Err(RebuildErrorKind::Cancelled);
        }
        forecast.ensure_worthwhile(self.options.force)?;
        forecast.ensure_room(self.options.in_place)?;
        phases.plan = meter.lap();
        self.reached(Step::Planned)?;
        let new = TemporaryFile::create(locked.file().path()).doing("creating the new file")?;
        let mut tables = self.fill(locked, &new, &plan, &forecast, &mut phases, &mut meter)?;
        sync(locked, &new)?;
        phases.sync = meter.lap();
        self.reached(Step::Synced)?;
        verify::verify(source, new.path(), &mut tables, self.observer)?;
        phases.verify = meter.lap();
        self.reached(Step::Verified)?;
        let bytes_before = forecast.bytes_before;
        Ok(Built {
            new,
            summary: Summary { tables: table_reports(&tables), plan, phases, meter, swept, bytes_before },
        })
    }

    fn fill(
        &self,
        locked: &ExclusiveDatabase,
        new: &TemporaryFile,
        plan: &Plan,
        forecast: &Forecast,
        phases: &mut ByPhase<Phase>,
        meter: &mut Meter,
    ) -> Result<Vec<copy::CopiedTable>, RebuildErrorKind> {
        let source = locked.connection();
        let mut tables = copy::tables(source, plan)?;
        new_file::create(source, new.path())?;
        self.reached(Step::Created)?;
        let watch = |phase, interrupt| Watch {
            path: new.path(),
            phase,
            total: Some(forecast.bytes_after.get()),
            observer: self.observer,
            interrupt,
        };
        watch("copying rows", source.get_interrupt_handle())
            .during(|| copy::copy(source, new.path(), &mut tables, self.rewriter))?;
        phases.copy = meter.lap();
        self.reached(Step::Copied)?;
        let db = new_file::open(new.path())?;
        let entries = shape::entries(source)?;
        watch("building indexes", db.get_interrupt_handle())
            .during(|| new_file::finish_schema(&db, &entries))?;
        db.close().map_err(|(_, error)| error).doing("closing the new file")?;
        phases.index = meter.lap();
        self.reached(Step::Indexed)?;
        Ok(tables)
    }
}

/// Gives the new file its journal mode, owner and mode, and puts it on the disk with its name.
fn sync(locked: &ExclusiveDatabase, new: &TemporaryFile) -> Result<(), RebuildErrorKind> {
    let file = File::options().read(true).write(true).open(new.path()).doing("opening the new file")?;
    new_file::set_journal_mode(&file, locked.file().is_wal()).doing("writing the header of the new file")?;
    attributes::copy(locked.file().path(), &file).doing("keeping owner and mode")?;
    file.sync_all().doing("putting the new file on the disk")?;
    place::sync_folder(new.path()).doing("putting the folder on the disk")
}

/// A verified new file, and what was done for it.
struct Built {
    new: TemporaryFile,
    summary: Summary,
}

struct Summary {
    tables: Vec<TableReport>,
    plan: Plan,
    phases: ByPhase<Phase>,
    meter: Meter,
    swept: Vec<PathBuf>,
    bytes_before: ByteCount,
}

impl Summary {
    fn report(mut self, path: PathBuf, taken: Taken) -> RebuildReport {
        self.phases.takeover = self.meter.lap();
        let bytes_after = fs::metadata(&path).map_or(0, |found| found.len());
        RebuildReport {
            path,
            way: taken.way,
            bytes_before: self.bytes_before,
            bytes_after: ByteCount::new(bytes_after),
            tables: self.tables,
            totals: self.plan.totals,
            seconds: self.phases.seconds(),
            read_bytes: self.phases.read_bytes(),
            log_growth: ByteCount::new(taken.log_growth),
            locked_ms: taken.locked_ms,
            swept: self.swept,
        }
    }
}

fn table_reports(tables: &[copy::CopiedTable]) -> Vec<TableReport> {
    let mut reports: Vec<TableReport> = tables
        .iter()
        .map(|table| TableReport {
            table: table.shape.name.clone(),
            rows_kept: table.digest.map_or(table.counts.kept, |digest| digest.rows),
            rows_dropped: table.survivors.dropped_count(),
            rows_rewritten: table.counts.rewritten,
            rows_left: table.counts.left,
        })
        .collect();
    reports.sort_by(|one, other| one.table.cmp(&other.table));
    reports
}

/// Removes what earlier runs left, once the database under the lock reads as sound: one of these files may be an old database.
fn sweep(locked: &ExclusiveDatabase) -> Result<Vec<PathBuf>, RebuildErrorKind> {
    let path = locked.file().path();
    let mut swept = restore::leftover::sweep(path).doing("removing a file of an earlier restore")?;
    let leftovers = temporary::leftovers(path).doing("looking for files of earlier runs")?;
    if leftovers.is_empty() {
        return Ok(swept);
    }
    let answer: String = locked
        .connection()
        .query_row("PRAGMA quick_check(1)", [], |row| row.get(0))
        .doing("checking the database before files of earlier runs are removed")?;
    if answer != "ok" {
        return Err(RebuildErrorKind::Damaged);
    }
    for leftover in &leftovers {
        fs::remove_file(leftover).doing("removing a file of an earlier run")?;
    }
    swept.extend(leftovers);
    Ok(swept)
}
