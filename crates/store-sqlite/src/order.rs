//! The order key in SQL.

/// The expression that orders rows by a stored time: `YYYY-MM-DD HH:MM:SS.ffffff` in UTC, the fraction cut to six digits, NULL where the text is no time
/// (C34). `datetime` reads the whole text, offset included, and drops the fraction, which is taken from the text itself. It is the
/// expression of the index `idx_messages_prompt_order` of existing files, so that their index serves; SQLite compares expressions by their structure.
pub(crate) fn order_time(column: &str) -> String {
    let rest = format!("substr({column}, 21)");
    let until = |end: &str| {
        format!("WHEN instr({rest}, '{end}') > 0 THEN substr({column}, 21, instr({rest}, '{end}') - 1)")
    };
    let digits = format!("CASE {} {} {} ELSE {rest} END", until("+"), until("-"), until("Z"));
    format!(
        "substr(datetime({column}), 1, 19) || '.' || \
         substr((CASE WHEN substr({column}, 20, 1) = '.' THEN {digits} ELSE '' END) || '000000000', 1, 6)"
    )
}

/// Whether a stored time has the spelling of [`WallTime::stored_text`](headwater_model::WallTime::stored_text), of which program and database make the same
/// key: `YYYY-MM-DD HH:MM:SS`, up to nine digits of a fraction, UTC or nothing behind it.
pub(crate) fn is_plain(text: &str) -> bool {
    const SHAPE: &[u8] = b"0000-00-00 00:00:00";
    let Some((head, rest)) = text.as_bytes().split_at_checked(SHAPE.len()) else { return false };
    let fits = |(byte, shape): (&u8, &u8)| if *shape == b'0' { byte.is_ascii_digit() } else { byte == shape };
    let rest = rest.strip_suffix(b"+00:00").unwrap_or(rest);
    let is_fraction = match rest {
        [] => true,
        [b'.', digits @ ..] => (1..=9).contains(&digits.len()) && digits.iter().all(u8::is_ascii_digit),
        _ => false,
    };
    is_fraction && head.iter().zip(SHAPE).all(fits)
}

#[cfg(test)]
mod tests {
    use headwater_model::WallTime;
    use proptest::prelude::*;
    use rusqlite::Connection;

    use super::*;

    fn in_sql(text: &str) -> Option<String> {
        let db = Connection::open_in_memory().unwrap();
        let sql = format!("SELECT {} FROM (SELECT ?1 AS c)", order_time("c"));
        db.query_row(&sql, [text], |row| row.get(0)).unwrap()
    }

    #[test]
    fn sql_and_rust_agree_on_every_stored_spelling() {
        for text in [
            "2026-09-16 12:00:00.123456789+00:00",
            "2026-09-16 12:00:00.9999999+00:00",
            "2026-09-16 12:00:00.5+00:00",
            "2026-09-16 12:00:00+00:00",
            "2026-09-16 12:00:00",
            "2026-09-16T12:00:00Z",
            "2026-09-16T14:30:00.25+02:30",
            "2026-09-16T23:30:00.125-01:00",
            "2026-12-31T23:59:59.9999995Z",
            "0000-01-01 00:00:00",
            "9999-12-31 23:59:59.999999+00:00",
        ] {
            let wanted = WallTime::parse_stored(text).unwrap().order_time();
            assert_eq!(in_sql(text).as_deref(), Some(wanted.as_str()), "{text}");
        }
    }

    #[test]
    fn what_names_no_instant_has_no_key() {
        for text in ["", "2026-09-16 12:00:00 +0000 UTC", "1790000000", "yesterday", "2026-13-01 00:00:00"] {
            assert_eq!(in_sql(text), None, "{text:?}");
            assert!(WallTime::parse_stored(text).is_err(), "{text:?}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]

        #[test]
        fn plain_times_have_one_key(
            text in "[0-9]{4}-[01][0-9]-[0-3][0-9] [0-2][0-9]:[0-6][0-9]:[0-6][0-9](\\.[0-9]{1,9})?(\\+00:00)?"
        ) {
            prop_assert!(is_plain(&text));
            let in_rust = WallTime::parse_stored(&text).ok();
            // What is no time to the program is left to the database.
            if let Some(time) = in_rust.filter(|time| *time != WallTime::UNKNOWN) {
                prop_assert_eq!(in_sql(&text), Some(time.order_time().as_str().to_owned()), "{}", text);
            }
        }

        #[test]
        fn keys_agree(micros in -62_000_000_000_000_000_i64..253_000_000_000_000_000) {
            let time = WallTime::from_unix_micros(micros).unwrap();
            for text in [time.to_string(), time.stored_text()] {
                let key = in_sql(&text);
                prop_assert_eq!(key, Some(time.order_time().as_str().to_owned()));
            }
        }
    }
}
