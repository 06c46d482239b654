//! Reads what each provider says of its models.

use serde_json::Value;

use super::{Facts, Listed};

/// Anthropic's list: `data`, each an object of [`anthropic`].
pub(super) fn anthropic_list(list: &Value) -> Vec<Listed> {
    listed(list, "/data", |model| {
        Some(Listed {
            name: text(model, "/id")?,
            facts: anthropic(model),
        })
    })
}

/// A model of Anthropic's Models API, with `capabilities` where it gives them.
pub(super) fn anthropic(model: &Value) -> Facts {
    let supported = |name: &str| {
        model
            .pointer(&format!("/capabilities/{name}/supported"))?
            .as_bool()
    };
    Facts {
        images: supported("image_input"),
        pdf: supported("pdf_input"),
        schema: supported("structured_outputs"),
        context_tokens: number(model, "/max_input_tokens"),
        max_output_tokens: number(model, "/max_tokens"),
        ..Facts::default()
    }
}

/// Gemini's list: what generates content, with its limits.
pub(super) fn gemini_list(list: &Value) -> Vec<Listed> {
    listed(list, "/models", |model| {
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

/// OpenAI's list, which says nothing of what a model is for; left out is what answers no conversation.
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
    listed(list, "/data", |model| {
        let name =
            text(model, "/id").filter(|name| !OTHERS.iter().any(|other| name.contains(other)))?;
        Some(Listed {
            name,
            facts: Facts::default(),
        })
    })
}

pub(super) fn openrouter_list(list: &Value) -> Vec<Listed> {
    listed(list, "/data", |model| {
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

/// One model of OpenRouter, with the endpoints that serve it: any of them may.
pub(super) fn openrouter_one(answer: &Value) -> Facts {
    let endpoints = answer
        .pointer("/data/endpoints")
        .and_then(Value::as_array)
        .map_or(&[][..], Vec::as_slice);
    let largest = |pointer| {
        endpoints
            .iter()
            .filter_map(|endpoint| number(endpoint, pointer))
            .max()
    };
    let any = |takes: fn(&Value) -> Option<bool>| {
        endpoints
            .iter()
            .filter_map(takes)
            .reduce(|one, other| one || other)
    };
    Facts {
        schema: any(takes_schema),
        tools: any(takes_tools),
        context_tokens: largest("/context_length"),
        max_output_tokens: largest("/max_completion_tokens"),
        ..modalities(answer, "/data/architecture/input_modalities")
    }
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
    let takes = |name| {
        modalities
            .as_ref()
            .map(|modalities| modalities.contains(&name))
    };
    Facts {
        images: takes("image"),
        audio: takes("audio"),
        ..Facts::default()
    }
}

/// The list of a server of Chat Completions, with what llama.cpp and vLLM add to it.
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
    listed(list, "/data", |model| {
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

/// What llama.cpp says in its own list beside the standard one and in its properties.
pub(super) fn llamacpp(list: Option<&Value>, properties: Option<&Value>) -> Facts {
    let modality = |name: &str| {
        properties?
            .pointer(&format!("/modalities/{name}"))?
            .as_bool()
    };
    let images = match (list.and_then(says_multimodal), modality("vision")) {
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
    listed(list, "/models", |model| text(model, "/name"))
}

/// What Ollama shows of a model. Its `context_length` is not what the server makes room for.
pub(super) fn ollama(said: &Value) -> Facts {
    let capabilities = words(said, "/capabilities");
    let has = |name| {
        capabilities
            .as_ref()
            .map(|capabilities| capabilities.contains(&name))
    };
    Facts {
        images: has("vision"),
        tools: has("tools"),
        ..Facts::default()
    }
}

fn listed<T>(list: &Value, pointer: &str, read: impl Fn(&Value) -> Option<T>) -> Vec<T> {
    list.pointer(pointer)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(read)
        .collect()
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
