//! Which tables hold a session, and whether this program knows how to write them (P1, P8).

use rusqlite::Connection;
use serde::Serialize;

use crate::schema::{KNOWN_TABLES, Schema};

/// Where the messages of a session are stored. Which tables and columns exist decides, never a version number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Storage {
    /// 1.x: `message` and `part` under `session`.
    V1,
    /// 2.x: `session_message` under `session_v2`.
    V2,
    /// `session_message` under `session`, as the `/api/session` routes of 1.18 write it (fact A11).
    V2OnV1Session,
}

impl Storage {
    /// The table with the row of the session.
    pub const fn session_table(self) -> &'static str {
        match self {
            Self::V1 | Self::V2OnV1Session => "session",
            Self::V2 => "session_v2",
        }
    }

    /// The table with the rows of its messages.
    pub const fn message_table(self) -> &'static str {
        match self {
            Self::V1 => "message",
            Self::V2 | Self::V2OnV1Session => "session_message",
        }
    }

    fn needed(self) -> &'static [(&'static str, &'static [&'static str])] {
        const EVENTS: (&str, &[&str]) = ("event_sequence", &["aggregate_id", "seq", "owner_id"]);
        match self {
            Self::V1 => &[
                ("session", &["id", "directory", "project_id", "revert"]),
                ("message", &["id", "session_id", "time_created", "time_updated", "data"]),
                ("part", &["id", "message_id", "session_id", "time_updated", "data"]),
                EVENTS,
            ],
            Self::V2 => &[
                ("session_v2", &["id", "directory", "project_id", "revert"]),
                ("session_message", &["id", "session_id", "type", "seq", "time_updated", "data"]),
                EVENTS,
            ],
            Self::V2OnV1Session => &[
                ("session", &["id", "directory", "project_id", "revert"]),
                ("session_message", &["id", "session_id", "type", "seq", "time_updated", "data"]),
                EVENTS,
            ],
        }
    }
}

/// Why this program does not write a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unsupported {
    /// Another database is attached to the connection.
    #[error("more than one database is attached")]
    Attached,
    /// A trigger would do what no preview showed. OpenCode has none (fact A1).
    #[error("the database has triggers")]
    Triggers,
    /// A table or column that the fence reads is missing.
    #[error("the table `{table}` has not the columns of OpenCode's")]
    Missing {
        /// The table.
        table: &'static str,
    },
    /// A table that decides about safety has a column whose meaning nobody here knows; it may be a claim.
    #[error("the table `{table}` has a column that this version does not know")]
    UnknownColumn {
        /// The table.
        table: &'static str,
    },
}

pub(super) fn ensure_supported(schema: &Schema, storage: Storage) -> Result<(), Unsupported> {
    if !schema.triggers().is_empty() {
        return Err(Unsupported::Triggers);
    }
    for (table, columns) in storage.needed() {
        if !columns.iter().all(|column| schema.has(table, column)) {
            return Err(Unsupported::Missing { table });
        }
    }
    // The fence reads the rows of both layouts, whichever is written.
    let read = ["session", "session_v2", "session_inbox", "session_pending", "session_input"];
    let written = storage.needed().iter().map(|(table, _)| *table);
    for table in read.into_iter().chain(written) {
        if has_unknown_column(schema, table) {
            return Err(Unsupported::UnknownColumn { table });
        }
    }
    Ok(())
}

fn has_unknown_column(schema: &Schema, table: &'static str) -> bool {
    let Some(found) = schema.tables().get(table) else { return false };
    let known = KNOWN_TABLES.iter().find(|(name, _)| *name == table).map_or(&[][..], |(_, columns)| columns);
    found.columns.iter().any(|column| !known.contains(&column.as_str()))
}

/// Whether sessions of `storage` carry an execution claim (fact B3). Without one the rules of 1.x apply.
pub(super) fn has_claim(schema: &Schema, storage: Storage) -> bool {
    storage == Storage::V2 && schema.has("session_v2", "time_suspended")
}

/// Databases on the connection, `main` included and an unused `temp` not.
pub(super) fn attached_count(connection: &Connection) -> rusqlite::Result<u32> {
    connection
        .prepare_cached("SELECT count(*) FROM pragma_database_list WHERE name <> 'temp'")?
        .query_row([], |row| row.get(0))
}
