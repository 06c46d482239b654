//! Prepares and runs queries; never prints.

pub mod attachments;
mod configuration;
pub mod error;
mod history;
pub mod interrupt;
pub mod lock;
pub mod model;
pub mod notice;
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

pub use self::{
    error::{ErrorKind, SessionError},
    interrupt::{Interrupt, Trigger},
    notice::Notice,
    person::Person,
    session::{Found, Options, Session, Setup},
    surroundings::Surroundings,
};
