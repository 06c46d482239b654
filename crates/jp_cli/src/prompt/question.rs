//! Asks the user the questions of tools.

use crate::{
    output::{Output, Tone},
    prompt::{Extent, editor, quote, quote_for_user, shorten, to_pretty_json},
    terminal::{Terminal, Typed},
};
use jp_conversation::view;
use jp_resource::{Resource, ResourceContent};
use jp_session::{size, text::visible};
use jp_tool::{AnswerType, ContentBlock, Media};
use jp_turn::{Question, Reply, Schema};
use serde_json::{Map, Value, json};

const FOR_TURN: &str =
    "Add `!` to give the same answer whenever the tool asks this again in this turn.";
const NONE: &str = "Press Ctrl-D to give no answer.";

/// Asks a question; returns `None` if its schema is invalid.
pub(crate) fn ask_question(question: &Question, terminal: &Terminal<'_>) -> Option<Reply> {
    let schema = Schema::compile(&question.input.schema).ok()?;
    show(question, terminal);
    let prompt = QuestionPrompt {
        terminal,
        question,
        schema,
    };
    Some(match Form::from_schema(&question.input.schema) {
        Form::YesNo => prompt.ask_yes_no(),
        Form::Select(options) => prompt.ask_for_one(&options),
        Form::Several(options) => prompt.ask_for_several(&options),
        Form::Text => prompt.ask_for_text(),
        Form::Number => prompt.ask_for_number(),
        Form::Document => prompt.ask_for_document(),
    })
}

/// Shows the blocks that a tool returned after its last question.
pub(crate) fn show_blocks(tool: &str, blocks: &[ContentBlock], terminal: &Terminal<'_>) {
    terminal.tell(Tone::Strong, &format!("The tool `{tool}` adds:"));
    for block in blocks {
        quote(terminal, &describe_block(block), Extent::Part, |_| {
            Tone::Plain
        });
    }
}

/// Shows the blocks that a tool returned for the user only, with or without a terminal.
pub(crate) fn show_to_user(tool: &str, blocks: &[ContentBlock], output: &Output) {
    output.tell(
        Tone::Plain,
        &format!("The tool `{}` shows this only to you:", visible(tool)),
    );
    blocks
        .iter()
        .for_each(|block| quote_for_user(output, &describe_block(block)));
}

/// The form of a prompt.
enum Form {
    YesNo,
    Select(Vec<Choice>),
    /// Any number of the choices.
    Several(Vec<Choice>),
    Text,
    Number,
    /// Anything else: JSON in an editor.
    Document,
}

/// One of the answers to choose from.
struct Choice {
    value: Value,
    /// Its title in the schema.
    title: Option<String>,
}

impl Form {
    fn from_schema(schema: &Map<String, Value>) -> Self {
        let is_number = matches!(
            schema.get("type").and_then(Value::as_str),
            Some("integer" | "number")
        );
        match AnswerType::from_schema(schema) {
            Some(AnswerType::Boolean) => Self::YesNo,
            Some(AnswerType::Text) => Self::Text,
            Some(AnswerType::Select { options }) => Self::Select(with_titles(options, schema)),
            None => match scalar_choices(schema) {
                Some(choices) => Self::Select(choices),
                None if is_number => Self::Number,
                None => choices_of_items(schema).map_or(Self::Document, Self::Several),
            },
        }
    }
}

fn with_titles(options: Vec<String>, schema: &Map<String, Value>) -> Vec<Choice> {
    let mut titles = AnswerType::titles(schema);
    let choices = options.into_iter().map(|option| Choice {
        title: titles.remove(&option),
        value: Value::String(option),
    });
    choices.collect()
}

/// Returns the choices for the items of an array, if its schema lists them (MCP 2025-11-25, "Elicitation": multi-select
/// enums).
fn choices_of_items(schema: &Map<String, Value>) -> Option<Vec<Choice>> {
    let items = schema
        .get("items")
        .filter(|_| schema.get("type").is_some_and(|kind| kind == "array"))?;
    let mut items = items.as_object()?.clone();
    // MCP lets a titled enum omit the type, which `AnswerType` needs.
    items.entry("type").or_insert_with(|| "string".into());
    match AnswerType::from_schema(&items)? {
        AnswerType::Select { options } => Some(with_titles(options, &items)),
        AnswerType::Boolean | AnswerType::Text => None,
    }
}

/// Returns the values of a schema's `enum`, if the user can type each on one line.
fn scalar_choices(schema: &Map<String, Value>) -> Option<Vec<Choice>> {
    let values = schema
        .get("enum")?
        .as_array()
        .filter(|values| !values.is_empty())?;
    let choices = values.iter().map(|value| {
        is_scalar(value).then(|| Choice {
            value: value.clone(),
            title: None,
        })
    });
    choices.collect()
}

fn is_scalar(value: &Value) -> bool {
    !value.is_array() && !value.is_object()
}

/// Returns a value as the prompt shows it and the user types it: a string has no quotes.
fn plain_text(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

/// Shows who asks, the blocks before the question, and why the last answer was rejected.
fn show(question: &Question, terminal: &Terminal<'_>) {
    let asks = match &question.server {
        Some(server) => format!(
            "The MCP server `{server}` asks during a call of `{}`:",
            question.tool
        ),
        None => format!("The tool `{}` asks:", question.tool),
    };
    // Unquoted, as jp's own words: the user must see who asks.
    terminal.tell(Tone::Strong, &asks);
    for block in &question.context {
        quote(terminal, &describe_block(block), Extent::Part, |_| {
            Tone::Plain
        });
    }
    if let Some(description) = question
        .input
        .schema
        .get("description")
        .and_then(Value::as_str)
    {
        terminal.tell(Tone::Faint, &format!("  {}", shorten(description)));
    }
    if let Some(fault) = &question.fault {
        terminal.tell(
            Tone::Fault,
            &format!("That answer is not valid: {}", shorten(fault)),
        );
    }
}

/// Returns the text of a block, or the type and size of binary content.
fn describe_block(block: &ContentBlock) -> String {
    match block {
        ContentBlock::Text { text, .. } => text.clone(),
        ContentBlock::Resource { resource, .. } => describe_resource(resource),
        ContentBlock::Image(image) => describe_media("an image", image),
        ContentBlock::Audio(audio) => describe_media("a sound", audio),
        ContentBlock::Question { .. } => String::new(),
        ContentBlock::Unknown(never) => match *never {},
    }
}

fn describe_media(kind: &str, media: &Media) -> String {
    format!(
        "({kind}: {}, {})",
        media.mime_type,
        size::bytes(media.data.len() as u64)
    )
}

fn describe_resource(resource: &Resource) -> String {
    match (&resource.formatted, &resource.content) {
        (Some(text), _) | (None, ResourceContent::Text(text)) => {
            view::resource_block(resource, text)
        }
        (None, ResourceContent::Blob(bytes)) => {
            let kind = resource.mime_type.as_deref().unwrap_or("not text");
            format!(
                "({}: {kind}, {})",
                resource.label(),
                size::bytes(bytes.len() as u64)
            )
        }
    }
}

/// A question and what a prompt for it needs.
struct QuestionPrompt<'a> {
    terminal: &'a Terminal<'a>,
    question: &'a Question,
    schema: Schema,
}

impl QuestionPrompt<'_> {
    fn ask_yes_no(&self) -> Reply {
        let default = self.default();
        let hint = match default {
            Some(Value::Bool(true)) => "[Y/n]",
            Some(Value::Bool(false)) => "[y/N]",
            _ => "[y/n]",
        };
        let prompt = format!("{} {hint} (? for help)", self.label());
        let help = format!("Type y or n. {FOR_TURN} {NONE}");
        self.ask(&prompt, |line| {
            let (word, reply) = split_for_turn(line);
            let value = match word.to_lowercase().as_str() {
                "y" | "yes" => json!(true),
                "n" | "no" => json!(false),
                "" => default.cloned().ok_or(&help)?,
                _ => return Err(help.clone()),
            };
            self.check(value).map(reply)
        })
    }

    fn ask_for_one(&self, choices: &[Choice]) -> Reply {
        self.list(choices);
        let default = self.default();
        let prompt = format!("Which one?{} (? for help)", in_brackets(default));
        let help = format!("Type the number or the text of a choice. {FOR_TURN} {NONE}");
        self.ask(&prompt, |line| {
            // A choice may end in `!`, which is then part of its name.
            if let Some(value) = find_by_name(line.trim(), choices) {
                return self.check(value).map(Reply::Once);
            }
            let (word, reply) = split_for_turn(line);
            let chosen = if word.is_empty() {
                default.cloned()
            } else {
                find_choice(word, choices)
            };
            self.check(chosen.ok_or(&help)?).map(reply)
        })
    }

    /// Asks for any number of choices; the answer keeps the order in which they are typed.
    fn ask_for_several(&self, choices: &[Choice]) -> Reply {
        self.list(choices);
        let default = self.default();
        let items = default
            .and_then(Value::as_array)
            .map(|items| items.iter().map(plain_text).collect::<Vec<_>>());
        let items = items
            .map(|items| format!(" [{}]", shorten(&items.join(", "))))
            .unwrap_or_default();
        let prompt = format!("Which of them?{items} (? for help)");
        let help = format!("Type numbers or texts, separated by commas: 1, 3. {NONE}");
        self.ask(&prompt, |line| {
            let words: Vec<_> = line
                .split(',')
                .map(str::trim)
                .filter(|word| !word.is_empty())
                .collect();
            let picked: Option<Vec<Value>> = words
                .iter()
                .map(|word| find_choice(word, choices))
                .collect();
            // Only an empty line takes the default: a typing error must not.
            let default = default.filter(|_| line.trim().is_empty()).cloned();
            let answer = default.or(picked.map(Value::Array));
            self.check(answer.ok_or(&help)?).map(Reply::Once)
        })
    }

    /// Shows the choices with their numbers.
    fn list(&self, choices: &[Choice]) {
        self.terminal.tell(Tone::Strong, &self.label());
        for (index, choice) in choices.iter().enumerate() {
            let title = choice
                .title
                .as_ref()
                .map(|title| format!(" ({title})"))
                .unwrap_or_default();
            let line = shorten(&format!("{}{title}", plain_text(&choice.value)));
            self.terminal
                .tell(Tone::Plain, &format!("  {}. {line}", index + 1));
        }
    }

    fn ask_for_text(&self) -> Reply {
        let default = self.default();
        let prompt = format!("{}{}", self.label(), in_brackets(default));
        self.ask(&prompt, |line| {
            // Blanks alone are an answer here; only Enter alone takes the default.
            let default = default.filter(|_| line.is_empty()).cloned();
            self.check(default.unwrap_or_else(|| line.into()))
                .map(Reply::Once)
        })
    }

    fn ask_for_number(&self) -> Reply {
        let default = self.default();
        let prompt = format!("{}{}", self.label(), in_brackets(default));
        self.ask(&prompt, |line| {
            let default = default.filter(|_| line.trim().is_empty()).cloned();
            let typed =
                || serde_json::from_str::<serde_json::Number>(line.trim()).map(Value::Number);
            let value = default.map_or_else(typed, Ok);
            let value = value.map_err(|_| format!("Type a number such as 12 or 0.5. {NONE}"))?;
            self.check(value).map(Reply::Once)
        })
    }

    fn ask_for_document(&self) -> Reply {
        self.terminal.tell(Tone::Strong, &self.label());
        let mut text = to_pretty_json(
            &self
                .default()
                .cloned()
                // A template has the required fields, so that the user only fills them in.
                .unwrap_or_else(|| jp_tool::template(&self.question.input.schema)),
        );
        let prompt = "The answer is JSON. Press Enter to open it in your editor, or type n to give no answer:";
        loop {
            match self.terminal.ask(prompt) {
                Typed::Line(line) if matches!(line.trim(), "n" | "no") => return Reply::Declined,
                Typed::Nothing => return Reply::Declined,
                Typed::Interrupted => return Reply::Interrupted,
                Typed::Line(_) => {}
            }
            match self.edit(&mut text) {
                Ok(value) => return Reply::Once(value),
                Err(fault) => self.terminal.tell(Tone::Fault, &fault),
            }
        }
    }

    /// Opens the answer in the editor. `text` keeps the saved text, so that a second try starts from it.
    fn edit(&self, text: &mut String) -> Result<Value, String> {
        let edited = editor::edit(text, self.terminal)?;
        if edited.trim().is_empty() {
            return Err("The file is empty.".to_owned());
        }
        *text = edited;
        let value =
            serde_json::from_str(text).map_err(|error| format!("That is not JSON: {error}."))?;
        self.check(value)
    }

    /// Asks until `read` accepts the line; its error is shown to the user.
    fn ask(&self, prompt: &str, read: impl Fn(&str) -> Result<Reply, String>) -> Reply {
        loop {
            match self.terminal.ask(prompt) {
                Typed::Line(line) => match read(&line) {
                    Ok(reply) => return reply,
                    Err(fault) => self.terminal.tell(Tone::Fault, &shorten(&fault)),
                },
                Typed::Nothing => return Reply::Declined,
                Typed::Interrupted => return Reply::Interrupted,
            }
        }
    }

    /// Checks an answer against the question's schema.
    fn check(&self, value: Value) -> Result<Value, String> {
        match self.schema.check_value(&value) {
            Ok(()) => Ok(value),
            Err(faults) => Err(format!("That answer is not valid: {faults}")),
        }
    }

    /// Returns the default, if it matches the schema.
    fn default(&self) -> Option<&Value> {
        self.question
            .input
            .default
            .as_ref()
            .filter(|default| self.schema.check_value(default).is_ok())
    }

    fn label(&self) -> String {
        shorten(&self.question.input.text)
    }
}

/// Writes a default behind a prompt: ` [main]`.
fn in_brackets(default: Option<&Value>) -> String {
    default
        .map(|default| format!(" [{}]", shorten(&plain_text(default))))
        .unwrap_or_default()
}

/// Splits off the final `!`, which keeps an answer for the rest of the turn.
fn split_for_turn(line: &str) -> (&str, fn(Value) -> Reply) {
    match line.trim().strip_suffix('!') {
        Some(word) => (word.trim_end(), Reply::ForTurn),
        None => (line.trim(), Reply::Once),
    }
}

/// Finds a choice by its value or title, else by its number. Values come first because they may be numbers, too.
fn find_choice(word: &str, choices: &[Choice]) -> Option<Value> {
    let number = || {
        choices
            .get(word.parse::<usize>().ok()?.checked_sub(1)?)
            .map(|choice| choice.value.clone())
    };
    find_by_name(word, choices).or_else(number)
}

fn find_by_name(word: &str, choices: &[Choice]) -> Option<Value> {
    let is_named = |choice: &&Choice| {
        plain_text(&choice.value) == word || choice.title.as_deref() == Some(word)
    };
    choices
        .iter()
        .find(is_named)
        .map(|choice| choice.value.clone())
}
