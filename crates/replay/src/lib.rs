//! Measures on recorded conversations what delivery saves.
//!
//! [`find::conversations`] finds them in the paths a person names, [`read::conversation`] makes a
//! [`Stream`](jp_conversation::Stream) of each, in which tool output whose file and lines can be proved becomes
//! resources ([`recover`]), [`measure::measure`] runs the views of `jp_conversation` on it and counts bytes, and
//! [`report::Report`] adds it all up. Three recordings are read: jp's own conversations of any version, SWE-agent's
//! trajectories and Claude Code's transcripts.
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
