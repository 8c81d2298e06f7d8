//! Which rows of one surveyed session each class takes. Reads no database: rows in, decisions out.

use std::collections::BTreeMap;

use headwater_prune::decide::{
    Author, Item, Limits, Mark, Timeline, attachments_out_of_reach, ensure_deletable, events_retained,
    message_out_of_reach, session_unfinished, technical_out_of_reach,
};
use headwater_prune::{Class, Classes, KeptReason};

use crate::survey::content::{ContentV1, ContentV2, FIELD_CLASSES, FieldGains, Gain, MessageV2, Part};
use crate::survey::events::Events;
use crate::survey::roster::Session;
use crate::survey::walker::Surveyed;

/// What becomes of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Action {
    Drop,
    Rewrite,
}

/// Rows of one table that one class takes from one session.
#[derive(Debug)]
pub(crate) struct Taken<'a> {
    pub(crate) class: Class,
    pub(crate) table: &'static str,
    pub(crate) action: Action,
    /// Rowids, each once, in no order.
    pub(crate) rows: &'a [i64],
    pub(crate) bytes: u64,
    pub(crate) is_exact: bool,
}

/// Where decisions go.
pub(crate) trait Sink {
    /// A class takes rows. Called at most once per session, class, table and action.
    fn take(&mut self, taken: &Taken<'_>);
    /// A session, or one message of it, stays.
    fn keep(&mut self, session: &str, message: Option<&str>, reason: KeptReason);
}

/// What a judge goes by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    pub(crate) classes: Classes,
    pub(crate) limits: Limits,
    /// Whether the classes act together, so that a row is dropped once and the bytes of a row are counted once. Else each class is
    /// judged as if it were alone.
    pub(crate) together: bool,
}

#[derive(Debug, Default)]
struct Batch {
    rows: Vec<i64>,
    bytes: u64,
    is_bound: bool,
}

/// Judges one session after another.
#[derive(Debug)]
pub(crate) struct Judge {
    rules: Rules,
    batches: BTreeMap<(Class, &'static str, Action), Batch>,
    by_message: Vec<u32>,
}

impl Judge {
    pub(crate) fn new(rules: Rules) -> Self {
        Self { rules, batches: BTreeMap::new(), by_message: Vec::new() }
    }

    /// Shows `sink` what each class takes from `session`, and what stays.
    pub(crate) fn session(&mut self, session: &Session, rows: &Surveyed, sink: &mut dyn Sink) {
        let id = session.id.as_ref();
        if !session.exists() {
            let selects_events = self.has(Class::Events) || self.has(Class::SupersededEvents);
            if selects_events && rows.events.len() > 0 {
                sink.keep(id, None, KeptReason::OnlyCopy);
            }
            return;
        }
        if let Some(reason) = session.state.kept() {
            sink.keep(id, None, reason);
            return;
        }
        let v1 = Timeline::new(&marks_v1(&rows.v1));
        let v2 = Timeline::new(&marks_v2(&rows.v2));
        let gone = self.events(session, rows, [&v1, &v2], sink);
        if self.has_content_class() {
            self.content(session, rows, [&v1, &v2], rows.events.len() - gone, sink);
        }
        self.flush(sink);
    }

    fn content(
        &mut self,
        session: &Session,
        rows: &Surveyed,
        [v1, v2]: [&Timeline; 2],
        events_left: u64,
        sink: &mut dyn Sink,
    ) {
        let id = session.id.as_ref();
        let limits = self.rules.limits;
        if let Some(reason) = session_unfinished(v1, limits).or_else(|| session_unfinished(v2, limits)) {
            sink.keep(id, None, reason);
            return;
        }
        self.content_v1(id, &rows.v1, v1, sink);
        if rows.v2.messages.is_empty() {
            return;
        }
        match events_retained(session.v2.is_some(), events_left) {
            Some(reason) => sink.keep(id, None, reason),
            None => self.content_v2(id, &rows.v2, v2, sink),
        }
    }

    /// The event classes. Returns how many event rows go in all.
    fn events(
        &mut self,
        session: &Session,
        rows: &Surveyed,
        timelines: [&Timeline; 2],
        sink: &mut dyn Sink,
    ) -> u64 {
        let events = &rows.events;
        let mut gone = 0;
        if self.has(Class::Events) {
            let all = [&events.v1, &events.other];
            // Of a session that lives in 2.x only what 1.x left behind goes.
            let taken = if session.v2.is_some() { &all[..1] } else { &all[..] };
            let count: u64 = taken.iter().map(|rows| rows.len()).sum();
            match events_needed(session, rows, timelines) {
                _ if count == 0 => {}
                Some(reason) => sink.keep(&session.id, None, reason),
                None => {
                    for rows in taken {
                        self.batch(Class::Events, "event", Action::Drop).add_all(&rows.rows, rows.bytes);
                    }
                    gone = count;
                }
            }
        }
        let is_free = gone == 0 || !self.rules.together;
        if self.has(Class::SupersededEvents) && is_free {
            self.superseded(events);
            gone = gone.max(events.superseded.len());
        }
        gone
    }

    fn superseded(&mut self, events: &Events) {
        let rows = &events.superseded;
        if rows.len() > 0 {
            self.batch(Class::SupersededEvents, "event", Action::Drop).add_all(&rows.rows, rows.bytes);
        }
    }

    fn content_v1(&mut self, id: &str, content: &ContentV1, timeline: &Timeline, sink: &mut dyn Sink) {
        let by_message = self.parts_by_message(content);
        let mut rest = by_message.as_slice();
        let limits = self.rules.limits;
        let mut newest_turn_kept = false;
        for (position, message) in content.messages.iter().enumerate() {
            let owns =
                |part: &u32| content.parts[*part as usize].message.is_some_and(|at| at as usize == position);
            let (parts, after) = rest.split_at(rest.partition_point(owns));
            rest = after;
            if message.author == Author::User {
                self.fields("message", message.rowid, message.length, &message.gains, |_| {
                    message_out_of_reach(timeline, limits, position).is_none()
                });
            }
            let parts = parts.iter().map(|part| &content.parts[*part as usize]);
            let kept = self.technical_v1(message.author, parts.clone(), timeline, position);
            let takes_technical = self.rules.together && kept == Some(Ok(()));
            match kept {
                Some(Err(KeptReason::NewestTurn)) if newest_turn_kept => {}
                Some(Err(KeptReason::NewestTurn)) => {
                    newest_turn_kept = true;
                    sink.keep(id, None, KeptReason::NewestTurn);
                }
                // Rows after the compaction are outside of what the caller asked for.
                Some(Err(KeptReason::AfterCompaction) | Ok(())) | None => {}
                Some(Err(reason)) => sink.keep(id, Some(&message.id), reason),
            }
            self.part_fields(message.author, parts, takes_technical, timeline, position);
        }
        self.by_message = by_message;
    }

    /// Class technical on one 1.x message: `None` where it has nothing technical or the class is not selected.
    fn technical_v1<'a>(
        &mut self,
        author: Author,
        parts: impl Iterator<Item = &'a Part> + Clone,
        timeline: &Timeline,
        position: usize,
    ) -> Option<Result<(), KeptReason>> {
        if !self.has(Class::Technical) || !parts.clone().any(|part| part.item.is_technical()) {
            return None;
        }
        if let Some(reason) = technical_out_of_reach(timeline, self.rules.limits, position) {
            return Some(Err(reason));
        }
        if let Err(reason) = ensure_deletable(author, parts.clone().map(|part| part.item)) {
            return Some(Err(reason));
        }
        let batch = self.batch(Class::Technical, "part", Action::Drop);
        for part in parts.filter(|part| part.item.is_technical()) {
            batch.add(part.rowid, Gain::exact(part.length));
        }
        Some(Ok(()))
    }

    fn part_fields<'a>(
        &mut self,
        author: Author,
        parts: impl Iterator<Item = &'a Part>,
        takes_technical: bool,
        timeline: &Timeline,
        position: usize,
    ) {
        if !matches!(author, Author::User | Author::Assistant { is_completed: true }) {
            return;
        }
        let limits = self.rules.limits;
        let reaches = |class| {
            let reason = if class == Class::Attachments {
                attachments_out_of_reach(timeline, limits, position)
            } else {
                message_out_of_reach(timeline, limits, position)
            };
            reason.is_none()
        };
        // A file in an assistant message stays: what stands in for it would be sent as the assistant's own words.
        let has_fields = |part: &&Part| author == Author::User || matches!(part.item, Item::Tool { .. });
        let stays = |part: &&Part| !(takes_technical && part.item.is_technical());
        for part in parts.filter(has_fields).filter(stays) {
            self.fields("part", part.rowid, part.length, &part.gains, reaches);
        }
    }

    fn content_v2(&mut self, id: &str, content: &ContentV2, timeline: &Timeline, sink: &mut dyn Sink) {
        let limits = self.rules.limits;
        let mut newest_turn_kept = false;
        for (position, message) in content.messages.iter().enumerate() {
            let left = message.length;
            if let (true, Some(technical)) = (self.has(Class::Technical), message.technical) {
                let place = technical_out_of_reach(timeline, limits, position);
                match (place, technical) {
                    (Some(KeptReason::AfterCompaction), _) => {}
                    (Some(KeptReason::NewestTurn), _) if newest_turn_kept => {}
                    (Some(KeptReason::NewestTurn), _) => {
                        newest_turn_kept = true;
                        sink.keep(id, None, KeptReason::NewestTurn);
                    }
                    (Some(reason), _) | (None, Err(reason)) => sink.keep(id, Some(&message.id), reason),
                    (None, Ok(gain)) => {
                        self.batch(Class::Technical, "session_message", Action::Rewrite)
                            .add(message.rowid, gain);
                        if self.rules.together && gain.is_exact {
                            // The items whose fields the other classes would shorten are those that go.
                            continue;
                        }
                    }
                }
            }
            if !matches!(message.author, Author::User | Author::Assistant { is_completed: true }) {
                continue;
            }
            self.fields("session_message", message.rowid, left, &message.gains, |class| {
                if class == Class::Attachments {
                    attachments_out_of_reach(timeline, limits, position).is_none()
                } else {
                    message_out_of_reach(timeline, limits, position).is_none()
                }
            });
        }
    }

    /// The classes that rewrite fields of one row. Together they free at most `left` bytes. Where the row was not read, nobody knows how
    /// they share them: each bound is one for its class, and their sum is more than the row has.
    fn fields(
        &mut self,
        table: &'static str,
        rowid: i64,
        left: u64,
        gains: &FieldGains,
        reaches: impl Fn(Class) -> bool,
    ) {
        let mut left = left;
        // What class compacted takes from a row holds its attachments as well.
        let takes_attachments = self.rules.together
            && self.has(Class::Compacted)
            && reaches(Class::Compacted)
            && FIELD_CLASSES
                .iter()
                .zip(gains)
                .any(|(class, gain)| *class == Class::Compacted && gain.is_some_and(|gain| gain.is_exact));
        for (class, gain) in FIELD_CLASSES.into_iter().zip(gains) {
            let Some(mut gain) = *gain else { continue };
            if !self.has(class) || !reaches(class) || (class == Class::Attachments && takes_attachments) {
                continue;
            }
            if self.rules.together && gain.is_exact {
                gain.bytes = gain.bytes.min(left);
                left -= gain.bytes;
            }
            self.batch(class, table, Action::Rewrite).add(rowid, gain);
        }
    }

    fn has(&self, class: Class) -> bool {
        self.rules.classes.has(class)
    }

    fn has_content_class(&self) -> bool {
        self.has(Class::Technical) || FIELD_CLASSES.iter().any(|class| self.has(*class))
    }

    fn batch(&mut self, class: Class, table: &'static str, action: Action) -> &mut Batch {
        self.batches.entry((class, table, action)).or_default()
    }

    fn flush(&mut self, sink: &mut dyn Sink) {
        for ((class, table, action), batch) in &mut self.batches {
            if batch.rows.is_empty() {
                continue;
            }
            sink.take(&Taken {
                class: *class,
                table,
                action: *action,
                rows: &batch.rows,
                bytes: batch.bytes,
                is_exact: !batch.is_bound,
            });
            batch.rows.clear();
            (batch.bytes, batch.is_bound) = (0, false);
        }
    }

    /// Positions of the parts that have a message, by message. Takes the buffer of the session before.
    fn parts_by_message(&mut self, content: &ContentV1) -> Vec<u32> {
        let mut order = std::mem::take(&mut self.by_message);
        order.clear();
        let with_message = content.parts.iter().zip(0_u32..).filter(|(part, _)| part.message.is_some());
        order.extend(with_message.map(|(_, at)| at));
        order.sort_by_key(|at| content.parts[*at as usize].message);
        order
    }
}

impl Batch {
    fn add(&mut self, rowid: i64, gain: Gain) {
        self.rows.push(rowid);
        self.bytes = self.bytes.saturating_add(gain.bytes);
        self.is_bound |= !gain.is_exact;
    }

    fn add_all(&mut self, rows: &[i64], bytes: u64) {
        self.rows.extend_from_slice(rows);
        self.bytes = self.bytes.saturating_add(bytes);
    }
}

/// Why the event rows of a session are needed: they go only where its own rows are complete (fact A4).
fn events_needed(session: &Session, rows: &Surveyed, timelines: [&Timeline; 2]) -> Option<KeptReason> {
    if timelines.iter().any(|timeline| timeline.is_unfinished) {
        return Some(KeptReason::Interrupted);
    }
    let is_unreadable = rows.v1.messages.iter().any(|message| message.author == Author::Unreadable)
        || rows.v1.parts.iter().any(|part| part.item == Item::Unreadable)
        || rows.v2.messages.iter().any(|message| message.author == Author::Unreadable);
    if is_unreadable {
        return Some(KeptReason::Unreadable);
    }
    if session.v2.is_none() && rows.events.has_session_next {
        return Some(KeptReason::EventsRetained);
    }
    let is_empty = rows.v1.messages.is_empty() && rows.v2.messages.is_empty();
    (is_empty && rows.events.has_content).then_some(KeptReason::OnlyCopy)
}

fn marks_v1(content: &ContentV1) -> Vec<Mark> {
    let mut marks: Vec<Mark> = content
        .messages
        .iter()
        .map(|message| Mark {
            author: message.author,
            has_unfinished_tool: false,
            compaction: message.compaction,
        })
        .collect();
    for part in &content.parts {
        if let (Some(message), Item::Tool { is_finished: false }) = (part.message, part.item) {
            marks[message as usize].has_unfinished_tool = true;
        }
    }
    marks
}

fn marks_v2(content: &ContentV2) -> Vec<Mark> {
    let mark = |message: &MessageV2| Mark {
        author: message.author,
        has_unfinished_tool: message.has_unfinished_tool,
        compaction: message.compaction,
    };
    content.messages.iter().map(mark).collect()
}
