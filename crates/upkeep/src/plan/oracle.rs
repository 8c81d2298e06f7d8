//! Plans over random databases against plain SQL with `json_extract`, which shares no code with the planner.

use headwater_model::UnixMillis;
use headwater_prune::{Class, Classes};
use proptest::prelude::*;
use serde_json::json;

use super::{Figures, Plan, Selection, compute};
use crate::observer::Unobserved;
use crate::survey::sample::{NOW, Sample, reasoning, running, text, tool};

/// One random part: kind, size.
type Part = (u8, u16);
/// One random message: is it the user's, is it completed, bytes of its patch, parts.
type Message = (bool, bool, u16, Vec<Part>);
/// One random session: messages, and copies of entities in its log as (type, entity, size).
type Session = (Vec<Message>, Vec<(u8, u8, u16)>);

fn sessions() -> impl Strategy<Value = Vec<Session>> {
    let part = (0_u8..8, 0_u16..600);
    let is_completed = prop::bool::weighted(0.85);
    let message = (
        any::<bool>(),
        is_completed,
        prop_oneof![Just(0_u16), 1_u16..6000],
        prop::collection::vec(part, 0..5),
    );
    let event = (0_u8..5, 0_u8..4, 0_u16..5000);
    prop::collection::vec((prop::collection::vec(message, 0..7), prop::collection::vec(event, 0..12)), 0..4)
}

fn part_data(kind: u8, size: u16) -> String {
    let filler = "x\"\n".repeat(usize::from(size));
    match kind {
        0 => tool("bash", &filler),
        1 => reasoning(&filler),
        2 => text(&filler),
        3 => {
            json!({"type": "tool", "tool": "read", "state": {"status": "error", "error": filler}}).to_string()
        }
        // Rare on purpose: each of these keeps a message or a session.
        4 if size < 60 => running("bash"),
        5 if size < 60 => json!({"type": "hologram", "filler": filler}).to_string(),
        _ => json!({"type": "step-start"}).to_string(),
    }
}

fn build(sessions: &[Session]) -> Sample {
    let sample = Sample::v1();
    let mut parts = 0;
    for (s, (messages, events)) in sessions.iter().enumerate() {
        let session = format!("ses_{s}");
        sample.session("session", &session, None, 1);
        for (m, (is_user, is_completed, patch, items)) in messages.iter().enumerate() {
            let message = format!("msg_{s}_{m}");
            let data = match (*is_user, *is_completed) {
                (true, _) if *patch == 0 => {
                    json!({"role": "user", "time": {"created": 1}, "summary": {"diffs": []}})
                }
                (true, _) => {
                    let patch = "+".repeat(usize::from(*patch));
                    json!({"role": "user", "time": {"created": 1}, "summary": {"diffs": [{"file": "f", "patch": patch}]}})
                }
                (false, true) => json!({"role": "assistant", "time": {"created": 1, "completed": 2}}),
                (false, false) => json!({"role": "assistant", "time": {"created": 1}}),
            };
            sample.message(&message, &session, i64::try_from(m).unwrap(), &data.to_string());
            for (kind, size) in items {
                parts += 1;
                sample.part(&format!("prt_{parts:04}"), &message, &session, &part_data(*kind, *size));
            }
        }
        for (event_type, entity, size) in events {
            let filler = "y".repeat(usize::from(*size));
            let (event_type, data) = match event_type {
                0 => ("message.part.updated.1", json!({"part": {"id": entity.to_string(), "text": filler}})),
                1 => ("message.updated.1", json!({"info": {"id": entity.to_string(), "text": filler}})),
                2 => ("session.updated.1", json!({"info": {"id": session, "text": filler}})),
                3 => ("message.removed.1", json!({"messageID": entity.to_string()})),
                _ => ("session.created.1", json!({"info": {"id": session}})),
            };
            sample.event(&session, event_type, &data.to_string());
        }
    }
    sample
}

/// Common table expressions: messages with whether a user message comes later, and sessions whose newest turn is unfinished.
const FACTS: &str = "
WITH m AS (
  SELECT rowid, id, session_id, time_created AS at, data, json_extract(data, '$.role') AS role,
    json_extract(data, '$.time.completed') AS completed,
    EXISTS (SELECT 1 FROM message u WHERE u.session_id = o.session_id AND u.time_created > o.time_created
      AND json_extract(u.data, '$.role') = 'user') AS is_old
  FROM message o),
p AS (
  SELECT rowid, message_id, octet_length(data) AS bytes, json_extract(data, '$.type') AS kind,
    json_extract(data, '$.state.status') AS status FROM part),
busy AS (
  SELECT session_id FROM m WHERE NOT is_old AND ((role = 'assistant' AND completed IS NULL)
    OR EXISTS (SELECT 1 FROM p WHERE p.message_id = m.id AND kind = 'tool' AND status NOT IN ('completed', 'error')))),
e AS (
  SELECT rowid, aggregate_id, seq, type, octet_length(data) AS bytes,
    coalesce(json_extract(data, '$.part.id'), json_extract(data, '$.info.id')) AS entity FROM event)
";

/// Rows and bytes that class technical takes.
const TECHNICAL: &str = "
SELECT count(*), coalesce(sum(p.bytes), 0) FROM p JOIN m ON m.id = p.message_id
WHERE m.role = 'assistant' AND m.completed IS NOT NULL AND m.is_old AND m.session_id NOT IN busy
  AND (kind = 'reasoning' OR (kind = 'tool' AND status IN ('completed', 'error')))
  AND NOT EXISTS (SELECT 1 FROM p q WHERE q.message_id = m.id AND (q.kind = 'hologram'
    OR (q.kind = 'tool' AND q.status NOT IN ('completed', 'error'))))";

const SUPERSEDED: &str = "
SELECT count(*), coalesce(sum(bytes), 0) FROM e
WHERE type IN ('message.updated.1', 'message.part.updated.1', 'session.updated.1') AND EXISTS (
  SELECT 1 FROM e n WHERE n.aggregate_id = e.aggregate_id AND n.type = e.type AND n.entity = e.entity AND n.seq > e.seq)";

const EVENTS: &str = "
SELECT count(*), coalesce(sum(bytes), 0) FROM e
WHERE aggregate_id NOT IN busy AND (EXISTS (SELECT 1 FROM m WHERE m.session_id = e.aggregate_id)
  OR NOT EXISTS (SELECT 1 FROM e c WHERE c.aggregate_id = e.aggregate_id AND c.type LIKE 'message.%updated.1'))";

/// Emptying the array leaves its brackets.
const DIFFS: &str = "
SELECT count(*), coalesce(sum(length(json_extract(data, '$.summary.diffs')) - 2), 0) FROM m
WHERE role = 'user' AND session_id NOT IN busy AND length(json_extract(data, '$.summary.diffs')) > 2";

fn expected(sample: &Sample, query: &str) -> (u64, u64) {
    let read = |row: &rusqlite::Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?));
    let (rows, bytes) = sample.db.query_row(&format!("{FACTS} {query}"), [], read).unwrap();
    (rows.cast_unsigned(), bytes.cast_unsigned())
}

fn planned(sample: &Sample, classes: &[Class]) -> Plan {
    let selection = Selection {
        figures: Figures::Exact,
        ..Selection::new(classes.iter().copied().collect::<Classes>(), UnixMillis::new(NOW))
    };
    compute(&sample.db, &sample.schema(), &selection, &Unobserved).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn totals_equal_those_of_plain_sql(sessions in sessions()) {
        let sample = build(&sessions);
        let oracle = [
            (Class::SupersededEvents, SUPERSEDED),
            (Class::Events, EVENTS),
            (Class::Diffs, DIFFS),
            (Class::Technical, TECHNICAL),
        ];
        for (class, query) in oracle {
            let total = planned(&sample, &[class]).totals[&class].clone();
            let found = (total.rows_dropped + total.rows_rewritten, total.bytes.get());
            prop_assert_eq!(found, expected(&sample, query), "{}", class);
        }
    }

    #[test]
    fn classes_together_take_each_row_once_and_never_more_than_alone(sessions in sessions()) {
        let sample = build(&sessions);
        let classes = [Class::SupersededEvents, Class::Events, Class::Diffs, Class::Metadata, Class::Technical];
        let together = planned(&sample, &classes);
        for fate in together.fates.values() {
            let dropped: u64 = fate.dropped.values().map(roaring::RoaringTreemap::len).sum();
            let mut union = roaring::RoaringTreemap::new();
            fate.dropped.values().for_each(|rows| union |= rows);
            prop_assert_eq!(union.len(), dropped);
            prop_assert!(fate.rewritten.values().all(|rows| rows.is_disjoint(&union)));
        }
        for class in classes {
            let alone = planned(&sample, &[class]).totals[&class].clone();
            prop_assert!(together.totals[&class].bytes <= alone.bytes, "{}", class);
        }
    }
}
