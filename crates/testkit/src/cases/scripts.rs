use std::path::{Path, PathBuf};

use super::create;
use crate::fixture::{Layout, NOW, Session, part};

/// A search and the sessions that it finds, sorted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// The query: text, and never syntax.
    pub text: &'static str,
    /// Whether tool input and output are searched as well.
    pub technical: bool,
    /// Session ids, sorted.
    pub finds: Vec<&'static str>,
}

/// What [`scripts`] built.
#[derive(Debug)]
pub struct Scripts {
    /// The database.
    pub path: PathBuf,
    /// Searches with their right answers.
    pub queries: Vec<Query>,
    /// The archived session: found, and marked as archived.
    pub archived: &'static str,
}

/// Chinese, Japanese and German text, and queries full of special characters (`CodeNomad` 547, opencode 41354, hermes 11511, 14829).
///
/// Right: substrings are found in every script, without regard to case beyond ASCII too, and a query is text.
pub fn scripts(folder: &Path) -> Scripts {
    let db = create(folder, Layout::ReducedV1);
    for (id, text) in [
        ("ses_zh", "明天下午三点开项目评审会议讨论排期"),
        ("ses_mix", "重跑gen-itgc后50条悬空引用清零"),
        ("ses_ja", "データベースの圧縮が終わりました"),
        ("ses_en", "Rotated the API key, 100% done (see src/db_file.rs:42)"),
        ("ses_de", "Das war ein großer Fehler im Änderungsprotokoll"),
        ("ses_q", "he said \"NEAR\" and meant it"),
    ] {
        let archived = (id == "ses_ja").then_some(NOW);
        db.session(&Session { archived, ..Session::named(id) });
        let message = format!("msg_{id}");
        db.user(&message, id);
        db.part(&format!("prt_{id}"), &message, id, &part::text(text));
    }
    db.assistant("msg_tool", "ses_en");
    db.part("prt_tool", "msg_tool", "ses_en", &part::bash("call_1", "needle-in-output"));
    let in_text = |text, finds: &[&'static str]| Query { text, technical: false, finds: finds.to_vec() };
    let queries = vec![
        in_text("评审", &["ses_zh"]),
        in_text("itgc", &["ses_mix"]),
        in_text("悬空", &["ses_mix"]),
        in_text("圧縮", &["ses_ja"]),
        in_text("100%", &["ses_en"]),
        in_text("db_file", &["ses_en"]),
        in_text("dbxfile", &[]),
        in_text("(see", &["ses_en"]),
        in_text("änderungs", &["ses_de"]),
        in_text("GROß", &["ses_de"]),
        in_text("\"NEAR\"", &["ses_q"]),
        in_text("needle-in-output", &[]),
        Query { technical: true, ..in_text("needle-in-output", &["ses_en"]) },
    ];
    Scripts { path: db.close(), queries, archived: "ses_ja" }
}
