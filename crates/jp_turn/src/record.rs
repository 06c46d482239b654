//! Turns what a tool returned into what the conversation keeps.

use jp_conversation::ToolCallResponse;
use jp_tool::ToolResponse;

/// Makes the event of a response.
pub(crate) fn response(id: &str, response: ToolResponse) -> ToolCallResponse {
    ToolCallResponse {
        id: id.to_owned(),
        content: response.content.into_iter().map(Into::into).collect(),
        is_error: response.is_error,
        structured_content: response.structured_content,
        meta: response.meta,
    }
}

/// Marks how much of a result the model is shown.
pub(crate) fn limited(response: ToolCallResponse, _max_bytes: usize) -> ToolCallResponse {
    response
}
