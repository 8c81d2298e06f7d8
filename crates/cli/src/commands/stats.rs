//! `headwater stats`: where the space goes, and what each class would free.

use headwater_model::{ByteCount, UnixMillis};
use headwater_upkeep::ReadDatabase;
use headwater_upkeep::stats::{self, DatabaseFigures, Group, LogState, StatsOptions, StatsReport};

use crate::app::App;
use crate::clock;
use crate::failure::Failure;
use crate::output::Output;
use crate::progress::Watch;
use crate::render::name::name;
use crate::render::plan::{effect, freed};
use crate::render::size::{count, counted, share, size};
use crate::render::table::{Column, Table};
use crate::render::text::printable;
use crate::render::time::age;
use crate::status::Status;

/// Show where the space of the database goes, and what each class would free.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct Args {
    /// Read payloads to turn upper bounds into exact figures.
    #[arg(long)]
    exact: bool,
    /// How long the lists are.
    #[arg(long, value_name = "N", default_value = "10", value_parser = clap::value_parser!(u16).range(1..=10_000))]
    top: u16,
}

pub(crate) fn run(args: Args, app: &mut App) -> Result<Status, Failure> {
    let database = ReadDatabase::open(&app.database()?)?;
    let watch = Watch::new(app.cancel.clone());
    let now = clock::now();
    let top = usize::from(args.top);
    let options =
        StatsOptions { exact: args.exact, sessions_max: top, largest_max: top, ..StatsOptions::new(now) };
    let computed = stats::compute(&database, &options, &watch);
    watch.end();
    database.finish()?;
    let report = computed?;
    if app.out.is_json() {
        app.out.result(Status::Done, &report)?;
    } else {
        Page { report: &report, out: &mut app.out, now, top }.show()?;
    }
    Ok(Status::Done)
}

/// The report as a person reads it.
struct Page<'a> {
    report: &'a StatsReport,
    out: &'a mut Output,
    now: UnixMillis,
    top: usize,
}

impl Page<'_> {
    fn show(&mut self) -> Result<(), Failure> {
        self.head()?;
        self.classes()?;
        self.tables()?;
        let report = self.report;
        self.groups("Event rows by type", "Type", &report.event_types)?;
        self.groups("1.x parts by kind", "Kind", &report.part_kinds)?;
        self.groups("1.x tool calls by tool", "Tool", &report.tools)?;
        self.groups("1.x messages by role", "Role", &report.roles)?;
        self.groups("2.x rows by type", "Type", &report.message_types)?;
        self.sessions()?;
        self.projects()?;
        self.ages()?;
        self.largest_rows()?;
        self.folders()?;
        self.groups("Rows whose session is gone", "Table", &report.without_session)?;
        self.groups(
            "Rows that cannot be read or are of an unknown kind; they always stay",
            "Table",
            &report.unreadable,
        )?;
        self.notes()
    }

    fn head(&mut self) -> Result<(), Failure> {
        let DatabaseFigures { path, bytes, free_bytes, journal_mode, log, holders, .. } =
            &self.report.database;
        self.out.line(printable(&path.to_string_lossy()))?;
        let free = share(*free_bytes, *bytes);
        self.out.line(format_args!("  {}, {} of it free pages ({free})", size(*bytes), size(*free_bytes)))?;
        let log = match log.state {
            LogState::None => "no log beside it".to_owned(),
            LogState::Empty => "an empty log beside it".to_owned(),
            LogState::Filled => format!("a log of {} beside it", size(log.bytes)),
        };
        self.out.line(format_args!("  journal mode {journal_mode}, {log}"))?;
        let sessions = self.report.session_count;
        self.out.line(format_args!(
            "  {} sessions in {} trees",
            count(sessions.total),
            count(sessions.trees)
        ))?;
        for holder in holders.iter().flat_map(|found| &found.holders) {
            let pins = if holder.pins_log() { ", which keeps the log from being reset" } else { "" };
            self.out.line(format_args!(
                "  open in {} (pid {}){pins}",
                printable(&holder.command),
                holder.pid
            ))?;
        }
        Ok(())
    }

    fn classes(&mut self) -> Result<(), Failure> {
        self.out.heading("What could go, each class taken alone")?;
        let mut table = Table::new([
            Column::Whole("Class"),
            Column::Figure("Frees"),
            Column::Figure("Share"),
            Column::Figure("Rows"),
            Column::Figure("Sessions"),
            Column::Text("For the model"),
        ]);
        for figures in &self.report.classes {
            let total = &figures.total;
            table.row([
                figures.class.name().to_owned(),
                freed(total),
                share(total.bytes, self.report.database.bytes),
                count(total.rows_dropped + total.rows_rewritten),
                count(total.sessions),
                effect(figures.model_effect).to_owned(),
            ]);
        }
        self.out.table(&mut table)
    }

    fn tables(&mut self) -> Result<(), Failure> {
        self.out.heading("Tables")?;
        let columns = [
            Column::Whole("Table"),
            Column::Figure("Size"),
            Column::Figure("Share"),
            Column::Figure("Rows"),
            Column::Text(""),
        ];
        let mut table = Table::new(columns);
        let whole = self.report.database.bytes;
        for found in self.report.tables.iter().filter(|found| found.rows > 0) {
            table.row([
                printable(&found.name).into_owned(),
                found.bytes.map_or_else(|| "not looked into".to_owned(), size),
                found.bytes.map(|bytes| share(bytes, whole)).unwrap_or_default(),
                count(found.rows),
                if found.is_known { "" } else { "not OpenCode's; kept" }.to_owned(),
            ]);
        }
        let indexes: ByteCount = self.report.indexes.iter().filter_map(|index| index.page_bytes).sum();
        if !indexes.is_zero() {
            table.row([
                "(indexes)".to_owned(),
                size(indexes),
                share(indexes, whole),
                String::new(),
                String::new(),
            ]);
        }
        self.out.table(&mut table)
    }

    fn groups(&mut self, title: &str, column: &'static str, groups: &[Group]) -> Result<(), Failure> {
        if groups.is_empty() {
            return Ok(());
        }
        self.out.heading(title)?;
        let mut table = Table::new([
            Column::Whole(column),
            Column::Figure("Size"),
            Column::Figure("Share"),
            Column::Figure("Rows"),
        ]);
        for group in groups.iter().take(self.top) {
            table.row([
                printable(&group.name).into_owned(),
                size(group.bytes),
                share(group.bytes, self.report.database.bytes),
                count(group.rows),
            ]);
        }
        self.out.table(&mut table)?;
        self.left_out(groups.len())
    }

    fn sessions(&mut self) -> Result<(), Failure> {
        self.out.heading("Largest sessions, with the subagents below them")?;
        let columns = [
            Column::Whole("Session"),
            Column::Figure("Size"),
            Column::Figure("Events"),
            Column::Figure("Used"),
            Column::Text("Title"),
        ];
        let mut table = Table::new(columns);
        for session in &self.report.sessions {
            table.row([
                printable(&session.id).into_owned(),
                size(session.with_tree.bytes()),
                size(session.with_tree.event_bytes),
                age(session.last_use, self.now),
                printable(session.title.as_deref().unwrap_or_default()).into_owned(),
            ]);
        }
        self.out.table(&mut table)
    }

    fn projects(&mut self) -> Result<(), Failure> {
        self.out.heading("Projects")?;
        let columns = [
            Column::Text("Folder"),
            Column::Figure("Size"),
            Column::Figure("Sessions"),
            Column::Figure("Used"),
            Column::Text("Id"),
        ];
        let mut table = Table::new(columns);
        for project in self.report.projects.iter().take(self.top) {
            table.row([
                printable(project.worktree.as_deref().unwrap_or("?")).into_owned(),
                size(project.rows.bytes()),
                count(project.sessions),
                age(project.last_use, self.now),
                printable(&project.id).into_owned(),
            ]);
        }
        self.out.table(&mut table)?;
        self.left_out(self.report.projects.len())
    }

    fn ages(&mut self) -> Result<(), Failure> {
        self.out.heading("Session trees by last use")?;
        let columns = [
            Column::Whole("Used within"),
            Column::Figure("Size"),
            Column::Figure("Trees"),
            Column::Figure("Sessions"),
        ];
        let mut table = Table::new(columns);
        for figures in self.report.ages.iter().filter(|figures| figures.sessions > 0) {
            let cells = [size(figures.rows.bytes()), count(figures.trees), count(figures.sessions)];
            let [bytes, trees, sessions] = cells;
            table.row([name(&figures.age), bytes, trees, sessions]);
        }
        self.out.table(&mut table)
    }

    fn largest_rows(&mut self) -> Result<(), Failure> {
        self.out.heading("Largest rows")?;
        let columns =
            [Column::Whole("Table"), Column::Figure("Size"), Column::Whole("Id"), Column::Text("Session")];
        let mut table = Table::new(columns);
        for row in &self.report.largest_rows {
            table.row([
                row.table.to_owned(),
                size(row.bytes),
                printable(row.id.as_deref().unwrap_or("(gone)")).into_owned(),
                printable(&row.session).into_owned(),
            ]);
        }
        self.out.table(&mut table)
    }

    fn folders(&mut self) -> Result<(), Failure> {
        if self.report.folders.is_empty() {
            return Ok(());
        }
        self.out.heading("Beside the database")?;
        let mut table = Table::new([
            Column::Whole("Folder"),
            Column::Figure("Size"),
            Column::Figure("Files"),
            Column::Text("Holds"),
        ]);
        for folder in &self.report.folders {
            let mark = if folder.is_complete { "" } else { "≥ " };
            table.row([
                folder.name.to_owned(),
                format!("{mark}{}", size(folder.bytes)),
                format!("{mark}{}", count(folder.files)),
                folder.holds.to_owned(),
            ]);
        }
        self.out.table(&mut table)
    }

    fn notes(&mut self) -> Result<(), Failure> {
        let StatsReport { session_count, recoverable, several_instants, .. } = self.report;
        let mut notes = Vec::new();
        if session_count.both > 0 {
            notes.push(format!(
                "{} in both layouts, {} of 1.x rows among them",
                counted(session_count.both, ["session stands", "sessions stand"]),
                size(session_count.twice_stored_bytes)
            ));
        }
        if recoverable.sessions > 0 {
            notes.push(format!(
                "{} known only by their events ({}): maybe the only copy, `headwater export` saves it",
                counted(recoverable.sessions, ["session is", "sessions are"]),
                size(recoverable.bytes)
            ));
        }
        if self
            .report
            .classes
            .iter()
            .any(|figures| figures.total.precision != headwater_upkeep::plan::Precision::Exact)
        {
            notes.push("up to: an upper bound; --exact reads the payloads".to_owned());
        }
        if *several_instants {
            notes.push(
                "another program has the database open: figures are some milliseconds apart".to_owned(),
            );
        }
        if !notes.is_empty() {
            self.out.line("")?;
        }
        notes.iter().try_for_each(|note| self.out.line(note))
    }

    fn left_out(&mut self, length: usize) -> Result<(), Failure> {
        match length.saturating_sub(self.top) {
            0 => Ok(()),
            rest => self.out.line(format_args!("({rest} more; --top shows them)")),
        }
    }
}
