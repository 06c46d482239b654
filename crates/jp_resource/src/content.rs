use crate::{BlobRef, Checksum, Encoding};

/// Resource content: UTF-8 text or arbitrary bytes.
#[derive(Clone, PartialEq, Eq)]
pub enum ResourceContent {
    /// UTF-8 text: source code, Markdown, …
    Text(String),
    /// Bytes: images, PDF, text in another encoding.
    Blob(Vec<u8>),
}

/// An error of stored bytes that don't match their reference.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("blob {0} is recorded as text but is not UTF-8")]
pub struct ContentError(pub Checksum);

impl ResourceContent {
    /// Decides whether `bytes` are text or binary.
    ///
    /// Text is valid UTF-8 without NUL. git and ripgrep use a similar rule.
    #[must_use]
    pub fn from_bytes(bytes: Vec<u8>) -> Self {
        if bytes.contains(&0) {
            return Self::Blob(bytes);
        }
        match String::from_utf8(bytes) {
            Ok(text) => Self::Text(text),
            Err(error) => Self::Blob(error.into_bytes()),
        }
    }

    /// Rebuilds content from stored bytes.
    pub fn from_blob(blob: &BlobRef, bytes: Vec<u8>) -> Result<Self, ContentError> {
        match blob.encoding {
            Encoding::Binary => Ok(Self::Blob(bytes)),
            Encoding::Utf8 => String::from_utf8(bytes)
                .map(Self::Text)
                .map_err(|_| ContentError(blob.checksum)),
        }
    }

    /// Returns the raw bytes, which the checksum covers.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::Blob(bytes) => bytes,
        }
    }

    /// Returns the raw bytes, without copying them.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        match self {
            Self::Text(text) => text.into_bytes(),
            Self::Blob(bytes) => bytes,
        }
    }

    /// Returns the text, if the content is text.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Blob(_) => None,
        }
    }

    /// Returns the encoding: text or binary.
    #[must_use]
    pub fn encoding(&self) -> Encoding {
        match self {
            Self::Text(_) => Encoding::Utf8,
            Self::Blob(_) => Encoding::Binary,
        }
    }

    /// Returns the reference to the content: checksum, size, encoding. Costs a pass over the bytes.
    #[must_use]
    pub fn blob_ref(&self) -> BlobRef {
        BlobRef::for_content(self.as_bytes(), self.encoding())
    }
}

impl std::fmt::Debug for ResourceContent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Text(text) => f.debug_tuple("Text").field(text).finish(),
            Self::Blob(bytes) => write!(f, "Blob({} bytes)", bytes.len()),
        }
    }
}
