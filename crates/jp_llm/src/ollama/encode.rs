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
    chat::ChatTool,
    json::{Fragment, JsonText, JsonWriter},
    later::TextForm,
    parts::{ERROR_LINE, LineBreak, PlainMessage},
    shown::{self, Binary, Shown, ShownBlock},
    xml,
};

/// The images that Ollama decodes.
const IMAGES: [&str; 3] = ["image/png", "image/jpeg", "image/webp"];

/// Writes a request's JSON and returns notes about content that is not shown.
///
/// Equal requests give equal bytes. The messages come last and each depends on nothing but itself, so the history in a
/// request is a prefix of the history in the next one. One payload is in memory at a time, apart from the images of one
/// message, which follow its text; `out` should be buffered.
pub fn encode(
    request: &Request<'_>,
    contents: &mut dyn Contents,
    out: &mut dyn Write,
) -> Result<Vec<Note>, Error> {
    let mut encoder = OllamaEncoder {
        label: request.label,
        capabilities: request.capabilities,
        contents,
        notes: Vec::new(),
    };
    let mut json = JsonWriter::new(out);
    json.begin_object()?;
    json.fields(&head(request))?;
    json.key("messages")?;
    json.begin_array()?;
    if let Some(system) = request.system.filter(|system| !system.is_empty()) {
        write_plain("system", system, &mut json)?;
    }
    for message in &request.thread.messages {
        encoder.write_message(message, &mut json)?;
    }
    json.finish()?;
    Ok(encoder.notes)
}

#[derive(Serialize)]
struct OllamaHead<'a> {
    model: &'a str,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    options: Option<Options>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<ChatTool<'a>>,
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
struct OllamaAnswer<'a> {
    role: &'static str,
    content: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    thinking: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<OllamaCall<'a>>,
}

#[derive(Serialize)]
struct OllamaCall<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    id: &'a str,
    function: OllamaFunction<'a>,
}

#[derive(Serialize)]
struct OllamaFunction<'a> {
    name: &'a str,
    arguments: &'a Map<String, Value>,
}

impl<'a> From<&'a ToolCallRequest> for OllamaCall<'a> {
    fn from(call: &'a ToolCallRequest) -> Self {
        Self {
            id: &call.id,
            function: OllamaFunction {
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

fn head<'a>(request: &'a Request<'_>) -> OllamaHead<'a> {
    OllamaHead {
        model: request.model,
        stream: true,
        options: options(request),
        tools: request.tools.iter().map(ChatTool::from).collect(),
        format: request.schema(),
    }
}

struct OllamaEncoder<'e> {
    label: &'e str,
    capabilities: Capabilities,
    contents: &'e mut dyn Contents,
    notes: Vec<Note>,
}

/// The images of one message, which follow its text.
#[derive(Default)]
struct Images {
    count: usize,
    json: Fragment,
}

impl OllamaEncoder<'_> {
    fn write_message(
        &mut self,
        message: &Message<'_>,
        json: &mut JsonWriter<'_>,
    ) -> Result<(), Error> {
        match message {
            Message::User { turn, request, .. } => self.write_user(*turn, request, json),
            Message::Assistant { parts, .. } => match self.join_answer(parts) {
                Some(answer) => Ok(json.value(&answer)?),
                None => Ok(()),
            },
            Message::NoAnswer { .. } => {
                write_plain("assistant", view::text_of_missing_answer(), json)
            }
            Message::Tool {
                turn,
                call,
                response,
                ..
            } => self.write_tool(*turn, call, response.as_deref(), json),
        }
    }

    fn write_user(
        &mut self,
        turn: usize,
        request: &ChatRequest,
        json: &mut JsonWriter<'_>,
    ) -> Result<(), Error> {
        let mut images = Images::default();
        json.begin_object()?;
        json.field("role", "user")?;
        json.key("content")?;
        json.string(|out| {
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
            json.key("images")?;
            json.begin_array()?;
            json.append(images.json)?;
            json.end()?;
        }
        Ok(json.end()?)
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
            Shown::Binary(bytes) => Binary::from_resource(resource, bytes),
        };
        let note = if self.capabilities.images && IMAGES.contains(&&*binary.mime) {
            images.json.writer().base64(&binary.bytes)?;
            images.count += 1;
            format!("[image {} of this message]", images.count)
        } else {
            binary.omit_attached(turn, binary.why_not_taken(), &mut self.notes)
        };
        Ok(xml::write_note(out, resource, &note)?)
    }

    fn write_tool(
        &mut self,
        turn: usize,
        call: &ToolCallRequest,
        response: Option<&ToolCallResponse>,
        json: &mut JsonWriter<'_>,
    ) -> Result<(), Error> {
        json.begin_object()?;
        json.field("role", "tool")?;
        json.field("tool_name", &call.name)?;
        // Servers from before Ollama had ids give their calls none.
        if !call.id.is_empty() {
            json.field("tool_call_id", &call.id)?;
        }
        json.key("content")?;
        json.string(|out| match response {
            Some(response) => self.write_result(turn, call, response, out),
            None => Ok(out.push(view::text_of_missing_result())?),
        })?;
        Ok(json.end()?)
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
            let text = match shown::load_block(call, block, self.contents)? {
                ShownBlock::Text(text) => text,
                ShownBlock::Binary(binary) => {
                    let reason = binary.why_not_in_results();
                    binary
                        .omit_from_result(turn, reason, &mut self.notes)
                        .into()
                }
            };
            line_break.push(&text, out)?;
        }
        Ok(())
    }

    /// Joins the words, the calls and the reasoning that goes back; `None` if there are neither words nor calls.
    fn join_answer<'a>(&self, parts: &[AnswerPart<'a>]) -> Option<OllamaAnswer<'a>> {
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
                AnswerPart::Call(call) => tool_calls.push(OllamaCall::from(call)),
            }
        }
        let is_empty = content.is_empty() && tool_calls.is_empty();
        (!is_empty).then_some(OllamaAnswer {
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

fn write_plain(role: &'static str, content: &str, json: &mut JsonWriter<'_>) -> Result<(), Error> {
    Ok(json.value(&PlainMessage { role, content })?)
}

#[cfg(test)]
mod tests;
