mod result;

use std::{
    borrow::Cow,
    io::{self, Write},
};

use jp_conversation::{
    ChatRequest,
    view::{self, AnswerPart, Message},
};
use jp_resource::Snapshot;
use serde::Serialize;
use serde_json::{Map, Value};

use super::{
    answer, files,
    marks::{END, Marks},
    models,
    schema::is_strict,
};
use crate::{
    Capabilities, Contents, Error, Note, Request, Tool,
    flat::FlatTool,
    json::{JsonText, write_string},
    later::TextForm,
    parts::{
        IMAGES, PDF, Separator, UNKNOWN, essence, file_name, subject, write_data_url, write_json,
    },
    shown::{self, Shown},
    xml,
};

/// Writes a request's JSON and returns what the model is told of but not shown.
///
/// Equal requests give equal bytes. The items stand last and each depends on nothing but itself, so what a
/// request says of the history is a prefix of what the next one says, cache marks aside. One payload is in
/// memory at a time; `out` should be buffered.
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
    let mut encoder = Encoder {
        label: request.label,
        capabilities: request.capabilities,
        contents,
        notes: Vec::new(),
    };
    let marks = Marks::new(request);
    let mut separator = Separator::default();
    write_head(request, out)?;
    if let Some(system) = request.system.filter(|system| !system.is_empty()) {
        separator.write(out)?;
        write_system(system, marks.system, out)?;
    }
    for (index, message) in request.thread.messages.iter().enumerate() {
        encoder.write_message(message, marks.end(index), &mut separator, out)?;
    }
    out.write_all(b"]}")?;
    Ok(encoder.notes)
}

#[derive(Serialize)]
struct Head<'a> {
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
    tools: Vec<WireTool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<TextConfig<'a>>,
}

#[derive(Serialize)]
struct WireTool<'a> {
    r#type: &'static str,
    name: &'a str,
    description: Cow<'a, str>,
    parameters: Cow<'a, Map<String, Value>>,
    strict: bool,
}

#[derive(Serialize)]
struct TextConfig<'a> {
    format: JsonSchema<'a>,
}

#[derive(Serialize)]
struct JsonSchema<'a> {
    r#type: &'static str,
    name: &'static str,
    schema: &'a Map<String, Value>,
    strict: bool,
}

impl<'a> From<&'a Tool> for WireTool<'a> {
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

fn write_head(request: &Request<'_>, out: &mut dyn Write) -> Result<(), Error> {
    let schema = request.schema();
    let format = |schema| JsonSchema {
        r#type: "json_schema",
        name: "answer",
        schema,
        strict: is_strict(schema),
    };
    let head = Head {
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
        tools: request.tools.iter().map(WireTool::from).collect(),
        text: schema.map(|schema| TextConfig {
            format: format(schema),
        }),
    };
    let mut json = serde_json::to_vec(&head).map_err(io::Error::from)?;
    json.pop();
    out.write_all(&json)?;
    Ok(out.write_all(br#","input":["#)?)
}

fn write_system(system: &str, end: &str, out: &mut dyn Write) -> Result<(), Error> {
    out.write_all(br#"{"type":"message","role":"developer","content":["#)?;
    write_text_part(end, out, |out| out.push(system))?;
    Ok(out.write_all(b"]}")?)
}

struct Encoder<'e> {
    label: &'e str,
    capabilities: Capabilities,
    contents: &'e mut dyn Contents,
    notes: Vec<Note>,
}

/// How a model gets bytes.
#[derive(Clone, Copy)]
enum Form {
    Image,
    File,
}

impl Encoder<'_> {
    fn write_message(
        &mut self,
        message: &Message<'_>,
        end: &str,
        separator: &mut Separator,
        out: &mut dyn Write,
    ) -> Result<(), Error> {
        match message {
            Message::User { turn, request, .. } => {
                separator.write(out)?;
                self.write_user(*turn, request, end, out)
            }
            Message::Assistant { parts, .. } => self.write_answer(parts, separator, out),
            Message::NoAnswer { .. } => {
                separator.write(out)?;
                write_json(&answer::words(view::text_of_missing_answer(), None), out)
            }
            Message::Tool {
                turn,
                call,
                response,
                ..
            } => {
                separator.write(out)?;
                self.write_tool(*turn, call, response.as_deref(), out)
            }
        }
    }

    /// Writes the words and then the resources; `end` ends the last of the parts.
    fn write_user(
        &mut self,
        turn: usize,
        request: &ChatRequest,
        end: &str,
        out: &mut dyn Write,
    ) -> Result<(), Error> {
        let mut separator = Separator::default();
        out.write_all(br#"{"type":"message","role":"user","content":["#)?;
        let words = self.capabilities.words(request);
        if !words.is_empty() || request.resources.is_empty() {
            separator.write(out)?;
            write_text_part(END, out, |out| out.push(&words))?;
        }
        for (index, resource) in request.resources.iter().enumerate() {
            let is_last = index + 1 == request.resources.len();
            separator.write(out)?;
            self.write_resource(turn, resource, if is_last { end } else { END }, out)?;
        }
        Ok(out.write_all(b"]}")?)
    }

    fn write_resource(
        &mut self,
        turn: usize,
        resource: &Snapshot,
        end: &str,
        out: &mut dyn Write,
    ) -> Result<(), Error> {
        let bytes = match shown::load_attached(resource, TextForm::Defused, self.contents)? {
            Shown::Text(text) => {
                return write_text_part(end, out, |out| xml::write_text(out, resource, &text));
            }
            Shown::Binary(bytes) => bytes,
        };
        let mime = type_of(resource);
        let form = self.form(&mime);
        if form.is_some() {
            write_text_part(END, out, |out| xml::write_label(out, resource))?;
            out.write_all(b",")?;
        }
        match form {
            Some(Form::Image) => write_image_part(&mime, &bytes, end, out),
            Some(Form::File) => write_file_part(resource, &mime, &bytes, end, out),
            None => {
                let reason = format!("this model does not take {mime}");
                let note = format!("[not shown: {reason}; {} bytes]", bytes.len());
                self.note(turn, subject(resource), reason, bytes.len());
                write_text_part(end, out, |out| xml::write_note(out, resource, &note))
            }
        }
    }

    fn write_answer(
        &self,
        parts: &[AnswerPart<'_>],
        separator: &mut Separator,
        out: &mut dyn Write,
    ) -> Result<(), Error> {
        for item in answer::items(parts, self.label)? {
            separator.write(out)?;
            write_json(&item, out)?;
        }
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

    /// Returns how bytes of a type are sent; `None` if the model does not take them.
    fn form(&self, mime: &str) -> Option<Form> {
        let Capabilities {
            images, pdf, files, ..
        } = self.capabilities;
        match mime {
            image if IMAGES.contains(&image) => images.then_some(Form::Image),
            PDF => pdf.then_some(Form::File),
            file => (files && files::is_read(file)).then_some(Form::File),
        }
    }
}

fn type_of(resource: &Snapshot) -> String {
    essence(resource.mime_type.as_deref().unwrap_or(UNKNOWN))
}

fn write_text_part(
    end: &str,
    out: &mut dyn Write,
    fill: impl FnOnce(&mut JsonText<'_>) -> io::Result<()>,
) -> Result<(), Error> {
    out.write_all(br#"{"type":"input_text","text":"#)?;
    write_string(out, fill)?;
    Ok(out.write_all(end.as_bytes())?)
}

fn write_image_part(mime: &str, bytes: &[u8], end: &str, out: &mut dyn Write) -> Result<(), Error> {
    out.write_all(br#"{"type":"input_image","detail":"auto","image_url":"#)?;
    write_data_url(mime, bytes, out)?;
    Ok(out.write_all(end.as_bytes())?)
}

fn write_file_part(
    resource: &Snapshot,
    mime: &str,
    bytes: &[u8],
    end: &str,
    out: &mut dyn Write,
) -> Result<(), Error> {
    out.write_all(br#"{"type":"input_file","filename":"#)?;
    write_json(&files::with_extension(file_name(resource), mime), out)?;
    out.write_all(br#","file_data":"#)?;
    write_data_url(mime, bytes, out)?;
    Ok(out.write_all(end.as_bytes())?)
}

#[cfg(test)]
mod tests;
