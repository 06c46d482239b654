use std::collections::HashMap;

use jp_resource::{BlobRef, Resource, ResourceContent};

use crate::{AttachError, Context, Declared, Delivered, Notice, Resolved};

impl Context<'_> {
    /// Keeps a resource that a handler has in memory.
    pub(crate) fn keep(
        &self,
        declared: &Declared,
        resource: Resource,
    ) -> Result<Resource<BlobRef>, AttachError> {
        let mime_type = resource.mime_type.as_deref().unwrap_or("application/octet-stream");
        let blob = self.store.keep(&resource.content, mime_type, None).map_err(|source| {
            let (input, of) = (declared.input.clone(), resource.uri.clone());
            AttachError::Store { input, of, source }
        })?;
        if let Some(progress) = self.progress {
            let size = resource.content.as_bytes().len() as u64;
            progress.expect(1, size);
            progress.read(size);
            progress.finish();
        }
        Ok(resource.map(|_: ResourceContent| blob, |formatted| formatted))
    }
}

/// Puts together what each declaration gave; fails with the first error that is not tolerated.
///
/// A declaration without a stored form is stored as the URI of what it gave.
pub(crate) fn assemble(
    declared: &[Declared],
    given: Vec<Result<Vec<Resource<BlobRef>>, AttachError>>,
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
        for resource in resources {
            let place = *indexes.entry(resource.uri.clone()).or_insert(resolved.resources.len());
            delivered.push((place, resource.uri.clone()));
            if place == resolved.resources.len() {
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
            None => resolved.delivered.extend(delivered.into_iter().map(|(place, declaration)| Delivered {
                declared: index,
                declaration,
                resources: vec![place],
            })),
        }
    }
    Ok(resolved)
}
