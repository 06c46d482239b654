//! Words the failure of a request, with hints.

use std::path::Path;

use crate::{
    error::{SessionError, chain},
    model::{Model, key_source},
    query::ready_query::{ReadyQuery, newest_request},
    size,
    text::quote_word,
};
use jp_conversation::{
    ChatRequest,
    view::{BlockRow, TurnRow},
};
use jp_llm::{Error, Fault, Format, Refusal};
use jp_resource::uri::{PathStyle, file_uri, percent_decode};

/// Words the error of a request.
pub(crate) fn describe(error: &Error, query: &ReadyQuery<'_>) -> SessionError {
    let model = query.model();
    match error.refusal() {
        Some(Refusal::Key) => wrong_key(error, query, model),
        Some(Refusal::Model) => unknown_model(error, query, model),
        Some(Refusal::Images) => no_images(error, model),
        Some(Refusal::Tools) => no_tools(error, model),
        Some(Refusal::Output) => too_much_output(error, model),
        Some(Refusal::TooLong { tokens, limit }) => {
            too_long(error, (*tokens, *limit), query, model)
        }
        None => other(error),
    }
}

/// Words the refusal of a key, or of a request without one.
fn wrong_key(error: &Error, query: &ReadyQuery<'_>, model: &Model) -> SessionError {
    let provider = &model.endpoint.provider;
    let (server, said) = (describe_server(model), quote_answer(error));
    match key_source(&query.config, provider) {
        Some(source) if model.endpoint.api_key.is_some() => SessionError::new(format!(
            "{server} rejects the API key from {source}: {said}"
        ))
        .with_hint("check that key, or use another one."),
        _ => SessionError::new(format!(
            "{server} requires an API key, and jp sent none: {said}"
        ))
        .with_hint(format!(
            "set providers.llm.{provider}.api_key_env to the name of the variable that holds the key."
        )),
    }
}

/// Returns the configuration key of a setting of a model.
fn setting_key(model: &Model, name: &str) -> String {
    let (provider, model) = (&model.endpoint.provider, &model.endpoint.model);
    format!("providers.llm.{provider}.models.\"{model}\".{name}")
}

fn no_images(error: &Error, model: &Model) -> SessionError {
    let setting = setting_key(model, "images");
    SessionError::new(format!(
        "{} does not accept images: {}",
        model.label,
        quote_answer(error)
    ))
    .with_hint(format!(
        "set {setting} = false, and jp sends it a note in place of each image."
    ))
    .with_hint("`jp model ls` shows which models accept images.")
}

fn no_tools(error: &Error, model: &Model) -> SessionError {
    let setting = setting_key(model, "tools");
    SessionError::new(format!(
        "{} does not accept tools: {}",
        model.label,
        quote_answer(error)
    ))
    .with_hint("`jp query -T` disables all tools in this conversation.")
    .with_hint(format!(
        "set {setting} = false, and jp never sends it tools."
    ))
}

fn too_much_output(error: &Error, model: &Model) -> SessionError {
    let setting = setting_key(model, "max_output_tokens");
    SessionError::new(format!(
        "{} does not allow such a long answer: {}",
        model.label,
        quote_answer(error)
    ))
    .with_hint(format!("set {setting} to the model's limit."))
}

fn unknown_model(error: &Error, query: &ReadyQuery<'_>, model: &Model) -> SessionError {
    let name = &model.endpoint.model;
    let failure = SessionError::new(format!(
        "{} has no model `{name}`: {}",
        describe_server(model),
        quote_answer(error)
    ));
    let failure = match model.endpoint.format {
        Format::Ollama => failure.with_hint(format!("`ollama pull {name}` downloads it.")),
        _ => failure,
    };
    let failure = failure.with_hint("`jp model ls` lists the available models.");
    with_hint_if_kept(
        failure,
        query,
        "`jp query --model PROVIDER/NAME` without a message asks another model.",
    )
}

fn too_long(
    error: &Error,
    (tokens, limit): (Option<u64>, Option<u64>),
    query: &ReadyQuery<'_>,
    model: &Model,
) -> SessionError {
    // Not every provider reports both figures.
    let figures = match (tokens.map(size::thousands), limit.map(size::thousands)) {
        (Some(tokens), Some(limit)) => format!("it has {tokens} tokens, and the limit is {limit}"),
        (Some(tokens), None) => format!("it has {tokens} tokens"),
        (None, Some(limit)) => format!("the limit is {limit} tokens"),
        (None, None) => quote_answer(error),
    };
    let parts = largest(query, &query.rows(&query.thread(&query.stream)));
    let message = format!(
        "the request is too long for {}: {figures}{}",
        model.label,
        lines(&parts)
    );
    let mut failure = SessionError::new(message);
    let newest = newest_request(&query.stream).map_or(0, |(turn, _)| turn);
    let kept = query
        .is_kept()
        .then(|| parts.first().map(|part| part.advice(newest)));
    failure.hints.extend(kept.flatten());
    failure.hints.extend(more_room(model).map(str::to_owned));
    with_hint_if_kept(
        failure,
        query,
        "`jp query --model PROVIDER/NAME` without a message asks a model that accepts more.",
    )
}

/// Adds a hint that applies only if the conversation keeps the message.
fn with_hint_if_kept(failure: SessionError, query: &ReadyQuery<'_>, hint: &str) -> SessionError {
    if query.is_kept() {
        failure.with_hint(hint)
    } else {
        failure
    }
}

/// A part of a request, for the list of its largest parts.
struct Part<'a> {
    name: String,
    tokens: u64,
    turn: usize,
    /// The declaration that attached it, if that attached nothing else.
    declared: Option<&'a str>,
    /// Its file name, from which the user can make a pattern. `name` may be a title.
    pattern: Option<&'a str>,
    is_attached: bool,
}

/// Returns a line for each of the three largest parts of a request.
pub(crate) fn largest_lines(query: &ReadyQuery<'_>, turns: &[TurnRow]) -> String {
    lines(&largest(query, turns))
}

/// Writes a line for each part.
fn lines(parts: &[Part<'_>]) -> String {
    parts
        .iter()
        .map(|part| {
            let tokens = size::count(part.tokens, "token");
            format!("\n  about {tokens}: {}, turn {}", part.name, part.turn)
        })
        .collect()
}

/// Returns the three largest parts, the largest first.
fn largest<'a>(query: &'a ReadyQuery<'_>, turns: &[TurnRow]) -> Vec<Part<'a>> {
    /// The number of parts to name: the user needs the largest ones only.
    const SHOWN: usize = 3;
    let rows = turns
        .iter()
        .flat_map(|turn| turn.blocks.iter().map(|row| (turn.turn, row)));
    let mut rows: Vec<_> = rows.collect();
    rows.sort_by_key(|(_, row)| std::cmp::Reverse(row.tokens));
    rows.into_iter()
        .take(SHOWN)
        .map(|(turn, row)| Part::new(query, turn, row))
        .collect()
}

impl<'a> Part<'a> {
    fn new(query: &'a ReadyQuery<'_>, turn: usize, row: &BlockRow) -> Self {
        let request = query
            .stream
            .requests()
            .find(|(number, _)| *number == turn)
            .map(|(_, request)| request);
        // Only a snapshot of a message comes from a declaration.
        let attached = request
            .filter(|_| row.kind == "resource")
            .and_then(|request| {
                let index = request
                    .resources
                    .iter()
                    .position(|resource| Some(&resource.uri) == row.uri.as_ref())?;
                Some((request, index))
            });
        let name = match (&row.uri, row.kind) {
            (_, "request") => "the message".to_owned(),
            (_, "message") => "the answer".to_owned(),
            (Some(uri), _) => escape_name(&display_uri(uri, query.session.workspace.root())),
            (None, kind) => kind.replace('_', " "),
        };
        let declared = attached.and_then(|(request, index)| declared_alone(request, index));
        let pattern =
            attached.and_then(|(request, index)| request.resources[index].name.as_deref());
        Self {
            name,
            tokens: row.tokens,
            turn,
            declared,
            pattern,
            is_attached: attached.is_some(),
        }
    }

    /// Returns advice on sending a request without this part. A conversation keeps what it sent, so that takes a
    /// new conversation or a fork. `newest` is the newest turn.
    fn advice(&self, newest: usize) -> String {
        let Self { name, turn, .. } = self;
        let keep_out = match self.declared {
            Some(declared) => format!("`jp attachment rm {}`", quote_word(&escape_name(declared))),
            None => format!(
                "`--attach {}`",
                quote_word(&escape_name(&format!(
                    "!{}",
                    self.pattern.unwrap_or("PATTERN")
                )))
            ),
        };
        // A fork keeps the newest turns, so it can't leave out a part of the newest one.
        match (self.is_attached, newest - turn) {
            (true, 0) => format!(
                "a conversation keeps what you sent. `jp query --new` starts one without {name}; `--attach '!PATTERN'` excludes files of a directory."
            ),
            (false, 0) => {
                "a conversation keeps what you sent. `jp query --new` starts another one: send less there."
                    .to_owned()
            }
            (true, later) => format!(
                "`jp conversation fork --turns {later}` continues without turn {turn}; {keep_out} then leaves out {name}. `jp query --new` starts a new conversation."
            ),
            (false, later) => format!(
                "`jp conversation fork --turns {later}` continues without turn {turn}; `jp query --new` starts a new conversation."
            ),
        }
    }
}

/// Returns the path of a file of the workspace, and the URI of anything else.
pub fn display_uri(uri: &str, root: &Path) -> String {
    let workspace = root
        .to_str()
        .and_then(|root| file_uri(root, PathStyle::native()).ok());
    let path = workspace.and_then(|workspace| uri.strip_prefix(&workspace)?.strip_prefix('/'));
    path.and_then(|path| percent_decode(path).ok())
        .unwrap_or_else(|| uri.to_owned())
}

/// Returns a name, escaped if it contains control characters, which could forge a line.
pub fn escape_name(name: &str) -> String {
    if name.contains(char::is_control) {
        name.escape_debug().to_string()
    } else {
        name.to_owned()
    }
}

/// Returns the declaration that delivered a resource and nothing else.
fn declared_alone(request: &ChatRequest, index: usize) -> Option<&str> {
    let delivered = request
        .delivered
        .iter()
        .find(|delivered| delivered.resources == [index])?;
    Some(delivered.declaration.as_str())
}

/// Returns advice on making a local server accept longer requests.
fn more_room(model: &Model) -> Option<&'static str> {
    match (model.endpoint.format, model.endpoint.provider.as_str()) {
        (Format::Ollama, _) => Some(
            "`OLLAMA_CONTEXT_LENGTH=N ollama serve` raises the limit, and so does context_tokens in the model's configuration.",
        ),
        (_, "llamacpp") => Some("`llama-server --ctx-size N` raises the limit."),
        _ => None,
    }
}

/// Words any other error, with hints for the network and the status.
fn other(error: &Error) -> SessionError {
    let failure = SessionError::new(format!("failed to {}", chain(error)));
    match error {
        Error::Refused { .. } => {
            failure.with_hint("start the server, or set the provider's base_url to its address.")
        }
        Error::Unreachable { .. } => failure.with_hint(
            "check the network, the host in the provider's base_url, and that the server is running.",
        ),
        // A key may be valid and lack the permission for this model.
        Error::Status { status: 403, .. } => {
            failure.with_hint("check the API key from the provider's api_key_env or api_key_command.")
        }
        // A wrong path in the base URL gives the same status as an unknown model.
        Error::Status { status: 404, .. } => {
            failure.with_hint("check the model's name and the provider's base_url.")
        }
        _ => failure,
    }
}

fn describe_server(model: &Model) -> String {
    format!("{} at {}", model.endpoint.provider, model.endpoint.base_url)
}

/// Returns the message of the server, if it sent one.
fn quote_answer(error: &Error) -> String {
    match error {
        Error::Status { message, .. }
        | Error::Stream {
            fault: Fault::Provider { message, .. },
            ..
        } => message.clone(),
        error => chain(error),
    }
}
