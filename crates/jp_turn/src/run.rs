//! Runs a turn: asks the model, runs the tools that it calls, and asks again.

use std::pin::pin;

use jp_llm::{Body, Error, Fault, FinishReason, StreamEvent};

use crate::{
    answer::Answer,
    calls,
    host::{Host, Outcome, Turn, TurnEvent, describe_failure},
};

/// Runs a turn to its end, or until `cancel` is ready: asks the model, runs the tools that it
/// calls, and asks again with their results.
///
/// A part of an answer that was cut off is recorded as incomplete, with the reason. Every call that
/// is recorded has a result recorded after it, whatever happens.
pub async fn run(turn: Turn<'_>, cancel: impl Future<Output = ()>, host: &mut dyn Host) -> Outcome {
    let mut cancel = pin!(cancel);
    for _ in 0..turn.max_rounds {
        if let Some(tools) = host.changed_tools() {
            turn.toolbox.serve(tools);
        }
        // The host owns the conversation, so it builds each request, also those that follow tool
        // calls.
        let body = match host.body(&[]) {
            Ok(body) => body,
            Err(error) => return Outcome::Unprepared(error),
        };
        let mut answer = Answer::default();
        let outcome = tokio::select! {
            // Check for a cancellation first: an answer that is ready at the same time must not
            // hide it.
            biased;
            () = cancel.as_mut() => Outcome::Interrupted,
            received = receive(&turn, &body, &mut answer, host) => match received {
                Ok(finish) => Outcome::Done { finish },
                Err(error) => Outcome::Failed(error),
            },
        };
        let incomplete = describe_cut(&outcome).or_else(|| turn.check?(answer.words()?));
        // Record the answer in each case: the user has already seen it.
        let calls = answer.end(incomplete, turn.model, host);
        if calls.is_empty() {
            return outcome;
        }
        if calls::run(calls, &turn, cancel.as_mut(), host).await {
            return Outcome::Interrupted;
        }
    }
    Outcome::Endless {
        rounds: turn.max_rounds,
    }
}

/// Sends the request and collects its answer, showing each piece.
async fn receive(
    turn: &Turn<'_>,
    body: &Body,
    answer: &mut Answer,
    host: &mut dyn Host,
) -> Result<FinishReason, Error> {
    let mut response = turn
        .client
        .send(body, &mut |notice| host.take(TurnEvent::Retry(notice)))
        .await?;
    let mut finish = FinishReason::Stop;
    while let Some(event) = response.next().await? {
        match event {
            StreamEvent::Text(text) => answer.push_text(&text, host),
            StreamEvent::Reasoning(text) => answer.push_reasoning(&text, host),
            StreamEvent::EndPart(metadata) => answer.end_part(metadata, turn.model, host),
            StreamEvent::ToolCall(call) => answer.push_call(call, turn.model, host),
            StreamEvent::Usage(usage) => answer.set_usage(usage),
            StreamEvent::Finish(reason) => finish = reason,
        }
    }
    Ok(finish)
}

/// Returns the reason why an answer is incomplete, if it is.
fn describe_cut(outcome: &Outcome) -> Option<String> {
    match outcome {
        Outcome::Interrupted => Some("interrupted".to_owned()),
        Outcome::Done {
            finish: FinishReason::Length,
        } => Some("length limit reached".to_owned()),
        Outcome::Done {
            finish: FinishReason::ContentFilter,
        } => Some("blocked by the provider's content filter".to_owned()),
        Outcome::Done { .. } => None,
        Outcome::Failed(Error::Stream { fault, .. }) => Some(match fault {
            Fault::Truncated | Fault::Broken(_) | Fault::Idle { .. } => {
                format!("connection lost: {fault}")
            }
            fault => format!("failed to read the answer: {fault}"),
        }),
        Outcome::Failed(error) => Some(format!("failed to {}", describe_failure(error))),
        Outcome::Unprepared(_) | Outcome::Endless { .. } => None,
    }
}

#[cfg(test)]
mod tests;
