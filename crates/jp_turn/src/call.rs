//! One call of a tool, from what the model wrote to the result that it is given.

use jp_conversation::{ToolCallRequest, ToolCallResponse};
use jp_llm::INVALID_ARGUMENTS;
use jp_tool::{ContentBlock, ToolResponse};
use serde_json::{Map, Value};

use crate::{
    Decision, Permission, PermissionRequest, Preview, Schema, Source, Tool, Toolbox, builtin, calls::Line,
    local, question, record, stateful,
};

/// What a call will do: shown before it does.
pub(crate) struct Plan<'a> {
    /// For the person who is asked.
    pub(crate) preview: Preview,
    /// Whether the person is asked even if the tool runs unattended.
    pub(crate) is_sensitive: bool,
    /// Does it, given the answers to the tool's questions so far.
    pub(crate) act: Act<'a>,
}

pub(crate) type Act<'a> = Box<dyn FnMut(&Map<String, Value>, &Line) -> ToolResponse + 'a>;

/// Runs a call to its end; whatever goes wrong is in the result.
pub(crate) fn run(call: &ToolCallRequest, toolbox: &Toolbox, line: &Line) -> ToolCallResponse {
    let attempt = || -> Result<ToolCallResponse, String> {
        let tool = toolbox.find(&call.name)?;
        // It may have waited for others.
        wanted(line)?;
        let Permitted { mut plan, edited } = permitted(call, tool, toolbox, line)?;
        wanted(line)?;
        let mut response = question::answered(call, tool, toolbox, line, &mut plan.act);
        if let Some(arguments) = edited {
            let arguments = Value::Object(arguments);
            let note = format!("The person changed the arguments; the tool ran with: {arguments}");
            response.content.insert(0, ContentBlock::text(note));
        }
        Ok(record::limited(record::response(&call.id, response), tool.max_output_bytes))
    };
    attempt().unwrap_or_else(|reason| {
        record::response(&call.id, ToolResponse::error([ContentBlock::text(reason)]))
    })
}

pub(crate) const INTERRUPTED: &str = "The call was interrupted.";

/// Fails once the person wants no more of this.
fn wanted(line: &Line) -> Result<(), String> {
    if line.is_cancelled() { Err(INTERRUPTED.to_owned()) } else { Ok(()) }
}

/// A call that may run.
struct Permitted<'a> {
    /// What the person was shown, if they were asked.
    plan: Plan<'a>,
    /// The arguments, where the person changed them.
    edited: Option<Map<String, Value>>,
}

/// Checks the arguments and asks for leave.
fn permitted<'a>(
    call: &'a ToolCallRequest,
    tool: &'a Tool,
    toolbox: &'a Toolbox,
    line: &Line,
) -> Result<Permitted<'a>, String> {
    let name = &tool.name;
    if tool.permission == Permission::Deny {
        return Err(format!("The tool `{name}` may not run: the person's configuration denies it."));
    }
    let arguments = checked(call, tool)?;
    let mut permitted = Permitted { plan: plan(call, tool, arguments, toolbox)?, edited: None };
    let is_allowed = |permitted: &Permitted<'_>| {
        let is_unattended =
            tool.permission == Permission::Unattended || toolbox.said().allowed.contains(name);
        let arguments = permitted.edited.as_ref().unwrap_or(arguments);
        !permitted.plan.is_sensitive && (is_unattended || stateful::is_harmless(tool, arguments))
    };
    if is_allowed(&permitted) {
        return Ok(permitted);
    }
    let _asking = toolbox.asking();
    let mut rejected = None;
    loop {
        if is_allowed(&permitted) {
            return Ok(permitted);
        }
        let request = PermissionRequest {
            tool: name.clone(),
            preview: permitted.plan.preview.clone(),
            arguments: permitted.edited.as_ref().unwrap_or(arguments).clone(),
            rejected: rejected.take(),
        };
        match line.permit(request) {
            Some(Decision::Allow) => return Ok(permitted),
            Some(Decision::AllowForTurn) => {
                toolbox.said().allowed.insert(name.clone());
                return Ok(permitted);
            }
            // What was changed is shown once more, as what it will do.
            Some(Decision::Edit(edited)) => {
                match fitting(&edited, tool).and_then(|()| plan(call, tool, &edited, toolbox)) {
                    Ok(plan) => permitted = Permitted { plan, edited: Some(edited) },
                    Err(reason) => rejected = Some((edited, reason)),
                }
            }
            Some(Decision::Refuse { reason: Some(reason) }) => {
                return Err(format!("The person refused the call of `{name}`, and says: {reason}"));
            }
            Some(Decision::Refuse { reason: None }) => {
                return Err(format!("The person refused the call of `{name}`."));
            }
            Some(Decision::Interrupted) => return Err(INTERRUPTED.to_owned()),
            None if line.is_cancelled() => return Err(INTERRUPTED.to_owned()),
            None => {
                let setting = format!(", or `conversation.tools.{name}.run = \"unattended\"`");
                let is_enough = !permitted.plan.is_sensitive;
                let advice = format!("`--yes`{}", if is_enough { &setting } else { "" });
                line.notice(format!(
                    "the call of `{name}` was refused: there is no terminal to ask on; {advice} allows it"
                ));
                return Err(format!(
                    "The call of `{name}` was refused: it needs the person's leave, and there is no terminal to ask them on. They can allow it with {advice}."
                ));
            }
        }
    }
}

/// Returns the arguments if they fit; the error is one that the model can mend.
fn checked<'a>(call: &'a ToolCallRequest, tool: &Tool) -> Result<&'a Map<String, Value>, String> {
    if let Some(written) = call.metadata.get(INVALID_ARGUMENTS) {
        return Err(format!("The arguments are no JSON object: {written}"));
    }
    fitting(&call.arguments, tool)?;
    Ok(&call.arguments)
}

fn fitting(arguments: &Map<String, Value>, tool: &Tool) -> Result<(), String> {
    let misfit = format!("The arguments of `{}` do not fit its parameters", tool.name);
    check(arguments, &tool.offered_parameters(), tool, &misfit)
}

/// Checks values against parameters that a tool has; `misfit` says what does not fit.
pub(crate) fn check(
    values: &Map<String, Value>,
    parameters: &Map<String, Value>,
    tool: &Tool,
    misfit: &str,
) -> Result<(), String> {
    let schema = Schema::compile(parameters).map_err(|error| {
        format!("The parameters that `{}` is configured with are no JSON Schema: {error}", tool.name)
    })?;
    schema.check_value(&Value::Object(values.clone())).map_err(|faults| format!("{misfit}: {faults}"))
}

/// Finds out what a call will do.
fn plan<'a>(
    call: &'a ToolCallRequest,
    tool: &'a Tool,
    arguments: &Map<String, Value>,
    toolbox: &'a Toolbox,
) -> Result<Plan<'a>, String> {
    if let Some(stateful) = &tool.stateful {
        return stateful::plan(call, stateful, tool, arguments, toolbox);
    }
    match &tool.source {
        Source::Builtin(builtin) => builtin::plan(*builtin, tool, arguments, toolbox),
        Source::Local(command) => local::plan(command, tool, arguments, toolbox),
    }
}
