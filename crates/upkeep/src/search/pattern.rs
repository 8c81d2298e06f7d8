//! What the bytes of a query look like in stored text: two anchor bytes that a scan compares, and alarms for unusual spellings.
//!
//! A character of a query can be stored in several ways: each of its case variants, and inside JSON as an escape. The ways that
//! share one length make a *rigid* position set; a rarer way of another length (`K` for k, `\/` for a slash, `\u00e9`) becomes an
//! *alarm*: a byte pair whose presence anywhere means that only decoding can tell. So a scan never misses and seldom decodes.

use super::fold::{fold, variants};
use super::rank::rank;

/// Most alarms of one pattern. Each costs two comparisons for every byte; a character that would need another one is left out of
/// the rigid runs instead.
pub(super) const ALARMS_MAX: usize = 3;

/// Farthest distance of the two anchors in bytes: what a scan has to look at one by one at the end of each row.
const ANCHOR_DISTANCE_MAX: usize = 48;

/// How the searched bytes are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spelling {
    /// JSON as stored.
    Json,
    /// Decoded UTF-8 text.
    Plain,
}

/// The byte values that one position of a rigid run may have, sorted.
type ByteSet = Vec<u8>;

/// An anchor: a position of the run, and what its byte has in common with every other that may stand there. One comparison tells, for
/// the cases of a letter differ in one bit; a byte that passes need not be one of the set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Anchor {
    /// Offset in the run.
    pub(super) offset: usize,
    /// The bits in which the bytes of the set differ.
    pub(super) ignored: u8,
    /// Any byte of the set with those bits set.
    pub(super) value: u8,
}

impl Anchor {
    fn new(offset: usize, set: &[u8]) -> Self {
        let any = set.iter().fold(0, |any, byte| any | byte);
        let all = set.iter().fold(u8::MAX, |all, byte| all & byte);
        Self { offset, ignored: any & !all, value: any }
    }

    /// How often a byte passes, roughly.
    fn cost(self) -> u32 {
        (0..=u8::MAX).filter(|byte| byte | self.ignored == self.value).map(rank).sum()
    }
}

/// The longest useful stretch of a query whose every position has a known set of bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Run {
    /// What each position may hold.
    pub(super) positions: Vec<ByteSet>,
    /// The two anchors, by offset; the same one twice where the run has no second.
    pub(super) anchors: [Anchor; 2],
}

/// A query, ready to be looked for in bytes.
#[derive(Clone, Debug)]
pub(super) struct Pattern {
    /// What to look for; `None` where no position is good enough: then every text is a candidate.
    pub(super) run: Option<Run>,
    /// Pairs of adjacent bytes that make a text a candidate.
    pub(super) alarms: Vec<[u8; 2]>,
    /// Whether the run is the whole query, so that a text without alarms matches exactly where the run's characters do.
    pub(super) is_whole: bool,
    /// UTF-16 units whose `\u` escape is a spelling of some character of the query, sorted.
    pub(super) escaped_units: Vec<u16>,
    /// Whether an escaped surrogate may be part of the query.
    pub(super) escaped_surrogates: bool,
}

impl Pattern {
    /// Compiles a query given as folded characters.
    pub(super) fn compile(folded: &[char], spelling: Spelling) -> Self {
        debug_assert!(folded.iter().all(|&c| fold(c) == c));
        let variants: Vec<Vec<char>> = folded.iter().map(|&c| variants(c)).collect();
        let mut alarms = Vec::new();
        if spelling == Spelling::Json {
            alarms.push(*b"\\u");
        }
        let mut runs: Vec<Vec<ByteSet>> = vec![Vec::new()];
        for of_char in &variants {
            match rigid_positions(of_char, spelling, &mut alarms) {
                Some(positions) => runs.last_mut().into_iter().for_each(|run| run.extend(positions.clone())),
                None => runs.push(Vec::new()),
            }
        }
        let is_whole = runs.len() == 1;
        let run = runs.into_iter().filter_map(with_anchors).min_by_key(|(cost, _)| *cost).map(|(_, run)| run);
        let all = || variants.iter().flatten().copied();
        let mut escaped_units: Vec<u16> = all().filter_map(|c| u16::try_from(u32::from(c)).ok()).collect();
        escaped_units.sort_unstable();
        escaped_units.dedup();
        let escaped_surrogates = all().any(|c| c.len_utf16() == 2 || c == char::REPLACEMENT_CHARACTER);
        Self { run, alarms, is_whole, escaped_units, escaped_surrogates }
    }
}

/// The byte sets of one character, or `None` where its spellings do not fit one length and the alarms that are left.
fn rigid_positions(variants: &[char], spelling: Spelling, alarms: &mut Vec<[u8; 2]>) -> Option<Vec<ByteSet>> {
    if variants.contains(&char::REPLACEMENT_CHARACTER) {
        return None; // stands for any bytes that are not UTF-8
    }
    let spellings: Vec<Vec<u8>> = variants.iter().flat_map(|&c| spellings(c, spelling)).collect();
    let with_len = |len: usize| spellings.iter().filter(|bytes| bytes.len() == len).count();
    // Most spellings share a length; of two equally common ones the shorter.
    let len = (1..=4).rev().max_by_key(|&len| with_len(len))?;
    let mut wanted = alarms.clone();
    for other in spellings.iter().filter(|bytes| bytes.len() != len) {
        let &[.., a, b] = other.as_slice() else { return None };
        if !wanted.contains(&[a, b]) {
            wanted.push([a, b]);
        }
    }
    if wanted.len() > ALARMS_MAX {
        return None;
    }
    *alarms = wanted;
    let position = |at: usize| {
        let mut set: Vec<u8> =
            spellings.iter().filter(|bytes| bytes.len() == len).map(|bytes| bytes[at]).collect();
        set.sort_unstable();
        set.dedup();
        set
    };
    Some((0..len).map(position).collect())
}

/// Every way to write `c` but `\u` escapes, which an alarm of their own covers.
fn spellings(c: char, spelling: Spelling) -> Vec<Vec<u8>> {
    let literal = c.to_string().into_bytes();
    if spelling == Spelling::Plain {
        return vec![literal];
    }
    let short = match c {
        '"' | '\\' => return vec![vec![b'\\', literal[0]]],
        '/' => return vec![literal, b"\\/".to_vec()],
        '\u{8}' => b'b',
        '\u{c}' => b'f',
        '\n' => b'n',
        '\r' => b'r',
        '\t' => b't',
        _ => return vec![literal],
    };
    vec![vec![b'\\', short]]
}

/// The run with the pair of anchors that occurs least, and how often that is.
fn with_anchors(positions: Vec<ByteSet>) -> Option<(u32, Run)> {
    let usable: Vec<(Anchor, u32)> = positions
        .iter()
        .enumerate()
        .map(|(offset, set)| Anchor::new(offset, set))
        .map(|anchor| (anchor, anchor.cost()))
        .collect();
    let mut best: Option<(u32, [Anchor; 2])> = None;
    for (first, &(a, rank_a)) in usable.iter().enumerate() {
        for &(b, rank_b) in &usable[first..] {
            if b.offset - a.offset > ANCHOR_DISTANCE_MAX {
                break;
            }
            // Chances multiply; the same position twice filters only once.
            let cost = if a == b { rank_a.saturating_mul(1000) } else { rank_a.saturating_mul(rank_b) };
            if best.is_none_or(|(least, _)| cost < least) {
                best = Some((cost, [a, b]));
            }
        }
    }
    let (cost, anchors) = best?;
    Some((cost, Run { positions, anchors }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(query: &str, spelling: Spelling) -> Pattern {
        let folded: Vec<char> = query.chars().map(fold).collect();
        Pattern::compile(&folded, spelling)
    }

    #[test]
    fn letters_with_longer_variants_raise_alarms() {
        let found = pattern("task", Spelling::Json);
        assert_eq!(found.run.unwrap().positions.len(), 4);
        assert_eq!(found.alarms, [*b"\\u", [0xc5, 0xbf], [0x84, 0xaa]]);
        assert!(found.escaped_units.contains(&0x212a));
        assert!(!found.escaped_surrogates);
    }

    #[test]
    fn escapes_have_their_stored_form() {
        let run = pattern("\"\n", Spelling::Json).run.unwrap();
        assert_eq!(run.positions, [vec![b'\\'], vec![b'"'], vec![b'\\'], vec![b'n']].map(Vec::from));
        let slash = pattern("a/b", Spelling::Json);
        assert!(slash.alarms.contains(b"\\/"));
        assert_eq!(slash.run.unwrap().positions.len(), 3);
        assert_eq!(pattern("a/b", Spelling::Plain).alarms, Vec::<[u8; 2]>::new());
    }

    #[test]
    fn a_character_beyond_the_alarms_splits_the_run() {
        // k, s and ß need one alarm each; with the one for escapes that is one too many.
        let found = pattern("ksß-quartz", Spelling::Json);
        assert_eq!(found.alarms.len(), ALARMS_MAX);
        assert_eq!(found.run.unwrap().positions.len(), "-quartz".len());
    }

    #[test]
    fn every_byte_of_a_position_passes_its_anchor() {
        for query in ["k", "cargo", "ÿ", "σ", "θ", "д", "ǆ", "圧縮", "1/2", "\u{1f600}x"] {
            let run = pattern(query, Spelling::Json).run.expect(query);
            for anchor in run.anchors {
                for byte in &run.positions[anchor.offset] {
                    assert_eq!(byte | anchor.ignored, anchor.value, "{query}");
                }
            }
        }
    }

    #[test]
    fn nothing_rigid_means_no_run() {
        assert_eq!(pattern("\u{fffd}", Spelling::Plain).run, None);
    }
}
