//! The name of one life of a store, and when it ends.

use std::sync::{Mutex, PoisonError};

use headwater_model::Epoch;

/// The epoch of a store, renewed when its rows are those of another database (C4, C36). `I` is how a backend tells databases apart.
#[derive(Debug)]
pub struct Life<I> {
    current: Mutex<(Option<I>, Epoch)>,
}

impl<I: PartialEq> Life<I> {
    /// A new life, of the database `identity` where that is known yet.
    pub const fn begin(identity: Option<I>, epoch: Epoch) -> Self {
        Self { current: Mutex::new((identity, epoch)) }
    }

    /// The epoch of the database that is `identity`. Where it is another one than before, `renewed` gives a new epoch.
    ///
    /// # Errors
    /// What `renewed` fails with; the next call asks it again.
    pub fn epoch<E>(&self, identity: I, renewed: impl FnOnce() -> Result<Epoch, E>) -> Result<Epoch, E> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if current.0.as_ref().is_some_and(|known| *known != identity) {
            current.1 = renewed()?;
        }
        current.0 = Some(identity);
        Ok(current.1.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_epoch_ends_with_its_database() {
        let epoch = |text: &str| Epoch::new(text).map_err(|_| "malformed");
        let life = Life::begin(None, epoch("first").unwrap());
        let unasked = || Err("the database is the same");
        assert_eq!(life.epoch(1, unasked), epoch("first"), "the first identity is learned");
        assert_eq!(life.epoch(1, unasked), epoch("first"));
        assert_eq!(life.epoch(2, || Err("no randomness")), Err("no randomness"));
        assert_eq!(life.epoch(2, || epoch("second")), epoch("second"), "a failed renewal is asked for again");
        assert_eq!(life.epoch(2, unasked), epoch("second"));
    }
}
