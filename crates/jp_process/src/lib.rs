//! Runs programs together with everything they start, within bounds.
//!
//! [`run`] runs a program until it exits and returns its [`Output`]. [`capture`] gives it input and
//! returns what it printed however it ended, within [`Bounds`]. [`Supervisor`] is the long-lived
//! form: a program that stays while jp talks to it through [`pipe`]s or a terminal, and that is
//! ended in stages, with the waits of [`grace`].
//!
//! Each program gets a process group of its own, so that a signal of the terminal does not reach it
//! and all of it can be ended. Nothing here reads the terminal or the environment.
//!
//! ```
//! # #[cfg(unix)]
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use std::{io::Read as _, process::Command, time::Duration};
//!
//! use jp_process::{Bounds, End, Supervisor, capture, pipe::InputQueue};
//!
//! // Once, to its end:
//! let bounds = Bounds { timeout: Duration::from_secs(10), max_bytes: 1_000, is_moot: &|| false };
//! let sorted = capture(Command::new("sort"), b"b\na\n", &bounds)?;
//! assert_eq!((sorted.stdout.into_bytes(), sorted.end), (b"a\nb\n".to_vec(), End::Exited(0)));
//!
//! // For as long as it is needed:
//! let (mut program, (stdin, mut stdout, _)) = Supervisor::start_piped(&mut Command::new("cat"))?;
//! let input = InputQueue::new(stdin)?;
//! input.send(b"hello".to_vec());
//! program.begin_end();
//! drop(input);
//! let mut text = String::new();
//! stdout.read_to_string(&mut text)?;
//! assert_eq!(text, "hello");
//! assert!(program.end().is_some_and(|status| status.success()));
//! # Ok(())
//! # }
//! # #[cfg(not(unix))]
//! # fn main() {}
//! ```

mod bounded_output;
mod error;
pub mod grace;
mod group;
mod identity;
pub mod pipe;
mod run;
mod strays;
mod supervisor;

pub use bounded_output::BoundedOutput;
pub use error::{ProcessError, brief_program};
pub use identity::Identity;
pub use run::{Bounds, Captured, End, Output, capture, run};
pub use supervisor::{Pipes, Supervisor};
