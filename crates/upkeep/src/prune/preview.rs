//! What may go from one message, read without a trace.

use headwater_model::{ByteCount, ContentRevision, MessageId, SessionId};
use headwater_prune::Layout;
use rusqlite::Connection;
use serde::Serialize;

use super::answer::{Blocked, PruneError, Why};
use super::content::Content;
use crate::fence::SessionPlace;
use crate::schema::Schema;
use headwater_prune::KeptReason;

/// One message as a person chooses from it. Holds no content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MessagePreview {
    /// The message.
    pub message: MessageId,
    /// Its session, and where that stands; a prune is refused where it has moved since.
    pub place: SessionPlace,
    /// Where the message is stored.
    pub layout: Layout,
    /// The revision that a request must name (P3).
    pub revision: ContentRevision,
    /// Bytes of all items.
    pub bytes: ByteCount,
    /// The items, by index.
    pub items: Vec<PreviewItem>,
    /// Why nothing of the message may go, whatever is selected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocked: Option<Blocked>,
}

/// One item of a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PreviewItem {
    /// Position in the content array (2.x) or among the parts in id order (1.x).
    pub index: u32,
    /// Its kind as stored.
    pub kind: String,
    /// The name of the tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Bytes as stored.
    pub bytes: ByteCount,
    /// Whether it may be removed (P4).
    pub removable: bool,
}

/// Reads `message` of `session`. The inner error says why it cannot be previewed: it is not there, too large (P2), or not JSON with
/// one meaning (P3).
///
/// # Errors
/// Any error of SQLite.
pub fn preview_message(
    connection: &Connection,
    schema: &Schema,
    session: &SessionId,
    message: &MessageId,
) -> Result<Result<MessagePreview, Blocked>, PruneError> {
    let transaction = connection.unchecked_transaction()?;
    let gone = || Ok(Err(Why::Kept(KeptReason::Gone).into()));
    let Some(storage) = Content::storage(&transaction, schema, session, message)? else { return gone() };
    let Some(place) = SessionPlace::find(&transaction, schema, storage, session)? else { return gone() };
    let content = match Content::read(&transaction, storage, session, message)? {
        Ok(content) => content,
        Err(reason) => return Ok(Err(reason.into())),
    };
    let (removable, blocked) = match content.removable() {
        Ok(removable) => (removable, None),
        Err(reason) => (Vec::new(), Some(reason.into())),
    };
    let items = content
        .items
        .iter()
        .zip(0..)
        .map(|(item, index)| PreviewItem {
            index,
            kind: item.kind.name().to_owned(),
            tool: item.tool.as_deref().map(str::to_owned),
            bytes: ByteCount::new(item.bytes),
            removable: removable.binary_search(&index).is_ok(),
        })
        .collect();
    Ok(Ok(MessagePreview {
        message: message.clone(),
        place,
        layout: content.layout(),
        revision: content.revision,
        bytes: content.bytes(),
        items,
        blocked,
    }))
}
