mod result;

use std::io::{self, Write};

use jp_conversation::{
    ChatRequest, ChatResponse, ResponseContent, ToolCallRequest, ToolCallResponse,
    view::{self, AnswerPart, Message},
};
use jp_resource::Snapshot;
use serde::Serialize;
use serde_json::{Map, Value};

use super::{ID, SIGNATURE, SIGNED_BYTES, THOUGHT, generation::Generation, own};
use crate::{
    Capabilities, Contents, Error, Note, Request, Tool,
    json::{JsonText, JsonWriter},
    later::TextForm,
    parts::{PDF, sendable_name},
    shown::{self, Binary, Shown},
    xml,
};

/// GIF is none of them.
const IMAGES: [&str; 5] = [
    "image/png",
    "image/jpeg",
    "image/webp",
    "image/heic",
    "image/heif",
];
const AUDIO: [&str; 9] = [
    "audio/wav",
    "audio/x-wav",
    "audio/mp3",
    "audio/mpeg",
    "audio/aiff",
    "audio/aac",
    "audio/ogg",
    "audio/opus",
    "audio/flac",
];
/// Types that the API takes beside those above. It takes no office documents.
const FILES: [&str; 10] = [
    "video/mp4",
    "video/mpeg",
    "video/mpg",
    "video/avi",
    "video/quicktime",
    "video/mov",
    "video/webm",
    "video/x-flv",
    "video/wmv",
    "video/3gpp",
];
/// Stands for the signature of a call that another model made.
///
/// Gemini 3 refuses a turn in which an answer's first call has no signature; this text is what its
/// documentation ("Thought signatures") gives for calls that have none to offer.
const NO_SIGNATURE: &str = "skip_thought_signature_validator";

/// Writes a request's JSON and returns notes about content that is not shown.
///
/// Equal requests give equal bytes. The contents come last and each of their parts depends on nothing but its message, so
/// the history in a request, without the tail `]}]}` that closes the last content, is a prefix of the history in the next
/// one. There are no cache marks: Gemini caches prefixes automatically. Without `max_output` the API sets the model's own limit. Gemini 2 refuses tools beside a schema,
/// so with a schema it gets no tools, which is noted.
///
/// One payload is in memory at a time, and with it the text of a result that has binary blocks; `out`
/// should be buffered.
pub fn encode(
    request: &Request<'_>,
    contents: &mut dyn Contents,
    out: &mut dyn Write,
) -> Result<Vec<Note>, Error> {
    let generation = Generation::of_model(request.model);
    let mut encoder = GeminiEncoder {
        request,
        generation,
        contents,
        notes: Vec::new(),
        open: None,
    };
    if drops_tools(request, generation) {
        let reason = "this model does not support tools together with a schema";
        encoder
            .notes
            .push(Note::without_tools(request.newest_turn(), reason));
    }
    let mut json = JsonWriter::new(out);
    json.begin_object()?;
    json.fields(&head(request, generation))?;
    json.key("contents")?;
    json.begin_array()?;
    for message in &request.thread.messages {
        encoder.write_message(message, &mut json)?;
    }
    // The last content is still open, unless there is none.
    json.finish()?;
    Ok(encoder.notes)
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GeminiHead<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    system_instruction: Option<System<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<[WireTools<'a>; 1]>,
    generation_config: GenerationConfig<'a>,
}

#[derive(Serialize)]
struct System<'a> {
    parts: [TextPart<'a>; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WireTools<'a> {
    function_declarations: Vec<FunctionDeclaration<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FunctionDeclaration<'a> {
    name: &'a str,
    description: &'a str,
    parameters_json_schema: &'a Map<String, Value>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GenerationConfig<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_mime_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_json_schema: Option<&'a Map<String, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_config: Option<ThinkingConfig>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ThinkingConfig {
    include_thoughts: bool,
}

#[derive(Serialize, Default)]
#[serde(rename_all = "camelCase")]
struct TextPart<'a> {
    text: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    thought: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thought_signature: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CallPart<'a> {
    function_call: SentCall<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thought_signature: Option<&'a str>,
}

#[derive(Serialize)]
struct SentCall<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    name: &'a str,
    args: &'a Map<String, Value>,
}

impl<'a> TextPart<'a> {
    fn new(text: &'a str) -> Self {
        Self {
            text,
            ..Self::default()
        }
    }
}

impl<'a> From<&'a [Tool]> for WireTools<'a> {
    fn from(tools: &'a [Tool]) -> Self {
        Self {
            function_declarations: tools.iter().map(FunctionDeclaration::from).collect(),
        }
    }
}

impl<'a> From<&'a Tool> for FunctionDeclaration<'a> {
    fn from(tool: &'a Tool) -> Self {
        let Tool {
            name,
            description,
            parameters,
        } = tool;
        Self {
            name,
            description,
            parameters_json_schema: parameters,
        }
    }
}

fn head<'a>(request: &Request<'a>, generation: Generation) -> GeminiHead<'a> {
    let schema = request.schema();
    let has_tools = !request.tools.is_empty() && !drops_tools(request, generation);
    let system = request.system.filter(|system| !system.is_empty());
    GeminiHead {
        system_instruction: system.map(|system| System {
            parts: [TextPart::new(system)],
        }),
        tools: has_tools.then(|| [WireTools::from(request.tools)]),
        generation_config: GenerationConfig {
            max_output_tokens: request.max_output,
            response_mime_type: schema.map(|_| "application/json"),
            response_json_schema: schema,
            thinking_config: generation.thinks().then_some(ThinkingConfig {
                include_thoughts: true,
            }),
        },
    }
}

/// Returns whether the model refuses the request's tools.
fn drops_tools(request: &Request<'_>, generation: Generation) -> bool {
    !request.tools.is_empty() && request.schema().is_some() && !generation.takes_tools_with_schema()
}

/// The one whose parts a content holds.
///
/// Results are kept apart from the person's words: function responses answer the calls of the content
/// before them, part for part, and some models take a mixed content for their own and say nothing
/// (pydantic-ai#4210).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Speaker {
    Person,
    Model,
    Results,
}

struct GeminiEncoder<'e> {
    request: &'e Request<'e>,
    generation: Generation,
    contents: &'e mut dyn Contents,
    notes: Vec<Note>,
    /// The content that was begun last; messages of one speaker in a row share it.
    open: Option<Speaker>,
}

impl GeminiEncoder<'_> {
    fn write_message(
        &mut self,
        message: &Message<'_>,
        json: &mut JsonWriter<'_>,
    ) -> Result<(), Error> {
        match message {
            Message::User { turn, request, .. } => self.write_user(*turn, request, json),
            Message::Assistant { parts, .. } => self.write_answer(parts, json),
            Message::NoAnswer { .. } => {
                let part = TextPart::new(view::text_of_missing_answer());
                self.write_part(Speaker::Model, &part, json)
            }
            Message::Tool {
                turn,
                call,
                response,
                ..
            } => self.write_result(*turn, call, response.as_deref(), json),
        }
    }

    /// Begins a content for the next part, unless the open one is of the same speaker.
    fn begin_part(&mut self, speaker: Speaker, json: &mut JsonWriter<'_>) -> io::Result<()> {
        match self.open.replace(speaker) {
            Some(open) if open == speaker => return Ok(()),
            Some(_) => {
                json.end()?;
                json.end()?;
            }
            None => {}
        }
        json.begin_object()?;
        json.field("role", speaker.role())?;
        json.key("parts")?;
        json.begin_array()
    }

    fn write_part(
        &mut self,
        speaker: Speaker,
        part: &impl Serialize,
        json: &mut JsonWriter<'_>,
    ) -> Result<(), Error> {
        self.begin_part(speaker, json)?;
        Ok(json.value(part)?)
    }

    /// Writes the words and the resources; an empty text if there are neither, because a content needs a part.
    fn write_user(
        &mut self,
        turn: usize,
        request: &ChatRequest,
        json: &mut JsonWriter<'_>,
    ) -> Result<(), Error> {
        let words = self.request.capabilities.words(request);
        if !words.is_empty() || request.resources.is_empty() {
            self.write_part(Speaker::Person, &TextPart::new(&words), json)?;
        }
        for resource in &request.resources {
            self.begin_part(Speaker::Person, json)?;
            self.write_resource(turn, resource, json)?;
        }
        Ok(())
    }

    fn write_resource(
        &mut self,
        turn: usize,
        resource: &Snapshot,
        json: &mut JsonWriter<'_>,
    ) -> Result<(), Error> {
        let binary = match shown::load_attached(resource, TextForm::Defused, self.contents)? {
            Shown::Text(text) => {
                return write_text_part(json, |out| xml::write_text(out, resource, &text));
            }
            Shown::Binary(bytes) => Binary::from_resource(resource, bytes),
        };
        if takes(self.request.capabilities, &binary.mime) {
            write_text_part(json, |out| xml::write_label(out, resource))?;
            return Ok(write_inline_data(&binary.mime, &binary.bytes, json)?);
        }
        let note = binary.omit_attached(turn, binary.why_not_taken(), &mut self.notes);
        write_text_part(json, |out| xml::write_note(out, resource, &note))
    }

    fn write_answer(
        &mut self,
        parts: &[AnswerPart<'_>],
        json: &mut JsonWriter<'_>,
    ) -> Result<(), Error> {
        let mut is_first_call = true;
        for part in parts {
            match part {
                AnswerPart::Response(response) => self.write_response(response, json)?,
                AnswerPart::Call(call) => {
                    let is_first = std::mem::replace(&mut is_first_call, false);
                    self.write_call(call, is_first, json)?;
                }
            }
        }
        Ok(())
    }

    /// Writes words, and what of them or of a reasoning is signed as the part that the signature came with.
    fn write_response(
        &mut self,
        response: &ChatResponse,
        json: &mut JsonWriter<'_>,
    ) -> Result<(), Error> {
        let metadata = &response.metadata;
        let signature = own(metadata, SIGNATURE, self.request.label);
        let (ResponseContent::Message(text) | ResponseContent::Reasoning(text)) = &response.content;
        let (unsigned, signed) = match signature {
            // The signature is of the last part alone. The text before it goes back as a part
            // without one.
            Some(_) => text.split_at(start_of_signed(text, metadata)),
            None => (text.as_str(), ""),
        };
        if !unsigned.is_empty() && matches!(response.content, ResponseContent::Message(_)) {
            self.write_part(Speaker::Model, &TextPart::new(unsigned), json)?;
        }
        if signature.is_some() {
            let thought = metadata.get(THOUGHT).and_then(Value::as_bool);
            let part = TextPart {
                text: signed,
                thought,
                thought_signature: signature,
            };
            self.write_part(Speaker::Model, &part, json)?;
        }
        Ok(())
    }

    fn write_call(
        &mut self,
        call: &ToolCallRequest,
        is_first: bool,
        json: &mut JsonWriter<'_>,
    ) -> Result<(), Error> {
        // Only the first call of an answer has a signature; the API checks no others.
        let must_be_signed = is_first && self.generation.wants_signed_calls();
        let signature = own(&call.metadata, SIGNATURE, self.request.label);
        let part = CallPart {
            function_call: SentCall {
                id: self.own_id(call),
                name: &sendable_name(call),
                args: &call.arguments,
            },
            thought_signature: signature.or(must_be_signed.then_some(NO_SIGNATURE)),
        };
        self.write_part(Speaker::Model, &part, json)
    }

    /// Returns a call's id if the API gave it: not every model takes another's.
    fn own_id<'a>(&self, call: &'a ToolCallRequest) -> Option<&'a str> {
        own(&call.metadata, ID, self.request.label)
    }

    fn write_result(
        &mut self,
        turn: usize,
        call: &ToolCallRequest,
        response: Option<&ToolCallResponse>,
        json: &mut JsonWriter<'_>,
    ) -> Result<(), Error> {
        self.begin_part(Speaker::Results, json)?;
        json.begin_object()?;
        json.key("functionResponse")?;
        json.begin_object()?;
        if let Some(id) = self.own_id(call) {
            json.field("id", id)?;
        }
        json.field("name", &sendable_name(call))?;
        match response {
            Some(response) => self.write_blocks(turn, call, response, json)?,
            None => result::write_output("output", json, |out| {
                Ok(out.push(view::text_of_missing_result())?)
            })?,
        }
        json.end()?;
        Ok(json.end()?)
    }
}

impl Speaker {
    /// Returns the name of the role; the API has no role for results.
    fn role(self) -> &'static str {
        match self {
            Self::Person | Self::Results => "user",
            Self::Model => "model",
        }
    }
}

/// Returns where the part that was signed begins in its run; 0 where the run is not what it was.
fn start_of_signed(run: &str, metadata: &Map<String, Value>) -> usize {
    let bytes = metadata
        .get(SIGNED_BYTES)
        .and_then(Value::as_u64)
        .and_then(|bytes| bytes.try_into().ok());
    let start = bytes.and_then(|bytes| run.len().checked_sub(bytes));
    start
        .filter(|start| run.is_char_boundary(*start))
        .unwrap_or(0)
}

/// Returns whether a type may stand in a message of the person.
fn takes(capabilities: Capabilities, mime: &str) -> bool {
    let Capabilities {
        images,
        pdf,
        files,
        audio,
        ..
    } = capabilities;
    images && IMAGES.contains(&mime)
        || pdf && mime == PDF
        || audio && AUDIO.contains(&mime)
        || files && FILES.contains(&mime)
}

fn write_text_part(
    json: &mut JsonWriter<'_>,
    fill: impl FnOnce(&mut JsonText<'_>) -> io::Result<()>,
) -> Result<(), Error> {
    json.begin_object()?;
    json.key("text")?;
    json.string(fill)?;
    Ok(json.end()?)
}

/// Writes a part that is bytes.
fn write_inline_data(mime: &str, bytes: &[u8], json: &mut JsonWriter<'_>) -> io::Result<()> {
    json.begin_object()?;
    json.key("inlineData")?;
    json.begin_object()?;
    json.field("mimeType", mime)?;
    json.key("data")?;
    json.base64(bytes)?;
    json.end()?;
    json.end()
}

#[cfg(test)]
mod tests;
