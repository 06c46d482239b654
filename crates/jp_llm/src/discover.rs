//! What runs on this machine, and what its model takes.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::{BaseUrl, Capabilities, Client, Endpoint, Error, Format};

/// How long a server on this machine may take to say what it has.
pub const PROBE_TIMEOUT: Duration = Duration::from_millis(300);

/// How long a server may take to say what one model takes: Ollama reads the model's file, others are far away.
pub const MODEL_TIMEOUT: Duration = Duration::from_secs(3);

/// Where the usual servers listen, the preferred one first.
pub const USUAL: [Candidate<'static>; 2] = [
    Candidate { provider: "llamacpp", base_url: "http://127.0.0.1:8080" },
    Candidate { provider: "ollama", base_url: "http://127.0.0.1:11434" },
];

/// A place where a server might be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Candidate<'a> {
    /// The provider's name.
    pub provider: &'a str,
    /// The server's root.
    pub base_url: &'a str,
}

/// A server that answers, with a model it has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The provider's name.
    pub provider: String,
    /// The server's root.
    pub base_url: BaseUrl,
    /// The first model it lists.
    pub model: String,
}

/// Lists a server's models, in its order.
pub async fn models(base_url: &BaseUrl, limit: Duration) -> Result<Vec<String>, Error> {
    let list = prober("a model server", base_url)?.get_json("v1/models", limit).await?;
    Ok(model_ids(&list))
}

/// Returns the first of the candidates that answers within [`PROBE_TIMEOUT`] and has a model.
///
/// All are asked at the same time. [`USUAL`] is what to ask without any configuration.
pub async fn find_local(candidates: &[Candidate<'_>]) -> Option<Found> {
    join_all(candidates.iter().map(probe)).await.into_iter().flatten().next()
}

/// Asks an endpoint's server what its model takes beside text, in the way of its provider.
///
/// A server that does not say is assumed to take images; what a provider takes for every model needs no asking.
pub async fn model_capabilities(endpoint: &Endpoint) -> Capabilities {
    match endpoint.format {
        Format::Chat => capabilities(&endpoint.base_url).await,
        Format::Ollama => ollama_capabilities(endpoint).await,
        Format::OpenRouter => openrouter_capabilities(endpoint).await,
        Format::Anthropic | Format::Gemini | Format::OpenAi => known(endpoint.format, &endpoint.model),
    }
}

/// Returns what the models of the providers that say nothing of it take, by their documentation.
fn known(format: Format, model: &str) -> Capabilities {
    const TEXT_ONLY: [&str; 5] = ["gpt-3.5", "gpt-4-0", "o1-mini", "o1-preview", "o3-mini"];
    let is_text_only = TEXT_ONLY.iter().any(|start| model.starts_with(start)) || model == "gpt-4";
    let sees = !(format == Format::OpenAi && is_text_only);
    let files = sees && format == Format::OpenAi;
    let audio = format == Format::Gemini;
    Capabilities { images: sees, pdf: sees, files, audio, binary_results: sees, schema: true }
}

/// Asks `/api/show`, whose `capabilities` name `vision`.
async fn ollama_capabilities(endpoint: &Endpoint) -> Capabilities {
    let show = match Client::new(endpoint.clone()) {
        Ok(client) => {
            client.post_json("api/show", &json!({"model": endpoint.model}), MODEL_TIMEOUT).await.ok()
        }
        Err(_) => None,
    };
    let images = show.as_ref().and_then(|show| says(show, "/capabilities", "vision")).unwrap_or(true);
    Capabilities { images, schema: true, ..Capabilities::default() }
}

/// Asks for the model's `input_modalities`. PDF is taken always: OpenRouter reads it to models that can't.
async fn openrouter_capabilities(endpoint: &Endpoint) -> Capabilities {
    let path = format!("v1/models/{}/endpoints", endpoint.model);
    let model = match Client::new(endpoint.clone()) {
        Ok(client) => client.get_json(&path, MODEL_TIMEOUT).await.ok(),
        Err(_) => None,
    };
    let says = |modality| says(model.as_ref()?, "/data/architecture/input_modalities", modality);
    let (images, audio) = (says("image").unwrap_or(true), says("audio").unwrap_or(false));
    Capabilities { images, pdf: true, audio, binary_results: true, schema: true, ..Capabilities::default() }
}

/// Returns whether the list at `pointer` has a word; `None` where there is no list.
fn says(document: &Value, pointer: &str, word: &str) -> Option<bool> {
    let list = document.pointer(pointer)?.as_array()?;
    Some(list.iter().any(|item| item == word))
}

/// Asks a llama.cpp server what its model takes beside text.
///
/// Images if the list of models says `multimodal` or the server's properties say `vision`; a server
/// that says nothing of the kind is assumed to take them. PDF never.
pub async fn capabilities(base_url: &BaseUrl) -> Capabilities {
    let Ok(client) = prober("a model server", base_url) else {
        return Capabilities { images: true, ..Capabilities::default() };
    };
    let ask = |path| client.get_json(path, PROBE_TIMEOUT);
    let (models, properties) = tokio::join!(ask("v1/models"), ask("props"));
    let multimodal = models.ok().as_ref().and_then(says_multimodal);
    let vision = properties.ok().and_then(|properties| properties.pointer("/modalities/vision")?.as_bool());
    let images = match (multimodal, vision) {
        (None, None) => true,
        (multimodal, vision) => multimodal.unwrap_or(false) || vision.unwrap_or(false),
    };
    Capabilities { images, ..Capabilities::default() }
}

async fn probe(candidate: &Candidate<'_>) -> Option<Found> {
    let base_url = BaseUrl::parse(candidate.base_url).ok()?;
    let client = prober(candidate.provider, &base_url).ok()?;
    let list = client.get_json("v1/models", PROBE_TIMEOUT).await.ok()?;
    let model = model_ids(&list).into_iter().next()?;
    Some(Found { provider: candidate.provider.to_owned(), base_url, model })
}

fn prober(provider: &str, base_url: &BaseUrl) -> Result<Client, Error> {
    Client::new(Endpoint::new(provider, base_url.clone(), ""))
}

fn model_ids(list: &Value) -> Vec<String> {
    let models = list.get("data").and_then(Value::as_array).into_iter().flatten();
    models.filter_map(|model| model.get("id")?.as_str()).map(str::to_owned).collect()
}

/// Reads llama.cpp's own list beside the standard one; `None` where there is none.
fn says_multimodal(list: &Value) -> Option<bool> {
    let mut capabilities = list
        .get("models")?
        .as_array()?
        .iter()
        .filter_map(|model| model.get("capabilities")?.as_array())
        .peekable();
    capabilities.peek()?;
    Some(capabilities.flatten().any(|capability| capability == "multimodal"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Reply, Server, block_on, unused_url};

    fn llamacpp(capabilities: &str, properties: &str) -> Server {
        let models =
            format!(r#"{{"models":[{{"capabilities":[{capabilities}]}}],"data":[{{"id":"qwen3"}}]}}"#);
        Server::routed(vec![
            ("/v1/models", Reply::json(200, &models)),
            ("/props", Reply::json(200, properties)),
        ])
    }

    fn ollama(models: &str) -> Server {
        Server::routed(vec![("/v1/models", Reply::json(200, models))])
    }

    fn found(first: &str, second: &str) -> Option<(String, String)> {
        let candidates = [
            Candidate { provider: "llamacpp", base_url: first },
            Candidate { provider: "ollama", base_url: second },
        ];
        block_on(find_local(&candidates)).map(|found| (found.provider, found.model))
    }

    #[test]
    fn first_server_with_a_model_is_found() {
        let llamacpp = llamacpp("", "{}");
        let ollama_server = ollama(r#"{"data":[{"id":"gemma3"},{"id":"other"}]}"#);
        let empty = ollama(r#"{"data":null}"#);
        let expect = |provider: &str, model: &str| Some((provider.to_owned(), model.to_owned()));
        assert_eq!(found(llamacpp.url(), ollama_server.url()), expect("llamacpp", "qwen3"));
        assert_eq!(found(&unused_url(), ollama_server.url()), expect("ollama", "gemma3"));
        assert_eq!(found(&unused_url(), empty.url()), None);
    }

    #[test]
    fn server_that_hangs_delays_but_does_not_hide_the_other() {
        let hanging = Server::new(vec![Reply::hang()]);
        let ollama = ollama(r#"{"data":[{"id":"gemma3"}]}"#);
        assert_eq!(found(hanging.url(), ollama.url()), Some(("ollama".to_owned(), "gemma3".to_owned())));
    }

    #[test]
    fn models_are_listed_in_order_or_the_error_names_the_server() {
        let ollama = ollama(r#"{"data":[{"id":"b"},{"id":"a"}]}"#);
        let list = |url: &str| block_on(models(&BaseUrl::parse(url).unwrap(), PROBE_TIMEOUT));
        assert_eq!(list(ollama.url()).unwrap(), ["b", "a"]);
        let nobody = unused_url();
        let error = list(&nobody).unwrap_err().to_string();
        assert_eq!(error, format!("reach a model server at {nobody}: connection refused"));
    }

    #[test]
    fn images_are_taken_if_the_server_says_so_or_nothing() {
        for (server, images) in [
            (llamacpp(r#""completion""#, r#"{"modalities":{"vision":false}}"#), false),
            (llamacpp(r#""completion""#, "{}"), false),
            (llamacpp(r#""completion","multimodal""#, "{}"), true),
            (llamacpp(r#""completion""#, r#"{"modalities":{"vision":true}}"#), true),
            (ollama(r#"{"data":[]}"#), true),
        ] {
            let base_url = BaseUrl::parse(server.url()).unwrap();
            assert_eq!(block_on(capabilities(&base_url)), Capabilities { images, ..Capabilities::default() });
        }
    }

    #[test]
    fn ollama_is_asked_about_the_model_itself() {
        for (show, images) in [
            (r#"{"capabilities":["completion","tools","vision"]}"#, true),
            (r#"{"capabilities":["completion","thinking"]}"#, false),
            (r#"{"details":{}}"#, true),
        ] {
            let server = Server::routed(vec![("/api/show", Reply::json(200, show))]);
            let endpoint = Endpoint::new("ollama", BaseUrl::parse(server.url()).unwrap(), "gemma3");
            let expected = Capabilities { images, schema: true, ..Capabilities::default() };
            assert_eq!(block_on(model_capabilities(&endpoint)), expected);
            let received = &server.received()[0];
            assert!(received.head.starts_with("post /api/show "), "{}", received.head);
            assert_eq!(received.body, br#"{"model":"gemma3"}"#);
        }
    }

    #[test]
    fn openrouter_says_what_a_model_reads() {
        let path = "/api/v1/models/a/b/endpoints";
        for (model, images, audio) in [
            (r#"{"data":{"architecture":{"input_modalities":["text","image","audio"]}}}"#, true, true),
            (r#"{"data":{"architecture":{"input_modalities":["text"]}}}"#, false, false),
            ("{}", true, false),
        ] {
            let server = Server::routed(vec![(path, Reply::json(200, model))]);
            let base_url = BaseUrl::parse(&format!("{}/api/v1", server.url())).unwrap();
            let endpoint = Endpoint::new("openrouter", base_url, "a/b");
            let all =
                Capabilities { pdf: true, binary_results: true, schema: true, ..Capabilities::default() };
            assert_eq!(block_on(model_capabilities(&endpoint)), Capabilities { images, audio, ..all });
        }
    }

    #[test]
    fn llamacpp_is_asked_as_before_and_nobody_is_assumed_to_take_images() {
        let server = llamacpp(r#""completion""#, "{}");
        let endpoint = |url: &str, provider| Endpoint::new(provider, BaseUrl::parse(url).unwrap(), "m");
        assert!(!block_on(model_capabilities(&endpoint(server.url(), "llamacpp"))).images);
        for provider in ["llamacpp", "ollama", "openrouter"] {
            assert!(block_on(model_capabilities(&endpoint(&unused_url(), provider))).images);
        }
    }
}
