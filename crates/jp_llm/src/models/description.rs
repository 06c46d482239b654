//! Reads the providers' descriptions of their models.

use serde_json::Value;

use super::{Facts, Listed};

/// Reads Anthropic's list: `data`, each an object of [`anthropic`].
pub(super) fn anthropic_list(list: &Value) -> Vec<Listed> {
    read_list(list, "/data", |model| {
        Some(Listed {
            name: text(model, "/id")?,
            facts: anthropic(model),
        })
    })
}

/// Reads a model of Anthropic's Models API, which may have `capabilities`.
pub(super) fn anthropic(model: &Value) -> Facts {
    Facts {
        images: flag(model, "/capabilities/image_input/supported"),
        pdf: flag(model, "/capabilities/pdf_input/supported"),
        schema: flag(model, "/capabilities/structured_outputs/supported"),
        context_tokens: number(model, "/max_input_tokens"),
        max_output_tokens: number(model, "/max_tokens"),
        ..Facts::default()
    }
}

/// Reads Gemini's list: the models that generate content, with their limits.
pub(super) fn gemini_list(list: &Value) -> Vec<Listed> {
    read_list(list, "/models", |model| {
        let name = text(model, "/name")?;
        let name = name.strip_prefix("models/").unwrap_or(&name).to_owned();
        let generates = words(model, "/supportedGenerationMethods");
        generates
            .is_none_or(|methods| methods.contains(&"generateContent"))
            .then_some(())?;
        let facts = Facts {
            context_tokens: number(model, "/inputTokenLimit"),
            max_output_tokens: number(model, "/outputTokenLimit"),
            ..Facts::default()
        };
        Some(Listed { name, facts })
    })
}

/// Reads OpenAI's list. It does not say what a model is for, so names decide which models can't hold a conversation.
pub(super) fn openai_list(list: &Value) -> Vec<Listed> {
    const OTHERS: [&str; 14] = [
        "babbage",
        "dall-e",
        "davinci",
        "embedding",
        "image",
        "instruct",
        "moderation",
        "realtime",
        "sora",
        "transcribe",
        "tts",
        "whisper",
        "-audio",
        "-search",
    ];
    read_list(list, "/data", |model| {
        let name =
            text(model, "/id").filter(|name| !OTHERS.iter().any(|other| name.contains(other)))?;
        Some(Listed {
            name,
            facts: Facts::default(),
        })
    })
}

pub(super) fn openrouter_list(list: &Value) -> Vec<Listed> {
    read_list(list, "/data", |model| {
        let limits = Facts {
            context_tokens: number(model, "/context_length"),
            max_output_tokens: number(model, "/top_provider/max_completion_tokens"),
            ..Facts::default()
        };
        let modalities = modalities(model, "/architecture/input_modalities");
        let facts = Facts {
            schema: takes_schema(model),
            tools: takes_tools(model),
            ..modalities
        };
        Some(Listed {
            name: text(model, "/id")?,
            facts: facts.or(limits),
        })
    })
}

/// Reads one model of OpenRouter. It takes what any of the endpoints takes that may serve it.
pub(super) fn openrouter_one(answer: &Value) -> Facts {
    let endpoints = answer
        .pointer("/data/endpoints")
        .and_then(Value::as_array)
        .map_or(&[][..], Vec::as_slice);
    Facts {
        schema: any(endpoints.iter().filter_map(takes_schema)),
        tools: any(endpoints.iter().filter_map(takes_tools)),
        context_tokens: largest(endpoints, "/context_length"),
        max_output_tokens: largest(endpoints, "/max_completion_tokens"),
        ..modalities(answer, "/data/architecture/input_modalities")
    }
}

/// Returns the largest number that an endpoint gives.
fn largest(endpoints: &[Value], pointer: &str) -> Option<u64> {
    endpoints
        .iter()
        .filter_map(|endpoint| number(endpoint, pointer))
        .max()
}

/// Returns whether any is true; `None` if there are none.
fn any(values: impl Iterator<Item = bool>) -> Option<bool> {
    values.reduce(|one, other| one || other)
}

fn takes_schema(model: &Value) -> Option<bool> {
    let parameters = words(model, "/supported_parameters")?;
    // `response_format` alone is JSON of any shape.
    Some(parameters.contains(&"structured_outputs"))
}

fn takes_tools(model: &Value) -> Option<bool> {
    Some(words(model, "/supported_parameters")?.contains(&"tools"))
}

fn modalities(model: &Value, pointer: &str) -> Facts {
    let modalities = words(model, pointer);
    Facts {
        images: has(&modalities, "image"),
        audio: has(&modalities, "audio"),
        ..Facts::default()
    }
}

/// Reads the list of a server of Chat Completions, with the fields that llama.cpp and vLLM add.
pub(super) fn chat_list(list: &Value, properties: Option<&Value>) -> Vec<Listed> {
    // What llama.cpp says beside the list, it says of the one model that it runs.
    let is_one = list
        .pointer("/data")
        .and_then(Value::as_array)
        .is_some_and(|models| models.len() == 1);
    let facts = if is_one {
        llamacpp(Some(list), properties)
    } else {
        Facts::default()
    };
    read_list(list, "/data", |model| {
        let limit = ["/max_model_len", "/meta/n_ctx_train"]
            .iter()
            .find_map(|name| number(model, name));
        let limits = Facts {
            context_tokens: limit,
            ..Facts::default()
        };
        Some(Listed {
            name: text(model, "/id")?,
            facts: facts.or(limits),
        })
    })
}

/// Reads llama.cpp's own list, which stands beside the standard one, and its properties.
pub(super) fn llamacpp(list: Option<&Value>, properties: Option<&Value>) -> Facts {
    let images = match (
        list.and_then(says_multimodal),
        properties.and_then(|said| flag(said, "/modalities/vision")),
    ) {
        (None, None) => None,
        (multimodal, vision) => Some(multimodal.unwrap_or(false) || vision.unwrap_or(false)),
    };
    let context_tokens =
        properties.and_then(|said| number(said, "/default_generation_settings/n_ctx"));
    // Where the model's template has no place for tools, the server takes them and drops them without a word.
    let tools = properties.and_then(|said| {
        said.pointer("/chat_template_caps/supports_tools")?
            .as_bool()
    });
    Facts {
        images,
        tools,
        context_tokens,
        ..Facts::default()
    }
}

fn says_multimodal(list: &Value) -> Option<bool> {
    let models = list.pointer("/models")?.as_array()?;
    let mut capabilities = models
        .iter()
        .filter_map(|model| words(model, "/capabilities"))
        .peekable();
    capabilities.peek()?;
    Some(
        capabilities
            .flatten()
            .any(|capability| capability == "multimodal"),
    )
}

pub(super) fn ollama_names(list: &Value) -> Vec<String> {
    read_list(list, "/models", |model| text(model, "/name"))
}

/// Reads Ollama's description of a model. Its `context_length` is not the length that the server makes room for.
pub(super) fn ollama(said: &Value) -> Facts {
    let capabilities = words(said, "/capabilities");
    Facts {
        images: has(&capabilities, "vision"),
        tools: has(&capabilities, "tools"),
        ..Facts::default()
    }
}

/// Reads the entries of a list, without those that `read` passes over.
fn read_list<T>(list: &Value, pointer: &str, read: impl Fn(&Value) -> Option<T>) -> Vec<T> {
    list.pointer(pointer)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(read)
        .collect()
}

/// Returns whether a list has a word; `None` if there is no list.
fn has(list: &Option<Vec<&str>>, word: &str) -> Option<bool> {
    Some(list.as_ref()?.contains(&word))
}

fn flag(value: &Value, pointer: &str) -> Option<bool> {
    value.pointer(pointer)?.as_bool()
}

fn text(value: &Value, pointer: &str) -> Option<String> {
    value.pointer(pointer)?.as_str().map(str::to_owned)
}

fn number(value: &Value, pointer: &str) -> Option<u64> {
    value.pointer(pointer)?.as_u64()
}

fn words<'v>(value: &'v Value, pointer: &str) -> Option<Vec<&'v str>> {
    Some(
        value
            .pointer(pointer)?
            .as_array()?
            .iter()
            .filter_map(Value::as_str)
            .collect(),
    )
}
