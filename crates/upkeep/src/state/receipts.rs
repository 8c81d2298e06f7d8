//! Intents and receipts of prunes.

use headwater_model::{ContentRevision, UnixMillis};
use rusqlite::{Connection, OptionalExtension, params};
use serde::{Deserialize, Serialize};

use super::{DatabaseKey, StateError, StateErrorKind, StateFile};

/// What tells from the stored rows whether an intended prune was committed. Content-free.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Evidence {
    /// Revision of the content that the prune was to start from.
    pub before: ContentRevision,
    /// Revision of the content that it leaves.
    pub after: ContentRevision,
    /// What it removes: ids of parts (1.x), or SHA-256 of content items in hex (2.x rows without a `kv` table).
    pub gone: Vec<String>,
}

/// A prune that is about to be committed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Intent {
    /// Key of the request; unique per database.
    pub key: String,
    /// Session of the message.
    pub session: String,
    /// The message.
    pub message: String,
    /// How to find out whether it was committed.
    pub evidence: Evidence,
    /// The receipt that it will have, as JSON.
    pub receipt: String,
    /// The caller's clock.
    pub intended: UnixMillis,
}

/// What became of an intent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resolution {
    /// The change is in the database: the receipt counts.
    Done,
    /// The change is not in the database: there was no prune.
    Void,
}

/// A receipt found under its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredReceipt {
    /// How it relates to the stored rows.
    pub evidence: Evidence,
    /// The receipt as JSON.
    pub receipt: String,
}

impl StateFile {
    /// The receipt of the committed prune under `key`.
    ///
    /// # Errors
    /// [`StateError`] where the file cannot be read or a value is damaged.
    pub fn receipt(&self, database: DatabaseKey, key: &str) -> Result<Option<StoredReceipt>, StateError> {
        self.read(|connection| {
            let found: Option<(String, String)> = connection
                .query_row(
                    "SELECT evidence, receipt FROM receipt WHERE database = ?1 AND key = ?2 AND state = 'done'",
                    params![database.0, key],
                    |row| Ok((row.get(0)?, row.get(1)?)),
                )
                .optional()?;
            found
                .map(|(evidence, receipt)| Ok(StoredReceipt { evidence: evidence_of(&evidence)?, receipt }))
                .transpose()
        })
    }

    /// Every intent of `database` that nobody has resolved, by key. Meaningful to the holder of the claim alone.
    ///
    /// # Errors
    /// [`StateError`] where the file cannot be read or a value is damaged.
    pub fn intents(&self, database: DatabaseKey) -> Result<Vec<Intent>, StateError> {
        self.read(|connection| {
            let mut statement = connection.prepare(
                "SELECT key, session, message, evidence, receipt, time_intended FROM receipt \
                 WHERE database = ?1 AND state = 'intent' ORDER BY key",
            )?;
            let mut rows = statement.query([database.0])?;
            let mut intents = Vec::new();
            while let Some(row) = rows.next()? {
                intents.push(Intent {
                    key: row.get(0)?,
                    session: row.get(1)?,
                    message: row.get(2)?,
                    evidence: evidence_of(&row.get::<_, String>(3)?)?,
                    receipt: row.get(4)?,
                    intended: UnixMillis::new(row.get(5)?),
                });
            }
            Ok(intents)
        })
    }

    /// Writes `intents` in one transaction, on disk when the call returns. A superseded receipt under the same key is replaced.
    ///
    /// # Errors
    /// [`StateError`] where the file cannot be written; none of the intents is recorded then.
    pub fn intend(&mut self, database: DatabaseKey, intents: &[Intent]) -> Result<(), StateError> {
        self.write(|connection| intents.iter().try_for_each(|intent| put(connection, database, intent)))
    }

    /// Resolves intents in one transaction, on disk when the call returns. Resolving again changes nothing.
    ///
    /// # Errors
    /// [`StateError`] where the file cannot be written; every intent stays open then, and the next holder of the claim resolves it.
    pub fn resolve<'k>(
        &mut self,
        database: DatabaseKey,
        resolutions: impl IntoIterator<Item = (&'k str, Resolution)>,
    ) -> Result<(), StateError> {
        self.write(|connection| {
            for (key, resolution) in resolutions {
                let sql = match resolution {
                    Resolution::Done => {
                        "UPDATE receipt SET state = 'done' WHERE database = ?1 AND key = ?2 AND state = 'intent'"
                    }
                    Resolution::Void => {
                        "DELETE FROM receipt WHERE database = ?1 AND key = ?2 AND state = 'intent'"
                    }
                };
                connection.prepare_cached(sql)?.execute(params![database.0, key])?;
            }
            Ok(())
        })
    }

    /// Removes the receipts of prunes that were undone, in one transaction.
    ///
    /// # Errors
    /// [`StateError`] where the file cannot be written. The receipts are superseded all the same: the content has its first revision.
    pub fn forget<'k>(
        &mut self,
        database: DatabaseKey,
        keys: impl IntoIterator<Item = &'k str>,
    ) -> Result<(), StateError> {
        self.write(|connection| {
            let mut delete =
                connection.prepare_cached("DELETE FROM receipt WHERE database = ?1 AND key = ?2")?;
            for key in keys {
                delete.execute(params![database.0, key])?;
            }
            Ok(())
        })
    }

    /// How many receipts of committed prunes of `database` are kept.
    ///
    /// # Errors
    /// [`StateError`] where the file cannot be read.
    pub fn receipt_count(&self, database: DatabaseKey) -> Result<u64, StateError> {
        self.read(|connection| {
            let count: i64 = connection.query_row(
                "SELECT count(*) FROM receipt WHERE database = ?1 AND state = 'done'",
                [database.0],
                |row| row.get(0),
            )?;
            u64::try_from(count).map_err(|_| StateErrorKind::Damaged)
        })
    }
}

fn put(connection: &Connection, database: DatabaseKey, intent: &Intent) -> Result<(), StateErrorKind> {
    let evidence = serde_json::to_string(&intent.evidence).map_err(|_| StateErrorKind::Damaged)?;
    connection
        .prepare_cached(
            "INSERT OR REPLACE INTO receipt (database, key, state, session, message, evidence, receipt, time_intended) \
             VALUES (?1, ?2, 'intent', ?3, ?4, ?5, ?6, ?7)",
        )?
        .execute(params![
            database.0,
            intent.key,
            intent.session,
            intent.message,
            evidence,
            intent.receipt,
            intent.intended.get(),
        ])?;
    Ok(())
}

fn evidence_of(text: &str) -> Result<Evidence, StateErrorKind> {
    serde_json::from_str(text).map_err(|_| StateErrorKind::Damaged)
}
