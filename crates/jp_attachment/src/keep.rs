use std::collections::HashMap;

use jp_resource::{BlobRef, Checksum, Resource, ResourceContent};

use crate::{
    AttachError, Context, Declared, Delivered, Notice, Resolved, Secrets, Source,
    context::Tolerated, secret,
};

/// A resource whose content is in the store, with the warnings about it.
#[derive(Debug)]
pub(crate) struct KeptResource {
    pub(crate) resource: Resource<BlobRef>,
    pub(crate) notices: Vec<Notice>,
}

impl Context<'_> {
    /// Scans a text for secrets before it is stored, as [`Secrets`] demands.
    pub(crate) fn check_secrets(
        &self,
        input: &str,
        name: &str,
        text: Option<&str>,
    ) -> Result<Vec<Notice>, AttachError> {
        let (Secrets::Warn | Secrets::Refuse, Some(text)) = (self.secrets, text) else {
            return Ok(Vec::new());
        };
        let findings = secret::scan(text);
        if let (Secrets::Refuse, Some(first)) = (self.secrets, findings.first()) {
            return Err(AttachError::Secret {
                input: without_secret(input),
                name: without_secret(name),
                kind: first.kind,
                line: first.line,
            });
        }
        let notices = findings.into_iter().map(|finding| Notice::Secret {
            name: without_secret(name),
            kind: finding.kind,
            line: finding.line,
        });
        Ok(notices.collect())
    }

    /// Stores the content of a resource after scanning it for secrets.
    pub(crate) fn keep(
        &self,
        declared: &Declared,
        resource: Resource,
    ) -> Result<KeptResource, AttachError> {
        let text = resource.content.as_text().or(resource.formatted.as_deref());
        let mut notices = self.check_secrets(&declared.input, resource.label(), text)?;
        if notices.is_empty() {
            // A URL's query, an argument or stderr may hold a secret, too, and is stored with the
            // content.
            let metadata = metadata_text(&resource);
            notices = self.check_secrets(&declared.input, resource.label(), Some(&metadata))?;
        }
        let mime_type = resource
            .mime_type
            .as_deref()
            .unwrap_or(match resource.content {
                ResourceContent::Text(_) => "text/plain",
                ResourceContent::Blob(_) => "application/octet-stream",
            });
        let blob = self
            .store
            .keep(&resource.content, mime_type, None)
            .map_err(|source| AttachError::Store {
                input: declared.input.clone(),
                of: resource.uri.clone(),
                source,
            })?;
        if let Some(progress) = self.progress {
            progress.finish();
        }
        let resource = resource.map(|_: ResourceContent| blob, |formatted| formatted);
        Ok(KeptResource { resource, notices })
    }
}

/// Returns the texts of a resource other than its content.
fn metadata_text(resource: &Resource) -> String {
    let Resource {
        uri,
        name,
        title,
        description,
        meta,
        ..
    } = resource;
    let mut text = uri.clone();
    for value in [name, title, description].into_iter().flatten() {
        text += &format!("\n{value}");
    }
    for (key, value) in meta.iter().flatten() {
        text += &format!("\n{key}: {value}");
    }
    text
}

/// Assembles the result from the resources of each declaration. Fails with the first error that is
/// not tolerated.
///
/// A declaration without a stored form is stored as the URIs of its resources.
pub(crate) fn assemble(
    declared: &[Declared],
    kept: Vec<Tolerated<Vec<KeptResource>>>,
    context: &Context<'_>,
) -> Result<Resolved, AttachError> {
    let mut resolved = Resolved::default();
    let mut indexes = HashMap::new();
    for (index, (declared, kept)) in declared.iter().zip(kept).enumerate() {
        let kept = match context.unavailable.tolerate(kept)? {
            Ok(kept) => kept,
            Err(error) => {
                resolved.notices.push(Notice::Skipped(error));
                continue;
            }
        };
        let mut delivered = Vec::with_capacity(kept.len());
        for KeptResource { resource, notices } in kept {
            // Two declarations may have the same resource. Its notices are reported once.
            let identity = (origin(&declared.source, &resource), resource.uri.clone());
            let place = *indexes.entry(identity).or_insert(resolved.resources.len());
            delivered.push((place, resource.uri.clone()));
            if place == resolved.resources.len() {
                resolved.notices.extend(notices);
                resolved.totals.files += 1;
                resolved.totals.bytes += resource.content.size;
                resolved.resources.push(resource);
            }
        }
        match &declared.declaration {
            Some(declaration) => resolved.delivered.push(Delivered {
                declared: index,
                declaration: declaration.clone(),
                resources: delivered.into_iter().map(|(place, _)| place).collect(),
            }),
            None => resolved
                .delivered
                .extend(delivered.into_iter().map(|(place, declaration)| Delivered {
                    declared: index,
                    declaration,
                    resources: vec![place],
                })),
        }
    }
    Ok(resolved)
}

/// Shortens the name of content that holds a secret if the name, such as a URL or a command line,
/// may hold the secret as well.
fn without_secret(name: &str) -> String {
    let is_data = name
        .get(..5)
        .is_some_and(|scheme| scheme.eq_ignore_ascii_case("data:"));
    match name.split_once(if is_data { ',' } else { ':' }) {
        // The data of the URL is the content that holds the secret.
        Some((kind, _)) if is_data => format!("{kind},…"),
        _ if secret::scan(name).is_empty() => name.to_owned(),
        Some((scheme, _)) if scheme.bytes().all(|byte| byte.is_ascii_lowercase()) => {
            format!("{scheme}:…")
        }
        _ => "…".to_owned(),
    }
}

/// Returns what distinguishes resources with equal URIs: two MCP servers may use the same URI, and
/// so may the contents of one MCP resource.
fn origin<'s>(source: &'s Source, resource: &Resource<BlobRef>) -> Option<(&'s str, Checksum)> {
    match source {
        Source::Mcp(mcp) => Some((&mcp.server, resource.content.checksum)),
        _ => None,
    }
}
