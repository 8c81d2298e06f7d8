//! Searches against a search that decodes every row, folds every character and compares at every place.

use std::collections::BTreeMap;

use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use serde_json::Value;

use super::super::fold::fold;
use super::*;

/// Letters of several scripts, variants of one letter, and everything that JSON escapes, with the letters of the escapes.
const LETTERS: &str =
    "[abkKsSſ\u{212a}äÄßẞσςΣдДかカ圧縮ntfruNTFRU\n\r\t\u{8}\u{c}\"\\\\/\u{1b} 😀𐐀𐐨\u{fffd}é-]";

/// JSON of a string in one of the ways in which programs write it.
fn spelled(text: &str, style: u8) -> String {
    if style == 0 {
        return quote(text);
    }
    let mut units = [0; 2];
    let mut escaped = |c: char| match (style, c) {
        (1, '/') => "\\/".to_owned(),
        // Escapes of every character, or of those that are not ASCII; digits in either case.
        (2, _) if !c.is_ascii() => c
            .encode_utf16(&mut units)
            .iter()
            .map(|unit| format!("\\u{unit:04x}"))
            .collect::<Vec<_>>()
            .concat(),
        (3, _) => c
            .encode_utf16(&mut units)
            .iter()
            .map(|unit| format!("\\u{unit:04X}"))
            .collect::<Vec<_>>()
            .concat(),
        _ => quote(&c.to_string()).trim_matches('"').to_owned(),
    };
    let inside: String =
        text.chars().map(|c| if c == '"' && style < 3 { "\\\"".to_owned() } else { escaped(c) }).collect();
    format!("\"{inside}\"")
}

fn naive_count(text: &str, query: &[char]) -> u64 {
    let text: Vec<char> = text.chars().map(fold).collect();
    let (mut count, mut at) = (0, 0);
    while at + query.len() <= text.len() {
        if text[at..].starts_with(query) {
            count += 1;
            at += query.len();
        } else {
            at += 1;
        }
    }
    count
}

/// Row and item to the matches in its text.
type Counts = BTreeMap<(String, Option<u32>), u64>;

fn naive(rows: &[(String, String)], query: &str) -> Counts {
    let query: Vec<char> = query.chars().map(fold).collect();
    let mut counts = Counts::new();
    for (id, data) in rows {
        let data: Value = serde_json::from_str(data).unwrap();
        let mut add = |item, value: &Value| {
            let count = naive_count(value["text"].as_str().unwrap(), &query);
            if count > 0 {
                counts.insert((id.clone(), item), count);
            }
        };
        match data["content"].as_array() {
            Some(items) => (0..).zip(items).for_each(|(index, item)| add(Some(index), item)),
            None => add(None, &data),
        }
    }
    counts
}

#[test]
fn finds_exactly_what_a_naive_search_finds() {
    let mut runner = TestRunner::deterministic();
    let mut draw = |pattern: &str| {
        proptest::string::string_regex(pattern).unwrap().new_tree(&mut runner).unwrap().current()
    };
    let mut rows = Vec::new();
    let (_folder, path) = built(Layout::ReducedBoth, |db| {
        db.session(&Session::named("!"));
        db.user("msg_a", "!");
        db.session_v2(&Session::named("?"));
        db.transaction(|db| {
            for n in 0..240_u8 {
                let text = spelled(&draw(&format!("{LETTERS}{{0,60}}")), n % 4);
                let id = format!("{n:03}");
                if n % 3 == 0 {
                    let other = spelled(&draw(&format!("{LETTERS}{{0,20}}")), n % 4);
                    let data = format!(
                        "{{\"time\":{{\"created\":1}},\"content\":[{{\"type\":\"text\",\"text\":{text}}},\
                         {{\"text\":{other},\"type\":\"reasoning\"}}]}}"
                    );
                    db.session_message(&id, "?", "assistant", i64::from(n), NOW, &data);
                    rows.push((id, data));
                } else {
                    let kind = if n % 2 == 0 { "text" } else { "reasoning" };
                    let data = format!("{{\"type\":\"{kind}\",\"text\":{text}}}");
                    db.part(&id, "msg_a", "!", &data);
                    rows.push((id, data));
                }
            }
        });
    });
    let longest = rows
        .iter()
        .filter_map(|(_, data)| {
            let data: Value = serde_json::from_str(data).unwrap();
            data["text"].as_str().map(str::to_owned)
        })
        .max_by_key(|text| text.chars().count())
        .unwrap();
    let mut found_any = 0;
    for round in 0..150_usize {
        let drawn = draw(&format!("{LETTERS}{{1,{}}}", 1 + round % 3));
        let query = match round % 5 {
            // The letter of an escape first, a text that nothing is longer than, and one that everything is shorter than.
            0 => ["n", "t", "b", "f", "r", "u", "\\", "\\u"][round / 5 % 8].to_owned() + &drawn,
            1 => longest.clone(),
            2 => longest.clone() + &drawn,
            _ => drawn,
        };
        let (hits, totals) = search(&path, &query, &SearchOptions::default());
        let found: Counts = hits
            .into_iter()
            .map(|hit| {
                let item = hit.part_index.filter(|_| hit.source == Source::SessionMessage);
                ((hit.part.or(hit.message).unwrap(), item), hit.occurrences)
            })
            .collect();
        assert_eq!(found, naive(&rows, &query), "{query:?}");
        assert_eq!(totals.rows_unreadable, 0, "{query:?}");
        found_any += usize::from(!found.is_empty());
    }
    assert!(found_any > 50, "{found_any}");
}
