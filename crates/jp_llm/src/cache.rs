//! The providers' prompt caches: their lifetimes, and the marks of a request.

use std::time::Duration;

use crate::{Format, Request, anthropic, chat, openai};

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(60 * 60);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The cache marks of a request.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CacheMarks {
    /// True if one is before all messages: at the end of the system prompt, or of the tools.
    pub head: bool,
    /// Indexes of the thread's messages that have one, the oldest first.
    pub messages: Vec<usize>,
}

impl Format {
    /// Returns the cache marks of the request that [`Format::encode`] writes; none if the provider caches automatically.
    #[must_use]
    pub fn cache_marks(self, request: &Request<'_>) -> CacheMarks {
        let (request, _) = request.without_refused_tools();
        match self {
            Self::Anthropic => anthropic::cache_marks(&request),
            Self::OpenAi => openai::cache_marks(&request),
            Self::OpenRouter => chat::cache_marks(chat::Dialect::OpenRouter, &request),
            Self::Chat | Self::Gemini | Self::Ollama => CacheMarks::default(),
        }
    }

    /// Returns the time without a request after which a prefix is gone from the prompt cache of a model.
    ///
    /// The longest that is documented or likely: to take a warm cache for a cold one costs its whole prefix, to take a
    /// cold one for warm costs nothing that would not be paid anyway.
    ///
    /// - Anthropic, and Qwen's marks: 5 minutes from the last use.
    /// - OpenAI: a day. Models differ between an hour at most and 24 hours, and the name does not tell.
    /// - Gemini: an hour. Nothing is documented of its implicit caches but that requests should follow soon.
    /// - OpenRouter: that of the vendor, an hour for others.
    /// - Servers of one's own: a day. They keep a prefix while they run and nobody else asks, so nothing is sure before;
    ///   by the next day the model was most likely unloaded or busy with something else.
    #[must_use]
    pub fn cache_lifetime(self, model: &str) -> Duration {
        match self {
            Self::Anthropic => 5 * MINUTE,
            Self::OpenAi | Self::Chat | Self::Ollama => DAY,
            Self::Gemini => HOUR,
            Self::OpenRouter => match chat::vendor(model) {
                "anthropic" | "qwen" => 5 * MINUTE,
                "openai" => DAY,
                _ => HOUR,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use jp_conversation::{EventKind, view};
    use jp_resource::{Resource, ResourceContent};

    use super::*;
    use crate::{
        Capabilities, Tool,
        fixtures::{self, Store, said},
    };

    /// Encodes three turns, the first two with something attached, and returns how many marks it has and where
    /// they are said to be.
    fn marked(
        format: Format,
        label: &str,
        mark: &str,
        system: Option<&str>,
    ) -> (usize, CacheMarks) {
        let attached = || {
            vec![Resource::new(
                "file:///a",
                ResourceContent::Text("x".repeat(20_000)),
            )]
        };
        let turn = |words: &str, resources| [fixtures::request(words, resources), said("Yes.")];
        let kinds: Vec<EventKind> = [
            turn("one", attached()),
            turn("two", attached()),
            turn("three", vec![]),
            turn("four", vec![]),
        ]
        .into_iter()
        .flatten()
        .take(7)
        .collect();
        let mut store = Store::default();
        let stream = fixtures::stream(kinds, &mut store);
        let thread = view::thread(&stream);
        let tool = Tool {
            name: "read".to_owned(),
            description: "Reads.".to_owned(),
            parameters: Default::default(),
        };
        let capabilities = Capabilities {
            tools: true,
            ..Capabilities::default()
        };
        let tools = [tool];
        let request = Request {
            system,
            tools: &tools,
            capabilities,
            ..Request::new(label, &thread)
        };
        let mut out = Vec::new();
        format.encode(&request, &mut store, &mut out).unwrap();
        let body = String::from_utf8(out).unwrap();
        (body.matches(mark).count(), format.cache_marks(&request))
    }

    #[test]
    fn marks_are_said_to_be_where_the_request_has_them() {
        const CONTROL: &str = r#""cache_control":"#;
        const BREAKPOINT: &str = r#""prompt_cache_breakpoint":"#;
        for (format, label, mark, system, head, messages) in [
            (
                Format::Anthropic,
                "anthropic/m",
                CONTROL,
                None,
                true,
                vec![2, 4, 6],
            ),
            (
                Format::Anthropic,
                "anthropic/m",
                CONTROL,
                Some("Be brief."),
                true,
                vec![2, 4, 6],
            ),
            (
                Format::OpenRouter,
                "openrouter/anthropic/m",
                CONTROL,
                Some("Be brief."),
                true,
                vec![4, 6],
            ),
            (
                Format::OpenRouter,
                "openrouter/anthropic/m",
                CONTROL,
                None,
                false,
                vec![4, 6],
            ),
            (
                Format::OpenRouter,
                "openrouter/openai/m",
                CONTROL,
                Some("Be brief."),
                false,
                vec![],
            ),
            (
                Format::OpenAi,
                "openai/gpt-5.6",
                BREAKPOINT,
                Some("Be brief."),
                true,
                vec![0, 2],
            ),
            (
                Format::OpenAi,
                "openai/gpt-5.6",
                BREAKPOINT,
                None,
                false,
                vec![0, 2],
            ),
            (
                Format::OpenAi,
                "openai/gpt-4o",
                BREAKPOINT,
                Some("Be brief."),
                false,
                vec![],
            ),
            (
                Format::Chat,
                "llamacpp/m",
                CONTROL,
                Some("Be brief."),
                false,
                vec![],
            ),
            (
                Format::Gemini,
                "google/m",
                CONTROL,
                Some("Be brief."),
                false,
                vec![],
            ),
            (
                Format::Ollama,
                "ollama/m",
                CONTROL,
                Some("Be brief."),
                false,
                vec![],
            ),
        ] {
            let (count, marks) = marked(format, label, mark, system);
            assert_eq!(marks, CacheMarks { head, messages }, "{label}");
            assert_eq!(
                count,
                marks.messages.len() + usize::from(marks.head),
                "{label}"
            );
        }
    }

    #[test]
    fn lifetime_is_the_providers_own() {
        let minutes = |format: Format, model: &str| format.cache_lifetime(model).as_secs() / 60;
        assert_eq!(minutes(Format::Anthropic, "claude"), 5);
        assert_eq!(minutes(Format::OpenRouter, "anthropic/claude"), 5);
        assert_eq!(minutes(Format::OpenRouter, "~openai/gpt"), 24 * 60);
        assert_eq!(minutes(Format::OpenRouter, "google/gemini"), 60);
        assert_eq!(minutes(Format::Gemini, "gemini"), 60);
        assert_eq!(minutes(Format::Chat, "qwen3"), 24 * 60);
    }
}
