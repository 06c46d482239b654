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

pub use self::url::redacted;
use self::{
    client::{Clients, Network, SystemNames},
    fetch::{Fetcher, Request},
};
pub use self::{
    error::HttpError,
    url::{Credentials, HttpUrl},
};
use crate::{
    AttachError, Context, Declared, Resolved, Source, Unavailable,
    handler::Handler,
    keep::{Kept, assemble},
};

/// Gets pages by `http:` and `https:` URLs.
///
/// A page's URI is its canonical URL ([`HttpUrl`]), whatever it redirects to. What its server says decides
/// its type; HTML is Markdown for the model, and stays what it is as content.
///
/// Pages are got up to 8 at once, each within [`Context::timeout`]; at most 10 redirects are followed, none
/// from `https:` to `http:`. Credentials of a URL go to its own origin alone. This machine and private
/// networks are reached by a URL that the person typed, never by one that came with a workspace or by a
/// redirect to another host. Addresses are checked when the connection is made, so that a name can't stand
/// for another address by then. A proxy that the person configured resolves names itself: which addresses
/// it reaches is its own affair, but for addresses and `localhost` in a URL. This machine is never reached
/// by a proxy.
///
/// Must not be called from asynchronous code: it waits.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct HttpHandler;

/// How many pages are got at once.
const PARALLEL: usize = 8;
/// How often it is looked whether the person interrupted.
const CANCEL_INTERVAL: Duration = Duration::from_millis(50);

impl Handler for HttpHandler {
    fn schemes(&self) -> &'static [&'static str] {
        &["http", "https"]
    }

    fn resolve(
        &self,
        declared: &[Declared],
        context: &Context<'_>,
    ) -> Result<Resolved, AttachError> {
        let network = Network {
            names: Arc::new(SystemNames),
            has_proxies: true,
        };
        resolve_with(declared, context, network)
    }
}

/// Resolves by way of a network.
fn resolve_with(
    declared: &[Declared],
    context: &Context<'_>,
    network: Network,
) -> Result<Resolved, AttachError> {
    let Some(first) = declared.first() else {
        return Ok(Resolved::default());
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|source| AttachError::Http {
            input: first.input.clone(),
            source: Box::new(HttpError::Runtime(source)),
        })?;
    let resolving = Resolving {
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
            kept = resolving.all(declared) => Ok(kept),
            error = cancelled(context) => Err(error),
        }
    });
    // Without waiting for a name that is still looked up.
    runtime.shutdown_background();
    assemble(declared, kept?, context)
}

async fn cancelled(context: &Context<'_>) -> AttachError {
    loop {
        if let Err(error) = context.check_cancelled() {
            return error;
        }
        tokio::time::sleep(CANCEL_INTERVAL).await;
    }
}

struct Resolving<'a> {
    fetcher: Fetcher<'a>,
    context: &'a Context<'a>,
}

impl Resolving<'_> {
    /// Gets what is declared, up to the first error that is not tolerated.
    async fn all(&self, declared: &[Declared]) -> Vec<Result<Vec<Kept>, AttachError>> {
        let mut pages = futures_util::stream::iter(declared)
            .map(|one| self.one(one))
            .buffered(PARALLEL);
        let mut all = Vec::with_capacity(declared.len());
        while let Some(kept) = pages.next().await {
            let ends = |error: &AttachError| {
                self.context.unavailable == Unavailable::Fail || !error.is_unavailable()
            };
            let is_end = kept.as_ref().is_err_and(ends);
            all.push(kept);
            if is_end {
                break;
            }
        }
        all
    }

    async fn one(&self, declared: &Declared) -> Result<Vec<Kept>, AttachError> {
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
        // Not where other pages wait.
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
