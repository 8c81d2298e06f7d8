//! A plan as a table: what goes, how much that frees, what it changes for the model, and what stays although it was selected.

use std::collections::BTreeMap;

use headwater_prune::{Class, KeptReason, ModelEffect};
use headwater_upkeep::plan::{ClassTotal, Kept, Plan, Precision};
use serde::Serialize;

use super::size::{count, size};
use super::table::{Column, Table};
use crate::failure::Failure;
use crate::output::Output;

/// What a program learns of a plan.
#[derive(Serialize)]
pub(crate) struct PlanView<'a> {
    totals: &'a BTreeMap<Class, ClassTotal>,
    kept: &'a [Kept],
    kept_count: u64,
}

impl<'a> From<&'a Plan> for PlanView<'a> {
    fn from(plan: &'a Plan) -> Self {
        Self { totals: &plan.totals, kept: &plan.kept, kept_count: plan.kept_count }
    }
}

/// Whether the plan changes nothing at all.
pub(crate) fn is_empty(plan: &Plan) -> bool {
    plan.totals.values().all(|total| total.rows_dropped == 0 && total.rows_rewritten == 0)
}

/// Shows `plan` to a person.
pub(crate) fn show(plan: &Plan, out: &mut Output) -> Result<(), Failure> {
    show_totals(&plan.totals, out)?;
    show_kept(plan, out)
}

/// Shows what each class takes.
pub(crate) fn show_totals(totals: &BTreeMap<Class, ClassTotal>, out: &mut Output) -> Result<(), Failure> {
    if totals.is_empty() {
        return out.line("nothing goes");
    }
    let mut table = Table::new([
        Column::Whole("Class"),
        Column::Figure("Frees"),
        Column::Figure("Rows removed"),
        Column::Figure("Rows shortened"),
        Column::Figure("Sessions"),
        Column::Text("For the model"),
    ]);
    for (class, total) in totals {
        table.row([
            class.name().to_owned(),
            freed(total),
            count(total.rows_dropped),
            count(total.rows_rewritten),
            count(total.sessions),
            effect(class.model_effect()).to_owned(),
        ]);
    }
    out.table(&mut table)
}

/// The bytes of a total, marked where they are an upper bound.
pub(crate) fn freed(total: &ClassTotal) -> String {
    let mark = match total.precision {
        Precision::Exact => "",
        Precision::UpperBound => "up to ",
    };
    format!("{mark}{}", size(total.bytes))
}

/// What a class changes for the model, in words.
pub(crate) const fn effect(effect: ModelEffect) -> &'static str {
    match effect {
        ModelEffect::Nothing => "nothing changes",
        ModelEffect::ShorterResults => "shorter results",
        ModelEffect::CallsVanish => "calls vanish",
        ModelEffect::SessionsVanish => "sessions vanish",
    }
}

fn show_kept(plan: &Plan, out: &mut Output) -> Result<(), Failure> {
    if plan.kept_count == 0 {
        return Ok(());
    }
    let mut reasons: BTreeMap<KeptReason, u64> = BTreeMap::new();
    for kept in &plan.kept {
        *reasons.entry(kept.reason).or_default() += 1;
    }
    out.heading(format_args!("Kept although selected: {}", count(plan.kept_count)))?;
    let mut table = Table::new([Column::Figure("How many"), Column::Text("Why")]);
    for (reason, number) in reasons {
        table.row([count(number), reason.to_string()]);
    }
    out.table(&mut table)?;
    let listed = plan.kept.len() as u64;
    if plan.kept_count > listed {
        out.line(format_args!("(reasons of the first {})", count(listed)))?;
    }
    Ok(())
}
