use std::time::Duration;

use crate::{BaseUrl, Format, Secret, Server, retry};

/// A server and a model, with the limits of waiting for them.
#[derive(Debug, Clone)]
pub struct Endpoint {
    /// The provider's name: `llamacpp`, `ollama`, or the one that the configuration gives it.
    pub provider: String,
    /// The server's root.
    pub base_url: BaseUrl,
    /// The wire format that the server speaks.
    pub format: Format,
    /// The model, as the server calls it.
    pub model: String,
    /// Sent in the header that the format has for it.
    pub api_key: Option<Secret>,
    /// Longest wait for the answer to begin once the request is sent: a small machine reads a long prompt slowly. Also the
    /// longest time in which the server takes nothing of the request.
    pub first_byte_timeout: Duration,
    /// Longest silence once the answer has begun.
    pub idle_timeout: Duration,
    /// Most bytes of an answer on the wire.
    pub max_response_bytes: u64,
    /// The rules of trying again.
    pub retry: retry::Policy,
}

impl Endpoint {
    /// Makes an endpoint with the provider's format, without a key, with 10 minutes for the answer to begin, 2 between
    /// its bytes, and 128 MB for all of it.
    pub fn new(provider: impl Into<String>, base_url: BaseUrl, model: impl Into<String>) -> Self {
        let provider = provider.into();
        Self {
            format: Format::of_provider(&provider),
            provider,
            base_url,
            model: model.into(),
            api_key: None,
            first_byte_timeout: Duration::from_secs(600),
            idle_timeout: Duration::from_secs(120),
            max_response_bytes: 128 << 20,
            retry: retry::Policy::default(),
        }
    }

    /// Returns the server's name for errors.
    pub(crate) fn server(&self) -> Server {
        Server {
            provider: self.provider.clone(),
            base_url: self.base_url.to_string(),
        }
    }

    /// Takes the key out of a text that came from the server.
    pub(crate) fn redact(&self, text: &str) -> String {
        match &self.api_key {
            Some(key) if !key.expose().is_empty() => text.replace(key.expose(), "[api key]"),
            _ => text.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_output_does_not_show_the_key() {
        let mut endpoint = Endpoint::new("p", BaseUrl::parse("http://localhost").unwrap(), "m");
        endpoint.api_key = Some(Secret::new("sk-1"));
        assert!(!format!("{endpoint:?}").contains("sk-1"));
        assert_eq!(endpoint.redact("bad key sk-1!"), "bad key [api key]!");
    }
}
