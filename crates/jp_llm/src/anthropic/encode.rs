use std::{borrow::Cow, collections::BTreeSet, io, io::Write};

use jp_conversation::view::{self, Message, Thread};
use jp_resource::Snapshot;
use jp_tool::StoredBlock;
use serde::Serialize;
use serde_json::{Map, Value};

use super::{
    blocks::{self, Block, ToolResult, WireMessage},
    marks,
    schema::close_objects,
};
use crate::{
    CacheMarks, Capabilities, Contents, Error, Note, Request, Tool,
    flat::FlatTool,
    json::{JsonText, JsonWriter},
    later::{Text, TextForm},
    parts::{
        CacheControl, EPHEMERAL, IMAGES, PDF, UNKNOWN, essence, is_blank, result_of,
        sendable_name_within, subject,
    },
    shown::{self, Shown},
    xml,
};

/// Most tokens of an answer if the request does not say: the API wants a number, and every model since Claude 4 takes
/// this one.
pub const DEFAULT_MAX_TOKENS: u64 = 32_000;

/// Most cache marks that the API takes in a request.
const MOST_MARKS: usize = 4;
/// Most characters that the API takes as the title of a document.
const LONGEST_TITLE: usize = 500;
/// Most characters that the API takes as the name of a called tool.
const LONGEST_NAME: usize = 200;
/// Replaces the empty result of a failed tool: the API wants something there.
const NO_ERROR_MESSAGE: &str = "The tool failed without a message.";

/// Writes a request's JSON and returns notes about content that is not shown.
///
/// Equal requests give equal bytes. The messages come last, and a block depends on nothing after it. So the history in a
/// request is a prefix of the history in the next one, except for the end of the last message and the cache marks
/// (`,"cache_control":{"type":"ephemeral"}` before the end of a block), which move. One mark is at the end of the system
/// prompt, or of the tools if there is no prompt; the others are in the messages. All last 5 minutes. One payload is in
/// memory at a time; `out` should be buffered.
///
/// The request neither asks for reasoning nor forbids it: the model decides.
pub fn encode(
    request: &Request<'_>,
    contents: &mut dyn Contents,
    out: &mut dyn Write,
) -> Result<Vec<Note>, Error> {
    let (messages, ends) = blocks::messages(request);
    let head = AnthropicHead::new(request);
    let marks = places(request, &messages, &ends, &head);
    let mut encoder = AnthropicEncoder {
        capabilities: request.capabilities,
        contents,
        notes: Vec::new(),
    };
    let mut json = JsonWriter::new(out);
    json.begin_object()?;
    json.fields(&head)?;
    json.key("messages")?;
    json.begin_array()?;
    encoder.write_messages(&messages, &marks, &mut json)?;
    json.finish()?;
    Ok(encoder.notes)
}

/// Returns a request's cache marks.
pub(crate) fn cache_marks(request: &Request<'_>) -> CacheMarks {
    let (messages, ends) = blocks::messages(request);
    let head = AnthropicHead::new(request);
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
    head: &AnthropicHead<'_>,
) -> BTreeSet<usize> {
    marks::places(
        messages,
        ends,
        &request.thread.cache_hints(),
        MOST_MARKS - head.marks(),
    )
}

#[derive(Serialize)]
struct AnthropicHead<'a> {
    model: &'a str,
    max_tokens: u64,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_config: Option<OutputConfig>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<AnthropicTool<'a>>,
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
struct AnthropicTool<'a> {
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

impl<'a> AnthropicHead<'a> {
    fn new(request: &Request<'a>) -> Self {
        let system = request.system.filter(|system| !is_blank(system));
        let system = system.map(|text| {
            [SystemBlock {
                r#type: "text",
                text,
                cache_control: EPHEMERAL,
            }]
        });
        let mut tools: Vec<_> = request.tools.iter().map(AnthropicTool::from).collect();
        // The API refuses calls in the history of a request without tools, so a tool that can't be
        // called stands in.
        let tool_choice = (tools.is_empty() && calls_tools(request.thread)).then(|| {
            tools.push(AnthropicTool::none());
            ToolChoice { r#type: "none" }
        });
        // The mark of the system prompt covers the tools too: they come before it.
        if let (None, Some(tool)) = (&system, tools.last_mut()) {
            tool.cache_control = Some(EPHEMERAL);
        }
        Self {
            model: request.model,
            max_tokens: request.max_output.unwrap_or(DEFAULT_MAX_TOKENS),
            stream: true,
            output_config: request.schema().map(OutputConfig::new),
            tools,
            tool_choice,
            system,
        }
    }

    /// Returns how many cache marks are in it.
    fn marks(&self) -> usize {
        usize::from(self.system.is_some() || !self.tools.is_empty())
    }
}

impl OutputConfig {
    fn new(schema: &Map<String, Value>) -> Self {
        Self {
            format: OutputFormat {
                r#type: "json_schema",
                schema: close_objects(schema),
            },
        }
    }
}

/// Returns whether a tool was called anywhere.
fn calls_tools(thread: &Thread<'_>) -> bool {
    thread
        .messages
        .iter()
        .any(|message| matches!(message, Message::Tool { .. }))
}

impl AnthropicTool<'_> {
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

impl<'a> From<&'a Tool> for AnthropicTool<'a> {
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

struct AnthropicEncoder<'e> {
    capabilities: Capabilities,
    contents: &'e mut dyn Contents,
    notes: Vec<Note>,
}

/// The place where content stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Message,
    Result,
    /// A result in which the API takes nothing but text.
    FailedResult,
}

/// The kind of block that bytes become.
enum BinaryBlock {
    Image,
    Pdf,
}

/// The content of a result; none at all if nothing is written.
struct ResultContent<'j, 'w> {
    json: &'j mut JsonWriter<'w>,
    is_open: bool,
}

impl AnthropicEncoder<'_> {
    fn write_messages(
        &mut self,
        messages: &[WireMessage<'_>],
        marks: &BTreeSet<usize>,
        json: &mut JsonWriter<'_>,
    ) -> Result<(), Error> {
        // Marks count the blocks of all messages.
        let mut index = 0;
        for message in messages {
            json.begin_object()?;
            json.field("role", message.role.name())?;
            json.key("content")?;
            json.begin_array()?;
            for block in &message.blocks {
                json.begin_object()?;
                self.write_block(block, json)?;
                if marks.contains(&index) {
                    json.field("cache_control", &EPHEMERAL)?;
                }
                json.end()?;
                index += 1;
            }
            json.end()?;
            json.end()?;
        }
        Ok(())
    }

    /// Writes the fields of a block.
    fn write_block(&mut self, block: &Block<'_>, json: &mut JsonWriter<'_>) -> Result<(), Error> {
        match block {
            Block::Text(text) => write_text(json, |out| out.push(text)),
            Block::Thinking { text, signature } => {
                json.field("type", "thinking")?;
                json.field("thinking", text)?;
                Ok(json.field("signature", signature)?)
            }
            Block::RedactedThinking(data) => {
                json.field("type", "redacted_thinking")?;
                Ok(json.field("data", data)?)
            }
            Block::ToolUse { id, call } => {
                json.field("type", "tool_use")?;
                json.field("id", id)?;
                json.field("name", &sendable_name_within(call, LONGEST_NAME))?;
                Ok(json.field("input", &call.arguments)?)
            }
            Block::ToolResult(result) => self.write_tool_result(result, json),
            Block::Resource { turn, resource } => {
                let loaded = shown::load_attached(resource, TextForm::Plain, self.contents)?;
                self.write_resource(*turn, resource, loaded, Place::Message, json)
            }
        }
    }

    /// Writes the fields of a block that shows a resource.
    fn write_resource(
        &mut self,
        turn: usize,
        resource: &Snapshot,
        loaded: Shown<'_, Text<'_>>,
        place: Place,
        json: &mut JsonWriter<'_>,
    ) -> Result<(), Error> {
        let bytes = match loaded {
            Shown::Text(text) => return write_text_resource(resource, &text, json),
            Shown::Binary(bytes) => bytes,
        };
        let mime = essence(resource.mime_type.as_deref().unwrap_or(UNKNOWN));
        match self.form(&mime, place) {
            Ok(BinaryBlock::Image) => {
                begin_document(resource, json)?;
                // A document has no image as its source, only content that may hold one.
                json.field("type", "content")?;
                json.key("content")?;
                json.begin_array()?;
                json.begin_object()?;
                write_image(&mime, &bytes, json)?;
                json.end()?;
                json.end()?;
                Ok(json.end()?)
            }
            Ok(BinaryBlock::Pdf) => {
                begin_document(resource, json)?;
                write_source(PDF, &bytes, json)?;
                Ok(json.end()?)
            }
            Err(reason) => {
                let note = format!("[not shown: {reason}; {} bytes]", bytes.len());
                self.note(turn, subject(resource), reason, bytes.len());
                write_text(json, |out| xml::write_note(out, resource, &note))
            }
        }
    }

    /// Returns the block that bytes become, or why they are not shown.
    fn form(&self, mime: &str, place: Place) -> Result<BinaryBlock, String> {
        let form = match mime {
            PDF => self.capabilities.pdf.then_some(BinaryBlock::Pdf),
            mime if IMAGES.contains(&mime) => {
                self.capabilities.images.then_some(BinaryBlock::Image)
            }
            _ => None,
        };
        let form = form.ok_or_else(|| format!("this model does not accept {mime}"))?;
        match place {
            // Results with `is_error` take text only; the API refuses the request otherwise.
            Place::FailedResult => Err(format!(
                "results of failed tools can only contain text, not {mime}"
            )),
            Place::Result if !self.capabilities.binary_results => {
                Err(format!("tool results can only contain text, not {mime}"))
            }
            Place::Message | Place::Result => Ok(form),
        }
    }

    /// Writes the fields of a block with the result of a call.
    fn write_tool_result(
        &mut self,
        result: &ToolResult<'_>,
        json: &mut JsonWriter<'_>,
    ) -> Result<(), Error> {
        json.field("type", "tool_result")?;
        json.field("tool_use_id", &result.id)?;
        let mut content = ResultContent {
            json: &mut *json,
            is_open: false,
        };
        let is_error = result.response.is_some_and(|response| response.is_error);
        match result.response {
            None => content.write_text(view::text_of_missing_result())?,
            Some(response) => {
                for block in &response.content {
                    self.write_result_block(result, block, &mut content)?;
                }
            }
        }
        if is_error && !content.is_open {
            content.write_text(NO_ERROR_MESSAGE)?;
        }
        content.end()?;
        if is_error {
            json.field("is_error", &true)?;
        }
        Ok(())
    }

    /// Writes a block of a result; blank text is left out.
    fn write_result_block(
        &mut self,
        result: &ToolResult<'_>,
        block: &StoredBlock,
        content: &mut ResultContent<'_, '_>,
    ) -> Result<(), Error> {
        match block {
            StoredBlock::Text { text, .. } => {
                let text = shown::load_result_text(result.call, block, text, self.contents)?;
                content.write_text(&text)
            }
            StoredBlock::Question { question } => content.write_text(&question.text),
            StoredBlock::Unknown(block) => content.write_text(&block.note()),
            StoredBlock::Resource { resource, .. } => {
                self.write_result_resource(result, block, resource, content)
            }
            StoredBlock::Image(media) | StoredBlock::Audio(media) => {
                let bytes = shown::load_media(media, &result_of(result.call), self.contents)?;
                let mime = essence(&media.mime_type);
                self.write_media(result, &mime, &bytes, content)
            }
        }
    }

    fn write_result_resource(
        &mut self,
        result: &ToolResult<'_>,
        block: &StoredBlock,
        resource: &Snapshot,
        content: &mut ResultContent<'_, '_>,
    ) -> Result<(), Error> {
        let place = Place::in_result(result);
        content.begin_block()?;
        match shown::load_result_resource(block, resource, self.contents)? {
            Shown::Text(text) if place == Place::FailedResult && !is_blank(&text) => {
                let text = view::resource_block(resource, &text);
                write_text(content.json, |out| out.push(&text))?;
            }
            loaded => {
                self.write_resource(result.turn, resource, loaded.now(), place, content.json)?
            }
        }
        Ok(content.json.end()?)
    }

    fn write_media(
        &mut self,
        result: &ToolResult<'_>,
        mime: &str,
        bytes: &[u8],
        content: &mut ResultContent<'_, '_>,
    ) -> Result<(), Error> {
        let reason = match self.form(mime, Place::in_result(result)) {
            Ok(BinaryBlock::Image) => {
                content.begin_block()?;
                write_image(mime, bytes, content.json)?;
                return Ok(content.json.end()?);
            }
            Ok(BinaryBlock::Pdf) => "it is not an image".to_owned(),
            Err(reason) => reason,
        };
        let subject = result_of(result.call);
        let size = bytes.len();
        content.write_text(&format!("[{subject} is not shown: {reason}; {size} bytes]"))?;
        self.note(result.turn, subject, reason, size);
        Ok(())
    }

    fn note(&mut self, turn: usize, subject: String, reason: String, size: usize) {
        self.notes
            .push(Note::not_shown(turn, subject, reason, size));
    }
}

impl Place {
    fn in_result(result: &ToolResult<'_>) -> Self {
        match result.response {
            Some(response) if response.is_error => Self::FailedResult,
            _ => Self::Result,
        }
    }
}

impl ResultContent<'_, '_> {
    /// Begins a block, and before the first the content.
    fn begin_block(&mut self) -> io::Result<()> {
        if !std::mem::replace(&mut self.is_open, true) {
            self.json.key("content")?;
            self.json.begin_array()?;
        }
        self.json.begin_object()
    }

    fn write_text(&mut self, text: &str) -> Result<(), Error> {
        if is_blank(text) {
            return Ok(());
        }
        self.begin_block()?;
        write_text(self.json, |out| out.push(text))?;
        Ok(self.json.end()?)
    }

    fn end(self) -> io::Result<()> {
        if self.is_open {
            self.json.end()
        } else {
            Ok(())
        }
    }
}

/// Writes the fields of a block of text.
fn write_text(
    json: &mut JsonWriter<'_>,
    fill: impl FnOnce(&mut JsonText<'_>) -> io::Result<()>,
) -> Result<(), Error> {
    json.field("type", "text")?;
    json.key("text")?;
    Ok(json.string(fill)?)
}

/// Writes the fields of a document with a text, or of a block of text if it is blank: the API wants documents to have
/// something in them.
fn write_text_resource(
    resource: &Snapshot,
    text: &Text<'_>,
    json: &mut JsonWriter<'_>,
) -> Result<(), Error> {
    if text.is_blank() {
        return write_text(json, |out| xml::write_text(out, resource, text));
    }
    begin_document(resource, json)?;
    json.field("type", "text")?;
    json.field("media_type", "text/plain")?;
    json.key("data")?;
    json.string(|out| text.write(out))?;
    Ok(json.end()?)
}

/// Writes the fields of a document and begins its source.
fn begin_document(resource: &Snapshot, json: &mut JsonWriter<'_>) -> Result<(), Error> {
    json.field("type", "document")?;
    if let Some(title) = title(resource) {
        json.field("title", &title)?;
    }
    json.field("context", &context(resource))?;
    json.key("source")?;
    Ok(json.begin_object()?)
}

/// Writes the fields of an image block; `mime` is one of [`IMAGES`].
fn write_image(mime: &str, bytes: &[u8], json: &mut JsonWriter<'_>) -> io::Result<()> {
    json.field("type", "image")?;
    json.key("source")?;
    json.begin_object()?;
    write_source(mime, bytes, json)?;
    json.end()
}

/// Writes the fields of a source that is bytes.
fn write_source(mime: &str, bytes: &[u8], json: &mut JsonWriter<'_>) -> io::Result<()> {
    json.field("type", "base64")?;
    json.field("media_type", mime)?;
    json.key("data")?;
    json.base64(bytes)
}

/// Returns title, name or URI, shortened; `None` if none of them says anything.
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

/// Describes a resource's origin, type and content, a line each.
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
