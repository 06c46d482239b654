//! Actions of builtin tools: plans without questions, and blocks that describe the change.

use jp_resource::Checksum;
use jp_tool::{ContentBlock, ToolResponse};
use serde_json::{Map, Value};

use super::files;
use crate::{ask::Preview, line::Line, plan::Plan};

/// Makes the plan of an action that asks no questions.
pub(super) fn plan_action<'a>(
    preview: Preview,
    is_sensitive: bool,
    mut act: impl FnMut(&Line) -> Result<Vec<ContentBlock>, String> + 'a,
) -> Plan<'a> {
    let act = move |_: &Map<String, Value>, line: &Line| match act(line) {
        Ok(blocks) => ToolResponse::new(blocks),
        Err(reason) => ToolResponse::from_error(reason),
    };
    Plan {
        preview,
        is_sensitive,
        act: Box::new(act),
    }
}

/// Makes a block that describes a change of a file, which now has this checksum.
pub(super) fn describe_change(done: String, path: &str, checksum: Checksum) -> ContentBlock {
    mark_block(done, files::mark(path, checksum))
}

/// Makes a block that describes a change, with a mark of the file's state.
pub(super) fn mark_block(done: String, mark: Map<String, Value>) -> ContentBlock {
    ContentBlock::Text {
        text: done,
        annotations: None,
        meta: Some(mark),
    }
}

/// Writes a number with its noun, in the plural if that is needed.
pub(super) fn write_count(count: usize, noun: &str) -> String {
    match (count, noun.strip_suffix('y')) {
        (1, _) => format!("1 {noun}"),
        (_, Some(stem)) => format!("{count} {stem}ies"),
        _ => format!("{count} {noun}s"),
    }
}
