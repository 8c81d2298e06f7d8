//! Turning values into text for people. Nothing here prints.

pub(crate) mod listing;
pub(crate) mod plan;
pub(crate) mod size;
pub(crate) mod table;
pub(crate) mod text;
pub(crate) mod time;
