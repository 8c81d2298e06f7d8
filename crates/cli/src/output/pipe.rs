//! Text of any length, written piece by piece.

use std::io;

use super::Output;
use crate::failure::Failure;
use crate::render::text::printable_lines;

/// Writes to the output: to a terminal with control characters escaped, elsewhere every byte as it is.
pub(crate) struct Pipe<'a> {
    out: &'a mut Output,
    is_escaped: bool,
    failed: Option<Failure>,
}

impl<'a> Pipe<'a> {
    /// For a document that a program may read as well.
    pub(crate) fn new(out: &'a mut Output) -> Self {
        Self { is_escaped: out.is_terminal(), out, failed: None }
    }

    /// For text that is shown to people, whatever the output is.
    pub(crate) fn escaped(out: &'a mut Output) -> Self {
        Self { is_escaped: true, out, failed: None }
    }

    /// The failure behind an error that was handed to the writer's caller.
    pub(crate) fn end(self) -> Result<(), Failure> {
        self.failed.map_or(Ok(()), Err)
    }
}

impl io::Write for Pipe<'_> {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        let written = if self.is_escaped {
            self.out.raw(printable_lines(&String::from_utf8_lossy(piece)).as_bytes())
        } else {
            self.out.raw(piece)
        };
        written.map_err(|failure| {
            self.failed = Some(failure);
            io::Error::from(io::ErrorKind::Other)
        })?;
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
