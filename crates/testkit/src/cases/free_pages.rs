use std::path::{Path, PathBuf};

use super::create;
use crate::fixture::{Layout, Session, part};

/// What [`free_pages`] built.
#[derive(Debug)]
pub struct FreePages {
    /// The database, with `auto_vacuum` 0.
    pub path: PathBuf,
    /// Pages of the file.
    pub pages: u64,
    /// Free pages among them; more than 300.
    pub free: u64,
}

/// Hundreds of free pages in a file whose `auto_vacuum` is 0 (aidevops 17883, opencode 31526).
///
/// Right: `PRAGMA incremental_vacuum` frees nothing here and reports no error, so a reclaim step says what the file really lost,
/// measured from page count and file size, and that only a rewrite helps.
pub fn free_pages(folder: &Path) -> FreePages {
    let db = create(folder, Layout::ReducedV1);
    db.transaction(|db| {
        for i in 0..40 {
            let (session, message) = (format!("ses_{i:03}"), format!("msg_{i:03}"));
            db.session(&Session::named(&session));
            db.assistant(&message, &session);
            db.part(
                &format!("prt_{i:03}"),
                &message,
                &session,
                &part::bash(&format!("call_{i}"), &"o".repeat(60_000)),
            );
        }
    });
    db.sql("DELETE FROM session WHERE id >= 'ses_005'; PRAGMA wal_checkpoint(TRUNCATE); PRAGMA incremental_vacuum;");
    let count = |name| u64::try_from(db.integer(&format!("PRAGMA {name}"))).unwrap_or_default();
    let (pages, free) = (count("page_count"), count("freelist_count"));
    assert!(free > 300, "{free} free pages are too few for this case");
    FreePages { path: db.close(), pages, free }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_as_long_as_its_pages() {
        let folder = tempfile::tempdir().unwrap();
        let case = free_pages(folder.path());
        assert_eq!(case.path.metadata().unwrap().len(), case.pages * 4096);
    }
}
