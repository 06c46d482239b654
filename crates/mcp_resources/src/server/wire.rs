//! Converts our types to those of MCP.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rmcp::model::{self, ErrorData, ResourceContents};
use serde_json::json;

use crate::call::Interruption;
use crate::registry::{CheckedTemplate, CompleteError};
use crate::resource::Details;
use crate::{Annotations, Body, CacheScope, Content, Icon, ReadError, Resource, Role};

pub(super) fn resource(resource: &Resource) -> model::Resource {
    let details = &resource.details;
    let mut wire = model::Resource::new(&resource.uri, &details.name);
    wire.title = details.title.clone();
    wire.description = details.description.clone();
    wire.mime_type = details.mime_type.clone();
    wire.size = resource.size;
    wire.icons = icons(details);
    wire.annotations = annotations(&details.annotations);
    wire
}

pub(super) fn template(template: &CheckedTemplate) -> model::ResourceTemplate {
    let details = &template.description.details;
    let mut wire = model::ResourceTemplate::new(&template.description.uri_template, &details.name);
    wire.title = details.title.clone();
    wire.description = details.description.clone();
    wire.mime_type = details.mime_type.clone();
    wire.icons = icons(details);
    wire.annotations = annotations(&details.annotations);
    wire
}

fn icons(details: &Details) -> Option<Vec<model::Icon>> {
    let icons: Vec<_> = details.icons.iter().map(icon).collect();
    Some(icons).filter(|icons| !icons.is_empty())
}

fn icon(icon: &Icon) -> model::Icon {
    let mut wire = model::Icon::new(&icon.src);
    wire.mime_type = icon.mime_type.clone();
    wire.sizes = Some(icon.sizes.clone()).filter(|sizes| !sizes.is_empty());
    wire
}

fn annotations(annotations: &Annotations) -> Option<model::Annotations> {
    let mut wire = model::Annotations::default();
    wire.audience = Some(annotations.audience.iter().map(role).collect())
        .filter(|roles: &Vec<_>| !roles.is_empty());
    wire.priority = annotations.priority;
    wire.last_modified = annotations.last_modified.clone();
    Some(wire).filter(|wire| *wire != model::Annotations::default())
}

fn role(role: &Role) -> model::Role {
    match role {
        Role::User => model::Role::User,
        Role::Assistant => model::Role::Assistant,
    }
}

/// Converts a content of a [`Reading`](crate::Reading), each of which has its URI.
pub(super) fn contents(content: Content) -> ResourceContents {
    let uri = content.uri.expect("a reading names each");
    let wire = match content.body {
        Body::Text(text) => ResourceContents::TextResourceContents {
            uri,
            mime_type: None,
            text,
            meta: None,
        },
        Body::Bytes(bytes) => ResourceContents::blob(STANDARD.encode(bytes), uri),
    };
    match content.mime_type {
        Some(mime_type) => wire.with_mime_type(mime_type),
        None => wire,
    }
}

pub(super) fn cache_scope(scope: CacheScope) -> model::CacheScope {
    match scope {
        CacheScope::Private => model::CacheScope::Private,
        CacheScope::Public => model::CacheScope::Public,
    }
}

pub(super) fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

pub(super) fn cursor(place: u64) -> String {
    format!("{place:x}")
}

pub(super) fn place(cursor: &str) -> Result<u64, ErrorData> {
    u64::from_str_radix(cursor, 16).map_err(|_| {
        let why = "the cursor is not from this server; start without one";
        ErrorData::invalid_params(why, None)
    })
}

pub(super) fn not_found(uri: &str) -> ErrorData {
    read_error(&ReadError::NotFound, uri)
}

/// Converts an error as the table of [`ReadError`] says.
pub(super) fn read_error(error: &ReadError, uri: &str) -> ErrorData {
    match error {
        ReadError::NotFound => ErrorData::invalid_params(
            format!("there is no resource {}", shorten(uri)),
            Some(json!({ "uri": shorten(uri) })),
        ),
        ReadError::BadParameters(_) => {
            ErrorData::invalid_params(error.to_string(), Some(json!({ "uri": shorten(uri) })))
        }
        _ => ErrorData::internal_error(error.to_string(), None),
    }
}

/// Returns the first 1,024 characters of a text that is repeated in an error. A client may send as much as
/// it likes.
pub(super) fn shorten(text: &str) -> &str {
    match text.char_indices().nth(1024) {
        Some((end, _)) => &text[..end],
        None => text,
    }
}

pub(super) fn complete_error(error: &CompleteError) -> ErrorData {
    match error {
        CompleteError::UnknownTemplate => ErrorData::invalid_params(
            "there is no such template; resources/templates/list names them",
            None,
        ),
        CompleteError::UnknownVariable => {
            ErrorData::invalid_params("the template has no such variable", None)
        }
        CompleteError::Interrupted(Interruption::Panic) => ErrorData::internal_error(
            "the completion handler panicked; the server's standard error says why",
            None,
        ),
        CompleteError::Interrupted(Interruption::Timeout | Interruption::Busy) => {
            ErrorData::internal_error(
                "the completion handler took too long; try again later",
                None,
            )
        }
    }
}
