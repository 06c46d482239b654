//! What a server offers.

use std::path::PathBuf;
use std::time::Duration;

use crate::call::Call;
use crate::handler::HandlerCall;
use crate::{Handler, Parameters};

/// A resource with a URI of its own.
///
/// A registry keeps it until it is unregistered; without a [`mime_type`](Resource::mime_type), the list says none, and a read says `text/plain`
/// for texts and `application/octet-stream` for bytes.
///
/// ```
/// use mcp_resources::{Annotations, Resource, Role};
///
/// Resource::new("org://notes.org", "notes.org", || std::fs::read_to_string("notes.org"))
///     .title("Notes")
///     .description("What to do, and when")
///     .mime_type("text/org")
///     .annotations(Annotations::default().audience([Role::User]).priority(0.8));
/// ```
#[derive(Debug)]
pub struct Resource {
    pub(crate) uri: String,
    pub(crate) size: Option<u64>,
    pub(crate) source: Option<PathBuf>,
    pub(crate) details: Details,
    pub(crate) handler: HandlerCall<()>,
}

/// Resources whose URIs a template makes (RFC 6570, see [`template`](crate::template)).
///
/// ```
/// use mcp_resources::{Parameters, Partial, ResourceTemplate};
///
/// let files = ["notes.org", "journal.org"];
/// ResourceTemplate::new("org://{filename}/outline", "Outline", |parameters: Parameters| {
///     Ok::<_, mcp_resources::ReadError>(format!("* {}", parameters.text("filename")?))
/// })
/// .description("The headlines of a file")
/// .mime_type("application/json")
/// .complete("filename", move |partial: Partial| {
///     files.iter().filter(|file| file.starts_with(&partial.value)).map(|file| file.to_string()).collect()
/// });
/// ```
#[derive(Debug)]
pub struct ResourceTemplate {
    pub(crate) uri_template: String,
    pub(crate) lenient: bool,
    pub(crate) details: Details,
    pub(crate) handler: HandlerCall<Parameters>,
    pub(crate) completers: Vec<(String, Completer)>,
    pub(crate) source: Option<Source>,
}

/// Finds the files that a template's resource is read from.
pub(crate) struct Source(Box<FindPaths>);

type FindPaths = dyn Fn(&Parameters) -> Vec<PathBuf> + Send + Sync;

/// What a client is told about resources, beside where they are.
#[derive(Debug, Default)]
pub(crate) struct Details {
    pub(crate) name: String,
    pub(crate) title: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) mime_type: Option<String>,
    pub(crate) annotations: Annotations,
    pub(crate) icons: Vec<Icon>,
    pub(crate) ttl: Option<Duration>,
    pub(crate) cache_scope: CacheScope,
}

/// Whom a resource is for, and how much it matters (MCP "Annotations").
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Annotations {
    /// Whom it is for; empty says nothing.
    pub audience: Vec<Role>,
    /// From 0, could be left out, to 1, is needed.
    pub priority: Option<f32>,
    /// When it changed last, ISO 8601, as `2026-07-28T12:00:00Z`.
    pub last_modified: Option<String>,
}

/// Whom a resource is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Role {
    /// The person.
    User,
    /// The model.
    Assistant,
}

/// A picture that a client may show beside a resource.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Icon {
    /// Its URL, `https:` or `data:`.
    pub src: String,
    /// Its MIME type.
    pub mime_type: Option<String>,
    /// Its sizes, as `48x48`, or `any`; empty says nothing.
    pub sizes: Vec<String>,
}

/// Who may keep what was read, for [`ttl`](Resource::ttl).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum CacheScope {
    /// The client that asked, for the one who asked.
    #[default]
    Private,
    /// Everyone.
    Public,
}

/// What a person typed so far, for a variable of a template.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Partial {
    /// The text so far; empty at the start.
    pub value: String,
    /// What the other variables have already, by name.
    pub others: std::collections::BTreeMap<String, String>,
}

pub(crate) type Completer = Call<Partial, Vec<String>>;

impl Annotations {
    /// Sets whom it is for.
    #[must_use]
    pub fn audience(mut self, audience: impl IntoIterator<Item = Role>) -> Self {
        self.audience = audience.into_iter().collect();
        self
    }

    /// Sets how much it matters, from 0 to 1.
    #[must_use]
    pub fn priority(mut self, priority: f32) -> Self {
        self.priority = Some(priority);
        self
    }

    /// Sets when it changed last, ISO 8601.
    #[must_use]
    pub fn last_modified(mut self, last_modified: impl Into<String>) -> Self {
        self.last_modified = Some(last_modified.into());
        self
    }
}

impl Icon {
    /// Makes a picture of its URL, `https:` or `data:`.
    pub fn new(src: impl Into<String>) -> Self {
        Self {
            src: src.into(),
            ..Self::default()
        }
    }

    /// Sets its MIME type.
    #[must_use]
    pub fn mime_type(mut self, mime_type: impl Into<String>) -> Self {
        self.mime_type = Some(mime_type.into());
        self
    }

    /// Sets its sizes, as `48x48`, or `any`.
    #[must_use]
    pub fn sizes(mut self, sizes: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.sizes = sizes.into_iter().map(Into::into).collect();
        self
    }
}

macro_rules! detail_setters {
    ($type:ident) => {
        impl $type {
            /// Sets the name that a person sees instead of `name`.
            #[must_use]
            pub fn title(mut self, title: impl Into<String>) -> Self {
                self.details.title = Some(title.into());
                self
            }

            /// Sets what a model is told about it.
            #[must_use]
            pub fn description(mut self, description: impl Into<String>) -> Self {
                self.details.description = Some(description.into());
                self
            }

            /// Sets the MIME type, of all contents that have none of their own.
            #[must_use]
            pub fn mime_type(mut self, mime_type: impl Into<String>) -> Self {
                self.details.mime_type = Some(mime_type.into());
                self
            }

            /// Sets whom it is for, and how much it matters.
            #[must_use]
            pub fn annotations(mut self, annotations: Annotations) -> Self {
                self.details.annotations = annotations;
                self
            }

            /// Sets its pictures.
            #[must_use]
            pub fn icons(mut self, icons: impl IntoIterator<Item = Icon>) -> Self {
                self.details.icons = icons.into_iter().collect();
                self
            }

            /// Sets how long a client may keep what it read (MCP 2026-07-28, `ttlMs`); by default not at all.
            #[must_use]
            pub fn ttl(mut self, ttl: Duration) -> Self {
                self.details.ttl = Some(ttl);
                self
            }

            /// Sets who may keep what was read; by default the client alone.
            #[must_use]
            pub fn cache_scope(mut self, scope: CacheScope) -> Self {
                self.details.cache_scope = scope;
                self
            }
        }
    };
}

detail_setters!(Resource);
detail_setters!(ResourceTemplate);

impl Resource {
    /// Makes a resource of its URI, its name and what reads it; they are checked when it is registered.
    pub fn new<Kind>(
        uri: impl Into<String>,
        name: impl Into<String>,
        handler: impl Handler<(), Kind>,
    ) -> Self {
        let details = Details {
            name: name.into(),
            ..Details::default()
        };
        Self {
            uri: uri.into(),
            size: None,
            source: None,
            details,
            handler: handler.into_call(),
        }
    }

    /// Sets the size of what a read gives, in bytes before any encoding.
    #[must_use]
    pub fn size(mut self, bytes: u64) -> Self {
        self.size = Some(bytes);
        self
    }

    /// Sets the file that it is read from, for [`FileWatch`](crate::FileWatch).
    #[must_use]
    pub fn source(mut self, path: impl Into<PathBuf>) -> Self {
        self.source = Some(path.into());
        self
    }
}

impl ResourceTemplate {
    /// Makes a template of its text, its name and what reads its resources; they are checked when it is registered.
    pub fn new<Kind>(
        uri_template: impl Into<String>,
        name: impl Into<String>,
        handler: impl Handler<Parameters, Kind>,
    ) -> Self {
        Self {
            uri_template: uri_template.into(),
            lenient: false,
            details: Details {
                name: name.into(),
                ..Details::default()
            },
            handler: handler.into_call(),
            completers: Vec::new(),
            source: None,
        }
    }

    /// Lets simple variables hold `/` and `#` (see [`Matcher::lenient`](crate::template::Matcher::lenient)).
    #[must_use]
    pub fn lenient(mut self) -> Self {
        self.lenient = true;
        self
    }

    /// Sets what offers values of a variable while a person types (`completion/complete`), instead of what did. It may
    /// block. A client gets the first hundred, and no more bytes than [`Limits::bytes`](crate::Limits::bytes).
    #[must_use]
    pub fn complete(
        mut self,
        variable: impl Into<String>,
        completer: impl Fn(Partial) -> Vec<String> + Send + Sync + 'static,
    ) -> Self {
        let variable = variable.into();
        self.completers.retain(|(name, _)| *name != variable);
        self.completers.push((variable, Call::blocking(completer)));
        self
    }

    /// Sets what finds the file that a resource is read from, or the files, for [`FileWatch`](crate::FileWatch): an
    /// `Option` of a path, or several. It runs on the thread that watches. See [`Root::source`](crate::Root::source).
    #[must_use]
    pub fn source<Paths>(
        mut self,
        source: impl Fn(&Parameters) -> Paths + Send + Sync + 'static,
    ) -> Self
    where
        Paths: IntoIterator<Item = PathBuf>,
    {
        self.source = Some(Source(Box::new(move |parameters| {
            source(parameters).into_iter().collect()
        })));
        self
    }

    #[cfg(feature = "server")]
    pub(crate) fn completer(&self, variable: &str) -> Option<&Completer> {
        self.completers
            .iter()
            .find(|(name, _)| name == variable)
            .map(|(_, completer)| completer)
    }
}

impl Source {
    pub(crate) fn paths(&self, parameters: &Parameters) -> Vec<PathBuf> {
        self.0(parameters)
    }
}

impl std::fmt::Debug for Source {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Source")
    }
}
