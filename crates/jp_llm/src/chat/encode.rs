use std::{
    borrow::Cow,
    io::{self, Write},
};

use jp_conversation::{
    ChatRequest, ResponseContent, ToolCallRequest, ToolCallResponse,
    view::{self, AnswerPart, Message},
};
use jp_resource::{Payload, Snapshot};
use jp_tool::{Media, StoredBlock};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::{
    Capabilities, Contents, Error, Note, Request, Tool,
    json::{JsonText, write_string},
    parts::{
        ERROR_LINE, IMAGES, LineBreak, PDF, Separator, UNKNOWN, essence, file_name, result_of, subject,
        write_data_url, write_json,
    },
    shown::{self, Shown},
    xml,
};

/// Writes a request's JSON and returns what the model is told of but not shown.
///
/// Equal requests give equal bytes. The messages stand last and each depends on nothing but itself,
/// so what a request says of the history is a prefix of what the next one says. One payload is in
/// memory at a time; `out` should be buffered.
pub fn encode(
    request: &Request<'_>,
    contents: &mut dyn Contents,
    out: &mut dyn Write,
) -> Result<Vec<Note>, Error> {
    let mut encoder = Encoder { capabilities: request.capabilities, contents, notes: Vec::new() };
    write_head(request, out)?;
    let mut separator = Separator::default();
    if let Some(system) = request.system.filter(|system| !system.is_empty()) {
        separator.write(out)?;
        write_json(&Plain { role: "system", content: system }, out)?;
    }
    for message in &request.thread.messages {
        encoder.write_message(message, &mut separator, out)?;
    }
    out.write_all(b"]}")?;
    Ok(encoder.notes)
}

#[derive(Serialize)]
struct Head<'a> {
    model: &'a str,
    stream: bool,
    stream_options: StreamOptions,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<WireTool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<ResponseFormat<'a>>,
}

#[derive(Serialize)]
struct WireTool<'a> {
    r#type: &'static str,
    function: WireFunction<'a>,
}

#[derive(Serialize)]
struct WireFunction<'a> {
    name: &'a str,
    description: &'a str,
    parameters: &'a Map<String, Value>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
struct ResponseFormat<'a> {
    r#type: &'static str,
    json_schema: JsonSchema<'a>,
}

#[derive(Serialize)]
struct JsonSchema<'a> {
    name: &'static str,
    schema: &'a Map<String, Value>,
}

#[derive(Serialize)]
struct Plain<'a> {
    role: &'static str,
    content: &'a str,
}

#[derive(Serialize)]
struct Assistant {
    role: &'static str,
    content: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<Call>,
}

#[derive(Serialize)]
struct Call {
    id: String,
    r#type: &'static str,
    function: Function,
}

#[derive(Serialize)]
struct Function {
    name: String,
    /// JSON in a string.
    arguments: String,
}

impl<'a> From<&'a Tool> for WireTool<'a> {
    fn from(tool: &'a Tool) -> Self {
        let Tool { name, description, parameters } = tool;
        Self { r#type: "function", function: WireFunction { name, description, parameters } }
    }
}

fn write_head(request: &Request<'_>, out: &mut dyn Write) -> Result<(), Error> {
    let schema = request.newest().and_then(|newest| newest.schema.as_ref());
    let response_format = schema.map(|schema| ResponseFormat {
        r#type: "json_schema",
        json_schema: JsonSchema { name: "answer", schema },
    });
    let stream_options = StreamOptions { include_usage: true };
    let head = Head {
        model: request.model,
        stream: true,
        stream_options,
        max_tokens: request.max_output,
        tools: request.tools.iter().map(WireTool::from).collect(),
        response_format,
    };
    let mut json = serde_json::to_vec(&head).map_err(io::Error::from)?;
    json.pop();
    out.write_all(&json)?;
    Ok(out.write_all(br#","messages":["#)?)
}

struct Encoder<'e> {
    capabilities: Capabilities,
    contents: &'e mut dyn Contents,
    notes: Vec<Note>,
}

impl Encoder<'_> {
    fn write_message(
        &mut self,
        message: &Message<'_>,
        separator: &mut Separator,
        out: &mut dyn Write,
    ) -> Result<(), Error> {
        match message {
            Message::User { turn, request } => {
                separator.write(out)?;
                self.write_user(*turn, request, out)
            }
            Message::Assistant { parts, .. } => match assistant(parts)? {
                Some(assistant) => {
                    separator.write(out)?;
                    write_json(&assistant, out)
                }
                None => Ok(()),
            },
            Message::NoAnswer { .. } => {
                separator.write(out)?;
                write_json(&Plain { role: "assistant", content: view::text_of_missing_answer() }, out)
            }
            Message::Tool { turn, call, response } => {
                separator.write(out)?;
                self.write_tool(*turn, call, *response, out)
            }
        }
    }

    /// Writes words alone as a string, which every server takes, and words with resources as parts.
    fn write_user(&mut self, turn: usize, request: &ChatRequest, out: &mut dyn Write) -> Result<(), Error> {
        if request.resources.is_empty() {
            return write_json(&Plain { role: "user", content: &request.content }, out);
        }
        let mut separator = Separator::default();
        out.write_all(br#"{"role":"user","content":["#)?;
        if !request.content.is_empty() {
            separator.write(out)?;
            write_text_part(out, |out| out.push(&request.content))?;
        }
        for resource in &request.resources {
            separator.write(out)?;
            self.write_resource(turn, resource, out)?;
        }
        Ok(out.write_all(b"]}")?)
    }

    fn write_resource(&mut self, turn: usize, resource: &Snapshot, out: &mut dyn Write) -> Result<(), Error> {
        let bytes = match shown::load_resource(resource, self.contents)? {
            Shown::Text(text) => return write_text_part(out, |out| xml::write_text(out, resource, &text)),
            Shown::Binary(bytes) => bytes,
        };
        let mime = essence(resource.mime_type.as_deref().unwrap_or(UNKNOWN));
        if self.capabilities.images && IMAGES.contains(&&*mime) {
            return write_image_part(&mime, &bytes, out);
        }
        if self.capabilities.pdf && mime == PDF {
            return write_file_part(resource, &bytes, out);
        }
        let reason = format!("this model does not take {mime}");
        let note = format!("[not shown: {reason}; {} bytes]", bytes.len());
        self.note(turn, subject(resource), reason, bytes.len());
        write_text_part(out, |out| xml::write_note(out, resource, &note))
    }

    fn write_tool(
        &mut self,
        turn: usize,
        call: &ToolCallRequest,
        response: Option<&ToolCallResponse>,
        out: &mut dyn Write,
    ) -> Result<(), Error> {
        out.write_all(br#"{"role":"tool","tool_call_id":"#)?;
        write_json(&call.id, out)?;
        out.write_all(br#","content":"#)?;
        write_string(out, |out| match response {
            Some(response) => self.write_result(turn, call, response, out),
            None => Ok(out.push(view::text_of_missing_result())?),
        })?;
        Ok(out.write_all(b"}")?)
    }

    /// Writes a result's blocks, each on a line of its own.
    fn write_result(
        &mut self,
        turn: usize,
        call: &ToolCallRequest,
        response: &ToolCallResponse,
        out: &mut JsonText<'_>,
    ) -> Result<(), Error> {
        if response.is_error {
            out.push(ERROR_LINE)?;
        }
        let mut line_break = LineBreak::default();
        for block in &response.content {
            line_break.push(&self.block_text(turn, call, block)?, out)?;
        }
        Ok(())
    }

    fn block_text<'a>(
        &mut self,
        turn: usize,
        call: &ToolCallRequest,
        block: &'a StoredBlock,
    ) -> Result<Cow<'a, str>, Error> {
        match block {
            StoredBlock::Text { text, .. } => shown::load_text(text, &result_of(call), self.contents),
            StoredBlock::Resource { resource, .. } => {
                Ok(match shown::load_resource(resource, self.contents)? {
                    Shown::Text(text) => view::resource_block(resource, &text).into(),
                    Shown::Binary(bytes) => {
                        let mime = resource.mime_type.as_deref().unwrap_or(UNKNOWN);
                        self.leave_out(turn, subject(resource), mime, bytes.len()).into()
                    }
                })
            }
            StoredBlock::Image(media) | StoredBlock::Audio(media) => {
                let size = self.media_size(media, call)?;
                Ok(self.leave_out(turn, result_of(call), &media.mime_type, size).into())
            }
            StoredBlock::Question { question } => Ok(question.text.as_str().into()),
        }
    }

    /// Notes a binary part of a tool's result, and returns the line that stands for it.
    fn leave_out(&mut self, turn: usize, subject: String, mime: &str, size: usize) -> String {
        let mime = essence(mime);
        let line =
            format!("[{subject} is not shown: results of tools are text, this is {mime}; {size} bytes]");
        self.note(turn, subject, format!("results of tools are text, this is {mime}"), size);
        line
    }

    fn note(&mut self, turn: usize, subject: String, reason: String, size: usize) {
        self.notes.push(Note { turn, subject, reason, bytes: size as u64 });
    }

    /// Returns the size of media, loading it all the same: `contents` counts on every payload's turn.
    fn media_size(
        &mut self,
        media: &Media<Payload<Vec<u8>>>,
        call: &ToolCallRequest,
    ) -> Result<usize, Error> {
        Ok(shown::load_media(media, &result_of(call), self.contents)?.len())
    }
}

/// Joins what the model said and called, without its reasoning; `None` where nothing is left.
fn assistant(parts: &[AnswerPart<'_>]) -> Result<Option<Assistant>, Error> {
    let mut assistant = Assistant { role: "assistant", content: String::new(), tool_calls: Vec::new() };
    for part in parts {
        match part {
            AnswerPart::Response(response) => match &response.content {
                ResponseContent::Message(text) => assistant.content.push_str(text),
                ResponseContent::Reasoning(_) => {}
            },
            AnswerPart::Call(call) => assistant.tool_calls.push(wire_call(call)?),
        }
    }
    let is_empty = assistant.content.is_empty() && assistant.tool_calls.is_empty();
    Ok((!is_empty).then_some(assistant))
}

fn wire_call(call: &ToolCallRequest) -> Result<Call, Error> {
    let arguments = serde_json::to_string(&call.arguments).map_err(io::Error::from)?;
    Ok(Call {
        id: call.id.clone(),
        r#type: "function",
        function: Function { name: call.name.clone(), arguments },
    })
}

fn write_text_part(
    out: &mut dyn Write,
    fill: impl FnOnce(&mut JsonText<'_>) -> io::Result<()>,
) -> Result<(), Error> {
    out.write_all(br#"{"type":"text","text":"#)?;
    write_string(out, fill)?;
    Ok(out.write_all(b"}")?)
}

fn write_image_part(mime: &str, bytes: &[u8], out: &mut dyn Write) -> Result<(), Error> {
    out.write_all(br#"{"type":"image_url","image_url":{"url":"#)?;
    write_data_url(mime, bytes, out)?;
    Ok(out.write_all(b"}}")?)
}

fn write_file_part(resource: &Snapshot, bytes: &[u8], out: &mut dyn Write) -> Result<(), Error> {
    out.write_all(br#"{"type":"file","file":{"filename":"#)?;
    write_json(&file_name(resource), out)?;
    out.write_all(br#","file_data":"#)?;
    write_data_url(PDF, bytes, out)?;
    Ok(out.write_all(b"}}")?)
}

#[cfg(test)]
mod tests;
