use std::path::{Path, PathBuf};

use super::create;
use crate::fixture::{Fixture, Layout, NOW, Session, message, part};

/// What [`changed_after_preview`] built.
#[derive(Debug)]
pub struct ChangedAfterPreview {
    /// The database.
    pub path: PathBuf,
    /// Parts that still are what a preview before [`change`](Self::change) showed.
    pub unchanged: Vec<&'static str>,
    /// The part that `change` rewrites.
    pub rewritten: &'static str,
    /// The part that `change` deletes.
    pub deleted: &'static str,
    /// The part that `change` adds.
    pub added: &'static str,
    /// A session with a part that still runs.
    pub busy: &'static str,
}

/// Rows that change between preview and apply, and a session that runs (opencode 44984, 48090).
///
/// Right: only parts whose bytes are those previewed are pruned, each skip has its reason in the receipt, the added part is not
/// touched, the busy session is left alone, and applying the same plan again changes nothing.
pub fn changed_after_preview(folder: &Path) -> ChangedAfterPreview {
    let db = create(folder, Layout::ReducedV1);
    db.session(&Session::named("ses_a"));
    db.assistant("msg_a", "ses_a");
    for i in 0..4 {
        let output = format!("output {i} ").repeat(3000);
        db.part(&format!("prt_{i}"), "msg_a", "ses_a", &part::bash(&format!("call_{i}"), &output));
    }
    db.session(&Session::named("ses_busy"));
    db.message("msg_b", "ses_busy", NOW, &message::assistant_unfinished("msg_none", NOW));
    db.part("prt_b0", "msg_b", "ses_busy", &part::bash("call_b0", &"done ".repeat(3000)));
    db.part("prt_b1", "msg_b", "ses_busy", &part::Tool::bash("call_b1").running());
    ChangedAfterPreview {
        path: db.close(),
        unchanged: vec!["prt_0", "prt_3"],
        rewritten: "prt_1",
        deleted: "prt_2",
        added: "prt_new",
        busy: "ses_busy",
    }
}

impl ChangedAfterPreview {
    /// What the running program does between preview and apply.
    pub fn change(&self) {
        let db = Fixture::reopen(&self.path);
        db.transaction(|db| {
            let changed = part::bash("call_1", "new output");
            let rows = db
                .connection()
                .execute(
                    "UPDATE part SET data = ?, time_updated = ? WHERE id = ?",
                    rusqlite::params![changed, NOW + 5, self.rewritten],
                )
                .expect("rewrite a part");
            assert_eq!(rows, 1);
            let rows = db
                .connection()
                .execute("DELETE FROM part WHERE id = ?", [self.deleted])
                .expect("delete a part");
            assert_eq!(rows, 1);
            db.part(self.added, "msg_a", "ses_a", &part::bash("call_new", &"fresh ".repeat(2000)));
        });
        db.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_change_touches_what_the_facts_say() {
        let folder = tempfile::tempdir().unwrap();
        let case = changed_after_preview(folder.path());
        let output = "SELECT group_concat(id || ':' || substr(json_extract(data, '$.state.output'), 1, 10)) \
                      FROM (SELECT * FROM part WHERE message_id = 'msg_a' ORDER BY id)";
        let before = "prt_0:output 0 o,prt_1:output 1 o,prt_2:output 2 o,prt_3:output 3 o";
        assert_eq!(Fixture::reopen(&case.path).text(output), before);
        case.change();
        let after = "prt_0:output 0 o,prt_1:new output,prt_3:output 3 o,prt_new:fresh fres";
        assert_eq!(Fixture::reopen(&case.path).text(output), after);
    }
}
