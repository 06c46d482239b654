//! Provides the tokens for requests.

use std::{fmt, sync::Arc};

use tokio::sync::Mutex;
use url::Url;

use super::{
    flow::{self, now},
    tokens::{StoredTokens, Tokens},
};
use crate::{Endpoint, raw::Raw};

/// The time before its expiry at which a token is renewed, in seconds. It covers a slow request and a
/// clock that is slightly wrong.
const EARLY: u64 = 30;

/// The tokens for one endpoint.
pub(crate) struct Access {
    url: Url,
    tokens: Tokens,
    kept: Mutex<Option<StoredTokens>>,
    raw: Arc<Raw>,
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Access")
            .field("url", &self.url)
            .finish_non_exhaustive()
    }
}

impl Access {
    /// Makes the access to an endpoint; `None` if the configuration has a token.
    pub(crate) fn new(endpoint: &Endpoint, tokens: &Tokens, raw: Arc<Raw>) -> Option<Self> {
        (!is_configured(endpoint)).then(|| Self {
            url: endpoint.url.clone(),
            tokens: tokens.clone(),
            kept: Mutex::default(),
            raw,
        })
    }

    /// Returns the token for the next request if the user has logged in. Renews it if it expires soon.
    pub(crate) async fn token(&self) -> Option<String> {
        let mut kept = self.kept.lock().await;
        if kept.is_none() {
            *kept = self.load();
        }
        if kept
            .as_ref()
            .is_some_and(|kept| kept.expires_at.is_some_and(|end| end < now() + EARLY))
        {
            self.renew(&mut kept).await;
        }
        kept.as_ref().map(|kept| kept.access_token.clone())
    }

    /// Returns a newer token than the refused one, if there is one.
    pub(crate) async fn token_after(&self, refused: &str) -> Option<String> {
        let mut kept = self.kept.lock().await;
        if kept
            .as_ref()
            .is_some_and(|kept| kept.access_token == refused)
        {
            self.renew(&mut kept).await;
        }
        kept.as_ref()
            .map(|kept| kept.access_token.clone())
            .filter(|token| token != refused)
    }

    /// Gets a newer token from another process or from the authorization server.
    ///
    /// Only one process does this at a time, because a refresh token may work only once.
    async fn renew(&self, kept: &mut Option<StoredTokens>) {
        let (tokens, url) = (self.tokens.clone(), self.url.clone());
        let lock = tokio::task::spawn_blocking(move || tokens.lock(&url)).await;
        let Ok(Ok(_lock)) = lock else {
            return self
                .raw
                .remark("its tokens can't be renewed because they can't be locked".to_owned());
        };
        // Another process may have renewed them while this one waited for the lock.
        if let Some(newest) = self.load()
            && kept
                .as_ref()
                .is_none_or(|kept| kept.access_token != newest.access_token)
        {
            *kept = Some(newest);
            return;
        }
        let Some(old) = kept.as_ref().filter(|kept| kept.refresh_token.is_some()) else {
            return;
        };
        match flow::renew(old).await {
            Ok(new) => {
                if let Err(error) = self.tokens.save(&new) {
                    self.raw
                        .remark(format!("its new tokens can't be stored: {error}"));
                }
                *kept = Some(new);
            }
            Err(fault) => self
                .raw
                .remark(format!("its tokens can't be renewed: {fault}")),
        }
    }

    fn load(&self) -> Option<StoredTokens> {
        self.tokens.load(&self.url).unwrap_or_else(|error| {
            self.raw
                .remark(format!("its tokens can't be read: {error}"));
            None
        })
    }
}

/// Returns true if the configuration has a token or an `Authorization` header.
pub(super) fn is_configured(endpoint: &Endpoint) -> bool {
    endpoint.token.is_some()
        || endpoint
            .headers
            .keys()
            .any(|name| name.eq_ignore_ascii_case("authorization"))
}
