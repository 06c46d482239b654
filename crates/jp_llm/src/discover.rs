//! Finds the model servers that run on this machine.

use std::time::Duration;

use futures_util::future::join_all;

use crate::{BaseUrl, Client, Endpoint};

/// Longest time in which a server on this machine lists its models. All are asked at once, so it is also the delay of a
/// start without any configuration.
pub const PROBE_TIMEOUT: Duration = Duration::from_millis(300);

/// The default addresses of the usual servers, the preferred one first.
pub const USUAL: [Candidate<'static>; 2] = [
    Candidate {
        provider: "llamacpp",
        base_url: "http://127.0.0.1:8080",
    },
    Candidate {
        provider: "ollama",
        base_url: "http://127.0.0.1:11434",
    },
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

/// Returns the first of the candidates that answers within [`PROBE_TIMEOUT`] and has a model.
///
/// All are asked at the same time. [`USUAL`] is what to ask without any configuration.
pub async fn find_local(candidates: &[Candidate<'_>]) -> Option<Found> {
    join_all(candidates.iter().map(probe))
        .await
        .into_iter()
        .flatten()
        .next()
}

async fn probe(candidate: &Candidate<'_>) -> Option<Found> {
    let base_url = BaseUrl::parse(candidate.base_url).ok()?;
    let client = Client::new(Endpoint::new(candidate.provider, base_url.clone(), "")).ok()?;
    let list = client.get_json("v1/models", PROBE_TIMEOUT).await.ok()?;
    let model = list.pointer("/data/0/id")?.as_str()?.to_owned();
    Some(Found {
        provider: candidate.provider.to_owned(),
        base_url,
        model,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use testing::{Reply, Server, UNUSED_URL, block_on};

    fn listing(models: &str) -> Server {
        Server::routed(vec![("/v1/models", Reply::json(200, models))])
    }

    fn found(first: &str, second: &str) -> Option<(String, String)> {
        let candidates = [
            Candidate {
                provider: "llamacpp",
                base_url: first,
            },
            Candidate {
                provider: "ollama",
                base_url: second,
            },
        ];
        block_on(find_local(&candidates)).map(|found| (found.provider, found.model))
    }

    #[test]
    fn first_server_with_a_model_is_found() {
        let llamacpp = listing(r#"{"data":[{"id":"qwen3"}]}"#);
        let ollama_server = listing(r#"{"data":[{"id":"gemma3"},{"id":"other"}]}"#);
        let empty = listing(r#"{"data":null}"#);
        let expect = |provider: &str, model: &str| Some((provider.to_owned(), model.to_owned()));
        assert_eq!(
            found(llamacpp.url(), ollama_server.url()),
            expect("llamacpp", "qwen3")
        );
        assert_eq!(
            found(UNUSED_URL, ollama_server.url()),
            expect("ollama", "gemma3")
        );
        assert_eq!(found(UNUSED_URL, empty.url()), None);
    }

    #[test]
    fn server_that_hangs_delays_but_does_not_hide_the_other() {
        let hanging = Server::new(vec![Reply::hang()]);
        let ollama = listing(r#"{"data":[{"id":"gemma3"}]}"#);
        assert_eq!(
            found(hanging.url(), ollama.url()),
            Some(("ollama".to_owned(), "gemma3".to_owned()))
        );
    }
}
