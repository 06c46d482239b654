use std::{
    borrow::Cow,
    collections::BTreeSet,
    io::{self, Write},
};

use jp_conversation::{
    ToolCallRequest,
    view::{self, Message, Thread},
};
use jp_resource::Snapshot;
use jp_tool::StoredBlock;
use serde::Serialize;
use serde_json::{Map, Value};

use super::{
    blocks::{self, Block, Role, ToolResult, WireMessage},
    marks,
    schema::closed,
};
use crate::{
    CacheMarks, Capabilities, Contents, Error, Note, Request, Tool,
    flat::FlatTool,
    json::{JsonText, write_string},
    later::{Text, TextForm},
    parts::{
        IMAGES, PDF, Separator, UNKNOWN, essence, is_blank, name_within, result_of, subject,
        write_base64, write_json,
    },
    shown::{self, Shown},
    xml,
};

/// How many tokens an answer may have where the request does not say: the API wants a number, and every
/// model since Claude 4 takes this one.
pub const DEFAULT_MAX_TOKENS: u64 = 32_000;

/// How many cache marks a request may have.
const MOST_MARKS: usize = 4;
/// A cache mark: the last field of the block that has it.
const MARK: &[u8] = br#","cache_control":{"type":"ephemeral"}"#;
/// How many characters the title of a document may have.
const LONGEST_TITLE: usize = 500;
/// How many characters the name of a called tool may have.
const LONGEST_NAME: usize = 200;
/// Stands for what a failed tool returned, if it was nothing: the API wants something there.
const NO_ERROR_MESSAGE: &str = "The tool failed without a message.";

/// Writes a request's JSON and returns what the model is told of but not shown.
///
/// Equal requests give equal bytes. The messages stand last, and a block depends on nothing after it: what
/// a request says of the history is a prefix of what the next one says, but for the end of the last message
/// and the cache marks (`,"cache_control":{"type":"ephemeral"}` before the end of a block), which move on.
/// One mark is at the end of the system prompt, or of the tools without one; the others are in the
/// messages. All last 5 minutes. One payload is in memory at a time; `out` should be buffered.
///
/// Reasoning is neither asked for nor forbidden: what the model does by itself, it does.
pub fn encode(
    request: &Request<'_>,
    contents: &mut dyn Contents,
    out: &mut dyn Write,
) -> Result<Vec<Note>, Error> {
    let (messages, ends) = blocks::messages(request);
    let head = Head::of(request);
    let marks = places(request, &messages, &ends, &head);
    head.write(out)?;
    let mut encoder = Encoder {
        capabilities: request.capabilities,
        contents,
        notes: Vec::new(),
    };
    encoder.write_messages(&messages, &marks, out)?;
    out.write_all(b"]}")?;
    Ok(encoder.notes)
}

/// Returns where a request's cache marks are.
pub(crate) fn cache_marks(request: &Request<'_>) -> CacheMarks {
    let (messages, ends) = blocks::messages(request);
    let head = Head::of(request);
    let marks = places(request, &messages, &ends, &head);
    let mut marked: Vec<usize> = marks
        .iter()
        .map(|block| ends.partition_point(|end| end < block))
        .collect();
    marked.dedup();
    CacheMarks {
        head: head.marks() > 0,
        messages: marked,
    }
}

fn places(
    request: &Request<'_>,
    messages: &[WireMessage<'_>],
    ends: &[usize],
    head: &Head<'_>,
) -> BTreeSet<usize> {
    marks::places(
        messages,
        ends,
        &request.thread.cache_hints(),
        MOST_MARKS - head.marks(),
    )
}

#[derive(Serialize)]
struct Head<'a> {
    model: &'a str,
    max_tokens: u64,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_config: Option<OutputConfig>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<WireTool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<ToolChoice>,
    #[serde(skip_serializing_if = "Option::is_none")]
    system: Option<[SystemBlock<'a>; 1]>,
}

#[derive(Serialize)]
struct OutputConfig {
    format: OutputFormat,
}

#[derive(Serialize)]
struct OutputFormat {
    r#type: &'static str,
    schema: Map<String, Value>,
}

#[derive(Serialize)]
struct WireTool<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    description: Cow<'a, str>,
    input_schema: Cow<'a, Map<String, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<CacheControl>,
}

#[derive(Serialize)]
struct ToolChoice {
    r#type: &'static str,
}

#[derive(Serialize)]
struct SystemBlock<'a> {
    r#type: &'static str,
    text: &'a str,
    cache_control: CacheControl,
}

#[derive(Serialize)]
struct CacheControl {
    r#type: &'static str,
}

#[derive(Serialize)]
struct Thinking<'a> {
    r#type: &'static str,
    thinking: &'a str,
    signature: &'a str,
}

#[derive(Serialize)]
struct RedactedThinking<'a> {
    r#type: &'static str,
    data: &'a str,
}

const EPHEMERAL: CacheControl = CacheControl {
    r#type: "ephemeral",
};

impl<'a> Head<'a> {
    fn of(request: &Request<'a>) -> Self {
        let schema = request.schema();
        let format = |schema| OutputFormat {
            r#type: "json_schema",
            schema: closed(schema),
        };
        let system = request.system.filter(|system| !is_blank(system));
        let system = system.map(|text| {
            [SystemBlock {
                r#type: "text",
                text,
                cache_control: EPHEMERAL,
            }]
        });
        let mut tools: Vec<_> = request.tools.iter().map(WireTool::from).collect();
        let tool_choice = (tools.is_empty() && calls_tools(request.thread)).then(|| {
            tools.push(WireTool::none());
            ToolChoice { r#type: "none" }
        });
        if let (None, Some(tool)) = (&system, tools.last_mut()) {
            tool.cache_control = Some(EPHEMERAL);
        }
        Self {
            model: request.model,
            max_tokens: request.max_output.unwrap_or(DEFAULT_MAX_TOKENS),
            stream: true,
            output_config: schema.map(|schema| OutputConfig {
                format: format(schema),
            }),
            tools,
            tool_choice,
            system,
        }
    }

    /// Returns how many cache marks are in it.
    fn marks(&self) -> usize {
        usize::from(self.system.is_some() || !self.tools.is_empty())
    }

    /// Writes all up to the first message.
    fn write(&self, out: &mut dyn Write) -> Result<(), Error> {
        let mut json = serde_json::to_vec(self).map_err(io::Error::from)?;
        json.pop();
        out.write_all(&json)?;
        Ok(out.write_all(br#","messages":["#)?)
    }
}

/// Returns whether a tool was called anywhere.
fn calls_tools(thread: &Thread<'_>) -> bool {
    thread
        .messages
        .iter()
        .any(|message| matches!(message, Message::Tool { .. }))
}

impl WireTool<'_> {
    /// Makes a tool that can't be called: the API refuses calls in the history of a request without tools.
    fn none() -> Self {
        let schema = [("type".to_owned(), "object".into())];
        Self {
            name: "none",
            description: Cow::Borrowed("The tools of earlier messages are not available now."),
            input_schema: Cow::Owned(schema.into_iter().collect()),
            cache_control: None,
        }
    }
}

impl<'a> From<&'a Tool> for WireTool<'a> {
    fn from(tool: &'a Tool) -> Self {
        let FlatTool {
            description,
            parameters,
        } = FlatTool::new(tool);
        Self {
            name: &tool.name,
            description,
            input_schema: parameters,
            cache_control: None,
        }
    }
}

struct Encoder<'e> {
    capabilities: Capabilities,
    contents: &'e mut dyn Contents,
    notes: Vec<Note>,
}

/// Where content stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Message,
    Result,
    /// Where the API takes nothing but text.
    FailedResult,
}

/// What bytes become.
enum Form {
    Image,
    Pdf,
}

/// The content of a result; none at all if nothing is written.
#[derive(Default)]
struct Content {
    is_open: bool,
}

impl Encoder<'_> {
    fn write_messages(
        &mut self,
        messages: &[WireMessage<'_>],
        marks: &BTreeSet<usize>,
        out: &mut dyn Write,
    ) -> Result<(), Error> {
        let mut between_messages = Separator::default();
        let mut index = 0;
        for message in messages {
            between_messages.write(out)?;
            out.write_all(match message.role {
                Role::User => br#"{"role":"user","content":["#,
                Role::Assistant => br#"{"role":"assistant","content":["#,
            })?;
            let mut between_blocks = Separator::default();
            for block in &message.blocks {
                between_blocks.write(out)?;
                self.write_block(block, out)?;
                out.write_all(if marks.contains(&index) { MARK } else { b"" })?;
                out.write_all(b"}")?;
                index += 1;
            }
            out.write_all(b"]}")?;
        }
        Ok(())
    }

    /// Writes a block but for its closing brace.
    fn write_block(&mut self, block: &Block<'_>, out: &mut dyn Write) -> Result<(), Error> {
        match block {
            Block::Text(text) => write_text(out, |out| out.push(text)),
            Block::Thinking { text, signature } => write_open(
                &Thinking {
                    r#type: "thinking",
                    thinking: text,
                    signature,
                },
                out,
            ),
            Block::RedactedThinking(data) => write_open(
                &RedactedThinking {
                    r#type: "redacted_thinking",
                    data,
                },
                out,
            ),
            Block::ToolUse { id, call } => write_tool_use(id, call, out),
            Block::ToolResult(result) => self.write_tool_result(result, out),
            Block::Resource { turn, resource } => {
                let loaded = shown::load_attached(resource, TextForm::Plain, self.contents)?;
                self.write_resource(*turn, resource, loaded, Place::Message, out)
            }
        }
    }

    fn write_resource(
        &mut self,
        turn: usize,
        resource: &Snapshot,
        loaded: Shown<'_, Text<'_>>,
        place: Place,
        out: &mut dyn Write,
    ) -> Result<(), Error> {
        let bytes = match loaded {
            Shown::Text(text) => return write_text_resource(resource, &text, out),
            Shown::Binary(bytes) => bytes,
        };
        let mime = essence(resource.mime_type.as_deref().unwrap_or(UNKNOWN));
        match self.form(&mime, place) {
            Ok(Form::Image) => write_document(resource, out, |out| {
                out.write_all(br#"{"type":"content","content":["#)?;
                write_image(&mime, &bytes, out)?;
                out.write_all(b"}]}")
            }),
            Ok(Form::Pdf) => write_document(resource, out, |out| write_source(PDF, &bytes, out)),
            Err(reason) => {
                let note = format!("[not shown: {reason}; {} bytes]", bytes.len());
                self.note(turn, subject(resource), reason, bytes.len());
                write_text(out, |out| xml::write_note(out, resource, &note))
            }
        }
    }

    /// Says what bytes become, or why they are not shown.
    fn form(&self, mime: &str, place: Place) -> Result<Form, String> {
        let form = match mime {
            PDF => self.capabilities.pdf.then_some(Form::Pdf),
            mime if IMAGES.contains(&mime) => self.capabilities.images.then_some(Form::Image),
            _ => None,
        };
        let form = form.ok_or_else(|| format!("this model does not take {mime}"))?;
        match place {
            Place::FailedResult => Err(format!("results of failed tools are text, this is {mime}")),
            Place::Result if !self.capabilities.binary_results => {
                Err(format!("results of tools are text, this is {mime}"))
            }
            Place::Message | Place::Result => Ok(form),
        }
    }

    fn write_tool_result(
        &mut self,
        result: &ToolResult<'_>,
        out: &mut dyn Write,
    ) -> Result<(), Error> {
        out.write_all(br#"{"type":"tool_result","tool_use_id":"#)?;
        write_json(&result.id, out)?;
        let mut content = Content::default();
        let is_error = result.response.is_some_and(|response| response.is_error);
        match result.response {
            None => content.write_text(view::text_of_missing_result(), out)?,
            Some(response) => {
                for block in &response.content {
                    self.write_result_block(result, block, &mut content, out)?;
                }
            }
        }
        if is_error && !content.is_open {
            content.write_text(NO_ERROR_MESSAGE, out)?;
        }
        content.end(out)?;
        Ok(out.write_all(if is_error {
            br#","is_error":true"#
        } else {
            b""
        })?)
    }

    /// Writes a block of a result; blank text is left out.
    fn write_result_block(
        &mut self,
        result: &ToolResult<'_>,
        block: &StoredBlock,
        content: &mut Content,
        out: &mut dyn Write,
    ) -> Result<(), Error> {
        let place = match result.response {
            Some(response) if response.is_error => Place::FailedResult,
            _ => Place::Result,
        };
        match block {
            StoredBlock::Text { text, .. } => {
                let text = shown::load_result_text(result.call, block, text, self.contents)?;
                content.write_text(&text, out)
            }
            StoredBlock::Question { question } => content.write_text(&question.text, out),
            StoredBlock::Unknown(block) => content.write_text(&block.note(), out),
            StoredBlock::Resource { resource, .. } => {
                content.begin(out)?;
                match shown::load_result_resource(block, resource, self.contents)? {
                    Shown::Text(text) if place == Place::FailedResult && !is_blank(&text) => {
                        write_text(out, |out| out.push(&view::resource_block(resource, &text)))?;
                    }
                    loaded => {
                        self.write_resource(result.turn, resource, loaded.now(), place, out)?
                    }
                }
                Ok(out.write_all(b"}")?)
            }
            StoredBlock::Image(media) | StoredBlock::Audio(media) => {
                let bytes = shown::load_media(media, &result_of(result.call), self.contents)?;
                self.write_media(result, &media.mime_type, &bytes, place, content, out)
            }
        }
    }

    fn write_media(
        &mut self,
        result: &ToolResult<'_>,
        mime: &str,
        bytes: &[u8],
        place: Place,
        content: &mut Content,
        out: &mut dyn Write,
    ) -> Result<(), Error> {
        let mime = essence(mime);
        let reason = match self.form(&mime, place) {
            Ok(Form::Image) => {
                content.begin(out)?;
                write_image(&mime, bytes, out)?;
                return Ok(out.write_all(b"}")?);
            }
            Ok(Form::Pdf) => "it is no image".to_owned(),
            Err(reason) => reason,
        };
        let subject = result_of(result.call);
        content.write_text(
            &format!("[{subject} is not shown: {reason}; {} bytes]", bytes.len()),
            out,
        )?;
        self.note(result.turn, subject, reason, bytes.len());
        Ok(())
    }

    fn note(&mut self, turn: usize, subject: String, reason: String, size: usize) {
        self.notes.push(Note {
            turn,
            subject,
            reason,
            bytes: Some(size as u64),
        });
    }
}

impl Content {
    fn begin(&mut self, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(if std::mem::replace(&mut self.is_open, true) {
            b","
        } else {
            br#","content":["#
        })
    }

    fn write_text(&mut self, text: &str, out: &mut dyn Write) -> Result<(), Error> {
        if is_blank(text) {
            return Ok(());
        }
        self.begin(out)?;
        write_text(out, |out| out.push(text))?;
        Ok(out.write_all(b"}")?)
    }

    fn end(&self, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(if self.is_open { b"]" } else { b"" })
    }
}

/// Writes an object but for its closing brace.
fn write_open(value: &impl Serialize, out: &mut dyn Write) -> Result<(), Error> {
    let mut json = serde_json::to_vec(value).map_err(io::Error::from)?;
    json.pop();
    Ok(out.write_all(&json)?)
}

fn write_text(
    out: &mut dyn Write,
    fill: impl FnOnce(&mut JsonText<'_>) -> io::Result<()>,
) -> Result<(), Error> {
    out.write_all(br#"{"type":"text","text":"#)?;
    Ok(write_string(out, fill)?)
}

fn write_tool_use(id: &str, call: &ToolCallRequest, out: &mut dyn Write) -> Result<(), Error> {
    out.write_all(br#"{"type":"tool_use","id":"#)?;
    write_json(&id, out)?;
    out.write_all(br#","name":"#)?;
    write_json(&name_within(call, LONGEST_NAME), out)?;
    out.write_all(br#","input":"#)?;
    write_json(&call.arguments, out)
}

/// Writes text as a document where there may be one, which the API wants to have something in it.
fn write_text_resource(
    resource: &Snapshot,
    text: &Text<'_>,
    out: &mut dyn Write,
) -> Result<(), Error> {
    if text.is_blank() {
        return write_text(out, |out| xml::write_text(out, resource, text));
    }
    write_document(resource, out, |out| {
        out.write_all(br#"{"type":"text","media_type":"text/plain","data":"#)?;
        write_string(out, |out| out.put(text))?;
        out.write_all(b"}")
    })
}

fn write_document(
    resource: &Snapshot,
    out: &mut dyn Write,
    write_source: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), Error> {
    out.write_all(br#"{"type":"document""#)?;
    if let Some(title) = title(resource) {
        out.write_all(br#","title":"#)?;
        write_json(&title, out)?;
    }
    out.write_all(br#","context":"#)?;
    write_json(&context(resource), out)?;
    out.write_all(br#","source":"#)?;
    Ok(write_source(out)?)
}

/// Writes an image block but for its closing brace; `mime` is one of [`IMAGES`].
fn write_image(mime: &str, bytes: &[u8], out: &mut dyn Write) -> io::Result<()> {
    out.write_all(br#"{"type":"image","source":"#)?;
    write_source(mime, bytes, out)
}

fn write_source(mime: &str, bytes: &[u8], out: &mut dyn Write) -> io::Result<()> {
    write!(out, r#"{{"type":"base64","media_type":"{mime}","data":""#)?;
    write_base64(bytes, out)?;
    out.write_all(br#""}"#)
}

/// Returns title, name or URI, shortened; `None` where none of them says anything.
fn title(resource: &Snapshot) -> Option<String> {
    let names = [
        resource.title.as_ref(),
        resource.name.as_ref(),
        Some(&resource.uri),
    ];
    let title = names.into_iter().flatten().find(|name| !is_blank(name))?;
    if title.chars().nth(LONGEST_TITLE).is_none() {
        return Some(title.clone());
    }
    Some(title.chars().take(LONGEST_TITLE - 1).chain(['…']).collect())
}

/// Says where a resource is from and what it is, a line each.
fn context(resource: &Snapshot) -> String {
    let mut context = format!("URI: {}", resource.uri);
    if let Some(mime_type) = &resource.mime_type {
        context.push_str(&format!("\nMIME type: {mime_type}"));
    }
    if let Some(description) = &resource.description {
        context.push_str(&format!("\nDescription: {description}"));
    }
    context
}

#[cfg(test)]
mod tests;
