//! The tokens that requests carry.

use std::{fmt, sync::Arc};

use tokio::sync::Mutex;
use url::Url;

use super::{
    flow::{self, now},
    tokens::{StoredTokens, Tokens},
};
use crate::{Endpoint, raw::Raw};

/// How many seconds before it runs out a token is renewed.
const EARLY: u64 = 30;

/// What proves to one endpoint who asks.
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
    /// Returns what proves who asks; nothing where the configuration says that.
    pub(crate) fn new(endpoint: &Endpoint, tokens: &Tokens, raw: Arc<Raw>) -> Option<Self> {
        let (url, tokens) = (endpoint.url.clone(), tokens.clone());
        (!is_configured(endpoint)).then(|| Self {
            url,
            tokens,
            kept: Mutex::default(),
            raw,
        })
    }

    /// Returns the token for the next request, where someone has logged in.
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

    /// Returns another token than one that was refused, where there is one.
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

    /// Takes a newer token, from another process that has one or from the authorization server.
    ///
    /// One process at a time: a refresh token may serve only once.
    async fn renew(&self, kept: &mut Option<StoredTokens>) {
        let (tokens, url) = (self.tokens.clone(), self.url.clone());
        let lock = tokio::task::spawn_blocking(move || tokens.lock(&url)).await;
        let Ok(Ok(_lock)) = lock else {
            return self
                .raw
                .remark("its tokens can't be renewed, as they can't be locked".to_owned());
        };
        let newest = self.load();
        let is_newer = |newest: &StoredTokens| {
            kept.as_ref()
                .is_none_or(|kept| kept.access_token != newest.access_token)
        };
        if newest.as_ref().is_some_and(is_newer) {
            *kept = newest;
            return;
        }
        let Some(old) = kept.as_ref().filter(|kept| kept.refresh_token.is_some()) else {
            return;
        };
        match flow::renew(old).await {
            Ok(new) => {
                if let Err(error) = self.tokens.save(&new) {
                    self.raw
                        .remark(format!("its new tokens can't be kept: {error}"));
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

/// Returns whether the configuration says what proves who asks.
pub(super) fn is_configured(endpoint: &Endpoint) -> bool {
    endpoint.token.is_some()
        || endpoint
            .headers
            .keys()
            .any(|name| name.eq_ignore_ascii_case("authorization"))
}
