//! The order of members.

use std::cmp::Ordering;

/// Compares two decoded keys by their UTF-16 code units (RFC 8785 section 3.2.3), reading UTF-8.
///
/// UTF-8 bytes sort by code point. UTF-16 differs in one place only: characters beyond U+FFFF are written with surrogates
/// (0xD800..0xE000) and so come before U+E000..U+FFFF. In UTF-8 those two groups are told apart by their first bytes, 0xF0..=0xF4
/// against 0xEE and 0xEF, and the first byte that differs is either a first byte in both keys or a later byte in both.
pub(super) fn compare(left: &str, right: &str) -> Ordering {
    let (left, right) = (left.as_bytes(), right.as_bytes());
    let same = left.iter().zip(right).take_while(|(a, b)| a == b).count();
    match (left.get(same), right.get(same)) {
        (Some(a), Some(b)) => rank(*a).cmp(&rank(*b)),
        (a, b) => a.is_some().cmp(&b.is_some()),
    }
}

const fn rank(byte: u8) -> u8 {
    match byte {
        0xEE | 0xEF => byte + 0x10,
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn reference(left: &str, right: &str) -> Ordering {
        left.encode_utf16().cmp(right.encode_utf16())
    }

    #[test]
    fn characters_beyond_the_basic_plane_come_before_private_use() {
        assert_eq!(compare("\u{1F600}", "\u{FFFF}"), Ordering::Less);
        assert_eq!(compare("\u{1F600}", "\u{E000}"), Ordering::Less);
        assert_eq!(compare("\u{1F600}", "\u{D7FF}"), Ordering::Greater);
        assert_eq!(compare("10", "9"), Ordering::Less);
        assert_eq!(compare("1", "10"), Ordering::Less);
        assert_eq!(compare("", ""), Ordering::Equal);
    }

    proptest! {
        #[test]
        fn agrees_with_utf16(left in ".{0,6}", right in ".{0,6}", same in ".{0,3}") {
            let (left, right) = (format!("{same}{left}"), format!("{same}{right}"));
            prop_assert_eq!(compare(&left, &right), reference(&left, &right));
        }

        #[test]
        fn agrees_with_utf16_near_the_surrogates(
            left in proptest::collection::vec(0xD000_u32..0x1_1000, 0..4),
            right in proptest::collection::vec(0xD000_u32..0x1_1000, 0..4),
        ) {
            let text = |points: Vec<u32>| points.into_iter().filter_map(char::from_u32).collect::<String>();
            let (left, right) = (text(left), text(right));
            prop_assert_eq!(compare(&left, &right), reference(&left, &right));
        }
    }
}
