//! Receipts of 2.x prunes: rows of `kv` in the same transaction (P6).

use headwater_prune::{PruneReceipt, RequestKey};
use rusqlite::{Connection, OptionalExtension};

use super::answer::PruneErrorKind;
use crate::fence::Storage;
use crate::schema::Schema;

/// The plugin whose storage the receipts are in: `headwater`, each UTF-16 unit as four hex digits (fact B3), then the folder.
pub const KV_PREFIX: &str = "plugin:006800650061006400770061007400650072:prune:";

/// Where the receipts of a message are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReceiptHome {
    /// In `kv` of the database itself, in the same transaction.
    Kv,
    /// In the state file, with an intent before and a resolution after.
    State,
}

impl ReceiptHome {
    pub(super) fn of(schema: &Schema, storage: Storage) -> Self {
        let has_kv =
            ["key", "value", "time_created", "time_updated"].iter().all(|name| schema.has("kv", name));
        if storage == Storage::V2 && has_kv { Self::Kv } else { Self::State }
    }
}

pub(crate) fn kv_key(key: &str) -> String {
    format!("{KV_PREFIX}{key}")
}

pub(super) fn find(connection: &Connection, key: RequestKey) -> Result<Option<PruneReceipt>, PruneErrorKind> {
    let value: Option<String> = connection
        .prepare_cached("SELECT value FROM kv WHERE key = ?1")?
        .query_row([kv_key(&key.to_string())], |row| row.get(0))
        .optional()?;
    value.map(|value| parse(&value)).transpose()
}

pub(super) fn put(connection: &Connection, receipt: &PruneReceipt) -> Result<(), PruneErrorKind> {
    connection
        .prepare_cached(
            "INSERT INTO kv (key, value, time_created, time_updated) VALUES (?1, ?2, ?3, ?3) \
             ON CONFLICT (key) DO UPDATE SET value = excluded.value, time_updated = excluded.time_updated",
        )?
        .execute((kv_key(&receipt.key.to_string()), to_json(receipt)?, receipt.time.get()))?;
    Ok(())
}

pub(super) fn parse(json: &str) -> Result<PruneReceipt, PruneErrorKind> {
    serde_json::from_str(json).map_err(|_| PruneErrorKind::DamagedReceipt)
}

pub(super) fn to_json(receipt: &PruneReceipt) -> Result<String, PruneErrorKind> {
    serde_json::to_string(receipt).map_err(|_| PruneErrorKind::DamagedReceipt)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_prefix_is_the_plugin_key_form_of_headwater() {
        let bytes: Vec<u8> = "headwater".encode_utf16().flat_map(u16::to_be_bytes).collect();
        assert_eq!(KV_PREFIX, format!("plugin:{}:prune:", crate::state::hex(&bytes)));
    }
}
