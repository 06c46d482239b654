use std::pin::pin;

use jp_conversation::EventKind;
use jp_llm::{Body, Client, Error, Fault, FinishReason, RetryNotice, StreamEvent};

use crate::answer::Answer;

/// Says what is wrong with the words of an answer; `None` where nothing is.
pub type Check<'a> = &'a dyn Fn(&str) -> Option<String>;

/// What to send where.
#[derive(Clone, Copy)]
pub struct Turn<'a> {
    /// The endpoint.
    pub client: &'a Client,
    /// The encoded request.
    pub body: &'a Body,
    /// What usage is booked on: `provider/name`.
    pub model: &'a str,
    /// Says what is wrong with a whole answer, if anything is: it is recorded as incomplete then.
    pub check: Option<Check<'a>>,
}

/// Something that happened in a turn, as soon as it did.
#[expect(clippy::large_enum_variant, reason = "handed over once, never collected")]
#[derive(Debug)]
pub enum TurnEvent<'a> {
    /// A piece of the answer, to be shown.
    Delta(Delta<'a>),
    /// The request failed and will be sent again.
    Retry(RetryNotice<'a>),
    /// A sentence that the person should read.
    Notice(&'a str),
    /// Something complete, to be stored, in this order.
    Record(EventKind),
}

/// A piece of an answer; never empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delta<'a> {
    /// Words.
    Text(&'a str),
    /// Reasoning.
    Reasoning(&'a str),
}

/// How a turn ended. What was shown is recorded in each case.
#[derive(Debug)]
pub enum Outcome {
    /// The model ended its answer.
    Done {
        /// Why it did.
        finish: FinishReason,
    },
    /// `cancel` came first.
    Interrupted,
    /// There was no answer, or only the beginning of one.
    Failed(Error),
}

/// Runs a turn to its end, or until `cancel` is ready.
///
/// A part of an answer that was cut off is recorded as incomplete, with the reason.
pub async fn run(
    turn: Turn<'_>,
    cancel: impl Future<Output = ()>,
    on_event: &mut dyn FnMut(TurnEvent<'_>),
) -> Outcome {
    let mut answer = Answer::default();
    let outcome = tokio::select! {
        biased;
        () = pin!(cancel) => Outcome::Interrupted,
        received = receive(turn, &mut answer, on_event) => match received {
            Ok(finish) => Outcome::Done { finish },
            Err(error) => Outcome::Failed(error),
        },
    };
    let fault = || turn.check?(answer.words()?);
    let incomplete = cut_off(&outcome).or_else(fault);
    answer.end(incomplete, turn.model, on_event);
    outcome
}

/// Sends the request and collects its answer, showing each piece.
async fn receive(
    turn: Turn<'_>,
    answer: &mut Answer,
    on_event: &mut dyn FnMut(TurnEvent<'_>),
) -> Result<FinishReason, Error> {
    let mut response = turn.client.send(turn.body, &mut |notice| on_event(TurnEvent::Retry(notice))).await?;
    let mut finish = FinishReason::Stop;
    while let Some(event) = response.next().await? {
        match event {
            StreamEvent::Text(text) => answer.text(&text, on_event),
            StreamEvent::Reasoning(text) => answer.reasoning(&text, on_event),
            StreamEvent::EndPart(metadata) => answer.end_part(metadata, turn.model, on_event),
            StreamEvent::ToolCall(call) => answer.call(call, turn.model),
            StreamEvent::Usage(usage) => answer.usage(usage),
            StreamEvent::Finish(reason) => finish = reason,
        }
    }
    Ok(finish)
}

/// Says why an answer is incomplete, if it is.
fn cut_off(outcome: &Outcome) -> Option<String> {
    match outcome {
        Outcome::Interrupted => Some("interrupted".to_owned()),
        Outcome::Done { finish: FinishReason::Length } => Some("length limit reached".to_owned()),
        Outcome::Done { finish: FinishReason::ContentFilter } => {
            Some("held back by the provider's content filter".to_owned())
        }
        Outcome::Done { .. } => None,
        Outcome::Failed(Error::Stream { fault, .. }) => Some(match fault {
            Fault::Truncated | Fault::Broken(_) | Fault::Idle { .. } => format!("connection lost: {fault}"),
            fault => format!("failed to read the answer: {fault}"),
        }),
        Outcome::Failed(error) => Some(format!("failed to {error}")),
    }
}

#[cfg(test)]
mod tests;
