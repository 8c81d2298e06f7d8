//! `docs/reference/cli.md` from the definitions of the arguments. The test that compares the file writes it where
//! `HEADWATER_GENERATE` is set (`cargo xtask generate`).

use std::fmt::Write;
use std::{env, fs, mem};

use clap::{Command, CommandFactory, Parser};

use crate::args::Cli;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/cli.md");

#[test]
fn reference_of_the_commands_is_fresh() {
    let generated = reference();
    if env::var_os("HEADWATER_GENERATE").is_some() {
        fs::write(FILE, &generated).unwrap();
    }
    let stored = fs::read_to_string(FILE).unwrap_or_default();
    assert!(stored == generated, "docs/reference/cli.md is stale: run `cargo xtask generate`");
}

fn reference() -> String {
    let mut command = Cli::command().term_width(100);
    command.build();
    let mut page = String::from(
        "# Commands\n\nWritten by `cargo xtask generate` from the definitions in `crates/cli/src`. The shapes of `--json` are in [json.md](json.md).\n",
    );
    section(&mut page, "headwater", &mut command.clone());
    for verb in command.get_subcommands_mut().filter(|verb| verb.get_name() != "help") {
        verb_sections(&mut page, "headwater", verb);
    }
    page
}

fn verb_sections(page: &mut String, parent: &str, verb: &mut Command) {
    let name = format!("{parent} {}", verb.get_name());
    let mut subverbs: Vec<_> =
        verb.get_subcommands().filter(|subverb| subverb.get_name() != "help").cloned().collect();
    if subverbs.is_empty() {
        return section(page, &name, verb);
    }
    for subverb in &mut subverbs {
        verb_sections(page, &name, subverb);
    }
}

fn section(page: &mut String, name: &str, command: &mut Command) {
    let globals: Vec<_> = command
        .get_arguments()
        .filter(|argument| argument.is_global_set())
        .map(|argument| argument.get_id().clone())
        .collect();
    if name != "headwater" {
        for global in globals {
            *command = mem::take(command).mut_arg(global, |argument| argument.hide(true));
        }
    }
    let help = command.render_long_help().to_string();
    let lines: Vec<_> = help.lines().map(str::trim_end).collect();
    writeln!(page, "\n## {name}\n\n```text\n{}\n```", lines.join("\n").trim_end()).unwrap();
}

/// Every call of the program in the documents is one that it takes.
#[test]
fn examples_in_the_documents_are_calls_that_parse() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../");
    let mut examples = 0;
    for file in ["README.md", "CONTRIBUTING.md"] {
        let text = fs::read_to_string(format!("{root}{file}")).unwrap();
        let blocks = text.lines().filter_map(|line| line.strip_prefix("    "));
        for call in text.split('`').chain(blocks).filter(|call| call.starts_with("headwater ")) {
            let call = call.split(" #").next().unwrap_or(call).split(" > ").next().unwrap_or(call);
            examples += 1;
            if let Err(error) = Cli::try_parse_from(words(call)) {
                panic!("{file}: `{call}`: {error}");
            }
        }
    }
    assert!(examples > 20, "{examples} examples");
}

/// The words of a call as a shell takes them, single quotes included.
fn words(call: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut is_quoted = false;
    for character in call.trim().chars() {
        match character {
            '\'' => is_quoted = !is_quoted,
            ' ' if !is_quoted => words.push(String::new()),
            _ => words.last_mut().unwrap().push(character),
        }
    }
    words
}
