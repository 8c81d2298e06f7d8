//! How the file is set up (fact A1).

use rusqlite::OptionalExtension;
use serde::Serialize;

use super::{Check, Code};
use crate::reading::{ReadError, short, text_of};

/// A log above this is worth a word: OpenCode's own is about 4 MiB, and a log that a reader pins grows without bound.
const LOG_BYTES_LARGE: u64 = 64 << 20;

/// Settings and state of a database file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Settings {
    /// `wal` or `delete`, by the header of the file.
    pub journal_mode: &'static str,
    /// 0 none, 1 full, 2 incremental.
    pub auto_vacuum: i64,
    /// `PRAGMA user_version`; OpenCode leaves it at 0.
    pub user_version: i64,
    /// Bytes of a page.
    pub page_bytes: i64,
    /// Pages of the database.
    pub pages: i64,
    /// Pages on the free list.
    pub free_pages: i64,
    /// What the table of migrations says; absent where there is none.
    pub migrations: Option<Migrations>,
}

/// Which migrations were run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Migrations {
    /// How many.
    pub count: i64,
    /// Name of the newest.
    pub newest: Option<String>,
}

pub(super) fn read(check: &mut Check<'_>) -> Result<Settings, ReadError> {
    let connection = check.database.connection();
    let pragma = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let is_wal = check.database.file().is_wal();
    let settings = Settings {
        journal_mode: if is_wal { "wal" } else { "delete" },
        auto_vacuum: pragma("auto_vacuum")?,
        user_version: pragma("user_version")?,
        page_bytes: pragma("page_size")?,
        pages: pragma("page_count")?,
        free_pages: pragma("freelist_count")?,
        migrations: migrations(check)?,
    };
    if !is_wal {
        check.findings.add(Code::JournalMode, None, settings.journal_mode);
    }
    if settings.auto_vacuum != 0 {
        let mode = if settings.auto_vacuum == 1 { "full" } else { "incremental" };
        check.findings.add(Code::AutoVacuum, None, mode);
    }
    let log_bytes = std::fs::metadata(check.database.file().beside("-wal")).map_or(0, |log| log.len());
    if log_bytes > LOG_BYTES_LARGE {
        check.findings.add(Code::LargeLog, None, &format!("{} MiB", log_bytes >> 20));
    }
    if settings.migrations.as_ref().is_none_or(|migrations| migrations.count == 0) {
        check.findings.add(Code::NoMigrations, None, "migration");
    }
    Ok(settings)
}

fn migrations(check: &Check<'_>) -> Result<Option<Migrations>, ReadError> {
    if !check.has("migration", "id") {
        return Ok(None);
    }
    let connection = check.database.connection();
    let count = connection.query_row("SELECT count(*) FROM migration", [], |row| row.get(0))?;
    let id = short(check.database.schema(), "migration", "id");
    let newest = connection
        .query_row(&format!("SELECT {id} FROM migration ORDER BY id DESC LIMIT 1"), [], |row| text_of(row, 0))
        .optional()?
        .flatten();
    Ok(Some(Migrations { count, newest }))
}
