use std::collections::HashMap;

use jp_resource::{BlobRef, Checksum, Resource, ResourceContent};

use crate::{AttachError, Context, Declared, Delivered, Notice, Resolved, Secrets, Source, secret};

/// A resource that the store has, and what was noticed about it.
#[derive(Debug)]
pub(crate) struct Kept {
    pub(crate) resource: Resource<BlobRef>,
    pub(crate) notices: Vec<Notice>,
}

impl Context<'_> {
    /// Looks for secrets in a text that is about to be kept, as [`Secrets`] says.
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
            let (input, name) = (without_secret(input), without_secret(name));
            return Err(AttachError::Secret {
                input,
                name,
                kind: first.kind,
                line: first.line,
            });
        }
        let notice = |found: secret::Finding| Notice::Secret {
            name: without_secret(name),
            kind: found.kind,
            line: found.line,
        };
        Ok(findings.into_iter().map(notice).collect())
    }

    /// Keeps a resource that a handler has in memory, once it is looked at for secrets.
    pub(crate) fn keep(
        &self,
        declared: &Declared,
        resource: Resource,
    ) -> Result<Kept, AttachError> {
        let text = resource.content.as_text().or(resource.formatted.as_deref());
        let mut notices = self.check_secrets(&declared.input, resource.label(), text)?;
        if notices.is_empty() {
            // What is stored beside the content may hold one as well: a URL's query, an argument, stderr.
            let beside = text_beside(&resource);
            notices = self.check_secrets(&declared.input, resource.label(), Some(&beside))?;
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
            .map_err(|source| {
                let (input, of) = (declared.input.clone(), resource.uri.clone());
                AttachError::Store { input, of, source }
            })?;
        if let Some(progress) = self.progress {
            progress.finish();
        }
        let resource = resource.map(|_: ResourceContent| blob, |formatted| formatted);
        Ok(Kept { resource, notices })
    }
}

/// Returns what is stored of a resource beside its content.
fn text_beside(resource: &Resource) -> String {
    let Resource {
        uri,
        name,
        title,
        description,
        meta,
        ..
    } = resource;
    let others = [name, title, description]
        .into_iter()
        .filter_map(Option::as_deref);
    let mut text = std::iter::once(uri.as_str())
        .chain(others)
        .collect::<Vec<_>>()
        .join("\n");
    for (key, value) in meta.iter().flatten() {
        text += &format!("\n{key}: {value}");
    }
    text
}

/// Puts together what each declaration gave; fails with the first error that is not tolerated.
///
/// A declaration without a stored form is stored as the URI of what it gave.
pub(crate) fn assemble(
    declared: &[Declared],
    given: Vec<Result<Vec<Kept>, AttachError>>,
    context: &Context<'_>,
) -> Result<Resolved, AttachError> {
    let mut resolved = Resolved::default();
    let mut indexes = HashMap::new();
    for (index, (declared, given)) in declared.iter().zip(given).enumerate() {
        let resources = match context.unavailable.tolerate(given)? {
            Ok(resources) => resources,
            Err(error) => {
                resolved.notices.push(Notice::Skipped(error));
                continue;
            }
        };
        let mut delivered = Vec::with_capacity(resources.len());
        for Kept { resource, notices } in resources {
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

/// Returns what to call content that holds a secret where its name, such as a URL or a command line, may
/// hold it as well.
fn without_secret(name: &str) -> String {
    let is_data = name
        .get(..5)
        .is_some_and(|scheme| scheme.eq_ignore_ascii_case("data:"));
    match name.split_once(if is_data { ',' } else { ':' }) {
        Some((kind, _)) if is_data => format!("{kind},…"),
        _ if secret::scan(name).is_empty() => name.to_owned(),
        Some((scheme, _)) if scheme.bytes().all(|byte| byte.is_ascii_lowercase()) => {
            format!("{scheme}:…")
        }
        _ => "…".to_owned(),
    }
}

/// Returns what a URI belongs to besides its scheme: two MCP servers may use the same one, and so may the contents of one
/// resource.
fn origin<'s>(source: &'s Source, resource: &Resource<BlobRef>) -> Option<(&'s str, Checksum)> {
    match source {
        Source::Mcp(mcp) => Some((&mcp.server, resource.content.checksum)),
        _ => None,
    }
}
