//! `canonical`: content revisions of 1 KiB, 100 KiB and 16 MiB against JavaScript in Node, both sides in one run.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use headwater_wire::canonical::content_revision;

/// Rounds of each side; the sides take turns.
const ROUNDS: usize = 5;

/// Largest ratio to JavaScript that is acceptable.
const GOAL: f64 = 0.30;

/// Measures and prints one line for each size.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    ensure!(arguments.is_empty(), "canonical takes no arguments");
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "content revision against JSON.parse + sorted stringify + SHA-256 in Node (goal: ratio <= {GOAL:.2})"
    )?;
    writeln!(out, "| content | Rust best / median | Node best / median | ratio best / median |")?;
    writeln!(out, "|---|---|---|---|")?;
    for (name, bytes, iterations) in
        [("1 KiB", 1 << 10, 20_000), ("100 KiB", 100 << 10, 400), ("16 MiB", 16 << 20, 5)]
    {
        let json = content(bytes);
        let (rust, node) = measure(&json, iterations).with_context(|| format!("measuring {name}"))?;
        writeln!(
            out,
            "| {name} | {} / {} | {} / {} | {:.3} / {:.3} |",
            duration(rust.best),
            duration(rust.median),
            duration(node.best),
            duration(node.median),
            rust.best / node.best,
            rust.median / node.median,
        )?;
    }
    Ok(())
}

/// Seconds per revision.
struct Timing {
    best: f64,
    median: f64,
}

fn measure(json: &str, iterations: u32) -> Result<(Timing, Timing)> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("content.json");
    std::fs::write(&file, json)?;
    let (mut rust, mut node) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let (seconds, hash) = in_rust(json, iterations)?;
        rust.push(seconds);
        let (seconds, node_hash) = in_node(&file, iterations)?;
        node.push(seconds);
        ensure!(hash == node_hash, "the two sides disagree: {hash} and {node_hash}");
    }
    Ok((timing(rust), timing(node)))
}

fn in_rust(json: &str, iterations: u32) -> Result<(f64, String)> {
    let mut revision = content_revision(json.as_bytes())?;
    let start = Instant::now();
    for _ in 0..iterations {
        revision = content_revision(std::hint::black_box(json.as_bytes()))?;
    }
    Ok((start.elapsed().as_secs_f64() / f64::from(iterations), revision.to_string()))
}

fn in_node(file: &Path, iterations: u32) -> Result<(f64, String)> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/canonical.mjs");
    let output = Command::new("node")
        .arg(script)
        .arg(file)
        .arg(iterations.to_string())
        .output()
        .context("node (Node.js 20 or newer) is needed for the comparison")?;
    if !output.status.success() {
        bail!("node failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    let text = String::from_utf8(output.stdout)?;
    let (seconds, hash) = text.trim().split_once(' ').context("node prints seconds and a hash")?;
    Ok((seconds.parse()?, hash.to_owned()))
}

fn timing(mut seconds: Vec<f64>) -> Timing {
    seconds.sort_by(f64::total_cmp);
    Timing { best: seconds[0], median: seconds[seconds.len() / 2] }
}

fn duration(seconds: f64) -> String {
    if seconds < 1e-3 { format!("{:.1} us", seconds * 1e6) } else { format!("{:.2} ms", seconds * 1e3) }
}

/// A 2.x content array of about `bytes` bytes in the mix of real ones: reasoning, tool calls with output of some kilobytes, text.
fn content(bytes: usize) -> String {
    let mut json = String::from("[");
    let mut step = 0_u64;
    while json.len() < bytes {
        let room = bytes - json.len();
        let comma = if step == 0 { "" } else { "," };
        let (thought, output) = (text(step, (room / 8).min(600)), text(step + 7, (room / 2).min(6000)));
        // Writing to a string cannot fail.
        let _ = write!(
            json,
            r#"{comma}{{"type":"reasoning","text":"{thought}","native":{{"reasoningField":"reasoning_content"}},"time":{{"created":{step},"completed":{}}}}},{{"type":"tool","id":"call_{step:08}","name":"shell","executed":false,"state":{{"status":"completed","input":{{"command":"run {step}","timeout":1.5}},"content":[{{"type":"text","text":"{output}"}}],"metadata":{{"truncated":false,"exit":0}}}},"time":{{"created":{},"ran":{step},"completed":{step}}}}}"#,
            step + 1,
            1_790_000_000_000 + step,
        );
        step += 1;
    }
    json.push(']');
    json
}

/// About `bytes` bytes of text as a tool prints it, as the inside of a JSON string.
fn text(seed: u64, bytes: usize) -> String {
    const WORDS: [&str; 12] = [
        "fn",
        "let",
        "struct",
        "error:",
        "\\\"path\\\"",
        "src/main.rs",
        "naïve",
        "数据",
        "result",
        "branch",
        "\\tindent",
        "window",
    ];
    let mut text = String::new();
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    while text.len() < bytes {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let word = WORDS.get(usize::try_from(state % 12).unwrap_or_default()).copied().unwrap_or_default();
        text.push_str(word);
        text.push_str(if state.is_multiple_of(9) { "\\n" } else { " " });
    }
    text
}
