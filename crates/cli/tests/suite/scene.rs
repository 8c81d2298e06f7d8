//! A small database in which nothing depends on chance: fixed ids, fixed times, every kind of row.

use std::path::{Path, PathBuf};

use headwater_testkit::fixture::{DAY, Fixture, Layout, NOW, Session, message, part, v2};

/// A title that tries to take the terminal over.
pub(crate) const HOSTILE: &str = "evil \u{1b}]0;owned\u{7}\u{9b}31m \u{202e}gpj.exe";

/// A word that stands in message text only. It must never appear in an error.
pub(crate) const CANARY: &str = "canary-7f3a";

/// Makes `opencode.db` with sessions of both layouts in `folder`.
pub(crate) fn database(folder: &Path) -> PathBuf {
    let db = Fixture::create(folder.join("opencode.db"), Layout::Both);
    let named = |id, title, days| Session { title, updated: NOW - days * DAY, ..Session::named(id) };
    db.session(&named("ses_a", "Retry uploads", 1));
    db.session(&Session { parent: Some("ses_a"), ..named("ses_child", "Find callers", 2) });
    db.session(&named("ses_hostile", HOSTILE, 3));
    db.session_v2(&named("ses_v2", "Metrics", 4));
    turn(&db, "ses_a", "a");
    turn(&db, "ses_child", "c");
    turn(&db, "ses_hostile", "h");
    db.session_message("msg_v2_1", "ses_v2", "user", 1, NOW, &v2::user("how many uploads"));
    let content =
        [v2::reasoning("thinking about it"), v2::tool("call_v2", "shell", "12 uploads"), v2::text("Twelve.")];
    db.session_message("msg_v2_2", "ses_v2", "assistant", 2, NOW, &v2::assistant(&content));
    db.close()
}

/// A question, a step with a tool, and the answer, each with the events that writing it leaves.
fn turn(db: &Fixture, session: &str, letter: &str) {
    let id = |kind: &str, number: u8| format!("{kind}_{letter}_{number}");
    let write_part = |number: u8, message: &str, data: &str| {
        let part = id("prt", number);
        for _ in 0..2 {
            db.part_event(session, message, &part, data);
        }
        db.part(&part, message, session, data);
    };
    let user = id("msg", 1);
    db.message(&user, session, NOW, &message::user(NOW));
    write_part(1, &user, &part::text(&format!("please retry {CANARY}")));
    let step = id("msg", 2);
    db.message(&step, session, NOW + 1, &message::assistant(&user, NOW + 1));
    write_part(2, &step, &part::reasoning("let me look"));
    write_part(3, &step, &part::bash_twice("call_1", &format!("12 tests ran {CANARY}")));
    write_part(4, &step, &part::text("Done: uploads are tried again."));
}
