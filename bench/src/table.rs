//! The table that is printed.

use std::fmt;

use crate::side::Side;

/// Bytes of one mebibyte.
const MIB: u64 = 1 << 20;

/// One line of the table.
pub(crate) enum Line {
    /// Two sides and the largest ratio wanted.
    Ratio { what: String, peer: &'static str, ours: Side, theirs: Side, goal: f64 },
    /// Two sides without a goal, so that a stricter comparison is seen as well.
    Compared { what: String, peer: &'static str, ours: Side, theirs: Side },
    /// A figure of ours and the largest value wanted.
    Limit { what: String, figure: f64, unit: &'static str, goal: f64 },
    /// A figure of ours and the smallest value wanted.
    AtLeast { what: String, figure: f64, unit: &'static str, goal: f64 },
}

impl Line {
    /// Peak memory of a side of ours, against the limit for every command.
    pub(crate) fn peak(what: &str, bytes: u64, goal_mib: f64) -> Self {
        Self::Limit {
            what: format!("peak memory of {what}"),
            figure: mib(bytes),
            unit: "MiB",
            goal: goal_mib,
        }
    }

    /// Whether the goal is reached, by the best runs of both sides.
    pub(crate) fn is_met(&self) -> bool {
        match self {
            Self::Ratio { ours, theirs, goal, .. } => ours.best() / theirs.best() <= *goal,
            Self::Limit { figure, goal, .. } => figure <= goal,
            Self::AtLeast { figure, goal, .. } => figure >= goal,
            Self::Compared { .. } => true,
        }
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = if self.is_met() { "yes" } else { "**no**" };
        match self {
            Self::Ratio { what, peer, ours, theirs, goal } => {
                write_sides(f, what, peer, [ours, theirs])?;
                write!(f, " {goal} | {mark} | {:.0} |", mib(ours.peak_bytes))
            }
            Self::Compared { what, peer, ours, theirs } => {
                write_sides(f, what, peer, [ours, theirs])?;
                write!(f, " | | {:.0} |", mib(ours.peak_bytes))
            }
            Self::Limit { what, figure, unit, goal } | Self::AtLeast { what, figure, unit, goal } => {
                write!(f, "| {what} | | {figure:.1} {unit} | | | {goal} {unit} | {mark} | |")
            }
        }
    }
}

/// The cells of both sides and their ratio.
fn write_sides(
    f: &mut fmt::Formatter<'_>,
    what: &str,
    peer: &str,
    [ours, theirs]: [&Side; 2],
) -> fmt::Result {
    write!(
        f,
        "| {what} | {peer} | {:.3} / {:.3} | {:.3} / {:.3} | **{:.3}** / {:.3} |",
        ours.best(),
        ours.median(),
        theirs.best(),
        theirs.median(),
        ours.best() / theirs.best(),
        ours.median() / theirs.median(),
    )
}

/// The head of the table, under a line that says what was measured.
pub(crate) fn head(measured: &str) -> String {
    format!(
        "{measured}; seconds as best / median.\n\n\
         | what | against | headwater | peer | ratio | goal | met | peak MiB |\n|---|---|---|---|---|---|---|---|"
    )
}

#[expect(clippy::cast_precision_loss, reason = "a figure of a table has few digits")]
pub(crate) fn mib(bytes: u64) -> f64 {
    bytes as f64 / MIB as f64
}
