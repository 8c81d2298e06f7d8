//! How the `data` of a row is rewritten for the classes that take a part of it.

use headwater_prune::Classes;

/// The content of a row does not allow what was asked; the row stays as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the content of the row cannot be rewritten")]
pub(crate) struct Unrewritable;

/// Rewrites the `data` of a row. Everything that is not taken keeps its bytes (P5).
pub(crate) trait Rewriter: Sync {
    /// The new `data`, or nothing where it stays as it is. `row_type` is the column `type` where the table has one.
    fn rewrite(
        &self,
        table: &str,
        row_type: Option<&str>,
        data: &[u8],
        classes: Classes,
    ) -> Result<Option<Vec<u8>>, Unrewritable>;
}

/// Rewrites nothing.
pub(crate) struct Verbatim;

impl Rewriter for Verbatim {
    fn rewrite(&self, _: &str, _: Option<&str>, _: &[u8], _: Classes) -> Result<Option<Vec<u8>>, Unrewritable> {
        Ok(None)
    }
}
