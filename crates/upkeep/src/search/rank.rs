//! How often a byte stands in stored conversations, roughly: text, source code, paths and tool output, as JSON.

/// Occurrences of `byte` per ten thousand, at least 1. Only the order matters: it decides which bytes a scan looks for.
pub(super) fn rank(byte: u8) -> u32 {
    match byte {
        b' ' => 1000,
        b'e' => 800,
        b't' => 620,
        b'a' | b'n' | b'i' | b'o' | b'r' | b's' => 500,
        b'l' | b'd' | b'c' | b'"' => 320,
        b'u' | b'm' | b'p' | b'\\' => 220,
        b'f' | b'g' | b'h' | b'0' | b'1' | b'/' | b':' | b',' | b'.' => 160,
        b'b' | b'y' | b'w' | b'v' | b'_' | b'-' | b'2'..=b'9' => 110,
        b'k' | b'x' | b'(' | b')' | b'{' | b'}' | b'=' | b'[' | b']' | b';' => 70,
        // Lead and continuation bytes of a script are common where it occurs at all.
        b'A'..=b'Z' | b'j' | b'q' | b'z' | b'>' | b'<' | 0x80..=0xbf => 30,
        0xe2..=0xe9 | 0xc3 | 0xd0 | 0xd1 => 40,
        0xc2 | 0xc4..=0xcf | 0xd2..=0xe1 | 0xea..=0xff => 8,
        _ => 10,
    }
}
