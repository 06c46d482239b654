use jp_conversation::{ChatResponse, EventKind, ToolCallRequest, ToolCallResponse, Usage};
use jp_tool::ContentBlock;
use serde_json::{Map, Value};

use crate::{Delta, TurnEvent};

const NO_TOOLS: &str = "No tools are available in this version of jp.";

/// An answer while it is collected.
///
/// Each run of words or of reasoning becomes one event, when the next begins or the answer ends: only then is it
/// known whether the answer was cut off after it.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    run: Option<ChatResponse>,
    /// Whether the provider said that the run is whole.
    is_whole: bool,
    has_recorded: bool,
    /// All words so far.
    words: String,
    calls: Vec<ToolCallRequest>,
    usage: Option<Usage>,
}

type OnEvent<'a> = &'a mut dyn FnMut(TurnEvent<'_>);

impl Answer {
    pub(crate) fn text(&mut self, text: &str, on_event: OnEvent<'_>) {
        self.words.push_str(text);
        self.take(ChatResponse::message(text), on_event);
        on_event(TurnEvent::Delta(Delta::Text(text)));
    }

    pub(crate) fn reasoning(&mut self, text: &str, on_event: OnEvent<'_>) {
        self.take(ChatResponse::reasoning(text), on_event);
        on_event(TurnEvent::Delta(Delta::Reasoning(text)));
    }

    /// Ends the current run with what the provider wants back, and which model made it.
    pub(crate) fn end_part(&mut self, metadata: Map<String, Value>, model: &str, on_event: OnEvent<'_>) {
        if self.is_whole {
            self.record(on_event);
        }
        let run = self.run.get_or_insert_with(|| ChatResponse::reasoning(""));
        run.metadata = metadata;
        run.metadata.insert("model".to_owned(), model.into());
        self.is_whole = true;
    }

    /// Collects a call; what the provider wants back of it goes back to the model that made it alone.
    pub(crate) fn call(&mut self, mut call: ToolCallRequest, model: &str) {
        if !call.metadata.is_empty() {
            call.metadata.insert("model".to_owned(), model.into());
        }
        self.calls.push(call);
    }

    /// Returns the words of an answer that is nothing but words.
    pub(crate) fn words(&self) -> Option<&str> {
        self.calls.is_empty().then_some(&self.words)
    }

    pub(crate) fn usage(&mut self, usage: Usage) {
        self.usage = Some(usage);
    }

    /// Records what is left: the last run with why it was cut off, or the calls, and what it all cost.
    pub(crate) fn end(mut self, incomplete: Option<String>, model: &str, on_event: OnEvent<'_>) {
        match incomplete {
            Some(reason) => self.cut_off(reason, on_event),
            None => {
                self.record(on_event);
                refuse(std::mem::take(&mut self.calls), on_event);
            }
        }
        if let Some(usage) = self.usage {
            on_event(TurnEvent::Record(EventKind::Usage(Usage { model: model.to_owned(), ..usage })));
        }
    }

    /// Records as incomplete what stands last, so that the request counts as unanswered.
    ///
    /// Calls of an answer that did not end are left out: whoever asks again gets them again.
    fn cut_off(&mut self, reason: String, on_event: OnEvent<'_>) {
        for call in &self.calls {
            let notice = format!("The answer was cut off: its call of the tool `{}` is left out.", call.name);
            on_event(TurnEvent::Notice(&notice));
        }
        if self.run.is_some() || self.has_recorded || !self.calls.is_empty() {
            let run = self.run.take().unwrap_or_else(|| ChatResponse::message(""));
            let run = ChatResponse { incomplete: Some(reason), ..run };
            on_event(TurnEvent::Record(EventKind::ChatResponse(run)));
        }
    }

    /// Appends to the current run, or records it and begins another.
    fn take(&mut self, piece: ChatResponse, on_event: OnEvent<'_>) {
        use jp_conversation::ResponseContent::{Message, Reasoning};
        let open = self.run.as_mut().filter(|_| !self.is_whole);
        match (open.map(|run| &mut run.content), &piece.content) {
            (Some(Message(run)), Message(text)) | (Some(Reasoning(run)), Reasoning(text)) => {
                run.push_str(text)
            }
            _ => {
                self.record(on_event);
                self.run = Some(piece);
            }
        }
    }

    fn record(&mut self, on_event: OnEvent<'_>) {
        self.is_whole = false;
        if let Some(run) = self.run.take() {
            self.has_recorded = true;
            on_event(TurnEvent::Record(EventKind::ChatResponse(run)));
        }
    }
}

/// Records the calls and, since nothing can run them, an error as the result of each.
fn refuse(calls: Vec<ToolCallRequest>, on_event: OnEvent<'_>) {
    let results: Vec<ToolCallResponse> = calls.iter().map(refusal).collect();
    for call in calls {
        let name = call.name.clone();
        on_event(TurnEvent::Record(EventKind::ToolCallRequest(call)));
        on_event(TurnEvent::Notice(&format!("The model called the tool `{name}`. {NO_TOOLS}")));
    }
    for result in results {
        on_event(TurnEvent::Record(EventKind::ToolCallResponse(result)));
    }
}

fn refusal(call: &ToolCallRequest) -> ToolCallResponse {
    ToolCallResponse {
        id: call.id.clone(),
        content: vec![ContentBlock::text(NO_TOOLS).into()],
        is_error: true,
        structured_content: None,
        meta: Default::default(),
    }
}
