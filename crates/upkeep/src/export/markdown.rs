//! A conversation as Markdown to read.

use std::io::{self, BufWriter, Write};

use headwater_model::UnixMillis;
use jiff::Timestamp;
use rusqlite::OptionalExtension;

use super::subjects::{SESSION_TABLES, Subject};
use super::{Written, recovered};
use crate::ReadDatabase;
use crate::observer::Observer;
use crate::reading::{ReadError, integer_of, or_null, short, text_of};
use crate::show::{self, ShowOptions, ShownItem, ShownMessage};

/// Writes one session.
pub(super) fn write(
    database: &ReadDatabase,
    subject: &Subject,
    with_technical: bool,
    observer: &dyn Observer,
    out: &mut dyn Write,
) -> Result<Written, ReadError> {
    let mut out = BufWriter::with_capacity(64 * 1024, out);
    let written = if subject.has_row {
        head(database, &subject.id, &mut out)?;
        messages(database, &subject.id, with_technical, observer, &mut out)?
    } else {
        recovered::write(database, &subject.id, with_technical, observer, &mut out)?
    };
    out.flush().map_err(ReadError::Output)?;
    Ok(written)
}

/// Title and facts of a session.
fn head(database: &ReadDatabase, id: &str, out: &mut dyn Write) -> Result<(), ReadError> {
    let schema = database.schema();
    for table in SESSION_TABLES.into_iter().filter(|table| schema.has(table, "id")) {
        let sql = format!(
            "SELECT {}, {}, {}, {}, {}, {} FROM {table} WHERE id = ?1",
            short(schema, table, "title"),
            short(schema, table, "directory"),
            short(schema, table, "parent_id"),
            or_null(schema, table, "time_created"),
            or_null(schema, table, "time_updated"),
            or_null(schema, table, "time_archived"),
        );
        let found = database
            .connection()
            .prepare_cached(&sql)?
            .query_row([id], |row| {
                let facts = [text_of(row, 1)?, text_of(row, 2)?];
                let times = [integer_of(row, 3)?, integer_of(row, 4)?, integer_of(row, 5)?];
                Ok((text_of(row, 0)?, facts, times))
            })
            .optional()?;
        let Some((title, [directory, parent], times)) = found else { continue };
        let title = title.filter(|title| !title.trim().is_empty());
        let mut text = format!("# {}\n\n- Session: `{id}`\n", one_line(title.as_deref().unwrap_or(id)));
        for (name, value) in [("Directory", directory), ("Started by", parent)] {
            if let Some(value) = value {
                text.extend(["- ", name, ": `", &one_line(&value), "`\n"]);
            }
        }
        for (name, time) in ["Created", "Last changed", "Archived"].into_iter().zip(times) {
            if let Some(time) = time {
                text.extend(["- ", name, ": ", &instant(UnixMillis::new(time)), "\n"]);
            }
        }
        return out.write_all((text + "\n").as_bytes()).map_err(ReadError::Output);
    }
    Ok(())
}

fn messages(
    database: &ReadDatabase,
    id: &str,
    technical: bool,
    observer: &dyn Observer,
    out: &mut dyn Write,
) -> Result<Written, ReadError> {
    let options = ShowOptions { technical, ..ShowOptions::default() };
    let mut written = Written::default();
    show::session(database, id, options, observer, |message| {
        written.entries += 1;
        let is_readable = message.is_readable && message.items.iter().all(|item| item.kind != "unreadable");
        written.unreadable += u64::from(!is_readable);
        if is_readable && message.error.is_none() && !message.items.iter().any(|item| shows(item, technical))
        {
            return Ok(());
        }
        heading(&message, out).map_err(ReadError::Output)?;
        if !is_readable {
            out.write_all(b"*A stored row of this message cannot be decoded.*\n\n")
                .map_err(ReadError::Output)?;
        }
        message.items.iter().try_for_each(|item| self::item(database, item, technical, out))
    })?;
    Ok(written)
}

fn heading(message: &ShownMessage, out: &mut dyn Write) -> io::Result<()> {
    write!(out, "## {}", role(&message.role, message.is_summary))?;
    if let Some(model) = &message.model {
        write!(out, " ({})", one_line(model))?;
    }
    write!(out, ", {}\n\n", instant(message.created))?;
    if let Some(error) = &message.error {
        write!(out, "*Ended with {}.*\n\n", one_line(error))?;
    }
    Ok(())
}

/// Whether anything is written of an item.
fn shows(item: &ShownItem, technical: bool) -> bool {
    match item.kind.as_str() {
        "tool" if technical => true,
        "file" if item.title.is_some() => true,
        _ => item.text.as_ref().is_some_and(|text| !text.text.trim().is_empty()),
    }
}

fn item(
    database: &ReadDatabase,
    item: &ShownItem,
    technical: bool,
    out: &mut dyn Write,
) -> Result<(), ReadError> {
    if item.kind == "tool" && technical {
        let (tool, status) = (item.tool.as_deref().unwrap_or("?"), item.status.as_deref().unwrap_or("?"));
        write!(out, "### Tool `{}`, {}\n\n", one_line(tool), one_line(status)).map_err(ReadError::Output)?;
    }
    if item.kind == "file"
        && let Some(title) = &item.title
    {
        write!(out, "*Attached: {}*\n\n", one_line(title)).map_err(ReadError::Output)?;
    }
    if item.text.is_none() {
        return Ok(());
    }
    match item.kind.as_str() {
        "tool" => {
            let mut fence = Fence::default();
            show::write_text(database, item, &mut fence)?;
            let fence = fence.line();
            writeln!(out, "{fence}").map_err(ReadError::Output)?;
            show::write_text(database, item, out)?;
            write!(out, "\n{fence}\n\n").map_err(ReadError::Output)
        }
        "reasoning" => {
            out.write_all(b"> ").map_err(ReadError::Output)?;
            show::write_text(database, item, &mut Quoted(out))?;
            out.write_all(b"\n\n").map_err(ReadError::Output)
        }
        _ => {
            show::write_text(database, item, out)?;
            out.write_all(b"\n\n").map_err(ReadError::Output)
        }
    }
}

/// The role as a heading.
pub(super) fn role(role: &str, is_summary: bool) -> String {
    if is_summary {
        return "Summary".to_owned();
    }
    let mut chars = role.chars();
    match chars.next() {
        Some(first) => one_line(&(first.to_uppercase().collect::<String>() + chars.as_str())),
        None => "Message".to_owned(),
    }
}

/// Names from a row must not break out of their line.
pub(super) fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// A stored time in UTC, or the number where it is none.
pub(super) fn instant(time: UnixMillis) -> String {
    match Timestamp::from_millisecond(time.get()) {
        Ok(instant) => instant.to_string(),
        Err(_) => time.get().to_string(),
    }
}

/// Finds out how long a fence must be: longer than any run of backticks in the text.
#[derive(Default)]
pub(super) struct Fence {
    run: usize,
    longest: usize,
}

impl Fence {
    pub(super) fn line(&self) -> String {
        "`".repeat((self.longest + 1).max(3))
    }
}

impl Write for Fence {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for &byte in bytes {
            self.run = if byte == b'`' { self.run + 1 } else { 0 };
            self.longest = self.longest.max(self.run);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Puts a quotation mark before every further line.
pub(super) struct Quoted<'a>(pub(super) &'a mut dyn Write);

impl Write for Quoted<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for (index, line) in bytes.split(|&byte| byte == b'\n').enumerate() {
            if index > 0 {
                self.0.write_all(b"\n> ")?;
            }
            self.0.write_all(line)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}
