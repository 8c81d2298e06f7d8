//! Turning values into text for people. Nothing here prints.

pub(crate) mod listing;
pub(crate) mod locks;
pub(crate) mod name;
pub(crate) mod plan;
pub(crate) mod rebuilt;
pub(crate) mod removal;
pub(crate) mod size;
pub(crate) mod table;
pub(crate) mod text;
pub(crate) mod time;
