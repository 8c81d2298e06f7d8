//! The one place that reads the clock.

use headwater_model::UnixMillis;

/// The present instant.
pub(crate) fn now() -> UnixMillis {
    UnixMillis::new(jiff::Timestamp::now().as_millisecond())
}
