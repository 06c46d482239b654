//! Resources and templates, as an author describes them.

use std::path::PathBuf;
use std::time::Duration;

use crate::call::Call;
use crate::handler::HandlerCall;
use crate::{Handler, Parameters};

/// A resource with its own URI.
///
/// Without a [`mime_type`](Resource::mime_type) the list has none, and a read has `text/plain` for texts and
/// `application/octet-stream` for bytes.
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

/// Resources whose URIs a template describes (RFC 6570, see [`template`](crate::template)).
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
    pub(crate) source: Option<SourceFinder>,
}

/// A function that finds the files that a template's resource is read from.
pub(crate) struct SourceFinder(Box<FindPaths>);

type FindPaths = dyn Fn(&Parameters) -> Vec<PathBuf> + Send + Sync;

/// The description of a resource or a template, without its URI.
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

/// The audience and the importance of a resource (MCP "Annotations").
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Annotations {
    /// The audience. Empty means unspecified.
    pub audience: Vec<Role>,
    /// The importance, from 0 (optional) to 1 (required).
    pub priority: Option<f32>,
    /// The time of the last change in ISO 8601, such as `2026-07-28T12:00:00Z`.
    pub last_modified: Option<String>,
}

/// The audience of a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Role {
    /// The user.
    User,
    /// The model.
    Assistant,
}

/// An icon that a client may show with a resource.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Icon {
    /// The URL, `https:` or `data:`.
    pub src: String,
    /// The MIME type.
    pub mime_type: Option<String>,
    /// The sizes, such as `48x48`, or `any`. Empty means unspecified.
    pub sizes: Vec<String>,
}

/// The caches that may keep contents for the time of [`ttl`](Resource::ttl).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum CacheScope {
    /// The client, for the user that it asked for.
    #[default]
    Private,
    /// Everyone.
    Public,
}

/// The value of a variable that a user is typing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Partial {
    /// The text so far. It is empty at the start.
    pub value: String,
    /// The values of the other variables so far, by name.
    pub others: std::collections::BTreeMap<String, String>,
}

pub(crate) type Completer = Call<Partial, Vec<String>>;

impl Annotations {
    /// Sets the audience.
    #[must_use]
    pub fn audience(mut self, audience: impl IntoIterator<Item = Role>) -> Self {
        self.audience = audience.into_iter().collect();
        self
    }

    /// Sets the importance, from 0 to 1.
    #[must_use]
    pub fn priority(mut self, priority: f32) -> Self {
        self.priority = Some(priority);
        self
    }

    /// Sets the time of the last change, in ISO 8601.
    #[must_use]
    pub fn last_modified(mut self, last_modified: impl Into<String>) -> Self {
        self.last_modified = Some(last_modified.into());
        self
    }
}

impl Icon {
    /// Makes an icon from its URL, `https:` or `data:`.
    pub fn new(src: impl Into<String>) -> Self {
        Self {
            src: src.into(),
            ..Self::default()
        }
    }

    /// Sets the MIME type.
    #[must_use]
    pub fn mime_type(mut self, mime_type: impl Into<String>) -> Self {
        self.mime_type = Some(mime_type.into());
        self
    }

    /// Sets the sizes, such as `48x48`, or `any`.
    #[must_use]
    pub fn sizes(mut self, sizes: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.sizes = sizes.into_iter().map(Into::into).collect();
        self
    }
}

macro_rules! detail_setters {
    ($type:ident) => {
        impl $type {
            /// Sets the title, which users see instead of the name.
            #[must_use]
            pub fn title(mut self, title: impl Into<String>) -> Self {
                self.details.title = Some(title.into());
                self
            }

            /// Sets the description, which models read.
            #[must_use]
            pub fn description(mut self, description: impl Into<String>) -> Self {
                self.details.description = Some(description.into());
                self
            }

            /// Sets the MIME type of contents that don't name one.
            #[must_use]
            pub fn mime_type(mut self, mime_type: impl Into<String>) -> Self {
                self.details.mime_type = Some(mime_type.into());
                self
            }

            /// Sets the audience, the importance and the time of the last change.
            #[must_use]
            pub fn annotations(mut self, annotations: Annotations) -> Self {
                self.details.annotations = annotations;
                self
            }

            /// Sets the icons.
            #[must_use]
            pub fn icons(mut self, icons: impl IntoIterator<Item = Icon>) -> Self {
                self.details.icons = icons.into_iter().collect();
                self
            }

            /// Sets how long a client may cache what it read (MCP 2026-07-28, `ttlMs`). By default it may not.
            #[must_use]
            pub fn ttl(mut self, ttl: Duration) -> Self {
                self.details.ttl = Some(ttl);
                self
            }

            /// Sets who may cache what was read. By default only the client may.
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
    /// Makes a resource from its URI, its name and its handler. The registry checks them.
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

    /// Sets the size in bytes, without any encoding.
    #[must_use]
    pub fn size(mut self, bytes: u64) -> Self {
        self.size = Some(bytes);
        self
    }

    /// Sets the file that the resource is read from, for [`FileWatch`](crate::FileWatch).
    #[must_use]
    pub fn source(mut self, path: impl Into<PathBuf>) -> Self {
        self.source = Some(path.into());
        self
    }
}

impl ResourceTemplate {
    /// Makes a template from its text, its name and its handler. The registry checks them.
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

    /// Lets simple variables hold `/` and `#`, as in URIs that people type (see [`Matcher::lenient`](crate::template::Matcher::lenient)).
    #[must_use]
    pub fn lenient(mut self) -> Self {
        self.lenient = true;
        self
    }

    /// Sets the completer of a variable: a function that returns values while a user types
    /// (`completion/complete`).
    ///
    /// It may block. A client receives the first hundred values, and no more bytes than
    /// [`Limits::bytes`](crate::Limits::bytes). A completer that was set before is replaced.
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

    /// Sets the function that finds the files that a resource is read from, for [`FileWatch`](crate::FileWatch).
    ///
    /// It returns an `Option` of a path, or several paths, and runs on the thread that watches. See
    /// [`Root::source`](crate::Root::source).
    #[must_use]
    pub fn source<Paths>(
        mut self,
        source: impl Fn(&Parameters) -> Paths + Send + Sync + 'static,
    ) -> Self
    where
        Paths: IntoIterator<Item = PathBuf>,
    {
        self.source = Some(SourceFinder(Box::new(move |parameters| {
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

impl SourceFinder {
    pub(crate) fn find(&self, parameters: &Parameters) -> Vec<PathBuf> {
        self.0(parameters)
    }
}

impl std::fmt::Debug for SourceFinder {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("SourceFinder")
    }
}
