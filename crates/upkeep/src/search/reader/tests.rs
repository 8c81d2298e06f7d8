use std::io::BufReader;

use proptest::prelude::*;

use super::*;

#[derive(Default)]
struct Whole(Vec<u8>);

impl Sink for Whole {
    fn piece(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }
}

fn decoded(json: &str, capacity: usize) -> Result<String, ReadError> {
    let mut whole = Whole::default();
    let mut reader = Reader::new(BufReader::with_capacity(capacity, json.as_bytes()));
    reader.string(&mut whole)?;
    reader.finish()?;
    Ok(String::from_utf8_lossy(&whole.0).into_owned())
}

fn walks(json: &[u8], capacity: usize) -> bool {
    let mut reader = Reader::new(BufReader::with_capacity(capacity, json));
    reader.skip().and_then(|()| reader.finish()).is_ok()
}

#[test]
fn escapes_decode_at_every_chunk_size() {
    let table = [
        (r#""plain""#, "plain"),
        (r#""a\n\t\r\b\f\"\\\/z""#, "a\n\t\r\u{8}\u{c}\"\\/z"),
        (r#""\u00e9\u212A""#, "é\u{212a}"),
        (r#""\ud83d\ude00!""#, "😀!"),
        (r#""\ud83d!""#, "\u{fffd}!"),
        (r#""\ud83d\n""#, "\u{fffd}\n"),
        (r#""\ud83d\ud83d\ude00""#, "\u{fffd}😀"),
        (r#""\ude00\u0041""#, "\u{fffd}A"),
        (r#""\ud83d\u0041""#, "\u{fffd}A"),
    ];
    for (json, text) in table {
        for capacity in [1, 2, 3, 64] {
            assert_eq!(decoded(json, capacity).unwrap(), text, "{json} {capacity}");
        }
    }
}

#[test]
fn a_string_that_does_not_matter_is_passed_over_where_it_is_whole() {
    for inside in ["plain", "", r#"a\"b\\"#, r"\\", r"\u00e9\ud83d\n"] {
        let json = format!("\"{inside}\" ");
        let mut seen = Vec::new();
        let mut reader = Reader::new(json.as_bytes());
        let is_read = reader.string_where(&mut (), |bytes| {
            seen = bytes.to_vec();
            false
        });
        assert!(!is_read.unwrap(), "{json}");
        assert_eq!(String::from_utf8(seen).unwrap(), inside);
        reader.finish().unwrap();
        let mut reader = Reader::new(BufReader::with_capacity(1, json.as_bytes()));
        assert_eq!(reader.string_where(&mut (), |_| false).unwrap(), !inside.is_empty(), "{json} in pieces");
        reader.finish().unwrap();
    }
    for json in [r#""\x""#, r#""\u12"#, r#""\u12g4""#, r#""a"#, r#""a\"#, r#""a\""#] {
        let mut reader = Reader::new(json.as_bytes());
        assert!(reader.string_where(&mut (), |_| false).is_err(), "{json}");
    }
}

#[test]
fn damage_is_reported() {
    for json in [
        "",
        "{",
        "{\"a\"",
        "{\"a\":}",
        "{\"a\":1,}",
        "[1,]",
        "[1 2]",
        "\"a",
        "\"\\x\"",
        "\"\\u12\"",
        "\"\\u12g4\"",
        "tru",
        "01",
        "1.",
        "1e",
        "-",
        "{} x",
        "{1:2}",
        "nan",
        "[,1]",
        "{\"a\":1 \"b\":2}",
    ] {
        assert!(!walks(json.as_bytes(), 3), "{json}");
    }
    assert!(!walks("[".repeat(257).as_bytes(), 64));
    let deep = format!("{}{}", "[".repeat(256), "]".repeat(256));
    assert!(walks(deep.as_bytes(), 64));
}

proptest! {
    #[test]
    fn accepts_what_serde_json_writes(text in "\\PC{0,40}", number in any::<f64>(), capacity in 1_usize..20) {
        let json = serde_json::json!({"a": [text, number, null, true], text.clone(): {"b": text}}).to_string();
        prop_assert!(walks(json.as_bytes(), capacity));
        let cut = json.floor_char_boundary(json.len() - 1);
        prop_assert!(!walks(&json.as_bytes()[..cut], capacity));
        let string = serde_json::to_string(&text).unwrap();
        prop_assert_eq!(decoded(&string, capacity).unwrap(), text);
    }
}
