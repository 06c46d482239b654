//! Which model is asked, and where it is.

pub mod facts;
pub mod provider;

use std::{process::Command, time::Duration};

use crate::{
    error::SessionError,
    model::provider::{
        ChosenModel, ConfiguredProvider, IgnoredSetting, OWN, ProviderSettings, default_base_url,
        ignored_aliases, usual_key_variable,
    },
    notice::Notice,
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

/// A model and where requests to it go.
pub struct Model {
    /// `provider/name`.
    pub label: String,
    /// Where requests go.
    pub endpoint: Endpoint,
    /// What the configuration says of it.
    pub configured: Facts,
    /// What the person should know of it.
    pub warning: Option<Notice>,
    /// Settings of the workspace that have no effect on it.
    pub(crate) ignored: Vec<IgnoredSetting>,
}

impl Model {
    /// Prints the warnings that the user needs before jp sends anything.
    pub(crate) fn warn(&self, person: &dyn Person) {
        self.warn_of_ignored(person);
        self.warning
            .iter()
            .for_each(|warning| person.tell(warning.clone()));
    }

    /// Looks for the key of its provider.
    pub fn add_key(&mut self, config: &Resolved) -> Result<(), SessionError> {
        let key = api_key(config, &self.endpoint.provider);
        let explained = |failure| {
            self.ignored
                .iter()
                .fold(failure, |failure, one| one.explain(failure))
        };
        self.endpoint.api_key = key.map_err(explained)?;
        Ok(())
    }

    /// Warns of settings of the workspace that have no effect on it.
    pub fn warn_of_ignored(&self, person: &dyn Person) {
        self.ignored.iter().for_each(|ignored| ignored.warn(person));
    }

    /// Returns whether a part of an answer is sent to it again.
    pub fn takes_back(&self, part: &AnswerPart<'_>) -> bool {
        self.endpoint.format.sends_back(part, &self.label)
    }

    /// Returns a thread without what is not sent to it again.
    pub fn taken<'t>(&self, mut thread: Thread<'t>) -> Thread<'t> {
        for message in &mut thread.messages {
            if let Message::Assistant { parts, .. } = message {
                parts.retain(|part| self.takes_back(part));
            }
        }
        thread
    }
}

/// Returns the model that the configuration names, or one that answers on this machine, with its key.
pub(crate) fn choose(config: &Resolved) -> Result<Model, SessionError> {
    let mut model = match configured(config)? {
        Some(model) => model,
        None => found_here(config)?.ok_or_else(no_model)?,
    };
    model.add_key(config)?;
    Ok(model)
}

/// Returns the model that the configuration names, if it names one; its key is not looked for.
pub fn configured(config: &Resolved) -> Result<Option<Model>, SessionError> {
    let Some(ChosenModel { id, .. }) = ChosenModel::of(config) else {
        return Ok(None);
    };
    let is_named = |(provider, name): &(&str, &str)| !provider.is_empty() && !name.is_empty();
    let (provider, name) = id.split_once('/').filter(is_named).ok_or_else(|| {
        let layer = config.origin("assistant.model.id");
        let failure: fn(String) -> SessionError = match layer {
            Layer::Flag { .. } | Layer::Argument { .. } => SessionError::usage,
            _ => SessionError::new,
        };
        failure(format!(
            "the model `{id}`, set by {layer}, is neither PROVIDER/NAME nor an alias"
        ))
        .with_hint("choose one for this conversation: --model llamacpp/qwen3")
    })?;
    of_provider(config, provider, name).map(Some)
}

/// Returns a provider's model, wherever the provider is.
pub fn of_provider(config: &Resolved, provider: &str, name: &str) -> Result<Model, SessionError> {
    const CASE: &str = "provider names are case-sensitive.";
    let configured = ConfiguredProvider::new(config, provider);
    let ProviderSettings { settings, ignored } = configured.settings();
    let base_url = settings.base_url;
    let base_url = base_url.as_deref().or_else(|| default_base_url(provider)).ok_or_else(|| {
        let of_which =
            if name.is_empty() { String::new() } else { format!(" of the model `{provider}/{name}`") };
        let unknown = SessionError::new(format!("unknown provider `{provider}`{of_which}"));
        let unknown = ignored.iter().fold(unknown, |failure, one| one.explain(failure));
        match configured.namesake() {
            Some(known) if name.is_empty() => unknown.with_hint(format!("use `{known}`: {CASE}")),
            Some(known) => unknown.with_hint(format!("use `--model {known}/{name}`: {CASE}")),
            None => unknown
                .with_hint(format!(
                    "set providers.llm.{provider}.base_url to the root of a server that speaks Chat Completions."
                ))
                .with_hint("`--model llamacpp/NAME` and `--model ollama/NAME` need no configuration."),
        }
    })?;
    let base_url = BaseUrl::parse(base_url).map_err(|error| {
        SessionError::from(error).with_hint(format!(
            "it is the value of providers.llm.{provider}.base_url."
        ))
    })?;
    model(config, provider, base_url, name)
}

/// Puts a model together with what is configured of its provider.
fn model(
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
    ignored.extend(ignored_aliases(config));
    let mut endpoint = Endpoint::new(provider, base_url, name);
    if let Some(seconds) = settings.idle_timeout_secs {
        endpoint.idle_timeout = Duration::from_secs(seconds);
    }
    if let Some(limit) = settings.max_response_bytes {
        endpoint.max_response_bytes = limit.bytes();
    }
    let facts = facts(&settings, name);
    Ok(Model {
        label: format!("{provider}/{name}"),
        endpoint,
        configured: facts,
        warning,
        ignored,
    })
}

/// Returns what a provider's configuration says of a model.
fn facts(settings: &LlmProvider, name: &str) -> Facts {
    let said = settings.models.get(name).copied().unwrap_or_default();
    Facts {
        images: said.images,
        pdf: said.pdf,
        files: said.files,
        audio: said.audio,
        binary_results: said.binary_results,
        schema: said.schema,
        tools: said.tools,
        context_tokens: said.context_tokens,
        max_output_tokens: said.max_output_tokens,
    }
}

/// Checks what a workspace says of a provider: it can come from anywhere, so it runs no command and gets
/// no key, and the person is told where it sends things.
fn check_workspace(
    configured: ConfiguredProvider<'_>,
    base_url: &BaseUrl,
    settings: &LlmProvider,
) -> Result<Option<Notice>, SessionError> {
    let said = configured.said();
    let refuse = |field: &str, path: &str, fault: &str| {
        Err(
            SessionError::new(format!("{} in {path} {fault}", configured.key(field)))
                .with_hint(OWN),
        )
    };
    if said.api_key_command.is_some()
        && let Some(path) = configured.refused("api_key_command", Effect::RunKeyCommand)
    {
        return refuse(
            "api_key_command",
            &path,
            "is not run: jp runs no key commands of a workspace",
        );
    }
    if let (Some(path), Some(variable)) =
        (configured.by_workspace("api_key_env"), &said.api_key_env)
        && let Some(reason) = configured.refuse_variable(variable)
    {
        return refuse("api_key_env", &path, &format!("names {variable}: {reason}"));
    }
    let Some(path) = configured
        .by_workspace("base_url")
        .filter(|_| settings.base_url.is_some())
    else {
        return Ok(None);
    };
    if (said.api_key_env.is_some() || said.api_key_command.is_some())
        && configured.refused("base_url", Effect::SendKey).is_some()
    {
        return refuse(
            "base_url",
            &path,
            "gets no API key: jp sends no keys to a server that a workspace chose",
        );
    }
    Ok((!base_url.is_loopback()).then(|| Notice::SentByWorkspace {
        path,
        base_url: base_url.to_string(),
    }))
}

/// Returns the key: from the variable or the command that the configuration names, else from the variable
/// that the provider's own tools read. A workspace that names the server gets none of the latter.
fn api_key(config: &Resolved, provider: &str) -> Result<Option<Secret>, SessionError> {
    let configured = ConfiguredProvider::new(config, provider);
    let ProviderSettings { settings, .. } = configured.settings();
    if let (None, Some(command)) = (&settings.api_key_env, &settings.api_key_command) {
        return key_from(provider, command).map(Some);
    }
    let is_refused =
        settings.base_url.is_some() && configured.refused("base_url", Effect::SendKey).is_some();
    let usual = usual_key_variable(provider).filter(|_| !is_refused);
    let Some(variable) = settings.api_key_env.as_deref().or(usual) else {
        return Ok(None);
    };
    let key = std::env::var(variable)
        .ok()
        .filter(|key| !key.trim().is_empty());
    match key {
        Some(key) if key.trim().contains(|c: char| !c.is_ascii_graphic()) => {
            Err(SessionError::new(format!(
                "invalid API key of {provider} in {variable}: it contains a space, a line break or another character that API keys never contain"
            )))
        }
        Some(key) => Ok(Some(Secret::new(key.trim()))),
        // A server of one's own may want none.
        None if settings.api_key_env.is_none() && settings.base_url.is_some() => Ok(None),
        None => Err(SessionError::new(format!(
            "the API key of {provider} is missing: {variable} is not set"
        ))
        .with_hint(format!(
            "set {variable}, or set providers.llm.{provider}.api_key_env to another variable."
        ))),
    }
}

/// Says where the key of a provider comes from, if from anywhere.
pub(crate) fn key_source(config: &Resolved, provider: &str) -> Option<String> {
    let ProviderSettings { settings, .. } = ConfiguredProvider::new(config, provider).settings();
    let command = || format!("the command in providers.llm.{provider}.api_key_command");
    match settings.api_key_env {
        None if settings.api_key_command.is_some() => Some(command()),
        variable => variable.or_else(|| usual_key_variable(provider).map(str::to_owned)),
    }
}

fn key_from(provider: &str, command: &CommandSetting) -> Result<Secret, SessionError> {
    let words: Vec<&str> = match command {
        CommandSetting::Line(line) => line.split_whitespace().collect(),
        CommandSetting::Words(words) => words.iter().map(String::as_str).collect(),
    };
    let failed = |reason: String| {
        SessionError::new(format!(
            "providers.llm.{provider}.api_key_command gave no API key: {reason}"
        ))
    };
    let (program, arguments) = words
        .split_first()
        .ok_or_else(|| failed("it is empty".to_owned()))?;
    let run = Command::new(program)
        .args(arguments)
        .stderr(std::process::Stdio::inherit())
        .output();
    let run = run.map_err(|error| failed(format!("failed to start its program: {error}")))?;
    let key = String::from_utf8_lossy(&run.stdout).trim().to_owned();
    match (run.status.success(), key.is_empty()) {
        (true, false) => Ok(Secret::new(key)),
        (true, true) => Err(failed("its program printed nothing".to_owned())),
        (false, _) => Err(failed(format!("its program ended with {}", run.status))),
    }
}

/// Looks for a server where the usual ones listen, or where the configuration says they do.
pub fn found_here(config: &Resolved) -> Result<Option<Model>, SessionError> {
    let url = |usual: Candidate<'_>| {
        ConfiguredProvider::new(config, usual.provider)
            .settings()
            .settings
            .base_url
            .unwrap_or_else(|| usual.base_url.to_owned())
    };
    let urls = discover::USUAL.map(url);
    let candidates = discover::USUAL.iter().zip(&urls);
    let candidates: Vec<_> = candidates
        .map(|(usual, base_url)| Candidate { base_url, ..*usual })
        .collect();
    let runtime = crate::runtime::runtime()?;
    let found = runtime.block_on(discover::find_local(&candidates));
    found
        .map(|found| model(config, &found.provider, found.base_url, &found.model))
        .transpose()
}

/// Says that no model is configured, and how to configure one.
pub fn no_model() -> SessionError {
    SessionError::new("no model is configured, and no llama.cpp or Ollama server answers on this machine")
        .with_hint("start a local server, such as `llama-server -m MODEL.gguf` or `ollama serve`; jp detects it.")
        .with_hint("or choose a model for this conversation: --model ollama/qwen3")
        .with_hint("or set a default in .jp/config.toml: [assistant.model] id = \"PROVIDER/NAME\"")
}
