//! Where receipts are kept.

use std::path::PathBuf;

use clap::Args;
use headwater_upkeep::locate::Environment;
use headwater_upkeep::state::StateFile;

use crate::failure::Failure;
use crate::status::Status;

/// The place of Headwater's own file.
#[derive(Clone, Debug, Args)]
pub(crate) struct StateArgs {
    /// The folder of the file of receipts [default: the folder that `headwater locate` names].
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
}

/// The name of the file of receipts.
const RECEIPTS: &str = "receipts.db";

impl StateArgs {
    /// Where the file of receipts is, or would be.
    pub(crate) fn path(&self) -> Result<PathBuf, Failure> {
        if let Some(folder) = &self.state {
            return Ok(folder.join(RECEIPTS));
        }
        let places = Environment::of_process().places().map_err(|error| {
            Failure::new(Status::Usage, "no-home", error)
                .with_hint("name a folder for the receipts with --state")
        })?;
        Ok(places.state_folder.join(RECEIPTS))
    }

    /// Opens the file of receipts, and makes it where there is none.
    pub(crate) fn open(&self) -> Result<StateFile, Failure> {
        Ok(StateFile::open(&self.path()?)?)
    }
}
