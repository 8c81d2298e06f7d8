//! A glance at a whole row before it is scanned: most rows hold nothing that a field class could shorten.

use headwater_prune::rewrite::GAIN_BYTES_MIN;
use headwater_prune::{Class, Classes, RowKind};
use memchr::memmem;

/// Whether rewriting `data` for `classes` may change it. Never says no where it would: a member's name stands in the row as it is
/// written in a program unless letters of it are `\u` escapes, and then the answer is yes.
pub(crate) fn may_change(kind: RowKind, data: &[u8], classes: Classes) -> bool {
    let holds = |needle: &[u8]| memmem::find(data, needle).is_some();
    let takes = |class| {
        if class == Class::Compacted {
            holds(b"\"compacted\"")
        } else if class == Class::Metadata {
            // What follows the first such member is too short where all of it is.
            memmem::find(data, b"\"metadata\"").is_some_and(|at| data.len() - at >= GAIN_BYTES_MIN)
        } else if class == Class::Attachments && kind == RowKind::SessionMessage {
            holds(b"\"uri\"") || holds(b"\"data\"")
        } else {
            class != Class::Attachments || holds(b"\"attachments\"") || holds(b"\"url\"")
        }
    };
    classes.iter().any(takes) || holds(b"\\u")
}

#[cfg(test)]
mod tests {
    use headwater_prune::{Rewrite, rewrite};
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::survey::sample::{text, tool, tool_with};

    const CLASSES: [Class; 3] = [Class::Metadata, Class::Attachments, Class::Compacted];

    fn rows() -> impl Strategy<Value = (RowKind, String)> {
        let size = 0_usize..400;
        let part = (size.clone(), size.clone(), any::<bool>(), any::<bool>()).prop_map(
            |(output, copy, is_compacted, has_file)| {
                let mut time = json!({"start": 1, "end": 2});
                if is_compacted {
                    time["compacted"] = json!(3);
                }
                let row = tool_with("bash", &"o".repeat(output), &json!({"output": "m".repeat(copy)}), &time);
                let files =
                    format!(r#""attachments":[{{"url":"data:;base64,{}"}}],"status""#, "A".repeat(copy));
                if has_file { row.replace("\"status\"", &files) } else { row }
            },
        );
        let user = size.prop_map(|size| {
            let files =
                json!([{"uri": format!("data:;base64,{}", "A".repeat(size))}, {"data": "A".repeat(size)}]);
            json!({"text": "q", "files": files}).to_string()
        });
        prop_oneof![
            part.prop_map(|row| (RowKind::Part, row)),
            user.prop_map(|row| (RowKind::SessionMessage, row))
        ]
    }

    proptest! {
        #[test]
        fn a_row_that_a_class_shortens_is_never_passed_over((kind, row) in rows(), escaped: bool) {
            let row = if escaped { row.replace("\"metadata\"", "\"met\\u0061data\"") } else { row };
            for class in CLASSES {
                let classes = Classes::NONE.with(class);
                if let Ok(Rewrite::Changed(_)) = rewrite(kind, row.as_bytes(), classes) {
                    prop_assert!(may_change(kind, row.as_bytes(), classes), "{}", class);
                }
            }
        }
    }

    #[test]
    fn usual_small_rows_are_passed_over() {
        let classes = CLASSES.into_iter().collect();
        for row in [tool("read", "content"), text("answer")] {
            assert!(!may_change(RowKind::Part, row.as_bytes(), classes), "{row}");
        }
    }
}
