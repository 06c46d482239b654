use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Hints of a server or handler about a resource (MCP 2025-11-25 "Resources", Annotations).
///
/// jp keeps them and passes them on. It only acts on the audience of tools' results
/// ([`Self::is_for_user`]). Nothing is lost: unknown fields are in [`other`](Self::other), and
/// `lastModified` is not parsed.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Annotations {
    /// The audience of the content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audience: Option<Vec<Role>>,
    /// The importance of the content: 0.0 (optional) to 1.0 (required).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<f64>,
    /// The time of the last change, as ISO 8601.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_modified: Option<String>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// One side of a conversation, in MCP's sense.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The user.
    User,
    /// The model.
    Assistant,
}

impl Annotations {
    /// Returns whether the content is only for the user.
    #[must_use]
    pub fn is_for_user(&self) -> bool {
        let audience = self.audience.as_deref().unwrap_or_default();
        !audience.is_empty() && audience.iter().all(|role| *role == Role::User)
    }

    /// Returns whether there are no hints.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
