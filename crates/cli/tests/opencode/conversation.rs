//! A conversation that OpenCode itself has written, with every kind of content that a class can take.

use headwater_testkit::opencode::OpenCode;
use serde_json::{Value, json};

/// The prompt of the newest turn, which class `technical` leaves alone in bulk.
pub(crate) const NEWEST: &str = "newest [[reasoning=100 tools=1 out=700 text=90]]";

/// The prompt whose turn edits `mock-1.txt`.
pub(crate) const EDIT: &str = "edit [[tool=edit tools=1 path=mock-1.txt text=80]]";

/// Writes the conversation and returns its session.
///
/// It needs a large context window (or it would be compacted) and `compaction.prune`: then OpenCode marks old output as compacted, here
/// all before the last 40 000 tokens of the flood.
pub(crate) fn write(opencode: &OpenCode) -> String {
    let picture = picture();
    std::fs::write(opencode.home().project().join("pixel.png"), &picture).unwrap();
    let session = opencode.new_session("everything");
    for prompt in [
        "explain [[reasoning=400 text=300]]",
        "look [[reasoning=200 tools=2 parallel=2 out=3000 text=200]]",
        "write [[tool=write tools=2 size=3000 text=80]]",
        EDIT,
        "miss [[tools=2 failat=1 out=500 text=60]]",
        "flood [[tools=1 parallel=6 out=50000 lines=2000 text=60]]",
        "picture [[tool=read tools=1 path=pixel.png text=60]]",
    ] {
        opencode.say(&session, prompt);
    }
    let url = format!("data:image/png;base64,{}", base64(&picture));
    let parts = json!([
        {"type": "text", "text": "see this [[text=50]]"},
        {"type": "file", "mime": "image/png", "filename": "pixel.png", "url": url}
    ]);
    opencode.post(&format!("/session/{session}/message"), &json!({"parts": parts}));
    opencode.settle(&session);
    opencode.say(&session, NEWEST);
    session
}

/// A picture of one pixel, with enough bytes behind its end to be worth removing.
fn picture() -> Vec<u8> {
    const PIXEL: [u8; 67] = [
        137, 80, 78, 71, 13, 10, 26, 10, 0, 0, 0, 13, 73, 72, 68, 82, 0, 0, 0, 1, 0, 0, 0, 1, 8, 6, 0, 0, 0,
        31, 21, 196, 137, 0, 0, 0, 10, 73, 68, 65, 84, 120, 156, 99, 0, 1, 0, 0, 5, 0, 1, 13, 10, 45, 180, 0,
        0, 0, 0, 73, 69, 78, 68, 174, 66, 96, 130,
    ];
    [&PIXEL[..], &[0; 300]].concat()
}

fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let bits =
            chunk.iter().fold(0, |bits, &byte| bits << 8 | usize::from(byte)) << (8 * (3 - chunk.len()));
        for i in 0..4 {
            let letter = if i <= chunk.len() { ALPHABET[bits >> (18 - 6 * i) & 63] } else { b'=' };
            text.push(char::from(letter));
        }
    }
    text
}

/// The newest request of a turn, and with it all that the model is told.
pub(crate) fn request_after(opencode: &OpenCode, session: &str, prompt: &str) -> Value {
    opencode.provider().reset();
    opencode.say(session, prompt);
    opencode.provider().last().unwrap()
}
