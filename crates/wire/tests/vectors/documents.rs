//! Random documents.

use std::fmt::Write;

use proptest::prelude::*;
use serde_json::{Map, Number, Value};

/// Characters around every rule: quotes, escapes, controls, the surrogate gap and what sorts differently in UTF-16.
fn text() -> impl Strategy<Value = String> {
    let odd = prop::sample::select(vec![
        'a',
        'b',
        'i',
        'd',
        '1',
        '9',
        '0',
        '"',
        '\\',
        '/',
        '\n',
        '\t',
        '\u{0}',
        '\u{8}',
        '\u{c}',
        '\u{1f}',
        '\u{7f}',
        'é',
        '\u{2028}',
        '\u{d7ff}',
        '\u{e000}',
        '\u{fb33}',
        '\u{ffff}',
        '\u{10000}',
        '😀',
        '\u{10ffff}',
    ]);
    prop::collection::vec(prop_oneof![8 => odd, 1 => any::<char>()], 0..8).prop_map(String::from_iter)
}

fn number() -> impl Strategy<Value = Number> {
    let float = |value: f64| Number::from_f64(value).unwrap_or_else(|| 0.into());
    prop_oneof![
        (-1_000_000_i64..1_000_000).prop_map(Number::from),
        (-(1_i64 << 53)..=1 << 53).prop_map(Number::from),
        any::<f64>().prop_map(float),
        (1e15_f64..1e22).prop_map(float),
        prop::sample::select(vec![
            0.1,
            1e21,
            1e-7,
            5e-324,
            1.797_693_134_862_315_7e308,
            -0.0,
            1e20,
            123_456.789
        ])
        .prop_map(float),
    ]
}

/// A document that has a canonical form.
pub(crate) fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        number().prop_map(Value::Number),
        text().prop_map(Value::String),
    ];
    leaf.prop_recursive(5, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::Array),
            prop::collection::btree_map(text(), inner, 0..6)
                .prop_map(|members| Value::Object(Map::from_iter(members))),
        ]
    })
}

/// A spelling of a document, in one of five spoiled so that it may have no canonical form.
pub(crate) fn spelled() -> impl Strategy<Value = String> {
    let spoil = prop::sample::select(vec![
        "\"\\ud800\"",
        "\"\\udc00x\"",
        "9007199254740993",
        "9007199254740992",
        "12345678901234567890",
        "1e400",
        "1e-400",
        "-0",
        "01",
        "1.",
        "{\"a\":1,\"\\u0061\":2}",
        "{\"id\":1,\"b\":2,\"id\":3}",
        "[1,]",
        "tru",
        "\"\t\"",
        "\"\\x\"",
        "1E+2",
        "0.10",
        "12345678901234567000",
        "{\"\u{ffff}\":1,\"😀\":2}",
        "[]",
        "",
    ]);
    (value(), any::<u64>(), prop::option::weighted(0.4, spoil)).prop_map(|(value, seed, spoil)| {
        let json = spell(&value, seed);
        spoil.map_or(json.clone(), |spoil| format!("[{json},{spoil}]"))
    })
}

/// `value` with its members, white space, escapes and numbers spelled as `seed` says.
pub(crate) fn spell(value: &Value, seed: u64) -> String {
    let mut speller = Speller { state: seed | 1, out: String::new() };
    speller.value(value);
    speller.out
}

struct Speller {
    state: u64,
    out: String,
}

impl Speller {
    fn roll(&mut self, below: usize) -> usize {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        usize::try_from(self.state % below as u64).expect("a small number")
    }

    fn space(&mut self) {
        if self.roll(4) == 0 {
            let space = [' ', '\n', '\r', '\t'][self.roll(4)];
            self.out.push(space);
        }
    }

    fn value(&mut self, value: &Value) {
        self.space();
        match value {
            Value::Object(map) => {
                let mut members: Vec<_> = map.iter().collect();
                for index in 1..members.len() {
                    let other = self.roll(index + 1);
                    members.swap(index, other);
                }
                self.list('{', '}', &members, |speller, (key, value)| {
                    speller.space();
                    speller.string(key);
                    speller.space();
                    speller.out.push(':');
                    speller.value(value);
                });
            }
            Value::Array(items) => self.list('[', ']', items, Self::value),
            Value::String(text) => self.string(text),
            Value::Number(number) => self.number(number),
            Value::Null | Value::Bool(_) => self.out.push_str(&value.to_string()),
        }
        self.space();
    }

    fn list<T>(&mut self, open: char, close: char, items: &[T], mut each: impl FnMut(&mut Self, &T)) {
        self.out.push(open);
        self.space();
        for (index, item) in items.iter().enumerate() {
            if index > 0 {
                self.out.push(',');
            }
            each(self, item);
        }
        self.out.push(close);
    }

    /// Another spelling of the same binary64.
    fn number(&mut self, number: &Number) {
        let text = number.to_string();
        match number.as_f64() {
            Some(value) if self.roll(3) == 0 => {
                write!(self.out, "{value:e}").expect("a string takes everything");
            }
            Some(value)
                if self.roll(3) == 0 && value.abs() < 1e15 && text.contains('.') && !text.contains('e') =>
            {
                self.out.push_str(&text);
                self.out.push_str("000");
            }
            _ => self.out.push_str(&text),
        }
    }

    fn string(&mut self, text: &str) {
        self.out.push('"');
        for character in text.chars() {
            let must = character < ' ' || character == '"' || character == '\\';
            let plain = Value::from(character.to_string()).to_string();
            if character == '/' && self.roll(2) == 0 {
                self.out.push_str("\\/");
            } else if self.roll(5) == 0 || (must && self.roll(2) == 0) {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    write!(self.out, "\\u{unit:04x}").expect("a string takes everything");
                }
            } else {
                self.out.push_str(&plain[1..plain.len() - 1]);
            }
        }
        self.out.push('"');
    }
}
