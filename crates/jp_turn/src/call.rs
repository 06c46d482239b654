//! One call of a tool, from what the model wrote to the result that it is given.

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

/// Returns whether calls of a tool run, or are refused, without a prompt, whatever their arguments are.
///
/// A plan of a builtin tool may be sensitive, which asks even if the tool runs unattended; other plans never are.
pub(crate) fn never_prompts(tool: &Tool, toolbox: &Toolbox) -> bool {
    match (tool.permission, &tool.source) {
        (Permission::Deny, _) => true,
        (_, Source::Builtin(_)) => false,
        (Permission::Unattended, _) => true,
        // The user may have allowed it for the rest of the turn.
        (Permission::Ask, _) => toolbox.said().allowed.contains(&tool.name),
    }
}

/// Runs a call to its end; whatever goes wrong is in the result.
pub(crate) fn run(call: &ToolCallRequest, toolbox: &Toolbox, line: &Line) -> EndedCall {
    attempt(call, toolbox, line).unwrap_or_else(|Refused { reason, verdict }| {
        let response =
            record::response(&call.id, ToolResponse::error([ContentBlock::text(reason)]));
        EndedCall {
            verdict,
            ..EndedCall::without_verdict(response)
        }
    })
}

fn attempt(call: &ToolCallRequest, toolbox: &Toolbox, line: &Line) -> Result<EndedCall, Refused> {
    let tool = &*toolbox.find(&call.name)?;
    // It may have waited for others.
    wanted(line)?;
    let permitted = permitted(call, tool, toolbox, line);
    line.reach(Stage::Decided);
    let Permitted {
        mut plan,
        edited,
        verdict,
    } = permitted?;
    wanted(line)?;
    let mut response = question::answered(call, tool, toolbox, line, &mut plan.act);
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
        let note = format!("The user changed the arguments; the tool ran with: {arguments}");
        response.content.insert(0, ContentBlock::text(note));
    }
    let response = match &tool.source {
        Source::Server(of) => record::response_of(&of.server, &call.id, response),
        Source::Local(_) | Source::Builtin(_) => record::response(&call.id, response),
    };
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

/// Why a call does not run.
struct Refused {
    /// For the model.
    reason: String,
    /// What was decided, if it came to that.
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

/// Fails once the person wants no more of this.
fn wanted(line: &Line) -> Result<(), String> {
    if line.is_cancelled() {
        Err(INTERRUPTED.to_owned())
    } else {
        Ok(())
    }
}

/// A call that may run.
struct Permitted<'a> {
    /// What the person was shown, if they were asked.
    plan: Plan<'a>,
    /// The arguments, where the person changed them.
    edited: Option<Map<String, Value>>,
    verdict: Verdict,
}

/// Checks the arguments and asks for leave.
fn permitted<'a>(
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
    let plan = plan(call, tool, &arguments, toolbox, line)?;
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
    // What they say for the turn holds for those that waited.
    let _asking = line.asking(PromptKind::Permission);
    let asked = leave.asked(permitted, line);
    // Before the next one asks.
    line.reach(Stage::Decided);
    asked
}

/// The leave that a call needs.
struct Leave<'a> {
    call: &'a ToolCallRequest,
    tool: &'a Tool,
    toolbox: &'a Toolbox,
    /// As the model wrote them, with the defaults of what it left out.
    arguments: Map<String, Value>,
}

impl<'a> Leave<'a> {
    /// Returns whether the call may run without a prompt, and records who allowed it.
    fn is_given(&self, permitted: &mut Permitted<'_>) -> bool {
        if permitted.plan.is_sensitive {
            return false;
        }
        let is_unattended = self.tool.permission == Permission::Unattended;
        if is_unattended || stateful::is_harmless(self.tool, self.current(permitted)) {
            permitted.verdict = Verdict::AllowedUnasked;
            return true;
        }
        permitted.verdict = Verdict::AllowedByPerson;
        self.toolbox.said().allowed.contains(&self.tool.name)
    }

    /// Returns the arguments that the call has by now.
    fn current<'b>(&'b self, permitted: &'b Permitted<'_>) -> &'b Map<String, Value> {
        permitted.edited.as_ref().unwrap_or(&self.arguments)
    }

    /// Asks until the person decides.
    fn asked(&self, mut permitted: Permitted<'a>, line: &Line) -> Result<Permitted<'a>, Refused> {
        let mut rejected = None;
        while !self.is_given(&mut permitted) {
            permitted.verdict = Verdict::AllowedByPerson;
            match line.permit(self.request(&permitted, rejected.take())) {
                Some(Decision::Allow) => break,
                Some(Decision::AllowForTurn) => {
                    self.toolbox.said().allowed.insert(self.tool.name.clone());
                    break;
                }
                // What was changed is shown once more, as what it will do.
                Some(Decision::Edit(edited)) => match self.planned_anew(edited, line) {
                    Ok(anew) => permitted = anew,
                    Err(reason) => rejected = Some(reason),
                },
                Some(Decision::Refuse { reason }) => {
                    return Err(Refused::by(Verdict::RefusedByPerson, self.refused(reason)));
                }
                Some(Decision::Interrupted) => return Err(INTERRUPTED.to_owned().into()),
                None if line.is_cancelled() => return Err(INTERRUPTED.to_owned().into()),
                None => {
                    let reason = self.nobody_to_ask(&permitted, line);
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
            arguments: self.current(permitted).clone(),
            rejected,
        }
    }

    fn planned_anew(
        &self,
        edited: Map<String, Value>,
        line: &Line,
    ) -> Result<Permitted<'a>, Rejected> {
        let edited = arguments::complete(edited, self.tool)?;
        match plan(self.call, self.tool, &edited, self.toolbox, line) {
            Ok(plan) => Ok(Permitted {
                plan,
                edited: Some(edited),
                verdict: Verdict::AllowedByPerson,
            }),
            Err(reason) => Err((edited, reason)),
        }
    }

    fn refused(&self, reason: Option<String>) -> String {
        let name = &self.tool.name;
        match reason {
            Some(reason) => format!("The person refused the call of `{name}`, and says: {reason}"),
            None => format!("The person refused the call of `{name}`."),
        }
    }

    /// Tells the person and the model that nobody can be asked.
    fn nobody_to_ask(&self, permitted: &Permitted<'_>, line: &Line) -> String {
        let name = &self.tool.name;
        let setting = format!(", or `conversation.tools.{name}.run = \"unattended\"`");
        let is_enough = !permitted.plan.is_sensitive;
        let advice = format!("`--yes`{}", if is_enough { &setting } else { "" });
        line.notice(format!(
            "the call of `{name}` was refused: there is no terminal to ask on; {advice} allows it"
        ));
        format!(
            "The call of `{name}` was refused: it needs the person's leave, and there is no terminal to ask them on. They can allow it with {advice}."
        )
    }
}

/// Finds out what a call will do.
fn plan<'a>(
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
            .said()
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
