//! Tools of MCP servers.
//!
//! The server does the work. This module has the preview and the answers to the server's questions
//! (MCP, "Elicitation"). They have the id `elicitation`. jp asks for the values of a flat form one
//! by one, and for any other form as a whole.

use std::{cell::Cell, sync::Arc};

use jp_conversation::ToolCallRequest;
use jp_mcp::{
    Caller, Connection, Elicitation, Elicited, Fault, LogMessage, Progress, ServerError,
    ToolAnnotations,
};
use jp_tool::{AnswerType, ContentBlock, InputRequest, ToolResponse};
use serde_json::{Map, Value};

use crate::{
    Answerer, Preview, Question, Reply, Schema, ServerTool, Tool, Toolbox, excerpt,
    line::Line,
    parse::{MAX_WARNING_LENGTH, limit_warnings, warning_block},
    plain_text::plain_text,
    plan::Plan,
    question::{Asking, ShownBlocks},
    turnstile::PromptKind,
};

/// The id of servers' questions in the configuration and in events.
const ELICITATION: &str = "elicitation";
/// The maximum number of values that jp asks for one by one. A longer form is asked as one JSON
/// document.
const MAX_VALUES: usize = 50;
/// The number of first and last lines of stderr in an error: runtimes write the cause at the
/// beginning (Node.js) or at the end (Python).
const STDERR_LINES: [usize; 2] = [2, 4];

/// Plans a call.
pub(crate) fn plan<'a>(
    call: &'a ToolCallRequest,
    server_tool: &'a ServerTool,
    tool: &'a Tool,
    arguments: &Map<String, Value>,
    toolbox: &'a Toolbox,
) -> Result<Plan<'a>, String> {
    let ServerTool { server, .. } = server_tool;
    let connection = toolbox.servers.get(server);
    let connection =
        connection.ok_or_else(|| format!("The MCP server `{server}` is not available."))?;
    let preview = preview(server_tool, arguments);
    let arguments = arguments.clone();
    let act = move |_: &Map<String, Value>, line: &Line| {
        let asked = ServerCall {
            call,
            server_tool,
            tool,
            toolbox,
            line,
            is_interrupted: Cell::new(false),
            is_told: Cell::new(false),
        };
        asked.run(connection, &arguments)
    };
    Ok(Plan {
        preview,
        is_sensitive: false,
        act: Box::new(act),
    })
}

fn preview(server_tool: &ServerTool, arguments: &Map<String, Value>) -> Preview {
    let ServerTool {
        server,
        tool,
        annotations,
        ..
    } = server_tool;
    let shown = excerpt::beginning(&Value::Object(arguments.clone()).to_string(), 200);
    let title = format!("`{tool}` of the MCP server `{server}` {shown}");
    let hint = match annotations {
        ToolAnnotations {
            read_only_hint: Some(true),
            ..
        } => Some("the tool changes nothing"),
        ToolAnnotations {
            destructive_hint: Some(true),
            ..
        } => Some("the tool may destroy something"),
        _ => None,
    };
    let hint = hint.map(|hint| format!("According to the server, {hint}. jp can't verify that.\n"));
    let all = match arguments.is_empty() {
        true => String::new(),
        false => serde_json::to_string_pretty(arguments).unwrap_or_default(),
    };
    Preview {
        title,
        detail: Some(hint.unwrap_or_default() + &all).filter(|detail| !detail.is_empty()),
    }
}

/// A running call; it answers the server's questions.
struct ServerCall<'a> {
    call: &'a ToolCallRequest,
    server_tool: &'a ServerTool,
    tool: &'a Tool,
    toolbox: &'a Toolbox,
    line: &'a Line,
    /// True after the user ended the turn at a prompt of this call.
    is_interrupted: Cell<bool>,
    /// True after jp reported that there is no terminal to ask on.
    is_told: Cell<bool>,
}

impl ServerCall<'_> {
    fn run(&self, connection: &Arc<Connection>, arguments: &Map<String, Value>) -> ToolResponse {
        let called = connection.call(&self.server_tool.tool, arguments, self);
        let called = match called {
            Ok(called) => called,
            Err(error) => return self.describe_failure(&error),
        };
        let (mut response, mut warnings) = (called.response, called.warnings);
        warnings.extend(self.check_output(&response));
        let warnings = limit_warnings(&warnings);
        for warning in &warnings {
            self.line.notice(format!(
                "`{}` of the MCP server `{}`: {warning}",
                self.tool.name, self.server_tool.server
            ));
        }
        response.content.extend(warning_block(&warnings));
        response
    }

    /// Returns the error in structured content that does not match the schema that the server
    /// declared.
    fn check_output(&self, response: &ToolResponse) -> Option<String> {
        let (structured, schema) = (
            response.structured_content.as_ref()?,
            self.server_tool.output.as_ref()?,
        );
        let faults = Schema::compile(schema)
            .ok()?
            .check_value(structured)
            .err()
            .filter(|_| !response.is_error)?;
        Some(format!(
            "its structured content does not match the schema that the server declared: {faults}"
        ))
    }

    fn describe_failure(&self, error: &ServerError) -> ToolResponse {
        let name = &self.tool.name;
        // The user knows that they interrupted the call, so there is no notice.
        if matches!(error.fault, Fault::Interrupted) {
            return ToolResponse::from_error(crate::line::INTERRUPTED);
        }
        // The model can react to a server's answer. Any other failure is something that the user
        // has to know.
        if !matches!(error.fault, Fault::Refused { .. }) {
            self.line
                .notice(format!("the call of `{name}` failed: {error}"));
        }
        let mut text = format!(
            "The call of `{name}` failed: {error}. {}",
            advice(&error.fault)
        );
        if !error.stderr.is_empty() {
            let lines = select_lines(&error.stderr);
            text += &format!(" It wrote to stderr:\n{}", lines.join("\n"));
            for line in lines {
                self.line
                    .notice(format!("`{}` on stderr: {line}", self.server_tool.server));
            }
        }
        ToolResponse::from_error(text)
    }

    /// Asks for the values of a form.
    fn form(&self, message: &str, schema: &Map<String, Value>) -> Elicited {
        let whole = InputRequest::new(ELICITATION, message, schema.clone());
        let asking = Asking::new(self.call, self.tool, self.toolbox, self.line);
        if let Err(reason) = asking.check(&whole) {
            self.line
                .notice(format!("{reason} jp declined the question."));
            return Elicited::Decline;
        }
        let is_for_user = matches!(
            self.tool.questions.get(ELICITATION),
            None | Some(Answerer::User)
        );
        match split_form(schema).filter(|_| is_for_user) {
            Some(values) if values.is_empty() => self.confirm(&asking, &whole),
            Some(values) => self.ask_values(&asking, &whole, &values),
            None if is_for_user => self.ask_whole(&asking, &whole),
            // If there is no answer, jp must not use a default: it is not what the user said.
            None => {
                match asking.answer_to(&whole, 0, &mut ShownBlocks::new(&ToolResponse::default())) {
                    Ok(Value::Object(answer)) => Elicited::Accept(Some(answer)),
                    Ok(_) => self.decline(),
                    Err(reason) => {
                        // If the model has no answer, `Questioner` has reported that.
                        if let Some(Answerer::Fixed(_)) = self.tool.questions.get(ELICITATION) {
                            self.line
                                .notice(format!("{reason}; jp declined the question"));
                        }
                        self.decline()
                    }
                }
            }
        }
    }

    /// Asks the user to confirm a form without values.
    fn confirm(&self, asking: &Asking<'_>, whole: &InputRequest) -> Elicited {
        let input = InputRequest::new(ELICITATION, "Do you agree?", AnswerType::Boolean);
        match self.ask(&input, false, vec![ContentBlock::text(&whole.text)]) {
            Some(Reply::Once(Value::Bool(true)) | Reply::ForTurn(Value::Bool(true))) => {
                asking.keep(whole, &Value::Object(Map::new()), "user");
                Elicited::Accept(Some(Map::new()))
            }
            Some(Reply::Interrupted) => self.cancel(),
            _ => self.decline(),
        }
    }

    fn ask_whole(&self, asking: &Asking<'_>, whole: &InputRequest) -> Elicited {
        match self.ask(whole, false, Vec::new()) {
            Some(Reply::Once(Value::Object(answer)) | Reply::ForTurn(Value::Object(answer))) => {
                asking.keep(whole, &Value::Object(answer.clone()), "user");
                Elicited::Accept(Some(answer))
            }
            Some(Reply::Interrupted) => self.cancel(),
            _ => self.decline(),
        }
    }

    fn ask_values(
        &self,
        asking: &Asking<'_>,
        whole: &InputRequest,
        values: &[FormValue],
    ) -> Elicited {
        let mut answers = Map::new();
        let mut context = vec![ContentBlock::text(&whole.text)];
        // If every value is optional, a user who skips each of them would accept an empty form
        // without knowing it, so ask first.
        if values.iter().all(|value| !value.is_required) {
            let input =
                InputRequest::new(ELICITATION, "Do you want to answer?", AnswerType::Boolean);
            match self.ask(&input, false, std::mem::take(&mut context)) {
                Some(Reply::Once(Value::Bool(true)) | Reply::ForTurn(Value::Bool(true))) => {}
                Some(Reply::Interrupted) => return self.cancel(),
                _ => return self.decline(),
            }
        }
        for FormValue {
            name,
            input,
            is_required,
        } in values
        {
            match self.ask(input, !is_required, std::mem::take(&mut context)) {
                // The user skipped an optional value.
                Some(Reply::Once(answer)) if !is_required && answer == "" => {}
                Some(Reply::Once(answer) | Reply::ForTurn(answer)) => {
                    _ = answers.insert(name.clone(), answer)
                }
                Some(Reply::Declined) if !is_required => {}
                Some(Reply::Interrupted) => return self.cancel(),
                Some(Reply::Declined) | None => return self.decline(),
            }
        }
        let answer = Value::Object(answers.clone());
        match asking
            .check(whole)
            .and_then(|checked| checked.check_answer(&answer))
        {
            Ok(()) => {
                asking.keep(whole, &answer, "user");
                Elicited::Accept(Some(answers))
            }
            Err(faults) => {
                self.line.notice(format!(
                    "the answers are invalid together, so jp sent none of them: {faults}"
                ));
                self.decline()
            }
        }
    }

    /// Asks the user to open a page. Only the user can do that, even if the configuration answers
    /// the tool's questions.
    fn visit(&self, message: &str, url: &str) -> Elicited {
        let Some(host) = page_host(url) else {
            self.line.notice(format!(
                "the MCP server `{}` asks you to open a page whose URL is not http or https: {}; jp declined",
                self.server_tool.server,
                excerpt::beginning(url, MAX_WARNING_LENGTH)
            ));
            return Elicited::Decline;
        };
        let text =
            format!("Open {url} in your browser (host: {host}), then answer y. Did you open it?");
        let input = InputRequest::new(ELICITATION, text, AnswerType::Boolean);
        match self.ask(&input, false, vec![ContentBlock::text(message)]) {
            Some(Reply::Once(Value::Bool(true)) | Reply::ForTurn(Value::Bool(true))) => {
                Elicited::Accept(None)
            }
            Some(Reply::Declined) => Elicited::Cancel,
            Some(Reply::Interrupted) => self.cancel(),
            Some(_) => Elicited::Decline,
            // `ask` has reported that there is no terminal.
            None => self.decline(),
        }
    }

    /// Asks the user until the answer is valid, or empty if it is optional; `None` if there is no
    /// terminal.
    fn ask(
        &self,
        input: &InputRequest,
        is_optional: bool,
        context: Vec<ContentBlock>,
    ) -> Option<Reply> {
        let schema = Schema::with_formats(&input.schema).ok()?;
        let default = input
            .default
            .clone()
            .filter(|default| schema.check_value(default).is_ok());
        let input = InputRequest {
            default,
            ..input.clone()
        };
        let (tool, server) = (
            self.tool.name.clone(),
            Some(self.server_tool.server.clone()),
        );
        let mut asked = Question {
            tool,
            server,
            context,
            input,
            fault: None,
        };
        loop {
            let reply = self.line.ask(asked.clone());
            let answer = match &reply {
                Some(Reply::Once(answer) | Reply::ForTurn(answer)) => answer,
                Some(_) => return reply,
                None if self.line.is_cancelled() => return Some(Reply::Interrupted),
                None => {
                    self.report_no_terminal();
                    return None;
                }
            };
            match schema.check_value(answer) {
                Ok(()) => return reply,
                Err(_) if is_optional && answer == "" => return reply,
                Err(faults) => asked.fault = Some(faults),
            }
        }
    }

    fn report_no_terminal(&self) {
        let ServerTool { server, .. } = self.server_tool;
        let setting = format!(
            "conversation.tools.{}.questions.{ELICITATION}.answer",
            self.tool.name
        );
        let told = format!(
            "the MCP server `{server}` asked a question, but there is no terminal to ask you on, so jp declined it; {setting} can answer a form, but only you can open a page"
        );
        if !self.is_told.replace(true) {
            self.line.notice(told);
        }
    }

    fn decline(&self) -> Elicited {
        if self.line.is_cancelled() {
            self.cancel()
        } else {
            Elicited::Decline
        }
    }

    fn cancel(&self) -> Elicited {
        self.is_interrupted.set(true);
        Elicited::Cancel
    }
}

impl Caller for ServerCall<'_> {
    fn is_cancelled(&self) -> bool {
        self.line.is_cancelled() || self.is_interrupted.get()
    }

    fn answer(&self, elicitation: &Elicitation) -> Elicited {
        let _asking = self.line.wait_to_prompt(PromptKind::Question);
        match elicitation {
            Elicitation::Form { message, schema } => self.form(message, schema),
            Elicitation::Url { message, url } => self.visit(message, url),
        }
    }

    fn report_progress(&self, progress: &Progress) {
        self.line
            .progress(format!("{}: {progress}", self.tool.name));
    }

    fn report_log(&self, message: &LogMessage) {
        self.line
            .detail(format!("{}: {message}", self.server_tool.server));
    }

    fn timeout(&self) -> Option<std::time::Duration> {
        self.server_tool.timeout
    }
}

/// Returns the advice for a model whose call failed.
fn advice(fault: &Fault) -> &'static str {
    match fault {
        Fault::Refused { .. } => "Other arguments may work.",
        Fault::Ended(_) => {
            "The call may have had effects. The server is unavailable until the user's next request, so continue without its tools."
        }
        Fault::NotSent(_) => {
            "The call was not sent because the server had already ended. It is unavailable until the user's next request, so continue without its tools."
        }
        Fault::Timeout { .. } => {
            "The call may have had effects. Check for them before you repeat it."
        }
        Fault::MessageTooLong(_) | Fault::TooLong { .. } | Fault::TooMany { .. } => {
            "The call may have succeeded, but its result is too large. Ask for less if you can."
        }
        Fault::Malformed(_) => "The call may have succeeded, but its result can't be read.",
        Fault::Status(_) | Fault::Unreachable(_) => "The same call may succeed later.",
        _ => "Continue without this tool.",
    }
}

/// A value that a form asks for.
struct FormValue {
    name: String,
    input: InputRequest,
    is_required: bool,
}

/// Splits a flat form into its values; `None` if the form is nested or has too many values.
fn split_form(schema: &Map<String, Value>) -> Option<Vec<FormValue>> {
    let none = Map::new();
    let properties = schema
        .get("properties")
        .map_or(Some(&none), Value::as_object)?;
    let required: Vec<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    if properties.len() > MAX_VALUES || !properties.values().all(is_flat) {
        return None;
    }
    properties
        .iter()
        .map(|(name, property)| form_value(name, property, required.contains(&name.as_str())))
        .collect()
}

/// Returns whether jp can ask for a property with one prompt.
fn is_flat(property: &Value) -> bool {
    let kind = property.get("type").and_then(Value::as_str);
    matches!(
        kind,
        Some("string" | "number" | "integer" | "boolean" | "array")
    ) || property.get("enum").is_some()
}

fn form_value(name: &str, property: &Value, is_required: bool) -> Option<FormValue> {
    let property = property.as_object()?;
    let label = property
        .get("title")
        .and_then(Value::as_str)
        .unwrap_or(name);
    let optional = if is_required {
        ""
    } else {
        " (optional: press Ctrl-D to skip)"
    };
    let mut input = InputRequest::new(
        format!("{ELICITATION}.{name}"),
        format!("{label}{optional}"),
        property.clone(),
    );
    input.default = property.get("default").cloned();
    Some(FormValue {
        name: name.to_owned(),
        input,
        is_required,
    })
}

/// Returns the first and last lines of stderr, without escape sequences.
fn select_lines(lines: &[String]) -> Vec<String> {
    let [first, last] = STDERR_LINES;
    lines
        .iter()
        .enumerate()
        .filter(|(index, _)| *index < first || index + last >= lines.len())
        .map(|(_, line)| plain_text(line))
        .collect()
}

/// Returns the host of an http or https URL.
fn page_host(url: &str) -> Option<String> {
    let url = url::Url::parse(url).ok()?;
    matches!(url.scheme(), "http" | "https").then(|| url.host_str().map(str::to_owned))?
}
