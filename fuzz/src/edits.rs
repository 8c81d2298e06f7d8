use headwater_prune::{
    Class, Classes, Rewrite, RowKind, Undecodable, assistant_items, content_range, ensure_not_worse,
    remove_items, rewrite,
};
use serde_json::Value;

const KINDS: [RowKind; 3] = [RowKind::Message, RowKind::Part, RowKind::SessionMessage];
const CLASSES: [Class; 4] = [Class::Diffs, Class::Metadata, Class::Attachments, Class::Compacted];

/// Rewriting takes bytes away, is idempotent and makes no row worse; removing items leaves the others and what is around them alone.
///
/// # Panics
/// Where one of these does not hold.
pub fn edits(input: &[u8]) {
    let every: Classes = CLASSES.into_iter().collect();
    for kind in KINDS {
        for classes in CLASSES.map(|class| Classes::NONE.with(class)).into_iter().chain([every]) {
            rewritten(kind, input, classes);
        }
    }
    removed(input);
}

fn rewritten(kind: RowKind, input: &[u8], classes: Classes) {
    let Ok(Rewrite::Changed(after)) = rewrite(kind, input, classes) else { return };
    assert!(after.len() < input.len(), "a rewrite saves something");
    assert_eq!(rewrite(kind, &after, classes), Ok(Rewrite::Unchanged), "a rewrite is idempotent");
    for row_type in [None, Some("user"), Some("assistant")] {
        // A key repeated in an object that the edit did not look at makes both unreadable.
        let worse = ensure_not_worse(kind, row_type, input, &after);
        assert!(!matches!(worse, Err(Undecodable::Member(_))), "{worse:?}");
    }
}

fn removed(input: &[u8]) {
    let Ok(items) = assistant_items(input) else { return };
    let all: Vec<u32> = items
        .iter()
        .filter(|item| remove_items(input, &[item.index]).is_ok())
        .map(|item| item.index)
        .collect();
    let some: Vec<u32> = all.iter().copied().filter(|index| index % 3 != 1).collect();
    for goes in [all, some] {
        let after = remove_items(input, &goes).expect("each of them may go");
        let kept: Vec<&[u8]> = items
            .iter()
            .filter(|item| !goes.contains(&item.index))
            .map(|item| &input[item.range.clone()])
            .collect();
        let left = assistant_items(&after).expect("what is left has items");
        let left: Vec<&[u8]> = left.iter().map(|item| &after[item.range.clone()]).collect();
        assert_eq!(kept, left, "the items that stay keep their bytes");
        let (old, new) = (content_range(input).expect("before"), content_range(&after).expect("after"));
        assert_eq!(input[..old.start], after[..new.start]);
        assert_eq!(input[old.end..], after[new.end..]);
        // serde_json stops at a depth of 128.
        if serde_json::from_slice::<Value>(input).is_ok() {
            assert!(serde_json::from_slice::<Value>(&after).is_ok(), "JSON stays JSON");
        }
    }
}
