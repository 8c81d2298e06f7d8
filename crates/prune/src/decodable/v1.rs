//! Required members of 1.x rows (fact A3).

use super::{Check, Want, name_of};
use crate::object::Object;
use crate::row_error::RowError;

use Want::{Array, Bool, Number, Object as Map, String as Text};

pub(super) fn part(check: &mut Check, part: &Object<'_>) -> Result<(), RowError> {
    match &*name_of(part, "type")? {
        "text" => check.require(part, &[("text", Text, "text")]),
        "reasoning" => {
            check.require(part, &[("text", Text, "text")]);
            if let Some(time) = check.object(part, "time", "time")? {
                check.require(&time, &[("start", Number, "time.start")]);
            }
        }
        "tool" => tool(check, part)?,
        "step-start" => {}
        "step-finish" => {
            check.require(
                part,
                &[("reason", Text, "reason"), ("cost", Number, "cost"), ("tokens", Map, "tokens")],
            );
        }
        "patch" => check.require(part, &[("hash", Text, "hash"), ("files", Array, "files")]),
        "file" => check.require(part, &[("mime", Text, "mime"), ("url", Text, "url")]),
        "compaction" => check.require(part, &[("auto", Bool, "auto")]),
        "subtask" => check.require(
            part,
            &[("prompt", Text, "prompt"), ("description", Text, "description"), ("agent", Text, "agent")],
        ),
        "agent" => check.require(part, &[("name", Text, "name")]),
        "snapshot" => check.require(part, &[("snapshot", Text, "snapshot")]),
        "retry" => check
            .require(part, &[("attempt", Number, "attempt"), ("error", Map, "error"), ("time", Map, "time")]),
        _ => check.fail("type"),
    }
    Ok(())
}

fn tool(check: &mut Check, part: &Object<'_>) -> Result<(), RowError> {
    check.require(part, &[("callID", Text, "callID"), ("tool", Text, "tool")]);
    let Some(state) = check.object(part, "state", "state")? else { return Ok(()) };
    check.require(&state, &[("input", Map, "state.input")]);
    match &*name_of(&state, "status")? {
        "pending" => check.require(&state, &[("raw", Text, "state.raw")]),
        "running" => {
            time(check, &state, false)?;
            check.allow(&state, "metadata", Map, "state.metadata");
        }
        "completed" => {
            check.require(
                &state,
                &[
                    ("output", Text, "state.output"),
                    ("title", Text, "state.title"),
                    ("metadata", Map, "state.metadata"),
                ],
            );
            time(check, &state, true)?;
            attachments(check, &state)?;
        }
        "error" => {
            check.require(&state, &[("error", Text, "state.error")]);
            time(check, &state, true)?;
            check.allow(&state, "metadata", Map, "state.metadata");
        }
        _ => check.fail("state.status"),
    }
    Ok(())
}

fn time(check: &mut Check, state: &Object<'_>, is_over: bool) -> Result<(), RowError> {
    let Some(time) = check.object(state, "time", "state.time")? else { return Ok(()) };
    check.require(&time, &[("start", Number, "state.time.start")]);
    if is_over {
        check.require(&time, &[("end", Number, "state.time.end")]);
    }
    Ok(())
}

fn attachments(check: &mut Check, state: &Object<'_>) -> Result<(), RowError> {
    check.allow(state, "attachments", Array, "state.attachments");
    let attachments = state.array("attachments")?.unwrap_or_default();
    for file in check.objects(attachments, "state.attachments[]")? {
        check.require(
            &file,
            &[("mime", Text, "state.attachments[].mime"), ("url", Text, "state.attachments[].url")],
        );
        if !file.is("type", "file") {
            check.fail("state.attachments[].type");
        }
    }
    Ok(())
}

pub(super) fn message(check: &mut Check, message: &Object<'_>) -> Result<(), RowError> {
    if let Some(time) = check.object(message, "time", "time")? {
        check.require(&time, &[("created", Number, "time.created")]);
        check.allow(&time, "completed", Number, "time.completed");
    }
    match &*name_of(message, "role")? {
        "user" => user(check, message),
        "assistant" => assistant(check, message),
        _ => {
            check.fail("role");
            Ok(())
        }
    }
}

fn user(check: &mut Check, message: &Object<'_>) -> Result<(), RowError> {
    check.require(message, &[("agent", Text, "agent")]);
    if let Some(model) = check.object(message, "model", "model")? {
        check
            .require(&model, &[("providerID", Text, "model.providerID"), ("modelID", Text, "model.modelID")]);
    }
    if let Some(summary) = message.object("summary")? {
        check.require(&summary, &[("diffs", Array, "summary.diffs")]);
    }
    Ok(())
}

fn assistant(check: &mut Check, message: &Object<'_>) -> Result<(), RowError> {
    check.require(
        message,
        &[
            ("parentID", Text, "parentID"),
            ("modelID", Text, "modelID"),
            ("providerID", Text, "providerID"),
            ("mode", Text, "mode"),
            ("agent", Text, "agent"),
            ("cost", Number, "cost"),
        ],
    );
    if let Some(path) = check.object(message, "path", "path")? {
        check.require(&path, &[("cwd", Text, "path.cwd"), ("root", Text, "path.root")]);
    }
    let Some(tokens) = check.object(message, "tokens", "tokens")? else { return Ok(()) };
    check.require(
        &tokens,
        &[
            ("input", Number, "tokens.input"),
            ("output", Number, "tokens.output"),
            ("reasoning", Number, "tokens.reasoning"),
            ("cache", Map, "tokens.cache"),
        ],
    );
    Ok(())
}
