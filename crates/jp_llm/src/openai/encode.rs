mod result;

use std::{borrow::Cow, io, io::Write};

use jp_conversation::{
    ChatRequest,
    view::{self, AnswerPart, Message},
};
use jp_resource::Snapshot;
use serde::Serialize;
use serde_json::{Map, Value};

use super::{answer, files, marks::Breakpoints, models, schema::is_strict};
use crate::{
    Capabilities, Contents, Error, Note, Request, Tool,
    flat::FlatTool,
    json::{JsonText, JsonWriter},
    later::TextForm,
    parts::{IMAGES, PDF, UNKNOWN, essence, file_name, subject},
    shown::{self, Binary, Shown},
    xml,
};

/// Writes a request's JSON and returns notes about content that is not shown.
///
/// Equal requests give equal bytes. The items come last and each depends on nothing but itself, so the history in a
/// request is a prefix of the history in the next one, except for cache marks. One payload is in memory at a time; `out`
/// should be buffered.
///
/// The system prompt is the first item, a developer message: unlike `instructions` it can carry a cache
/// mark, and what does not change stands in front of what grows.
///
/// Models that have them get explicit cache breakpoints: one after the system prompt, one after each of the
/// two newest messages with resources. They move along with the conversation. The newest message needs none:
/// the API marks it itself, and writes up to three others.
pub fn encode(
    request: &Request<'_>,
    contents: &mut dyn Contents,
    out: &mut dyn Write,
) -> Result<Vec<Note>, Error> {
    let mut encoder = ResponsesEncoder {
        label: request.label,
        capabilities: request.capabilities,
        contents,
        notes: Vec::new(),
    };
    let breakpoints = Breakpoints::new(request);
    let mut json = JsonWriter::new(out);
    json.begin_object()?;
    json.fields(&head(request))?;
    json.key("input")?;
    json.begin_array()?;
    if let Some(system) = request.system.filter(|system| !system.is_empty()) {
        write_system(system, breakpoints.after_system, &mut json)?;
    }
    for (index, message) in request.thread.messages.iter().enumerate() {
        encoder.write_message(message, breakpoints.is_after(index), &mut json)?;
    }
    json.finish()?;
    Ok(encoder.notes)
}

#[derive(Serialize)]
struct ResponsesHead<'a> {
    model: &'a str,
    stream: bool,
    store: bool,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    include: &'static [&'static str],
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_cache_key: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<ResponsesTool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<TextConfig<'a>>,
}

#[derive(Serialize)]
struct ResponsesTool<'a> {
    r#type: &'static str,
    name: &'a str,
    description: Cow<'a, str>,
    parameters: Cow<'a, Map<String, Value>>,
    strict: bool,
}

#[derive(Serialize)]
struct TextConfig<'a> {
    format: ResponsesSchema<'a>,
}

#[derive(Serialize)]
struct ResponsesSchema<'a> {
    r#type: &'static str,
    name: &'static str,
    schema: &'a Map<String, Value>,
    strict: bool,
}

impl<'a> From<&'a Tool> for ResponsesTool<'a> {
    /// Not strict, which has to be said: a schema that comes from elsewhere is rarely of the subset.
    fn from(tool: &'a Tool) -> Self {
        let FlatTool {
            description,
            parameters,
        } = FlatTool::new(tool);
        Self {
            r#type: "function",
            name: &tool.name,
            description,
            parameters,
            strict: false,
        }
    }
}

impl<'a> From<&'a Map<String, Value>> for TextConfig<'a> {
    fn from(schema: &'a Map<String, Value>) -> Self {
        Self {
            format: ResponsesSchema {
                r#type: "json_schema",
                name: "answer",
                schema,
                strict: is_strict(schema),
            },
        }
    }
}

/// A cache breakpoint: the last field of the part that ends a prefix to be cached.
#[derive(Serialize)]
struct Breakpoint {
    mode: &'static str,
}

const EXPLICIT: Breakpoint = Breakpoint { mode: "explicit" };

fn head<'a>(request: &Request<'a>) -> ResponsesHead<'a> {
    ResponsesHead {
        model: request.model,
        stream: true,
        store: false,
        include: if models::reasons(request.model) {
            &["reasoning.encrypted_content"]
        } else {
            &[]
        },
        prompt_cache_key: request.cache_key,
        max_output_tokens: request.max_output,
        tools: request.tools.iter().map(ResponsesTool::from).collect(),
        text: request.schema().map(TextConfig::from),
    }
}

fn write_system(system: &str, is_marked: bool, json: &mut JsonWriter<'_>) -> Result<(), Error> {
    begin_message("developer", json)?;
    write_text_part(is_marked, json, |out| out.push(system))?;
    Ok(end_message(json)?)
}

fn begin_message(role: &str, json: &mut JsonWriter<'_>) -> io::Result<()> {
    json.begin_object()?;
    json.field("type", "message")?;
    json.field("role", role)?;
    json.key("content")?;
    json.begin_array()
}

fn end_message(json: &mut JsonWriter<'_>) -> io::Result<()> {
    json.end()?;
    json.end()
}

struct ResponsesEncoder<'e> {
    label: &'e str,
    capabilities: Capabilities,
    contents: &'e mut dyn Contents,
    notes: Vec<Note>,
}

/// The kind of part that bytes become.
#[derive(Clone, Copy)]
enum InputPart {
    Image,
    File,
}

impl ResponsesEncoder<'_> {
    fn write_message(
        &mut self,
        message: &Message<'_>,
        is_marked: bool,
        json: &mut JsonWriter<'_>,
    ) -> Result<(), Error> {
        match message {
            Message::User { turn, request, .. } => self.write_user(*turn, request, is_marked, json),
            Message::Assistant { parts, .. } => self.write_answer(parts, json),
            Message::NoAnswer { .. } => {
                Ok(json.value(&answer::words(view::text_of_missing_answer(), None))?)
            }
            Message::Tool {
                turn,
                call,
                response,
                ..
            } => self.write_tool(*turn, call, response.as_deref(), json),
        }
    }

    /// Writes the words and then the resources; of a marked message the last of these is marked.
    fn write_user(
        &mut self,
        turn: usize,
        request: &ChatRequest,
        is_marked: bool,
        json: &mut JsonWriter<'_>,
    ) -> Result<(), Error> {
        begin_message("user", json)?;
        let words = self.capabilities.words(request);
        if !words.is_empty() || request.resources.is_empty() {
            write_text_part(false, json, |out| out.push(&words))?;
        }
        for (index, resource) in request.resources.iter().enumerate() {
            let is_last = index + 1 == request.resources.len();
            self.write_resource(turn, resource, is_marked && is_last, json)?;
        }
        Ok(end_message(json)?)
    }

    fn write_resource(
        &mut self,
        turn: usize,
        resource: &Snapshot,
        is_marked: bool,
        json: &mut JsonWriter<'_>,
    ) -> Result<(), Error> {
        let binary = match shown::load_attached(resource, TextForm::Defused, self.contents)? {
            Shown::Text(text) => {
                return write_text_part(is_marked, json, |out| {
                    xml::write_text(out, resource, &text)
                });
            }
            Shown::Binary(bytes) => Binary::from_resource(resource, bytes),
        };
        let Some(part) = self.part_for(&binary.mime) else {
            let note = binary.omit_attached(turn, binary.why_not_taken(), &mut self.notes);
            return write_text_part(is_marked, json, |out| xml::write_note(out, resource, &note));
        };
        let (mime, bytes) = (&binary.mime, &binary.bytes);
        write_text_part(false, json, |out| xml::write_label(out, resource))?;
        match part {
            InputPart::Image => write_image_part(mime, bytes, is_marked, json),
            InputPart::File => write_file_part(resource, mime, bytes, is_marked, json),
        }
    }

    fn write_answer(
        &self,
        parts: &[AnswerPart<'_>],
        json: &mut JsonWriter<'_>,
    ) -> Result<(), Error> {
        for item in answer::items(parts, self.label)? {
            json.value(&item)?;
        }
        Ok(())
    }

    /// Returns the part that bytes of a type are sent as; `None` if the model does not take them.
    fn part_for(&self, mime: &str) -> Option<InputPart> {
        let Capabilities {
            images, pdf, files, ..
        } = self.capabilities;
        match mime {
            image if IMAGES.contains(&image) => images.then_some(InputPart::Image),
            PDF => pdf.then_some(InputPart::File),
            file => (files && files::is_read(file)).then_some(InputPart::File),
        }
    }
}

fn mime_type(resource: &Snapshot) -> String {
    essence(resource.mime_type.as_deref().unwrap_or(UNKNOWN))
}

fn write_text_part(
    is_marked: bool,
    json: &mut JsonWriter<'_>,
    fill: impl FnOnce(&mut JsonText<'_>) -> io::Result<()>,
) -> Result<(), Error> {
    json.begin_object()?;
    json.field("type", "input_text")?;
    json.key("text")?;
    json.string(fill)?;
    end_part(is_marked, json)
}

fn write_image_part(
    mime: &str,
    bytes: &[u8],
    is_marked: bool,
    json: &mut JsonWriter<'_>,
) -> Result<(), Error> {
    json.begin_object()?;
    json.field("type", "input_image")?;
    json.field("detail", "auto")?;
    json.key("image_url")?;
    json.data_url(mime, bytes)?;
    end_part(is_marked, json)
}

fn write_file_part(
    resource: &Snapshot,
    mime: &str,
    bytes: &[u8],
    is_marked: bool,
    json: &mut JsonWriter<'_>,
) -> Result<(), Error> {
    let subject = subject(resource);
    json.begin_object()?;
    json.field("type", "input_file")?;
    json.field(
        "filename",
        &files::with_extension(file_name(&subject), mime),
    )?;
    json.key("file_data")?;
    json.data_url(mime, bytes)?;
    end_part(is_marked, json)
}

fn end_part(is_marked: bool, json: &mut JsonWriter<'_>) -> Result<(), Error> {
    if is_marked {
        json.field("prompt_cache_breakpoint", &EXPLICIT)?;
    }
    Ok(json.end()?)
}

#[cfg(test)]
mod tests;
