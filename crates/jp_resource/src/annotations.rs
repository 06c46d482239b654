use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Hints a server or handler gives about a resource (MCP 2025-11-25 "Resources", Annotations).
///
/// They are kept and passed on; of what tools return, jp acts on the audience alone ([`Self::is_for_user`]). Fields that MCP adds later are kept in
/// [`other`](Self::other), and `lastModified` stays the text it was, so that nothing is lost.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Annotations {
    /// Whom the content is meant for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audience: Option<Vec<Role>>,
    /// The importance of the content: 0.0 (optional) to 1.0 (required).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<f64>,
    /// The time of the last change, as ISO 8601.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_modified: Option<String>,
    /// Fields this version does not know.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// One side of a conversation, in MCP's sense.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The person.
    User,
    /// The model.
    Assistant,
}

impl Annotations {
    /// Returns whether the content is meant for the user and nobody else.
    #[must_use]
    pub fn is_for_user(&self) -> bool {
        let audience = self.audience.as_deref().unwrap_or_default();
        !audience.is_empty() && audience.iter().all(|role| *role == Role::User)
    }

    /// Returns whether no hint is given.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
