use std::{fmt, time::Duration};

use crate::{BaseUrl, Format, Server, retry};

/// Where requests go and how long to wait there.
#[derive(Debug, Clone)]
pub struct Endpoint {
    /// What the provider is called: `llamacpp`, `ollama`, or the name the configuration gives it.
    pub provider: String,
    /// The server's root.
    pub base_url: BaseUrl,
    /// What is spoken there.
    pub format: Format,
    /// The model, as the server calls it.
    pub model: String,
    /// Sent in the header that the format has for it.
    pub api_key: Option<Secret>,
    /// How long the answer may take to begin once the request is sent: a small machine reads a long prompt slowly. It
    /// is also how long the server may take no more of the request.
    pub first_byte_timeout: Duration,
    /// How long nothing may come once the answer has begun.
    pub idle_timeout: Duration,
    /// How many bytes an answer may have on the wire.
    pub max_response_bytes: u64,
    /// When to try again.
    pub retry: retry::Policy,
}

/// A key that no `Debug` output, event or error shows.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

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

    /// Returns what errors call the server.
    pub(crate) fn server(&self) -> Server {
        Server {
            provider: self.provider.clone(),
            base_url: self.base_url.to_string(),
        }
    }

    /// Takes the key out of a text that came from the server.
    pub(crate) fn redact(&self, text: &str) -> String {
        match &self.api_key {
            Some(Secret(key)) if !key.is_empty() => text.replace(key, "[api key]"),
            _ => text.to_owned(),
        }
    }
}

impl Secret {
    /// Wraps a key.
    pub fn new(key: impl Into<String>) -> Self {
        Self(key.into())
    }

    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
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
