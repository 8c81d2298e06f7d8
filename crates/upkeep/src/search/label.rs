//! Names for what was found: session, message, position and origin of a hit. Every look-up goes by key and reads little.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};

use headwater_model::UnixMillis;
use rusqlite::blob::Blob;
use rusqlite::{Connection, MAIN_DB, OptionalExtension};

use crate::reading::{integer_of, is_set, short, text_of};
use crate::schema::Schema;

use super::extract::{self, FieldHit, RowFacts, RowHits};
use super::field::Origin;
use super::hit::{Hit, Source};
use super::reader::{Kind, ReadError, Reader, Short};
use super::shape::Shape;
use super::table::Table;
use super::text::TextSearch;

/// Sessions whose title and directory are remembered.
const SESSIONS_MAX: usize = 256;

/// Bytes read at a time from a row that is not read whole.
pub(crate) const CHUNK_BYTES: usize = 256 * 1024;

/// What a row is, besides its text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) id: String,
    pub(crate) message: Option<String>,
    pub(crate) session: String,
    pub(crate) row_type: Option<String>,
    pub(crate) time: Option<UnixMillis>,
}

impl Identity {
    /// Reads what row `rowid` is with the statement of its table.
    fn read(connection: &Connection, statement: &str, rowid: i64) -> rusqlite::Result<Self> {
        connection.prepare_cached(statement)?.query_row([rowid], |row| {
            Ok(Self {
                id: text_of(row, 0)?.unwrap_or_default(),
                message: text_of(row, 1)?,
                session: text_of(row, 2)?.unwrap_or_default(),
                row_type: text_of(row, 3)?,
                time: integer_of(row, 4)?.map(UnixMillis::new),
            })
        })
    }

    /// The shape of the row's JSON.
    pub(crate) fn shape(&self, source: Source) -> Shape {
        match source {
            Source::Part => Shape::Part,
            Source::Message | Source::Session => Shape::Message,
            Source::SessionMessage => self.row_type.as_deref().map_or(Shape::Unknown, Shape::of_row_type),
            Source::Event => Shape::Event,
        }
    }
}

#[derive(Clone, Debug, Default)]
struct SessionLabel {
    title: Option<String>,
    directory: Option<String>,
    is_archived: bool,
}

/// Looks names up, on one connection.
pub(crate) struct Labels<'a> {
    connection: &'a Connection,
    schema: &'a Schema,
    /// The statement that says what a row is, by table.
    identities: BTreeMap<&'static str, String>,
    sessions: BTreeMap<String, SessionLabel>,
    /// The message asked for last, and where it comes from.
    message: Option<(String, Origin)>,
}

impl<'a> Labels<'a> {
    /// Looks up on `connection`, whose file has `schema`.
    pub(crate) fn new(connection: &'a Connection, schema: &'a Schema) -> Self {
        Self { connection, schema, identities: BTreeMap::new(), sessions: BTreeMap::new(), message: None }
    }

    /// What row `rowid` of `table` is.
    pub(crate) fn identity(&mut self, table: &Table, rowid: i64) -> rusqlite::Result<Identity> {
        let statement = self.identities.entry(table.name).or_insert_with(|| table.identity(self.schema));
        Identity::read(self.connection, statement, rowid)
    }

    /// The hits of one row, with their names.
    pub(crate) fn label(
        &mut self,
        source: Source,
        identity: &Identity,
        facts: &RowFacts,
        found: Vec<FieldHit>,
    ) -> rusqlite::Result<Vec<Hit>> {
        let session = self.session(&identity.session)?;
        let origin = self.origin(source, identity, facts)?;
        let is_part = source == Source::Part;
        let index = if is_part { self.part_index(identity)? } else { None };
        let is_event = source == Source::Event;
        // A snapshot of a part names its message; one of a message is the message.
        let (message, part) = match (&facts.message, is_event) {
            (Some(message), true) => (Some(message.clone()), facts.id.clone()),
            (None, true) => (facts.id.clone(), None),
            (_, false) => (identity.message.clone(), is_part.then(|| identity.id.clone())),
        };
        let hit = |found: FieldHit| Hit {
            source,
            session: identity.session.clone(),
            title: session.title.clone(),
            directory: session.directory.clone(),
            is_archived: session.is_archived,
            message: message.clone(),
            part: part.clone(),
            part_index: index.or(found.item),
            event: is_event.then(|| identity.id.clone()),
            origin,
            field: found.field,
            tool: found.tool,
            time: identity.time,
            occurrences: found.occurrences,
            excerpt: found.excerpt,
        };
        Ok(found.into_iter().map(hit).collect())
    }

    fn session(&mut self, id: &str) -> rusqlite::Result<SessionLabel> {
        if let Some(known) = self.sessions.get(id) {
            return Ok(known.clone());
        }
        let mut label = SessionLabel::default();
        // Of a session that is in both storages the 2.x row is the one in use (fact B2).
        for table in ["session_v2", "session"] {
            if !self.schema.has(table, "title") {
                continue;
            }
            let (title, directory) =
                (short(self.schema, table, "title"), short(self.schema, table, "directory"));
            let archived = is_set(self.schema, table, "time_archived");
            let sql = format!("SELECT {title}, {directory}, {archived} FROM {table} WHERE id = ?1");
            let read = |row: &rusqlite::Row<'_>| {
                Ok(SessionLabel {
                    title: text_of(row, 0)?,
                    directory: text_of(row, 1)?,
                    is_archived: row.get(2)?,
                })
            };
            if let Some(found) = self.connection.prepare_cached(&sql)?.query_row([id], read).optional()? {
                label = found;
                break;
            }
        }
        if self.sessions.len() >= SESSIONS_MAX {
            self.sessions.clear();
        }
        self.sessions.insert(id.to_owned(), label.clone());
        Ok(label)
    }

    fn origin(&mut self, source: Source, identity: &Identity, facts: &RowFacts) -> rusqlite::Result<Origin> {
        Ok(match source {
            Source::Session => Origin::Other,
            Source::SessionMessage => match identity.row_type.as_deref() {
                Some("user") => Origin::User,
                Some("assistant") => Origin::Assistant,
                Some("system") => Origin::System,
                Some("synthetic") => Origin::Synthetic,
                Some("shell") => Origin::Shell,
                Some("compaction") => Origin::Compaction,
                _ => Origin::Other,
            },
            Source::Message => of_message(facts),
            Source::Event if facts.role.is_some() => of_message(facts),
            Source::Part | Source::Event if facts.is_synthetic => Origin::Synthetic,
            Source::Part => self.origin_of_message(identity.message.as_deref())?,
            Source::Event => self.origin_of_message(facts.message.as_deref())?,
        })
    }

    /// Where the 1.x message `id` comes from.
    fn origin_of_message(&mut self, id: Option<&str>) -> rusqlite::Result<Origin> {
        let Some(id) = id else { return Ok(Origin::Other) };
        if let Some((known, origin)) = &self.message
            && known == id
        {
            return Ok(*origin);
        }
        let origin = match self.open("message", id)? {
            Some(blob) => message_facts(BufReader::with_capacity(4096, blob))
                .map_or(Origin::Other, |facts| of_message(&facts)),
            None => Origin::Other,
        };
        self.message = Some((id.to_owned(), origin));
        Ok(origin)
    }

    fn open(&self, table: &'static str, id: &str) -> rusqlite::Result<Option<Blob<'a>>> {
        if !self.schema.has(table, "data") {
            return Ok(None);
        }
        let sql = format!("SELECT rowid, typeof(data) IN ('text', 'blob') FROM {table} WHERE id = ?1");
        let found = self
            .connection
            .prepare_cached(&sql)?
            .query_row([id], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, bool>(1)?)))
            .optional()?;
        match found {
            Some((rowid, true)) => self.connection.blob_open(MAIN_DB, table, "data", rowid, true).map(Some),
            Some((_, false)) | None => Ok(None),
        }
    }

    /// The position of a part among those of its message, in id order (P3).
    fn part_index(&self, identity: &Identity) -> rusqlite::Result<Option<u32>> {
        let Some(message) = &identity.message else { return Ok(None) };
        self.connection
            .prepare_cached("SELECT count(*) FROM part WHERE message_id = ?1 AND id < ?2")?
            .query_row([message, &identity.id], |row| row.get(0))
            .map(Some)
    }

    /// Takes out of `found`, hits of a 1.x row, those whose 2.x copy has a hit in the same field: it is reported there.
    pub(crate) fn drop_migrated(
        &self,
        identity: &Identity,
        text: &mut TextSearch<'_>,
        with_technical: bool,
        found: &mut RowHits,
    ) -> rusqlite::Result<()> {
        let Some(message) = &identity.message else { return Ok(()) };
        if !self.schema.has_table("session_v2") || !self.schema.has("session_message", "type") {
            return Ok(());
        }
        let sql = "SELECT type FROM session_message WHERE id = ?1 AND session_id = ?2";
        let row_type: Option<String> = self
            .connection
            .prepare_cached(sql)?
            .query_row([message, &identity.session], |row| text_of(row, 0).map(Option::unwrap_or_default))
            .optional()?;
        let Some(row_type) = row_type else { return Ok(()) };
        let Some(blob) = self.open("session_message", message)? else { return Ok(()) };
        let input = BufReader::with_capacity(CHUNK_BYTES, blob);
        if let Ok(copy) = extract::row(input, Shape::of_row_type(&row_type), text, with_technical) {
            found.hits.retain(|hit| copy.hits.iter().all(|other| other.field != hit.field));
        }
        Ok(())
    }
}

fn of_message(facts: &RowFacts) -> Origin {
    match facts.role.as_deref() {
        Some("user") => Origin::User,
        Some("assistant") if facts.is_summary => Origin::Compaction,
        Some("assistant") => Origin::Assistant,
        _ => Origin::Other,
    }
}

/// Reads what `message.data` says of itself, no further than needed: the diffs of a user message may be huge and follow its role.
fn message_facts(input: impl BufRead) -> Result<RowFacts, ReadError> {
    let mut reader = Reader::new(input);
    let (mut facts, mut key, mut is_first) = (RowFacts::default(), Short::default(), true);
    reader.open(Kind::Object)?;
    while facts.role.as_deref() != Some("user") && reader.member(is_first, &mut key)? {
        is_first = false;
        match (key.as_str(), reader.kind()?) {
            (Some("role"), Kind::String) => {
                let mut role = Short::default();
                reader.string(&mut role)?;
                facts.role = role.as_str().map(str::to_owned);
            }
            (Some("summary"), Kind::Scalar) => facts.is_summary = reader.scalar()? == Some(true),
            _ => reader.skip()?,
        }
    }
    Ok(facts)
}
