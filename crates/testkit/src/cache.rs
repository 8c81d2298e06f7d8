//! What tests keep from one run to the next: what takes longer to make than to check.

use std::path::{Path, PathBuf};

/// `$HEADWATER_TEST_CACHE`, or `target/test-cache` without it.
pub(crate) fn folder() -> PathBuf {
    let set = std::env::var_os("HEADWATER_TEST_CACHE").filter(|value| !value.is_empty());
    set.map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/test-cache"), PathBuf::from)
}
