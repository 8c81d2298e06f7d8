//! Making changes out of single rows, and describing them (C5): the same for every backend.
//!
//! A backend opens a transaction, hands its [`Rows`](crate::Rows) to one of these functions, and commits or rolls back.

mod batch;
mod import;
mod message;
mod recorder;
mod session;
mod turn;

use crate::{BadMutation, WriteErrorKind};

pub use batch::apply;
pub use import::import;
pub use session::{create_session, delete_session};

/// Why a change was not made. Whoever opened the transaction rolls back.
#[derive(Debug)]
pub enum Failure<E> {
    /// It asks for something that cannot be. Other changes of the transaction may go on.
    Refused(WriteErrorKind),
    /// The database answered with an error, and the transaction is lost.
    Database(E),
}

impl<E> From<E> for Failure<E> {
    fn from(error: E) -> Self {
        Self::Database(error)
    }
}

/// Why one mutation was not made.
enum MutationFailure<E> {
    Refused(BadMutation),
    Database(E),
}

impl<E> MutationFailure<E> {
    /// The failure of the batch whose mutation at `index` it is.
    fn at(self, index: usize) -> Failure<E> {
        match self {
            Self::Refused(reason) => Failure::Refused(WriteErrorKind::Refused { index, reason }),
            Self::Database(error) => Failure::Database(error),
        }
    }
}

impl<E> From<E> for MutationFailure<E> {
    fn from(error: E) -> Self {
        Self::Database(error)
    }
}

/// Turns a rule's refusal into a failure; `?` alone would not know whether it is one of the database.
trait OrRefuse<T> {
    fn or_refuse<E>(self) -> Result<T, MutationFailure<E>>;
}

impl<T> OrRefuse<T> for Result<T, BadMutation> {
    fn or_refuse<E>(self) -> Result<T, MutationFailure<E>> {
        self.map_err(MutationFailure::Refused)
    }
}
