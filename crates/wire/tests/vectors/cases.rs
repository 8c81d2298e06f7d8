//! The cases.

/// What a case is about.
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) input: Input,
    /// Why it is refused, where it is.
    pub(crate) error: Option<&'static str>,
}

/// What is put in.
pub(crate) enum Input {
    /// A document.
    Text(String),
    /// A document that is not UTF-8.
    Bytes(Vec<u8>),
    /// The parts of a 1.x message: id and stored text.
    Parts(Vec<(String, String)>),
}

/// Documents that have a form.
const ACCEPTED: [(&str, &str); 41] = [
    ("empty array", "[]"),
    ("empty object", "{}"),
    ("empty string", "\"\""),
    ("nested empties", " [ [ ] , { } , [ [ { \"\" : [ ] } ] ] ] "),
    ("null alone", "null"),
    ("number alone", " 7\n"),
    ("white space of every kind", "\t{\r\n\"a\" : [ 1 ,\t2 ] }\n"),
    ("members out of order", "{\"b\":1,\"a\":2,\"\":3,\"A\":4}"),
    ("keys that look like integers", "{\"10\":1,\"9\":2,\"1\":3,\"01\":4,\"-1\":5}"),
    ("key that is a prefix", "{\"ab\":1,\"a\":2,\"abc\":3}"),
    ("prototype keys", "{\"constructor\":1,\"__proto__\":2,\"toString\":3}"),
    (
        "key beyond the basic plane before private use",
        "{\"\u{e000}\":1,\"\u{1f600}\":2,\"\u{d7ff}\":3,\"\u{ffff}\":4}",
    ),
    (
        "keys with one escaped",
        "{\"\\u20ac\":1,\"\\r\":2,\"\u{fb33}\":3,\"1\":4,\"\u{1f600}\":5,\"\\u0080\":6,\"\u{f6}\":7}",
    ),
    ("escaped key out of order", "{\"b\":1,\"\\u0061\":2}"),
    ("escaped slash", "\"\\/ /\""),
    ("escaped letter", "\"\\u00e9 \\u00E9 é\""),
    ("escaped quote and backslash", "\"\\u0022\\u005c\\\"\\\\\""),
    ("controls", "\"\\u0000\\u0008\\u0009\\u000a\\u000b\\u000c\\u000d\\u001F\\b\\t\\n\\f\\r\\u007f\""),
    ("line separators", "\"\\u2028\\u2029\u{2028}\u{2029}\""),
    ("escaped pair", "\"\\ud83d\\ude00 \\uD83D\\uDE00 \u{1f600}\""),
    ("noncharacter", "\"\\uffff\u{fffe}\""),
    ("byte order mark inside", "\"\u{feff}\""),
    ("negative zero", "[-0,-0.0,-0e9,0.0,0e-400]"),
    ("1e21", "[1e21,1E21,1e+21,1000000000000000000000,999999999999999900000]"),
    ("1e-7", "[1e-7,0.0000001,0.000001,1E-6]"),
    ("decimal fractions", "[0.10,1.50,100.000,1e2,-1.5e-1]"),
    ("2^53 and its neighbours", "[9007199254740991,9007199254740992,-9007199254740991,-9007199254740992]"),
    ("2^53 + 2", "[9007199254740994,-9007199254740994]"),
    ("2^53 + 1 with a fraction is the nearest number", "[9007199254740993.0,9007199254740993e0]"),
    ("exact integers beyond 2^53", "[18446744073709551616,10000000000000000000000,9223372036854775808]"),
    ("fifteen and sixteen digits", "[999999999999999,-999999999999999,1000000000000000,9007199254740990]"),
    ("smallest and largest", "[5e-324,2.2250738585072014e-308,1.7976931348623157e308]"),
    (
        "rounding of the shortest form",
        "[333333333.33333329,1.0000000000000002,4.35,0.1e1,295147905179352830000e0]",
    ),
    ("integer as ECMAScript prints it", "[12345678901234567000,12345678901234567168,1.2345678901234567e19]"),
    ("literals", "[true,false,null]"),
    (
        "2.x content",
        "[{\"type\":\"reasoning\",\"text\":\"think\\n\",\"native\":{\"sig\":\"a/b\"},\"time\":{\"created\":1790000000001,\"completed\":1790000000002}},{\"type\":\"tool\",\"id\":\"call_1\",\"name\":\"bash\",\"executed\":false,\"state\":{\"status\":\"completed\",\"input\":{\"command\":\"ls -l \\\"x\\\"\"},\"content\":[{\"type\":\"text\",\"text\":\"warning: unused\\n\\u001b[0m数据\"}],\"metadata\":{\"exit\":0,\"truncated\":false}},\"time\":{\"created\":1790000000003,\"ran\":1790000000004,\"completed\":1790000000005}},{\"type\":\"text\",\"text\":\"Built. \\u00e4\\u4f60\"}]",
    ),
    (
        "1.x message",
        "{\"role\":\"assistant\",\"parentID\":\"msg_1\",\"mode\":\"build\",\"agent\":\"build\",\"path\":{\"cwd\":\"/a\",\"root\":\"/a\"},\"cost\":0.0123,\"tokens\":{\"total\":5300,\"input\":5000,\"output\":300,\"reasoning\":0,\"cache\":{\"read\":4000,\"write\":0}},\"time\":{\"created\":1790000000001,\"completed\":1790000000009},\"finish\":\"stop\"}",
    ),
    (
        "long plain string",
        "\"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\"",
    ),
    (
        "escape after a long run",
        "\"0123456789abcdef0123456789abcde\\n0123456789abcdef0123456789abcdef\\/0123456789abcdef\\\\\"",
    ),
    ("backslashes in a row", "\"\\\\\\\\\\/\\\\u0041\\\\\\u0041\""),
    (
        "object of objects out of order",
        "{\"z\":{\"b\":[{\"y\":1,\"x\":2}],\"a\":{}},\"a\":{\"d\":1,\"c\":{\"f\":1,\"e\":2}}}",
    ),
];

/// Documents that are refused.
const REFUSED: [(&str, &str, &str); 38] = [
    ("lone high surrogate", "\"\\ud800\"", "lone-surrogate"),
    ("lone low surrogate", "\"x\\udc00\"", "lone-surrogate"),
    ("two high surrogates", "\"\\ud800\\ud800\"", "lone-surrogate"),
    ("surrogates the wrong way round", "\"\\ude00\\ud83d\"", "lone-surrogate"),
    ("high surrogate before text", "\"\\ud83dx\"", "lone-surrogate"),
    ("high surrogate before another escape", "\"\\ud83d\\n\"", "lone-surrogate"),
    ("high surrogate before a letter's escape", "\"\\ud83d\\u0041\"", "lone-surrogate"),
    ("lone surrogate in a key", "{\"\\udead\":1}", "lone-surrogate"),
    ("repeated key", "{\"a\":1,\"a\":1}", "repeated-key"),
    ("repeated key by an escape", "{\"a\":1,\"\\u0061\":2}", "repeated-key"),
    ("repeated key apart", "{\"b\":1,\"a\":2,\"c\":3,\"b\":4}", "repeated-key"),
    ("repeated empty key", "[{\"\":1,\"\":2}]", "repeated-key"),
    ("repeated key inside", "{\"x\":[{\"k\":{},\"k\":[]}]}", "repeated-key"),
    ("2^53 + 1", "9007199254740993", "lossy-number"),
    ("minus 2^53 + 1", "[-9007199254740993]", "lossy-number"),
    ("2^64 - 1", "18446744073709551615", "lossy-number"),
    ("twenty digits", "12345678901234567890", "lossy-number"),
    ("integer beside what ECMAScript prints", "12345678901234567001", "lossy-number"),
    ("thirty-nine digits", "100000000000000000000000000000000000000", "lossy-number"),
    ("1e400", "1e400", "lossy-number"),
    ("-1e400", "[-1e400]", "lossy-number"),
    ("1e-400", "1e-400", "lossy-number"),
    ("empty text", "", "syntax"),
    ("white space only", " \n", "syntax"),
    ("byte order mark", "\u{feff}[]", "syntax"),
    ("two documents", "[] []", "syntax"),
    ("trailing comma in an array", "[1,]", "syntax"),
    ("trailing comma in an object", "{\"a\":1,}", "syntax"),
    ("missing colon", "{\"a\" 1}", "syntax"),
    ("bare key", "{a:1}", "syntax"),
    ("leading zero", "[01]", "syntax"),
    ("plus sign", "+1", "syntax"),
    ("no digits after the point", "1.", "syntax"),
    ("not a number", "NaN", "syntax"),
    ("control character in a string", "\"a\tb\"", "syntax"),
    ("unknown escape", "\"\\x41\"", "syntax"),
    ("short unicode escape", "\"\\u12\"", "syntax"),
    ("cut off", "[{\"type\":\"te", "syntax"),
];

/// Every case, in the order of the file.
pub(crate) fn all() -> Vec<Case> {
    let text =
        |name: &str, text: String, error| Case { name: name.to_owned(), input: Input::Text(text), error };
    let mut cases: Vec<Case> =
        ACCEPTED.iter().map(|(name, json)| text(name, (*json).to_owned(), None)).collect();
    cases.extend(REFUSED.iter().map(|(name, json, error)| text(name, (*json).to_owned(), Some(*error))));
    let arrays = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let objects = |depth: usize| format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth));
    cases.push(text("256 arrays", arrays(256), None));
    cases.push(text("257 arrays", arrays(257), Some("too-deep")));
    cases.push(text("256 objects", objects(256), None));
    cases.push(text("257 objects", objects(257), Some("too-deep")));
    let numbers: Vec<String> = (0..600).map(|number| (number * 7919 - 1_000_000).to_string()).collect();
    cases.push(text("big array", format!("[{}]", numbers.join(" , ")), None));
    let members: Vec<String> =
        (0..200).map(|number| format!("\"k{}\":{number}", (number * 73) % 200)).collect();
    cases.push(text("many members out of order", format!("{{{}}}", members.join(",")), None));
    for (name, bytes) in [
        ("byte that begins no character", &b"\"\xff\""[..]),
        ("overlong form", b"\"\xc0\xaf\""),
        ("surrogate in UTF-8", b"[\"\xed\xa0\x80\"]"),
        ("cut character", b"{\"a\":\"\xe6\x95\"}"),
        ("invalid key", b"{\"\xf5\x80\x80\x80\":1}"),
    ] {
        cases.push(Case {
            name: name.to_owned(),
            input: Input::Bytes(bytes.to_vec()),
            error: Some("invalid-utf8"),
        });
    }
    cases.extend(parts());
    cases
}

/// Name, ids and texts of the parts, and why they are refused.
type PartsCase<'a> = (&'static str, Vec<(&'a str, &'a str)>, Option<&'static str>);

fn parts() -> Vec<Case> {
    let deep = |depth: usize| format!("{{\"a\":{}{}}}", "[".repeat(depth), "]".repeat(depth));
    let (allowed, too_deep) = (deep(254), deep(255));
    let text = "{\"type\":\"text\",\"text\":\"hello\"}";
    let tool = "{\"type\":\"tool\",\"callID\":\"call_1\",\"tool\":\"bash\",\"state\":{\"status\":\"completed\",\"input\":{\"command\":\"ls\"},\"output\":\"a\\nb\",\"title\":\"ls\",\"metadata\":{\"output\":\"a\\nb\",\"exit\":0},\"time\":{\"start\":1790000000001,\"end\":1790000000002}}}";
    let table: [PartsCase<'_>; 11] = [
        ("message without parts", vec![], None),
        ("two parts", vec![("prt_1", text), ("prt_2", tool)], None),
        ("part with its own id", vec![("prt_1", "{\"id\":\"prt_1\",\"a\":1}")], None),
        (
            "part with its own id late",
            vec![("prt_1", "{\"z\":1,\"\\u0069d\":\"prt_\\u0031\",\"a\":1}")],
            None,
        ),
        ("empty part and odd ids", vec![("prt_\"\\\u{1f600}\u{1}", " {} "), ("id", "{}")], None),
        ("part with another id", vec![("prt_1", "{\"id\":\"prt_2\"}")], Some("other-id")),
        ("part with an id that is no text", vec![("prt_1", "{\"z\":1,\"id\":1}")], Some("other-id")),
        (
            "part with its id twice",
            vec![("prt_1", "{\"id\":\"prt_1\",\"x\":1,\"id\":\"prt_1\"}")],
            Some("repeated-key"),
        ),
        ("part that is an array", vec![("prt_1", text), ("prt_2", "[]")], Some("not-an-object")),
        ("deepest part", vec![("prt_1", &allowed)], None),
        ("part that is too deep inside its array", vec![("prt_1", &too_deep)], Some("too-deep")),
    ];
    let owned = |list: Vec<(&str, &str)>| {
        list.into_iter().map(|(id, part)| (id.to_owned(), part.to_owned())).collect()
    };
    table
        .into_iter()
        .map(|(name, list, error)| Case { name: name.to_owned(), input: Input::Parts(owned(list)), error })
        .collect()
}
