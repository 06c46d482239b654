//! What a request may want of whoever makes it.

use std::{fmt, time::Duration};

use serde_json::{Map, Value};

/// Whoever makes a request: they are asked and told what comes up while it runs, on the thread that waits for it.
///
/// By default nobody is there: what is asked is declined.
pub trait Caller {
    /// Returns whether the request is wanted no more.
    fn is_cancelled(&self) -> bool {
        false
    }

    /// Returns how long the server may go without a sign of life, where it is not as long as is configured for it.
    fn timeout(&self) -> Option<Duration> {
        None
    }

    /// Answers what the server asks.
    fn asked(&self, _: &Elicitation) -> Elicited {
        Elicited::Decline
    }

    /// Takes how far the server is.
    fn progressed(&self, _: &Progress) {}

    /// Takes what the server logs.
    fn logged(&self, _: &LogMessage) {}
}

/// Nobody.
impl Caller for () {}

/// What a server asks a person (MCP 2025-11-25 and 2026-07-28, "Elicitation").
///
/// All of it is the server's, to be shown with care.
#[derive(Debug, Clone, PartialEq)]
pub enum Elicitation {
    /// Values that fit a schema.
    Form {
        /// What it is about.
        message: String,
        /// JSON Schema of an object, flat by the protocol.
        schema: Map<String, Value>,
    },
    /// A visit to a page, which jp does not see.
    Url {
        /// What it is about.
        message: String,
        /// The page.
        url: String,
    },
}

/// What a person answers.
#[derive(Debug, Clone, PartialEq)]
pub enum Elicited {
    /// The values; none for a visit that was agreed to.
    Accept(Option<Map<String, Value>>),
    /// They don't want to.
    Decline,
    /// They made no choice.
    Cancel,
}

/// How far a server is with a request.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// How far; it only grows.
    pub progress: f64,
    /// How far it will be at the end, if that is known.
    pub total: Option<f64>,
    /// What the server says of it.
    pub message: Option<String>,
}

/// What a server logs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogMessage {
    /// How grave it is: `debug`, `info`, `notice`, `warning`, `error`, `critical`, `alert` or `emergency`.
    pub level: String,
    /// Which part of the server says it.
    pub logger: Option<String>,
    /// What it says; JSON, where it is no text.
    pub text: String,
}

impl Elicited {
    /// Returns the word that servers know it by.
    pub(crate) fn action(&self) -> &'static str {
        match self {
            Self::Accept(_) => "accept",
            Self::Decline => "decline",
            Self::Cancel => "cancel",
        }
    }

    /// Returns the result of `elicitation/create`.
    pub(crate) fn into_result(self) -> Value {
        let mut result = Map::from_iter([("action".to_owned(), self.action().into())]);
        if let Self::Accept(Some(content)) = self {
            result.insert("content".to_owned(), content.into());
        }
        result.into()
    }
}

impl Elicitation {
    /// Reads the parameters of `elicitation/create`; a request without a mode has a form.
    pub(crate) fn read(params: &Value) -> Result<Self, String> {
        let text = |key: &str| {
            let text = params.get(key).and_then(Value::as_str).map(str::to_owned);
            text.ok_or_else(|| format!("an elicitation without `{key}`"))
        };
        match params.get("mode").and_then(Value::as_str).unwrap_or("form") {
            "form" => {
                let schema = params
                    .get("requestedSchema")
                    .and_then(Value::as_object)
                    .cloned();
                let schema = schema.ok_or("an elicitation without `requestedSchema`")?;
                Ok(Self::Form {
                    message: text("message")?,
                    schema,
                })
            }
            "url" => Ok(Self::Url {
                message: text("message")?,
                url: text("url")?,
            }),
            mode => Err(format!("an elicitation of the unknown mode {mode:?}")),
        }
    }
}

impl Progress {
    /// Reads the parameters of `notifications/progress`.
    pub(crate) fn read(params: &Value) -> Option<Self> {
        Some(Self {
            progress: params.get("progress")?.as_f64()?,
            total: params.get("total").and_then(Value::as_f64),
            message: params
                .get("message")
                .and_then(Value::as_str)
                .map(str::to_owned),
        })
    }
}

impl LogMessage {
    /// Reads the parameters of `notifications/message`.
    pub(crate) fn read(params: &Value) -> Self {
        let text = |key: &str| params.get(key).and_then(Value::as_str).map(str::to_owned);
        let data = params.get("data").unwrap_or(&Value::Null);
        Self {
            level: text("level").unwrap_or_else(|| "info".to_owned()),
            logger: text("logger"),
            text: data
                .as_str()
                .map_or_else(|| data.to_string(), str::to_owned),
        }
    }
}

impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.total {
            Some(total) if total > 0.0 => write!(
                f,
                "{:.0} %",
                (self.progress / total * 100.0).clamp(0.0, 100.0)
            )?,
            _ => write!(f, "{}", self.progress)?,
        }
        self.message
            .as_ref()
            .map_or(Ok(()), |message| write!(f, " {message}"))
    }
}

impl fmt::Display for LogMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let logger = self
            .logger
            .as_ref()
            .map(|logger| format!(" ({logger})"))
            .unwrap_or_default();
        write!(f, "{}{logger}: {}", self.level, self.text)
    }
}
