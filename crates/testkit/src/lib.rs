#![forbid(unsafe_code)]
//! What tests and benches stand on: small databases in both of OpenCode's layouts ([`fixture`]), the situations that users
//! reported ([`cases`]), large databases of a known mix ([`large`]), a scriptable model provider ([`mock`]), and the real OpenCode
//! driven over its own interface ([`opencode`]).
//!
//! ```
//! use headwater_testkit::fixture::{Fixture, Layout, Session, part};
//!
//! let folder = tempfile::tempdir().unwrap();
//! let db = Fixture::create(folder.path().join("opencode.db"), Layout::V1);
//! db.session(&Session::named("ses_a"));
//! db.user("msg_a", "ses_a");
//! db.part("prt_a", "msg_a", "ses_a", &part::text("hello"));
//! let path = db.close(); // write-ahead log folded in, no side files left
//! ```
//!
//! Everything here panics with a reason instead of returning errors: a fixture that cannot be built ends its test. Nothing here is
//! part of the product.
#![expect(
    clippy::expect_used,
    clippy::missing_panics_doc,
    reason = "test support: a fixture that cannot be built ends the test that asked for it"
)]

mod cache;
pub mod cases;
pub mod fixture;
pub mod large;
pub mod measure;
pub mod mock;
pub mod opencode;
pub mod postgres;
pub mod program;
pub mod random;
pub mod rows;
pub mod sqlite3;
pub mod trace;
pub mod wait;
