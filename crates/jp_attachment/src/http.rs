mod address;
mod body;
mod charset;
mod client;
mod content;
mod error;
mod fetch;
mod markdown;
mod url;

use std::{sync::Arc, time::Duration};

use futures_util::StreamExt as _;

use self::{
    client::{Clients, Network, SystemNames},
    fetch::{Fetcher, Request},
};
pub use self::{
    error::HttpError,
    url::{Credentials, HttpUrl, redact},
};
use crate::{
    AttachError, Context, Declared, Resolved, Source, Unavailable,
    keep::{KeptResource, assemble},
};

/// The number of pages that are fetched at once. Each needs a connection, but hardly any processor
/// time.
const MAX_REQUESTS: usize = 8;
/// The interval at which jp checks whether the user interrupted. A person notices no shorter time.
const CANCEL_INTERVAL: Duration = Duration::from_millis(50);

/// Fetches pages by `http:` and `https:` URLs.
///
/// The URI of a page is its canonical URL ([`HttpUrl`]), even if it redirects. The server decides
/// its type. The model sees HTML as Markdown; the content stays HTML.
///
/// Each page has to arrive within [`Context::timeout`]. jp follows at most 10 redirects, and none
/// from `https:` to `http:`. Credentials of a URL go only to its own origin.
///
/// Only a URL that the user typed reaches this machine and private networks: neither one that came
/// with a workspace does, nor a redirect to another host. Addresses are checked when the connection
/// is made, so that a name can't change its address after the check. A proxy that the user
/// configured resolves names itself; there jp checks only addresses and `localhost` in the URL. A
/// proxy never reaches this machine.
///
/// Must not be called from asynchronous code, because it blocks.
pub(crate) fn resolve(
    declared: &[Declared],
    context: &Context<'_>,
) -> Result<Resolved, AttachError> {
    let network = Network {
        names: Arc::new(SystemNames),
        has_proxies: true,
    };
    resolve_with(declared, context, network)
}

/// Resolves with the given network, which tests replace.
fn resolve_with(
    declared: &[Declared],
    context: &Context<'_>,
    network: Network,
) -> Result<Resolved, AttachError> {
    let Some(first) = declared.first() else {
        return Ok(Resolved::default());
    };
    // One thread is enough, because requests mostly wait.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|source| AttachError::Http {
            input: first.input.clone(),
            source: Box::new(HttpError::Runtime(source)),
        })?;
    let page_resolver = PageResolver {
        fetcher: Fetcher {
            clients: Clients::new(network),
            timeout: context.timeout,
            max_bytes: context.limits.max_bytes,
            progress: context.progress,
        },
        context,
    };
    let kept = runtime.block_on(async {
        tokio::select! {
            kept = page_resolver.resolve_all(declared) => Ok(kept),
            error = wait_for_cancel(context) => Err(error),
        }
    });
    // Doesn't wait for name lookups that are still running.
    runtime.shutdown_background();
    assemble(declared, kept?, context)
}

/// Waits until the work is cancelled.
async fn wait_for_cancel(context: &Context<'_>) -> AttachError {
    loop {
        if let Err(error) = context.check_cancelled() {
            return error;
        }
        tokio::time::sleep(CANCEL_INTERVAL).await;
    }
}

struct PageResolver<'a> {
    fetcher: Fetcher<'a>,
    context: &'a Context<'a>,
}

impl PageResolver<'_> {
    /// Resolves all pages, up to the first error that is not tolerated.
    async fn resolve_all(
        &self,
        declared: &[Declared],
    ) -> Vec<Result<Vec<KeptResource>, AttachError>> {
        let mut pages = futures_util::stream::iter(declared)
            .map(|one| self.resolve_page(one))
            .buffered(MAX_REQUESTS);
        let mut all = Vec::with_capacity(declared.len());
        while let Some(kept) = pages.next().await {
            let is_end = kept.as_ref().is_err_and(|error| {
                self.context.unavailable == Unavailable::Fail || !error.is_unavailable()
            });
            all.push(kept);
            if is_end {
                break;
            }
        }
        all
    }

    async fn resolve_page(&self, declared: &Declared) -> Result<Vec<KeptResource>, AttachError> {
        let Source::Http { url, credentials } = &declared.source else {
            return Ok(Vec::new());
        };
        let credentials = credentials.as_ref();
        let request = Request {
            url,
            credentials,
            is_trusted: declared.is_trusted,
        };
        let page = self
            .fetcher
            .get(&request)
            .await
            .map_err(|source| attach_error(declared, source))?;
        let url = url.clone();
        // Converting HTML would block the other requests, which share this thread.
        let reading = tokio::task::spawn_blocking(move || content::read(&url, page));
        let (resource, notices) = match reading.await {
            Ok(read) => read,
            Err(failed) => std::panic::resume_unwind(failed.into_panic()),
        };
        let mut kept = self.context.keep(declared, resource)?;
        kept.notices.extend(notices);
        Ok(vec![kept])
    }
}

fn attach_error(declared: &Declared, source: HttpError) -> AttachError {
    let input = declared.input.clone();
    match source {
        HttpError::TooLong { limit, .. } => AttachError::TooLong { input, limit },
        source => AttachError::Http {
            input,
            source: Box::new(source),
        },
    }
}

#[cfg(test)]
mod tests;
