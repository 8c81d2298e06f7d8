//! Required members of 2.x rows (fact B2).

use super::{Check, Want, name_of};
use crate::object::Object;
use crate::row_error::RowError;

use Want::{Array, Number, Object as Map, String as Text};

pub(super) fn row(check: &mut Check, row_type: &str, row: &Object<'_>) -> Result<(), RowError> {
    if let Some(time) = check.object(row, "time", "time")? {
        check.require(&time, &[("created", Number, "time.created")]);
        check.allow(&time, "completed", Number, "time.completed");
    }
    match row_type {
        "user" => {
            check.require(row, &[("text", Text, "text")]);
            check.allow(row, "files", Array, "files");
        }
        "assistant" => assistant(check, row)?,
        "system" | "synthetic" => check.require(row, &[("text", Text, "text")]),
        "skill" => {
            check.require(row, &[("skill", Text, "skill"), ("name", Text, "name"), ("text", Text, "text")]);
        }
        "shell" => check.require(
            row,
            &[("shellID", Text, "shellID"), ("command", Text, "command"), ("status", Text, "status")],
        ),
        "compaction" => compaction(check, row)?,
        "idle" => check.require(row, &[("outcome", Text, "outcome")]),
        "agent-switched" => check.require(row, &[("agent", Text, "agent")]),
        "model-switched" => model(check, row)?,
        "location-switched" => check.require(row, &[("location", Map, "location")]),
        _ => check.fail("type"),
    }
    Ok(())
}

fn compaction(check: &mut Check, row: &Object<'_>) -> Result<(), RowError> {
    check.require(row, &[("reason", Text, "reason")]);
    match &*name_of(row, "status")? {
        "running" | "completed" => {
            check.require(row, &[("summary", Text, "summary"), ("recent", Text, "recent")]);
            Ok(())
        }
        "failed" => error(check, row, "error", "error.type", "error.message"),
        _ => {
            check.fail("status");
            Ok(())
        }
    }
}

fn model(check: &mut Check, row: &Object<'_>) -> Result<(), RowError> {
    if let Some(model) = check.object(row, "model", "model")? {
        check.require(&model, &[("id", Text, "model.id"), ("providerID", Text, "model.providerID")]);
    }
    Ok(())
}

fn error(
    check: &mut Check,
    row: &Object<'_>,
    path: &'static str,
    kind: &'static str,
    message: &'static str,
) -> Result<(), RowError> {
    if let Some(error) = check.object(row, "error", path)? {
        check.require(&error, &[("type", Text, kind), ("message", Text, message)]);
    }
    Ok(())
}

fn assistant(check: &mut Check, row: &Object<'_>) -> Result<(), RowError> {
    check.require(row, &[("agent", Text, "agent"), ("content", Array, "content")]);
    model(check, row)?;
    let content = row.array("content")?.unwrap_or_default();
    for item in check.objects(content, "content[]")? {
        match &*name_of(&item, "type")? {
            "text" | "reasoning" => check.require(&item, &[("text", Text, "content[].text")]),
            "tool" => tool(check, &item)?,
            _ => check.fail("content[].type"),
        }
    }
    Ok(())
}

fn tool(check: &mut Check, item: &Object<'_>) -> Result<(), RowError> {
    check.require(item, &[("id", Text, "content[].id"), ("name", Text, "content[].name")]);
    if let Some(time) = check.object(item, "time", "content[].time")? {
        check.require(&time, &[("created", Number, "content[].time.created")]);
    }
    let Some(state) = check.object(item, "state", "content[].state")? else { return Ok(()) };
    match &*name_of(&state, "status")? {
        "streaming" => check.require(&state, &[("input", Text, "content[].state.input")]),
        "running" => check.require(
            &state,
            &[("input", Map, "content[].state.input"), ("metadata", Map, "content[].state.metadata")],
        ),
        "completed" => {
            check.require(&state, &[("input", Map, "content[].state.input")]);
            result(check, &state, true)?;
        }
        "error" => {
            check.require(&state, &[("input", Map, "content[].state.input")]);
            error(
                check,
                &state,
                "content[].state.error",
                "content[].state.error.type",
                "content[].state.error.message",
            )?;
            result(check, &state, false)?;
        }
        _ => check.fail("content[].state.status"),
    }
    Ok(())
}

/// `content` of a tool's state, which may be missing after an error, and is never empty.
fn result(check: &mut Check, state: &Object<'_>, is_required: bool) -> Result<(), RowError> {
    check.allow(state, "metadata", Map, "content[].state.metadata");
    let Some(value) = state.get("content") else {
        if is_required {
            check.fail("content[].state.content");
        }
        return Ok(());
    };
    let items = value.array()?.unwrap_or_default();
    if items.is_empty() {
        check.fail("content[].state.content");
    }
    for item in check.objects(items, "content[].state.content[]")? {
        match &*name_of(&item, "type")? {
            "text" => check.require(&item, &[("text", Text, "content[].state.content[].text")]),
            "file" => check.require(
                &item,
                &[
                    ("uri", Text, "content[].state.content[].uri"),
                    ("mime", Text, "content[].state.content[].mime"),
                ],
            ),
            _ => check.fail("content[].state.content[].type"),
        }
    }
    Ok(())
}
