//! How often everything is asked again because the wait for the lock was too long.

/// One rule for every operation that asks, waits for the lock, and finds under it that its answers are too old: it asks again, a few times
/// in a row, and then gives up with that reason.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Patience {
    in_a_row: u32,
}

impl Patience {
    const IN_A_ROW_MAX: u32 = 5;

    /// The answers counted.
    pub(crate) fn restore(&mut self) {
        self.in_a_row = 0;
    }

    /// The answers were too old. Whether to ask again; where not, the next operation begins with all its patience.
    pub(crate) fn may_ask_again(&mut self) -> bool {
        self.in_a_row += 1;
        if self.in_a_row > Self::IN_A_ROW_MAX {
            self.restore();
            return false;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_that_are_too_old_are_asked_for_again_five_times_in_a_row() {
        let mut patience = Patience::default();
        for _ in 0..2 {
            assert!((0..5).all(|_| patience.may_ask_again()));
            assert!(!patience.may_ask_again());
        }
        assert!((0..5).all(|_| patience.may_ask_again()));
        patience.restore();
        assert!((0..5).all(|_| patience.may_ask_again()), "only those in a row count");
    }
}
