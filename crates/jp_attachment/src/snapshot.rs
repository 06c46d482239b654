use jp_resource::Resource;

use crate::{AttachError, Context, Declared, Resolved, classify::classify, keep::assemble};

/// Resolves a source whose content can't be read again: it is read once, however often it is
/// declared.
///
/// The URI is `scheme` with the checksum of the content, and names a snapshot.
pub(crate) fn resolve_once(
    scheme: &str,
    name: &str,
    declared: &[Declared],
    context: &Context<'_>,
    read: impl FnOnce(&Declared) -> Result<Vec<u8>, AttachError>,
) -> Result<Resolved, AttachError> {
    let Some(first) = declared.first() else {
        return Ok(Resolved::default());
    };
    let kept = read(first).and_then(|bytes| {
        let (content, mime_type) = classify(bytes, "");
        let checksum = content.blob_ref().checksum;
        let resource = Resource::new(format!("{scheme}:{checksum}"), content)
            .with_mime_type(mime_type)
            .with_name(name);
        context.keep(first, resource).map(|kept| vec![kept])
    });
    assemble(&declared[..1], vec![kept], context)
}
