use super::*;
use proptest::prelude::*;
use serde_json::Value as Json;

/// What a document says about itself when each level is scanned anew: the reader alone, without notes.
fn scanned(data: &[u8]) -> Result<Range<usize>, RowError> {
    let mut reader = Reader::new(data);
    reader.peek()?;
    let range = reader.skip()?;
    reader.finish()?;
    Ok(range)
}

fn entries(value: &Value<'_>) -> Vec<(Range<usize>, Kind, Range<usize>)> {
    let mut reader = Reader::at(value.data, value.range.start);
    let mut entries = Vec::new();
    let is_object = value.kind == Kind::Object;
    if is_object { reader.begin_object() } else { reader.begin_array() }.unwrap();
    while if is_object { reader.next_member().unwrap().is_some() } else { reader.next_element().unwrap() } {
        let start = reader.entry_start();
        let kind = reader.peek().unwrap();
        let range = reader.skip().unwrap();
        entries.push((start..range.end, kind, range));
    }
    entries
}

/// Reads the value level by level; every level must be the one that a new scan finds.
fn read(value: &Value<'_>) -> Json {
    if let Ok(Some(Object(members))) = value.object() {
        let found: Vec<_> = members
            .iter()
            .map(|member| (member.range.clone(), member.value.kind, member.value.range.clone()))
            .collect();
        assert_eq!(found, entries(value));
        return members.iter().map(|member| (member.key.decode().unwrap(), read(&member.value))).collect();
    }
    if let Ok(Some(elements)) = value.array() {
        let found: Vec<_> = elements
            .iter()
            .map(|element| (element.range.clone(), element.kind, element.range.clone()))
            .collect();
        assert_eq!(found, entries(value));
        return elements.iter().map(read).collect();
    }
    serde_json::from_slice(value.bytes()).unwrap()
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[a-e\"\\\\\nκ数😀]{0,6}",
        1 => ("[a-z\"\nκ]{1,9}", 40_usize..200).prop_map(|(piece, times)| piece.repeat(times)),
    ]
}

fn json() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::from),
        any::<i32>().prop_map(Json::from),
        text().prop_map(Json::from),
    ];
    leaf.prop_recursive(10, 64, 6, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(Json::from),
            proptest::collection::btree_map(text(), inner, 0..6)
                .prop_map(|members| Json::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn a_document_reads_as_serde_reads_it_and_as_a_scan_of_each_level_does(value in json(), is_pretty: bool) {
        let data = if is_pretty { serde_json::to_vec_pretty(&value) } else { serde_json::to_vec(&value) }.unwrap();
        let document = document(&data).unwrap();
        prop_assert_eq!(Ok(document.range.clone()), scanned(&data));
        prop_assert_eq!(read(&document), value);
    }

    #[test]
    fn what_a_scan_refuses_is_refused_at_the_same_place(value in json(), at: prop::sample::Index, with: u8, cut: bool) {
        let mut data = serde_json::to_vec(&value).unwrap();
        let at = at.index(data.len());
        if cut { data.truncate(at) } else { data[at] = with }
        prop_assert_eq!(document(&data).map(|found| found.range), scanned(&data));
    }
}

#[test]
fn long_values_at_any_depth_and_place_keep_their_neighbours() {
    let long = "x".repeat(600);
    for depth in 0..20 {
        let data = format!(r#"{}["{long}",1,"{long}"],[2]{}"#, "[".repeat(depth + 1), "]".repeat(depth + 1));
        let value = document(data.as_bytes()).unwrap();
        assert_eq!(read(&value), serde_json::from_str::<Json>(&data).unwrap(), "{depth}");
    }
    for length in 500..520 {
        let data = format!(r#" {{ "a" : "{}" , "b" : [ 1 ] }} "#, "x".repeat(length));
        assert_eq!(read(&document(data.as_bytes()).unwrap())["b"][0], 1, "{length}");
    }
}

#[test]
fn repeated_keys_and_halves_of_pairs_are_refused_where_they_stand() {
    let many = (0..20).map(|at| format!(r#""k{at}":0,"#)).collect::<Vec<_>>().concat();
    let cases = [
        (r#"{"a":1,"b":2,"a":3}"#.to_owned(), 13, RowErrorKind::RepeatedKey),
        (r#"{"a":1,"\u0061":3}"#.to_owned(), 7, RowErrorKind::RepeatedKey),
        (format!(r#"{{{many}"k3":1}}"#), 1 + many.len(), RowErrorKind::RepeatedKey),
        (r#"{"a":1,"\ud800":3}"#.to_owned(), 7, RowErrorKind::LoneSurrogate),
    ];
    for (data, offset, kind) in cases {
        let found = document(data.as_bytes()).unwrap().object().unwrap_err();
        assert_eq!((found.offset, found.kind), (offset, kind), "{data}");
    }
}
