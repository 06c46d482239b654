use serde_json::Value;

/// Why a server refuses a request which it would refuse again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// The key is missing, unknown or of no use any more.
    Key,
    /// The server has no such model, or not for this key.
    Model,
    /// The model takes no images, or not those.
    Images,
    /// The model takes no tools, or the server was not started for it.
    Tools,
    /// The answer may not be as long as the request allows.
    Output,
    /// The request is longer than the model, or the server, takes.
    TooLong {
        /// Number of tokens it has, if the server says so.
        tokens: Option<u64>,
        /// Most tokens of a request, if the server says so.
        limit: Option<u64>,
    },
}

impl Refusal {
    /// Reads an error object or a plain text; `None` if it is about none of these.
    ///
    /// The machine code decides, if there is one; most servers only send words.
    pub(crate) fn read(status: Option<u16>, error: &Value) -> Option<Self> {
        let said = Said {
            status,
            codes: codes(error),
            text: text(error),
        };
        if said.names_key() {
            Some(Self::Key)
        } else if said.names_output() {
            Some(Self::Output)
        } else if said.names_length() {
            Some(too_long(status, error, &said.text))
        } else if said.names_tools() {
            Some(Self::Tools)
        } else if said.names_images() {
            Some(Self::Images)
        } else if said.names_model() {
            Some(Self::Model)
        } else {
            None
        }
    }
}

/// The words of a server, in lower case.
struct Said {
    /// The HTTP status, if there is one.
    status: Option<u16>,
    codes: Vec<String>,
    text: String,
}

impl Said {
    fn names_key(&self) -> bool {
        const WORDS: [&str; 6] = [
            "api key not valid",
            "api key not found",
            "api key expired",
            "invalid api key",
            "incorrect api key",
            "unregistered callers",
        ];
        self.status == Some(401)
            || self.has_code(&["invalid_api_key", "authentication_error"])
            || self.codes.iter().any(|code| code.starts_with("api_key_"))
            || self.status == Some(403) && self.says(&["api key"])
            || self.says(&WORDS)
    }

    /// The limit of the answer alone, as vLLM and Anthropic put it; a sum with the prompt is too long.
    fn names_output(&self) -> bool {
        const LIMITS: [&str; 3] = ["max_tokens", "max_completion_tokens", "max_output_tokens"];
        let is_wrong = ["is too large", "maximum allowed number of output tokens"];
        matches!(self.status, None | Some(400 | 422)) && self.says(&LIMITS) && self.says(&is_wrong)
    }

    /// As llama.cpp, Ollama, vLLM, OpenRouter, Google and others put it.
    fn names_tools(&self) -> bool {
        const WORDS: [&str; 10] = [
            "tools param requires",
            "unsupported param: tools",
            "does not support tools",
            "does not support tool ",
            "does not support function",
            "support tool use",
            "tool choice requires",
            "function calling is not enabled",
            "function calling is not supported",
            "tool calling is not supported",
        ];
        matches!(self.status, None | Some(400 | 404 | 422 | 500 | 501)) && self.says(&WORDS)
    }

    fn names_images(&self) -> bool {
        const WORDS: [&str; 4] = [
            "image input is not supported",
            "support image input",
            "does not support images",
            "does not support image",
        ];
        matches!(self.status, None | Some(400 | 404 | 422 | 500)) && self.says(&WORDS)
    }

    fn names_length(&self) -> bool {
        const WORDS: [&str; 9] = [
            "prompt is too long",
            "context window",
            "context length",
            "context limit",
            "context size",
            "maximum prompt length",
            "input token count",
            "maximum number of tokens",
            "request payload size exceeds",
        ];
        match self.status {
            Some(413) => true,
            _ if self.has_code(&[
                "context_length_exceeded",
                "exceed_context_size_error",
                "request_too_large",
                "string_above_max_length",
            ]) =>
            {
                true
            }
            // More than the tokens of a minute in one request: waiting does not help.
            Some(429) => self.says(&["request too large for"]),
            None | Some(400 | 422 | 500) => self.says(&WORDS),
            Some(_) => false,
        }
    }

    fn names_model(&self) -> bool {
        const MISSING: [&str; 5] = [
            "not found",
            "does not exist",
            "not a valid model",
            "unknown model",
            "no such model",
        ];
        let is_missing = self.says(&["model"]) && self.says(&MISSING)
            || self.says(&["no endpoints found for"])
            || self.has_code(&["not_found_error"])
                && (self.text.starts_with("model:") || self.says(&["is not available"]));
        self.has_code(&["model_not_found"])
            || matches!(self.status, None | Some(400 | 404)) && is_missing
    }

    fn has_code(&self, codes: &[&str]) -> bool {
        self.codes.iter().any(|code| codes.contains(&code.as_str()))
    }

    fn says(&self, words: &[&str]) -> bool {
        words.iter().any(|words| self.text.contains(words))
    }
}

/// Returns the machine codes of an error, Google's reasons with them.
fn codes(error: &Value) -> Vec<String> {
    let fields = ["code", "type", "status"]
        .into_iter()
        .filter_map(|field| error.get(field));
    let details = error
        .get("details")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    let reasons = details.filter_map(|detail| detail.get("reason"));
    fields
        .chain(reasons)
        .filter_map(Value::as_str)
        .map(str::to_lowercase)
        .collect()
}

/// Returns the words of an error; OpenRouter's with those of the provider that it asked.
fn text(error: &Value) -> String {
    let texts = [
        error.as_str(),
        message(error),
        error.pointer("/metadata/raw").and_then(Value::as_str),
    ];
    texts
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join(" ")
        .to_lowercase()
}

fn message(error: &Value) -> Option<&str> {
    ["message", "detail"]
        .into_iter()
        .find_map(|field| error.get(field)?.as_str())
}

/// Reads the figures: llama.cpp's fields, else the numbers of the text.
fn too_long(status: Option<u16>, error: &Value, text: &str) -> Refusal {
    // A limit of bytes is none of tokens.
    let counts_tokens = text.contains("token") && !text.contains("bytes") && status != Some(413);
    let mut figures = if counts_tokens {
        figures(text)
    } else {
        Vec::new()
    };
    figures.sort_unstable();
    figures.dedup();
    // The request is the larger one, or it would not be too long; servers that give one number give the limit.
    let (tokens, limit) = match figures[..] {
        [] => (None, None),
        [limit] => (None, Some(limit)),
        [.., limit, tokens] => (Some(tokens), Some(limit)),
    };
    Refusal::TooLong {
        tokens: error["n_prompt_tokens"].as_u64().or(tokens),
        limit: error["n_ctx"].as_u64().or(limit),
    }
}

/// Returns the whole numbers of a text, sums as one: `143653 + 64000 > 200000`.
fn figures(text: &str) -> Vec<u64> {
    let mut figures: Vec<u64> = Vec::new();
    let mut is_added = false;
    for word in text.split_whitespace() {
        let number = word
            .trim_matches(is_punctuation)
            .replace(',', "")
            .parse::<u64>()
            .ok();
        match (number, figures.last_mut()) {
            (Some(number), Some(last)) if is_added => *last = last.saturating_add(number),
            (number, _) => figures.extend(number),
        }
        is_added = word == "+";
    }
    figures
}

/// Returns whether a character is around a number, and no part of a name such as `gpt-5`.
fn is_punctuation(character: char) -> bool {
    character.is_ascii_punctuation() && !matches!(character, '-' | '_')
}

#[cfg(test)]
mod tests;
