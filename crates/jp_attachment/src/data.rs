pub(crate) mod url;

use self::url::decode;
use crate::{AttachError, Context, Declared, Resolved, Source, keep::assemble};

/// Resolves `data:` URLs (RFC 2397), which hold their content.
///
/// A URL of up to 256 bytes is the URI of its resource, byte for byte. The URI of a longer one is
/// `data:TYPE;sha256=CHECKSUM,`, because the content would be sent and stored twice otherwise. It
/// names a snapshot, as `external:` does.
pub(crate) fn resolve(
    declared: &[Declared],
    context: &Context<'_>,
) -> Result<Resolved, AttachError> {
    let kept = declared.iter().map(|declared| {
        let Source::Data(url) = &declared.source else {
            return Ok(Vec::new());
        };
        let resource =
            decode(url).map_err(|reason| AttachError::invalid(&declared.input, reason))?;
        context.check_length(&declared.input, resource.content.as_bytes().len())?;
        context.keep(declared, resource).map(|kept| vec![kept])
    });
    assemble(declared, kept.collect(), context)
}
