//! The name of one life of the store.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use headwater_model::{Epoch, ParseEpochError};

/// The epoch, renewed when another file stands under the name (C36).
#[derive(Debug)]
pub(crate) struct Life {
    current: Mutex<(Identity, Epoch)>,
}

/// Which file stands under a name.
type Identity = Option<(u64, u64)>;

impl Life {
    /// A new life of the file at `path`.
    pub(crate) fn begin(path: &Path) -> std::io::Result<Self> {
        Ok(Self { current: Mutex::new((identity(path), epoch()?)) })
    }

    /// The epoch of the file that stands at `path`.
    pub(crate) fn epoch(&self, path: &Path) -> std::io::Result<Epoch> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let here = identity(path);
        if current.0 != here {
            *current = (here, epoch()?);
        }
        Ok(current.1.clone())
    }
}

#[cfg(unix)]
fn identity(path: &Path) -> Identity {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(path).ok().map(|metadata| (metadata.dev(), metadata.ino()))
}

#[cfg(not(unix))]
fn identity(path: &Path) -> Identity {
    let created = std::fs::metadata(path).and_then(|metadata| metadata.created()).ok()?;
    let since = created.duration_since(std::time::UNIX_EPOCH).ok()?;
    Some((since.as_secs(), u64::from(since.subsec_nanos())))
}

/// 128 random bits in hexadecimal digits.
fn epoch() -> std::io::Result<Epoch> {
    let mut bits = [0_u8; 16];
    getrandom::fill(&mut bits).map_err(std::io::Error::other)?;
    let text = format!("{:032x}", u128::from_be_bytes(bits));
    Epoch::new(text).map_err(|error: ParseEpochError| std::io::Error::other(error))
}
