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
    json::{JsonText, write_string},
    later::TextForm,
    parts::{PDF, UNKNOWN, essence, name_of, subject, write_base64, write_json},
    shown::{self, Shown},
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
/// What the API takes beside the types above; office documents are none of it.
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

/// Writes a request's JSON and returns what the model is told of but not shown.
///
/// Equal requests give equal bytes. The contents stand last and each of their parts depends on nothing but
/// its message, so what a request says of the history, without the tail `]}]}` that closes the last
/// content, is a prefix of what the next one says. There are no cache marks: Gemini caches prefixes by
/// itself. Without `max_output` the API sets the model's own limit. Gemini 2 refuses tools beside a schema,
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
    write_head(request, generation, out)?;
    let mut encoder = Encoder {
        request,
        generation,
        contents,
        notes: Vec::new(),
        open: None,
    };
    if drops_tools(request, generation) {
        let reason = "this model takes no tools beside a schema";
        encoder
            .notes
            .push(Note::without_tools(request.newest_turn(), reason));
    }
    for message in &request.thread.messages {
        encoder.write_message(message, out)?;
    }
    out.write_all(if encoder.open.is_some() {
        b"]}]}"
    } else {
        b"]}"
    })?;
    Ok(encoder.notes)
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Head<'a> {
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
    function_call: FunctionCall<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thought_signature: Option<&'a str>,
}

#[derive(Serialize)]
struct FunctionCall<'a> {
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

fn write_head(
    request: &Request<'_>,
    generation: Generation,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let schema = request.schema();
    let has_tools = !request.tools.is_empty() && !drops_tools(request, generation);
    let function_declarations = || {
        request
            .tools
            .iter()
            .map(FunctionDeclaration::from)
            .collect()
    };
    let system = request.system.filter(|system| !system.is_empty());
    let head = Head {
        system_instruction: system.map(|system| System {
            parts: [TextPart::new(system)],
        }),
        tools: has_tools.then(|| {
            [WireTools {
                function_declarations: function_declarations(),
            }]
        }),
        generation_config: GenerationConfig {
            max_output_tokens: request.max_output,
            response_mime_type: schema.map(|_| "application/json"),
            response_json_schema: schema,
            thinking_config: generation.thinks().then_some(ThinkingConfig {
                include_thoughts: true,
            }),
        },
    };
    let mut json = serde_json::to_vec(&head).map_err(io::Error::from)?;
    json.pop();
    out.write_all(&json)?;
    Ok(out.write_all(br#","contents":["#)?)
}

/// Returns whether the model refuses the request's tools.
fn drops_tools(request: &Request<'_>, generation: Generation) -> bool {
    !request.tools.is_empty() && request.schema().is_some() && !generation.takes_tools_with_schema()
}

/// Whose parts a content holds.
///
/// Results are kept apart from the person's words: function responses answer the calls of the content
/// before them, part for part, and some models take a mixed content for their own and say nothing
/// (pydantic-ai#4210).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Person,
    Model,
    Results,
}

struct Encoder<'e> {
    request: &'e Request<'e>,
    generation: Generation,
    contents: &'e mut dyn Contents,
    notes: Vec<Note>,
    /// The content that was begun last; messages of one kind in a row share it.
    open: Option<Kind>,
}

impl Encoder<'_> {
    fn write_message(&mut self, message: &Message<'_>, out: &mut dyn Write) -> Result<(), Error> {
        match message {
            Message::User { turn, request, .. } => self.write_user(*turn, request, out),
            Message::Assistant { parts, .. } => self.write_answer(parts, out),
            Message::NoAnswer { .. } => self.write_part(
                Kind::Model,
                &TextPart::new(view::text_of_missing_answer()),
                out,
            ),
            Message::Tool {
                turn,
                call,
                response,
                ..
            } => self.write_result(*turn, call, response.as_deref(), out),
        }
    }

    /// Makes ready for a part of a content of this kind.
    fn begin_part(&mut self, kind: Kind, out: &mut dyn Write) -> io::Result<()> {
        let opening: &[u8] = match kind {
            Kind::Person | Kind::Results => br#"{"role":"user","parts":["#,
            Kind::Model => br#"{"role":"model","parts":["#,
        };
        match self.open.replace(kind) {
            Some(open) if open == kind => out.write_all(b","),
            Some(_) => out.write_all(b"]},").and_then(|()| out.write_all(opening)),
            None => out.write_all(opening),
        }
    }

    fn write_part(
        &mut self,
        kind: Kind,
        part: &impl Serialize,
        out: &mut dyn Write,
    ) -> Result<(), Error> {
        self.begin_part(kind, out)?;
        write_json(part, out)
    }

    /// Writes the words and the resources; an empty text where there are neither, since a content needs a part.
    fn write_user(
        &mut self,
        turn: usize,
        request: &ChatRequest,
        out: &mut dyn Write,
    ) -> Result<(), Error> {
        let words = self.request.capabilities.words(request);
        if !words.is_empty() || request.resources.is_empty() {
            self.write_part(Kind::Person, &TextPart::new(&words), out)?;
        }
        for resource in &request.resources {
            self.begin_part(Kind::Person, out)?;
            self.write_resource(turn, resource, out)?;
        }
        Ok(())
    }

    fn write_resource(
        &mut self,
        turn: usize,
        resource: &Snapshot,
        out: &mut dyn Write,
    ) -> Result<(), Error> {
        let bytes = match shown::load_attached(resource, TextForm::Defused, self.contents)? {
            Shown::Text(text) => {
                return write_text_part(out, |out| xml::write_text(out, resource, &text));
            }
            Shown::Binary(bytes) => bytes,
        };
        let mime = essence(resource.mime_type.as_deref().unwrap_or(UNKNOWN));
        if takes(self.request.capabilities, &mime) {
            write_text_part(out, |out| xml::write_label(out, resource))?;
            self.begin_part(Kind::Person, out)?;
            return Ok(write_inline_data(&mime, &bytes, out)?);
        }
        let reason = format!("this model does not take {mime}");
        let note = format!("[not shown: {reason}; {} bytes]", bytes.len());
        self.note(turn, subject(resource), reason, bytes.len());
        write_text_part(out, |out| xml::write_note(out, resource, &note))
    }

    fn write_answer(&mut self, parts: &[AnswerPart<'_>], out: &mut dyn Write) -> Result<(), Error> {
        let mut is_first_call = true;
        for part in parts {
            match part {
                AnswerPart::Response(response) => self.write_response(response, out)?,
                AnswerPart::Call(call) => {
                    let is_first = std::mem::replace(&mut is_first_call, false);
                    self.write_call(call, is_first, out)?;
                }
            }
        }
        Ok(())
    }

    /// Writes words, and what of them or of a reasoning is signed as the part that the signature came with.
    fn write_response(
        &mut self,
        response: &ChatResponse,
        out: &mut dyn Write,
    ) -> Result<(), Error> {
        let metadata = &response.metadata;
        let signature = own(metadata, SIGNATURE, self.request.label);
        let (ResponseContent::Message(text) | ResponseContent::Reasoning(text)) = &response.content;
        let (unsigned, signed) = match signature {
            Some(_) => text.split_at(start_of_signed(text, metadata)),
            None => (text.as_str(), ""),
        };
        if !unsigned.is_empty() && matches!(response.content, ResponseContent::Message(_)) {
            self.write_part(Kind::Model, &TextPart::new(unsigned), out)?;
        }
        if signature.is_some() {
            let thought = metadata.get(THOUGHT).and_then(Value::as_bool);
            let part = TextPart {
                text: signed,
                thought,
                thought_signature: signature,
            };
            self.write_part(Kind::Model, &part, out)?;
        }
        Ok(())
    }

    fn write_call(
        &mut self,
        call: &ToolCallRequest,
        is_first: bool,
        out: &mut dyn Write,
    ) -> Result<(), Error> {
        let must_be_signed = is_first && self.generation.wants_signed_calls();
        let signature = own(&call.metadata, SIGNATURE, self.request.label);
        let part = CallPart {
            function_call: FunctionCall {
                id: self.id_of(call),
                name: &name_of(call),
                args: &call.arguments,
            },
            thought_signature: signature.or(must_be_signed.then_some(NO_SIGNATURE)),
        };
        self.write_part(Kind::Model, &part, out)
    }

    /// Returns a call's id where the API gave it: not every model takes another's.
    fn id_of<'a>(&self, call: &'a ToolCallRequest) -> Option<&'a str> {
        own(&call.metadata, ID, self.request.label)
    }

    fn write_result(
        &mut self,
        turn: usize,
        call: &ToolCallRequest,
        response: Option<&ToolCallResponse>,
        out: &mut dyn Write,
    ) -> Result<(), Error> {
        self.begin_part(Kind::Results, out)?;
        out.write_all(br#"{"functionResponse":{"#)?;
        if let Some(id) = self.id_of(call) {
            out.write_all(br#""id":"#)?;
            write_json(&id, out)?;
            out.write_all(b",")?;
        }
        out.write_all(br#""name":"#)?;
        write_json(&name_of(call), out)?;
        match response {
            Some(response) => self.write_blocks(turn, call, response, out)?,
            None => result::write_output("output", out, |out| {
                Ok(out.push(view::text_of_missing_result())?)
            })?,
        }
        Ok(out.write_all(b"}}")?)
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
    out: &mut dyn Write,
    fill: impl FnOnce(&mut JsonText<'_>) -> io::Result<()>,
) -> Result<(), Error> {
    out.write_all(br#"{"text":"#)?;
    write_string(out, fill)?;
    Ok(out.write_all(b"}")?)
}

/// Writes a part that is bytes; `mime` is one of those named above.
fn write_inline_data(mime: &str, bytes: &[u8], out: &mut dyn Write) -> io::Result<()> {
    write!(out, r#"{{"inlineData":{{"mimeType":"{mime}","data":""#)?;
    write_base64(bytes, out)?;
    out.write_all(br#""}}"#)
}

#[cfg(test)]
mod tests;
