//! Reading the rows of one table that survive, in stored order, in bounded memory.

use std::sync::Arc;

use headwater_prune::Class;
use roaring::RoaringTreemap;
use rusqlite::functions::FunctionFlags;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row};

use crate::plan::TableFate;
use crate::rebuild::error::{Doing, RebuildErrorKind};
use crate::rebuild::ranges::stretches;
use crate::rebuild::rewrite::Rewriter;
use crate::rebuild::shape::{TableShape, quoted};

/// A value of more bytes than this is never held whole: it passes in chunks. Several batches, each with one such value at most, and
/// two page caches stay well under the 64 MiB that a rebuild may use.
pub(crate) const LARGE_BYTES: u64 = 2 << 20;

/// Bytes of one chunk of a large value.
const CHUNK_BYTES: usize = 256 << 10;

/// The SQL function that tells survivors by rowid. It stands in the WHERE clause, so that it decides before `data` is read.
const SURVIVES: &str = "headwater_survives";

/// One value of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Cell<'a> {
    /// A value in memory.
    Value(ValueRef<'a>),
    /// A value of more than [`LARGE_BYTES`], which follows in chunks.
    Large {
        /// Whether it is text; else it is a blob.
        is_text: bool,
        /// Its bytes.
        length: u64,
    },
}

/// Takes rows as they are read.
pub(crate) trait RowSink {
    /// A row; the bytes of its large cells follow as chunks, cell by cell.
    fn row(&mut self, rowid: Option<i64>, cells: &[Cell<'_>]) -> Result<(), RebuildErrorKind>;
    /// The next bytes of a large cell of the last row.
    fn chunk(&mut self, bytes: &[u8]) -> Result<(), RebuildErrorKind>;
}

/// Which rows of a table survive, and which of them change.
#[derive(Clone, Debug, Default)]
pub(crate) struct Survivors {
    dropped: Arc<RoaringTreemap>,
    rewritten: Vec<(Class, RoaringTreemap)>,
}

impl Survivors {
    /// By the plan's fate of the table. A row that is to go is not rewritten.
    pub(crate) fn of(fate: &TableFate) -> Self {
        let mut dropped = RoaringTreemap::new();
        for ids in fate.dropped.values() {
            dropped |= ids;
        }
        let rewritten = fate
            .rewritten
            .iter()
            .map(|(class, ids)| (*class, ids - &dropped))
            .filter(|(_, ids)| !ids.is_empty())
            .collect();
        Self { dropped: Arc::new(dropped), rewritten }
    }

    /// Whether every row stays as it is.
    pub(crate) fn is_everything(&self) -> bool {
        self.dropped.is_empty() && self.rewritten.is_empty()
    }

    /// How many rows go.
    pub(crate) fn dropped_count(&self) -> u64 {
        self.dropped.len()
    }

    fn classes(&self, rowid: i64) -> headwater_prune::Classes {
        let bits = rowid.cast_unsigned();
        self.rewritten.iter().filter(|(_, ids)| ids.contains(bits)).map(|(class, _)| *class).collect()
    }
}

/// What became of the rows of a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Rows that were read, rewritten ones included.
    pub(crate) kept: u64,
    /// Rows whose `data` changed.
    pub(crate) rewritten: u64,
    /// Rows that were to be rewritten and stay as they are, because their content does not allow it.
    pub(crate) left: u64,
}

/// Reads the survivors of one table.
pub(crate) struct TableReader<'a> {
    db: &'a Connection,
    shape: &'a TableShape,
    survivors: &'a Survivors,
    rewriter: &'a dyn Rewriter,
    data_column: Option<usize>,
    type_column: Option<usize>,
}

impl<'a> TableReader<'a> {
    /// A reader of `shape` in `db`.
    pub(crate) fn new(
        db: &'a Connection,
        shape: &'a TableShape,
        survivors: &'a Survivors,
        rewriter: &'a dyn Rewriter,
    ) -> Result<Self, RebuildErrorKind> {
        let column = |name: &str| shape.columns.iter().position(|column| column == name);
        if shape.rowid_expression().is_none() && !survivors.is_everything() {
            let what = format!("table {} has no rowid, and the plan names rows of it by rowid", shape.name);
            return Err(RebuildErrorKind::Unsupported(what));
        }
        Ok(Self { db, shape, survivors, rewriter, data_column: column("data"), type_column: column("type") })
    }

    /// Reads all survivors into `sink`, ascending by rowid or key.
    pub(crate) fn read(&self, sink: &mut dyn RowSink) -> Result<Counts, RebuildErrorKind> {
        self.offer_survival().doing("preparing to read a table")?;
        let mut statement = self.db.prepare(&self.select_sql()).doing("preparing to read a table")?;
        let mut counts = Counts::default();
        if self.shape.rowid_expression().is_none() {
            let mut rows = statement.query([]).doing("reading a table")?;
            while let Some(row) = rows.next().doing("reading a table")? {
                self.pass(row, sink, &mut counts)?;
            }
            return Ok(counts);
        }
        for (first, last) in stretches(&self.survivors.dropped) {
            let mut rows = statement.query([first, last]).doing("reading a table")?;
            while let Some(row) = rows.next().doing("reading a table")? {
                self.pass(row, sink, &mut counts)?;
            }
        }
        Ok(counts)
    }

    fn offer_survival(&self) -> rusqlite::Result<()> {
        let dropped = Arc::clone(&self.survivors.dropped);
        let flags = FunctionFlags::SQLITE_DIRECTONLY;
        self.db.create_scalar_function(SURVIVES, 1, flags, move |context| {
            Ok(!dropped.contains(context.get::<i64>(0)?.cast_unsigned()))
        })
    }

    /// Columns of the answer: the rowid or NULL, whether a value is large, then the columns, large ones as NULL.
    fn select_sql(&self) -> String {
        let table = self.shape.quoted();
        let order = self.shape.order();
        let names: Vec<String> = self.shape.columns.iter().map(|name| quoted(name)).collect();
        let Some(rowid) = self.shape.rowid_expression() else {
            let by = if order.is_empty() { String::new() } else { format!(" ORDER BY {order}") };
            return format!("SELECT NULL, 0, {} FROM {table}{by}", names.join(", "));
        };
        let mut large = Vec::new();
        let mut values = Vec::new();
        for (name, declared) in names.iter().zip(&self.shape.types) {
            if declared.to_ascii_uppercase().contains("INT") {
                values.push(name.clone());
            } else {
                large.push(format!("octet_length({name}) > {LARGE_BYTES}"));
                values.push(format!("iif(octet_length({name}) > {LARGE_BYTES}, NULL, {name})"));
            }
        }
        let large =
            if large.is_empty() { "0".to_owned() } else { format!("ifnull({}, 0)", large.join(" OR ")) };
        let survives = if self.survivors.dropped.is_empty() {
            String::new()
        } else {
            format!(" AND {SURVIVES}({rowid})")
        };
        format!(
            "SELECT {rowid}, {large}, {} FROM {table} WHERE {rowid} BETWEEN ?1 AND ?2{survives} ORDER BY {rowid}",
            values.join(", ")
        )
    }

    fn pass(
        &self,
        row: &Row<'_>,
        sink: &mut dyn RowSink,
        counts: &mut Counts,
    ) -> Result<(), RebuildErrorKind> {
        let rowid: Option<i64> = row.get(0).doing("reading a table")?;
        let is_large: bool = row.get(1).doing("reading a table")?;
        let mut cells = Vec::with_capacity(self.shape.columns.len());
        for column in 0..self.shape.columns.len() {
            cells.push(Cell::Value(row.get_ref(column + 2).doing("reading a table")?));
        }
        if let (true, Some(rowid)) = (is_large, rowid) {
            self.mark_large(rowid, &mut cells).doing("looking at a large row")?;
        }
        counts.kept += 1;
        let rewritten = self.rewrite(rowid, &cells, counts)?;
        let mut sources: Vec<Option<&[u8]>> = vec![None; cells.len()];
        if let (Some(column), Some(bytes)) = (self.data_column, &rewritten) {
            cells[column] = if bytes.len() as u64 > LARGE_BYTES {
                sources[column] = Some(bytes);
                Cell::Large { is_text: true, length: bytes.len() as u64 }
            } else {
                Cell::Value(ValueRef::Text(bytes))
            };
        }
        sink.row(rowid, &cells)?;
        for (column, cell) in cells.iter().enumerate() {
            let (Cell::Large { .. }, Some(rowid)) = (cell, rowid) else { continue };
            match sources[column] {
                Some(bytes) => bytes.chunks(CHUNK_BYTES).try_for_each(|chunk| sink.chunk(chunk))?,
                None => self.stream(rowid, column, sink)?,
            }
        }
        Ok(())
    }

    /// Finds which of the NULLs stand for large values. Types and lengths are in the head of the row; no payload is read.
    fn mark_large(&self, rowid: i64, cells: &mut [Cell<'_>]) -> rusqlite::Result<()> {
        let name = self.shape.rowid_expression().unwrap_or_default();
        for (column, cell) in cells.iter_mut().enumerate() {
            let quoted = quoted(&self.shape.columns[column]);
            let sql = format!(
                "SELECT typeof({quoted}) = 'text', octet_length({quoted}) FROM {} WHERE {name} = ?1",
                self.shape.quoted()
            );
            let (is_text, length): (bool, Option<i64>) =
                self.db.prepare_cached(&sql)?.query_row([rowid], |row| Ok((row.get(0)?, row.get(1)?)))?;
            let length = length.and_then(|bytes| u64::try_from(bytes).ok()).unwrap_or(0);
            if length > LARGE_BYTES && *cell == Cell::Value(ValueRef::Null) {
                *cell = Cell::Large { is_text, length };
            }
        }
        Ok(())
    }

    /// The changed `data` of a row that the plan rewrites.
    fn rewrite(
        &self,
        rowid: Option<i64>,
        cells: &[Cell<'_>],
        counts: &mut Counts,
    ) -> Result<Option<Vec<u8>>, RebuildErrorKind> {
        let (Some(rowid), Some(column)) = (rowid, self.data_column) else { return Ok(None) };
        let classes = self.survivors.classes(rowid);
        if classes.is_empty() {
            return Ok(None);
        }
        let row_type = self.type_column.and_then(|column| match cells[column] {
            Cell::Value(ValueRef::Text(bytes)) => std::str::from_utf8(bytes).ok(),
            Cell::Value(_) | Cell::Large { .. } => None,
        });
        let whole;
        let data = match cells[column] {
            Cell::Value(ValueRef::Text(bytes)) => bytes,
            Cell::Large { is_text: true, .. } => {
                whole = self.load(rowid, column)?;
                &whole
            }
            Cell::Value(_) | Cell::Large { .. } => {
                counts.left += 1;
                return Ok(None);
            }
        };
        match self.rewriter.rewrite(&self.shape.name, row_type, data, classes) {
            Ok(Some(changed)) => {
                counts.rewritten += 1;
                Ok(Some(changed))
            }
            Ok(None) => Ok(None),
            Err(_unreadable) => {
                counts.left += 1;
                Ok(None)
            }
        }
    }

    fn load(&self, rowid: i64, column: usize) -> Result<Vec<u8>, RebuildErrorKind> {
        let mut whole = Collected(Vec::new());
        self.stream(rowid, column, &mut whole)?;
        Ok(whole.0)
    }

    /// Passes a large value on in chunks.
    fn stream(&self, rowid: i64, column: usize, sink: &mut dyn RowSink) -> Result<(), RebuildErrorKind> {
        let blob = self
            .db
            .blob_open(
                rusqlite::MAIN_DB,
                self.shape.name.as_str(),
                self.shape.columns[column].as_str(),
                rowid,
                true,
            )
            .doing("reading a large row")?;
        let mut buffer = vec![0; CHUNK_BYTES.min(blob.len())];
        let mut offset = 0;
        while offset < blob.len() {
            let length = buffer.len().min(blob.len() - offset);
            blob.read_at_exact(&mut buffer[..length], offset).doing("reading a large row")?;
            sink.chunk(&buffer[..length])?;
            offset += length;
        }
        Ok(())
    }
}

/// Collects chunks.
struct Collected(Vec<u8>);

impl RowSink for Collected {
    fn row(&mut self, _: Option<i64>, _: &[Cell<'_>]) -> Result<(), RebuildErrorKind> {
        Ok(())
    }

    fn chunk(&mut self, bytes: &[u8]) -> Result<(), RebuildErrorKind> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }
}
