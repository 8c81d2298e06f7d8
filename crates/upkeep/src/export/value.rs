//! One stored value as JSON that tells its type and all its bytes.

use std::io::{self, Read, Seek, Write};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use base64::write::EncoderWriter;
use rusqlite::blob::Blob;
use rusqlite::types::ValueRef;

/// Integers beyond this lose digits in readers that keep numbers as doubles.
const SAFE_INTEGER_MAX: u64 = 1 << 53;

/// Bytes of a large value that are written at a time.
const CHUNK_BYTES: usize = 256 * 1024;

/// Writes a value that is in memory.
pub(super) fn write(value: ValueRef<'_>, out: &mut dyn Write) -> io::Result<()> {
    match value {
        ValueRef::Null => out.write_all(b"null"),
        ValueRef::Integer(number) if number.unsigned_abs() <= SAFE_INTEGER_MAX => write!(out, "{number}"),
        ValueRef::Integer(number) => write!(out, "{{\"integer\":\"{number}\"}}"),
        ValueRef::Real(number) => write!(out, "{{\"real\":\"{number:?}\"}}"),
        ValueRef::Text(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => string(text, out),
            Err(_) => write!(out, "{{\"text\":\"{}\"}}", STANDARD.encode(bytes)),
        },
        ValueRef::Blob(bytes) => write!(out, "{{\"blob\":\"{}\"}}", STANDARD.encode(bytes)),
    }
}

/// Writes a large value from its chunks; `is_text` says how it is stored. Text is read twice, to know first whether it is UTF-8.
pub(super) fn write_large(mut blob: Blob<'_>, is_text: bool, out: &mut dyn Write) -> io::Result<()> {
    let is_utf8 = is_text && each_chunk(&mut blob, &mut |_| Ok(()))?;
    if is_utf8 {
        out.write_all(b"\"")?;
        each_chunk(&mut blob, &mut |text| escaped(text, out))?;
        return out.write_all(b"\"");
    }
    out.write_all(if is_text { b"{\"text\":\"" } else { b"{\"blob\":\"" })?;
    blob.rewind()?;
    let mut encoder = EncoderWriter::new(&mut *out, &STANDARD);
    io::copy(&mut blob, &mut encoder)?;
    encoder.finish()?;
    drop(encoder);
    out.write_all(b"\"}")
}

/// Hands the text of a value on in chunks of whole characters; false at the first bytes that are not UTF-8.
fn each_chunk(blob: &mut Blob<'_>, each: &mut dyn FnMut(&str) -> io::Result<()>) -> io::Result<bool> {
    blob.rewind()?;
    let mut buffer = vec![0; CHUNK_BYTES];
    let mut held = 0;
    loop {
        let read = blob.read(&mut buffer[held..])?;
        let end = held + read;
        let whole = match std::str::from_utf8(&buffer[..end]) {
            Ok(text) => {
                each(text)?;
                end
            }
            // A character may go on in the next chunk.
            Err(error) if error.error_len().is_none() && read > 0 => {
                let whole = error.valid_up_to();
                each(std::str::from_utf8(&buffer[..whole]).map_err(io::Error::other)?)?;
                whole
            }
            Err(_) => return Ok(false),
        };
        if read == 0 {
            return Ok(true);
        }
        buffer.copy_within(whole..end, 0);
        held = end - whole;
    }
}

/// Writes text as a JSON string.
pub(super) fn string(text: &str, out: &mut dyn Write) -> io::Result<()> {
    out.write_all(b"\"")?;
    escaped(text, out)?;
    out.write_all(b"\"")
}

fn escaped(text: &str, out: &mut dyn Write) -> io::Result<()> {
    let mut plain_from = 0;
    for (at, byte) in text.bytes().enumerate() {
        if byte >= 0x20 && byte != b'"' && byte != b'\\' {
            continue;
        }
        out.write_all(&text.as_bytes()[plain_from..at])?;
        plain_from = at + 1;
        match byte {
            b'"' | b'\\' => out.write_all(&[b'\\', byte])?,
            b'\n' => out.write_all(b"\\n")?,
            b'\r' => out.write_all(b"\\r")?,
            b'\t' => out.write_all(b"\\t")?,
            other => write!(out, "\\u{other:04x}")?,
        }
    }
    out.write_all(&text.as_bytes()[plain_from..])
}
