//! The contents of a resource, and the errors of a read.

use std::error::Error;
use std::io;
use std::time::Duration;

use crate::{ParameterError, PathError};

/// Text or bytes, with their MIME type.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Content {
    /// The URI, if it is not the requested one.
    pub uri: Option<String>,
    /// The MIME type, if it is not the resource's.
    pub mime_type: Option<String>,
    /// The text or the bytes.
    pub body: Body,
}

/// The body of a content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body {
    /// A text.
    Text(String),
    /// Bytes, which a client receives as base64.
    Bytes(Vec<u8>),
}

/// The result of one read: one content, several, such as those of a directory, or none.
///
/// ```
/// use mcp_resources::{Content, Contents};
///
/// let contents = Contents::from(vec![Content::text("a").uri("notes://a"), Content::text("bc").uri("notes://b")]);
/// assert_eq!(contents.size(), 3);
/// assert_eq!(contents.iter().next(), Some(&Content::text("a").uri("notes://a")));
/// let lines: Contents = ["a", "b"].map(Content::text).into_iter().collect();
/// assert_eq!(lines.size(), 2);
/// assert_eq!(Contents::from(Content::text("a")).size(), 1);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Contents(pub(crate) Vec<Content>);

/// The types that a handler may return.
///
/// Implemented for texts (`String`, `&'static str`), bytes (`Vec<u8>`, `&'static [u8]`), [`Body`], [`Content`], `Vec<Content>`,
/// [`Contents`], and for a `Result` of these with an error that becomes a [`ReadError`].
pub trait IntoContents {
    /// Returns the contents.
    ///
    /// # Errors
    ///
    /// Those of the handler.
    fn into_contents(self) -> Result<Contents, ReadError>;
}

/// A read that failed. A client receives:
///
/// | | code | `data.uri` |
/// |---|---|---|
/// | `NotFound`, `BadParameters` | -32602, invalid parameters | yes |
/// | the others | -32603, internal error | no |
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// Nothing is registered for the URI, or the handler has no such resource.
    #[error("there is no such resource")]
    NotFound,
    /// The values of a template's parameters can't be used. The client receives the reason.
    #[error("{0}")]
    BadParameters(String),
    /// The handler failed. The client receives the error without its causes.
    #[error("the resource could not be read: {0}")]
    Failed(#[source] Box<dyn Error + Send + Sync>),
    /// The handler panicked. The client doesn't receive the panic's message.
    #[error("the resource's handler panicked; the server's standard error says why")]
    Panicked,
    /// Too many reads are running and don't end: 32 of the same resource or template, or 256 of the whole
    /// registry.
    #[error("too many reads are pending; try again later")]
    Busy,
    /// The handler took more than [`Limits::time`](crate::Limits::time).
    #[error("the resource could not be read within {0:?}; try again later")]
    TimedOut(Duration),
    /// The contents have more than [`Limits::bytes`](crate::Limits::bytes).
    #[error(
        "the resource has {size} bytes, over the server's limit of {limit}; request a part of it"
    )]
    TooLarge {
        /// All bytes of the contents.
        size: usize,
        /// The limit.
        limit: usize,
    },
}

impl Content {
    /// Makes a text.
    pub fn text(text: impl Into<String>) -> Self {
        Body::Text(text.into()).into()
    }

    /// Makes bytes.
    pub fn bytes(bytes: impl Into<Vec<u8>>) -> Self {
        Body::Bytes(bytes.into()).into()
    }

    /// Sets the URI, if it is not the requested one.
    #[must_use]
    pub fn uri(mut self, uri: impl Into<String>) -> Self {
        self.uri = Some(uri.into());
        self
    }

    /// Sets the MIME type, if it is not the resource's.
    #[must_use]
    pub fn mime_type(mut self, mime_type: impl Into<String>) -> Self {
        self.mime_type = Some(mime_type.into());
        self
    }
}

impl Body {
    /// Counts the bytes.
    pub fn size(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Bytes(bytes) => bytes.len(),
        }
    }

    /// Returns the MIME type for a resource that names none.
    pub(crate) fn default_mime_type(&self) -> &'static str {
        match self {
            Self::Text(_) => "text/plain",
            Self::Bytes(_) => "application/octet-stream",
        }
    }
}

impl Contents {
    /// Counts the bytes of all contents.
    pub fn size(&self) -> usize {
        self.iter().map(|content| content.body.size()).sum()
    }

    /// Iterates over the contents.
    pub fn iter(&self) -> std::slice::Iter<'_, Content> {
        self.0.iter()
    }
}

impl From<Vec<Content>> for Contents {
    fn from(contents: Vec<Content>) -> Self {
        Self(contents)
    }
}

impl From<Content> for Contents {
    fn from(content: Content) -> Self {
        Self(vec![content])
    }
}

impl FromIterator<Content> for Contents {
    fn from_iter<C: IntoIterator<Item = Content>>(contents: C) -> Self {
        Self(contents.into_iter().collect())
    }
}

impl IntoIterator for Contents {
    type Item = Content;
    type IntoIter = std::vec::IntoIter<Content>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'c> IntoIterator for &'c Contents {
    type Item = &'c Content;
    type IntoIter = std::slice::Iter<'c, Content>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl ReadError {
    /// Makes the error for a parameter that can't be used. `why` is a sentence for a model or a person.
    pub fn bad_parameters(why: impl Into<String>) -> Self {
        Self::BadParameters(why.into())
    }

    /// Makes the error of a handler that failed.
    pub fn failed(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Failed(error.into())
    }
}

/// A missing file, and a name that no file can have, are a missing resource. A directory is a bad parameter.
impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound
            | io::ErrorKind::NotADirectory
            | io::ErrorKind::InvalidFilename => Self::NotFound,
            io::ErrorKind::IsADirectory => {
                Self::bad_parameters("this is a directory, which has no content")
            }
            _ => Self::failed(error),
        }
    }
}

impl From<ParameterError> for ReadError {
    fn from(error: ParameterError) -> Self {
        Self::BadParameters(error.to_string())
    }
}

impl From<PathError> for ReadError {
    fn from(error: PathError) -> Self {
        match error {
            PathError::Io(error) => error.into(),
            PathError::TooLarge { .. } => Self::failed(error),
            error => Self::BadParameters(error.to_string()),
        }
    }
}

impl From<Body> for Content {
    fn from(body: Body) -> Self {
        Self {
            uri: None,
            mime_type: None,
            body,
        }
    }
}

impl IntoContents for Contents {
    fn into_contents(self) -> Result<Contents, ReadError> {
        Ok(self)
    }
}

impl IntoContents for Vec<Content> {
    fn into_contents(self) -> Result<Contents, ReadError> {
        Ok(Contents(self))
    }
}

impl IntoContents for Content {
    fn into_contents(self) -> Result<Contents, ReadError> {
        Ok(self.into())
    }
}

impl IntoContents for Body {
    fn into_contents(self) -> Result<Contents, ReadError> {
        Content::from(self).into_contents()
    }
}

impl IntoContents for String {
    fn into_contents(self) -> Result<Contents, ReadError> {
        Body::Text(self).into_contents()
    }
}

impl IntoContents for &'static str {
    fn into_contents(self) -> Result<Contents, ReadError> {
        self.to_owned().into_contents()
    }
}

impl IntoContents for Vec<u8> {
    fn into_contents(self) -> Result<Contents, ReadError> {
        Body::Bytes(self).into_contents()
    }
}

impl IntoContents for &'static [u8] {
    fn into_contents(self) -> Result<Contents, ReadError> {
        self.to_vec().into_contents()
    }
}

impl<C: IntoContents, E: Into<ReadError>> IntoContents for Result<C, E> {
    fn into_contents(self) -> Result<Contents, ReadError> {
        self.map_err(Into::into)?.into_contents()
    }
}
