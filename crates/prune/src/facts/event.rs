//! Which entity an event row holds a copy of.

use headwater_wire::json::{JsonError, Reader};
use serde::Serialize;

use super::Facts;
use super::walk::{enter, facts, string};

/// What an entity is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum EntityKind {
    /// A session.
    Session,
    /// A message.
    Message,
    /// A part.
    Part,
}

/// What an event row holds a full copy of.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Entity {
    /// Its kind.
    pub kind: EntityKind,
    /// Its id as stored.
    pub id: Box<str>,
}

/// The entity of which an event row of `event_type` (the column, for instance `message.part.updated.1`) whose `data` begins with
/// `prefix` is a full copy (fact A4). `Known(None)` for every type that is no such copy (created, removed, other versions, 2.x), and
/// for a row without an id: such rows are never superseded.
pub fn event_entity(event_type: &str, prefix: &[u8], is_whole: bool) -> Facts<Option<Entity>> {
    let (kind, member) = match event_type {
        "session.updated.1" => (EntityKind::Session, "info"),
        "message.updated.1" => (EntityKind::Message, "info"),
        "message.part.updated.1" => (EntityKind::Part, "part"),
        _ => return Facts::Known(None),
    };
    facts(prefix, is_whole, |reader| Ok(id_within(reader, member)?.map(|id| Entity { kind, id })))
}

/// The member `id` of the object in member `member`.
fn id_within(reader: &mut Reader<'_>, member: &str) -> Result<Option<Box<str>>, JsonError> {
    reader.begin_object()?;
    while let Some(key) = reader.next_member()? {
        if !key.is(member) {
            reader.skip()?;
            continue;
        }
        if !enter(reader)? {
            return Ok(None);
        }
        while let Some(key) = reader.next_member()? {
            if key.is("id") {
                return Ok(string(reader)?.filter(|id| !id.is_empty()));
            }
            reader.skip()?;
        }
        return Ok(None);
    }
    Ok(None)
}
