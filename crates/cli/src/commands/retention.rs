//! `headwater retention plan|run`: keeps a database small by a policy file.

use std::path::Path;

use clap::Subcommand;
use headwater_model::DAY_MS;
use headwater_upkeep::fence::OpenCodeServers;
use headwater_upkeep::prune::PruneOptions;
use headwater_upkeep::retention::{self, Choice, Outcome, Policy, RetentionPlan, RetentionReport, Skip};
use headwater_upkeep::{ReadDatabase, WriteDatabase};
use serde::Serialize;

use crate::app::App;
use crate::args::confirm::ConfirmArgs;
use crate::args::policy::PolicyArgs;
use crate::args::state::StateArgs;
use crate::clock;
use crate::confirm::confirm;
use crate::failure::Failure;
use crate::output::Output;
use crate::progress::Watch;
use crate::render::plan::{self as plan_view, PlanView};
use crate::render::size::{count, counted, size};
use crate::render::table::{Column, Table};
use crate::render::text::printable;
use crate::render::{removal, time};
use crate::status::Status;

/// Keep the database small by a policy file, off until the policy says `enabled = true`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

const EXAMPLE: &str = r#"A policy, with every key but `enabled` optional:
  enabled = true
  older_than = "90d"           # trees last used longer ago
  size_cap = "20 GiB"          # or the least recently used, until the rest fits
  keep_last = 10               # these many of each project stay
  projects = ["..."]           # only these
  pins = ["ses_..."]           # never these
  classes = ["superseded-events", "technical"]
  archived = false             # whether archived sessions may be chosen
The first run with a policy shows its plan and removes nothing."#;

/// What to do with the policy.
#[derive(Clone, Debug, Subcommand)]
enum Verb {
    /// Show what the policy would remove, and change nothing.
    Plan {
        #[command(flatten)]
        policy: PolicyArgs,
    },
    /// Remove what the policy chooses. Its first run only shows it.
    Run {
        #[command(flatten)]
        policy: PolicyArgs,
        #[command(flatten)]
        state: StateArgs,
        #[command(flatten)]
        confirm: ConfirmArgs,
    },
}

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Status, Failure> {
    match &args.verb {
        Verb::Plan { policy } => {
            let (path, policy) = policy.load()?;
            let planned = planned(&policy, app)?;
            let status = if planned.is_empty() { Status::Nothing } else { Status::Done };
            if app.out.is_json() {
                app.out.result(status, &PolicyPlan::new(&policy, &planned))?;
            } else {
                show_plan(&path, &policy, &planned, &mut app.out)?;
            }
            Ok(status)
        }
        Verb::Run { policy, state, confirm } => {
            let (path, policy) = policy.load()?;
            apply(&path, &policy, state, *confirm, app)
        }
    }
}

/// What a program learns of a policy's plan.
#[derive(Serialize)]
struct PolicyPlan<'a> {
    enabled: bool,
    choices: &'a [Choice],
    #[serde(flatten)]
    plan: PlanView<'a>,
}

impl<'a> PolicyPlan<'a> {
    fn new(policy: &Policy, planned: &'a RetentionPlan) -> Self {
        Self { enabled: policy.enabled, choices: &planned.choices, plan: PlanView::from(&planned.plan) }
    }
}

fn planned(policy: &Policy, app: &App) -> Result<RetentionPlan, Failure> {
    let database = ReadDatabase::open(&app.database()?)?;
    let watch = Watch::new(app.cancel.clone());
    let planned = retention::plan(database.connection(), database.schema(), policy, clock::now(), &watch);
    watch.end();
    database.finish()?;
    Ok(planned?)
}

fn apply(
    path: &Path,
    policy: &Policy,
    state: &StateArgs,
    confirmed: ConfirmArgs,
    app: &mut App,
) -> Result<Status, Failure> {
    let planned = planned(policy, app)?;
    if app.out.is_json() {
        app.out.item("plan", &PolicyPlan::new(policy, &planned))?;
    } else {
        show_plan(path, policy, &planned, &mut app.out)?;
    }
    if policy.enabled && !planned.is_empty() {
        confirm(app, confirmed.yes, "Let the policy remove this?")?;
    }
    let database = WriteDatabase::open(&app.database()?, headwater_upkeep::LOCK_WAIT)?;
    let mut state = state.open()?;
    let probe = OpenCodeServers::new(database.file().path(), super::SERVER_TIMEOUT);
    let watch = Watch::new(app.cancel.clone());
    let options = PruneOptions::batch();
    let ran = retention::run(&database, &mut state, policy, &probe, options, clock::now(), &watch, |_| ());
    watch.end();
    let report = ran?;
    let status = status_of(&report);
    if app.out.is_json() {
        app.out.result(status, &report)?;
    } else {
        show_report(&report, &mut app.out)?;
    }
    Ok(status)
}

fn status_of(report: &RetentionReport) -> Status {
    match report.outcome {
        Outcome::Done { .. } => Status::Done,
        Outcome::Previewed | Outcome::Skipped(Skip::Disabled | Skip::NothingChosen | Skip::NothingFreed) => {
            Status::Nothing
        }
        Outcome::Skipped(Skip::AllKept | Skip::Blocked) => Status::Blocked,
        // Cancelled, and what the enum may grow by in another release of the library.
        Outcome::Skipped(_) => Status::Other,
    }
}

fn show_plan(path: &Path, policy: &Policy, planned: &RetentionPlan, out: &mut Output) -> Result<(), Failure> {
    let path = path.to_string_lossy();
    let state =
        if policy.enabled { "enabled" } else { "off: nothing is removed until it says enabled = true" };
    out.line(format_args!("policy {}: {state}", printable(&path)))?;
    let mut table = Table::new([
        Column::Whole("Session"),
        Column::Figure("With its tree"),
        Column::Figure("Size"),
        Column::Figure("Used"),
        Column::Text("Kept because"),
    ]);
    let now = planned.selection.now;
    for choice in planned.choices.iter().take(CHOICES_MAX) {
        table.row([
            printable(choice.session.as_str()).into_owned(),
            count(choice.sessions),
            choice.bytes.map(size).unwrap_or_default(),
            time::age(choice.last_use, now),
            choice.kept.map(|reason| reason.to_string()).unwrap_or_default(),
        ]);
    }
    let trees = planned.choices.len() as u64;
    out.heading(format_args!(
        "{} chosen or kept for a reason",
        counted(trees, ["session tree is", "session trees are"])
    ))?;
    out.table(&mut table)?;
    if planned.choices.len() > CHOICES_MAX {
        out.line(format_args!("({} more; --json has them all)", planned.choices.len() - CHOICES_MAX))?;
    }
    out.heading("What goes")?;
    plan_view::show(&planned.plan, out)
}

/// Most trees that a person is shown.
const CHOICES_MAX: usize = 50;

fn show_report(report: &RetentionReport, out: &mut Output) -> Result<(), Failure> {
    if let Some(pruned) = &report.prune {
        removal::show(pruned, out)?;
    }
    match report.outcome {
        // The prune's own report says what became free.
        Outcome::Done { .. } => {}
        Outcome::Previewed => {
            out.line("\nthe first run with this policy removes nothing; the next one does")?;
        }
        Outcome::Skipped(skip) => out.line(format_args!("\nskipped: {skip}"))?,
    }
    match report.last_success_ms_ago {
        Some(ms) => {
            let days = u64::try_from(ms / DAY_MS).unwrap_or_default();
            out.line(format_args!("last success {} ago", counted(days, ["day", "days"])))
        }
        None => out.line("no run has freed anything yet"),
    }
}
