//! Plans over small databases, one case per rule.

use std::collections::BTreeMap;

use headwater_model::{DAY_MS, SessionId, UnixMillis};
use headwater_prune::{Class, Classes, KeptReason};
use serde_json::json;

use super::{Plan, PlanErrorKind, Precision, Selection, compute};
use crate::observer::Unobserved;
use crate::survey::sample::{NOW, Sample, reasoning, running, text, tool, tool_with};

mod content;
mod events;
mod rows_2x;
mod trees;

fn select(classes: &[Class]) -> Selection {
    Selection::new(classes.iter().copied().collect::<Classes>(), UnixMillis::new(NOW))
}

fn older_than(days: i64) -> Selection {
    Selection { used_before: Some(UnixMillis::new(NOW - days * DAY_MS)), ..select(&[Class::Sessions]) }
}

fn plan(sample: &Sample, selection: &Selection) -> Plan {
    compute(&sample.db, &sample.schema(), selection, &Unobserved).unwrap()
}

fn ids(sample: &Sample, table: &str, rows: Option<&super::RowIds>) -> Vec<String> {
    let mut found: Vec<String> = rows
        .into_iter()
        .flatten()
        .map(|row| {
            let sql = format!("SELECT id FROM {table} WHERE rowid = ?1");
            sample.db.query_row(&sql, [row.cast_signed()], |row| row.get(0)).unwrap()
        })
        .collect();
    found.sort();
    found
}

fn dropped(sample: &Sample, plan: &Plan, table: &'static str, class: Class) -> Vec<String> {
    ids(sample, table, plan.fates.get(table).and_then(|fate| fate.dropped.get(&class)))
}

fn rewritten(sample: &Sample, plan: &Plan, table: &'static str, class: Class) -> Vec<String> {
    ids(sample, table, plan.fates.get(table).and_then(|fate| fate.rewritten.get(&class)))
}

fn kept(plan: &Plan) -> Vec<(String, Option<String>, KeptReason)> {
    plan.kept.iter().map(|kept| (kept.session.to_string(), kept.message.clone(), kept.reason)).collect()
}

/// Bytes that rows of `table` hold in `data`.
fn bytes_of(sample: &Sample, table: &str, ids: &[&str]) -> u64 {
    ids.iter()
        .map(|id| {
            let sql = format!("SELECT octet_length(data) FROM {table} WHERE id = ?1");
            sample.db.query_row(&sql, [id], |row| row.get::<_, i64>(0)).unwrap().cast_unsigned()
        })
        .sum()
}

/// A caller that wants to stop.
struct Cancelled;

impl crate::observer::Observer for Cancelled {
    fn is_cancelled(&self) -> bool {
        true
    }
}

#[test]
fn what_does_not_exist_is_an_error() {
    let sample = Sample::v1();
    sample.session("session", "ses_a", None, 0).event("ses_gone", "session.created.1", "{}");
    let failing = |selection: &Selection| {
        compute(&sample.db, &sample.schema(), selection, &Unobserved).unwrap_err().kind
    };
    let pinning = |id| Selection { pins: vec![SessionId::new(id).unwrap()], ..select(&[Class::Events]) };
    assert!(matches!(failing(&pinning("ses_none")), PlanErrorKind::UnknownSession(id) if id == "ses_none"));
    for id in ["ses_a", "ses_gone"] {
        compute(&sample.db, &sample.schema(), &pinning(id), &Unobserved).unwrap();
    }
    for id in ["ses_none", "ses_gone"] {
        let selection = Selection { sessions: vec![SessionId::new(id).unwrap()], ..select(&[Class::Events]) };
        assert!(matches!(failing(&selection), PlanErrorKind::UnknownSession(unknown) if unknown == id));
    }
    let project = Selection { projects: vec!["prj_none".parse().unwrap()], ..select(&[Class::Events]) };
    assert!(matches!(failing(&project), PlanErrorKind::UnknownProject(_)));
    assert!(matches!(failing(&select(&[Class::Sessions])), PlanErrorKind::EverySession));
    let cancelled = compute(&sample.db, &sample.schema(), &select(&[Class::Events]), &Cancelled).unwrap_err();
    assert!(matches!(cancelled.kind, PlanErrorKind::Cancelled));
    assert!(sample.db.is_autocommit());
}

#[test]
fn a_plan_inside_a_transaction_leaves_it_open() {
    let sample = events::growing_copies();
    sample.sql("BEGIN");
    plan(&sample, &select(&[Class::SupersededEvents, Class::Events]));
    assert!(!sample.db.is_autocommit());
}
