//! Limits on what is read, accepted and rewritten, each with its reason.

/// Deepest nesting of arrays and objects that is read. OpenCode's own rows nest about 8 deep and tool arguments rarely exceed 20;
/// 256 leaves room and keeps every recursion far below the smallest stack in use (a 2 MiB thread).
pub const JSON_DEPTH_MAX: usize = 256;

/// Longest id of a session, message, part or project in characters (P2). `headwater_model` enforces it.
pub const ID_CHARS_MAX: usize = 256;

/// Largest index of an item in a message (P2): a position in the content array (2.x) or in the parts in id order (1.x).
pub const ITEM_INDEX_MAX: u32 = 100_000;

/// Most indexes in one request (P2): every index from 0 to [`ITEM_INDEX_MAX`] once.
pub const ITEM_INDEXES_MAX: usize = 100_001;

/// Largest request body in bytes (P2). All 100 001 indexes in decimal with commas take 0.66 MiB.
pub const REQUEST_BYTES_MAX: usize = 1 << 20;

/// Largest stored message in bytes that is shown to a remote caller or rewritten while OpenCode runs (P2). Writing 16 MiB holds the
/// lock for about 50 ms; larger messages are rewritten by an offline rebuild only.
pub const MESSAGE_BYTES_MAX: usize = 16 << 20;

/// Longest excerpt of a history page in characters (P11).
pub const EXCERPT_CHARS_MAX: usize = 320;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_index_once_fits_a_request() {
        let digits: usize = (0..=ITEM_INDEX_MAX).map(|index| index.to_string().len() + 1).sum();
        assert_eq!(ITEM_INDEXES_MAX, ITEM_INDEX_MAX as usize + 1);
        assert!(digits + 4 * ID_CHARS_MAX * 4 < REQUEST_BYTES_MAX, "{digits} bytes of indexes");
    }
}
