//! Conversions from rmcp's resource types, and back (MCP 2025-11-25 and 2026-07-28 "Resources").
//!
//! Nothing that rmcp holds is lost but how a priority's digits and base64 were spelled. What rmcp itself drops
//! while reading a server's JSON never gets here: annotations inside `resource` and unknown fields.

use base64::{Engine, engine::general_purpose::STANDARD};
use rmcp::model::{self as mcp, EmbeddedResource, MetaObject, ResourceContents};

use crate::{Annotations, Resource, ResourceContent, Role, decode_base64};

/// Contents that a server sent and that are no [`Resource`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum McpContentsError {
    /// The `blob` can't be decoded.
    #[error("contents of {uri:?}: {reason}")]
    Base64 {
        /// The resource.
        uri: String,
        /// What is wrong, as [`decode_base64`] says it.
        reason: String,
    },
    /// rmcp knows a form beside text and blob that this version does not.
    #[error("contents are neither text nor blob")]
    UnknownForm,
}

/// Text stays text and a blob becomes bytes, whatever the MIME type; fields that MCP doesn't have stay `None`.
impl TryFrom<ResourceContents> for Resource {
    type Error = McpContentsError;

    fn try_from(contents: ResourceContents) -> Result<Self, Self::Error> {
        let (uri, content, mime_type, meta) = match contents {
            ResourceContents::TextResourceContents { uri, mime_type, text, meta } => {
                (uri, ResourceContent::Text(text), mime_type, meta)
            }
            ResourceContents::BlobResourceContents { uri, mime_type, blob, meta } => {
                match decode_base64(&blob) {
                    Ok(bytes) => (uri, ResourceContent::Blob(bytes), mime_type, meta),
                    Err(reason) => return Err(McpContentsError::Base64 { uri, reason }),
                }
            }
            _ => return Err(McpContentsError::UnknownForm),
        };
        Ok(Self { mime_type, meta: meta.map(|MetaObject(meta)| meta), ..Self::new(uri, content) })
    }
}

/// The block's annotations become the resource's; the block's own `_meta` is not the resource's and has no
/// place here (a content block keeps both).
impl TryFrom<EmbeddedResource> for Resource {
    type Error = McpContentsError;

    fn try_from(block: EmbeddedResource) -> Result<Self, Self::Error> {
        let resource = Self::try_from(block.resource)?;
        Ok(Self { annotations: block.annotations.map(Into::into), ..resource })
    }
}

/// Gives what MCP has a field for; annotations stand outside, on the [`EmbeddedResource`].
impl From<&Resource> for ResourceContents {
    fn from(resource: &Resource) -> Self {
        let (uri, mime_type) = (resource.uri.clone(), resource.mime_type.clone());
        let meta = resource.meta.clone().map(MetaObject);
        match &resource.content {
            ResourceContent::Text(text) => {
                Self::TextResourceContents { uri, mime_type, text: text.clone(), meta }
            }
            ResourceContent::Blob(bytes) => {
                Self::BlobResourceContents { uri, mime_type, blob: STANDARD.encode(bytes), meta }
            }
        }
    }
}

impl From<&Resource> for EmbeddedResource {
    fn from(resource: &Resource) -> Self {
        let mut block = Self::new(resource.into());
        block.annotations = resource.annotations.as_ref().map(Into::into);
        block
    }
}

/// The priority is the shortest decimal that rmcp's `f32` stands for: 0.7 stays 0.7. One too large for an
/// `f32` is left out.
impl From<mcp::Annotations> for Annotations {
    fn from(annotations: mcp::Annotations) -> Self {
        let roles = |roles: Vec<mcp::Role>| roles.into_iter().map(Into::into).collect();
        Self {
            audience: annotations.audience.map(roles),
            priority: annotations.priority.and_then(shortest_decimal),
            last_modified: annotations.last_modified,
            other: serde_json::Map::new(),
        }
    }
}

/// rmcp has no place for [`Annotations::other`].
impl From<&Annotations> for mcp::Annotations {
    fn from(annotations: &Annotations) -> Self {
        let roles = |roles: &Vec<Role>| roles.iter().map(|role| (*role).into()).collect();
        let mut converted = Self::default();
        converted.audience = annotations.audience.as_ref().map(roles);
        converted.priority = annotations.priority.map(|priority| priority as f32);
        converted.last_modified.clone_from(&annotations.last_modified);
        converted
    }
}

fn shortest_decimal(number: f32) -> Option<f64> {
    number.to_string().parse().ok().filter(|number: &f64| number.is_finite())
}

impl From<mcp::Role> for Role {
    fn from(role: mcp::Role) -> Self {
        match role {
            mcp::Role::User => Self::User,
            mcp::Role::Assistant => Self::Assistant,
        }
    }
}

impl From<Role> for mcp::Role {
    fn from(role: Role) -> Self {
        match role {
            Role::User => Self::User,
            Role::Assistant => Self::Assistant,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Map, Value, json};

    use super::*;

    fn read_contents(value: Value) -> Result<Resource, McpContentsError> {
        serde_json::from_value::<ResourceContents>(value).unwrap().try_into()
    }

    /// MCP 2025-11-25 "Resources": "Text Content", "Binary Content", and `_meta`.
    #[test]
    fn contents_of_the_specification_keep_their_json() {
        for value in [
            json!({"uri": "file:///example.txt", "mimeType": "text/plain", "text": "Resource content"}),
            json!({"uri": "file:///example.png", "mimeType": "image/png", "blob": "iVBORw=="}),
            json!({"uri": "note:1", "text": ""}),
            json!({"uri": "note:1", "text": "x", "_meta": {"example.com/version": [1, {"a": null}]}}),
        ] {
            let resource = read_contents(value.clone()).unwrap();
            assert_eq!(serde_json::to_value(&resource).unwrap(), value);
            assert_eq!(serde_json::to_value(ResourceContents::from(&resource)).unwrap(), value);
        }
    }

    #[test]
    fn uri_of_a_server_stays_byte_for_byte() {
        let resource = read_contents(json!({"uri": "FILE:///a/../b%7e#x", "text": ""})).unwrap();
        assert_eq!(resource.uri, "FILE:///a/../b%7e#x");
    }

    #[test]
    fn text_that_calls_itself_an_image_stays_text() {
        let resource =
            read_contents(json!({"uri": "a:b", "mimeType": "image/svg+xml", "text": "<svg/>"})).unwrap();
        assert_eq!(resource.content.as_text(), Some("<svg/>"));
    }

    #[test]
    fn base64_is_read_in_every_common_spelling() {
        for blob in ["/+8=", "/+8", "_-8=", "_-8"] {
            let resource = read_contents(json!({"uri": "a:b", "blob": blob})).unwrap();
            assert_eq!(resource.content.as_bytes(), [0xff, 0xef], "{blob:?}");
        }
    }

    #[test]
    fn bad_base64_names_the_resource() {
        let error = read_contents(json!({"uri": "a:b", "blob": "?"})).unwrap_err();
        assert_eq!(error.to_string(), "contents of \"a:b\": invalid base64: Invalid symbol 63, offset 0.");
    }

    #[test]
    fn annotations_of_the_block_become_the_resources() {
        let block: EmbeddedResource = serde_json::from_value(json!({
            "resource": {"uri": "file:///a", "text": "x", "_meta": {"inner": 1}},
            "annotations": {"audience": ["user", "assistant"], "priority": 0.7, "lastModified": "2025-05-03T14:30:00Z"},
            "_meta": {"outer": 1},
        }))
        .unwrap();
        let resource = Resource::try_from(block).unwrap();
        assert_eq!(
            serde_json::to_value(&resource).unwrap(),
            json!({
                "uri": "file:///a",
                "text": "x",
                "annotations": {"audience": ["user", "assistant"], "priority": 0.7, "lastModified": "2025-05-03T14:30:00Z"},
                "_meta": {"inner": 1},
            })
        );
    }

    #[test]
    fn last_modified_stays_the_text_it_was() {
        for text in ["2025-01-12", "2025-01-12T15:00:58+02:00", "2025-01-12T15:00:58.100Z", "yesterday"] {
            let read: mcp::Annotations = serde_json::from_value(json!({"lastModified": text})).unwrap();
            assert_eq!(Annotations::from(read).last_modified.as_deref(), Some(text));
        }
    }

    /// rmcp's `Annotations` has no place for a field it does not know; ours does (`other`).
    #[test]
    fn unknown_annotation_is_lost_by_rmcp() {
        let read: mcp::Annotations = serde_json::from_value(json!({"priority": 1.0, "weight": 3})).unwrap();
        assert_eq!(Annotations::from(read), Annotations { priority: Some(1.0), ..Annotations::default() });
    }

    /// The seed's example, and MCP's own of an embedded resource, have them inside; MCP's schema and rmcp don't.
    #[test]
    fn annotations_inside_the_contents_are_lost_by_rmcp() {
        let value = json!({"uri": "a:b", "text": "x", "annotations": {"priority": 1.0}, "title": "T"});
        let resource = read_contents(value).unwrap();
        assert_eq!(resource, Resource::new("a:b", ResourceContent::Text("x".into())));
    }

    #[test]
    fn priority_beyond_f32_is_left_out() {
        let read: mcp::Annotations = serde_json::from_value(json!({"priority": 1e300})).unwrap();
        assert_eq!(Annotations::from(read).priority, None);
    }

    fn meta() -> impl Strategy<Value = Map<String, Value>> {
        let value = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            ".*".prop_map(Value::from),
        ];
        prop::collection::hash_map(".*", value, 0..3).prop_map(|map| map.into_iter().collect())
    }

    fn annotations() -> impl Strategy<Value = Annotations> {
        let audience = prop::collection::vec(prop_oneof![Just(Role::User), Just(Role::Assistant)], 0..3);
        // Six digits: what an `f32` holds of any decimal.
        let priority = (0..=1_000_000_u32).prop_map(|millionths| f64::from(millionths) / 1e6);
        (prop::option::of(audience), prop::option::of(priority), any::<Option<String>>()).prop_map(
            |(audience, priority, last_modified)| Annotations {
                audience,
                priority,
                last_modified,
                other: Map::new(),
            },
        )
    }

    fn content() -> impl Strategy<Value = ResourceContent> {
        prop_oneof![
            any::<String>().prop_map(ResourceContent::Text),
            any::<Vec<u8>>().prop_map(ResourceContent::Blob),
        ]
    }

    fn resource() -> impl Strategy<Value = Resource> {
        let parts = (
            any::<String>(),
            content(),
            any::<Option<String>>(),
            prop::option::of(annotations()),
            prop::option::of(meta()),
        );
        parts.prop_map(|(uri, content, mime_type, annotations, meta)| Resource {
            mime_type,
            annotations,
            meta,
            ..Resource::new(uri, content)
        })
    }

    proptest! {
        #[test]
        fn what_mcp_has_a_field_for_survives_rmcp_and_its_json(resource in resource()) {
            let block = EmbeddedResource::from(&resource);
            prop_assert_eq!(Resource::try_from(block.clone()), Ok(resource.clone()));
            let json = serde_json::to_string(&block).unwrap();
            let block: EmbeddedResource = serde_json::from_str(&json).unwrap();
            prop_assert_eq!(Resource::try_from(block), Ok(resource));
        }

        #[test]
        fn finite_priority_keeps_its_f32(priority: f32) {
            let mut read = mcp::Annotations::default();
            read.priority = Some(priority);
            let back = mcp::Annotations::from(&Annotations::from(read));
            prop_assert_eq!(back.priority, priority.is_finite().then_some(priority));
        }
    }
}
