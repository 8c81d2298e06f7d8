//! What one transaction did to one session.

use crate::conversation::Operation;
use crate::{Revision, SessionId};

/// The transient proof of a change, captured inside its transaction and never stored (C5). One session's receipts form a chain: the base of each is the
/// revision of the one before, unless something else wrote in between, which is then seen as a gap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// The session.
    pub session: SessionId,
    /// The revision before the transaction.
    pub base: Revision,
    /// The revision it committed; not below `base`, and equal to it where nothing relevant changed.
    pub revision: Revision,
    /// What happened in between.
    pub coverage: Coverage,
}

/// How far a receipt accounts for its interval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Coverage {
    /// These operations, in order, are everything that happened. Only this makes a certified batch (C17).
    Complete(Vec<Operation>),
    /// More happened than is described: whoever follows the session has to read it again.
    Reset,
}

impl Receipt {
    /// Whether the transaction changed the session.
    pub fn is_step(&self) -> bool {
        self.revision > self.base
    }

    /// The operations; none of them where the receipt is a reset.
    pub fn operations(&self) -> Option<&[Operation]> {
        match &self.coverage {
            Coverage::Complete(operations) => Some(operations),
            Coverage::Reset => None,
        }
    }
}
