//! Asks the person what a tool asks.

use crate::{
    console::Console,
    output::{Output, Tone},
    prompt::{Extent, editor, quote, quote_for_user, shortened},
    terminal::{Terminal, Typed},
};
use jp_conversation::view;
use jp_resource::{Resource, ResourceContent};
use jp_session::{size, text::visible};
use jp_tool::{AnswerType, ContentBlock, Media};
use jp_turn::{Question, Reply, Schema};
use serde_json::{Map, Value, json};

const FOR_TURN: &str =
    "Add `!` to answer the same whenever the tool asks this until the answer ends.";
const NONE: &str = "Ctrl-D gives no answer.";

/// Asks a question; `None` where nobody is there to answer.
pub(crate) fn answer(question: &Question, console: &Console) -> Option<Reply> {
    let terminal = &Terminal::open(console)?;
    let schema = Schema::compile(&question.input.schema).ok()?;
    show(question, terminal);
    let asking = Asking {
        terminal,
        console,
        question,
        schema,
    };
    Some(match Form::of(&question.input.schema) {
        Form::YesNo => asking.yes_no(),
        Form::Select(options) => asking.select(&options),
        Form::Several(options) => asking.several(&options),
        Form::Text => asking.text(),
        Form::Number => asking.number(),
        Form::Document => asking.document(),
    })
}

/// Shows what a tool returned after its last question.
pub(crate) fn show_blocks(tool: &str, blocks: &[ContentBlock], console: &Console) {
    // Somebody is there: they have just answered.
    let Some(terminal) = Terminal::open(console) else {
        return;
    };
    terminal.tell(Tone::Strong, &format!("The tool `{tool}` adds:"));
    for block in blocks {
        quote(&terminal, &shown(block), Extent::Part, |_| Tone::Plain);
    }
}

/// Shows what a tool returned only for the user, with or without a terminal.
pub(crate) fn show_to_user(tool: &str, blocks: &[ContentBlock], output: &Output) {
    output.tell(
        Tone::Plain,
        &format!("The tool `{}` shows this only to you:", visible(tool)),
    );
    blocks
        .iter()
        .for_each(|block| quote_for_user(output, &shown(block)));
}

/// How a question is asked.
enum Form {
    YesNo,
    Select(Vec<Choice>),
    /// Some of them.
    Several(Vec<Choice>),
    Text,
    Number,
    /// Anything else: JSON in an editor.
    Document,
}

/// One of the answers to choose from.
struct Choice {
    value: Value,
    /// What the schema calls it, where it has a name.
    title: Option<String>,
}

impl Form {
    fn of(schema: &Map<String, Value>) -> Self {
        let is_number = matches!(
            schema.get("type").and_then(Value::as_str),
            Some("integer" | "number")
        );
        match AnswerType::from_schema(schema) {
            Some(AnswerType::Boolean) => Self::YesNo,
            Some(AnswerType::Text) => Self::Text,
            Some(AnswerType::Select { options }) => Self::Select(titled(options, schema)),
            None => match scalars(schema) {
                Some(choices) => Self::Select(choices),
                None if is_number => Self::Number,
                None => of_items(schema).map_or(Self::Document, Self::Several),
            },
        }
    }
}

fn titled(options: Vec<String>, schema: &Map<String, Value>) -> Vec<Choice> {
    let mut titles = AnswerType::titles(schema);
    let choice = |option: String| Choice {
        title: titles.remove(&option),
        value: Value::String(option),
    };
    options.into_iter().map(choice).collect()
}

/// Returns what a list may be made of, where its schema says it (MCP, "Multi-select enum").
fn of_items(schema: &Map<String, Value>) -> Option<Vec<Choice>> {
    let items = schema
        .get("items")
        .filter(|_| schema.get("type").is_some_and(|kind| kind == "array"))?;
    let mut items = items.as_object()?.clone();
    items.entry("type").or_insert_with(|| "string".into());
    match AnswerType::from_schema(&items)? {
        AnswerType::Select { options } => Some(titled(options, &items)),
        AnswerType::Boolean | AnswerType::Text => None,
    }
}

/// Returns the values that a schema lists, if each can be typed.
fn scalars(schema: &Map<String, Value>) -> Option<Vec<Choice>> {
    let values = schema
        .get("enum")?
        .as_array()
        .filter(|values| !values.is_empty())?;
    let choice = |value: &Value| {
        is_scalar(value).then(|| Choice {
            value: value.clone(),
            title: None,
        })
    };
    values.iter().map(choice).collect()
}

fn is_scalar(value: &Value) -> bool {
    !value.is_array() && !value.is_object()
}

/// Returns a value as it is shown and typed: a string without its quotes.
fn plain(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

/// Shows who asks, what they returned before, and what was wrong with the last answer.
fn show(question: &Question, terminal: &Terminal<'_>) {
    let asks = match &question.server {
        Some(server) => format!(
            "The MCP server `{server}` asks, as the tool `{}` is called:",
            question.tool
        ),
        None => format!("The tool `{}` asks:", question.tool),
    };
    terminal.tell(Tone::Strong, &asks);
    for block in &question.context {
        quote(terminal, &shown(block), Extent::Part, |_| Tone::Plain);
    }
    if let Some(description) = question
        .input
        .schema
        .get("description")
        .and_then(Value::as_str)
    {
        terminal.tell(Tone::Faint, &format!("  {}", shortened(description)));
    }
    if let Some(fault) = &question.fault {
        terminal.tell(
            Tone::Fault,
            &format!("That answer does not fit: {}", shortened(fault)),
        );
    }
}

/// Returns a block as text.
fn shown(block: &ContentBlock) -> String {
    let media = |what: &str, media: &Media| {
        format!(
            "({what}: {}, {})",
            media.mime_type,
            size::bytes(media.data.len() as u64)
        )
    };
    match block {
        ContentBlock::Text { text, .. } => text.clone(),
        ContentBlock::Resource { resource, .. } => shown_resource(resource),
        ContentBlock::Image(image) => media("an image", image),
        ContentBlock::Audio(audio) => media("a sound", audio),
        ContentBlock::Question { .. } => String::new(),
        ContentBlock::Unknown(never) => match *never {},
    }
}

fn shown_resource(resource: &Resource) -> String {
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

/// A question that is being asked.
struct Asking<'a> {
    terminal: &'a Terminal<'a>,
    console: &'a Console,
    question: &'a Question,
    schema: Schema,
}

impl Asking<'_> {
    fn yes_no(&self) -> Reply {
        let default = self.default();
        let hint = match default {
            Some(Value::Bool(true)) => "[Y/n]",
            Some(Value::Bool(false)) => "[y/N]",
            _ => "[y/n]",
        };
        let prompt = format!("{} {hint} (? for help)", self.label());
        let help = format!("Type y or n. {FOR_TURN} {NONE}");
        self.ask(&prompt, |line| {
            let (word, reply) = for_turn(line);
            let value = match word.to_lowercase().as_str() {
                "y" | "yes" => json!(true),
                "n" | "no" => json!(false),
                "" => default.cloned().ok_or(&help)?,
                _ => return Err(help.clone()),
            };
            self.fitting(value).map(reply)
        })
    }

    fn select(&self, choices: &[Choice]) -> Reply {
        self.list(choices);
        let default = self.default();
        let prompt = format!("Which one?{} (? for help)", bracketed(default));
        let help = format!("Type the number or the words of one of them. {FOR_TURN} {NONE}");
        self.ask(&prompt, |line| {
            if let Some(value) = named(line.trim(), choices) {
                return self.fitting(value).map(Reply::Once);
            }
            let (word, reply) = for_turn(line);
            let chosen = if word.is_empty() {
                default.cloned()
            } else {
                chosen(word, choices)
            };
            self.fitting(chosen.ok_or(&help)?).map(reply)
        })
    }

    /// Asks for some of the choices, in the order in which they are typed.
    fn several(&self, choices: &[Choice]) -> Reply {
        self.list(choices);
        let default = self.default();
        let items = default
            .and_then(Value::as_array)
            .map(|items| items.iter().map(plain).collect::<Vec<_>>());
        let items = items
            .map(|items| format!(" [{}]", shortened(&items.join(", "))))
            .unwrap_or_default();
        let prompt = format!("Which of them?{items} (? for help)");
        let help = format!("Type the numbers or the words, with commas between: 1, 3. {NONE}");
        self.ask(&prompt, |line| {
            let words: Vec<_> = line
                .split(',')
                .map(str::trim)
                .filter(|word| !word.is_empty())
                .collect();
            let picked: Option<Vec<Value>> =
                words.iter().map(|word| chosen(word, choices)).collect();
            let default = default.filter(|_| line.trim().is_empty()).cloned();
            let answer = default.or(picked.map(Value::Array));
            self.fitting(answer.ok_or(&help)?).map(Reply::Once)
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
            let line = shortened(&format!("{}{title}", plain(&choice.value)));
            self.terminal
                .tell(Tone::Plain, &format!("  {}. {line}", index + 1));
        }
    }

    fn text(&self) -> Reply {
        let default = self.default();
        let prompt = format!("{}{}", self.label(), bracketed(default));
        self.ask(&prompt, |line| {
            let default = default.filter(|_| line.is_empty()).cloned();
            self.fitting(default.unwrap_or_else(|| line.into()))
                .map(Reply::Once)
        })
    }

    fn number(&self) -> Reply {
        let default = self.default();
        let prompt = format!("{}{}", self.label(), bracketed(default));
        self.ask(&prompt, |line| {
            let default = default.filter(|_| line.trim().is_empty()).cloned();
            let typed =
                || serde_json::from_str::<serde_json::Number>(line.trim()).map(Value::Number);
            let value = default.map_or_else(typed, Ok);
            let value = value.map_err(|_| format!("Type a number, as 12 or 0.5. {NONE}"))?;
            self.fitting(value).map(Reply::Once)
        })
    }

    fn document(&self) -> Reply {
        self.terminal.tell(Tone::Strong, &self.label());
        let mut text = pretty(
            &self
                .default()
                .cloned()
                .unwrap_or_else(|| jp_tool::template(&self.question.input.schema)),
        );
        let prompt = "The answer is JSON. Enter opens it in your editor, n gives no answer:";
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

    /// Lets the person edit the answer; what they saved is in `text` next time.
    fn edit(&self, text: &mut String) -> Result<Value, String> {
        let edited = editor::edit(text, self.terminal, self.console)?;
        if edited.trim().is_empty() {
            return Err("Nothing was written.".to_owned());
        }
        *text = edited;
        let value =
            serde_json::from_str(text).map_err(|error| format!("That is no JSON: {error}."))?;
        self.fitting(value)
    }

    /// Asks until what is typed can be read as an answer.
    fn ask(&self, prompt: &str, read: impl Fn(&str) -> Result<Reply, String>) -> Reply {
        loop {
            match self.terminal.ask(prompt) {
                Typed::Line(line) => match read(&line) {
                    Ok(reply) => return reply,
                    Err(fault) => self.terminal.tell(Tone::Fault, &shortened(&fault)),
                },
                Typed::Nothing => return Reply::Declined,
                Typed::Interrupted => return Reply::Interrupted,
            }
        }
    }

    fn fitting(&self, value: Value) -> Result<Value, String> {
        match self.schema.check_value(&value) {
            Ok(()) => Ok(value),
            Err(faults) => Err(format!("That answer does not fit: {faults}")),
        }
    }

    /// Returns the default, if it is an answer.
    fn default(&self) -> Option<&Value> {
        self.question
            .input
            .default
            .as_ref()
            .filter(|default| self.schema.check_value(default).is_ok())
    }

    fn label(&self) -> String {
        shortened(&self.question.input.text)
    }
}

fn bracketed(default: Option<&Value>) -> String {
    default
        .map(|default| format!(" [{}]", shortened(&plain(default))))
        .unwrap_or_default()
}

/// Splits the `!` off that makes an answer one for the rest of the turn.
fn for_turn(line: &str) -> (&str, fn(Value) -> Reply) {
    match line.trim().strip_suffix('!') {
        Some(word) => (word.trim_end(), Reply::ForTurn),
        None => (line.trim(), Reply::Once),
    }
}

/// Finds a choice by its words or its title, else by its number: words may be numbers too.
fn chosen(word: &str, choices: &[Choice]) -> Option<Value> {
    let number = || {
        choices
            .get(word.parse::<usize>().ok()?.checked_sub(1)?)
            .map(|choice| choice.value.clone())
    };
    named(word, choices).or_else(number)
}

fn named(word: &str, choices: &[Choice]) -> Option<Value> {
    let is_named =
        |choice: &&Choice| plain(&choice.value) == word || choice.title.as_deref() == Some(word);
    choices
        .iter()
        .find(is_named)
        .map(|choice| choice.value.clone())
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default() + "\n"
}
