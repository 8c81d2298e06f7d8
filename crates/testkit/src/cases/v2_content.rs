use std::path::{Path, PathBuf};

use super::create;
use crate::fixture::{Layout, NOW, Session, quote, v2};

/// What [`v2_content`] built.
#[derive(Debug)]
pub struct V2Content {
    /// The database.
    pub path: PathBuf,
    /// Its session.
    pub session: &'static str,
    /// The assistant row.
    pub message: &'static str,
    /// Items that may go, as (index in `content`, type).
    pub removable: Vec<(u32, &'static str)>,
    /// The assistant row's `data` before.
    pub before: String,
    /// Its `data` once every removable item is gone: all other bytes are the same.
    pub after: String,
}

/// All content of a message in one JSON value of one row (opencode 44984, `CodeNomad` 660).
///
/// Right: exactly the selected items leave `content`; what stays keeps order and bytes, unknown members and the spelling of numbers
/// (1e-7, 0.10, 12345678901234567890) included; id, type, seq and `time_created` of every row are unchanged.
pub fn v2_content(folder: &Path) -> V2Content {
    let db = create(folder, Layout::ReducedV2);
    db.session_v2(&Session::named("ses_a"));
    let reasoning = format!(r#"{{"type":"reasoning","text":{}}}"#, quote(&"think ".repeat(2000)));
    let tool = format!(
        r#"{{"type":"tool","id":"call_1","name":"bash","state":{{"status":"completed","input":{{"command":"make"}},"content":[{{"type":"text","text":{}}}]}}}}"#,
        quote(&"warning: unused\n".repeat(3000))
    );
    let text = r#"{"type":"text","text":"Built. \u00e4\u4f60"}"#;
    let row = |content: &str| {
        format!(
            r#"{{"time":{{"created":1790000000001,"completed":1790000000009}},"futureField":{{"k":[1,2,{{"z":null}}]}},"content":[{content}],"cost":1e-7,"ratio":0.10,"big":12345678901234567890,"finish":"stop"}}"#
        )
    };
    let before = row(&format!("{reasoning},{tool},{text}"));
    db.session_message("smg_0", "ses_a", "user", 0, NOW, &v2::user("please build it"));
    db.session_message("smg_1", "ses_a", "assistant", 1, NOW + 1, &before);
    db.session_message("smg_2", "ses_a", "idle", 2, NOW + 2, &v2::idle("succeeded"));
    V2Content {
        path: db.close(),
        session: "ses_a",
        message: "smg_1",
        removable: vec![(0, "reasoning"), (1, "tool")],
        before,
        after: row(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_spellings_are_json() {
        let folder = tempfile::tempdir().unwrap();
        let case = v2_content(folder.path());
        for data in [&case.before, &case.after] {
            serde_json::from_str::<serde_json::Value>(data).unwrap();
        }
    }
}
