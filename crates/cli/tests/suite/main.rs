//! The program as its users run it: arguments, exit statuses, output, and what it leaves behind.
#![expect(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "functions beside the tests: a test that cannot set its scene up has failed"
)]

mod bad_input;
mod canary;
mod cases;
mod changing;
mod conversation;
mod documents;
mod durability;
mod export;
mod faults;
mod files;
mod folder;
mod limits;
mod locate;
mod output;
mod preview;
mod program;
mod reading;
mod rebuilt;
mod retention;
mod salvage;
mod scene;
mod scrub;
mod signals;
mod terminal;
mod verbs;
