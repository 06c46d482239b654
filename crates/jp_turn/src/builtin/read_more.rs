//! `read_more`: reads on where a result was cut.

use jp_resource::Checksum;
use jp_tool::{ContentBlock, ToolResponse};
use serde_json::{Map, Value, json};

use super::Builtin;
use crate::{Permission, Preview, Source, Tool, Toolbox, call::Plan, calls::Line};

const SCHEME: &str = "jp://blob/";

pub(super) fn tool() -> Tool {
    let parameters = json!({
        "type": "object",
        "properties": {
            "uri": {"type": "string", "description": "The `jp://blob/…` that the cut result names."},
            "offset": {"type": "integer", "minimum": 0, "description": "The byte to read on from."},
        },
        "required": ["uri"],
        "additionalProperties": false,
    });
    let Value::Object(parameters) = parameters else { unreachable!("an object was written") };
    Tool {
        description: "Reads on where the result of a tool was cut.".to_owned(),
        permission: Permission::Unattended,
        ..Tool::new("read_more", parameters, Source::Builtin(Builtin::ReadMore))
    }
}

pub(super) fn plan<'a>(
    tool: &'a Tool,
    arguments: &Map<String, Value>,
    _: &'a Toolbox,
) -> Result<Plan<'a>, String> {
    let uri = arguments.get("uri").and_then(Value::as_str).unwrap_or_default();
    let offset = arguments.get("offset").and_then(Value::as_u64).unwrap_or(0) as usize;
    let checksum: Checksum = uri
        .strip_prefix(SCHEME)
        .and_then(|checksum| checksum.parse().ok())
        .ok_or_else(|| format!("{uri:?} is no `{SCHEME}…` URI."))?;
    let preview = Preview { title: format!("read {uri} from byte {offset}"), detail: None };
    let act = move |_: &Map<String, Value>, line: &Line| match read(checksum, offset, tool, line) {
        Ok(text) => ToolResponse::new([ContentBlock::text(text)]),
        Err(reason) => ToolResponse::error([ContentBlock::text(reason)]),
    };
    Ok(Plan { preview, is_sensitive: false, act: Box::new(act) })
}

fn read(checksum: Checksum, offset: usize, tool: &Tool, line: &Line) -> Result<String, String> {
    let bytes = line.blob(checksum)?;
    let bytes = bytes.ok_or_else(|| format!("This conversation holds no {SCHEME}{checksum}."))?;
    let rest = bytes.get(offset..).unwrap_or_default();
    Ok(String::from_utf8_lossy(&rest[..rest.len().min(tool.max_output_bytes)]).into_owned())
}
