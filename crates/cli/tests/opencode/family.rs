//! A session with a child that a task tool started: class `sessions` takes the tree as one.

use headwater_testkit::opencode::OpenCode;
use headwater_testkit::rows::Rows;

use crate::headwater::Headwater;

/// A session tree.
pub(crate) struct Family {
    top: String,
    child: String,
}

impl Family {
    /// Lets OpenCode write one.
    pub(crate) fn write(opencode: &OpenCode) -> Self {
        let top = opencode.new_session("family");
        opencode.say(&top, "delegate [[subagent=1 sub(tools=1 out=300 text=60) text=60]]");
        let children = opencode.get(&format!("/session/{top}/children"));
        let child = children[0]["id"].as_str().unwrap().to_owned();
        Self { top, child }
    }

    /// Removes it; no row that names it stays, and no row of another session goes. `is_alone` says that nobody else writes.
    pub(crate) fn remove(&self, opencode: &OpenCode, headwater: &Headwater, is_alone: bool) {
        let before = Rows::read(&opencode.database());
        headwater.run_when_settled(&["prune", "--class", "sessions", "--session", &self.top, "--yes"]);
        let after = Rows::read(&opencode.database());
        for session in [&self.top, &self.child] {
            assert!(before.of_session(session).count() > 5, "{session} was there");
            assert_eq!(after.of_session(session).count(), 0, "no row of {session} stays");
        }
        if is_alone {
            let others = |rows: &Rows| rows.without_session(&self.top).without_session(&self.child);
            assert_eq!(
                others(&before).changes(&others(&after)),
                Vec::<String>::new(),
                "other sessions stay whole"
            );
        }
    }

    /// Checks that OpenCode does not know it.
    pub(crate) fn assert_gone(&self, opencode: &OpenCode) {
        for session in [&self.top, &self.child] {
            assert!(
                opencode.sessions().iter().all(|listed| listed["id"] != **session),
                "{session} is not listed"
            );
            assert_eq!(
                opencode.request("GET", &format!("/session/{session}"), None).status,
                404,
                "{session}"
            );
        }
    }
}
