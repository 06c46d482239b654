//! Chooses the model, and finds its endpoint and its API key.

pub mod facts;
pub mod provider;

use std::{process::Command, time::Duration};

use crate::{
    error::SessionError,
    model::provider::{
        ChosenModel, ConfiguredProvider, ProviderSettings, default_base_url, find_ignored_aliases,
        usual_key_variable,
    },
    notice::{IgnoredSetting, Notice},
    person::Person,
    trust::Effect,
};
use jp_config::{CommandSetting, Layer, LlmProvider, Resolved};
use jp_conversation::view::{AnswerPart, Message, Thread};
use jp_llm::{
    BaseUrl, Endpoint, Secret,
    discover::{self, Candidate},
    models::Facts,
};

/// A model with its endpoint.
pub struct Model {
    /// `provider/name`.
    pub label: String,
    /// The server, with the key.
    pub endpoint: Endpoint,
    /// The facts that the configuration states.
    pub configured: Facts,
    /// The warning that the workspace chose the server.
    pub warning: Option<Notice>,
    /// Settings that have no effect on it.
    pub(crate) ignored: Vec<IgnoredSetting>,
}

impl Model {
    /// Tells the warnings that the user needs before jp sends anything.
    pub(crate) fn warn(&self, person: &dyn Person) {
        self.warn_of_ignored(person);
        self.warning
            .iter()
            .for_each(|warning| person.tell(warning.clone()));
    }

    /// Finds the API key of its provider.
    ///
    /// # Errors
    ///
    /// If the key is missing or invalid. The hints name the ignored settings, which may be the cause.
    pub fn add_key(&mut self, config: &Resolved) -> Result<(), SessionError> {
        let key = api_key(config, &self.endpoint.provider);
        self.endpoint.api_key = key.map_err(|failure| explain_ignored(failure, &self.ignored))?;
        Ok(())
    }

    /// Warns of settings that have no effect on it.
    pub fn warn_of_ignored(&self, person: &dyn Person) {
        for ignored in &self.ignored {
            person.tell(Notice::SettingIgnored(ignored.clone()));
        }
    }

    /// Returns whether later requests to it include a part of an answer.
    pub fn takes_back(&self, part: &AnswerPart<'_>) -> bool {
        self.endpoint.format.sends_back(part, &self.label)
    }

    /// Returns a thread without the parts of answers that requests to it leave out.
    pub fn filter_thread<'t>(&self, mut thread: Thread<'t>) -> Thread<'t> {
        for message in &mut thread.messages {
            if let Message::Assistant { parts, .. } = message {
                parts.retain(|part| self.takes_back(part));
            }
        }
        thread
    }
}

/// Returns the configured model, or one of a local server, with its key.
pub(crate) fn choose(config: &Resolved) -> Result<Model, SessionError> {
    let mut model = match find_configured(config)? {
        Some(model) => model,
        None => find_local(config)?.ok_or_else(no_model)?,
    };
    model.add_key(config)?;
    Ok(model)
}

/// Returns the configured model, if there is one, without its key.
pub fn find_configured(config: &Resolved) -> Result<Option<Model>, SessionError> {
    let Some(ChosenModel { id, .. }) = ChosenModel::find(config) else {
        return Ok(None);
    };
    match id.split_once('/') {
        Some((provider, name)) if !provider.is_empty() && !name.is_empty() => {
            resolve(config, provider, name).map(Some)
        }
        _ => Err(invalid_id(id, config.origin("assistant.model.id"))),
    }
}

/// Makes the error for an id that names no model: a usage error if the user typed it.
fn invalid_id(id: &str, layer: &Layer) -> SessionError {
    let failure: fn(String) -> SessionError = match layer {
        Layer::Flag { .. } | Layer::Argument { .. } => SessionError::usage,
        _ => SessionError::new,
    };
    failure(format!(
        "the model `{id}`, set by {layer}, is neither PROVIDER/NAME nor an alias"
    ))
    .with_hint("choose one for this conversation: --model llamacpp/qwen3")
}

/// Adds hints for settings that are ignored, because they may be the cause of a failure.
fn explain_ignored(failure: SessionError, ignored: &[IgnoredSetting]) -> SessionError {
    ignored.iter().fold(failure, |failure, one| {
        failure.with_hint(format!("{one}; {}", one.hint()))
    })
}

/// Returns a model of a provider, without its key. An empty `name` stands for the provider itself.
pub fn resolve(config: &Resolved, provider: &str, name: &str) -> Result<Model, SessionError> {
    let configured = ConfiguredProvider::new(config, provider);
    let settings = configured.settings().settings;
    let base_url = settings
        .base_url
        .as_deref()
        .or_else(|| default_base_url(provider))
        .ok_or_else(|| unknown_provider(configured, provider, name))?;
    let base_url = BaseUrl::parse(base_url).map_err(|error| {
        SessionError::from(error).with_hint(format!(
            "it is the value of providers.llm.{provider}.base_url."
        ))
    })?;
    build_model(config, provider, base_url, name)
}

/// Makes the error for a provider without an address.
fn unknown_provider(
    configured: ConfiguredProvider<'_>,
    provider: &str,
    name: &str,
) -> SessionError {
    const CASE: &str = "provider names are case-sensitive.";
    let of_model = match name {
        "" => String::new(),
        name => format!(" of the model `{provider}/{name}`"),
    };
    let unknown = explain_ignored(
        SessionError::new(format!("unknown provider `{provider}`{of_model}")),
        &configured.settings().ignored,
    );
    // The wrong case is the most likely mistake.
    match configured.namesake() {
        Some(known) if name.is_empty() => unknown.with_hint(format!("use `{known}`: {CASE}")),
        Some(known) => unknown.with_hint(format!("use `--model {known}/{name}`: {CASE}")),
        None => unknown
            .with_hint(format!(
                "set providers.llm.{provider}.base_url to the root of a server that speaks Chat Completions."
            ))
            .with_hint("`--model llamacpp/NAME` and `--model ollama/NAME` need no configuration."),
    }
}

/// Puts a model together from the settings of its provider.
fn build_model(
    config: &Resolved,
    provider: &str,
    base_url: BaseUrl,
    name: &str,
) -> Result<Model, SessionError> {
    let configured = ConfiguredProvider::new(config, provider);
    let ProviderSettings {
        settings,
        mut ignored,
    } = configured.settings();
    let warning = check_workspace(configured, &base_url, &settings)?;
    ignored.extend(find_ignored_aliases(config));
    let mut endpoint = Endpoint::new(provider, base_url, name);
    if let Some(seconds) = settings.idle_timeout_secs {
        endpoint.idle_timeout = Duration::from_secs(seconds);
    }
    if let Some(limit) = settings.max_response_bytes {
        endpoint.max_response_bytes = limit.bytes();
    }
    let facts = read_facts(&settings, name);
    Ok(Model {
        label: format!("{provider}/{name}"),
        endpoint,
        configured: facts,
        warning,
        ignored,
    })
}

/// Returns the facts that a provider's settings state about a model.
fn read_facts(settings: &LlmProvider, name: &str) -> Facts {
    let stated = settings.models.get(name).copied().unwrap_or_default();
    Facts {
        images: stated.images,
        pdf: stated.pdf,
        files: stated.files,
        audio: stated.audio,
        binary_results: stated.binary_results,
        schema: stated.schema,
        tools: stated.tools,
        context_tokens: stated.context_tokens,
        max_output_tokens: stated.max_output_tokens,
    }
}

/// Checks the workspace's settings of a provider. A workspace is not trusted: it can't make jp run a
/// command for a key, or send a key to a server that it chose. If it sends the conversation to
/// another machine, the returned notice says so.
fn check_workspace(
    configured: ConfiguredProvider<'_>,
    base_url: &BaseUrl,
    settings: &LlmProvider,
) -> Result<Option<Notice>, SessionError> {
    // Errors, not warnings: without the key that it names, a provider of the workspace can't answer.
    let all = configured.all_settings();
    if all.api_key_command.is_some()
        && let Some(path) =
            configured.workspace_file_if_refused("api_key_command", Effect::RunKeyCommand)
    {
        return Err(configured.refuse(
            "api_key_command",
            &path,
            "is not run: jp doesn't run key commands from a workspace",
        ));
    }
    if let (Some(path), Some(variable)) =
        (configured.workspace_file("api_key_env"), &all.api_key_env)
        && let Some(reason) = configured.refuse_variable(variable)
    {
        return Err(configured.refuse(
            "api_key_env",
            &path,
            &format!("names {variable}: {reason}"),
        ));
    }
    let Some(path) = configured
        .workspace_file("base_url")
        .filter(|_| settings.base_url.is_some())
    else {
        return Ok(None);
    };
    if (all.api_key_env.is_some() || all.api_key_command.is_some())
        && configured
            .workspace_file_if_refused("base_url", Effect::SendKey)
            .is_some()
    {
        return Err(configured.refuse(
            "base_url",
            &path,
            "gets no API key: jp sends no keys to a server that a workspace chose",
        ));
    }
    // Requests to this machine don't leave it.
    Ok((!base_url.is_loopback()).then(|| Notice::SentByWorkspace {
        path,
        base_url: base_url.to_string(),
    }))
}

/// Returns the key of a provider: from the configured variable or command, or else from the variable
/// that the provider's own tools read. If a workspace chose the server, that variable is not used.
fn api_key(config: &Resolved, provider: &str) -> Result<Option<Secret>, SessionError> {
    let configured = ConfiguredProvider::new(config, provider);
    let ProviderSettings { settings, .. } = configured.settings();
    if let (None, Some(command)) = (&settings.api_key_env, &settings.api_key_command) {
        return run_key_command(command).map(Some).map_err(|reason| {
            SessionError::new(format!(
                "providers.llm.{provider}.api_key_command gave no API key: {reason}"
            ))
        });
    }
    let is_refused = settings.base_url.is_some()
        && configured
            .workspace_file_if_refused("base_url", Effect::SendKey)
            .is_some();
    let usual = usual_key_variable(provider).filter(|_| !is_refused);
    let Some(variable) = settings.api_key_env.as_deref().or(usual) else {
        return Ok(None);
    };
    let key = std::env::var(variable)
        .ok()
        .filter(|key| !key.trim().is_empty());
    match key {
        // An HTTP header can't contain other characters, and a server might log them.
        Some(key) if key.trim().contains(|c: char| !c.is_ascii_graphic()) => {
            Err(SessionError::new(format!(
                "invalid API key of {provider} in {variable}: it contains a space, a line break or another character that API keys never contain"
            )))
        }
        Some(key) => Ok(Some(Secret::new(key.trim()))),
        // The user's own server may need no key.
        None if settings.api_key_env.is_none() && settings.base_url.is_some() => Ok(None),
        None => Err(SessionError::new(format!(
            "the API key of {provider} is missing: {variable} is not set"
        ))
        .with_hint(format!(
            "set {variable}, or set providers.llm.{provider}.api_key_env to another variable."
        ))),
    }
}

/// Returns the source of a provider's key: its variable or its command.
pub(crate) fn key_source(config: &Resolved, provider: &str) -> Option<String> {
    let ProviderSettings { settings, .. } = ConfiguredProvider::new(config, provider).settings();
    match settings.api_key_env {
        None if settings.api_key_command.is_some() => Some(format!(
            "the command in providers.llm.{provider}.api_key_command"
        )),
        variable => variable.or_else(|| usual_key_variable(provider).map(str::to_owned)),
    }
}

/// Runs the command for a key and returns its output. The error is the reason why there is no key.
///
/// Its stderr goes to the terminal, because password managers prompt there.
fn run_key_command(command: &CommandSetting) -> Result<Secret, String> {
    let words: Vec<&str> = match command {
        CommandSetting::Line(line) => line.split_whitespace().collect(),
        CommandSetting::Words(words) => words.iter().map(String::as_str).collect(),
    };
    let (program, arguments) = words.split_first().ok_or("it is empty")?;
    let run = Command::new(program)
        .args(arguments)
        .stderr(std::process::Stdio::inherit())
        .output()
        .map_err(|error| format!("failed to start its program: {error}"))?;
    let key = String::from_utf8_lossy(&run.stdout).trim().to_owned();
    match (run.status.success(), key.is_empty()) {
        (true, false) => Ok(Secret::new(key)),
        (true, true) => Err("its program printed nothing".to_owned()),
        (false, _) => Err(format!("its program ended with {}", run.status)),
    }
}

/// Looks for a local server at the default addresses, or at the configured ones.
pub fn find_local(config: &Resolved) -> Result<Option<Model>, SessionError> {
    let urls = discover::USUAL.map(|usual| {
        let provider = ConfiguredProvider::new(config, usual.provider).settings();
        let base_url = provider.settings.base_url;
        base_url.unwrap_or_else(|| usual.base_url.to_owned())
    });
    let candidates = discover::USUAL.iter().zip(&urls);
    let candidates: Vec<_> = candidates
        .map(|(usual, base_url)| Candidate { base_url, ..*usual })
        .collect();
    let runtime = crate::runtime::runtime()?;
    let found = runtime.block_on(discover::find_local(&candidates));
    found
        .map(|found| build_model(config, &found.provider, found.base_url, &found.model))
        .transpose()
}

/// Makes the error for a missing model.
pub fn no_model() -> SessionError {
    SessionError::new("no model is configured, and no llama.cpp or Ollama server answers on this machine")
        .with_hint("start a local server, such as `llama-server -m MODEL.gguf` or `ollama serve`; jp detects it.")
        .with_hint("or choose a model for this conversation: --model ollama/qwen3")
        .with_hint("or set a default in .jp/config.toml: [assistant.model] id = \"PROVIDER/NAME\"")
}
