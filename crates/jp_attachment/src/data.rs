pub(crate) mod url;

use self::url::{decode, malformed};
use crate::{AttachError, Context, Declared, Resolved, handler::Handler, keep::assemble};

/// Resolves `data:` URLs (RFC 2397): the content is in the URL.
///
/// A URL of up to 256 bytes is its resource's URI byte for byte. A longer one would be sent and stored
/// twice; its URI is `data:TYPE;sha256=CHECKSUM,`, which names a snapshot as `external:` does.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct DataHandler;

impl Handler for DataHandler {
    fn schemes(&self) -> &'static [&'static str] {
        &["data"]
    }

    fn resolve(
        &self,
        declared: &[Declared],
        context: &Context<'_>,
    ) -> Result<Resolved, AttachError> {
        let give = |declared: &Declared| {
            let crate::Source::Data(url) = &declared.source else {
                return Ok(Vec::new());
            };
            let resource = decode(url).map_err(|reason| malformed(&declared.input, reason))?;
            let limit = context.limits.max_bytes;
            if resource.content.as_bytes().len() as u64 > limit {
                return Err(AttachError::TooLong {
                    input: declared.input.clone(),
                    limit,
                });
            }
            context.keep(declared, resource).map(|kept| vec![kept])
        };
        assemble(declared, declared.iter().map(give).collect(), context)
    }
}
