//! How the `data` of a row is rewritten for the classes that take a part of it.

use headwater_prune::decide::Author;
use headwater_prune::{
    Class, Classes, Facts, Rewrite, RowKind, completion, ensure_not_worse, remove_technical, rewrite,
};

/// The content of a row does not allow what was asked; the row stays as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the content of the row cannot be rewritten")]
pub(crate) struct Unrewritable;

/// Rewrites the `data` of a row. Everything that is not taken keeps its bytes (P5).
pub(crate) trait Rewriter: Sync {
    /// The new `data`, or nothing where it stays as it is. `row_type` is the column `type` where the table has one.
    fn rewrite(
        &self,
        table: &str,
        row_type: Option<&str>,
        data: &[u8],
        classes: Classes,
    ) -> Result<Option<Vec<u8>>, Unrewritable>;
}

/// Rewrites nothing.
pub(crate) struct Verbatim;

impl Rewriter for Verbatim {
    fn rewrite(
        &self,
        _: &str,
        _: Option<&str>,
        _: &[u8],
        _: Classes,
    ) -> Result<Option<Vec<u8>>, Unrewritable> {
        Ok(None)
    }
}

/// Classes that take a part of a row and leave the rest.
const FIELD_CLASSES: [Class; 4] = [Class::Diffs, Class::Metadata, Class::Attachments, Class::Compacted];

/// By the rules of the classes (P15). A row that OpenCode could decode before can be decoded after (P8b).
pub(crate) struct ByClass;

impl Rewriter for ByClass {
    fn rewrite(
        &self,
        table: &str,
        row_type: Option<&str>,
        data: &[u8],
        classes: Classes,
    ) -> Result<Option<Vec<u8>>, Unrewritable> {
        let kind = match table {
            "message" => RowKind::Message,
            "part" => RowKind::Part,
            "session_message" => RowKind::SessionMessage,
            _ => return Err(Unrewritable),
        };
        let mut changed = None;
        if classes.has(Class::Technical) && kind == RowKind::SessionMessage {
            changed = without_technical(data)?;
        }
        // Each question scans the whole row, so none is asked in vain.
        if FIELD_CLASSES.into_iter().any(|class| classes.has(class)) {
            let current = changed.as_deref().unwrap_or(data);
            match rewrite(kind, current, classes).map_err(|_| Unrewritable)? {
                Rewrite::Changed(shorter) => changed = Some(shorter),
                Rewrite::Unchanged => {}
            }
        }
        if let Some(after) = &changed {
            ensure_not_worse(kind, row_type, data, after).map_err(|_| Unrewritable)?;
        }
        Ok(changed)
    }
}

/// Decided again on the whole row: a plan may have seen only its beginning (P4).
fn without_technical(data: &[u8]) -> Result<Option<Vec<u8>>, Unrewritable> {
    let Facts::Known(completed) = completion(data, true) else { return Err(Unrewritable) };
    let author = Author::Assistant { is_completed: completed.is_some() };
    remove_technical(author, data).map_err(|_| Unrewritable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn technical_items_of_a_2x_row_go_and_the_rest_keeps_its_bytes() {
        let data = br#"{"time":{"created":1,"completed":2},"agent":"a","model":{"id":"m","providerID":"p"},"content":[{"type":"text","text":"kept  \u00e9"},{"type":"reasoning","text":"gone"}]}"#;
        let classes = Classes::NONE.with(Class::Technical);
        let after = ByClass.rewrite("session_message", Some("assistant"), data, classes).unwrap().unwrap();
        let expected = br#"{"time":{"created":1,"completed":2},"agent":"a","model":{"id":"m","providerID":"p"},"content":[{"type":"text","text":"kept  \u00e9"}]}"#;
        assert_eq!(String::from_utf8(after).unwrap(), String::from_utf8(expected.to_vec()).unwrap());
    }

    #[test]
    fn rows_of_other_tables_and_broken_rows_stay() {
        let classes = Classes::NONE.with(Class::Diffs);
        assert_eq!(ByClass.rewrite("event", None, b"{}", classes), Err(Unrewritable));
        assert_eq!(ByClass.rewrite("message", None, b"{\"summary\":", classes), Err(Unrewritable));
        assert_eq!(ByClass.rewrite("message", None, b"{\"role\":\"user\"}", classes), Ok(None));
    }
}
