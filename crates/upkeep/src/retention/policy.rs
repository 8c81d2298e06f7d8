//! The policy file, `retention.toml`.

use std::fs::File as FileHandle;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use bytesize::ByteSize;
use figment::Figment;
use figment::providers::{Format, Toml};
use headwater_model::{ByteCount, ProjectId, SessionId, UnixMillis};
use headwater_prune::{Class, Classes, UnknownClass};
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::state::hex;

/// Longest policy that is read: room for many thousand pins.
pub(super) const POLICY_BYTES_MAX: u64 = 1 << 20;

/// Why a policy cannot be used. Nothing is removed by a policy that is not understood whole.
#[derive(Debug, thiserror::Error)]
#[error("retention policy {}: {kind}", .path.display())]
pub struct PolicyError {
    /// The policy file.
    pub path: PathBuf,
    /// What is wrong.
    #[source]
    pub kind: PolicyErrorKind,
}

/// What is wrong with a policy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyErrorKind {
    /// Not TOML, an unknown key, or a value of another type.
    #[error("{0}")]
    Syntax(Box<figment::Error>),
    /// The file cannot be read.
    #[error("{0}")]
    Io(io::Error),
    /// A folder, pipe or device: reading it may not end.
    #[error("is no file")]
    NotAFile,
    /// Longer than any policy.
    #[error("is longer than a mebibyte")]
    TooLong,
    /// An age is not a number and a unit, or not longer than zero, or longer than time.
    #[error("older_than is not an age such as \"30d\"")]
    Age,
    /// A size is not a number and a unit.
    #[error("size_cap is not a size such as \"20 GiB\"")]
    Size,
    /// A class has no such name.
    #[error("classes: {0}")]
    Class(#[from] UnknownClass),
    /// Whole sessions would go and nothing says which.
    #[error("class sessions needs older_than, size_cap or keep_last")]
    EverySession,
}

/// How long ago something was last used, at least: `30d`, `2 weeks`, `6mo`.
#[derive(Clone, Copy, Debug)]
pub struct Age(Span);

impl FromStr for Age {
    type Err = PolicyErrorKind;

    fn from_str(text: &str) -> Result<Self, PolicyErrorKind> {
        let span: Span = text.trim().parse().map_err(|_| PolicyErrorKind::Age)?;
        if span.is_positive() { Ok(Self(span)) } else { Err(PolicyErrorKind::Age) }
    }
}

impl Age {
    /// The instant that lies this age before `now`. Days are 24 hours, months and years those of the calendar in UTC. `None` where that
    /// is before 1970.
    pub fn before(self, now: UnixMillis) -> Option<UnixMillis> {
        let instant = Timestamp::from_millisecond(now.get()).ok()?;
        let before = instant.to_zoned_datetime(TimeZone::UTC).checked_sub(self.0).ok()?;
        let ms = before.timestamp().as_millisecond();
        (ms >= 0).then_some(UnixMillis::new(ms))
    }
}

/// What a person wants kept, read from `retention.toml`.
#[derive(Clone, Debug)]
pub struct Policy {
    /// Whether [`super::run`] does anything.
    pub enabled: bool,
    /// Trees last used longer ago go.
    pub older_than: Option<Age>,
    /// The least recently used trees go until the rest holds at most this much row data.
    pub size_cap: Option<ByteCount>,
    /// The most recently used this many trees of each project stay.
    pub keep_last: Option<u32>,
    /// Only trees of these projects; empty means every project.
    pub projects: Vec<ProjectId>,
    /// Sessions that stay, with their trees.
    pub pins: Vec<SessionId>,
    /// What goes of the chosen trees.
    pub classes: Classes,
    /// Whether archived trees may be chosen.
    pub archived: bool,
    digest: String,
}

/// The file as it is written.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
struct File {
    enabled: bool,
    older_than: Option<String>,
    size_cap: Option<String>,
    keep_last: Option<u32>,
    projects: Vec<ProjectId>,
    pins: Vec<SessionId>,
    classes: Option<Vec<String>>,
    archived: bool,
}

impl Policy {
    /// Reads the policy at `path`. Without a file retention is off.
    ///
    /// # Errors
    /// [`PolicyError`] where the file cannot be read, or is not understood whole.
    pub fn load(path: &Path) -> Result<Self, PolicyError> {
        let fail = |kind| PolicyError { path: path.to_owned(), kind };
        let text = match read(path) {
            Err(PolicyErrorKind::Io(error)) if error.kind() == io::ErrorKind::NotFound => String::new(),
            text => text.map_err(fail)?,
        };
        Self::parse(&text).map_err(fail)
    }

    fn parse(text: &str) -> Result<Self, PolicyErrorKind> {
        let file: File = Figment::from(Toml::string(text))
            .extract()
            .map_err(|error| PolicyErrorKind::Syntax(Box::new(error)))?;
        let digest = serde_json::to_vec(&file).map(|json| hex(&Sha256::digest(&json))).unwrap_or_default();
        let classes = match file.classes {
            Some(names) => names.iter().map(|name| name.parse()).collect::<Result<Classes, _>>()?,
            None => Classes::NONE.with(Class::SupersededEvents),
        };
        let policy = Self {
            enabled: file.enabled,
            older_than: file.older_than.as_deref().map(str::parse).transpose()?,
            size_cap: file.size_cap.as_deref().map(size).transpose()?,
            keep_last: file.keep_last,
            projects: file.projects,
            pins: file.pins,
            classes,
            archived: file.archived,
            digest,
        };
        if policy.classes.has(Class::Sessions) && !policy.has_limit() {
            return Err(PolicyErrorKind::EverySession);
        }
        Ok(policy)
    }

    /// Whether anything says which trees are meant; without a limit every tree is.
    pub fn has_limit(&self) -> bool {
        self.older_than.is_some() || self.size_cap.is_some() || self.keep_last.is_some()
    }

    /// Tells this policy from every other: a changed policy is previewed again before it removes anything.
    pub fn digest(&self) -> &str {
        &self.digest
    }
}

/// The text of a file of ordinary length. Whether it is one is asked first: to open a pipe waits for its writer.
fn read(path: &Path) -> Result<String, PolicyErrorKind> {
    if !path.metadata().map_err(PolicyErrorKind::Io)?.is_file() {
        return Err(PolicyErrorKind::NotAFile);
    }
    let mut text = String::new();
    let file = FileHandle::open(path).map_err(PolicyErrorKind::Io)?;
    file.take(POLICY_BYTES_MAX + 1).read_to_string(&mut text).map_err(PolicyErrorKind::Io)?;
    if text.len() as u64 > POLICY_BYTES_MAX { Err(PolicyErrorKind::TooLong) } else { Ok(text) }
}

fn size(text: &str) -> Result<ByteCount, PolicyErrorKind> {
    text.parse::<ByteSize>().map(|size| ByteCount::new(size.as_u64())).map_err(|_| PolicyErrorKind::Size)
}
