//! Opaque cursors: where a traversal stands, sealed for one scope and request of one process.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde::{Deserialize, Serialize};
use sha2::Sha256;

/// Bytes of the seal in a cursor.
const SEAL_BYTES: usize = 32;

/// Longest cursor in characters: ids have at most 256 characters of at most 4 bytes.
const CURSOR_CHARS_MAX: usize = 8192;

/// The secret that seals cursors. Make one of random bytes per process and keep it to the process.
#[derive(Clone)]
pub struct CursorKey([u8; 32]);

impl CursorKey {
    /// Takes 32 random bytes.
    pub const fn new(random: [u8; 32]) -> Self {
        Self(random)
    }

    fn seal(&self, binding: &[u8], place: &[u8]) -> Hmac<Sha256> {
        // RFC 2104: a key shorter than a block of the hash is filled up with zeros.
        let mut block = [0; 64];
        block[..self.0.len()].copy_from_slice(&self.0);
        let mut seal = Hmac::<Sha256>::new(&block.into());
        // The length keeps the two apart.
        seal.update(&(binding.len() as u64).to_le_bytes());
        seal.update(binding);
        seal.update(place);
        seal
    }
}

impl std::fmt::Debug for CursorKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("CursorKey(..)")
    }
}

/// The cursor was not made by this process for this scope and request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the cursor does not belong to this request")]
pub struct InvalidCursor;

/// Where a traversal stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Place {
    /// The session at hand, where one has been begun.
    pub(super) session: Option<String>,
    /// Which rows of it, see [`super::walk::Segment`].
    pub(super) segment: u8,
    /// The last row looked at: its order and its id.
    pub(super) after: Option<(i64, String)>,
    /// Highest rowid of each segment that belongs to the traversal.
    pub(super) horizon: [i64; 3],
}

impl Place {
    /// The cursor for this place.
    pub(super) fn seal(&self, key: &CursorKey, binding: &[u8]) -> Result<String, serde_json::Error> {
        let place = serde_json::to_vec(self)?;
        let mut bytes = key.seal(binding, &place).finalize().into_bytes().to_vec();
        bytes.extend_from_slice(&place);
        Ok(URL_SAFE_NO_PAD.encode(bytes))
    }

    /// The place of a cursor.
    pub(super) fn unseal(cursor: &str, key: &CursorKey, binding: &[u8]) -> Result<Self, InvalidCursor> {
        if cursor.len() > CURSOR_CHARS_MAX {
            return Err(InvalidCursor);
        }
        let bytes = URL_SAFE_NO_PAD.decode(cursor).map_err(|_| InvalidCursor)?;
        let (seal, place) = bytes.split_at_checked(SEAL_BYTES).ok_or(InvalidCursor)?;
        key.seal(binding, place).verify_slice(seal).map_err(|_| InvalidCursor)?;
        serde_json::from_slice(place).map_err(|_| InvalidCursor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_opens_only_where_it_was_made() {
        let place = Place {
            session: Some("ses_数".into()),
            segment: 1,
            after: Some((-1, "msg".into())),
            horizon: [1, i64::MAX, 0],
        };
        let key = CursorKey::new([7; 32]);
        let cursor = place.seal(&key, b"scope").unwrap();
        assert_eq!(Place::unseal(&cursor, &key, b"scope"), Ok(place));
        assert_eq!(Place::unseal(&cursor, &key, b"scop"), Err(InvalidCursor));
        assert_eq!(Place::unseal(&cursor, &CursorKey::new([8; 32]), b"scope"), Err(InvalidCursor));
        for at in 0..cursor.len() {
            let mut altered = cursor.clone().into_bytes();
            altered[at] = if altered[at] == b'A' { b'B' } else { b'A' };
            let altered = String::from_utf8(altered).unwrap();
            assert_eq!(Place::unseal(&altered, &key, b"scope"), Err(InvalidCursor), "{at}");
        }
        for short in ["", "AAAA", "!"] {
            assert_eq!(Place::unseal(short, &key, b"scope"), Err(InvalidCursor));
        }
    }
}
