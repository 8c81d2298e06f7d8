//! What an error says.

use std::error::Error;
use std::fmt::Write as _;

/// Everything that `error` says, to people and in its debug form, its causes included: what tests look through for content.
pub fn whole(error: &(dyn Error + 'static)) -> String {
    let mut text = format!("{error:?}");
    let mut cause = Some(error);
    while let Some(error) = cause {
        // Writing to a string does not fail.
        let _written = write!(text, "\n{error}");
        cause = error.source();
    }
    text
}
