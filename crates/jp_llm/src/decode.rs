//! Reading an answer while it arrives: framing, and what the protocols of all formats share.

use std::{collections::VecDeque, fmt};

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{
    Fault, StreamEvent,
    error_text::excerpt,
    sse::{self, SseDecoder},
};

/// Most bytes of one message of a stream: a server that never ends one must not fill the memory. Generous, because the last
/// message of the Responses API repeats the whole answer.
const MAX_PART_BYTES: usize = 8 << 20;

/// A wire format's reader of the messages of a stream.
pub(crate) trait Protocol: fmt::Debug + Send {
    /// Takes one message: an event of an SSE stream, or a line in its `data`. Appends what it completes,
    /// what comes before a fault too.
    fn message(
        &mut self,
        message: &sse::Event,
        events: &mut VecDeque<StreamEvent>,
    ) -> Result<Flow, Fault>;

    /// Returns whether the model has finished; figures may still follow.
    fn is_complete(&self) -> bool;

    /// Appends what waited for the end: calls, usage, and [`StreamEvent::Finish`] as the last.
    fn end(&mut self, events: &mut VecDeque<StreamEvent>);
}

/// The answer to whether more messages follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flow {
    /// They may.
    Continue,
    /// This one said that it was the last.
    End,
}

/// Reads the stream of an answer, whatever pieces it arrives in.
///
/// Words and reasoning come out at once; tool calls, usage and the end when they are complete.
#[derive(Debug)]
pub struct Decoder {
    framing: Framing,
    protocol: Box<dyn Protocol>,
    has_ended: bool,
}

/// The separators of messages.
#[derive(Debug)]
enum Framing {
    Sse(SseDecoder),
    /// One message a line (NDJSON); holds the unfinished one.
    Lines(Vec<u8>),
}

impl Decoder {
    /// Reads server-sent events.
    pub(crate) fn for_events(protocol: impl Protocol + 'static) -> Self {
        Self::new(Framing::Sse(SseDecoder::default()), Box::new(protocol))
    }

    /// Reads lines, each a JSON document.
    pub(crate) fn for_lines(protocol: impl Protocol + 'static) -> Self {
        Self::new(Framing::Lines(Vec::new()), Box::new(protocol))
    }

    fn new(framing: Framing, protocol: Box<dyn Protocol>) -> Self {
        Self {
            framing,
            protocol,
            has_ended: false,
        }
    }

    /// Takes the next bytes and appends the events they complete, those before a fault too.
    ///
    /// After a fault or the end mark nothing more is read.
    pub fn push(&mut self, bytes: &[u8], events: &mut VecDeque<StreamEvent>) -> Result<(), Fault> {
        let messages = self.framing.push(bytes);
        let taken = messages
            .iter()
            .try_for_each(|message| self.message(message, events));
        let taken = match self.framing.pending() {
            pending if pending > MAX_PART_BYTES => taken.and(Err(Fault::TooLarge {
                limit: MAX_PART_BYTES as u64,
            })),
            _ => taken,
        };
        self.has_ended |= taken.is_err();
        taken
    }

    /// Takes the end of the connection: complete if the model had finished.
    pub fn finish(&mut self, events: &mut VecDeque<StreamEvent>) -> Result<(), Fault> {
        let last = self
            .framing
            .finish()
            .map_or(Ok(()), |message| self.message(&message, events));
        let is_complete = self.is_complete();
        match last {
            _ if self.has_ended => {}
            // Half a message is none.
            Ok(()) | Err(Fault::Malformed { .. }) if is_complete => self.end(events),
            // A message that is cut off is malformed because the stream ended, so that is the fault
            // to report.
            Ok(()) | Err(Fault::Malformed { .. }) => return Err(Fault::Truncated),
            Err(fault) => return Err(fault),
        }
        Ok(())
    }

    /// Returns whether the model has finished; figures may still follow.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.protocol.is_complete()
    }

    /// Returns whether all has come, or a fault.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.has_ended
    }

    fn message(
        &mut self,
        message: &sse::Event,
        events: &mut VecDeque<StreamEvent>,
    ) -> Result<(), Fault> {
        // Servers may send more after the end mark, in the same bytes.
        if self.has_ended {
            return Ok(());
        }
        if self.protocol.message(message, events)? == Flow::End {
            self.end(events);
        }
        Ok(())
    }

    fn end(&mut self, events: &mut VecDeque<StreamEvent>) {
        self.has_ended = true;
        self.protocol.end(events);
    }
}

impl Framing {
    fn push(&mut self, bytes: &[u8]) -> Vec<sse::Event> {
        match self {
            Self::Sse(decoder) => decoder.push(bytes),
            Self::Lines(line) => {
                let mut pieces = bytes.split(|byte| *byte == b'\n').peekable();
                let mut messages = Vec::new();
                while let Some(piece) = pieces.next() {
                    line.extend_from_slice(piece);
                    if pieces.peek().is_some() {
                        messages.extend(message_of_line(std::mem::take(line)));
                    }
                }
                messages
            }
        }
    }

    fn finish(&mut self) -> Option<sse::Event> {
        match self {
            Self::Sse(decoder) => decoder.finish(),
            Self::Lines(line) => message_of_line(std::mem::take(line)),
        }
    }

    /// Returns how many bytes of an unfinished message are held.
    fn pending(&self) -> usize {
        match self {
            Self::Sse(decoder) => decoder.pending(),
            Self::Lines(line) => line.len(),
        }
    }
}

/// The kind of the piece that came last. A piece of another kind ends the part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Run {
    Reasoning,
    Text,
}

/// Returns a text, unless it is empty: an event never has an empty one.
pub(crate) fn non_empty(text: Option<String>) -> Option<String> {
    text.filter(|text| !text.is_empty())
}

/// Returns whether an event is none of a format whose events have no names: a ping, say.
pub(crate) fn is_foreign(event: &sse::Event) -> bool {
    !matches!(event.name.as_str(), "" | "message" | "error") || event.data.is_empty()
}

/// Reads an event of a format whose events have no names; `None` if the event is foreign.
pub(crate) fn parse_event<T: DeserializeOwned>(event: &sse::Event) -> Result<Option<T>, Fault> {
    match serde_json::from_str(&event.data) {
        Ok(chunk) => Ok(Some(chunk)),
        Err(_) if is_foreign(event) => Ok(None),
        Err(_) => Err(malformed(event)),
    }
}

/// Returns the fault of an event that is no part of an answer.
pub(crate) fn malformed(event: &sse::Event) -> Fault {
    Fault::Malformed {
        excerpt: excerpt(&event.data),
    }
}

/// Reads an error object.
pub(crate) fn provider_fault(error: &Value) -> Fault {
    let status = ["code", "status"]
        .into_iter()
        .find_map(|field| error.get(field)?.as_u64());
    Fault::provider(status.and_then(|status| status.try_into().ok()), error)
}

fn message_of_line(line: Vec<u8>) -> Option<sse::Event> {
    let data = String::from_utf8_lossy(&line).trim().to_owned();
    (!data.is_empty()).then(|| sse::Event {
        name: String::new(),
        data,
    })
}
