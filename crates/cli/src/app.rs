//! One run of the program: parse, dispatch, report.

use std::env;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};
use clap::{CommandFactory, Parser};
use headwater_upkeep::locate::{self, Environment};
use headwater_upkeep::open;

use crate::args::Cli;
use crate::args::output::{ColorWhen, OutputArgs};
use crate::cancel::Cancel;
use crate::commands;
use crate::failure::Failure;
use crate::output::{self, Output};
use crate::status::Status;

/// What every verb works with.
pub(crate) struct App {
    /// Where results go.
    pub(crate) out: Output,
    /// Whether the user wants to stop.
    pub(crate) cancel: Cancel,
    /// The database named by `--db`.
    pub(crate) db: Option<PathBuf>,
}

impl App {
    /// The database that the verb is about: named by `--db`, or OpenCode's default. It may be missing or no database.
    pub(crate) fn database(&self) -> Result<PathBuf, Failure> {
        match &self.db {
            Some(named) => Ok(named.clone()),
            None => Ok(locate::database(&Environment::of_process())?.path),
        }
    }
}

impl App {
    /// Refuses to write to `output` where that is the database or has the name of a file of it.
    pub(crate) fn ensure_apart(&self, output: &Path) -> Result<(), Failure> {
        if !open::is_of_database(&self.database()?, output) {
            return Ok(());
        }
        let shown = output.to_string_lossy();
        let message = format_args!("{shown} is the database, or has the name of a file of it");
        Err(Failure::new(Status::Blocked, "exists", message)
            .with_hint("name another file; nothing was changed"))
    }
}

/// Runs the program with the arguments of this process.
pub(crate) fn run() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return refuse(&error).into(),
    };
    let name = cli.command.name();
    let color = cli.output.color;
    let out = Output::stdout(name, cli.output);
    let mut app = App { out, cancel: Cancel::install(), db: cli.db };
    let ended = commands::run(cli.command, &mut app).and_then(|status| app.out.flush().map(|()| status));
    match ended {
        Ok(status) => status.into(),
        Err(failure) => report(&failure, &mut app.out, color).into(),
    }
}

/// Tells the user, and the program that reads, why the command failed.
fn report(failure: &Failure, out: &mut Output, color: ColorWhen) -> Status {
    if failure.is_closed_pipe {
        return failure.status;
    }
    if out.is_json() && failure.code != "output" {
        out.failed(failure).ok();
    }
    // What was found before the failure belongs before the message.
    out.flush().ok();
    tell(failure, color).ok();
    failure.status
}

fn tell(failure: &Failure, color: ColorWhen) -> io::Result<()> {
    let mut stderr = io::stderr();
    let is_styled = output::is_styled(color, &stderr);
    let paint = |color: AnsiColor| if is_styled { color.on_default().bold() } else { Style::new() };
    let [red, cyan] = [paint(AnsiColor::Red), paint(AnsiColor::Cyan)];
    writeln!(stderr, "{red}error:{red:#} {}", failure.message)?;
    if let Some(hint) = &failure.hint {
        writeln!(stderr, "{cyan}hint:{cyan:#} {hint}")?;
    }
    Ok(())
}

/// Answers arguments that cannot be parsed, and `--help` and `--version`.
fn refuse(error: &clap::Error) -> Status {
    let status = if error.use_stderr() { Status::Usage } else { Status::Done };
    if status == Status::Usage && env::args_os().any(|argument| argument == "--json") {
        let message = error.to_string();
        let first = message.lines().next().unwrap_or_default().trim_start_matches("error: ");
        let args = OutputArgs { json: true, color: ColorWhen::Never };
        let mut out = Output::stdout(called_command(), args);
        out.failed(&Failure::usage(first)).and_then(|()| out.flush()).ok();
    }
    match error.print() {
        // What was asked for was the text.
        Err(unwritten) if status == Status::Done => {
            let failure = Failure::output(&unwritten, status);
            if !failure.is_closed_pipe {
                tell(&failure, ColorWhen::Auto).ok();
            }
            failure.status
        }
        _ => status,
    }
}

/// The name of the verb in the arguments of this process, or an empty text.
fn called_command() -> &'static str {
    let command = Cli::command();
    let called = env::args().find(|argument| command.find_subcommand(argument).is_some());
    called.map_or("", |name| commands::NAMES.into_iter().find(|known| *known == name).unwrap_or_default())
}
