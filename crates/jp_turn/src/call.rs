//! One call of a tool, from the model's request to the result.

use jp_conversation::ToolCallRequest;
use jp_tool::{ContentBlock, ToolResponse};
use serde_json::{Map, Value};

use crate::{
    arguments::{self, Rejected},
    ask::{Decision, PermissionRequest, Verdict},
    builtin,
    line::{EndedCall, INTERRUPTED, Line},
    local,
    plan::Plan,
    question, record, server, stateful,
    tool::{Permission, Source, Tool},
    toolbox::Toolbox,
    turnstile::{PromptKind, Stage},
};

/// Returns whether calls of a tool run, or are refused, without a prompt, whatever their arguments
/// are.
///
/// A plan of a builtin tool may be sensitive, which asks even if the tool runs unattended; other
/// plans never are.
pub(crate) fn never_prompts(tool: &Tool, toolbox: &Toolbox) -> bool {
    match (tool.permission, &tool.source) {
        (Permission::Deny, _) => true,
        // A plan of a builtin tool may be sensitive, which depends on the arguments.
        (_, Source::Builtin(_)) => false,
        (Permission::Unattended, _) => true,
        // The user may have allowed it for the rest of the turn.
        (Permission::Ask, _) => toolbox.decisions().allowed.contains(&tool.name),
    }
}

/// Runs a call to its end. Every failure becomes an error result.
pub(crate) fn run(call: &ToolCallRequest, toolbox: &Toolbox, line: &Line) -> EndedCall {
    attempt(call, toolbox, line).unwrap_or_else(|Refused { reason, verdict }| {
        let response = record::to_event(&call.id, ToolResponse::from_error(reason));
        EndedCall {
            verdict,
            ..EndedCall::without_verdict(response)
        }
    })
}

fn attempt(call: &ToolCallRequest, toolbox: &Toolbox, line: &Line) -> Result<EndedCall, Refused> {
    let tool = &*toolbox.find(&call.name)?;
    // The call may have waited for others while the user cancelled.
    fail_if_cancelled(line)?;
    let permitted = permit(call, tool, toolbox, line);
    line.reach(Stage::Decided);
    let Permitted {
        mut plan,
        edited,
        verdict,
    } = permitted?;
    fail_if_cancelled(line)?;
    let mut response = question::run_with_answers(call, tool, toolbox, line, &mut plan.act);
    let for_user: Vec<_> = response
        .content
        .iter()
        .filter(|block| block.is_for_user())
        .cloned()
        .collect();
    if !for_user.is_empty() {
        line.show_to_user(&tool.name, for_user);
    }
    if let Some(arguments) = &edited {
        let arguments = Value::Object(arguments.clone());
        let note = format!("The user changed the arguments. The tool ran with: {arguments}");
        response.content.insert(0, ContentBlock::text(note));
    }
    let response = match &tool.source {
        Source::Server(of) => record::to_server_event(&of.server, &call.id, response),
        Source::Local(_) | Source::Builtin(_) => record::to_event(&call.id, response),
    };
    // The event keeps the whole result; marks say how much a model sees.
    let response = record::limit(response, tool);
    record::describe_left_out(&response, tool)
        .into_iter()
        .for_each(|notice| line.notice(notice));
    Ok(EndedCall {
        response,
        verdict: Some(verdict),
        edited,
    })
}

/// The reason why a call does not run.
struct Refused {
    /// For the model.
    reason: String,
    /// The decision, if there was one.
    verdict: Option<Verdict>,
}

impl From<String> for Refused {
    fn from(reason: String) -> Self {
        Self {
            reason,
            verdict: None,
        }
    }
}

impl Refused {
    fn by(verdict: Verdict, reason: String) -> Self {
        Self {
            reason,
            verdict: Some(verdict),
        }
    }
}

/// Fails if the user has cancelled the turn.
fn fail_if_cancelled(line: &Line) -> Result<(), String> {
    if line.is_cancelled() {
        Err(INTERRUPTED.to_owned())
    } else {
        Ok(())
    }
}

/// A call that may run.
struct Permitted<'a> {
    /// The plan. If the user was asked, they saw its preview.
    plan: Plan<'a>,
    /// The arguments, if the user changed them.
    edited: Option<Map<String, Value>>,
    verdict: Verdict,
}

/// Checks the arguments and gets permission for the call.
fn permit<'a>(
    call: &'a ToolCallRequest,
    tool: &'a Tool,
    toolbox: &'a Toolbox,
    line: &Line,
) -> Result<Permitted<'a>, Refused> {
    if tool.permission == Permission::Deny {
        let reason = format!(
            "The tool `{}` may not run: the user's configuration denies it.",
            tool.name
        );
        return Err(Refused::by(Verdict::Denied, reason));
    }
    let arguments = arguments::read(call, tool)?;
    let plan = make_plan(call, tool, &arguments, toolbox, line)?;
    let mut permitted = Permitted {
        plan,
        edited: None,
        verdict: Verdict::AllowedUnasked,
    };
    let leave = Leave {
        call,
        tool,
        toolbox,
        arguments,
    };
    if leave.is_given(&mut permitted) {
        return Ok(permitted);
    }
    // A decision for the rest of the turn covers calls that waited here, so `ask` checks again.
    let _asking = line.wait_to_prompt(PromptKind::Permission);
    let asked = leave.ask(permitted, line);
    // Calls that wait must see the decision before the next prompt, so this comes before `_asking`
    // is dropped.
    line.reach(Stage::Decided);
    asked
}

/// The permission check of a call.
struct Leave<'a> {
    call: &'a ToolCallRequest,
    tool: &'a Tool,
    toolbox: &'a Toolbox,
    /// The model's arguments, completed with defaults.
    arguments: Map<String, Value>,
}

impl<'a> Leave<'a> {
    /// Returns whether the call may run without a prompt, and records who allowed it.
    fn is_given(&self, permitted: &mut Permitted<'_>) -> bool {
        // A sensitive plan asks each time, even after a permission for the rest of the turn.
        if permitted.plan.is_sensitive {
            return false;
        }
        let is_unattended = self.tool.permission == Permission::Unattended;
        if is_unattended || stateful::is_harmless(self.tool, self.current_arguments(permitted)) {
            permitted.verdict = Verdict::AllowedUnasked;
            return true;
        }
        permitted.verdict = Verdict::AllowedByUser;
        self.toolbox.decisions().allowed.contains(&self.tool.name)
    }

    /// Returns the arguments with the user's changes so far.
    fn current_arguments<'b>(&'b self, permitted: &'b Permitted<'_>) -> &'b Map<String, Value> {
        permitted.edited.as_ref().unwrap_or(&self.arguments)
    }

    /// Asks until the user decides.
    fn ask(&self, mut permitted: Permitted<'a>, line: &Line) -> Result<Permitted<'a>, Refused> {
        let mut rejected = None;
        while !self.is_given(&mut permitted) {
            permitted.verdict = Verdict::AllowedByUser;
            match line.permit(self.request(&permitted, rejected.take())) {
                Some(Decision::Allow) => break,
                Some(Decision::AllowForTurn) => {
                    self.toolbox
                        .decisions()
                        .allowed
                        .insert(self.tool.name.clone());
                    break;
                }
                // The loop asks again with the preview of the changed arguments: the user approves
                // what will run.
                Some(Decision::Edit(edited)) => match self.plan_edited(edited, line) {
                    Ok(anew) => permitted = anew,
                    Err(reason) => rejected = Some(reason),
                },
                Some(Decision::Refuse { reason }) => {
                    return Err(Refused::by(
                        Verdict::RefusedByUser,
                        self.describe_refusal(reason),
                    ));
                }
                Some(Decision::Interrupted) => return Err(INTERRUPTED.to_owned().into()),
                None if line.is_cancelled() => return Err(INTERRUPTED.to_owned().into()),
                None => {
                    let reason = self.report_no_terminal(&permitted, line);
                    return Err(Refused::by(Verdict::RefusedUnasked, reason));
                }
            }
        }
        Ok(permitted)
    }

    fn request(&self, permitted: &Permitted<'_>, rejected: Option<Rejected>) -> PermissionRequest {
        PermissionRequest {
            tool: self.tool.name.clone(),
            preview: permitted.plan.preview.clone(),
            arguments: self.current_arguments(permitted).clone(),
            rejected,
        }
    }

    fn plan_edited(
        &self,
        edited: Map<String, Value>,
        line: &Line,
    ) -> Result<Permitted<'a>, Rejected> {
        let edited = arguments::complete(edited, self.tool)?;
        match make_plan(self.call, self.tool, &edited, self.toolbox, line) {
            Ok(plan) => Ok(Permitted {
                plan,
                edited: Some(edited),
                verdict: Verdict::AllowedByUser,
            }),
            Err(reason) => Err((edited, reason)),
        }
    }

    fn describe_refusal(&self, reason: Option<String>) -> String {
        let name = &self.tool.name;
        match reason {
            Some(reason) => format!("The user refused the call of `{name}`: {reason}"),
            None => format!("The user refused the call of `{name}`."),
        }
    }

    /// Reports to the user and the model that there is no terminal to ask on.
    fn report_no_terminal(&self, permitted: &Permitted<'_>, line: &Line) -> String {
        let name = &self.tool.name;
        let setting = format!(", or `conversation.tools.{name}.run = \"unattended\"`");
        let is_enough = !permitted.plan.is_sensitive;
        let advice = format!("`--yes`{}", if is_enough { &setting } else { "" });
        line.notice(format!(
            "the call of `{name}` was refused: there is no terminal to ask on; {advice} allows it"
        ));
        format!(
            "The call of `{name}` was refused: it needs the user's permission, and there is no terminal to ask on. The user can allow it with {advice}."
        )
    }
}

/// Makes the plan of a call.
fn make_plan<'a>(
    call: &'a ToolCallRequest,
    tool: &'a Tool,
    arguments: &Map<String, Value>,
    toolbox: &'a Toolbox,
    line: &Line,
) -> Result<Plan<'a>, String> {
    if let Some(stateful) = &tool.stateful {
        return stateful::plan(call, stateful, tool, arguments, toolbox);
    }
    match &tool.source {
        Source::Builtin(builtin) => builtin::plan(*builtin, tool, arguments, toolbox, line),
        Source::Local(command) => local::plan(command, tool, arguments, toolbox),
        Source::Server(of) => server::plan(call, of, tool, arguments, toolbox),
    }
}

#[cfg(test)]
mod tests {
    use jp_mcp::ToolAnnotations;

    use super::*;
    use crate::{Command, Files, ServerTool, Surroundings, builtin::Builtin};

    #[test]
    fn only_tools_that_surely_need_no_permission_never_prompt() {
        let directory = tempfile::tempdir().unwrap();
        let files = Files::open(directory.path(), &[]).unwrap();
        let toolbox = Toolbox::new(Vec::new(), Surroundings::default(), files);
        toolbox
            .decisions()
            .allowed
            .extend(["allowed".to_owned(), "read_file".to_owned()]);
        let server = Source::Server(ServerTool {
            server: "peer".to_owned(),
            tool: "add".to_owned(),
            annotations: ToolAnnotations::default(),
            checked: None,
            output: None,
            timeout: None,
        });
        let local = Source::Local(Command {
            words: vec!["true".to_owned()],
        });
        let builtin = Source::Builtin(Builtin::ReadFile);
        let never = |name: &str, source: &Source, permission| {
            let tool = Tool {
                permission,
                ..Tool::new(name, Map::new(), source.clone())
            };
            never_prompts(&tool, &toolbox)
        };
        for source in [&server, &local] {
            assert!(
                never("add", source, Permission::Deny)
                    && never("add", source, Permission::Unattended)
            );
            assert!(
                never("allowed", source, Permission::Ask) && !never("add", source, Permission::Ask)
            );
        }
        assert!(never("read_file", &builtin, Permission::Deny));
        // A file like `.env` is asked about all the same.
        assert!(!never("read_file", &builtin, Permission::Unattended));
        assert!(!never("read_file", &builtin, Permission::Ask));
    }
}
