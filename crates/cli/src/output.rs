//! Standard output, for a person or for a program.
//!
//! With `--json` every line is one JSON object: verbs that list things print a line per item first, and the last line is the result
//! or the error (`docs/reference/json.md`). Otherwise text for people, which never holds a control character that was stored.

use std::fmt;
use std::io::{self, BufWriter, IsTerminal, Write};

use anstyle::Style;
use serde::Serialize;

use crate::args::output::{ColorWhen, OutputArgs};
use crate::failure::Failure;
use crate::render::table::Table;
use crate::status::Status;

mod json;
mod pipe;
mod whole_file;

pub(crate) use pipe::Pipe;
pub(crate) use whole_file::WholeFile;

/// Where a verb writes what it found.
pub(crate) struct Output {
    writer: BufWriter<Box<dyn Write>>,
    command: &'static str,
    is_json: bool,
    is_terminal: bool,
    is_styled: bool,
    width: Option<u16>,
    unread: Status,
}

impl Output {
    /// Standard output of this process.
    pub(crate) fn stdout(command: &'static str, args: OutputArgs) -> Self {
        let stdout = io::stdout();
        let is_terminal = stdout.is_terminal();
        Self {
            is_styled: is_styled(args.color, &stdout) && !args.json,
            width: terminal_size::terminal_size_of(&stdout).map(|(width, _)| width.0),
            writer: BufWriter::with_capacity(64 * 1024, Box::new(stdout)),
            command,
            is_json: args.json,
            is_terminal,
            unread: Status::Done,
        }
    }

    /// Whether a program reads: the verb then writes [`Output::item`] and [`Output::result`] only.
    pub(crate) fn is_json(&self) -> bool {
        self.is_json
    }

    /// Whether a person sits before it.
    pub(crate) fn is_terminal(&self) -> bool {
        self.is_terminal
    }

    /// Columns of the terminal, if it is one.
    pub(crate) fn width(&self) -> Option<u16> {
        self.width
    }

    /// One line of text, which must be safe for a terminal.
    pub(crate) fn line(&mut self, text: impl fmt::Display) -> Result<(), Failure> {
        self.write(|writer| writeln!(writer, "{text}"))
    }

    /// A line that begins a section, with an empty line before it.
    pub(crate) fn heading(&mut self, text: impl fmt::Display) -> Result<(), Failure> {
        let style = if self.is_styled { Style::new().bold() } else { Style::new() };
        self.write(|writer| writeln!(writer, "\n{style}{text}{style:#}"))
    }

    /// A table, as wide as the terminal allows.
    pub(crate) fn table(&mut self, table: &mut Table) -> Result<(), Failure> {
        let lines = table.lines(self.width);
        self.write(|writer| lines.iter().try_for_each(|line| writeln!(writer, "{line}")))
    }

    /// Bytes as they are.
    pub(crate) fn raw(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.write(|writer| writer.write_all(bytes))
    }

    /// `text` with `style` where the output is styled.
    pub(crate) fn styled(&self, style: Style, text: impl fmt::Display) -> String {
        if self.is_styled { format!("{style}{text}{style:#}") } else { text.to_string() }
    }

    /// One thing of a list, for a program: `{"<kind>": value}`.
    pub(crate) fn item(&mut self, kind: &'static str, value: &impl Serialize) -> Result<(), Failure> {
        self.write(|writer| json::write_line(writer, &json::Item { kind, value }))
    }

    /// The last line of a command that ended with `status`, for a program.
    pub(crate) fn result(&mut self, status: Status, value: &impl Serialize) -> Result<(), Failure> {
        let line = json::Ended { command: self.command, status, result: value };
        self.write(|writer| json::write_line(writer, &line))
    }

    /// The last line of a command that failed, for a program.
    pub(crate) fn failed(&mut self, failure: &Failure) -> Result<(), Failure> {
        let line = json::Failed { command: self.command, status: failure.status, error: failure };
        self.write(|writer| json::write_line(writer, &line))
    }

    /// Says how a command ends whose reader goes away before its end (`headwater check | grep -q error`): as it would have.
    pub(crate) fn ends_unread_with(&mut self, status: Status) {
        self.unread = status;
    }

    /// Hands everything to the system.
    pub(crate) fn flush(&mut self) -> Result<(), Failure> {
        self.writer.flush().map_err(|error| Failure::output(&error, self.unread))
    }

    fn write(
        &mut self,
        write: impl FnOnce(&mut BufWriter<Box<dyn Write>>) -> io::Result<()>,
    ) -> Result<(), Failure> {
        write(&mut self.writer).map_err(|error| Failure::output(&error, self.unread))?;
        if self.is_terminal { self.flush() } else { Ok(()) }
    }
}

/// Whether escape codes for colour go to `stream`: as asked, else to a terminal unless `NO_COLOR` or `TERM=dumb` says otherwise.
pub(crate) fn is_styled(when: ColorWhen, stream: &impl anstream::stream::RawStream) -> bool {
    match when {
        ColorWhen::Always => true,
        ColorWhen::Never => false,
        ColorWhen::Auto => anstream::AutoStream::choice(stream) != anstream::ColorChoice::Never,
    }
}
