//! `jp query`: sends a message and shows the answer.

mod explain;
mod report;

use std::io::Read as _;

use jp_session::query::{self, QueryRequest, Recipient};

use crate::{
    args::Query,
    context::Context,
    error::{Code, SessionError},
};

pub(crate) fn run(query: Query, context: &Context<'_>) -> Result<Code, SessionError> {
    // `read_request` consumes the arguments.
    let is_explained = query.explain;
    let request = read_request(query, context)?;
    if is_explained {
        let explained = query::explain(&context.session, request)?;
        return explain::show(explained, context);
    }
    report::show(query::run(&context.session, request)?, context.output)
}

/// Builds the request from the arguments and piped input.
fn read_request(query: Query, context: &Context<'_>) -> Result<QueryRequest, SessionError> {
    let input = match reads_input(&query, context) {
        true => Some(read_input()?),
        false => None,
    };
    // clap refuses `--id` together with `--new`.
    let to = match (query.new, query.id) {
        (true, _) => Recipient::New {
            is_local: query.local,
            title: query.title,
        },
        (false, Some(id)) => Recipient::Existing(id),
        (false, None) => Recipient::Current,
    };
    Ok(QueryRequest {
        words: query.words.join(" "),
        input,
        attach: query.attach,
        model: query.model,
        schema: query.schema,
        tool: query.tool,
        no_tool: query.no_tool,
        to,
        budget: query.budget,
        skip_unavailable: query.skip_unavailable,
    })
}

/// Returns whether stdin is part of the message. It is not if it is a terminal or an attachment.
fn reads_input(query: &Query, context: &Context<'_>) -> bool {
    let mut attached = query.attach.iter();
    let is_attached = attached.any(|input| input == "-" || input.eq_ignore_ascii_case("stdin:"));
    !is_attached && !context.environment.stdin_is_terminal
}

fn read_input() -> Result<String, SessionError> {
    /// The largest input, in bytes: over two million tokens, more than models accept.
    const MAX_BYTES: u64 = 10_000_000;
    let mut bytes = Vec::new();
    std::io::stdin()
        .lock()
        // One byte more tells input of exactly the limit from longer input.
        .take(MAX_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| SessionError::new(format!("failed to read stdin: {error}")))?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(
            SessionError::new("failed to read stdin: it is more than 10 MB")
                .with_hint("save it to a file, and attach the part that matters."),
        );
    }
    String::from_utf8(bytes).map_err(|error| {
        let position = error.utf8_error().valid_up_to();
        SessionError::new(format!(
            "failed to read stdin: it is not UTF-8 text at byte {position}"
        ))
        .with_hint("use --attach for files that are not text.")
    })
}
