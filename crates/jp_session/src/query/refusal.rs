//! Why a request got no answer, and what to do about it.

use std::path::Path;

use crate::{
    error::{SessionError, chain},
    model::{Model, key_source},
    query::ready_query::{ReadyQuery, newest_request},
    size,
    text::quoted,
};
use jp_conversation::{
    ChatRequest,
    view::{BlockRow, TurnRow},
};
use jp_llm::{Error, Fault, Format, Refusal};
use jp_resource::uri::{PathStyle, file_uri, percent_decode};

/// Turns the error of a request into what a person reads.
pub(crate) fn failure(error: &Error, asked: &ReadyQuery<'_>, model: &Model) -> SessionError {
    match error.refusal() {
        Some(Refusal::Key) => wrong_key(error, asked, model),
        Some(Refusal::Model) => unknown_model(error, asked, model),
        Some(Refusal::Images) => no_images(error, model),
        Some(Refusal::Tools) => no_tools(error, model),
        Some(Refusal::Output) => too_much_output(error, model),
        Some(Refusal::TooLong { tokens, limit }) => {
            too_long(error, (*tokens, *limit), asked, model)
        }
        None => other(error),
    }
}

fn wrong_key(error: &Error, asked: &ReadyQuery<'_>, model: &Model) -> SessionError {
    let provider = &model.endpoint.provider;
    let (server, said) = (server(model), words(error));
    match key_source(&asked.config, provider) {
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

/// Returns the key of a setting that the person has for a model.
fn setting(model: &Model, name: &str) -> String {
    let (provider, model) = (&model.endpoint.provider, &model.endpoint.model);
    format!("providers.llm.{provider}.models.\"{model}\".{name}")
}

fn no_images(error: &Error, model: &Model) -> SessionError {
    let setting = setting(model, "images");
    SessionError::new(format!(
        "{} does not accept images: {}",
        model.label,
        words(error)
    ))
    .with_hint(format!(
        "set {setting} = false, and jp sends it a note in place of each image."
    ))
    .with_hint("`jp model ls` shows which models accept images.")
}

fn no_tools(error: &Error, model: &Model) -> SessionError {
    let setting = setting(model, "tools");
    SessionError::new(format!(
        "{} does not accept tools: {}",
        model.label,
        words(error)
    ))
    .with_hint("`jp query -T` disables all tools in this conversation.")
    .with_hint(format!(
        "set {setting} = false, and jp never sends it tools."
    ))
}

fn too_much_output(error: &Error, model: &Model) -> SessionError {
    let setting = setting(model, "max_output_tokens");
    SessionError::new(format!(
        "{} does not allow such a long answer: {}",
        model.label,
        words(error)
    ))
    .with_hint(format!("set {setting} to the model's limit."))
}

fn unknown_model(error: &Error, asked: &ReadyQuery<'_>, model: &Model) -> SessionError {
    let name = &model.endpoint.model;
    let failure = SessionError::new(format!(
        "{} has no model `{name}`: {}",
        server(model),
        words(error)
    ));
    let failure = match model.endpoint.format {
        Format::Ollama => failure.with_hint(format!("`ollama pull {name}` downloads it.")),
        _ => failure,
    };
    let failure = failure.with_hint("`jp model ls` lists the available models.");
    ask_another(
        failure,
        asked,
        "`jp query --model PROVIDER/NAME` without a message asks another model.",
    )
}

fn too_long(
    error: &Error,
    (tokens, limit): (Option<u64>, Option<u64>),
    asked: &ReadyQuery<'_>,
    model: &Model,
) -> SessionError {
    let figures = match (tokens.map(size::thousands), limit.map(size::thousands)) {
        (Some(tokens), Some(limit)) => format!("it has {tokens} tokens, and the limit is {limit}"),
        (Some(tokens), None) => format!("it has {tokens} tokens"),
        (None, Some(limit)) => format!("the limit is {limit} tokens"),
        (None, None) => words(error),
    };
    let parts = largest(asked, &asked.rows(&asked.thread(&asked.stream)));
    let message = format!(
        "the request is too long for {}: {figures}{}",
        model.label,
        lines(&parts)
    );
    let mut failure = SessionError::new(message);
    let newest = newest_request(&asked.stream).map_or(0, |(turn, _)| turn);
    let kept = asked
        .is_kept()
        .then(|| parts.first().map(|part| part.advice(newest)));
    failure.hints.extend(kept.flatten());
    failure.hints.extend(more_room(model).map(str::to_owned));
    ask_another(
        failure,
        asked,
        "`jp query --model PROVIDER/NAME` without a message asks a model that accepts more.",
    )
}

/// Adds a hint that holds where the message is kept.
fn ask_another(failure: SessionError, asked: &ReadyQuery<'_>, hint: &str) -> SessionError {
    if asked.is_kept() {
        failure.with_hint(hint)
    } else {
        failure
    }
}

/// A part of a request.
struct Part<'a> {
    name: String,
    tokens: u64,
    turn: usize,
    /// The declaration that attached it, if that attached nothing else.
    declared: Option<&'a str>,
    /// Its name, which a pattern can be made of; a title can't.
    pattern: Option<&'a str>,
    is_attached: bool,
}

/// Returns a line for each of the three largest parts of a request.
pub(crate) fn largest_lines(asked: &ReadyQuery<'_>, turns: &[TurnRow]) -> String {
    lines(&largest(asked, turns))
}

fn lines(parts: &[Part<'_>]) -> String {
    let line = |part: &Part<'_>| {
        format!(
            "\n  about {}: {}, turn {}",
            size::count(part.tokens, "token"),
            part.name,
            part.turn
        )
    };
    parts.iter().map(line).collect()
}

/// Returns the three largest parts, the largest first.
fn largest<'a>(asked: &'a ReadyQuery<'_>, turns: &[TurnRow]) -> Vec<Part<'a>> {
    const SHOWN: usize = 3;
    let rows = turns
        .iter()
        .flat_map(|turn| turn.blocks.iter().map(|row| (turn.turn, row)));
    let mut rows: Vec<_> = rows.collect();
    rows.sort_by_key(|(_, row)| std::cmp::Reverse(row.tokens));
    rows.into_iter()
        .take(SHOWN)
        .map(|(turn, row)| Part::of(asked, turn, row))
        .collect()
}

impl<'a> Part<'a> {
    fn of(asked: &'a ReadyQuery<'_>, turn: usize, row: &BlockRow) -> Self {
        let request = asked
            .stream
            .requests()
            .find(|(of, _)| *of == turn)
            .map(|(_, request)| request);
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
            (Some(uri), _) => one_line(&place(uri, asked.session.workspace.root())),
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

    /// Says how to ask without it; what was sent stays in its conversation.
    fn advice(&self, newest: usize) -> String {
        let Self { name, turn, .. } = self;
        let keep_out = match self.declared {
            Some(declared) => format!("`jp attachment rm {}`", quoted(&one_line(declared))),
            None => format!(
                "`--attach {}`",
                quoted(&one_line(&format!(
                    "!{}",
                    self.pattern.unwrap_or("PATTERN")
                )))
            ),
        };
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
pub fn place(uri: &str, root: &Path) -> String {
    let workspace = root
        .to_str()
        .and_then(|root| file_uri(root, PathStyle::native()).ok());
    let path = workspace.and_then(|workspace| uri.strip_prefix(&workspace)?.strip_prefix('/'));
    path.and_then(|path| percent_decode(path).ok())
        .unwrap_or_else(|| uri.to_owned())
}

/// Returns a name as it is, or escaped where it could forge a line.
pub fn one_line(name: &str) -> String {
    if name.contains(char::is_control) {
        name.escape_debug().to_string()
    } else {
        name.to_owned()
    }
}

/// Returns the declaration that delivered a resource and no other.
fn declared_alone(request: &ChatRequest, index: usize) -> Option<&str> {
    let delivered = request
        .delivered
        .iter()
        .find(|delivered| delivered.resources == [index])?;
    Some(delivered.declaration.as_str())
}

/// Says how a server of one's own takes more.
fn more_room(model: &Model) -> Option<&'static str> {
    match (model.endpoint.format, model.endpoint.provider.as_str()) {
        (Format::Ollama, _) => Some(
            "`OLLAMA_CONTEXT_LENGTH=N ollama serve` raises the limit, and so does context_tokens in the model's configuration.",
        ),
        (_, "llamacpp") => Some("`llama-server --ctx-size N` raises the limit."),
        _ => None,
    }
}

fn other(error: &Error) -> SessionError {
    let failure = SessionError::new(format!("failed to {}", chain(error)));
    match error {
        Error::Refused { .. } => {
            failure.with_hint("start the server, or set the provider's base_url to its address.")
        }
        Error::Unreachable { .. } => failure.with_hint(
            "check the network, the host in the provider's base_url, and that the server is running.",
        ),
        Error::Status { status: 403, .. } => {
            failure.with_hint("check the API key from the provider's api_key_env or api_key_command.")
        }
        Error::Status { status: 404, .. } => {
            failure.with_hint("check the model's name and the provider's base_url.")
        }
        _ => failure,
    }
}

fn server(model: &Model) -> String {
    format!("{} at {}", model.endpoint.provider, model.endpoint.base_url)
}

/// Returns what the server said.
fn words(error: &Error) -> String {
    match error {
        Error::Status { message, .. }
        | Error::Stream {
            fault: Fault::Provider { message, .. },
            ..
        } => message.clone(),
        error => chain(error),
    }
}
