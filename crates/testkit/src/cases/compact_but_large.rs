use std::path::{Path, PathBuf};

use super::create;
use crate::fixture::{Layout, Session, part};

/// What [`compact_but_large`] built.
#[derive(Debug)]
pub struct CompactButLarge {
    /// The database, without a free page.
    pub path: PathBuf,
    /// Its size in bytes; some 15 MiB.
    pub bytes: u64,
}

/// A large file in which every byte is a live row (aidevops 30310, 24596).
///
/// Right: there is nothing to reclaim, a compaction is skipped with that reason and writes nothing; size alone is never a reason.
pub fn compact_but_large(folder: &Path) -> CompactButLarge {
    let db = create(folder, Layout::ReducedV1);
    db.transaction(|db| {
        db.session(&Session { title: "long session", ..Session::named("ses_a") });
        db.assistant("msg_a", "ses_a");
        for i in 0..300 {
            let output = format!("line {i} ").repeat(4000);
            db.part(&format!("prt_{i:04}"), "msg_a", "ses_a", &part::bash(&format!("call_{i}"), &output));
        }
    });
    db.sql("VACUUM");
    assert_eq!(db.integer("PRAGMA freelist_count"), 0, "this case has no free page");
    let path = db.close();
    let bytes = path.metadata().expect("size of the database").len();
    CompactButLarge { path, bytes }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_large() {
        let folder = tempfile::tempdir().unwrap();
        assert!(compact_but_large(folder.path()).bytes > 8 << 20);
    }
}
