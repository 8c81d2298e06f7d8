use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use super::create;
use crate::fixture::{Layout, NOW, Session, message, part};

/// What [`huge_rows`] built.
#[derive(Debug)]
pub struct HugeRows {
    /// The database.
    pub path: PathBuf,
    /// The message with the huge row.
    pub largest: &'static str,
    /// Bytes of its `data`; at least the size asked for.
    pub largest_bytes: u64,
    /// Event rows that hold a copy of it.
    pub event_copies: u64,
}

/// One message row of `mib` MiB, because a vendored tree got into its diff summary, and three copies of it as events (opencode 33275,
/// 32005, 30165; real ones had 75, 136 and 459 MiB).
///
/// Right: memory stays bounded, whatever the row's size; the row is named in "largest rows" with table, id, session and bytes;
/// listing sessions reads no payload.
pub fn huge_rows(folder: &Path, mib: usize) -> HugeRows {
    let db = create(folder, Layout::ReducedV1);
    db.session(&Session { title: "install", ..Session::named("ses_big") });
    db.session(&Session { title: "small talk", ..Session::named("ses_small") });
    let data = with_diffs(mib);
    db.message("msg_big", "ses_big", NOW, &data);
    db.part("prt_big", "msg_big", "ses_big", &part::text("npm install please"));
    for _ in 0..3 {
        db.message_event("ses_big", "msg_big", &data);
    }
    db.user("msg_small", "ses_small");
    db.part("prt_small", "msg_small", "ses_small", &part::text("hello"));
    HugeRows { path: db.close(), largest: "msg_big", largest_bytes: data.len() as u64, event_copies: 3 }
}

fn with_diffs(mib: usize) -> String {
    let empty = message::user(NOW);
    let (head, tail) = empty.split_once("[]").expect("the empty diff list of a user message");
    let after = "q".repeat(4096);
    let mut data = String::with_capacity(mib * 256 * 4220);
    data.push_str(head);
    data.push('[');
    for i in 0..mib * 256 {
        let comma = if i == 0 { "" } else { "," };
        write!(
            data,
            r#"{comma}{{"file":"vendor/lib/{i:06}.js","patch":"+{after}","additions":90,"deletions":0,"status":"added"}}"#
        )
        .expect("write to a string");
    }
    data.push(']');
    data.push_str(tail);
    data
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::Fixture;

    #[test]
    fn the_row_is_as_large_as_asked_and_valid() {
        let folder = tempfile::tempdir().unwrap();
        let case = huge_rows(folder.path(), 2);
        assert!(case.largest_bytes > 2 << 20);
        let db = Fixture::reopen(&case.path);
        assert_eq!(
            db.integer("SELECT json_array_length(data, '$.summary.diffs') FROM message WHERE id = 'msg_big'"),
            512
        );
        let bytes = db.integer("SELECT max(octet_length(data)) FROM message");
        assert_eq!(u64::try_from(bytes).unwrap(), case.largest_bytes);
    }
}
