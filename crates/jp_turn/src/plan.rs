//! The plan of a call: what it will do, shown before it does it.

use jp_tool::ToolResponse;
use serde_json::{Map, Value};

use crate::{ask::Preview, line::Line};

/// The plan of a call.
pub(crate) struct Plan<'a> {
    /// Shown to the user if they are asked.
    pub(crate) preview: Preview,
    /// True if the user has to be asked even if the tool runs unattended.
    pub(crate) is_sensitive: bool,
    /// Carries it out, given the answers to the tool's questions so far.
    pub(crate) act: Act<'a>,
}

/// Carries out a plan. Called again with more answers for as long as the tool asks questions.
pub(crate) type Act<'a> = Box<dyn FnMut(&Map<String, Value>, &Line) -> ToolResponse + 'a>;
