use jp_conversation::{ChatResponse, EventKind, ToolCallRequest, Usage};
use serde_json::{Map, Value};

use crate::host::{Delta, Host, TurnEvent};

/// An answer while it is collected.
///
/// Each run of words or of reasoning becomes one event, when the next begins or the answer ends:
/// only then is it known whether the answer was cut off after it.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    run: Option<ChatResponse>,
    /// True after the provider ended the run.
    is_whole: bool,
    has_recorded: bool,
    /// All words so far.
    words: String,
    /// The first call and what came after it, held back until the answer is known to be whole.
    held: Vec<EventKind>,
    usage: Option<Usage>,
}

impl Answer {
    pub(crate) fn push_text(&mut self, text: &str, host: &mut dyn Host) {
        self.words.push_str(text);
        self.append(ChatResponse::message(text), host);
        host.take(TurnEvent::Delta(Delta::Text(text)));
    }

    pub(crate) fn push_reasoning(&mut self, text: &str, host: &mut dyn Host) {
        self.append(ChatResponse::reasoning(text), host);
        host.take(TurnEvent::Delta(Delta::Reasoning(text)));
    }

    /// Ends the current run with what the provider wants back, and which model made it.
    pub(crate) fn end_part(
        &mut self,
        metadata: Map<String, Value>,
        model: &str,
        host: &mut dyn Host,
    ) {
        if self.is_whole {
            self.record(host);
        }
        // A provider may send metadata for a part without text, such as encrypted reasoning.
        let run = self.run.get_or_insert_with(|| ChatResponse::reasoning(""));
        run.metadata = metadata;
        run.metadata.insert("model".to_owned(), model.into());
        self.is_whole = true;
    }

    /// Collects a call. Its metadata names the model, because only that model may receive the
    /// metadata again.
    ///
    /// Gives each call a unique id: some servers use the same id for several calls.
    pub(crate) fn push_call(
        &mut self,
        mut call: ToolCallRequest,
        model: &str,
        host: &mut dyn Host,
    ) {
        if !call.metadata.is_empty() {
            call.metadata.insert("model".to_owned(), model.into());
        }
        if self.is_taken(&call.id) {
            let mut free =
                (self.calls().count() + 1..).map(|number| format!("{}-{number}", call.id));
            call.id = free
                .find(|id| !self.is_taken(id))
                .expect("there are more numbers than calls");
        }
        self.record(host);
        self.held.push(EventKind::ToolCallRequest(call));
    }

    /// Returns whether an id can't identify another call.
    fn is_taken(&self, id: &str) -> bool {
        id.is_empty() || self.calls().any(|call| call.id == id)
    }

    fn calls(&self) -> impl Iterator<Item = &ToolCallRequest> {
        self.held.iter().filter_map(|kind| match kind {
            EventKind::ToolCallRequest(call) => Some(call),
            _ => None,
        })
    }

    /// Returns the text of an answer without calls.
    pub(crate) fn words(&self) -> Option<&str> {
        self.held.is_empty().then_some(&self.words)
    }

    pub(crate) fn set_usage(&mut self, usage: Usage) {
        self.usage = Some(usage);
    }

    /// Records the rest: the last run with the reason why it was cut off, or the calls, and what it
    /// cost. Returns the calls.
    pub(crate) fn end(
        mut self,
        incomplete: Option<String>,
        model: &str,
        host: &mut dyn Host,
    ) -> Vec<ToolCallRequest> {
        let calls = if incomplete.is_none() {
            self.calls().cloned().collect()
        } else {
            Vec::new()
        };
        let mut rest = match incomplete {
            Some(reason) => self.take_incomplete(reason, host),
            None => self
                .held
                .into_iter()
                .chain(self.run.map(EventKind::ChatResponse))
                .collect(),
        };
        let usage = self.usage.map(|usage| Usage {
            model: model.to_owned(),
            ..usage
        });
        rest.extend(usage.map(EventKind::Usage));
        if !rest.is_empty() {
            host.take(TurnEvent::Record(rest));
        }
        calls
    }

    /// Returns the rest with an incomplete response at its end, so that the request counts as
    /// unanswered.
    ///
    /// Calls of an incomplete answer are left out: the model makes them again if the request is
    /// sent again.
    fn take_incomplete(&mut self, reason: String, host: &mut dyn Host) -> Vec<EventKind> {
        let has_calls = !self.held.is_empty();
        for call in self.calls() {
            let notice = format!(
                "the answer was cut off, so its call of the tool `{}` did not run",
                call.name
            );
            host.take(TurnEvent::Notice(&notice));
        }
        let mut rest = std::mem::take(&mut self.held);
        // A recorded call needs a result (see `run`), and these calls don't run.
        rest.retain(|kind| !matches!(kind, EventKind::ToolCallRequest(_)));
        if self.run.is_some() || self.has_recorded || has_calls {
            let run = self.run.take().unwrap_or_else(|| ChatResponse::message(""));
            rest.push(EventKind::ChatResponse(ChatResponse {
                incomplete: Some(reason),
                ..run
            }));
        }
        rest
    }

    /// Appends to the current run, or records it and begins another.
    fn append(&mut self, piece: ChatResponse, host: &mut dyn Host) {
        use jp_conversation::ResponseContent::{Message, Reasoning};
        let open = self.run.as_mut().filter(|_| !self.is_whole);
        match (open.map(|run| &mut run.content), &piece.content) {
            (Some(Message(run)), Message(text)) | (Some(Reasoning(run)), Reasoning(text)) => {
                run.push_str(text)
            }
            _ => {
                self.record(host);
                self.run = Some(piece);
            }
        }
    }

    fn record(&mut self, host: &mut dyn Host) {
        self.is_whole = false;
        if let Some(run) = self.run.take() {
            self.has_recorded = true;
            let kind = EventKind::ChatResponse(run);
            match self.held.is_empty() {
                // Once there is a call, everything waits for the end of the answer: a call is only
                // recorded if the answer is complete.
                true => host.take(TurnEvent::Record(vec![kind])),
                false => self.held.push(kind),
            }
        }
    }
}
