//! The person's words, and the schema that goes with them.

use std::io::Read as _;

use jp_conversation::{ChatRequest, Event, EventKind};

use super::schema;
use crate::{args::Query, error::Failure, workspace::Context};

/// Makes a request of the words and the schema; `None` where there are no words.
pub(super) fn compose(
    query: &Query,
    context: &Context<'_>,
) -> Result<Option<ChatRequest>, Failure> {
    let schema = query
        .schema
        .as_deref()
        .map(|argument| schema::given(argument, context))
        .transpose()?;
    let words = words(query, context)?;
    Ok(words.map(|words| ChatRequest {
        schema,
        ..ChatRequest::new(words)
    }))
}

/// Joins piped input and words, input first; `None` where there is neither.
fn words(query: &Query, context: &Context<'_>) -> Result<Option<String>, Failure> {
    let words = query.words.join(" ");
    let is_attached = query
        .attach
        .iter()
        .any(|input| input == "-" || input.eq_ignore_ascii_case("stdin:"));
    let is_read = !is_attached && !context.environment.stdin_is_terminal;
    let input = if is_read {
        read_input()?
    } else {
        String::new()
    };
    Ok(match (input.trim().is_empty(), words.trim().is_empty()) {
        (true, true) => None,
        (true, false) => Some(words),
        (false, true) => Some(input),
        (false, false) => Some(format!("{}\n\n{words}", input.trim_end())),
    })
}

fn read_input() -> Result<String, Failure> {
    const MAX_BYTES: u64 = 10_000_000;
    let mut bytes = Vec::new();
    std::io::stdin()
        .lock()
        .take(MAX_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| Failure::new(format!("failed to read stdin: {error}")))?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(Failure::new("failed to read stdin: it is more than 10 MB")
            .with_hint("save it to a file and attach what matters of it."));
    }
    String::from_utf8(bytes).map_err(|error| {
        let position = error.utf8_error().valid_up_to();
        Failure::new(format!(
            "failed to read stdin: it is not UTF-8 text from byte {position} on"
        ))
        .with_hint("attach a file with --attach instead.")
    })
}

/// Returns the title of a conversation that starts with an event: its first words.
pub(super) fn title(event: &Event) -> Option<String> {
    const MAX_CHARS: usize = 60;
    let EventKind::ChatRequest(request) = &event.kind else {
        return None;
    };
    let line = request
        .content
        .lines()
        .map(str::trim)
        .find(|line| !line.is_empty())?;
    let mut title = String::new();
    for word in line.split_whitespace() {
        if !title.is_empty() && title.chars().count() + word.chars().count() >= MAX_CHARS {
            return Some(format!("{title} …"));
        }
        if !title.is_empty() {
            title.push(' ');
        }
        title.extend(word.chars().filter(|c| !c.is_control()).take(MAX_CHARS));
    }
    Some(title)
}
