//! The SHA-256 of what is written, taken on its way.

use std::io::{self, Write};

use sha2::{Digest, Sha256};

/// Passes bytes on to `W` and hashes what that took.
pub(super) struct Hashed<W> {
    out: W,
    hash: Sha256,
}

impl<W: Write> Hashed<W> {
    pub(super) fn new(out: W) -> Self {
        Self { out, hash: Sha256::new() }
    }

    /// Where the bytes went, and their hash.
    pub(super) fn finish(self) -> (W, [u8; 32]) {
        (self.out, self.hash.finalize().into())
    }
}

impl<W: Write> Write for Hashed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.hash.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
