//! Runs one turn: sends a request and yields events until the answer ends.
//!
//! [`run`] takes a [`Turn`] and reports as it goes: each [`TurnEvent`] is something to show
//! ([`TurnEvent::Delta`], [`TurnEvent::Retry`], [`TurnEvent::Notice`]) or to store
//! ([`TurnEvent::Record`]). Whatever was shown is stored too, however the turn ends; the
//! [`Outcome`] says how. Nothing here prints, asks, looks at a clock or reads the environment.
//!
//! There are no tools yet: a call that the model makes all the same is answered with an error, so
//! that the history stays one that providers accept.
//!
//! ```
//! use jp_conversation::EventKind;
//! use jp_llm::{Body, Client};
//! use jp_turn::{Delta, Outcome, Turn, TurnEvent, run};
//!
//! async fn answer(client: &Client, body: &Body, shown: &mut String, stored: &mut Vec<EventKind>) -> Outcome {
//!     let turn = Turn { client, body, model: "llamacpp/qwen3", check: None };
//!     let never = std::future::pending();
//!     run(turn, never, &mut |event| match event {
//!         TurnEvent::Delta(Delta::Text(text)) => shown.push_str(text),
//!         TurnEvent::Record(kind) => stored.push(kind),
//!         _ => {}
//!     })
//!     .await
//! }
//! ```

mod answer;
mod run;

pub use run::{Check, Delta, Outcome, Turn, TurnEvent, run};
