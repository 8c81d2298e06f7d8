//! Situations behind public reports of users, rebuilt small. All names and texts are made up.
//!
//! Each function builds `opencode.db` in a folder and returns its path with the facts that a right answer has to show.
//! Databases have the reduced layouts: readers must cope with columns that are missing.

use std::path::Path;

use crate::fixture::{Fixture, Layout};

mod changed_after_preview;
mod compact_but_large;
mod free_pages;
mod huge_rows;
mod idle_not_age;
mod leftover;
mod pinned_log;
mod scripts;
mod session_tree;
mod superseded_events;
mod v2_content;
mod without_side_files;

pub use changed_after_preview::{ChangedAfterPreview, changed_after_preview};
pub use compact_but_large::{CompactButLarge, compact_but_large};
pub use free_pages::{FreePages, free_pages};
pub use huge_rows::{HugeRows, huge_rows};
pub use idle_not_age::{IdleNotAge, idle_not_age};
pub use leftover::{Leftover, leftover};
pub use pinned_log::{PinnedLog, pinned_log};
pub use scripts::{Query, Scripts, scripts};
pub use session_tree::{SessionTree, session_tree};
pub use superseded_events::{EventTotal, SupersededEvents, superseded_events};
pub use v2_content::{V2Content, v2_content};
pub use without_side_files::{WithoutSideFiles, without_side_files};

/// The database of a case in `folder`.
fn create(folder: &Path, layout: Layout) -> Fixture {
    Fixture::create(folder.join("opencode.db"), layout)
}
