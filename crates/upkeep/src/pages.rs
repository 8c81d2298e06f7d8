//! The rows of a table read from the pages of the file, beside SQLite: for passes over everything, where a system call for each page and
//! two copies of each payload are most of the cost.
//!
//! Nothing rests on it but a first look: whoever finds something here reads the row again through SQLite, and whatever is not as
//! expected (a page that is none of a table, a chain that ends early, a log that is too large) is [`Unreadable`] and left to SQLite.
//!
//! **One state.** [`TablePages::rows`] runs inside a read transaction of the connection. As long as that is open, no checkpoint moves a page
//! into the file that is newer than the transaction, and the log is not begun anew over frames that it needs. So the newest committed
//! version of a page in the log, and else the page in the file, is one state of the database: that of the transaction, or of a commit
//! made since, or being made. Where that commit changed the schema, nothing is read: root pages and columns are those of the transaction.

mod block;
mod log;
mod payload;
mod record;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use rusqlite::Connection;

use crate::ReadDatabase;

use block::Blocks;
use log::Log;

pub(crate) use payload::{Payload, Stored};
pub(crate) use record::{Cell, cells, values};

/// Interior pages between the root and a leaf, at most: SQLite allows 20.
const DEPTH_MAX: u32 = 20;

/// What stands in the pages is not what a table looks like, or cannot be read here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unreadable;

/// The pages of one database, for one thread.
pub(crate) struct TablePages<'a> {
    database: &'a ReadDatabase,
    pages: Pages<'a>,
    places: Places,
    leaf: Vec<u8>,
}

/// A stored column of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Column {
    /// The table, which has a rowid.
    pub(crate) table: &'static str,
    /// The column.
    pub(crate) name: &'static str,
}

/// Where a column stands: the root page of its table, and its position among the stored columns, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    root: u32,
    position: usize,
}

/// Places as one version of the schema has them; `None` where a column cannot be read from pages.
#[derive(Default)]
struct Places {
    schema_version: u32,
    known: BTreeMap<(&'static str, &'static str), Option<Place>>,
}

/// A row as its page has it.
pub(crate) struct PageRow<'p, 'a> {
    /// Its rowid.
    pub(crate) rowid: i64,
    /// The column that was asked for.
    pub(crate) stored: Stored<'p, 'a>,
}

impl<'a> TablePages<'a> {
    /// The pages of `database`; `None` where the file cannot be read beside SQLite.
    pub(crate) fn of(database: &'a ReadDatabase) -> Option<Self> {
        let file = database.raw_file().ok()?;
        let page_bytes: u32 =
            database.connection().query_row("PRAGMA page_size", [], |row| row.get(0)).ok()?;
        let page_bytes = usize::try_from(page_bytes).ok()?;
        let log = Log::new(database.file().beside("-wal"), page_bytes);
        let pages = Pages {
            file: Blocks::new(file, page_bytes),
            log,
            page_bytes,
            usable_bytes: page_bytes,
            count: 0,
        };
        Some(Self { database, pages, places: Places::default(), leaf: Vec::new() })
    }

    /// Hands every row of a table whose rowid is in `first..=last` to `each`, ascending, until that says false. Call it
    /// within a read transaction of the database's connection.
    ///
    /// # Errors
    /// [`Unreadable`]; rows may have been handed over before.
    pub(crate) fn rows(
        &mut self,
        column: Column,
        (first, last): (i64, i64),
        each: &mut dyn FnMut(PageRow<'_, 'a>) -> bool,
    ) -> Result<(), Unreadable> {
        // The first statement of the transaction chooses the state that is read.
        let schema_version = self.schema_version()?;
        let place = self.place(column, schema_version)?;
        self.pages.look_at_the_log(self.database, schema_version)?;
        let mut walk = Walk {
            pages: &mut self.pages,
            leaf: std::mem::take(&mut self.leaf),
            position: place.position,
            range: (first, last),
            each,
            visited: 0,
            before: None,
        };
        let outcome = walk.descend(place.root, 0);
        self.leaf = walk.leaf;
        outcome.map(drop)
    }

    fn schema_version(&self) -> Result<u32, Unreadable> {
        let connection = self.database.connection();
        let version: Option<i64> = connection
            .prepare_cached("PRAGMA schema_version")
            .and_then(|mut statement| statement.query_row([], |row| row.get(0)))
            .ok();
        // SQLite says it with a sign.
        version.and_then(|version| i32::try_from(version).ok()).map(i32::cast_unsigned).ok_or(Unreadable)
    }

    /// A change of the schema may move a table, and its columns in it.
    fn place(&mut self, column: Column, schema_version: u32) -> Result<Place, Unreadable> {
        if self.places.schema_version != schema_version {
            self.places = Places { schema_version, known: BTreeMap::new() };
        }
        let connection = self.database.connection();
        let key = (column.table, column.name);
        let known = self.places.known.entry(key).or_insert_with(|| place(connection, column));
        (*known).ok_or(Unreadable)
    }
}

/// Where `column` stands: columns are stored in order, but for generated ones.
fn place(connection: &Connection, column: Column) -> Option<Place> {
    let sql = "SELECT schema.rootpage, columns.cid \
               FROM sqlite_schema AS schema, pragma_table_xinfo(?1) AS columns \
               WHERE schema.type = 'table' AND schema.name = ?1 AND columns.name = ?2 \
               AND NOT EXISTS (SELECT 1 FROM pragma_table_xinfo(?1) WHERE hidden <> 0)";
    let place = connection.query_row(sql, [column.table, column.name], |row| {
        Ok((row.get::<_, u32>(0)?, row.get::<_, u32>(1)?))
    });
    let (root, position) = place.ok()?;
    let position = usize::try_from(position).ok()?;
    (root > 1).then_some(Place { root, position })
}

/// Pages by number: the newest version in the log, and else the one in the file.
struct Pages<'a> {
    file: Blocks<'a>,
    log: Log,
    page_bytes: usize,
    /// Bytes of a page that hold content.
    usable_bytes: usize,
    /// Pages of the database.
    count: u32,
}

impl Pages<'_> {
    /// Chooses the state that is read; `schema_version` is that of the transaction.
    fn look_at_the_log(&mut self, database: &ReadDatabase, schema_version: u32) -> Result<(), Unreadable> {
        let version: i64 = database
            .connection()
            .prepare_cached("PRAGMA data_version")
            .and_then(|mut statement| statement.query_row([], |row| row.get(0)))
            .map_err(|_| Unreadable)?;
        // What was read ahead belongs to the state that was read then.
        self.file.forget();
        self.log.look(version)?;
        let in_file = self.file.count()?;
        self.count = self.log.database_pages().unwrap_or(in_file);
        let page_bytes = self.page_bytes;
        let first = self.page(1)?;
        let reserved = usize::from(first[20]);
        let is_same = u16::from_be_bytes([first[16], first[17]]) == u16::try_from(page_bytes).unwrap_or(1);
        if !is_same || page_bytes < reserved + 480 {
            return Err(Unreadable);
        }
        // A commit made since the transaction began may have moved the table.
        if first[40..44] != schema_version.to_be_bytes() {
            return Err(Unreadable);
        }
        self.usable_bytes = page_bytes - reserved;
        Ok(())
    }

    fn page(&mut self, number: u32) -> Result<&[u8], Unreadable> {
        if number == 0 || number > self.count {
            return Err(Unreadable);
        }
        match self.log.holds(number) {
            Some(frame) => self.log.page(frame),
            None => self.file.page(number),
        }
    }
}

/// One pass over a part of a table.
struct Walk<'w, 'a> {
    pages: &'w mut Pages<'a>,
    leaf: Vec<u8>,
    position: usize,
    range: (i64, i64),
    each: &'w mut dyn FnMut(PageRow<'_, 'a>) -> bool,
    visited: u32,
    /// The rowid of the row before.
    before: Option<i64>,
}

impl Walk<'_, '_> {
    /// False where no further row is wanted.
    fn descend(&mut self, number: u32, depth: u32) -> Result<bool, Unreadable> {
        self.visited += 1;
        // Pages that lead in a circle are met more often than there are pages.
        if depth > DEPTH_MAX || self.visited > self.pages.count {
            return Err(Unreadable);
        }
        let usable_bytes = self.pages.usable_bytes;
        let page = self.pages.page(number)?;
        match page[0] {
            record::LEAF => {
                self.leaf.clear();
                self.leaf.extend_from_slice(page);
                self.rows_of_leaf()
            }
            record::INTERIOR => {
                let children = record::children(page, usable_bytes, self.range).ok_or(Unreadable)?;
                for child in children {
                    if !self.descend(child, depth + 1)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            _ => Err(Unreadable),
        }
    }

    fn rows_of_leaf(&mut self) -> Result<bool, Unreadable> {
        let found = cells(&self.leaf, self.pages.usable_bytes);
        if found.len() != record::cell_count(&self.leaf) {
            return Err(Unreadable);
        }
        let (first, last) = self.range;
        for cell in found.into_iter().filter(|cell| (first..=last).contains(&cell.rowid)) {
            if self.before.is_some_and(|before| before >= cell.rowid) {
                return Err(Unreadable);
            }
            self.before = Some(cell.rowid);
            // A chain that leads in a circle ends where the record does, so a record must not be longer than the database.
            if cell.payload_bytes > u64::from(self.pages.count) * self.pages.page_bytes as u64 {
                return Err(Unreadable);
            }
            let mut is_broken = false;
            let payload = Payload::new(self.pages, &self.leaf, cell, &mut is_broken).ok_or(Unreadable)?;
            let goes_on = (self.each)(PageRow { rowid: cell.rowid, stored: payload.column(self.position) });
            if is_broken {
                return Err(Unreadable);
            }
            if !goes_on {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
