//! Records of bulk runs: what began, and how it ended.

use headwater_model::UnixMillis;
use rusqlite::{OptionalExtension, params};

use super::{DatabaseKey, StateError, StateErrorKind, StateFile};

/// What kind of run a record speaks of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunKind {
    /// A bulk prune.
    Prune,
    /// A preview of a retention policy.
    RetentionPreview,
    /// A run of a retention policy.
    Retention,
}

impl RunKind {
    const fn name(self) -> &'static str {
        match self {
            Self::Prune => "prune",
            Self::RetentionPreview => "retention-preview",
            Self::Retention => "retention",
        }
    }
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunEnd {
    /// It reached its end, and the file holds what it freed.
    Done,
    /// It changed nothing, with a reason in its report.
    Skipped,
    /// It stopped before its end.
    Stopped,
}

impl RunEnd {
    const fn name(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Skipped => "skipped",
            Self::Stopped => "stopped",
        }
    }

    fn of(name: &str) -> Option<Self> {
        [Self::Done, Self::Skipped, Self::Stopped].into_iter().find(|end| end.name() == name)
    }
}

/// A recorded run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RunId(i64);

/// A run that has been recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// When it began.
    pub started: UnixMillis,
    /// When it ended; absent where its process was killed, or where it still runs.
    pub ended: Option<UnixMillis>,
    /// How it ended.
    pub end: Option<RunEnd>,
    /// Its report, as JSON.
    pub report: Option<String>,
}

impl StateFile {
    /// Records that a run of `kind` begins.
    ///
    /// # Errors
    /// [`StateError`] where the file cannot be written.
    pub fn begin_run(
        &mut self,
        database: DatabaseKey,
        kind: RunKind,
        now: UnixMillis,
    ) -> Result<RunId, StateError> {
        self.write(|connection| {
            connection.execute(
                "INSERT INTO run (database, kind, time_started) VALUES (?1, ?2, ?3)",
                params![database.0, kind.name(), now.get()],
            )?;
            Ok(RunId(connection.last_insert_rowid()))
        })
    }

    /// Records how a run ended; `report` is content-free JSON.
    ///
    /// # Errors
    /// [`StateError`] where the file cannot be written.
    pub fn end_run(
        &mut self,
        run: RunId,
        end: RunEnd,
        report: &str,
        now: UnixMillis,
    ) -> Result<(), StateError> {
        self.write(|connection| {
            connection.execute(
                "UPDATE run SET time_ended = ?2, outcome = ?3, report = ?4 WHERE id = ?1",
                params![run.0, now.get(), end.name(), report],
            )?;
            Ok(())
        })
    }

    /// The newest run of `kind`, and of those that ended as `end` where one is named.
    ///
    /// # Errors
    /// [`StateError`] where the file cannot be read.
    pub fn last_run(
        &self,
        database: DatabaseKey,
        kind: RunKind,
        end: Option<RunEnd>,
    ) -> Result<Option<Run>, StateError> {
        self.read(|connection| {
            let found = connection
                .query_row(
                    "SELECT time_started, time_ended, outcome, report FROM run WHERE database = ?1 AND kind = ?2 \
                     AND (?3 IS NULL OR outcome = ?3) ORDER BY time_started DESC, id DESC LIMIT 1",
                    params![database.0, kind.name(), end.map(RunEnd::name)],
                    |row| {
                        Ok((
                            row.get::<_, i64>(0)?,
                            row.get::<_, Option<i64>>(1)?,
                            row.get::<_, Option<String>>(2)?,
                            row.get::<_, Option<String>>(3)?,
                        ))
                    },
                )
                .optional()?;
            let Some((started, ended, outcome, report)) = found else { return Ok(None) };
            let end = outcome
                .map(|name| RunEnd::of(&name).ok_or(StateErrorKind::Damaged))
                .transpose()?;
            Ok(Some(Run {
                started: UnixMillis::new(started),
                ended: ended.map(UnixMillis::new),
                end,
                report,
            }))
        })
    }
}
