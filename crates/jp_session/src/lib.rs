//! Prepares and runs queries; never prints.
//!
//! A [`Session`] is opened once per command: the workspace, its stores, MCP servers and clock. A
//! [`QueryRequest`](query::QueryRequest) says what to ask. [`query::run`] takes it through the
//! steps, one file each in `query/`: compose the message, choose the model and the tools, plan and
//! resolve the attachments, prepare the events, record them, send, and finish with a
//! [`Report`](query::Report). [`query::explain()`] stops before anything is stored or sent.
//!
//! A front end implements [`Person`]: a terminal, a page, a script or a test. The session asks, tells
//! and shows through it, and the front end decides how that looks. Errors are one type, [`SessionError`], with a kind, a message
//! and hints.
//!
//! ```
//! use std::sync::Arc;
//!
//! use jp_session::{
//!     Interrupt, Notice, Options, Person, Session, SessionError, Surroundings,
//!     person::{Answer, Question, Shown},
//!     query::{self, QueryRequest},
//! };
//!
//! /// Collects the answer, and answers no question.
//! #[derive(Debug, Default)]
//! struct Script(std::sync::Mutex<String>);
//!
//! impl Person for Script {
//!     fn ask(&self, _: Question<'_>) -> Option<Answer> {
//!         None
//!     }
//!
//!     fn tell(&self, _: Notice) {}
//!
//!     fn show(&self, shown: Shown<'_>) -> Result<(), SessionError> {
//!         if let Shown::Text(text) = shown {
//!             self.0.lock().unwrap().push_str(text);
//!         }
//!         Ok(())
//!     }
//! }
//!
//! fn ask(surroundings: Surroundings, words: &str) -> Result<String, SessionError> {
//!     let person = Arc::new(Script::default());
//!     let (interrupt, _trigger) = Interrupt::new();
//!     let listen = Box::new(move || interrupt.clone());
//!     let session = Session::open(Options::default(), surroundings, person, listen)?;
//!     let request = QueryRequest { words: words.to_owned(), ..QueryRequest::default() };
//!     let report = query::run(&session, request)?;
//!     let answer = report.answer();
//!     report.into_answered()?;
//!     Ok(answer)
//! }
//! ```

pub mod attachments;
mod configuration;
pub mod error;
pub mod interrupt;
pub mod lock;
pub mod model;
pub mod notice;
mod parallel;
pub mod person;
pub mod progress;
pub mod query;
pub mod runtime;
pub mod scripts;
pub mod servers;
pub mod session;
pub mod similar;
pub mod size;
pub mod summary;
pub mod surroundings;
pub mod text;
pub mod tools;
mod trust;

pub use self::{
    error::{ErrorKind, SessionError},
    interrupt::{Interrupt, Trigger},
    notice::Notice,
    person::Person,
    session::{Found, Options, Session, Setup},
    surroundings::Surroundings,
};
