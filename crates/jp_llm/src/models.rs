//! The models of a provider, and the capabilities of each.
//!
//! Facts about a model come from three sources: the configuration, the provider itself ([`list`], [`ask`]) and a small
//! table taken from the providers' documentation ([`built_in`]). [`Facts::or`] puts them together.

mod description;

use std::time::Duration;

use futures_util::future::join_all;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{Capabilities, Client, Endpoint, Error, Format, http};

/// Facts about a model from one source; `None` if the source doesn't say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Facts {
    /// True if it takes PNG, JPEG, GIF and WebP images.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub images: Option<bool>,
    /// True if it takes PDF documents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pdf: Option<bool>,
    /// True if it takes office documents and other files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub files: Option<bool>,
    /// True if it takes audio.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audio: Option<bool>,
    /// True if it takes images and documents in the results of tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub binary_results: Option<bool>,
    /// True if its answers can be made to fit a JSON Schema.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<bool>,
    /// True if it calls tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<bool>,
    /// Most tokens of a request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_tokens: Option<u64>,
    /// Most tokens of an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u64>,
}

/// A model in a provider's list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Its name at the provider.
    pub name: String,
    /// The facts that the list gives.
    pub facts: Facts,
}

impl Facts {
    /// Returns these facts, completed from `others`.
    #[must_use]
    pub fn or(self, others: Self) -> Self {
        Self {
            images: self.images.or(others.images),
            pdf: self.pdf.or(others.pdf),
            files: self.files.or(others.files),
            audio: self.audio.or(others.audio),
            binary_results: self.binary_results.or(others.binary_results),
            schema: self.schema.or(others.schema),
            tools: self.tools.or(others.tools),
            context_tokens: self.context_tokens.or(others.context_tokens),
            max_output_tokens: self.max_output_tokens.or(others.max_output_tokens),
        }
    }

    /// Returns the model's capabilities. Without a fact it takes only text, and tools: most models call them, and a server
    /// says so if one doesn't.
    #[must_use]
    pub fn capabilities(&self) -> Capabilities {
        Capabilities {
            images: self.images.unwrap_or(false),
            pdf: self.pdf.unwrap_or(false),
            files: self.files.unwrap_or(false),
            audio: self.audio.unwrap_or(false),
            binary_results: self.binary_results.unwrap_or(false),
            schema: self.schema.unwrap_or(false),
            tools: self.tools.unwrap_or(true),
        }
    }
}

/// Returns the facts of a model from its provider's documentation. Models of local servers are assumed to take images
/// (design 08, "Providers") and tools.
#[must_use]
pub fn built_in(format: Format, model: &str) -> Facts {
    const TEXT_ONLY: [&str; 7] = [
        "gpt-3.5",
        "gpt-4-0",
        "gpt-4-1106",
        "gpt-4-32k",
        "o1-mini",
        "o1-preview",
        "o3-mini",
    ];
    let is_text_only = TEXT_ONLY.iter().any(|start| model.starts_with(start)) || model == "gpt-4";
    // Nobody knows what a local model takes, so images are assumed (design 08).
    let sees = !(format == Format::OpenAi && is_text_only);
    let is_hosted = !matches!(format, Format::Chat | Format::Ollama);
    Facts {
        images: Some(sees),
        // OpenRouter reads PDF to models that can't.
        pdf: Some(sees && is_hosted),
        files: Some(sees && format == Format::OpenAi),
        audio: Some(format == Format::Gemini),
        binary_results: Some(sees && is_hosted),
        schema: Some(!(format == Format::OpenAi && is_text_only)),
        tools: Some(true),
        context_tokens: None,
        max_output_tokens: None,
    }
}

/// Lists a provider's models that answer conversations, in its order.
///
/// Gives up after `limit`. If a server describes a model only on request, it is asked about all at the same time.
pub async fn list(endpoint: &Endpoint, limit: Duration) -> Result<Vec<Listed>, Error> {
    let client = &Client::new(endpoint.clone())?;
    let get = |path| client.get_json(path, limit);
    match endpoint.format {
        Format::Anthropic => Ok(description::anthropic_list(
            &get("v1/models?limit=1000").await?,
        )),
        Format::Gemini => Ok(description::gemini_list(
            &get("v1beta/models?pageSize=1000").await?,
        )),
        Format::OpenAi => Ok(description::openai_list(&get("v1/models").await?)),
        Format::OpenRouter => Ok(description::openrouter_list(&get("v1/models").await?)),
        Format::Chat => {
            let (models, properties) = tokio::join!(get("v1/models"), get("props"));
            Ok(description::chat_list(&models?, properties.ok().as_ref()))
        }
        Format::Ollama => {
            let names = description::ollama_names(&get("api/tags").await?);
            let facts = names.iter().map(|name| show(client, name, limit));
            let facts = join_all(facts)
                .await
                .into_iter()
                .map(Result::unwrap_or_default);
            Ok(names
                .iter()
                .cloned()
                .zip(facts)
                .map(|(name, facts)| Listed { name, facts })
                .collect())
        }
    }
}

/// Lists the models of several providers, all asked at the same time.
pub async fn list_each(asked: &[(&Endpoint, Duration)]) -> Vec<Result<Vec<Listed>, Error>> {
    join_all(asked.iter().map(|(endpoint, limit)| list(endpoint, *limit))).await
}

/// Returns whether a provider says what its models take beside text, so that [`ask`] asks it.
#[must_use]
pub fn says_what_it_takes(endpoint: &Endpoint) -> bool {
    match endpoint.format {
        Format::Anthropic | Format::OpenRouter | Format::Ollama => true,
        Format::Chat => endpoint.provider == "llamacpp",
        Format::Gemini | Format::OpenAi => false,
    }
}

/// Returns whether a provider says which of its models call tools: the others all do, as far as they converse.
#[must_use]
pub fn says_who_calls_tools(endpoint: &Endpoint) -> bool {
    endpoint.format != Format::Anthropic && says_what_it_takes(endpoint)
}

/// Asks a provider about the endpoint's model; returns no facts if the provider has no such request.
pub async fn ask(endpoint: &Endpoint, limit: Duration) -> Result<Facts, Error> {
    if !says_what_it_takes(endpoint) {
        return Ok(Facts::default());
    }
    let client = &Client::new(endpoint.clone())?;
    let (name, get) = (escape_name(&endpoint.model), |path: String| async move {
        client.get_json(&path, limit).await
    });
    match endpoint.format {
        Format::Anthropic => Ok(description::anthropic(
            &get(format!("v1/models/{name}")).await?,
        )),
        Format::OpenRouter => Ok(description::openrouter_one(
            &get(format!("v1/models/{name}/endpoints")).await?,
        )),
        Format::Ollama => show(client, &endpoint.model, limit).await,
        Format::Chat | Format::Gemini | Format::OpenAi => {
            let (models, properties) =
                tokio::join!(get("v1/models".to_owned()), get("props".to_owned()));
            match (models, properties) {
                (Err(error), Err(_)) => Err(error),
                (models, properties) => Ok(description::llamacpp(
                    models.ok().as_ref(),
                    properties.ok().as_ref(),
                )),
            }
        }
    }
}

/// Escapes a model's name for a path. OpenRouter's have slashes; what could lead elsewhere is left out.
fn escape_name(name: &str) -> String {
    let segments = name
        .split('/')
        .filter(|segment| !matches!(*segment, "" | "." | ".."));
    let segments = segments.map(|segment| http::percent_encode(segment).replace("%3A", ":"));
    segments.collect::<Vec<_>>().join("/")
}

async fn show(client: &Client, name: &str, limit: Duration) -> Result<Facts, Error> {
    let said: Value = client
        .post_json("api/show", &json!({"model": name}), limit)
        .await?;
    Ok(description::ollama(&said))
}

#[cfg(test)]
mod tests;
