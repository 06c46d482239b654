//! The caller of a request: it answers questions and receives progress and logs.

use std::{fmt, time::Duration};

use serde_json::{Map, Value};

/// The caller of a request. Its methods are called while the request runs, on the thread that waits.
///
/// The defaults decline every question.
pub trait Caller {
    /// Returns true to cancel the request.
    fn is_cancelled(&self) -> bool {
        false
    }

    /// Returns the time without a sign of life, if it differs from the server's configuration.
    fn timeout(&self) -> Option<Duration> {
        None
    }

    /// Answers a question of the server.
    fn answer(&self, _: &Elicitation) -> Elicited {
        Elicited::Decline
    }

    /// Receives the server's progress.
    fn report_progress(&self, _: &Progress) {}

    /// Receives a log message of the server.
    fn report_log(&self, _: &LogMessage) {}
}

/// Declines every question and ignores progress and log messages.
impl Caller for () {}

/// A server's question to the user (MCP 2025-11-25 and 2026-07-28, "Elicitation").
///
/// All text in it is the server's: escape it before you show it.
#[derive(Debug, Clone, PartialEq)]
pub enum Elicitation {
    /// A form: values that fit a schema.
    Form {
        /// The text of the question.
        message: String,
        /// JSON Schema of an object, flat by the protocol.
        schema: Map<String, Value>,
    },
    /// A page to visit. jp never sees its content.
    Url {
        /// The text of the question.
        message: String,
        /// The page.
        url: String,
    },
}

/// The answer to an [`Elicitation`].
#[derive(Debug, Clone, PartialEq)]
pub enum Elicited {
    /// The values of a form; `None` for a page that the user is willing to visit.
    Accept(Option<Map<String, Value>>),
    /// The user refuses.
    Decline,
    /// The user made no choice.
    Cancel,
}

/// A server's progress with a request.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// The progress so far; it only grows.
    pub progress: f64,
    /// The progress at the end, if it is known.
    pub total: Option<f64>,
    /// The server's words about it.
    pub message: Option<String>,
}

/// A server's log message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogMessage {
    /// Its severity: `debug`, `info`, `notice`, `warning`, `error`, `critical`, `alert` or `emergency`.
    pub level: String,
    /// The part of the server that logs it.
    pub logger: Option<String>,
    /// Its text, or JSON if the server sent something else.
    pub text: String,
}

impl Elicited {
    /// Returns its name in the protocol.
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
