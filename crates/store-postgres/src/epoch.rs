//! The name of one life of the store.

use std::sync::{Mutex, PoisonError};

use headwater_model::{Epoch, ParseEpochError};

/// The epoch, renewed when the rows are those of another database (C36).
#[derive(Debug)]
pub(crate) struct Life {
    current: Mutex<(Option<String>, Epoch)>,
}

/// Names the cluster, its timeline and the database, which a restore changes.
pub(crate) const IDENTITY: &str = "SELECT concat_ws(':', (SELECT system_identifier FROM pg_control_system()),
    (SELECT timeline_id FROM pg_control_checkpoint()), (SELECT oid FROM pg_database WHERE datname = current_database()))";

impl Life {
    /// A new life.
    pub(crate) fn begin() -> std::io::Result<Self> {
        Ok(Self { current: Mutex::new((None, epoch()?)) })
    }

    /// The epoch of the database that calls itself `identity`.
    pub(crate) fn epoch(&self, identity: String) -> std::io::Result<Epoch> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if current.0.as_ref().is_some_and(|known| *known != identity) {
            current.1 = epoch()?;
        }
        current.0 = Some(identity);
        Ok(current.1.clone())
    }
}

/// 128 random bits in hexadecimal digits.
fn epoch() -> std::io::Result<Epoch> {
    let mut bits = [0_u8; 16];
    getrandom::fill(&mut bits).map_err(std::io::Error::other)?;
    let text = format!("{:032x}", u128::from_be_bytes(bits));
    Epoch::new(text).map_err(|error: ParseEpochError| std::io::Error::other(error))
}
