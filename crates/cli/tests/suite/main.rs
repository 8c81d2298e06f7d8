//! The program as its users run it: arguments, exit statuses, output, and what it leaves behind.
#![expect(clippy::expect_used, reason = "a test that cannot set its scene up has failed")]

mod bad_input;
mod documents;
mod folder;
mod locate;
mod output;
mod preview;
mod program;
mod reading;
mod scene;
mod terminal;
mod verbs;
