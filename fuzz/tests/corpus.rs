//! Runs every target over its corpus, and over each other's, so that the targets cannot rot.

use std::fs;
use std::path::Path;

use headwater_fuzz::TARGETS;

#[test]
fn every_target_holds_over_the_whole_corpus() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let mut inputs = Vec::new();
    for (name, _) in TARGETS {
        let before = inputs.len();
        for entry in fs::read_dir(corpus.join(name)).expect("each target has a corpus") {
            let path = entry.expect("the corpus can be listed").path();
            inputs.push((path.display().to_string(), fs::read(&path).expect("the corpus can be read")));
        }
        assert!(inputs.len() - before >= 5, "the corpus of {name} is too small");
    }
    for (path, input) in &inputs {
        for (name, target) in TARGETS {
            // Also cut off and with one byte changed: what a fuzzer does first.
            for cut in (0..input.len()).step_by(1 + input.len() / 40) {
                target(&input[..cut]);
                let mut changed = input.clone();
                changed[cut] ^= 0x21;
                target(&changed);
            }
            eprintln!("{name} {path}");
            target(input);
        }
    }
}
