//! What names one life of the store.

use headwater_model::Epoch;

/// Names the cluster, its timeline and the database, which a restore changes. What is found of the triggers is the other part of the name.
pub(crate) const IDENTITY: &str = "SELECT concat_ws(':', (SELECT system_identifier FROM pg_control_system()),
    (SELECT timeline_id FROM pg_control_checkpoint()), (SELECT oid FROM pg_database WHERE datname = current_database()))";

/// A new epoch.
pub(crate) fn random() -> std::io::Result<Epoch> {
    let mut bits = [0_u8; 16];
    getrandom::fill(&mut bits).map_err(std::io::Error::other)?;
    Ok(Epoch::from_bits(bits))
}
