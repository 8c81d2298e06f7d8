use headwater_wire::canonical::{canonicalize, content_revision, parts_revision};
use serde_json::Value;

/// The canonical form is that of serde_json_canonicalizer where both accept, is its own form, and has one revision however it is hashed.
///
/// # Panics
/// Where it is not.
pub fn canonical(input: &[u8]) {
    let form = canonicalize(input);
    let revision = content_revision(input);
    assert_eq!(form.as_ref().err(), revision.as_ref().err());
    let part = [("prt_1", input)];
    let _ = parts_revision(part);
    let Ok(form) = form else { return };
    assert_eq!(canonicalize(&form).as_ref(), Ok(&form), "the form is its own form");
    assert_eq!(content_revision(&form), revision);
    // Deeper than 128 only this crate reads.
    let Ok(value) = serde_json::from_slice::<Value>(input) else {
        assert!(depth(&form) > 127, "serde_json refuses what has a form");
        return;
    };
    if let Ok(other) = serde_json_canonicalizer::to_vec(&value) {
        assert_eq!(String::from_utf8_lossy(&form), String::from_utf8_lossy(&other));
    }
    if let Value::Object(mut members) = value {
        let id = members.entry("id").or_insert_with(|| "prt_1".into()).clone();
        let found = parts_revision(part);
        if id == "prt_1" {
            let wanted = serde_json::to_vec(&[Value::Object(members)]).expect("values can be written");
            assert_eq!(found.ok(), content_revision(&wanted).ok());
        } else {
            assert!(found.is_err(), "another id is refused");
        }
    }
}

/// Containers inside each other, in JSON that is well formed.
fn depth(json: &[u8]) -> usize {
    let (mut depth, mut deepest, mut in_string, mut escaped) = (0_usize, 0, false, false);
    for byte in json {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => in_string = !in_string,
            b'[' | b'{' if !in_string => depth += 1,
            b']' | b'}' if !in_string => depth -= 1,
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}
