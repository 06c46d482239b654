//! `jp model`: available models and their capabilities.

use std::{collections::BTreeSet, time::Duration};

use crate::{
    args,
    context::Context,
    error::{Code, SessionError, chain},
};
use jp_config::Resolved;
use jp_llm::{
    Format,
    discover::{PROBE_TIMEOUT, USUAL},
    models::{self, Facts, Listed},
};
use jp_session::{
    model::{Model, find_configured, find_local, no_model, provider::usual_key_variable, resolve},
    runtime::runtime,
    size,
    text::without_credentials,
};
use serde_json::{Value, json};

/// The time that a provider may take to list its models. OpenRouter lists hundreds, and a slow network needs a few seconds.
const LIST_TIMEOUT: Duration = Duration::from_secs(10);
/// The providers that jp knows by name. They are listed if their key is set.
const HOSTED: [&str; 4] = ["anthropic", "google", "openai", "openrouter"];

pub(crate) fn run(command: &args::Model, context: &Context<'_>) -> Result<Code, SessionError> {
    let args::Model::Ls { provider } = command;
    let conversation = context
        .session
        .current()?
        .map(|found| context.session.read(&found))
        .transpose()?;
    let config = context.session.config(conversation.as_ref(), &[])?;
    // If the configured model is wrong, the list helps to fix that.
    let used = match find_configured(&config) {
        Ok(None) => find_local(&config)?,
        Ok(model) => model,
        Err(failure) => {
            context.output.warn(&failure.message);
            None
        }
    };
    used.iter()
        .for_each(|used| used.warn_of_ignored(&*context.session.person));
    let rows = match provider {
        Some(provider) => list_provider(&config, used.as_ref(), provider)?,
        None => list_all(context, &config, used.as_ref())?,
    };
    if context.output.is_json() {
        let rows: Vec<_> = rows.iter().map(ModelRow::to_json).collect();
        context.output.json(&rows)?;
        return Ok(Code::Done);
    }
    let header = ["", "model", "tokens", "accepts", "source", "alias"]
        .map(str::to_owned)
        .to_vec();
    let lines: Vec<_> = std::iter::once(header)
        .chain(rows.iter().map(ModelRow::cells))
        .collect();
    context.output.table(&lines)?;
    match &used {
        Some(used) => context.output.hint(&format!(
            "jp uses {}; `jp query --model MODEL` chooses another.",
            used.label
        )),
        None => context
            .output
            .hint("choose a model with `jp query --model MODEL`, or set assistant.model.id."),
    }
    Ok(Code::Done)
}

/// Lists the models of one provider.
fn list_provider(
    config: &Resolved,
    used: Option<&Model>,
    provider: &str,
) -> Result<Vec<ModelRow>, SessionError> {
    let request = ListRequest::new(config, provider, true)?;
    let listed = runtime()?.block_on(models::list(&request.model.endpoint, request.limit()))?;
    if listed.is_empty() {
        return Err(SessionError::new(format!(
            "{provider} at {} lists no models",
            request.model.endpoint.base_url
        )));
    }
    to_rows(config, provider, listed, used)
}

/// Lists the models of all providers. Warns of each provider that fails, unless jp only looked for it on this machine.
fn list_all(
    context: &Context<'_>,
    config: &Resolved,
    used: Option<&Model>,
) -> Result<Vec<ModelRow>, SessionError> {
    let requests = prepare_requests(context, config, used);
    let endpoints: Vec<_> = requests
        .iter()
        .map(|request| (&request.model.endpoint, request.limit()))
        .collect();
    // All providers are asked at the same time, so the slowest decides how long it takes.
    let lists = runtime()?.block_on(models::list_each(&endpoints));
    let mut all = Vec::new();
    for (request, listed) in requests.iter().zip(lists) {
        let provider = &request.provider;
        match listed {
            Ok(listed) => all.extend(to_rows(config, provider, listed, used)?),
            Err(error) if request.is_set_up => {
                warn(context, provider, &format!("failed to {}", chain(&error)));
            }
            // jp only looked for a server on its usual port, and there is none.
            Err(_) => {}
        }
    }
    if let Some(used) = used.filter(|_| !all.iter().any(|row| row.is_used)) {
        context.output.warn(&format!(
            "jp uses {}, but its provider does not list it",
            used.label
        ));
        all.insert(0, ModelRow::new(config, used, Facts::default(), true));
    }
    match all.is_empty() {
        true => Err(no_model()),
        false => Ok(all),
    }
}

/// Prepares a request for each provider. Warns of those that jp does not ask.
fn prepare_requests(
    context: &Context<'_>,
    config: &Resolved,
    used: Option<&Model>,
) -> Vec<ListRequest> {
    let mut requests = Vec::new();
    for provider in find_providers(config, used) {
        match ListRequest::new(config, &provider, is_set_up(config, used, &provider)) {
            // A workspace is not trusted: jp contacts its provider only if the user names it.
            Ok(request) if request.model.warning.is_some() => {
                let reason = format!(
                    "the workspace sets its URL to {}; `jp model ls {provider}` lists them",
                    request.model.endpoint.base_url
                );
                warn(context, &provider, &reason);
            }
            Ok(request) => requests.push(request),
            Err(failure) => warn(context, &provider, &failure.message),
        }
    }
    requests
}

fn warn(context: &Context<'_>, provider: &str, reason: &str) {
    // A base URL may contain credentials, and errors quote it.
    context.output.warn(&without_credentials(&format!(
        "the models of {provider} are not listed: {reason}"
    )));
}

/// A request for the list of a provider's models.
struct ListRequest {
    provider: String,
    model: Model,
    /// Set if the user set the provider up. jp looks for the others on this machine.
    is_set_up: bool,
}

impl ListRequest {
    fn new(config: &Resolved, provider: &str, is_set_up: bool) -> Result<Self, SessionError> {
        let mut model = resolve(config, provider, "")?;
        model.add_key(config)?;
        Ok(Self {
            provider: provider.to_owned(),
            model,
            is_set_up,
        })
    }

    /// Returns the time that the provider has. One that jp looks for is either there at once or not at all.
    fn limit(&self) -> Duration {
        match self.is_set_up {
            true => LIST_TIMEOUT,
            false => PROBE_TIMEOUT,
        }
    }
}

/// Returns the names of the providers that may have models for the user.
fn find_providers(config: &Resolved, used: Option<&Model>) -> BTreeSet<String> {
    let configured = config.config.providers.llm.keys().cloned();
    let with_key = HOSTED
        .into_iter()
        .filter(|provider| has_key(provider))
        .map(str::to_owned);
    let here = USUAL.map(|usual| usual.provider.to_owned());
    let used = used.map(|model| model.endpoint.provider.clone());
    configured.chain(with_key).chain(here).chain(used).collect()
}

fn has_key(provider: &str) -> bool {
    // A blank key counts as unset, as in queries.
    let key = usual_key_variable(provider).and_then(|variable| std::env::var(variable).ok());
    key.is_some_and(|key| !key.trim().is_empty())
}

/// Returns whether the user set a provider up. jp looks for the others on this machine.
fn is_set_up(config: &Resolved, used: Option<&Model>, provider: &str) -> bool {
    let is_local = USUAL.iter().any(|usual| usual.provider == provider);
    let is_used = used.is_some_and(|model| model.endpoint.provider == provider);
    !is_local || is_used || config.config.providers.llm.contains_key(provider)
}

/// An available model.
struct ModelRow {
    id: String,
    is_used: bool,
    aliases: Vec<String>,
    facts: Facts,
    /// The sources of the facts, most important first.
    known_from: Vec<&'static str>,
}

fn to_rows(
    config: &Resolved,
    provider: &str,
    listed: Vec<Listed>,
    used: Option<&Model>,
) -> Result<Vec<ModelRow>, SessionError> {
    let rows = listed.into_iter().map(|listed| {
        let model = resolve(config, provider, &listed.name)?;
        let is_used = used.is_some_and(|used| used.label == model.label);
        Ok(ModelRow::new(config, &model, listed.facts, is_used))
    });
    rows.collect()
}

impl ModelRow {
    fn new(config: &Resolved, model: &Model, listed: Facts, is_used: bool) -> Self {
        let format = model.endpoint.format;
        // A server of one of these formats may run any model, so jp can only assume what it accepts.
        let documented = if matches!(format, Format::Chat | Format::Ollama) {
            "assumed"
        } else {
            "documentation"
        };
        // A source that says nothing about the model is not listed.
        let sources = [("configuration", model.configured), ("provider", listed)];
        let sources = sources
            .into_iter()
            .filter(|(_, facts)| *facts != Facts::default())
            .map(|(name, _)| name);
        let aliases = config.config.providers.aliases.iter();
        Self {
            id: model.label.clone(),
            is_used,
            aliases: aliases
                .filter(|(alias, id)| **id == model.label && !alias.contains('/'))
                .map(|(alias, _)| alias.clone())
                .collect(),
            facts: model
                .configured
                .or(listed)
                .or(models::built_in(format, &model.endpoint.model)),
            known_from: sources.chain([documented]).collect(),
        }
    }

    /// Returns each capability with its name in the JSON.
    fn capabilities(&self) -> [(&'static str, bool); 7] {
        let facts = self.facts.capabilities();
        [
            ("images", facts.images),
            ("pdf", facts.pdf),
            ("files", facts.files),
            ("audio", facts.audio),
            ("binary_results", facts.binary_results),
            ("schema", facts.schema),
            ("tools", facts.tools),
        ]
    }

    fn cells(&self) -> Vec<String> {
        let takes = self
            .capabilities()
            .into_iter()
            .filter(|(_, takes)| *takes)
            .map(|(name, _)| name.replace('_', " "));
        let takes: Vec<_> = std::iter::once("text".to_owned()).chain(takes).collect();
        vec![
            if self.is_used { "*" } else { "" }.to_owned(),
            self.id.clone(),
            self.facts
                .context_tokens
                .map_or_else(|| "-".to_owned(), size::thousands),
            takes.join(", "),
            self.known_from.join(", "),
            self.aliases.join(", "),
        ]
    }

    fn to_json(&self) -> Value {
        let takes: serde_json::Map<_, _> = self
            .capabilities()
            .into_iter()
            .map(|(name, takes)| (name.to_owned(), takes.into()))
            .collect();
        json!({
            "id": self.id, "used": self.is_used, "aliases": self.aliases,
            "context_tokens": self.facts.context_tokens, "max_output_tokens": self.facts.max_output_tokens,
            "takes": takes, "known_from": self.known_from,
        })
    }
}
