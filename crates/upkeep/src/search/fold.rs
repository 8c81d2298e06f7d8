//! Case without regard to language: Unicode simple case folding (`CaseFolding.txt`, status C and S), one character to one character.
//!
//! "GROSS" finds "gross" and "ſ" finds "s", but "STRASSE" does not find "straße" and "İ" folds to itself, since those need folding
//! to several characters or a language.

use std::collections::BTreeMap;
use std::sync::OnceLock;

/// Upper end of the code points that have a simple folding, exclusive. A test holds the data of the dependency to it.
const FOLDED_END: u32 = 0x2_0000;

/// The folded form of `c`.
pub(crate) fn fold(c: char) -> char {
    if c.is_ascii() {
        return c.to_ascii_lowercase();
    }
    unicode_case_mapping::case_folded(c).and_then(|folded| char::from_u32(folded.get())).unwrap_or(c)
}

/// All characters that fold to `folded`, itself first.
pub(crate) fn variants(folded: char) -> Vec<char> {
    static UNFOLDED: OnceLock<BTreeMap<char, Vec<char>>> = OnceLock::new();
    let unfolded = UNFOLDED.get_or_init(|| {
        let mut map: BTreeMap<char, Vec<char>> = BTreeMap::new();
        for c in (0..FOLDED_END).filter_map(char::from_u32) {
            let target = fold(c);
            if target != c {
                map.entry(target).or_default().push(c);
            }
        }
        map
    });
    std::iter::once(folded).chain(unfolded.get(&folded).into_iter().flatten().copied()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folding_is_simple_and_idempotent() {
        let cases =
            [('A', 'a'), ('Ä', 'ä'), ('\u{212a}', 'k'), ('ſ', 's'), ('ẞ', 'ß'), ('ß', 'ß'), ('İ', 'İ')];
        for (c, folded) in
            cases.into_iter().chain([('Σ', 'σ'), ('ς', 'σ'), ('Я', 'я'), ('圧', '圧'), ('𐐀', '𐐨')])
        {
            assert_eq!(fold(c), folded, "{c}");
        }
        for c in (0..=u32::from(char::MAX)).filter_map(char::from_u32) {
            assert_eq!(fold(fold(c)), fold(c), "{c:?}");
            assert!(fold(c) == c || u32::from(c) < FOLDED_END, "{c:?}");
        }
    }

    #[test]
    fn variants_are_all_that_fold_to_a_character() {
        assert_eq!(variants('k'), ['k', 'K', '\u{212a}']);
        assert_eq!(variants('s'), ['s', 'S', 'ſ']);
        assert_eq!(variants('数'), ['数']);
        assert_eq!(variants('θ'), ['θ', 'Θ', 'ϑ', 'ϴ']);
    }
}
