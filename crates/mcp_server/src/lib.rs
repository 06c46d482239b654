//! Resources and RFC 6570 templates for MCP servers.
//!
//! [`template`] reads URI templates, expands them and, which is what a server needs, finds out which template
//! a URI was made from and with which values:
//!
//! ```
//! use mcp_server::template::{Matcher, UriTemplate};
//!
//! let template = UriTemplate::parse("org://{filename}/headline/{+path}")?;
//! let found = Matcher::new(&template)?.matches("org://notes.org/headline/Tasks/Urgent").expect("it fits");
//! assert_eq!(found.text("filename"), Some("notes.org"));
//! assert_eq!(found.text("path"), Some("Tasks/Urgent"));
//! # Ok::<(), mcp_server::template::TemplateError>(())
//! ```

pub mod template;
