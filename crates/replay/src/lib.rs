//! Measures how much delivery saves on recorded conversations.
//!
//! [`find::conversations`] finds recordings in files and directories. [`read::conversation`] turns
//! each into a [`Stream`](jp_conversation::Stream). If the file and lines of a tool's output can be
//! proved, the output becomes resources ([`recover`]). [`measure::measure`] runs the views of
//! `jp_conversation` and counts bytes, and [`report::Report`] adds them up.
//!
//! The crate reads jp's own conversations of any version, SWE-agent's trajectories and Claude
//! Code's transcripts.
//!
//! ```
//! use replay::recover::fenced;
//!
//! let arguments = serde_json::json!({"path": "src/lib.rs"});
//! let excerpt = fenced::excerpt(&arguments, "```rs\nmod a;\n\n```\n").unwrap();
//! assert_eq!((&*excerpt.path, &*excerpt.text), ("src/lib.rs", "mod a;\n"));
//! ```

mod error;
pub mod find;
pub mod measure;
pub mod read;
pub mod recover;
pub mod report;

pub use error::Error;
