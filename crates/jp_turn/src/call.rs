//! One call of a tool, from what the model wrote to the result that it is given.

use std::{borrow::Cow, collections::HashSet, ptr};

use jp_conversation::{ToolCallRequest, ToolCallResponse};
use jp_llm::INVALID_ARGUMENTS;
use jp_tool::{ContentBlock, ToolResponse};
use serde_json::{Map, Value};

use crate::{
    Decision, Permission, PermissionRequest, Preview, Schema, ServerTool, Source, Tool, Toolbox,
    Verdict, builtin,
    calls::Line,
    local, question, record, server, stateful,
    turnstile::{PromptKind, Stage},
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

/// A call that has ended.
pub(crate) struct EndedCall {
    pub(crate) response: ToolCallResponse,
    /// What was decided about it; nothing if it failed before that.
    pub(crate) verdict: Option<Verdict>,
    /// The arguments that it ran with, if the person changed them.
    pub(crate) edited: Option<Map<String, Value>>,
}

impl EndedCall {
    pub(crate) fn without_verdict(response: ToolCallResponse) -> Self {
        Self {
            response,
            verdict: None,
            edited: None,
        }
    }
}

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

pub(crate) const INTERRUPTED: &str = "The call was interrupted.";

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
    let arguments = checked(call, tool)?;
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

/// Arguments that the person wrote and that can't be taken, and why.
type Rejected = (Map<String, Value>, String);

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
        let edited = fill_in_and_check(edited, self.tool)?;
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

/// Returns the arguments with defaults filled in, if they match the schema; the error is one that the model can fix.
fn checked(call: &ToolCallRequest, tool: &Tool) -> Result<Map<String, Value>, String> {
    if let Some(written) = call.metadata.get(INVALID_ARGUMENTS) {
        return Err(format!(
            "The arguments are no JSON object of at most 100 levels: {written}"
        ));
    }
    fill_in_and_check(call.arguments.clone(), tool).map_err(|(_, misfit)| misfit)
}

/// Returns the arguments with defaults filled in; if they don't match, returns them with the reason.
fn fill_in_and_check(
    mut arguments: Map<String, Value>,
    tool: &Tool,
) -> Result<Map<String, Value>, Rejected> {
    let parameters = match &tool.source {
        Source::Server(ServerTool {
            checked: Some(checked),
            ..
        }) => Cow::Borrowed(checked),
        _ => Cow::Owned(tool.offered_parameters()),
    };
    fill_in(&mut arguments, &parameters);
    let misfit = format!("The arguments of `{}` do not fit its parameters", tool.name);
    match check(&arguments, &parameters, tool, &misfit) {
        Ok(()) => Ok(arguments),
        Err(reason) => Err((arguments, reason)),
    }
}

/// The most defaults that one call is given: a schema that refers to itself could ask for them without end.
const MAX_DEFAULTS: usize = 200;

/// Fills in the default of each required property that is missing, also in nested objects.
///
/// Such a schema means that the default holds; taken by the letter (JSON Schema 2020-12 validation, section 9.2) a call
/// that relies on it would be refused.
///
/// Looks behind `allOf` and local references (`#/$defs/…`), but not behind `anyOf` and `oneOf`: which of their branches
/// holds isn't known before the arguments are complete.
fn fill_in(values: &mut Map<String, Value>, schema: &Map<String, Value>) {
    Defaults {
        root: schema,
        left: MAX_DEFAULTS,
    }
    .fill_in(values, vec![schema]);
}

/// The defaults of a schema.
struct Defaults<'a> {
    root: &'a Map<String, Value>,
    /// How many more may be filled in.
    left: usize,
}

impl<'a> Defaults<'a> {
    /// Fills in the defaults of an object for which all of `schemas` hold.
    fn fill_in(&mut self, values: &mut Map<String, Value>, schemas: Vec<&'a Map<String, Value>>) {
        let schemas = self.expand(schemas);
        let required = schemas
            .iter()
            .filter_map(|schema| schema.get("required")?.as_array())
            .flatten();
        for name in required.filter_map(Value::as_str) {
            if self.left == 0 || values.contains_key(name) {
                continue;
            }
            let property = self.expand(property(&schemas, name));
            if let Some(default) = property.iter().find_map(|schema| schema.get("default")) {
                self.left -= 1;
                values.insert(name.to_owned(), default.clone());
            }
        }
        for (name, value) in values {
            if let Value::Object(inner) = value {
                self.fill_in(inner, property(&schemas, name));
            }
        }
    }

    /// Adds the schemas that hold wherever the given ones do, each once, so that a cycle of references ends.
    fn expand(&self, mut schemas: Vec<&'a Map<String, Value>>) -> Vec<&'a Map<String, Value>> {
        let mut seen: HashSet<*const Map<String, Value>> = schemas
            .iter()
            .map(|schema| ptr::from_ref(*schema))
            .collect();
        let mut next = 0;
        while let Some(schema) = schemas.get(next).copied() {
            let referred = schema
                .get("$ref")
                .and_then(Value::as_str)
                .and_then(|to| self.referred(to));
            let parts = schema
                .get("allOf")
                .and_then(Value::as_array)
                .into_iter()
                .flatten();
            let found = referred
                .into_iter()
                .chain(parts.filter_map(Value::as_object));
            schemas.extend(found.filter(|found| seen.insert(ptr::from_ref(*found))));
            next += 1;
        }
        schemas
    }

    /// Returns the schema that a local reference leads to.
    fn referred(&self, reference: &str) -> Option<&'a Map<String, Value>> {
        let Some(pointer) = reference.strip_prefix("#/") else {
            return (reference == "#").then_some(self.root);
        };
        let (key, below) = pointer.split_at(pointer.find('/').unwrap_or(pointer.len()));
        self.root.get(key)?.pointer(below)?.as_object()
    }
}

/// Returns what schemas say of a property.
fn property<'a>(schemas: &[&'a Map<String, Value>], name: &str) -> Vec<&'a Map<String, Value>> {
    schemas
        .iter()
        .filter_map(|schema| schema.get("properties")?.get(name)?.as_object())
        .collect()
}

/// Checks values against parameters that a tool has; `misfit` says what does not fit.
pub(crate) fn check(
    values: &Map<String, Value>,
    parameters: &Map<String, Value>,
    tool: &Tool,
    misfit: &str,
) -> Result<(), String> {
    let schema = Schema::compile(parameters).map_err(|error| {
        format!(
            "The parameters that `{}` is configured with are no JSON Schema: {error}",
            tool.name
        )
    })?;
    schema
        .check_value(&Value::Object(values.clone()))
        .map_err(|faults| format!("{misfit}: {faults}"))
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
    use serde_json::json;

    use super::*;
    use crate::{Files, Surroundings, builtin::Builtin};

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
        let local = Source::Local(local::Command {
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

    /// Returns `{}` with the defaults that a schema gives it.
    fn filled(schema: Value) -> Value {
        let Value::Object(schema) = schema else {
            panic!("{schema}")
        };
        let mut values = Map::new();
        fill_in(&mut values, &schema);
        values.into()
    }

    #[test]
    fn default_is_filled_in_behind_all_of_and_local_references() {
        let mode = json!({"mode": {"default": "fast"}});
        let expected = json!({"mode": "fast"});
        for schema in [
            json!({"allOf": [{"properties": mode, "required": ["mode"]}]}),
            json!({"required": ["mode"], "allOf": [{"allOf": [{"properties": mode}]}]}),
            json!({"$ref": "#/$defs/a", "$defs": {"a": {"properties": mode, "required": ["mode"]}}}),
            json!({"$ref": "#/definitions/a~1b", "definitions": {"a/b": {"properties": mode, "required": ["mode"]}}}),
            json!({"required": ["mode"], "properties": {"mode": {"$ref": "#/$defs/m"}}, "$defs": {"m": {"default": "fast"}}}),
        ] {
            assert_eq!(filled(schema.clone()), expected, "{schema}");
        }
        let nested = json!({
            "required": ["options"],
            "properties": {"options": {"default": {}, "allOf": [{"$ref": "#/$defs/options"}]}},
            "$defs": {"options": {"required": ["mode"], "properties": mode}},
        });
        assert_eq!(filled(nested), json!({"options": expected}));
    }

    #[test]
    fn default_of_a_branch_that_may_not_hold_is_left_out() {
        let branch = json!([{"properties": {"mode": {"default": "fast"}}, "required": ["mode"]}]);
        for keyword in ["anyOf", "oneOf"] {
            assert_eq!(filled(json!({keyword: branch})), json!({}), "{keyword}");
        }
        assert_eq!(
            filled(json!({"$ref": "https://a.b/#/$defs/a", "$defs": {"a": branch[0]}})),
            json!({})
        );
    }

    #[test]
    fn schema_that_refers_to_itself_gives_defaults_to_an_end() {
        let round =
            json!({"$ref": "#/$defs/a", "$defs": {"a": {"allOf": [{"$ref": "#/$defs/a"}]}}});
        assert_eq!(filled(round), json!({}));
        // Each gives two more.
        let child = json!({"$ref": "#", "default": {}});
        let tree = json!({"required": ["l", "r"], "properties": {"l": child, "r": child}});
        assert_eq!(
            filled(tree).to_string().matches(['l', 'r']).count(),
            MAX_DEFAULTS
        );
    }
}
