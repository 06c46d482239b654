//! `jp model`.

use std::{collections::BTreeSet, time::Duration};

use crate::{
    args,
    context::Context,
    error::{Code, Failure, chain},
    output::table,
};
use jp_config::Resolved;
use jp_llm::{
    Format,
    discover::{PROBE_TIMEOUT, USUAL},
    models::{self, Facts, Listed},
};
use jp_session::{
    model::{Model, configured, found_here, no_model, of_provider, provider::usual_key_variable},
    runtime::runtime,
    size,
    text::without_credentials,
};
use serde_json::{Value, json};

/// How long a provider may take to list its models.
const LIST_TIMEOUT: Duration = Duration::from_secs(10);
const HOSTED: [&str; 4] = ["anthropic", "google", "openai", "openrouter"];

pub(crate) fn run(command: &args::Model, context: &Context<'_>) -> Result<Code, Failure> {
    let args::Model::Ls { provider } = command;
    let conversation = context
        .session
        .current()?
        .map(|found| context.session.read(&found))
        .transpose()?;
    let config = context.session.config(conversation.as_ref(), &[])?;
    // What is wrong with the chosen one is no reason to list none: the list may be what is needed to mend it.
    let used = match configured(&config) {
        Ok(None) => found_here(&config)?,
        Ok(model) => model,
        Err(failure) => {
            context.output.warn(&failure.message);
            None
        }
    };
    used.iter()
        .for_each(|used| used.warn_of_ignored(&*context.session.person));
    let rows = match provider {
        Some(provider) => of_one(&config, used.as_ref(), provider)?,
        None => of_all(context, &config, used.as_ref())?,
    };
    if context.output.is_json() {
        context
            .output
            .json(&rows.iter().map(Row::document).collect::<Vec<_>>())?;
        return Ok(Code::Done);
    }
    let header = ["", "model", "tokens", "takes", "known from", "alias"]
        .map(str::to_owned)
        .to_vec();
    let lines: Vec<_> = std::iter::once(header)
        .chain(rows.iter().map(Row::cells))
        .collect();
    table(&lines)
        .iter()
        .try_for_each(|line| context.output.line(line.trim_end()))?;
    match &used {
        Some(used) => context.output.hint(&format!(
            "{} answers; `jp query --model MODEL` chooses another.",
            used.label
        )),
        None => context
            .output
            .hint("no model is chosen: `jp query --model MODEL`, or set assistant.model.id."),
    }
    Ok(Code::Done)
}

/// Lists the models of one provider, or says why that can't be.
fn of_one(config: &Resolved, used: Option<&Model>, provider: &str) -> Result<Vec<Row>, Failure> {
    let asked = Asked::new(config, provider, LIST_TIMEOUT)?;
    let listed = runtime()?.block_on(models::list(&asked.model.endpoint, asked.limit))?;
    if listed.is_empty() {
        return Err(Failure::new(format!(
            "{provider} at {} lists no model",
            asked.model.endpoint.base_url
        )));
    }
    rows(config, provider, listed, used)
}

/// Lists the models of every provider that is set up; the others are left out, those that fail with a warning.
fn of_all(
    context: &Context<'_>,
    config: &Resolved,
    used: Option<&Model>,
) -> Result<Vec<Row>, Failure> {
    let mut asked = Vec::new();
    for provider in providers(config, used) {
        let is_set_up = is_set_up(config, used, &provider);
        let limit = if is_set_up {
            LIST_TIMEOUT
        } else {
            PROBE_TIMEOUT
        };
        match Asked::new(config, &provider, limit) {
            // A workspace can come from anywhere: what it names is not reached unless the person asks for it.
            Ok(Asked {
                model:
                    Model {
                        warning: Some(_),
                        endpoint,
                        ..
                    },
                ..
            }) => {
                let reason = format!(
                    "the workspace has it at {}; `jp model ls {provider}` asks there",
                    endpoint.base_url
                );
                warn(context, &provider, &reason);
            }
            Ok(one) => asked.push((provider, is_set_up, one)),
            Err(failure) => warn(context, &provider, &failure.message),
        }
    }
    let endpoints: Vec<_> = asked
        .iter()
        .map(|(.., one)| (&one.model.endpoint, one.limit))
        .collect();
    let lists = runtime()?.block_on(models::list_each(&endpoints));
    let mut all = Vec::new();
    for ((provider, is_set_up, _), listed) in asked.iter().zip(lists) {
        match listed {
            Ok(listed) => all.extend(rows(config, provider, listed, used)?),
            Err(error) if *is_set_up => {
                warn(context, provider, &format!("failed to {}", chain(&error)))
            }
            // Nobody said that there should be one.
            Err(_) => {}
        }
    }
    if let Some(used) = used.filter(|_| !all.iter().any(|row| row.is_used)) {
        let warning = format!(
            "{} would answer, but its provider does not list it",
            used.label
        );
        context.output.warn(&warning);
        all.insert(0, Row::new(config, used, Facts::default(), true));
    }
    if all.is_empty() {
        Err(no_model().into())
    } else {
        Ok(all)
    }
}

fn warn(context: &Context<'_>, provider: &str, reason: &str) {
    context.output.warn(&without_credentials(&format!(
        "the models of {provider} are not listed: {reason}"
    )));
}

/// A provider to be asked for its models.
struct Asked {
    model: Model,
    limit: Duration,
}

impl Asked {
    fn new(config: &Resolved, provider: &str, limit: Duration) -> Result<Self, Failure> {
        let mut model = of_provider(config, provider, "")?;
        model.add_key(config)?;
        Ok(Self { model, limit })
    }
}

/// Returns the providers that may have models for this person, by name.
fn providers(config: &Resolved, used: Option<&Model>) -> BTreeSet<String> {
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
    let key = usual_key_variable(provider).and_then(|variable| std::env::var(variable).ok());
    key.is_some_and(|key| !key.trim().is_empty())
}

/// Returns whether the person said that a provider should be there.
fn is_set_up(config: &Resolved, used: Option<&Model>, provider: &str) -> bool {
    let is_local = USUAL.iter().any(|usual| usual.provider == provider);
    let is_used = used.is_some_and(|model| model.endpoint.provider == provider);
    !is_local || is_used || config.config.providers.llm.contains_key(provider)
}

/// A model that may be asked.
struct Row {
    id: String,
    is_used: bool,
    aliases: Vec<String>,
    facts: Facts,
    /// Who says so.
    known_from: Vec<&'static str>,
}

fn rows(
    config: &Resolved,
    provider: &str,
    listed: Vec<Listed>,
    used: Option<&Model>,
) -> Result<Vec<Row>, Failure> {
    let row = |listed: Listed| {
        let model = of_provider(config, provider, &listed.name)?;
        let is_used = used.is_some_and(|used| used.label == model.label);
        Ok(Row::new(config, &model, listed.facts, is_used))
    };
    listed.into_iter().map(row).collect()
}

impl Row {
    fn new(config: &Resolved, model: &Model, said: Facts, is_used: bool) -> Self {
        let format = model.endpoint.format;
        let documented = if matches!(format, Format::Chat | Format::Ollama) {
            "assumed"
        } else {
            "documentation"
        };
        let sources = [("configuration", model.configured), ("provider", said)];
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
                .or(said)
                .or(models::built_in(format, &model.endpoint.model)),
            known_from: sources.chain([documented]).collect(),
        }
    }

    fn takes(&self) -> [(&'static str, bool); 7] {
        let takes = self.facts.capabilities();
        [
            ("images", takes.images),
            ("pdf", takes.pdf),
            ("files", takes.files),
            ("audio", takes.audio),
            ("binary_results", takes.binary_results),
            ("schema", takes.schema),
            ("tools", takes.tools),
        ]
    }

    fn cells(&self) -> Vec<String> {
        let takes = self
            .takes()
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

    fn document(&self) -> Value {
        let takes: serde_json::Map<_, _> = self
            .takes()
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
