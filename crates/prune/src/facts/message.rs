//! Facts of 1.x messages, and the completion time of a row of either layout.

use headwater_model::UnixMillis;
use headwater_wire::json::{JsonError, Kind, Reader};
use serde::Serialize;

use super::Facts;
use super::walk::{Once, enter, facts, string};

/// Who wrote a 1.x message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// The user.
    User,
    /// The assistant: one message per model step (fact A3).
    Assistant,
    /// Anything else.
    Unknown,
}

/// What a 1.x message is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageFacts {
    /// Who wrote it.
    pub role: Role,
    /// `time.completed`: when an assistant message was finished, with or without success. Always `None` for other roles.
    pub completed: Option<UnixMillis>,
    /// Whether it is the summary that a compaction wrote (an assistant message with `summary: true`, fact A10).
    pub is_summary: bool,
    /// Whether an assistant message ended with an error.
    pub has_error: bool,
    /// For a user message with at least one entry in `summary.diffs`: the offset in bytes behind the bracket that opens the array.
    pub diffs: Option<usize>,
}

/// The facts of the message whose `data` begins with `prefix`. A user message is decided at the first entry of `summary.diffs`, which
/// is where the bytes are; an assistant message (about one kilobyte) at its end. Of members that are repeated the first counts.
pub fn message_facts(prefix: &[u8], is_whole: bool) -> Facts<MessageFacts> {
    facts(prefix, is_whole, |reader| {
        let mut seen = Seen::default();
        seen.read(reader)?;
        Ok(seen.conclude())
    })
}

/// `time.completed` of the row whose `data` begins with `prefix`: a message of 1.x or a row of `session_message` (2.x). Decided
/// where the member `time` ends.
pub fn completion(prefix: &[u8], is_whole: bool) -> Facts<Option<UnixMillis>> {
    facts(prefix, is_whole, |reader| {
        reader.begin_object()?;
        while let Some(key) = reader.next_member()? {
            if key.is("time") {
                return completed(reader);
            }
            reader.skip()?;
        }
        Ok(None)
    })
}

#[derive(Default)]
struct Seen {
    role: Option<Role>,
    completed: Once<UnixMillis>,
    summary: Option<Summary>,
    has_error: Option<bool>,
}

#[derive(Clone, Copy, Default)]
struct Summary {
    is_true: bool,
    diffs: Option<usize>,
}

impl Seen {
    fn read(&mut self, reader: &mut Reader<'_>) -> Result<(), JsonError> {
        reader.begin_object()?;
        while let Some(key) = reader.next_member()? {
            if self.role.is_none() && key.is("role") {
                self.role = Some(match string(reader)?.as_deref() {
                    Some("user") => Role::User,
                    Some("assistant") => Role::Assistant,
                    _ => Role::Unknown,
                });
            } else if !self.completed.is_met && key.is("time") {
                self.completed.meet(completed(reader)?);
            } else if self.summary.is_none() && key.is("summary") {
                self.read_summary(reader)?;
            } else if self.has_error.is_none() && key.is("error") {
                self.has_error = Some(reader.peek()? != Kind::Null);
                reader.skip()?;
            } else {
                reader.skip()?;
            }
            if self.is_decided() {
                break;
            }
        }
        Ok(())
    }

    fn read_summary(&mut self, reader: &mut Reader<'_>) -> Result<(), JsonError> {
        let mut summary = Summary { is_true: reader.peek()? == Kind::True, diffs: None };
        if enter(reader)? {
            let mut is_first = true;
            while let Some(key) = reader.next_member()? {
                if is_first && key.is("diffs") && reader.peek()? == Kind::Array {
                    is_first = false;
                    reader.begin_array()?;
                    let start = reader.offset();
                    while reader.next_element()? {
                        if summary.diffs.is_none() {
                            summary.diffs = Some(start);
                            self.summary = Some(summary);
                            if self.is_decided() {
                                return Ok(());
                            }
                        }
                        reader.skip()?;
                    }
                } else {
                    is_first &= !key.is("diffs");
                    reader.skip()?;
                }
            }
        }
        self.summary = Some(summary);
        Ok(())
    }

    fn is_decided(&self) -> bool {
        match self.role {
            Some(Role::User) => self.summary.is_some_and(|summary| summary.diffs.is_some()),
            Some(Role::Unknown) => true,
            Some(Role::Assistant) => {
                self.completed.is_met && self.summary.is_some() && self.has_error.is_some()
            }
            None => false,
        }
    }

    fn conclude(self) -> MessageFacts {
        let role = self.role.unwrap_or(Role::Unknown);
        let summary = self.summary.unwrap_or_default();
        let is_assistant = role == Role::Assistant;
        MessageFacts {
            role,
            completed: self.completed.value.filter(|_| is_assistant),
            is_summary: is_assistant && summary.is_true,
            has_error: is_assistant && self.has_error.unwrap_or(false),
            diffs: summary.diffs.filter(|_| role == Role::User),
        }
    }
}

/// `completed` of the `time` member that comes next.
fn completed(reader: &mut Reader<'_>) -> Result<Option<UnixMillis>, JsonError> {
    let mut completed = Once::default();
    if enter(reader)? {
        while let Some(key) = reader.next_member()? {
            if !completed.is_met && key.is("completed") {
                completed.meet(millis(reader)?);
            } else {
                reader.skip()?;
            }
        }
    }
    Ok(completed.value)
}

/// The number that comes next as milliseconds, a fraction cut off; `None` for anything else.
fn millis(reader: &mut Reader<'_>) -> Result<Option<UnixMillis>, JsonError> {
    if reader.peek()? != Kind::Number {
        reader.skip()?;
        return Ok(None);
    }
    let text = reader.number()?;
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the cast saturates, and no plausible time is near the ends"
    )]
    let ms = text.parse::<i64>().ok().or_else(|| text.parse::<f64>().ok().map(|ms| ms as i64));
    Ok(ms.map(UnixMillis::new))
}
