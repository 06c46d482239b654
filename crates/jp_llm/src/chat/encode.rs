use std::{borrow::Cow, io, io::Write};

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
    marks::ChatMarks,
    message::{ContentParts, write_text_part},
};
use crate::{
    Capabilities, Contents, Error, Note, Request,
    json::{Fragment, JsonText, JsonWriter},
    later::TextForm,
    parts::{ERROR_LINE, IMAGES, LineBreak, PDF, PlainMessage, file_name, sendable_name},
    shown::{self, Binary, Shown, ShownBlock},
    xml,
};

/// Writes a request's JSON and returns notes about content that is not shown.
///
/// Equal requests give equal bytes. The messages come last and each depends on nothing but itself and those before it, so
/// the history in a request is a prefix of the history in the next one, except for the [cache marks](super). One payload
/// is in memory at a time, apart from those of a tool's results that wait for the message after the results; `out` should
/// be buffered.
pub fn encode(
    dialect: Dialect,
    request: &Request<'_>,
    contents: &mut dyn Contents,
    out: &mut dyn Write,
) -> Result<Vec<Note>, Error> {
    let mut json = JsonWriter::new(out);
    let mut encoder = ChatEncoder {
        dialect,
        label: request.label,
        capabilities: request.capabilities,
        marks: ChatMarks::new(dialect, request),
        contents,
        notes: Vec::new(),
        moved: Fragment::default(),
        ends_with_user: false,
    };
    json.begin_object()?;
    json.fields(&head(dialect, request))?;
    json.key("messages")?;
    json.begin_array()?;
    encoder.write_system(request.system.unwrap_or_default(), &mut json)?;
    for (index, message) in request.thread.messages.iter().enumerate() {
        encoder.write_message(index, message, &mut json)?;
    }
    encoder.write_moved(&mut json)?;
    json.finish()?;
    Ok(encoder.notes)
}

#[derive(Serialize)]
struct ChatAnswer<'a> {
    role: &'static str,
    content: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    reasoning_details: Vec<&'a Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<ChatCall>,
}

#[derive(Serialize)]
struct ChatCall {
    id: String,
    r#type: &'static str,
    function: CalledFunction,
}

#[derive(Serialize)]
struct CalledFunction {
    name: String,
    /// JSON in a string.
    arguments: String,
}

struct ChatEncoder<'e> {
    dialect: Dialect,
    label: &'e str,
    capabilities: Capabilities,
    marks: ChatMarks,
    contents: &'e mut dyn Contents,
    notes: Vec<Note>,
    /// Parts of results that messages with results can't hold.
    moved: Fragment,
    /// True if the last message is from the person: many models take turns only.
    ends_with_user: bool,
}

/// The kind of part that holds binary content.
#[derive(Clone, Copy)]
enum BinaryPart {
    Image,
    Pdf,
}

impl ChatEncoder<'_> {
    fn write_system(&mut self, system: &str, json: &mut JsonWriter<'_>) -> Result<(), Error> {
        if system.is_empty() {
            return Ok(());
        }
        if !self.marks.are_wanted() {
            return write_plain("system", system, json);
        }
        json.begin_object()?;
        json.field("role", "system")?;
        json.key("content")?;
        let mut parts = ContentParts::new(json, true);
        parts.text(|out| out.push(system))?;
        parts.end()?;
        Ok(json.end()?)
    }

    fn write_message(
        &mut self,
        index: usize,
        message: &Message<'_>,
        json: &mut JsonWriter<'_>,
    ) -> Result<(), Error> {
        let is_marked = self.marks.is_at(index);
        match message {
            Message::User { turn, request, .. } => {
                self.write_moved(json)?;
                // Moved parts are a message of the person, and chat templates want turns.
                if self.ends_with_user {
                    self.write_missing_answer(json)?;
                }
                self.ends_with_user = true;
                self.write_user(*turn, request, is_marked, json)
            }
            Message::Assistant { parts, .. } => {
                self.write_moved(json)?;
                self.write_assistant(parts, json)
            }
            Message::NoAnswer { .. } => self.write_missing_answer(json),
            Message::Tool {
                turn,
                call,
                response,
                ..
            } => {
                self.ends_with_user = false;
                self.write_tool(*turn, call, response.as_deref(), is_marked, json)
            }
        }
    }

    fn write_missing_answer(&mut self, json: &mut JsonWriter<'_>) -> Result<(), Error> {
        self.ends_with_user = false;
        write_plain("assistant", view::text_of_missing_answer(), json)
    }

    fn write_assistant(
        &mut self,
        parts: &[AnswerPart<'_>],
        json: &mut JsonWriter<'_>,
    ) -> Result<(), Error> {
        let Some(answer) = self.join_answer(parts)? else {
            return Ok(());
        };
        self.ends_with_user = false;
        Ok(json.value(&answer)?)
    }

    /// Writes words alone as a string, which every server takes, and words with resources as parts.
    fn write_user(
        &mut self,
        turn: usize,
        request: &ChatRequest,
        is_marked: bool,
        json: &mut JsonWriter<'_>,
    ) -> Result<(), Error> {
        let words = self.capabilities.words(request);
        if request.resources.is_empty() && !self.marks.are_wanted() {
            return write_plain("user", &words, json);
        }
        json.begin_object()?;
        json.field("role", "user")?;
        json.key("content")?;
        let mut parts = ContentParts::new(json, is_marked);
        if !words.is_empty() {
            parts.text(|out| out.push(&words))?;
        }
        for resource in &request.resources {
            self.write_resource(turn, resource, &mut parts)?;
        }
        parts.end()?;
        Ok(json.end()?)
    }

    fn write_resource(
        &mut self,
        turn: usize,
        resource: &Snapshot,
        parts: &mut ContentParts<'_, '_>,
    ) -> Result<(), Error> {
        let binary = match shown::load_attached(resource, TextForm::Defused, self.contents)? {
            Shown::Text(text) => return parts.text(|out| xml::write_text(out, resource, &text)),
            Shown::Binary(bytes) => Binary::from_resource(resource, bytes),
        };
        if let Some(part) = self.part_for(&binary) {
            parts.text(|out| xml::write_label(out, resource))?;
            return parts.binary(|json| write_binary_part(part, &binary, json));
        }
        let note = binary.omit_attached(turn, binary.why_not_taken(), &mut self.notes);
        parts.text(|out| xml::write_note(out, resource, &note))
    }

    fn write_tool(
        &mut self,
        turn: usize,
        call: &ToolCallRequest,
        response: Option<&ToolCallResponse>,
        is_marked: bool,
        json: &mut JsonWriter<'_>,
    ) -> Result<(), Error> {
        json.begin_object()?;
        json.field("role", "tool")?;
        json.field("tool_call_id", &call.id)?;
        json.key("content")?;
        if self.shows_binary_results() || self.marks.are_wanted() {
            let mut parts = ContentParts::new(json, is_marked);
            self.write_result_parts(turn, call, response, &mut parts)?;
            parts.end()?;
        } else {
            json.string(|out| self.write_result(turn, call, response, out))?;
        }
        Ok(json.end()?)
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
        let mut line_break = LineBreak::default();
        for block in &response.content {
            let text = self.load_block_text(turn, call, block)?;
            line_break.push(&text, out)?;
        }
        Ok(())
    }

    fn load_block_text<'a>(
        &mut self,
        turn: usize,
        call: &ToolCallRequest,
        block: &'a StoredBlock,
    ) -> Result<Cow<'a, str>, Error> {
        match shown::load_block(call, block, self.contents)? {
            ShownBlock::Text(text) => Ok(text),
            ShownBlock::Binary(binary) => self.set_aside(turn, call, &binary).map(Cow::Owned),
        }
    }

    /// Writes a result's blocks, each as a part of its own; a text that is empty is none.
    fn write_result_parts(
        &mut self,
        turn: usize,
        call: &ToolCallRequest,
        response: Option<&ToolCallResponse>,
        parts: &mut ContentParts<'_, '_>,
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
        parts: &mut ContentParts<'_, '_>,
    ) -> Result<(), Error> {
        let text = match shown::load_block(call, block, self.contents)? {
            ShownBlock::Text(text) => text,
            ShownBlock::Binary(binary) => match self.result_part_for(&binary) {
                Some(part) => {
                    if matches!(block, StoredBlock::Resource { .. }) {
                        parts.text(|out| out.push(&format!("{}:", binary.label)))?;
                    }
                    return parts.binary(|json| write_binary_part(part, &binary, json));
                }
                None => self.set_aside(turn, call, &binary)?.into(),
            },
        };
        // The Messages API, which OpenRouter may pass it to, refuses empty text.
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
        let Some(part) = self.part_for(binary) else {
            return Ok(binary.omit_from_result(turn, binary.why_not_taken(), &mut self.notes));
        };
        let id = if call.id.is_empty() {
            String::new()
        } else {
            format!(" ({})", call.id)
        };
        let Binary { label, mime, .. } = binary;
        let lead = format!("{label}, returned by the call of `{}`{id}:", call.name);
        let mut moved = self.moved.writer();
        write_text_part(&mut moved, |out| out.push(&lead))?;
        write_binary_part(part, binary, &mut moved)?;
        Ok(format!(
            "[{label} is in the next message: {mime}; {} bytes]",
            binary.bytes.len()
        ))
    }

    /// Writes the parts that were set aside as a message from the person.
    fn write_moved(&mut self, json: &mut JsonWriter<'_>) -> Result<(), Error> {
        if self.moved.is_empty() {
            return Ok(());
        }
        self.ends_with_user = true;
        json.begin_object()?;
        json.field("role", "user")?;
        json.key("content")?;
        json.begin_array()?;
        json.append(std::mem::take(&mut self.moved))?;
        json.end()?;
        Ok(json.end()?)
    }

    /// Returns the part that shows the model this content; `None` if the model does not take it.
    fn part_for(&self, binary: &Binary<'_>) -> Option<BinaryPart> {
        match &*binary.mime {
            PDF if self.capabilities.pdf => Some(BinaryPart::Pdf),
            mime if self.capabilities.images && IMAGES.contains(&mime) => Some(BinaryPart::Image),
            _ => None,
        }
    }

    /// Returns the part of a result that shows the model this content; `None` if results are text.
    fn result_part_for(&self, binary: &Binary<'_>) -> Option<BinaryPart> {
        self.part_for(binary)
            .filter(|_| self.shows_binary_results())
    }

    /// Joins the words, the calls and the reasoning that goes back; `None` if there are neither words nor calls.
    fn join_answer<'a>(&self, parts: &[AnswerPart<'a>]) -> Result<Option<ChatAnswer<'a>>, Error> {
        let mut answer = ChatAnswer {
            role: "assistant",
            content: String::new(),
            reasoning_details: Vec::new(),
            tool_calls: Vec::new(),
        };
        for part in parts {
            match *part {
                AnswerPart::Response(response) => {
                    answer.reasoning_details.extend(reasoning_details(
                        self.dialect,
                        response,
                        self.label,
                    ));
                    if let ResponseContent::Message(text) = &response.content {
                        answer.content.push_str(text);
                    }
                }
                AnswerPart::Call(call) => answer.tool_calls.push(to_chat_call(call)?),
            }
        }
        let is_empty = answer.content.is_empty() && answer.tool_calls.is_empty();
        Ok((!is_empty).then_some(answer))
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

fn to_chat_call(call: &ToolCallRequest) -> Result<ChatCall, Error> {
    let arguments = serde_json::to_string(&call.arguments).map_err(io::Error::from)?;
    Ok(ChatCall {
        id: call.id.clone(),
        r#type: "function",
        function: CalledFunction {
            name: sendable_name(call).into_owned(),
            arguments,
        },
    })
}

fn write_plain(role: &'static str, content: &str, json: &mut JsonWriter<'_>) -> Result<(), Error> {
    Ok(json.value(&PlainMessage { role, content })?)
}

fn write_binary_part(
    part: BinaryPart,
    binary: &Binary<'_>,
    json: &mut JsonWriter<'_>,
) -> Result<(), Error> {
    json.begin_object()?;
    match part {
        BinaryPart::Image => {
            json.field("type", "image_url")?;
            json.key("image_url")?;
            json.begin_object()?;
            json.key("url")?;
        }
        BinaryPart::Pdf => {
            json.field("type", "file")?;
            json.key("file")?;
            json.begin_object()?;
            json.field("filename", file_name(&binary.subject))?;
            json.key("file_data")?;
        }
    }
    json.data_url(&binary.mime, &binary.bytes)?;
    json.end()?;
    Ok(json.end()?)
}

#[cfg(test)]
mod tests;
