use std::{
    borrow::Cow,
    io::{self, Write},
};

use jp_conversation::{
    ChatRequest, ChatResponse, ResponseContent, ToolCallRequest, ToolCallResponse,
    view::{self, AnswerPart, Message},
};
use jp_resource::Snapshot;
use jp_tool::StoredBlock;
use serde::Serialize;
use serde_json::Value;

use super::{
    Dialect, REASONING_DETAILS,
    head::head,
    marks::Marks,
    message::{Parts, write_text_part},
};
use crate::{
    Capabilities, Contents, Error, Note, Request,
    json::{JsonText, write_string},
    later::TextForm,
    parts::{
        ERROR_LINE, IMAGES, PDF, Separator, filename, name_of, write_data_url, write_head,
        write_json,
    },
    shown::{self, Binary, Block, Shown},
    xml,
};

/// Writes a request's JSON and returns what the model is told of but not shown.
///
/// Equal requests give equal bytes. The messages stand last and each depends on nothing but itself and
/// those before it, so what a request says of the history is a prefix of what the next one says, the
/// [cache marks](super) aside. One payload is in memory at a time, but for those of a tool's results that
/// wait for the message after the results; `out` should be buffered.
pub fn encode(
    dialect: Dialect,
    request: &Request<'_>,
    contents: &mut dyn Contents,
    out: &mut dyn Write,
) -> Result<Vec<Note>, Error> {
    let mut encoder = Encoder {
        dialect,
        label: request.label,
        capabilities: request.capabilities,
        marks: Marks::new(dialect, request),
        contents,
        notes: Vec::new(),
        separator: Separator::default(),
        moved: Vec::new(),
        ends_with_user: false,
    };
    write_head(&head(dialect, request), out)?;
    out.write_all(br#","messages":["#)?;
    encoder.write_system(request.system.unwrap_or_default(), out)?;
    for (index, message) in request.thread.messages.iter().enumerate() {
        encoder.write_message(index, message, out)?;
    }
    encoder.write_moved(out)?;
    out.write_all(b"]}")?;
    Ok(encoder.notes)
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
    #[serde(skip_serializing_if = "Vec::is_empty")]
    reasoning_details: Vec<&'a Value>,
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

struct Encoder<'e> {
    dialect: Dialect,
    label: &'e str,
    capabilities: Capabilities,
    marks: Marks,
    contents: &'e mut dyn Contents,
    notes: Vec<Note>,
    separator: Separator,
    /// Parts that messages with results can't hold, as JSON with commas between.
    moved: Vec<u8>,
    /// Whether the last message is from the person: many models take turns only.
    ends_with_user: bool,
}

/// What a part with binary content is.
#[derive(Clone, Copy)]
enum Kind {
    Image,
    Pdf,
}

impl Encoder<'_> {
    fn write_system(&mut self, system: &str, out: &mut dyn Write) -> Result<(), Error> {
        if system.is_empty() {
            return Ok(());
        }
        self.separator.write(out)?;
        if !self.marks.are_wanted() {
            return write_json(
                &Plain {
                    role: "system",
                    content: system,
                },
                out,
            );
        }
        out.write_all(br#"{"role":"system","content":"#)?;
        let mut parts = Parts::new(out, true);
        parts.text(|out| out.push(system))?;
        parts.end()?;
        Ok(out.write_all(b"}")?)
    }

    fn write_message(
        &mut self,
        index: usize,
        message: &Message<'_>,
        out: &mut dyn Write,
    ) -> Result<(), Error> {
        match message {
            Message::User { turn, request, .. } => {
                self.write_moved(out)?;
                if self.ends_with_user {
                    self.write_missing_answer(out)?;
                }
                self.begin_user(out)?;
                self.write_user(*turn, request, self.marks.is_at(index), out)
            }
            Message::Assistant { parts, .. } => {
                self.write_moved(out)?;
                self.write_assistant(parts, out)
            }
            Message::NoAnswer { .. } => self.write_missing_answer(out),
            Message::Tool {
                turn,
                call,
                response,
                ..
            } => {
                self.separator.write(out)?;
                self.ends_with_user = false;
                self.write_tool(
                    *turn,
                    call,
                    response.as_deref(),
                    self.marks.is_at(index),
                    out,
                )
            }
        }
    }

    fn begin_user(&mut self, out: &mut dyn Write) -> Result<(), Error> {
        self.ends_with_user = true;
        Ok(self.separator.write(out)?)
    }

    fn write_missing_answer(&mut self, out: &mut dyn Write) -> Result<(), Error> {
        self.ends_with_user = false;
        self.separator.write(out)?;
        write_json(
            &Plain {
                role: "assistant",
                content: view::text_of_missing_answer(),
            },
            out,
        )
    }

    fn write_assistant(
        &mut self,
        parts: &[AnswerPart<'_>],
        out: &mut dyn Write,
    ) -> Result<(), Error> {
        let Some(assistant) = self.assistant(parts)? else {
            return Ok(());
        };
        self.ends_with_user = false;
        self.separator.write(out)?;
        write_json(&assistant, out)
    }

    /// Writes words alone as a string, which every server takes, and words with resources as parts.
    fn write_user(
        &mut self,
        turn: usize,
        request: &ChatRequest,
        is_marked: bool,
        out: &mut dyn Write,
    ) -> Result<(), Error> {
        let words = self.capabilities.words(request);
        if request.resources.is_empty() && !self.marks.are_wanted() {
            return write_json(
                &Plain {
                    role: "user",
                    content: &words,
                },
                out,
            );
        }
        out.write_all(br#"{"role":"user","content":"#)?;
        let mut parts = Parts::new(out, is_marked);
        if !words.is_empty() {
            parts.text(|out| out.push(&words))?;
        }
        for resource in &request.resources {
            self.write_resource(turn, resource, &mut parts)?;
        }
        parts.end()?;
        Ok(out.write_all(b"}")?)
    }

    fn write_resource(
        &mut self,
        turn: usize,
        resource: &Snapshot,
        parts: &mut Parts<'_>,
    ) -> Result<(), Error> {
        let binary = match shown::load_attached(resource, TextForm::Defused, self.contents)? {
            Shown::Text(text) => return parts.text(|out| xml::write_text(out, resource, &text)),
            Shown::Binary(bytes) => Binary::of(resource, bytes),
        };
        if let Some(kind) = self.kind(&binary) {
            parts.text(|out| xml::write_label(out, resource))?;
            return parts.binary(|out| write_binary_part(kind, &binary, out));
        }
        let reason = self.leave_out(turn, &binary);
        let note = format!("[not shown: {reason}; {} bytes]", binary.bytes.len());
        parts.text(|out| xml::write_note(out, resource, &note))
    }

    fn write_tool(
        &mut self,
        turn: usize,
        call: &ToolCallRequest,
        response: Option<&ToolCallResponse>,
        is_marked: bool,
        out: &mut dyn Write,
    ) -> Result<(), Error> {
        out.write_all(br#"{"role":"tool","tool_call_id":"#)?;
        write_json(&call.id, out)?;
        out.write_all(br#","content":"#)?;
        if self.shows_binary_results() || self.marks.are_wanted() {
            let mut parts = Parts::new(out, is_marked);
            self.write_result_parts(turn, call, response, &mut parts)?;
            parts.end()?;
        } else {
            write_string(out, |out| self.write_result(turn, call, response, out))?;
        }
        Ok(out.write_all(b"}")?)
    }

    /// Writes a result's blocks as text, each on a line of its own.
    fn write_result(
        &mut self,
        turn: usize,
        call: &ToolCallRequest,
        response: Option<&ToolCallResponse>,
        out: &mut JsonText<'_>,
    ) -> Result<(), Error> {
        let Some(response) = response else {
            return Ok(out.push(view::text_of_missing_result())?);
        };
        if response.is_error {
            out.push(ERROR_LINE)?;
        }
        let mut newline = "";
        for block in &response.content {
            let text = self.block_text(turn, call, block)?;
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

    fn block_text<'a>(
        &mut self,
        turn: usize,
        call: &ToolCallRequest,
        block: &'a StoredBlock,
    ) -> Result<Cow<'a, str>, Error> {
        match shown::load_block(call, block, self.contents)? {
            Block::Text(text) => Ok(text),
            Block::Binary(binary) => self.set_aside(turn, call, &binary).map(Cow::Owned),
        }
    }

    /// Writes a result's blocks, each as a part of its own; a text that is empty is none.
    fn write_result_parts(
        &mut self,
        turn: usize,
        call: &ToolCallRequest,
        response: Option<&ToolCallResponse>,
        parts: &mut Parts<'_>,
    ) -> Result<(), Error> {
        let Some(response) = response else {
            return parts.text(|out| out.push(view::text_of_missing_result()));
        };
        if response.is_error {
            parts.text(|out| out.push(ERROR_LINE.trim_end()))?;
        }
        for block in &response.content {
            self.write_block(turn, call, block, parts)?;
        }
        Ok(())
    }

    fn write_block(
        &mut self,
        turn: usize,
        call: &ToolCallRequest,
        block: &StoredBlock,
        parts: &mut Parts<'_>,
    ) -> Result<(), Error> {
        let text = match shown::load_block(call, block, self.contents)? {
            Block::Text(text) => text,
            Block::Binary(binary) => {
                match self.kind(&binary).filter(|_| self.shows_binary_results()) {
                    Some(kind) => {
                        if matches!(block, StoredBlock::Resource { .. }) {
                            parts.text(|out| out.push(&format!("{}:", binary.label)))?;
                        }
                        return parts.binary(|out| write_binary_part(kind, &binary, out));
                    }
                    None => self.set_aside(turn, call, &binary)?.into(),
                }
            }
        };
        if text.is_empty() {
            Ok(())
        } else {
            parts.text(|out| out.push(&text))
        }
    }

    fn shows_binary_results(&self) -> bool {
        match self.dialect {
            Dialect::Generic => false,
            Dialect::OpenRouter => self.capabilities.binary_results,
        }
    }

    /// Puts binary content of a result aside for the message after the results, or notes that the model
    /// does not take it; returns the line that stands for it in the result.
    fn set_aside(
        &mut self,
        turn: usize,
        call: &ToolCallRequest,
        binary: &Binary<'_>,
    ) -> Result<String, Error> {
        let Binary {
            label, mime, bytes, ..
        } = binary;
        let size = bytes.len();
        let Some(kind) = self.kind(binary) else {
            let reason = self.leave_out(turn, binary);
            return Ok(format!("[{label} is not shown: {reason}; {size} bytes]"));
        };
        let id = if call.id.is_empty() {
            String::new()
        } else {
            format!(" ({})", call.id)
        };
        if !self.moved.is_empty() {
            self.moved.push(b',');
        }
        let lead = format!("{label}, returned by the call of `{}`{id}:", call.name);
        write_text_part(&mut self.moved, |out| out.push(&lead))?;
        self.moved.push(b',');
        write_binary_part(kind, binary, &mut self.moved)?;
        Ok(format!(
            "[{label} is in the next message: {mime}; {size} bytes]"
        ))
    }

    /// Writes what was put aside as a message from the person.
    fn write_moved(&mut self, out: &mut dyn Write) -> Result<(), Error> {
        if self.moved.is_empty() {
            return Ok(());
        }
        self.begin_user(out)?;
        out.write_all(br#"{"role":"user","content":["#)?;
        out.write_all(&std::mem::take(&mut self.moved))?;
        Ok(out.write_all(b"]}")?)
    }

    /// Returns what part shows the model this content; `None` where it does not take it.
    fn kind(&self, binary: &Binary<'_>) -> Option<Kind> {
        match &*binary.mime {
            PDF if self.capabilities.pdf => Some(Kind::Pdf),
            mime if self.capabilities.images && IMAGES.contains(&mime) => Some(Kind::Image),
            _ => None,
        }
    }

    /// Notes content that the model is not shown, and returns why.
    fn leave_out(&mut self, turn: usize, binary: &Binary<'_>) -> String {
        let reason = format!("this model does not take {}", binary.mime);
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
    fn assistant<'a>(&self, parts: &[AnswerPart<'a>]) -> Result<Option<Assistant<'a>>, Error> {
        let mut assistant = Assistant {
            role: "assistant",
            content: String::new(),
            reasoning_details: Vec::new(),
            tool_calls: Vec::new(),
        };
        for part in parts {
            match *part {
                AnswerPart::Response(response) => {
                    assistant.reasoning_details.extend(reasoning_details(
                        self.dialect,
                        response,
                        self.label,
                    ));
                    if let ResponseContent::Message(text) = &response.content {
                        assistant.content.push_str(text);
                    }
                }
                AnswerPart::Call(call) => assistant.tool_calls.push(wire_call(call)?),
            }
        }
        let is_empty = assistant.content.is_empty() && assistant.tool_calls.is_empty();
        Ok((!is_empty).then_some(assistant))
    }
}

/// Returns whether a part of an answer that is reasoning goes back to the model `label`.
pub(crate) fn sends_back(dialect: Dialect, response: &ChatResponse, label: &str) -> bool {
    !reasoning_details(dialect, response, label).is_empty()
}

/// Returns the reasoning that came with a part of an answer, if this is the model that made it.
fn reasoning_details<'a>(dialect: Dialect, response: &'a ChatResponse, label: &str) -> &'a [Value] {
    let is_own = response
        .metadata
        .get("model")
        .is_some_and(|model| model == label);
    let is_replayed = dialect == Dialect::OpenRouter && is_own;
    let details = response
        .metadata
        .get(REASONING_DETAILS)
        .filter(|_| is_replayed);
    details.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn wire_call(call: &ToolCallRequest) -> Result<Call, Error> {
    let arguments = serde_json::to_string(&call.arguments).map_err(io::Error::from)?;
    Ok(Call {
        id: call.id.clone(),
        r#type: "function",
        function: Function {
            name: name_of(call).into_owned(),
            arguments,
        },
    })
}

fn write_binary_part(kind: Kind, binary: &Binary<'_>, out: &mut dyn Write) -> Result<(), Error> {
    match kind {
        Kind::Image => out.write_all(br#"{"type":"image_url","image_url":{"url":"#)?,
        Kind::Pdf => {
            out.write_all(br#"{"type":"file","file":{"filename":"#)?;
            write_json(&filename(&binary.subject), out)?;
            out.write_all(br#","file_data":"#)?;
        }
    }
    write_data_url(&binary.mime, &binary.bytes, out)?;
    Ok(out.write_all(b"}}")?)
}

#[cfg(test)]
mod tests;
