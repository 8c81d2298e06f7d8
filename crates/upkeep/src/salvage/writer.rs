//! Puts the rows of one table into the new file, and keeps count of what became of them.

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, Statement, ToSql, params_from_iter};
use serde::Serialize;

use super::schema::is_about_the_target;
use super::shape::Shape;
use super::{SalvageErrorKind, SalvageOptions};
use crate::json_stream::walk;
use crate::observer::{Observer, Progress, Unit};
use crate::plan::RowIds;

/// Most examples of ids.
pub(super) const EXAMPLES_MAX: usize = 5;

/// Rows between two looks at the observer.
const REPORT_ROWS: u64 = 1 << 12;

/// What was saved of one table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SalvagedTable {
    /// Its name.
    pub name: String,
    /// Rows in the new file.
    pub rows_recovered: u64,
    /// Of these, rows found on pages that no tree leads to any more.
    pub rows_from_stray_pages: u64,
    /// Rows that are known to have existed and are lost.
    pub rows_lost: u64,
    /// Whether `rows_lost` is exact: an index named every row. Else more may be lost.
    pub lost_is_exact: bool,
    /// Ids or numbers of lost rows, a few.
    pub lost_examples: Vec<String>,
    /// Rows left out: their payload is not JSON any more, or they break a constraint of their table.
    pub rows_invalid: u64,
    /// Ids or numbers of these, a few.
    pub invalid_examples: Vec<String>,
}

/// Writes rows of one table.
pub(super) struct RowWriter<'a> {
    shape: &'a Shape,
    new: &'a Connection,
    insert: Statement<'a>,
    options: SalvageOptions,
    observer: &'a dyn Observer,
    /// What became of the rows.
    pub(super) table: SalvagedTable,
    /// Rows that need no further try: copied, or left out as invalid.
    pub(super) settled: RowIds,
    seen: u64,
}

impl<'a> RowWriter<'a> {
    pub(super) fn new(
        new: &'a Connection,
        shape: &'a Shape,
        options: SalvageOptions,
        observer: &'a dyn Observer,
    ) -> Result<Self, SalvageErrorKind> {
        let insert = new.prepare(&shape.insert(shape.columns.len())).map_err(SalvageErrorKind::Write)?;
        let table = SalvagedTable { name: shape.name.clone(), ..SalvagedTable::default() };
        Ok(Self { shape, new, insert, options, observer, table, settled: RowIds::new(), seen: 0 })
    }

    /// Whether a row needs no further try.
    pub(super) fn is_settled(&self, rowid: i64) -> bool {
        self.settled.contains(rowid.cast_unsigned())
    }

    /// Puts a row into the new file, or counts it as invalid.
    pub(super) fn put(&mut self, rowid: i64, values: &[ValueRef<'_>]) -> Result<(), SalvageErrorKind> {
        self.look_up()?;
        let json = self.shape.json.and_then(|column| values.get(column));
        if json.is_some_and(|json| !self.options.keep_invalid && !is_json(*json)) {
            self.leave_out(rowid, values);
            return Ok(());
        }
        let mut bound: Vec<Bound<'_>> = values.iter().copied().map(Bound).collect();
        let number = ValueRef::Integer(rowid);
        match self.shape.alias {
            Some(alias) if alias < bound.len() => bound[alias] = Bound(number),
            Some(_) | None if self.shape.has_rowid => bound.push(Bound(number)),
            Some(_) | None => {}
        }
        let outcome = if values.len() == self.shape.columns.len() {
            self.insert.execute(params_from_iter(bound))
        } else {
            self.new
                .prepare_cached(&self.shape.insert(values.len()))
                .and_then(|mut insert| insert.execute(params_from_iter(bound)))
        };
        match outcome {
            Ok(_) => {
                self.table.rows_recovered += 1;
                self.settled.insert(rowid.cast_unsigned());
                Ok(())
            }
            Err(error) if is_about_the_target(&error) => Err(SalvageErrorKind::Write(error)),
            Err(_) => {
                self.leave_out(rowid, values);
                Ok(())
            }
        }
    }

    fn leave_out(&mut self, rowid: i64, values: &[ValueRef<'_>]) {
        self.settled.insert(rowid.cast_unsigned());
        self.table.rows_invalid += 1;
        if self.table.invalid_examples.len() < EXAMPLES_MAX {
            self.table.invalid_examples.push(name_of(rowid, values.first()));
        }
    }

    fn look_up(&mut self) -> Result<(), SalvageErrorKind> {
        self.seen += 1;
        if self.seen.is_multiple_of(REPORT_ROWS) {
            let progress = Progress { phase: "saving rows", done: self.seen, total: None, unit: Unit::Rows };
            self.observer.progress(progress);
        }
        if self.seen.is_multiple_of(REPORT_ROWS) && self.observer.is_cancelled() {
            return Err(SalvageErrorKind::Cancelled);
        }
        Ok(())
    }
}

/// Whether a payload is JSON text. What it means is not judged.
fn is_json(value: ValueRef<'_>) -> bool {
    match value {
        ValueRef::Text(text) => std::str::from_utf8(text).is_ok() && walk(text, |_, _| {}).is_ok(),
        ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_) | ValueRef::Blob(_) => false,
    }
}

/// A name for a row: its first column where that is a short text, else its number.
pub(super) fn name_of(rowid: i64, first: Option<&ValueRef<'_>>) -> String {
    match first {
        Some(ValueRef::Text(id)) if id.len() <= 256 && id.is_ascii() => {
            String::from_utf8_lossy(id).into_owned()
        }
        _ => format!("row {rowid}"),
    }
}

/// A value of the source, bound as it is.
pub(super) struct Bound<'a>(pub(super) ValueRef<'a>);

impl ToSql for Bound<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(self.0))
    }
}
