//! Tools of MCP servers.
//!
//! The server does the work; here is what a person is shown before, and what they are asked on the way. What a server
//! elicits is put to them as a tool's own questions are, under the id `elicitation`: a flat form value by value, any other
//! whole.

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
    parse::warning_block,
    plan::Plan,
    question::{Asking, Told},
    turnstile::PromptKind,
};

/// The id of what servers ask.
const ELICITATION: &str = "elicitation";
/// How many warnings of one result are told, and how long each may be.
const MAX_WARNINGS: usize = 10;
const WARNING_CHARACTERS: usize = 300;
/// How many values a form may ask for.
const MAX_VALUES: usize = 50;
/// How many of the first and of the last lines of stderr a model is told.
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
        connection.ok_or_else(|| format!("The MCP server `{server}` is not there."))?;
    let preview = preview(server_tool, arguments);
    let arguments = arguments.clone();
    let act = move |_: &Map<String, Value>, line: &Line| {
        let asked = Asked {
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
        } => Some("it changes nothing"),
        ToolAnnotations {
            destructive_hint: Some(true),
            ..
        } => Some("it may destroy something"),
        _ => None,
    };
    let hint = hint.map(|hint| {
        format!("The server says of this tool that {hint}; nobody vouches for that.\n")
    });
    let all = match arguments.is_empty() {
        true => String::new(),
        false => serde_json::to_string_pretty(arguments).unwrap_or_default(),
    };
    Preview {
        title,
        detail: Some(hint.unwrap_or_default() + &all).filter(|detail| !detail.is_empty()),
    }
}

/// A call that runs, as its server may ask about it.
struct Asked<'a> {
    call: &'a ToolCallRequest,
    server_tool: &'a ServerTool,
    tool: &'a Tool,
    toolbox: &'a Toolbox,
    line: &'a Line,
    /// Whether the person wants no more of it.
    is_interrupted: Cell<bool>,
    /// Whether the person was told that nobody can answer.
    is_told: Cell<bool>,
}

impl Asked<'_> {
    fn run(&self, connection: &Arc<Connection>, arguments: &Map<String, Value>) -> ToolResponse {
        let called = connection.call(&self.server_tool.tool, arguments, self);
        let called = match called {
            Ok(called) => called,
            Err(error) => return self.failed(&error),
        };
        let (mut response, mut warnings) = (called.response, called.warnings);
        warnings.extend(self.misfit(&response));
        let count = warnings.len();
        warnings.truncate(MAX_WARNINGS);
        if count > MAX_WARNINGS {
            warnings.push(format!("and {} more", count - MAX_WARNINGS));
        }
        for warning in &mut warnings {
            *warning = excerpt::beginning(warning, WARNING_CHARACTERS);
            self.line.notice(format!(
                "`{}` of the MCP server `{}`: {warning}",
                self.tool.name, self.server_tool.server
            ));
        }
        response.content.extend(warning_block(&warnings));
        response
    }

    /// Says why structured content is not what the server announced.
    fn misfit(&self, response: &ToolResponse) -> Option<String> {
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
            "its structured content is not what the server announced: {faults}"
        ))
    }

    fn failed(&self, error: &ServerError) -> ToolResponse {
        let name = &self.tool.name;
        if matches!(error.fault, Fault::Interrupted) {
            return ToolResponse::from_error(crate::line::INTERRUPTED);
        }
        // What a server answers is the model's to mend; what it fails in is the person's.
        if !matches!(error.fault, Fault::Refused { .. }) {
            self.line
                .notice(format!("the call of `{name}` failed: {error}"));
        }
        let mut text = format!(
            "The call of `{name}` failed: {error}. {}",
            advice(&error.fault)
        );
        if !error.stderr.is_empty() {
            let lines = told(&error.stderr);
            text += &format!(" What it wrote to stderr:\n{}", lines.join("\n"));
            for line in lines {
                self.line
                    .notice(format!("`{}` on stderr: {line}", self.server_tool.server));
            }
        }
        ToolResponse::from_error(text)
    }

    /// Has a form filled in.
    fn form(&self, message: &str, schema: &Map<String, Value>) -> Elicited {
        let whole = InputRequest::new(ELICITATION, message, schema.clone());
        let asking = Asking::new(self.call, self.tool, self.toolbox, self.line);
        if let Err(reason) = asking.checked(&whole) {
            self.line.notice(format!("{reason} It was declined."));
            return Elicited::Decline;
        }
        let is_persons = matches!(
            self.tool.questions.get(ELICITATION),
            None | Some(Answerer::User)
        );
        match values(schema).filter(|_| is_persons) {
            Some(values) if values.is_empty() => self.agreed(&asking, &whole),
            Some(values) => self.value_by_value(&asking, &whole, &values),
            None if is_persons => self.whole(&asking, &whole),
            // Without an answer nobody takes a default in the person's place.
            None => match asking.answer_to(&whole, 0, &mut Told::new(&ToolResponse::default())) {
                Ok(Value::Object(answer)) => Elicited::Accept(Some(answer)),
                Ok(_) => self.declined(),
                Err(reason) => {
                    // Where the model has no answer, that was said.
                    if let Some(Answerer::Fixed(_)) = self.tool.questions.get(ELICITATION) {
                        self.line.notice(format!("{reason}; it was declined"));
                    }
                    self.declined()
                }
            },
        }
    }

    /// Has a form confirmed that asks for no values.
    fn agreed(&self, asking: &Asking<'_>, whole: &InputRequest) -> Elicited {
        let input = InputRequest::new(ELICITATION, "Do you agree?", AnswerType::Boolean);
        match self.answer(&input, false, vec![ContentBlock::text(&whole.text)]) {
            Some(Reply::Once(Value::Bool(true)) | Reply::ForTurn(Value::Bool(true))) => {
                asking.keep(whole, &Value::Object(Map::new()), "user");
                Elicited::Accept(Some(Map::new()))
            }
            Some(Reply::Interrupted) => self.cancelled(),
            _ => self.declined(),
        }
    }

    fn whole(&self, asking: &Asking<'_>, whole: &InputRequest) -> Elicited {
        match self.answer(whole, false, Vec::new()) {
            Some(Reply::Once(Value::Object(answer)) | Reply::ForTurn(Value::Object(answer))) => {
                asking.keep(whole, &Value::Object(answer.clone()), "user");
                Elicited::Accept(Some(answer))
            }
            Some(Reply::Interrupted) => self.cancelled(),
            _ => self.declined(),
        }
    }

    fn value_by_value(
        &self,
        asking: &Asking<'_>,
        whole: &InputRequest,
        values: &[Asks],
    ) -> Elicited {
        let mut answers = Map::new();
        let mut context = vec![ContentBlock::text(&whole.text)];
        // A form that can be left empty would be answered by whoever leaves everything out.
        if values.iter().all(|value| !value.is_required) {
            let input =
                InputRequest::new(ELICITATION, "Do you want to answer?", AnswerType::Boolean);
            match self.answer(&input, false, std::mem::take(&mut context)) {
                Some(Reply::Once(Value::Bool(true)) | Reply::ForTurn(Value::Bool(true))) => {}
                Some(Reply::Interrupted) => return self.cancelled(),
                _ => return self.declined(),
            }
        }
        for Asks {
            name,
            input,
            is_required,
        } in values
        {
            match self.answer(input, !is_required, std::mem::take(&mut context)) {
                // Nothing was typed where nothing is wanted.
                Some(Reply::Once(answer)) if !is_required && answer == "" => {}
                Some(Reply::Once(answer) | Reply::ForTurn(answer)) => {
                    _ = answers.insert(name.clone(), answer)
                }
                Some(Reply::Declined) if !is_required => {}
                Some(Reply::Interrupted) => return self.cancelled(),
                Some(Reply::Declined) | None => return self.declined(),
            }
        }
        let answer = Value::Object(answers.clone());
        match asking
            .checked(whole)
            .and_then(|checked| checked.fitting(&answer))
        {
            Ok(()) => {
                asking.keep(whole, &answer, "user");
                Elicited::Accept(Some(answers))
            }
            Err(faults) => {
                self.line.notice(format!(
                    "what was answered does not fit together, so nothing was sent: {faults}"
                ));
                self.declined()
            }
        }
    }

    /// Has a page visited: the person's own affair, whoever else answers questions.
    fn visit(&self, message: &str, url: &str) -> Elicited {
        let Some(host) = host(url) else {
            self.line.notice(format!(
                "the MCP server `{}` wants a page visited that is none of http or https: {}; it was declined",
                self.server_tool.server,
                excerpt::beginning(url, WARNING_CHARACTERS)
            ));
            return Elicited::Decline;
        };
        let text = format!(
            "Open {url} yourself (it is at {host}; jp opens nothing), then answer y. Did you?"
        );
        let input = InputRequest::new(ELICITATION, text, AnswerType::Boolean);
        match self.answer(&input, false, vec![ContentBlock::text(message)]) {
            Some(Reply::Once(Value::Bool(true)) | Reply::ForTurn(Value::Bool(true))) => {
                Elicited::Accept(None)
            }
            Some(Reply::Declined) => Elicited::Cancel,
            Some(Reply::Interrupted) => self.cancelled(),
            Some(_) => Elicited::Decline,
            // That nobody was there was said.
            None => self.declined(),
        }
    }

    /// Asks the person until the answer fits, or is none where it may be; nothing where nobody is there.
    fn answer(
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
                    self.tell_of_nobody();
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

    fn tell_of_nobody(&self) {
        let ServerTool { server, .. } = self.server_tool;
        let setting = format!(
            "conversation.tools.{}.questions.{ELICITATION}.answer",
            self.tool.name
        );
        let told = format!(
            "the MCP server `{server}` asks something, and there is no terminal to ask you on: it was declined; a page is yours alone to visit, and {setting} can hold the answer to a form"
        );
        if !self.is_told.replace(true) {
            self.line.notice(told);
        }
    }

    fn declined(&self) -> Elicited {
        if self.line.is_cancelled() {
            self.cancelled()
        } else {
            Elicited::Decline
        }
    }

    fn cancelled(&self) -> Elicited {
        self.is_interrupted.set(true);
        Elicited::Cancel
    }
}

impl Caller for Asked<'_> {
    fn is_cancelled(&self) -> bool {
        self.line.is_cancelled() || self.is_interrupted.get()
    }

    fn answer(&self, elicitation: &Elicitation) -> Elicited {
        let _asking = self.line.asking(PromptKind::Question);
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

/// Says what a model can make of a call that failed.
fn advice(fault: &Fault) -> &'static str {
    match fault {
        Fault::Refused { .. } => "Other arguments may be taken.",
        Fault::Ended(_) => {
            "What the call did before is not known. The server is gone until the person's next request, so go on without its tools."
        }
        Fault::NotSent(_) => {
            "This call was not sent, because the server was gone already. It stays gone until the user's next request, so continue without its tools."
        }
        Fault::Timeout { .. } => {
            "What the call did so far is not known. Look whether it had an effect before you repeat it."
        }
        Fault::MessageTooLong(_) | Fault::TooLong { .. } | Fault::TooMany { .. } => {
            "The call may have done its work, and what it returned can't be taken. Ask it for less, if it can give less."
        }
        Fault::Malformed(_) => {
            "The call may have done its work, and what it returned can't be read."
        }
        Fault::Status(_) | Fault::Unreachable(_) => "The same call may succeed later.",
        _ => "Go on without this tool.",
    }
}

/// A value that a form asks for.
struct Asks {
    name: String,
    input: InputRequest,
    is_required: bool,
}

/// Takes a flat form apart; nothing for one that is nested, or too long to be asked so.
fn values(schema: &Map<String, Value>) -> Option<Vec<Asks>> {
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
    let is_flat = |property: &Value| {
        let kind = property.get("type").and_then(Value::as_str);
        matches!(
            kind,
            Some("string" | "number" | "integer" | "boolean" | "array")
        ) || property.get("enum").is_some()
    };
    if properties.len() > MAX_VALUES || !properties.values().all(is_flat) {
        return None;
    }
    let value = |(name, property): (&String, &Value)| {
        let property = property.as_object()?;
        let is_required = required.contains(&name.as_str());
        let label = property
            .get("title")
            .and_then(Value::as_str)
            .unwrap_or(name);
        let optional = if is_required {
            ""
        } else {
            " (optional: Ctrl-D leaves it out)"
        };
        let mut input = InputRequest::new(
            format!("{ELICITATION}.{name}"),
            format!("{label}{optional}"),
            property.clone(),
        );
        input.default = property.get("default").cloned();
        Some(Asks {
            name: name.clone(),
            input,
            is_required,
        })
    };
    properties.iter().map(value).collect()
}

/// Returns of lines as many as are told, without what would steer a terminal: where a program says why it ends differs.
fn told(lines: &[String]) -> Vec<String> {
    let [first, last] = STDERR_LINES;
    let is_told = |index: usize| index < first || index + last >= lines.len();
    lines
        .iter()
        .enumerate()
        .filter(|(index, _)| is_told(*index))
        .map(|(_, line)| anstream::adapter::strip_str(line).to_string())
        .collect()
}

/// Returns the host of a page that can be visited.
fn host(url: &str) -> Option<String> {
    let url = url::Url::parse(url).ok()?;
    matches!(url.scheme(), "http" | "https").then(|| url.host_str().map(str::to_owned))?
}
