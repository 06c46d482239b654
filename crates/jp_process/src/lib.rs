//! Runs a program together with what it starts, within bounds.
//!
//! [`run`] runs it to its end and returns what it printed, or why that can't be had; [`capture`] gives it input and
//! returns what it printed however it ended, as much as fits. [`group`] is what that is made of: a program is in a
//! process group of its own, so that a signal of the terminal does not reach it and all of it can be ended. Nothing
//! here looks at a terminal, and nothing is left behind but what a program put into another group itself.

mod error;
pub mod group;
mod kept;
mod run;

pub use error::{ProcessError, brief_program};
pub use kept::Kept;
pub use run::{Bounds, Captured, End, Output, capture, run};
