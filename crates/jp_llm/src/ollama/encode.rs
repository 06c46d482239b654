use std::io::Write;

use jp_conversation::{
    ChatRequest, ChatResponse, ResponseContent, ToolCallRequest, ToolCallResponse,
    view::{self, AnswerPart, Message},
};
use jp_resource::Snapshot;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::{
    Capabilities, Contents, Error, Note, Request,
    chat::WireTool,
    json::{JsonText, write_string},
    later::TextForm,
    parts::{ERROR_LINE, Separator, write_base64, write_head, write_json},
    shown::{self, Binary, Block, Shown},
    xml,
};

/// The images that Ollama decodes.
const IMAGES: [&str; 3] = ["image/png", "image/jpeg", "image/webp"];

/// Writes a request's JSON and returns what the model is told of but not shown.
///
/// Equal requests give equal bytes. The messages stand last and each depends on nothing but itself, so what
/// a request says of the history is a prefix of what the next one says. One payload is in memory at a time,
/// but for the images of one message, which follow its text; `out` should be buffered.
pub fn encode(
    request: &Request<'_>,
    contents: &mut dyn Contents,
    out: &mut dyn Write,
) -> Result<Vec<Note>, Error> {
    let Request {
        label,
        capabilities,
        ..
    } = *request;
    let mut encoder = Encoder {
        label,
        capabilities,
        contents,
        notes: Vec::new(),
    };
    write_head(&head(request), out)?;
    out.write_all(br#","messages":["#)?;
    let mut separator = Separator::default();
    if let Some(system) = request.system.filter(|system| !system.is_empty()) {
        separator.write(out)?;
        write_json(
            &Plain {
                role: "system",
                content: system,
            },
            out,
        )?;
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
    #[serde(skip_serializing_if = "Option::is_none")]
    options: Option<Options>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<WireTool<'a>>,
    /// The schema of the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<&'a Map<String, Value>>,
}

#[derive(Serialize)]
struct Options {
    #[serde(skip_serializing_if = "Option::is_none")]
    num_ctx: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    num_predict: Option<u64>,
}

#[derive(Serialize)]
struct Plain<'a> {
    role: &'static str,
    content: &'a str,
}

#[derive(Serialize)]
struct Assistant<'a> {
    role: &'static str,
    content: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    thinking: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<Call<'a>>,
}

#[derive(Serialize)]
struct Call<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    id: &'a str,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    arguments: &'a Map<String, Value>,
}

#[derive(Serialize)]
struct ToolHead<'a> {
    role: &'static str,
    tool_name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    tool_call_id: &'a str,
}

impl<'a> From<&'a ToolCallRequest> for Call<'a> {
    fn from(call: &'a ToolCallRequest) -> Self {
        Self {
            id: &call.id,
            function: Function {
                name: &call.name,
                arguments: &call.arguments,
            },
        }
    }
}

fn options(request: &Request<'_>) -> Option<Options> {
    let options = Options {
        num_ctx: request.context,
        num_predict: request.max_output,
    };
    (options.num_ctx.is_some() || options.num_predict.is_some()).then_some(options)
}

fn head<'a>(request: &'a Request<'_>) -> Head<'a> {
    Head {
        model: request.model,
        stream: true,
        options: options(request),
        tools: request.tools.iter().map(WireTool::from).collect(),
        format: request.schema(),
    }
}

struct Encoder<'e> {
    label: &'e str,
    capabilities: Capabilities,
    contents: &'e mut dyn Contents,
    notes: Vec<Note>,
}

/// The images of one message, as the inside of a JSON array.
#[derive(Default)]
struct Images {
    count: usize,
    json: Vec<u8>,
}

impl Encoder<'_> {
    fn write_message(
        &mut self,
        message: &Message<'_>,
        separator: &mut Separator,
        out: &mut dyn Write,
    ) -> Result<(), Error> {
        match message {
            Message::User { turn, request, .. } => {
                separator.write(out)?;
                self.write_user(*turn, request, out)
            }
            Message::Assistant { parts, .. } => match self.assistant(parts) {
                Some(assistant) => {
                    separator.write(out)?;
                    write_json(&assistant, out)
                }
                None => Ok(()),
            },
            Message::NoAnswer { .. } => {
                separator.write(out)?;
                write_json(
                    &Plain {
                        role: "assistant",
                        content: view::text_of_missing_answer(),
                    },
                    out,
                )
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

    fn write_user(
        &mut self,
        turn: usize,
        request: &ChatRequest,
        out: &mut dyn Write,
    ) -> Result<(), Error> {
        let mut images = Images::default();
        out.write_all(br#"{"role":"user","content":"#)?;
        write_string(out, |out| {
            let words = self.capabilities.words(request);
            out.push(&words)?;
            let mut gap = if words.is_empty() { "" } else { "\n\n" };
            for resource in &request.resources {
                out.push(gap)?;
                self.write_resource(turn, resource, &mut images, out)?;
                gap = "\n\n";
            }
            Ok::<_, Error>(())
        })?;
        if images.count > 0 {
            out.write_all(br#","images":["#)?;
            out.write_all(&images.json)?;
            out.write_all(b"]")?;
        }
        Ok(out.write_all(b"}")?)
    }

    fn write_resource(
        &mut self,
        turn: usize,
        resource: &Snapshot,
        images: &mut Images,
        out: &mut JsonText<'_>,
    ) -> Result<(), Error> {
        let binary = match shown::load_attached(resource, TextForm::Defused, self.contents)? {
            Shown::Text(text) => return Ok(xml::write_text(out, resource, &text)?),
            Shown::Binary(bytes) => Binary::of(resource, bytes),
        };
        let note = if self.capabilities.images && IMAGES.contains(&&*binary.mime) {
            images.add(&binary.bytes)?;
            format!("[image {} of this message]", images.count)
        } else {
            let reason = self.leave_out(
                turn,
                &binary,
                format!("this model does not take {}", binary.mime),
            );
            format!("[not shown: {reason}; {} bytes]", binary.bytes.len())
        };
        Ok(xml::write_note(out, resource, &note)?)
    }

    fn write_tool(
        &mut self,
        turn: usize,
        call: &ToolCallRequest,
        response: Option<&ToolCallResponse>,
        out: &mut dyn Write,
    ) -> Result<(), Error> {
        write_head(
            &ToolHead {
                role: "tool",
                tool_name: &call.name,
                tool_call_id: &call.id,
            },
            out,
        )?;
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
        let mut newline = "";
        for block in &response.content {
            let text = match shown::load_block(call, block, self.contents)? {
                Block::Text(text) => text,
                Block::Binary(binary) => self.line_for(turn, &binary).into(),
            };
            out.push(newline)?;
            out.push(&text)?;
            newline = if text.is_empty() || text.ends_with('\n') {
                ""
            } else {
                "\n"
            };
        }
        Ok(())
    }

    /// Notes binary content of a result, and returns the line that stands for it.
    fn line_for(&mut self, turn: usize, binary: &Binary<'_>) -> String {
        let Binary {
            label, mime, bytes, ..
        } = binary;
        let reason = self.leave_out(
            turn,
            binary,
            format!("results of tools are text, this is {mime}"),
        );
        format!("[{label} is not shown: {reason}; {} bytes]", bytes.len())
    }

    /// Notes content that the model is not shown, and returns why.
    fn leave_out(&mut self, turn: usize, binary: &Binary<'_>, reason: String) -> String {
        let (subject, bytes) = (binary.subject.clone(), binary.bytes.len() as u64);
        self.notes.push(Note {
            turn,
            subject,
            reason: reason.clone(),
            bytes: Some(bytes),
        });
        reason
    }

    /// Joins what the model said and called, with its reasoning where that goes back; `None` where there
    /// are neither words nor calls.
    fn assistant<'a>(&self, parts: &[AnswerPart<'a>]) -> Option<Assistant<'a>> {
        let (mut content, mut thinking, mut tool_calls) =
            (String::new(), String::new(), Vec::new());
        for part in parts {
            match *part {
                AnswerPart::Response(response) => match &response.content {
                    ResponseContent::Message(text) => content.push_str(text),
                    ResponseContent::Reasoning(text) if sends_back(response, self.label) => {
                        thinking.push_str(text);
                    }
                    ResponseContent::Reasoning(_) => {}
                },
                AnswerPart::Call(call) => tool_calls.push(Call::from(call)),
            }
        }
        let is_empty = content.is_empty() && tool_calls.is_empty();
        (!is_empty).then_some(Assistant {
            role: "assistant",
            content,
            thinking,
            tool_calls,
        })
    }
}

/// Returns whether a part of an answer that is reasoning goes back to the model `label`.
pub(crate) fn sends_back(response: &ChatResponse, label: &str) -> bool {
    response
        .metadata
        .get("model")
        .is_some_and(|model| model == label)
}

impl Images {
    fn add(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.json
            .extend_from_slice(if self.count == 0 { b"\"" } else { b",\"" });
        write_base64(bytes, &mut self.json)?;
        self.json.push(b'"');
        self.count += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
