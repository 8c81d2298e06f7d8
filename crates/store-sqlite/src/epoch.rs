//! What names one life of the store.

use std::path::Path;

use headwater_model::Epoch;

/// Which file stands under a name.
pub(crate) type Identity = Option<(u64, u64)>;

#[cfg(unix)]
pub(crate) fn identity(path: &Path) -> Identity {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(path).ok().map(|metadata| (metadata.dev(), metadata.ino()))
}

#[cfg(not(unix))]
pub(crate) fn identity(path: &Path) -> Identity {
    let created = std::fs::metadata(path).and_then(|metadata| metadata.created()).ok()?;
    let since = created.duration_since(std::time::UNIX_EPOCH).ok()?;
    Some((since.as_secs(), u64::from(since.subsec_nanos())))
}

/// A new epoch.
pub(crate) fn random() -> std::io::Result<Epoch> {
    let mut bits = [0_u8; 16];
    getrandom::fill(&mut bits).map_err(std::io::Error::other)?;
    Ok(Epoch::from_bits(bits))
}
