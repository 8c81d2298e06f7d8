//! Tests of a prune of one message.

use std::path::{Path, PathBuf};
use std::time::Duration;

use headwater_model::{MessageId, SessionId, UnixMillis};
use headwater_prune::{Indexes, PruneRequest};
use headwater_testkit::fixture::{Fixture, Layout, NOW, Session, v2};

use super::testing::*;
use super::*;
use crate::WriteDatabase;
use crate::fence::{NoServers, Storage};
use crate::observer::{Observer, Unobserved};
use crate::state::{DatabaseIdentity, StateFile};

mod begun;
mod bulk;
mod crash;
mod disk_full;
mod durable;
mod killed_run;
mod single;
