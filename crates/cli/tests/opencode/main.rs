//! The built program beside the real OpenCode, on databases that OpenCode itself wrote.
//!
//! `HEADWATER_TEST_FULL=1` runs every class through every way and every check; without it the combinations are chosen to fit the time of
//! a continuous build.
#![expect(clippy::unwrap_used, reason = "a test that cannot set its scene up has failed")]

mod changes;
mod classes;
mod conversation;
mod family;
mod headwater;
mod promise;
mod stats;
mod trial;
mod v2_rows;
