//! The message of a query: its words and its schema.

use crate::{
    error::SessionError,
    query::{request::QueryRequest, schema},
    session::Session,
};
use jp_conversation::{ChatRequest, Event, EventKind};

/// Makes the message from the words and the schema. Returns `None` if there are no words: jp then
/// sends the unanswered message again.
pub(crate) fn compose(
    request: &QueryRequest,
    session: &Session,
) -> Result<Option<ChatRequest>, SessionError> {
    let schema = request
        .schema
        .as_deref()
        .map(|argument| schema::read_argument(argument, session))
        .transpose()?;
    Ok(join_words(request).map(|words| ChatRequest {
        schema,
        ..ChatRequest::new(words)
    }))
}

/// Joins piped input and words, input first; `None` if there is neither.
fn join_words(request: &QueryRequest) -> Option<String> {
    let (input, words) = (request.input.as_deref().unwrap_or_default(), &request.words);
    match (input.trim().is_empty(), words.trim().is_empty()) {
        (true, true) => None,
        (true, false) => Some(words.clone()),
        (false, true) => Some(input.to_owned()),
        (false, false) => Some(format!("{}\n\n{words}", input.trim_end())),
    }
}

/// Returns the title of a conversation that starts with an event: the first words of its first line.
pub(crate) fn title(event: &Event) -> Option<String> {
    /// Characters of a title: a list of conversations shows it in one line of a terminal.
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
        // A terminal shows the title, so it has no control characters.
        title.extend(word.chars().filter(|c| !c.is_control()).take(MAX_CHARS));
    }
    Some(title)
}
