//! One table, copied around its damage: which rows to read, and in which order.

use std::collections::VecDeque;

use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, Row};

use super::known::{Known, Proof, proof, quoted};
use super::leaves::Stray;
use super::schema::Definition;
use super::shape::Shape;
use super::source::Source;
use super::target::Target;
use super::writer::{Bound, EXAMPLES_MAX, RowWriter, SalvagedTable, name_of};
use super::{SalvageErrorKind, SalvageOptions};
use crate::observer::Observer;
use crate::plan::RowIds;

/// Most places that are probed in a range whose rows no index names.
const PROBES_MAX: u32 = 200_000;

/// Rowids that are tried beyond the last row that was read, at least.
const ROWIDS_BEYOND: i64 = 1 << 16;

/// Copies a table whose definition was made in the new file.
pub(super) fn copy(
    source: &Source,
    new: &Target,
    definition: &Definition,
    stray: &mut Stray,
    options: SalvageOptions,
    observer: &dyn Observer,
) -> Result<SalvagedTable, SalvageErrorKind> {
    let shape = Shape::read(new.connection()?, &definition.name)?;
    let known =
        if shape.has_rowid { Known::read(source.connection(), &shape.name) } else { Known::default() };
    let writer = RowWriter::new(new.connection()?, &shape, options, observer)?;
    let mut copier = Copier { source: source.connection(), shape: &shape, writer, unreadable: RowIds::new() };
    if shape.has_rowid {
        if let Some(gap) = copier.copy_from_both_ends()? {
            copier.copy_known(&known, gap)?;
            if !known.is_complete {
                copier.probe(gap)?;
            }
        }
        copier.copy_stray(source, &known, stray)?;
    } else {
        copier.copy_without_rowid()?;
    }
    Ok(copier.finish(&known))
}

/// Rowids of which nothing is known yet, both ends included.
#[derive(Clone, Copy, Debug)]
struct Gap {
    low: i64,
    high: i64,
}

/// Which way a table is walked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Up,
    Down,
}

impl Direction {
    fn word(self) -> &'static str {
        match self {
            Self::Up => "ASC",
            Self::Down => "DESC",
        }
    }
}

impl Gap {
    /// Leaves out what a walk has passed, `rowid` included; false where nothing is left.
    fn pass(&mut self, rowid: i64, direction: Direction) -> bool {
        match direction {
            Direction::Up => rowid.checked_add(1).map(|low| self.low = low),
            Direction::Down => rowid.checked_sub(1).map(|high| self.high = high),
        }
        .is_some_and(|()| self.low <= self.high)
    }
}

/// Why a walk over rows ended.
enum Ended {
    /// No rows are left.
    Finished,
    /// Damage, after this row in the direction of the walk (`None`: before any).
    Stopped(Option<i64>),
}

struct Copier<'a> {
    source: &'a Connection,
    shape: &'a Shape,
    writer: RowWriter<'a>,
    /// Rows whose number could be read and whose payload could not.
    unreadable: RowIds,
}

impl Copier<'_> {
    /// Walks up from the first row, and where damage of a leaf or above ends that, down from the last. Returns what lies between.
    fn copy_from_both_ends(&mut self) -> Result<Option<Gap>, SalvageErrorKind> {
        let Some(low) = self.walk(Gap { low: i64::MIN, high: i64::MAX }, Direction::Up)? else {
            return Ok(None);
        };
        let high = self.walk(Gap { low, high: i64::MAX }, Direction::Down)?;
        Ok(high.map(|high| Gap { low, high }))
    }

    /// Copies the rows of a gap until damage. `None` at the end; else the rowid at which SQLite cannot go on in this direction.
    ///
    /// Each seek names a rowid that is wanted, never its neighbour: a neighbour may stand on the damaged page beside it.
    fn walk(&mut self, gap: Gap, direction: Direction) -> Result<Option<i64>, SalvageErrorKind> {
        let mut gap = gap;
        loop {
            let last = match self.scan(gap, direction)? {
                Ended::Finished => return Ok(None),
                Ended::Stopped(last) => last,
            };
            if let Some(last) = last
                && !gap.pass(last, direction)
            {
                return Ok(None);
            }
            // The next number without its payload: damage of the payload alone is passed over.
            match self.next_rowid(gap, direction) {
                Ok(None) => return Ok(None),
                Ok(Some(next)) => {
                    self.unreadable.insert(next.cast_unsigned());
                    if !gap.pass(next, direction) {
                        return Ok(None);
                    }
                }
                Err(_) => return Ok(Some(if direction == Direction::Up { gap.low } else { gap.high })),
            }
        }
    }

    fn scan(&mut self, gap: Gap, direction: Direction) -> Result<Ended, SalvageErrorKind> {
        let sql = format!("{} WHERE {IN_GAP} ORDER BY rowid {}", self.shape.select(), direction.word());
        let Ok(mut statement) = self.source.prepare_cached(&sql) else { return Ok(Ended::Stopped(None)) };
        let Ok(mut rows) = statement.query([gap.low, gap.high]) else { return Ok(Ended::Stopped(None)) };
        let mut last = None;
        loop {
            match rows.next() {
                Ok(None) => return Ok(Ended::Finished),
                Err(_) => return Ok(Ended::Stopped(last)),
                Ok(Some(row)) => match self.copy_row(row)? {
                    Some(rowid) => last = Some(rowid),
                    None => return Ok(Ended::Stopped(last)),
                },
            }
        }
    }

    fn next_rowid(&self, gap: Gap, direction: Direction) -> rusqlite::Result<Option<i64>> {
        let sql = format!(
            "SELECT rowid FROM {} NOT INDEXED WHERE {IN_GAP} ORDER BY rowid {} LIMIT 1",
            quoted(&self.shape.name),
            direction.word()
        );
        let mut statement = self.source.prepare_cached(&sql)?;
        let mut rows = statement.query([gap.low, gap.high])?;
        rows.next()?.map(|row| row.get(0)).transpose()
    }

    /// Tries every row that an index names in the gap.
    fn copy_known(&mut self, known: &Known, gap: Gap) -> Result<(), SalvageErrorKind> {
        let sql = format!("{} WHERE rowid = ?1", self.shape.select());
        for id in &known.rows {
            let rowid = id.cast_signed();
            if rowid < gap.low || rowid > gap.high || self.writer.is_settled(rowid) {
                continue;
            }
            let Ok(mut statement) = self.source.prepare_cached(&sql) else { return Ok(()) };
            let Ok(mut rows) = statement.query([rowid]) else { continue };
            if let Ok(Some(row)) = rows.next() {
                self.copy_row(row)?;
            }
        }
        Ok(())
    }

    /// Halves the gap until what is left is read or known to be damaged, where no index names its rows.
    ///
    /// An end of the gap that no row marks is put where rowids can be expected: SQLite gives them out from 1 without gaps.
    fn probe(&mut self, gap: Gap) -> Result<(), SalvageErrorKind> {
        let low = gap.low.max(0);
        let room =
            i64::try_from(self.writer.settled.len()).unwrap_or(i64::MAX).saturating_mul(2).max(ROWIDS_BEYOND);
        let high = if gap.high == i64::MAX { low.saturating_add(room) } else { gap.high };
        let mut open = VecDeque::from([Gap { low, high }]);
        for _ in 0..PROBES_MAX {
            let Some(Gap { low, high }) = open.pop_front() else { return Ok(()) };
            if low > high {
                continue;
            }
            let middle = low.midpoint(high);
            let stopped_at = self.walk(Gap { low: middle, high }, Direction::Up)?;
            open.push_back(Gap { low, high: middle - 1 });
            if let Some(stopped_at) = stopped_at {
                open.push_back(Gap { low: stopped_at + 1, high });
            }
        }
        Ok(())
    }

    /// Looks on pages outside the tree for rows that the index names and the tree lacks.
    fn copy_stray(
        &mut self,
        source: &Source,
        known: &Known,
        stray: &mut Stray,
    ) -> Result<(), SalvageErrorKind> {
        let wanted = &known.rows - &self.writer.settled;
        if wanted.is_empty() {
            return Ok(());
        }
        let Some(proof) = proof(self.source, &self.shape.name) else { return Ok(()) };
        let Some(column) = self.shape.columns.iter().position(|name| *name == proof.column) else {
            return Ok(());
        };
        stray.visit(source, &wanted, |rowid, values| {
            let is_fitting = values.len() <= self.shape.columns.len() && values.len() > column;
            if is_fitting && !self.writer.is_settled(rowid) && self.is_proven(&proof, rowid, values[column]) {
                let recovered = self.writer.table.rows_recovered;
                self.writer.put(rowid, values)?;
                self.writer.table.rows_from_stray_pages += self.writer.table.rows_recovered - recovered;
            }
            Ok(())
        })
    }

    fn is_proven(&self, proof: &Proof, rowid: i64, value: ValueRef<'_>) -> bool {
        let sql = format!(
            "SELECT 1 FROM {} INDEXED BY {} WHERE {} = ?1 AND rowid = ?2",
            quoted(&self.shape.name),
            quoted(&proof.index),
            quoted(&proof.column)
        );
        let rowid = ValueRef::Integer(rowid);
        self.source
            .prepare_cached(&sql)
            .and_then(|mut statement| statement.exists([Bound(value), Bound(rowid)]))
            .unwrap_or(false)
    }

    /// A table without rowids has one way only.
    fn copy_without_rowid(&mut self) -> Result<(), SalvageErrorKind> {
        let sql = self.shape.select();
        let Ok(mut statement) = self.source.prepare(&sql) else { return Ok(()) };
        let Ok(mut rows) = statement.query([]) else { return Ok(()) };
        let mut row_number = 0;
        loop {
            match rows.next() {
                Ok(Some(row)) => {
                    row_number += 1;
                    let Ok(values) = (1..=self.shape.columns.len())
                        .map(|at| row.get_ref(at))
                        .collect::<Result<Vec<_>, _>>()
                    else {
                        return Ok(());
                    };
                    self.writer.put(row_number, &values)?;
                }
                Ok(None) => {
                    self.writer.table.lost_is_exact = true;
                    return Ok(());
                }
                Err(_) => return Ok(()),
            }
        }
    }

    /// Copies the row a statement stands on; `None` where its number cannot be read.
    fn copy_row(&mut self, row: &Row<'_>) -> Result<Option<i64>, SalvageErrorKind> {
        let Ok(rowid) = row.get::<_, i64>(0) else { return Ok(None) };
        if self.writer.is_settled(rowid) {
            return Ok(Some(rowid));
        }
        let values = (1..=self.shape.columns.len()).map(|at| row.get_ref(at)).collect::<Result<Vec<_>, _>>();
        match values {
            Ok(values) => self.writer.put(rowid, &values)?,
            Err(_) => return Ok(None),
        }
        Ok(Some(rowid))
    }

    fn finish(mut self, known: &Known) -> SalvagedTable {
        let lost = &(&known.rows | &self.unreadable) - &self.writer.settled;
        if self.shape.has_rowid {
            self.writer.table.lost_is_exact = known.is_complete;
            self.writer.table.rows_lost = lost.len();
        }
        let proof = proof(self.source, &self.shape.name);
        for id in lost.iter().take(EXAMPLES_MAX) {
            let name = proof.as_ref().and_then(|proof| self.name_by_index(proof, id.cast_signed()));
            self.writer.table.lost_examples.push(name.unwrap_or_else(|| format!("row {}", id.cast_signed())));
        }
        self.writer.table
    }

    /// The id of a row that is lost, from the index that still names it.
    fn name_by_index(&self, proof: &Proof, rowid: i64) -> Option<String> {
        let sql = format!(
            "SELECT {} FROM {} INDEXED BY {} WHERE rowid + 0 = ?1",
            quoted(&proof.column),
            quoted(&self.shape.name),
            quoted(&proof.index)
        );
        let value: Value = self.source.query_row(&sql, [rowid], |row| row.get(0)).ok()?;
        Some(name_of(rowid, Some(&ValueRef::from(&value))))
    }
}

/// SQL for the rows of a gap.
const IN_GAP: &str = "rowid >= ?1 AND rowid <= ?2";
