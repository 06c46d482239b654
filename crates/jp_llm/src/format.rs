use std::io::Write;

use reqwest::RequestBuilder;

use crate::{Contents, Decoder, Error, Note, Request, Secret, chat, gemini, openai};

/// A provider's wire format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Chat Completions: llama.cpp and compatible servers.
    Chat,
    /// Google Gemini's `streamGenerateContent`.
    Gemini,
    /// OpenAI's Responses.
    OpenAi,
}

impl Format {
    /// Returns the format that a provider of this name speaks; Chat Completions where none is known.
    #[must_use]
    pub fn of_provider(provider: &str) -> Self {
        match provider {
            "google" => Self::Gemini,
            "openai" => Self::OpenAi,
            _ => Self::Chat,
        }
    }

    /// Writes a request's JSON and returns what the model is told of but not shown.
    ///
    /// Equal requests give equal bytes, and what a request says of the history is a prefix of what the next
    /// one says. One payload is in memory at a time; `out` should be buffered.
    pub fn encode(
        self,
        request: &Request<'_>,
        contents: &mut dyn Contents,
        out: &mut dyn Write,
    ) -> Result<Vec<Note>, Error> {
        match self {
            Self::Chat => chat::encode(request, contents, out),
            Self::Gemini => gemini::encode(request, contents, out),
            Self::OpenAi => openai::encode(request, contents, out),
        }
    }

    /// Returns what reads the answer's stream.
    #[must_use]
    pub fn decoder(self) -> Decoder {
        match self {
            Self::Chat => chat::decoder(),
            Self::Gemini => gemini::decoder(),
            Self::OpenAi => openai::decoder(),
        }
    }

    /// Returns where requests for a model go, below the server's root.
    pub(crate) fn path(self, model: &str) -> String {
        match self {
            Self::Chat => "v1/chat/completions".to_owned(),
            Self::Gemini => gemini::path(model),
            Self::OpenAi => "v1/responses".to_owned(),
        }
    }

    /// Adds the key, and the headers that the format wants on every request.
    pub(crate) fn authorize(self, request: RequestBuilder, key: Option<&Secret>) -> RequestBuilder {
        match (self, key) {
            (Self::Chat | Self::OpenAi, Some(key)) => request.bearer_auth(key.expose()),
            (Self::Gemini, Some(key)) => request.header("x-goog-api-key", key.expose()),
            (_, None) => request,
        }
    }
}
