//! Where the retention policy is.

use std::env;
use std::path::{Path, PathBuf};

use clap::Args;
use headwater_upkeep::retention::Policy;

use crate::failure::Failure;

/// The policy file.
#[derive(Clone, Debug, Args)]
pub(crate) struct PolicyArgs {
    /// The policy [default: `$XDG_CONFIG_HOME/headwater/retention.toml`, else `~/.config/headwater/retention.toml`].
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
}

impl PolicyArgs {
    /// Where the policy is. A policy that is named must exist; without the default file retention is off.
    pub(crate) fn load(&self) -> Result<(PathBuf, Policy), Failure> {
        let path = self.policy.clone().map_or_else(default_path, Ok)?;
        if self.policy.is_some() && !path.exists() {
            let shown = path.to_string_lossy();
            return Err(Failure::usage(format_args!("no retention policy at {shown}")));
        }
        let policy = Policy::load(&path)?;
        Ok((path, policy))
    }
}

fn default_path() -> Result<PathBuf, Failure> {
    let set = |name: &str| env::var_os(name).filter(|value| !value.is_empty());
    let config = match (set("XDG_CONFIG_HOME"), set("HOME")) {
        (Some(config), _) => PathBuf::from(config),
        (None, Some(home)) => Path::new(&home).join(".config"),
        (None, None) => {
            return Err(Failure::usage(
                "neither HOME nor XDG_CONFIG_HOME is set: name the policy with --policy",
            ));
        }
    };
    Ok(config.join("headwater/retention.toml"))
}
