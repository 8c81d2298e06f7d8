//! Which sessions, messages and items a prune may touch (P4, P8, P15). Pure: callers turn stored rows into these values.

use crate::KeptReason;

/// What the rows of a session say about whether anybody may write it (P8, fact B3). Holds for both layouts; a session that both hold
/// is the union of its rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "independent conditions read from independent columns")]
pub struct SessionState {
    /// `time_suspended` is set: it runs or is to be resumed (2.x).
    pub suspended: bool,
    /// `time_compacting` is set.
    pub compacting: bool,
    /// `revert` holds a staged revert.
    pub revert_staged: bool,
    /// Input waits to be delivered.
    pub input_waiting: bool,
    /// `event_sequence.owner_id` names another machine.
    pub owned_elsewhere: bool,
}

impl SessionState {
    /// Why nothing of the session may be written, `None` where nothing forbids it.
    pub fn kept(self) -> Option<KeptReason> {
        [
            (self.owned_elsewhere, KeptReason::OwnedElsewhere),
            (self.suspended, KeptReason::Executing),
            (self.compacting, KeptReason::Compacting),
            (self.revert_staged, KeptReason::RevertStaged),
            (self.input_waiting, KeptReason::InputWaiting),
        ]
        .into_iter()
        .find_map(|(holds, reason)| holds.then_some(reason))
    }

    /// The union of two rows of one session.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            suspended: self.suspended || other.suspended,
            compacting: self.compacting || other.compacting,
            revert_staged: self.revert_staged || other.revert_staged,
            input_waiting: self.input_waiting || other.input_waiting,
            owned_elsewhere: self.owned_elsewhere || other.owned_elsewhere,
        }
    }
}

/// Whether content in the rows of a 2.x session stays because event rows of it are retained (P8). It does where the row of the session is
/// in `session_v2`; a 1.18 server that keeps `session_message` on `session` always has event rows and reads only the message rows
/// (fact A11). Rows that the same removal takes (class `events`) do not count as retained.
pub fn events_retained(in_session_v2: bool, event_rows_that_stay: u64) -> Option<KeptReason> {
    (in_session_v2 && event_rows_that_stay > 0).then_some(KeptReason::EventsRetained)
}

/// Who wrote a message, as far as its row can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Author {
    /// A person.
    User,
    /// The model.
    Assistant {
        /// Whether the row has a completion time.
        is_completed: bool,
    },
    /// Neither (2.x: system, synthetic, compaction, shell, idle and others).
    Other,
    /// The row cannot be read.
    Unreadable,
}

/// One part (1.x) or content item (2.x) of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item {
    /// A tool call.
    Tool {
        /// Whether its state is completed or error.
        is_finished: bool,
    },
    /// Reasoning.
    Reasoning,
    /// A known kind that always stays: text, patch, file, steps.
    Stays,
    /// A kind that nobody here knows.
    Unknown,
    /// The row of the part cannot be read.
    Unreadable,
}

impl Item {
    /// Whether class `technical` is about this item (P4), be it finished or not.
    pub fn is_technical(self) -> bool {
        matches!(self, Self::Tool { .. } | Self::Reasoning)
    }
}

/// Whether technical items of a message may go (P4): it is a completed assistant message, every part of it is readable and of a known
/// kind, every tool finished.
///
/// # Errors
/// The reason why every item of the message stays.
pub fn ensure_deletable(author: Author, items: impl IntoIterator<Item = Item>) -> Result<(), KeptReason> {
    match author {
        Author::Assistant { is_completed: true } => {}
        Author::Unreadable => return Err(KeptReason::Unreadable),
        Author::Assistant { is_completed: false } | Author::User | Author::Other => {
            return Err(KeptReason::NotCompletedAssistant);
        }
    }
    items.into_iter().try_for_each(|item| match item {
        Item::Tool { is_finished: true } | Item::Reasoning | Item::Stays => Ok(()),
        Item::Tool { is_finished: false } => Err(KeptReason::ToolUnfinished),
        Item::Unknown => Err(KeptReason::UnknownKind),
        Item::Unreadable => Err(KeptReason::Unreadable),
    })
}

/// What the place of a message in its session depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Who wrote it.
    pub author: Author,
    /// Whether a tool of it is unfinished.
    pub has_unfinished_tool: bool,
    /// Where it stands in a compaction.
    pub compaction: Compaction,
}

/// What a message is to a compaction (facts A10, B2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compaction {
    /// Nothing.
    #[default]
    None,
    /// The request (1.x: a user message with a compaction part). The model goes on reading from `tail`, a position in the session,
    /// where the request keeps a tail, else from the request itself.
    Request {
        /// Position of the first message of the tail.
        tail: Option<usize>,
    },
    /// The completed answer to the request before it (1.x: an assistant message with `summary`, completed without error).
    Answer,
    /// Request and completed answer in one row (2.x).
    Whole,
}

/// Positions in the messages of one session, oldest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeline {
    /// First message of the newest turn: the last user message, or 0 where there is none.
    pub newest_turn: usize,
    /// Whether the newest turn holds an assistant message without completion or an unfinished tool: it runs, or was interrupted.
    pub is_unfinished: bool,
    /// Whether an assistant message of the newest turn is completed.
    pub is_answered: bool,
    /// Messages before this position are never sent to the model again; 0 where there is no completed compaction.
    pub sent_from: usize,
}

impl Timeline {
    /// The positions for the messages that `marks` describe, oldest first.
    pub fn new(marks: &[Mark]) -> Self {
        let newest_turn = marks.iter().rposition(|mark| mark.author == Author::User).unwrap_or(0);
        let turn = marks.get(newest_turn..).unwrap_or_default();
        let is_unfinished = turn
            .iter()
            .any(|mark| mark.has_unfinished_tool || mark.author == Author::Assistant { is_completed: false });
        let is_answered = turn.iter().any(|mark| mark.author == Author::Assistant { is_completed: true });
        Self { newest_turn, is_unfinished, is_answered, sent_from: sent_from(marks) }
    }
}

fn sent_from(marks: &[Mark]) -> usize {
    for (at, mark) in marks.iter().enumerate().rev() {
        match mark.compaction {
            Compaction::Whole => return at,
            Compaction::Answer => {
                let request = marks[..at].iter().rposition(|mark| mark.author == Author::User);
                if let Some(request) = request
                    && let Compaction::Request { tail } = marks[request].compaction
                {
                    return tail.map_or(request, |tail| tail.min(request));
                }
            }
            Compaction::None | Compaction::Request { .. } => {}
        }
    }
    0
}

/// What a caller allows beyond the defaults.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Only messages that are never sent to the model again.
    pub before_compaction: bool,
    /// Technical items of the newest turn may go.
    pub newest_turn: bool,
    /// The other messages of a session whose newest turn is unfinished may be touched (P8).
    pub interrupted: bool,
}

/// Why no message of a session loses content although nothing is staged or claimed: its newest turn is unfinished and the
/// caller did not unlock the rest.
pub fn session_unfinished(timeline: &Timeline, limits: Limits) -> Option<KeptReason> {
    (timeline.is_unfinished && !limits.interrupted).then_some(KeptReason::Interrupted)
}

/// Why the message at `position` is out of reach for every content class, `None` where it is not.
pub fn message_out_of_reach(timeline: &Timeline, limits: Limits, position: usize) -> Option<KeptReason> {
    if limits.before_compaction && position >= timeline.sent_from {
        Some(KeptReason::AfterCompaction)
    } else if timeline.is_unfinished && position >= timeline.newest_turn {
        Some(KeptReason::Interrupted)
    } else {
        None
    }
}

/// Why technical items of the message at `position` stay because of its place, `None` where they may go.
pub fn technical_out_of_reach(timeline: &Timeline, limits: Limits, position: usize) -> Option<KeptReason> {
    message_out_of_reach(timeline, limits, position).or_else(|| {
        (!limits.newest_turn && position >= timeline.newest_turn).then_some(KeptReason::NewestTurn)
    })
}

/// Why inline files of the message at `position` stay because of its place: only finished turns lose them.
pub fn attachments_out_of_reach(timeline: &Timeline, limits: Limits, position: usize) -> Option<KeptReason> {
    message_out_of_reach(timeline, limits, position).or_else(|| {
        (!timeline.is_answered && position >= timeline.newest_turn).then_some(KeptReason::NewestTurn)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const USER: Mark =
        Mark { author: Author::User, has_unfinished_tool: false, compaction: Compaction::None };
    const DONE: Mark = Mark { author: Author::Assistant { is_completed: true }, ..USER };
    const OPEN: Mark = Mark { author: Author::Assistant { is_completed: false }, ..USER };
    const ANSWER: Mark = Mark { compaction: Compaction::Answer, ..DONE };

    fn request(tail: Option<usize>) -> Mark {
        Mark { compaction: Compaction::Request { tail }, ..USER }
    }

    #[test]
    fn every_claim_keeps_the_session() {
        let free = SessionState::default();
        let table = [
            (free, None),
            (SessionState { suspended: true, ..free }, Some(KeptReason::Executing)),
            (SessionState { compacting: true, ..free }, Some(KeptReason::Compacting)),
            (SessionState { revert_staged: true, ..free }, Some(KeptReason::RevertStaged)),
            (SessionState { input_waiting: true, ..free }, Some(KeptReason::InputWaiting)),
            (SessionState { owned_elsewhere: true, ..free }, Some(KeptReason::OwnedElsewhere)),
        ];
        for (state, kept) in table {
            assert_eq!(state.kept(), kept);
            assert_eq!(free.or(state).kept(), kept);
            assert_eq!(state.or(free).kept(), kept);
        }
    }

    #[test]
    fn only_completed_assistant_messages_of_known_finished_items_are_deletable() {
        let done = Author::Assistant { is_completed: true };
        let good = [Item::Stays, Item::Reasoning, Item::Tool { is_finished: true }];
        assert_eq!(ensure_deletable(done, good), Ok(()));
        assert_eq!(ensure_deletable(done, []), Ok(()));
        let authors = [
            (Author::User, KeptReason::NotCompletedAssistant),
            (Author::Other, KeptReason::NotCompletedAssistant),
            (Author::Assistant { is_completed: false }, KeptReason::NotCompletedAssistant),
            (Author::Unreadable, KeptReason::Unreadable),
        ];
        for (author, reason) in authors {
            assert_eq!(ensure_deletable(author, good), Err(reason));
        }
        let items = [
            (Item::Tool { is_finished: false }, KeptReason::ToolUnfinished),
            (Item::Unknown, KeptReason::UnknownKind),
            (Item::Unreadable, KeptReason::Unreadable),
        ];
        for (item, reason) in items {
            assert_eq!(ensure_deletable(done, good.into_iter().chain([item])), Err(reason));
        }
    }

    #[test]
    fn the_newest_turn_begins_at_the_last_user_message() {
        let timeline = Timeline::new(&[USER, DONE, USER, DONE, DONE]);
        assert_eq!((timeline.newest_turn, timeline.is_unfinished, timeline.is_answered), (2, false, true));
        let limits = Limits::default();
        assert_eq!(technical_out_of_reach(&timeline, limits, 1), None);
        assert_eq!(technical_out_of_reach(&timeline, limits, 3), Some(KeptReason::NewestTurn));
        assert_eq!(technical_out_of_reach(&timeline, Limits { newest_turn: true, ..limits }, 3), None);
        assert_eq!(message_out_of_reach(&timeline, limits, 3), None);
        assert_eq!(Timeline::new(&[DONE]).newest_turn, 0);
        assert_eq!(Timeline::new(&[]).newest_turn, 0);
    }

    #[test]
    fn an_unfinished_newest_turn_keeps_the_session_and_always_its_own_messages() {
        let tool = Mark { has_unfinished_tool: true, ..DONE };
        for marks in [[USER, DONE, USER, OPEN], [USER, DONE, USER, tool]] {
            let timeline = Timeline::new(&marks);
            let unlocked = Limits { interrupted: true, newest_turn: true, ..Limits::default() };
            assert_eq!(session_unfinished(&timeline, Limits::default()), Some(KeptReason::Interrupted));
            assert_eq!(session_unfinished(&timeline, unlocked), None);
            assert_eq!(technical_out_of_reach(&timeline, unlocked, 3), Some(KeptReason::Interrupted));
            assert_eq!(technical_out_of_reach(&timeline, unlocked, 1), None);
        }
        // An old crash inside the history does not lock what came after it.
        assert!(!Timeline::new(&[USER, OPEN, USER, DONE]).is_unfinished);
    }

    #[test]
    fn files_of_a_turn_without_an_answer_stay() {
        let limits = Limits::default();
        let asked = Timeline::new(&[USER, DONE, USER]);
        assert_eq!(attachments_out_of_reach(&asked, limits, 2), Some(KeptReason::NewestTurn));
        assert_eq!(attachments_out_of_reach(&asked, limits, 0), None);
        assert_eq!(attachments_out_of_reach(&Timeline::new(&[USER, DONE]), limits, 0), None);
    }

    #[test]
    fn the_model_reads_from_the_last_completed_compaction_or_its_tail() {
        let whole = Mark { compaction: Compaction::Whole, author: Author::Other, ..USER };
        let table: [(&str, &[Mark], usize); 8] = [
            ("none", &[USER, DONE], 0),
            ("request and answer", &[USER, DONE, request(None), ANSWER, USER], 2),
            ("the last of two", &[request(None), ANSWER, USER, DONE, request(None), ANSWER], 4),
            ("with a tail", &[USER, DONE, USER, DONE, request(Some(2)), ANSWER], 2),
            ("a tail after the request is no tail", &[USER, request(Some(3)), ANSWER, USER], 1),
            ("not answered", &[USER, DONE, request(None), DONE], 0),
            ("answer without request", &[USER, ANSWER], 0),
            ("one row", &[USER, DONE, whole, USER], 2),
        ];
        for (name, marks, from) in table {
            assert_eq!(Timeline::new(marks).sent_from, from, "{name}");
        }
        let timeline = Timeline::new(&[USER, DONE, request(None), ANSWER]);
        let limits = Limits { before_compaction: true, ..Limits::default() };
        assert_eq!(message_out_of_reach(&timeline, limits, 1), None);
        assert_eq!(message_out_of_reach(&timeline, limits, 2), Some(KeptReason::AfterCompaction));
    }

    #[test]
    fn retained_events_keep_only_sessions_of_the_newer_storage() {
        assert_eq!(events_retained(true, 1), Some(KeptReason::EventsRetained));
        assert_eq!(events_retained(true, 0), None);
        assert_eq!(events_retained(false, 9), None);
    }
}
