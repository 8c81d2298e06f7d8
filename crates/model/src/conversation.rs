//! The records of the conversation store and what is said about their changes (C1, C5).
//!
//! A *record* is the current row of a message or a turn. A *receipt* describes what one transaction did to one session: from which revision to
//! which, and every operation in between. Ids inside records are plain text, because a stored row may hold any; ids that a caller
//! names are checked newtypes.

mod message;
mod operation;
mod order_key;
mod receipt;
mod selection;
mod session;
mod turn;

pub use message::{MessageRecord, USER};
pub use operation::{Operation, Place};
pub use order_key::OrderKey;
pub use receipt::{Coverage, Receipt};
pub use selection::{Author, Selection};
pub use session::SessionRecord;
pub use turn::TurnRecord;
