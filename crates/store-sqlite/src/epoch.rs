//! What names one life of the store.

use std::path::Path;

use headwater_model::Epoch;

/// Which file stands under a name, and the version of its schema: any change of it may have taken the triggers away for a while (C35).
pub(crate) type Identity = (File, i64);

/// Which file stands under a name.
type File = Option<(u64, u64)>;

#[cfg(unix)]
pub(crate) fn file(path: &Path) -> File {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(path).ok().map(|metadata| (metadata.dev(), metadata.ino()))
}

#[cfg(not(unix))]
pub(crate) fn file(path: &Path) -> File {
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
