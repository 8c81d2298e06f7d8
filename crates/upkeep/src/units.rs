//! Byte counts in messages, as people read them.

use std::fmt;

use bytesize::ByteSize;

/// The count in binary units: `1.5 GiB`, `17 B`.
pub(crate) fn iec(bytes: u64) -> impl fmt::Display {
    ByteSize::b(bytes).display().iec()
}
