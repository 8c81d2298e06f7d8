//! The new file holds what was put into it.

use super::known::quoted;
use super::target::Target;
use super::{SalvageErrorKind, SalvagedTable};
use crate::observer::Observer;

/// Checks pages, indexes and counts. Returns how many rows name rows that are gone.
pub(super) fn run(
    target: &Target,
    tables: &[SalvagedTable],
    observer: &dyn Observer,
) -> Result<u64, SalvageErrorKind> {
    if observer.is_cancelled() {
        return Err(SalvageErrorKind::Cancelled);
    }
    let connection = target.connection()?;
    let ask = |sql: &str| {
        connection.query_row(sql, [], |row| row.get::<_, i64>(0)).map_err(SalvageErrorKind::Write)
    };
    let problem: String = connection
        .query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))
        .map_err(SalvageErrorKind::Write)?;
    if problem != "ok" {
        return Err(SalvageErrorKind::VerificationFailed);
    }
    for table in tables {
        let rows = ask(&format!("SELECT count(*) FROM {}", quoted(&table.name)))?;
        if u64::try_from(rows) != Ok(table.rows_recovered) {
            return Err(SalvageErrorKind::VerificationFailed);
        }
    }
    // A schema of which a table is lost may declare keys that lead nowhere; then nothing can be counted.
    let broken = ask("SELECT count(*) FROM pragma_foreign_key_check").unwrap_or(0);
    Ok(broken.unsigned_abs())
}
