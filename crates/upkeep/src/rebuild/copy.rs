//! Copying what survives into the new file: tables that stay whole by records, others row by row on two threads.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, MAIN_DB, Statement, ToSql};

use crate::plan::Plan;
use crate::rebuild::connect::PathText;
use crate::rebuild::encoded::{Decoder, Digest, Digester, encode};
use crate::rebuild::error::{Doing, RebuildErrorKind};
use crate::rebuild::large::{LargeRow, Placeholder, patch};
use crate::rebuild::new_file;
use crate::rebuild::rewrite::Rewriter;
use crate::rebuild::rows::{Cell, Counts, RowSink, Survivors, TableReader};
use crate::rebuild::shape::{Entry, TableShape, entries};

/// Bytes after which a batch of rows goes to the writing thread.
const BATCH_BYTES: usize = 256 << 10;

/// Batches on their way. With one row of at most a few MiB in each, memory stays bounded.
const BATCHES_MAX: usize = 3;

/// The name of the new file beside the source in one connection.
const ATTACHED: &str = "headwater_new";

/// A table and what became of it.
#[derive(Debug)]
pub(crate) struct CopiedTable {
    pub(crate) shape: TableShape,
    pub(crate) survivors: Survivors,
    pub(crate) counts: Counts,
    /// The digest of the rows as they were read (or rewritten) on their way; none for a table that was moved by records, which is
    /// read again when it is verified.
    pub(crate) digest: Option<Digest>,
}

/// Every table with rows of its own, with what survives of it.
pub(crate) fn tables(source: &Connection, plan: &Plan) -> Result<Vec<CopiedTable>, RebuildErrorKind> {
    let mut fates: BTreeMap<&str, Survivors> =
        plan.fates.iter().map(|(table, fate)| (*table, Survivors::of(fate))).collect();
    let mut tables = Vec::new();
    for entry in entries(source)?.into_iter().filter(Entry::is_table_with_pages) {
        let shape = TableShape::read(source, &entry.name)?;
        let survivors = fates.remove(entry.name.as_str()).unwrap_or_default();
        tables.push(CopiedTable { shape, survivors, counts: Counts::default(), digest: None });
    }
    if let Some(missing) = fates.keys().next() {
        return Err(RebuildErrorKind::Unsupported(format!(
            "the plan names table {missing}, which is not there"
        )));
    }
    // Loading a table with AUTOINCREMENT moves its counter, so the counters come last.
    tables.sort_by_key(|table| table.shape.name == "sqlite_sequence");
    Ok(tables)
}

/// Copies every row that survives from `source` into the file at `new_path`, whose tables exist and are empty.
pub(crate) fn copy(
    source: &Connection,
    new_path: &Path,
    tables: &mut [CopiedTable],
    rewriter: &dyn Rewriter,
) -> Result<(), RebuildErrorKind> {
    let moved = |table: &CopiedTable| table.survivors.is_everything() && table.shape.moves_records;
    let whole: Vec<&CopiedTable> = tables.iter().filter(|table| moved(table)).collect();
    let names: Vec<&str> = whole.iter().map(|table| table.shape.name.as_str()).collect();
    new_file::create_plain_indexes(source, new_path, &names)?;
    move_records(source, new_path, &whole)?;
    let mut filtered: Vec<&mut CopiedTable> = tables.iter_mut().filter(|table| !moved(table)).collect();
    copy_rows(source, new_path, &mut filtered, rewriter)
}

/// Moves tables that stay whole. Without a WHERE clause SQLite moves records without decoding them, in constant memory.
fn move_records(
    source: &Connection,
    new_path: &Path,
    tables: &[&CopiedTable],
) -> Result<(), RebuildErrorKind> {
    source
        .execute(&format!("ATTACH ?1 AS {ATTACHED}"), [PathText(new_path)])
        .doing("attaching the new file")?;
    let attached = || -> rusqlite::Result<()> {
        source.pragma_update(Some(ATTACHED), "journal_mode", "OFF")?;
        source.pragma_update(Some(ATTACHED), "synchronous", "OFF")?;
        source.pragma_update(Some(ATTACHED), "cache_size", -new_file::CACHE_KIB)?;
        source.pragma_update(None, "ignore_check_constraints", true)?;
        for table in tables {
            let name = table.shape.quoted();
            source.execute_batch(&format!("INSERT INTO {ATTACHED}.{name} SELECT * FROM main.{name}"))?;
        }
        Ok(())
    };
    let moved = attached().doing("copying tables");
    source.execute_batch(&format!("DETACH {ATTACHED}")).doing("detaching the new file")?;
    moved
}

/// What passes from the reading to the writing thread.
enum Message {
    /// The rows that follow are of this table.
    Table(usize),
    /// Encoded rows.
    Rows(Vec<u8>),
    /// One encoded row with large cells; as many chunks follow as they have bytes.
    Large(Vec<u8>),
    /// Bytes of a large cell.
    Chunk(Vec<u8>),
}

fn copy_rows(
    source: &Connection,
    new_path: &Path,
    tables: &mut [&mut CopiedTable],
    rewriter: &dyn Rewriter,
) -> Result<(), RebuildErrorKind> {
    let shapes: Vec<TableShape> = tables.iter().map(|table| table.shape.clone()).collect();
    let (sender, receiver) = sync_channel(BATCHES_MAX);
    let (read, written) = thread::scope(|scope| {
        // Each end of the channel goes when its thread is done, so that neither waits for the other after an error.
        let writer = scope.spawn(|| {
            let receiver = receiver;
            Writer { shapes: &shapes }.write(new_path, &receiver)
        });
        let read = read_tables(source, tables, rewriter, &sender);
        drop(sender);
        let written =
            writer.join().unwrap_or(Err(RebuildErrorKind::Verification("the writing thread died".into())));
        (read, written)
    });
    // Where the writer stopped, the reader only saw that nobody listens.
    let large = written?;
    read?;
    if !large.is_empty() {
        patch(new_path, &shapes, &large)?;
    }
    Ok(())
}

fn read_tables(
    source: &Connection,
    tables: &mut [&mut CopiedTable],
    rewriter: &dyn Rewriter,
    sender: &SyncSender<Message>,
) -> Result<(), RebuildErrorKind> {
    for (index, table) in tables.iter_mut().enumerate() {
        let mut batches = Batches { sender, rows: 0, bytes: Vec::new(), digester: Digester::default() };
        batches.send(Message::Table(index))?;
        let reader = TableReader::new(source, &table.shape, &table.survivors, rewriter)?;
        table.counts = reader.read(&mut batches)?;
        batches.flush()?;
        table.digest = Some(batches.digester.finish());
    }
    Ok(())
}

/// Encodes rows into batches and takes their digest.
struct Batches<'a> {
    sender: &'a SyncSender<Message>,
    rows: u64,
    bytes: Vec<u8>,
    digester: Digester,
}

impl Batches<'_> {
    fn send(&self, message: Message) -> Result<(), RebuildErrorKind> {
        self.sender
            .send(message)
            .map_err(|_| RebuildErrorKind::Verification("the writing thread stopped".into()))
    }

    fn flush(&mut self) -> Result<(), RebuildErrorKind> {
        if self.rows == 0 {
            return Ok(());
        }
        let bytes = std::mem::replace(&mut self.bytes, Vec::with_capacity(BATCH_BYTES + (BATCH_BYTES >> 2)));
        self.digester.add(self.rows, &bytes);
        self.rows = 0;
        self.send(Message::Rows(bytes))
    }
}

impl RowSink for Batches<'_> {
    fn row(&mut self, rowid: Option<i64>, cells: &[Cell<'_>]) -> Result<(), RebuildErrorKind> {
        if cells.iter().any(|cell| matches!(cell, Cell::Large { .. })) {
            self.flush()?;
            let mut row = Vec::new();
            encode(rowid, cells, &mut row);
            self.digester.add(1, &row);
            return self.send(Message::Large(row));
        }
        encode(rowid, cells, &mut self.bytes);
        self.rows += 1;
        if self.bytes.len() >= BATCH_BYTES { self.flush() } else { Ok(()) }
    }

    fn chunk(&mut self, bytes: &[u8]) -> Result<(), RebuildErrorKind> {
        self.digester.add(0, bytes);
        self.send(Message::Chunk(bytes.to_vec()))
    }
}

/// The writing thread.
struct Writer<'a> {
    shapes: &'a [TableShape],
}

impl Writer<'_> {
    /// Writes what arrives; the answer lists the rows whose heads have to be patched.
    fn write(&self, path: &Path, messages: &Receiver<Message>) -> Result<Vec<LargeRow>, RebuildErrorKind> {
        let db = new_file::open(path)?;
        db.execute_batch("BEGIN").doing("writing rows")?;
        let mut large = Vec::new();
        let mut target: Option<(usize, Statement<'_>)> = None;
        while let Ok(message) = messages.recv() {
            match (message, &mut target) {
                (Message::Table(index), _) => target = Some((index, self.begin_table(&db, index)?)),
                (Message::Rows(bytes), Some((index, insert))) => {
                    insert_rows(insert, &self.shapes[*index], &bytes).doing("writing rows")?;
                }
                (Message::Large(row), Some((index, insert))) => {
                    large.extend(self.write_large(&db, *index, insert, &row, messages)?);
                }
                (Message::Rows(_) | Message::Large(_) | Message::Chunk(_), _) => return Err(out_of_order()),
            }
        }
        drop(target);
        db.execute_batch("COMMIT").doing("writing rows")?;
        db.close().map_err(|(_, error)| error).doing("closing the new file")?;
        Ok(large)
    }

    fn begin_table<'db>(
        &self,
        db: &'db Connection,
        index: usize,
    ) -> Result<Statement<'db>, RebuildErrorKind> {
        let shape = &self.shapes[index];
        if shape.name == "sqlite_sequence" {
            db.execute_batch("DELETE FROM sqlite_sequence").doing("writing rows")?;
        }
        db.prepare(&shape.insert_sql()).doing("writing rows")
    }

    fn write_large(
        &self,
        db: &Connection,
        index: usize,
        insert: &mut Statement<'_>,
        row: &[u8],
        messages: &Receiver<Message>,
    ) -> Result<Option<LargeRow>, RebuildErrorKind> {
        let shape = &self.shapes[index];
        let mut decoder = Decoder::new(row);
        let rowid = decoder.rowid().ok_or_else(out_of_order)?;
        let cells: Vec<Cell<'_>> = std::iter::from_fn(|| decoder.cell()).collect();
        let Some(placeholder) = Placeholder::of(shape, &cells) else {
            insert_whole(insert, shape, rowid, &cells, messages)?;
            return Ok(None);
        };
        let offset = usize::from(shape.inserts_rowid());
        let bind = |insert: &mut Statement<'_>| -> rusqlite::Result<()> {
            if offset == 1 {
                insert.raw_bind_parameter(1, rowid)?;
            }
            for (column, value) in placeholder.values(&cells).into_iter().enumerate() {
                insert.raw_bind_parameter(column + 1 + offset, value)?;
            }
            insert.raw_execute().map(drop)
        };
        bind(insert).doing("writing a large row")?;
        let column = shape.columns[placeholder.column].as_str();
        let mut blob =
            db.blob_open(MAIN_DB, shape.name.as_str(), column, rowid, false).doing("writing a large row")?;
        let mut at = 0;
        while at < placeholder.length {
            let Ok(Message::Chunk(bytes)) = messages.recv() else { return Err(out_of_order()) };
            blob.write_at(&bytes, at).doing("writing a large row")?;
            at += bytes.len();
        }
        blob.write_at(&placeholder.tail, at).doing("writing a large row")?;
        blob.close().doing("writing a large row")?;
        Ok(Some(LargeRow { table: index, rowid, column: placeholder.column, head: placeholder.head }))
    }
}

/// A row with large cells that cannot be written in pieces (several of them, or long text behind them): held whole.
fn insert_whole(
    insert: &mut Statement<'_>,
    shape: &TableShape,
    rowid: i64,
    cells: &[Cell<'_>],
    messages: &Receiver<Message>,
) -> Result<(), RebuildErrorKind> {
    let mut wholes: Vec<Vec<u8>> = Vec::new();
    for cell in cells {
        let Cell::Large { length, .. } = *cell else { continue };
        let mut whole = Vec::new();
        while (whole.len() as u64) < length {
            let Ok(Message::Chunk(bytes)) = messages.recv() else { return Err(out_of_order()) };
            whole.extend_from_slice(&bytes);
        }
        wholes.push(whole);
    }
    let offset = usize::from(shape.inserts_rowid());
    let mut wholes = wholes.iter();
    let mut bind = || -> rusqlite::Result<()> {
        if offset == 1 {
            insert.raw_bind_parameter(1, rowid)?;
        }
        for (column, cell) in cells.iter().enumerate() {
            let value = match *cell {
                Cell::Value(value) => value,
                Cell::Large { is_text, .. } => {
                    let bytes = wholes.next().map_or(&[][..], Vec::as_slice);
                    if is_text { ValueRef::Text(bytes) } else { ValueRef::Blob(bytes) }
                }
            };
            insert.raw_bind_parameter(column + 1 + offset, Bound(value))?;
        }
        insert.raw_execute().map(drop)
    };
    bind().doing("writing a large row")
}

fn insert_rows(insert: &mut Statement<'_>, shape: &TableShape, bytes: &[u8]) -> rusqlite::Result<()> {
    let mut decoder = Decoder::new(bytes);
    let offset = usize::from(shape.inserts_rowid());
    while let Some(rowid) = decoder.rowid() {
        if offset == 1 {
            insert.raw_bind_parameter(1, rowid)?;
        }
        for column in 0..shape.columns.len() {
            let Some(Cell::Value(value)) = decoder.cell() else { return Err(rusqlite::Error::InvalidQuery) };
            insert.raw_bind_parameter(column + 1 + offset, Bound(value))?;
        }
        insert.raw_execute()?;
    }
    Ok(())
}

/// A value bound as it is: text need not be UTF-8.
struct Bound<'a>(ValueRef<'a>);

impl ToSql for Bound<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(self.0))
    }
}

fn out_of_order() -> RebuildErrorKind {
    RebuildErrorKind::Verification("rows arrived out of order".into())
}
