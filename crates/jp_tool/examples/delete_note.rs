//! A tool that deletes a note after the user confirms.
//!
//! ```toml
//! [conversation.tools.delete_note]
//! source = "local"
//! command = "delete_note"
//! summary = "Deletes a note."
//! [conversation.tools.delete_note.parameters.name]
//! type = "string"
//! required = true
//! ```

use std::{fs, io};

use jp_resource::{Resource, ResourceContent};
use jp_tool::{AnswerType, ContentBlock, InputRequest, Invocation, ToolError, ToolResponse};
use serde::Deserialize;

#[derive(Deserialize)]
struct Arguments {
    name: String,
}

fn main() -> io::Result<()> {
    let invocation = Invocation::read(io::stdin())?;
    let response = answer(&invocation).unwrap_or_else(|error| error_response(&error));
    Ok(serde_json::to_writer(io::stdout(), &response)?)
}

/// Shows the note and asks. Deletes the note when the answer is yes.
fn answer(invocation: &Invocation) -> io::Result<ToolResponse> {
    let Arguments { name } = invocation.arguments()?;
    let path = format!("notes/{name}.md");
    let file = invocation.context.root.join(&path);
    let text = fs::read_to_string(&file)?;
    Ok(match invocation.answer("confirm") {
        None => {
            let note = Resource::new(format!("file:{path}"), ResourceContent::Text(text));
            let question = InputRequest::new("confirm", "Delete this note?", AnswerType::Boolean);
            let blocks = [
                ContentBlock::resource(note),
                ContentBlock::question(question.with_default(false)),
            ];
            ToolResponse::new(blocks)
        }
        Some(true) => {
            fs::remove_file(&file)?;
            ToolResponse::new([ContentBlock::text(format!("{path} is deleted."))])
        }
        Some(false) => ToolResponse::new([ContentBlock::text(format!("{path} was not deleted."))]),
    })
}

fn error_response(error: &io::Error) -> ToolResponse {
    let details = ToolError {
        transient: false,
        trace: vec![error.to_string()],
    };
    let response = ToolResponse::from_error("The note could not be deleted.");
    ToolResponse {
        error: Some(details),
        ..response
    }
}
