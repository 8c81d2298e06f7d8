//! The scan over stored bytes that says where a match is possible. It never misses one and reads each byte once.

use super::pattern::{ALARMS_MAX, Pattern, Run};

/// Positions compared at a time; the compiler turns the loop over one block into vector instructions.
const BLOCK: usize = 64;

impl Pattern {
    /// The first offset at or after `from` where decoding `bytes` may show a match: the start of the rigid run, or an alarm.
    pub(super) fn first_candidate(&self, bytes: &[u8], from: usize) -> Option<usize> {
        let rest = bytes.get(from..)?;
        let Some(run) = &self.run else { return (!rest.is_empty()).then_some(from) };
        let found = match self.alarms.as_slice() {
            [] => self.scan::<0>(run, rest, []),
            [a] => self.scan(run, rest, [*a]),
            [a, b] => self.scan(run, rest, [*a, *b]),
            [a, b, c, ..] => self.scan(run, rest, [*a, *b, *c]),
        };
        const { assert!(ALARMS_MAX == 3, "one arm per number of alarms") };
        Some(from + found?)
    }

    /// How many bytes a candidate may reach across the joint of two chunks that are scanned one after the other.
    pub(super) fn overlap(&self) -> usize {
        // An escape is looked at as a whole: \uXXXX.
        self.run.as_ref().map_or(0, |run| run.positions.len()).max(6) - 1
    }

    fn scan<const ALARMS: usize>(&self, run: &Run, bytes: &[u8], alarms: [[u8; 2]; ALARMS]) -> Option<usize> {
        let [first, second] = run.anchors;
        let distance = second.offset - first.offset;
        // Positions whose pair lies inside; the last block overlaps the one before it, and the few bytes after it are looked at singly.
        let in_blocks = bytes.len().saturating_sub(distance.max(1));
        let mut at = 0;
        while at + BLOCK <= in_blocks {
            let (Some(here), Some(next), Some(far)) =
                (block(bytes, at), block(bytes, at + 1), block(bytes, at + distance))
            else {
                break;
            };
            let mark = |lane: usize| {
                let is_first = u8::from(here[lane] | first.ignored == first.value);
                let is_second = u8::from(far[lane] | second.ignored == second.value);
                let mut mark = is_first & is_second;
                for alarm in alarms {
                    mark |= u8::from(here[lane] == alarm[0]) & u8::from(next[lane] == alarm[1]);
                }
                mark
            };
            // Nearly all blocks have no mark: where the marks are is computed for the others only.
            if (0..BLOCK).fold(0, |any, lane| any | mark(lane)) != 0
                && let Some(found) = self.first_marked(run, bytes, at, &std::array::from_fn(mark))
            {
                return Some(found);
            }
            at += BLOCK;
            if at < in_blocks && at + BLOCK > in_blocks {
                at = in_blocks - BLOCK;
            }
        }
        (at..bytes.len()).find_map(|at| self.candidate_at(run, bytes, at))
    }

    fn first_marked(&self, run: &Run, bytes: &[u8], base: usize, marks: &[u8; BLOCK]) -> Option<usize> {
        let (words, _) = marks.as_chunks::<8>();
        for (index, word) in words.iter().enumerate() {
            let mut word = u64::from_le_bytes(*word);
            while word != 0 {
                let lane = index * 8 + word.trailing_zeros() as usize / 8;
                if let Some(found) = self.candidate_at(run, bytes, base + lane) {
                    return Some(found);
                }
                word &= word - 1;
            }
        }
        None
    }

    /// Whether the run has its first anchor at `at`, or an alarm stands there; answers with the start of the candidate.
    fn candidate_at(&self, run: &Run, bytes: &[u8], at: usize) -> Option<usize> {
        if let Some(pair) = bytes.get(at..at + 2)
            && self.alarms.iter().any(|alarm| alarm == pair)
            && (pair != b"\\u" || self.is_own_escape(bytes.get(at + 2..at + 6)))
        {
            return Some(at);
        }
        let start = at.checked_sub(run.anchors[0].offset)?;
        let stored = bytes.get(start..start + run.positions.len())?;
        let fits = stored.iter().zip(&run.positions).all(|(byte, set)| set.contains(byte));
        fits.then_some(start)
    }

    /// Whether `\u` with these digits may stand for a character of the query. Most escapes are control characters of a terminal.
    fn is_own_escape(&self, digits: Option<&[u8]>) -> bool {
        let Some(unit) = digits.and_then(super::reader::hex_unit) else {
            return true; // cut off or malformed: decoding tells
        };
        self.escaped_units.binary_search(&unit).is_ok()
            || (self.escaped_surrogates && (0xd800..=0xdfff).contains(&unit))
    }
}

fn block(bytes: &[u8], at: usize) -> Option<&[u8; BLOCK]> {
    bytes.get(at..)?.first_chunk()
}

#[cfg(test)]
mod tests {
    use super::super::fold::fold;
    use super::super::pattern::Spelling;
    use super::*;

    fn json(query: &str) -> Pattern {
        Pattern::compile(&query.chars().map(fold).collect::<Vec<_>>(), Spelling::Json)
    }

    #[test]
    fn finds_a_word_at_every_offset_of_a_block() {
        let pattern = json("quartz");
        for before in 0..200 {
            for after in [0, 1, 5, 63, 64, 130] {
                let text = format!("{}QuArTz{}", "z".repeat(before), "q".repeat(after));
                assert_eq!(pattern.first_candidate(text.as_bytes(), 0), Some(before), "{before} {after}");
                assert_eq!(pattern.first_candidate(text.as_bytes(), before + 1), None, "{before} {after}");
            }
        }
    }

    #[test]
    fn unusual_spellings_are_candidates_and_terminal_colours_are_not() {
        let table = [
            ("kiss", "a \u{212a}ISS b", true),
            ("kiss", "a kis\u{17f} b", true),
            ("kiss", "a \\u212aiss b", true),
            ("kiss", "a \\u006biss b", true),
            ("kiss", "\\u001b[31mred\\u001b[0m", false),
            ("kiss", "cut off \\u00", true),
            ("a/b", "x a\\/b", true),
            ("ä", "\\u00C4", true),
            ("\u{1f600}", "\\ud83d\\ude00", true),
            ("kiss", "\\ud83d\\ude00", false),
            ("\u{1b}[31m", "\\u001b[31m", true),
            ("圧縮", "データベースの圧縮", true),
            ("圧縮", "データベースの縮圧", false),
        ];
        for (query, text, expected) in table {
            for padding in [0, 3, 64, 100] {
                let text = format!("{}{text}", ".".repeat(padding));
                let found = json(query).first_candidate(text.as_bytes(), 0).is_some();
                assert_eq!(found, expected, "{query} in {text}");
            }
        }
    }

    #[test]
    fn a_query_without_a_run_makes_every_text_a_candidate() {
        assert_eq!(json("\u{fffd}").first_candidate(b"x", 0), Some(0));
        assert_eq!(json("\u{fffd}").first_candidate(b"", 0), None);
    }
}
