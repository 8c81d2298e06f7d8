use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::create;
use crate::fixture::{Layout, NOW, Session, message, part};

/// Rows and bytes of one event type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventTotal {
    /// Rows.
    pub rows: u64,
    /// Bytes of `data`.
    pub bytes: u64,
}

/// What [`superseded_events`] built.
#[derive(Debug)]
pub struct SupersededEvents {
    /// The database.
    pub path: PathBuf,
    /// All events, by type.
    pub by_type: BTreeMap<&'static str, EventTotal>,
    /// The superseded ones among them, by type: the candidates. Nothing else may go.
    pub superseded: BTreeMap<&'static str, EventTotal>,
    /// How many events stay.
    pub must_stay: u64,
    /// Last sequence number of each session; it must not move.
    pub last_seq: BTreeMap<String, i64>,
}

const PART: &str = "message.part.updated.1";
const MESSAGE: &str = "message.updated.1";

/// An event log that holds every intermediate copy of answers that streamed in, and exact duplicates (opencode issues 33356, 41175,
/// 47510).
///
/// Right: only copies with a newer copy of the same entity are candidates; the newest per message and per part stays, and so does
/// every event of another type; session, message and part rows stay byte-identical; the next append gets the last number plus one.
pub fn superseded_events(folder: &Path) -> SupersededEvents {
    let db = create(folder, Layout::ReducedV1);
    let mut case = SupersededEvents {
        path: db.path().to_owned(),
        by_type: BTreeMap::new(),
        superseded: BTreeMap::new(),
        must_stay: 0,
        last_seq: BTreeMap::new(),
    };
    db.transaction(|db| {
        for s in 0..3 {
            let session = format!("ses_{s}");
            db.session(&Session::named(&session));
            let created = format!(r#"{{"sessionID":"{session}","info":{{"id":"{session}"}}}}"#);
            db.event(&session, "session.created.1", &created);
            case.count("session.created.1", &created, true);
            for m in 0..4 {
                let (message, part) = (format!("msg_{s}_{m}"), format!("prt_{s}_{m}"));
                let full = format!("answer {s}.{m} ").repeat(400);
                if m % 2 == 0 {
                    db.message(&message, &session, NOW + m, &message::user(NOW + m));
                    db.part_at(&part, &message, &session, NOW + m, &part::text(&full));
                    continue;
                }
                let info = message::assistant(&format!("msg_{s}_{}", m - 1), NOW + m);
                db.message(&message, &session, NOW + m, &info);
                db.part_at(&part, &message, &session, NOW + m, &part::text(&full));
                for step in 1..=30 {
                    let copy =
                        part::event(&session, &message, &part, &part::text(&full[..full.len() * step / 30]));
                    db.event(&session, PART, &copy);
                    case.count(PART, &copy, step == 30);
                    for again in 0..if step % 10 == 0 { 2 } else { 0 } {
                        let copy = message::event(&session, &message, &info);
                        db.event(&session, MESSAGE, &copy);
                        case.count(MESSAGE, &copy, step == 30 && again == 1);
                    }
                }
            }
            let removed = format!(r#"{{"sessionID":"{session}","messageID":"msg_gone"}}"#);
            let last = db.event(&session, "message.removed.1", &removed);
            case.count("message.removed.1", &removed, true);
            case.last_seq.insert(session, last);
        }
    });
    db.close();
    case
}

impl SupersededEvents {
    fn count(&mut self, kind: &'static str, data: &str, stays: bool) {
        let add = |total: &mut EventTotal| {
            total.rows += 1;
            total.bytes += data.len() as u64;
        };
        add(self.by_type.entry(kind).or_default());
        if stays {
            self.must_stay += 1;
        } else {
            add(self.superseded.entry(kind).or_default());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::Fixture;

    #[test]
    fn the_facts_agree_with_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let case = superseded_events(folder.path());
        let db = Fixture::reopen(&case.path);
        for (kind, total) in &case.by_type {
            let of_kind = |what: &str| {
                u64::try_from(db.integer(&format!("SELECT {what} FROM event WHERE type = '{kind}'"))).unwrap()
            };
            assert_eq!(of_kind("count(*)"), total.rows, "{kind}");
            assert_eq!(of_kind("sum(octet_length(data))"), total.bytes, "{kind}");
        }
        let stay = db.integer(
            "SELECT (SELECT count(*) FROM event WHERE type NOT LIKE '%updated.1') \
             + (SELECT count(DISTINCT json_extract(data, '$.part.id')) FROM event WHERE type = 'message.part.updated.1') \
             + (SELECT count(DISTINCT json_extract(data, '$.info.id')) FROM event WHERE type = 'message.updated.1')",
        );
        assert_eq!(u64::try_from(stay).unwrap(), case.must_stay);
        assert_eq!(case.superseded[PART].rows, 3 * 2 * 29);
        assert_eq!(case.superseded[MESSAGE].rows, 3 * 2 * 5);
    }
}
