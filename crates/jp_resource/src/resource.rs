use serde_json::{Map, Value};

use crate::{Annotations, BlobRef, Checksum, Payload, ResourceContent};

/// A resolved resource: content with its identity and description.
///
/// `uri`, `content`, `mime_type`, `annotations` and `meta` are MCP's. The other fields are jp's
/// own, and are `None` by default. The type parameters determine whether content and formatted text
/// are in memory or in a conversation ([`Snapshot`]).
#[derive(Debug, Clone, PartialEq)]
pub struct Resource<C = ResourceContent, T = String> {
    /// The canonical URI. With the checksum of the content it is the resource's identity.
    pub uri: String,
    /// The raw content.
    pub content: C,
    /// The MIME type of the content, such as `text/x-rust`.
    pub mime_type: Option<String>,
    /// MCP's hints.
    pub annotations: Option<Annotations>,
    /// MCP's `_meta`, unchanged.
    pub meta: Option<Map<String, Value>>,
    /// The short name: a path from the workspace root, a URL, a note's title, a command line.
    pub name: Option<String>,
    /// The title for users. If it is absent, `name` and then `uri` are shown.
    pub title: Option<String>,
    /// A description of the resource, in a sentence.
    pub description: Option<String>,
    /// The text that a model sees in the place of `content`. It is not part of the identity.
    pub formatted: Option<T>,
}

/// A resource in an event. Its content is usually in a blob store.
pub type Snapshot = Resource<Payload<ResourceContent>, Payload<String>>;

impl<C, T> Resource<C, T> {
    /// Creates a resource with only a URI and content.
    pub fn new(uri: impl Into<String>, content: C) -> Self {
        Self {
            uri: uri.into(),
            content,
            mime_type: None,
            annotations: None,
            meta: None,
            name: None,
            title: None,
            description: None,
            formatted: None,
        }
    }

    /// Sets the MIME type.
    #[must_use]
    pub fn with_mime_type(mut self, mime_type: impl Into<String>) -> Self {
        self.mime_type = Some(mime_type.into());
        self
    }

    /// Sets the short name.
    #[must_use]
    pub fn with_name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Returns the text that represents the resource for users: its title, name or URI.
    #[must_use]
    pub fn label(&self) -> &str {
        self.title
            .as_deref()
            .or(self.name.as_deref())
            .unwrap_or(&self.uri)
    }

    /// Converts the content and the formatted text, and keeps all other fields.
    pub fn map<D, U>(
        self,
        content: impl FnOnce(C) -> D,
        formatted: impl FnOnce(T) -> U,
    ) -> Resource<D, U> {
        Resource {
            uri: self.uri,
            content: content(self.content),
            mime_type: self.mime_type,
            annotations: self.annotations,
            meta: self.meta,
            name: self.name,
            title: self.title,
            description: self.description,
            formatted: self.formatted.map(formatted),
        }
    }
}

impl Resource {
    /// Returns the SHA-256 of the raw content. It covers no other field.
    #[must_use]
    pub fn checksum(&self) -> Checksum {
        Checksum::compute(self.content.as_bytes())
    }
}

impl Snapshot {
    /// Returns the reference to the content. Costs a pass over the content if it is inline.
    #[must_use]
    pub fn blob_ref(&self) -> BlobRef {
        match &self.content {
            Payload::Inline(content) => content.blob_ref(),
            Payload::Stored(blob) => *blob,
        }
    }
}

impl From<Resource> for Snapshot {
    fn from(resource: Resource) -> Self {
        resource.map(Payload::Inline, Payload::Inline)
    }
}

impl From<Resource<BlobRef>> for Snapshot {
    fn from(resource: Resource<BlobRef>) -> Self {
        resource.map(Payload::Stored, Payload::Inline)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksum_covers_only_the_raw_content() {
        let plain =
            Resource::<ResourceContent>::new("file:///a", ResourceContent::Text("x".into()));
        let mut described = plain.clone().with_name("a").with_mime_type("text/plain");
        described.formatted = Some("something else".into());
        described.title = Some("A".into());
        assert_eq!(plain.checksum(), described.checksum());
    }

    #[test]
    fn label_prefers_title_then_name_then_uri() {
        let mut resource =
            Resource::<ResourceContent>::new("x:y", ResourceContent::Text(String::new()));
        assert_eq!(resource.label(), "x:y");
        resource.name = Some("name".into());
        assert_eq!(resource.label(), "name");
        resource.title = Some("title".into());
        assert_eq!(resource.label(), "title");
    }
}
