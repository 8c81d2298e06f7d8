//! Rules of the repository that no compiler knows, as a test.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::stage::root;

/// Longest source file without a reason. A longer one has a line `//! Longer than 600 lines because ...`.
const LINES_MAX: usize = 600;
const LONG_BECAUSE: &str = "Longer than 600 lines because";

#[test]
fn the_tree_is_tidy() {
    let mut faults = Vec::new();
    for path in tracked_files() {
        let Ok(text) = fs::read_to_string(root().join(&path)) else { continue };
        let is_rust = path.extension().is_some_and(|extension| extension == "rs");
        if is_rust {
            faults.extend(rust_faults(&path, &text));
        }
        faults.extend(word_faults(&path, &text));
    }
    faults.extend(readme_faults());
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

fn tracked_files() -> Vec<PathBuf> {
    let listed = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root())
        .output();
    let listed = listed.expect("git lists the files");
    assert!(listed.status.success(), "git ls-files failed");
    let names = String::from_utf8(listed.stdout).expect("names are UTF-8");
    let files: Vec<_> = names.split_terminator('\0').map(PathBuf::from).collect();
    assert!(files.len() > 20, "only {} files", files.len());
    files
}

fn rust_faults(path: &Path, text: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let lines = text.lines().count();
    if lines > LINES_MAX && !text.contains(LONG_BECAUSE) {
        faults.push(format!(
            "{}: {lines} lines; split it or say why not: `//! {LONG_BECAUSE} ...`",
            path.display()
        ));
    }
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    if ["mod.rs", "utils.rs", "helpers.rs", "common.rs"].contains(&name) {
        faults.push(format!("{}: name the file after what it is about", path.display()));
    }
    for unfinished in
        [concat!("todo", "!("), concat!("dbg", "!("), concat!("unimplemented", "!("), concat!("#[", "ignore")]
    {
        faults.extend(lines_with(path, text, unfinished));
    }
    faults
}

/// The repository speaks of the product alone: nothing about the machine or the way it was made on.
fn word_faults(path: &Path, text: &str) -> Vec<String> {
    let words = [
        concat!("/wo", "rk/"),
        concat!("/tmp/", "wt"),
        concat!("shared/", "opencode"),
        concat!("shared/", "cases"),
        concat!("shared/", "design"),
        concat!("BRIEF", ".md"),
        concat!("sub", "agent is working"),
        concat!("Chat", "GPT"),
        concat!("Clau", "de Code"),
        concat!("as an A", "I"),
    ];
    words.iter().flat_map(|word| lines_with(path, text, word)).collect()
}

fn lines_with(path: &Path, text: &str, word: &str) -> Vec<String> {
    let found = text.lines().enumerate().filter(|(_, line)| line.contains(word));
    found.map(|(place, _)| format!("{}:{}: holds `{word}`", path.display(), place + 1)).collect()
}

/// Every verb of the program is named in the README.
fn readme_faults() -> Vec<String> {
    let readme = fs::read_to_string(root().join("README.md")).unwrap_or_default();
    let verbs = fs::read_dir(root().join("crates/cli/src/commands")).expect("the verbs are there");
    let mut faults = Vec::new();
    for verb in verbs {
        let path = verb.expect("a folder that can be listed").path();
        let name = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default().to_owned();
        if path.is_file()
            && !readme.contains(&format!("`{name}"))
            && !readme.contains(&format!("headwater {name}"))
        {
            faults.push(format!("README.md does not name `headwater {name}`"));
        }
    }
    faults
}
