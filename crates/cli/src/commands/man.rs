//! `headwater man`: manual pages.

use std::fs;
use std::path::PathBuf;

use clap::CommandFactory;

use crate::app::App;
use crate::args::Cli;
use crate::failure::Failure;
use crate::render::text::printable;
use crate::status::Status;

/// Write the manual page to standard output, or the pages of all verbs into a folder.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: headwater man --dir ~/.local/share/man/man1")]
pub(crate) struct Args {
    /// Write headwater.1, headwater-stats.1 and so on into this folder, which is created where it does not exist.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

pub(crate) fn run(args: &Args, app: &mut App) -> Result<Status, Failure> {
    let Some(dir) = &args.dir else {
        let mut page = Vec::new();
        clap_mangen::Man::new(Cli::command())
            .render(&mut page)
            .map_err(|error| Failure::output(&error, Status::Done))?;
        return super::write_document(app, &page);
    };
    let written = fs::create_dir_all(dir).and_then(|()| clap_mangen::generate_to(Cli::command(), dir));
    let shown = dir.display().to_string();
    written.map_err(|error| {
        let message = format_args!("cannot write manual pages into {}: {error}", printable(&shown));
        Failure::new(Status::Other, "io", message).with_hint("name a folder that you may write to")
    })?;
    if app.out.is_json() {
        app.out.result(Status::Done, &serde_json::json!({ "dir": shown }))?;
    } else {
        app.out.line(format_args!("manual pages written into {}", printable(&shown)))?;
    }
    Ok(Status::Done)
}
