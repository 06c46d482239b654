//! Talks to authorization servers through rmcp.

use std::{
    error::Error as _,
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use rmcp::transport::auth::{
    AuthError, AuthorizationCallback, AuthorizationManager, AuthorizationMetadata, CredentialStore,
    InMemoryCredentialStore, OAuthClientConfig, StoredCredentials, WWWAuthenticateParams,
};
use serde_json::json;
use url::Url;

use super::{
    login::{KnownClient, Login},
    near,
    tokens::StoredTokens,
};
use crate::{
    Fault,
    config::{is_loopback, is_safe},
    cryptography,
    raw::quote,
};

/// The longest message of an authorization server in an error, in characters.
const MAX_REASON: usize = 500;

/// A login before the visit of its page.
pub(super) struct PendingLogin {
    url: Url,
    manager: AuthorizationManager,
    credentials: InMemoryCredentialStore,
    client: OAuthClientConfig,
    page: Url,
}

impl PendingLogin {
    pub(super) async fn new(
        url: &Url,
        login: &Login,
        before: Option<&StoredTokens>,
        redirect: &str,
    ) -> Result<Self, Fault> {
        let mut found = LoginPlace::discover(url, login.challenge.as_deref()).await?;
        let scopes = found.scopes(login, before).await;
        let scopes: Vec<_> = scopes.iter().map(String::as_str).collect();
        let client = found.client(login, redirect, &scopes).await?;
        let LoginPlace {
            mut manager,
            credentials,
            ..
        } = found;
        manager
            .configure_client(client.clone())
            .map_err(login_fault)?;
        let page = manager
            .get_authorization_url(&scopes)
            .await
            .map_err(login_fault)?;
        let page = Url::parse(&page)
            .map_err(|error| Fault::Login(format!("its page has an invalid URL: {error}")))?;
        Ok(Self {
            url: url.clone(),
            manager,
            credentials,
            client,
            page,
        })
    }

    /// Returns the page.
    pub(super) fn page(&self) -> &Url {
        &self.page
    }

    /// Returns the state that the page's redirect must contain.
    pub(super) fn state(&self) -> Result<String, Fault> {
        let state = self.page.query_pairs().find(|(name, _)| name == "state");
        state
            .map(|(_, state)| state.into_owned())
            .ok_or_else(|| Fault::Login("its page has no state".to_owned()))
    }

    /// Exchanges the code in the page's redirect for tokens.
    pub(super) async fn finish(self, target: &Url) -> Result<StoredTokens, Fault> {
        let callback =
            AuthorizationCallback::from_redirect_url(target.as_str()).map_err(login_fault)?;
        let (code, state, issuer) = (
            &callback.code,
            &callback.csrf_token,
            callback.issuer.as_deref(),
        );
        self.manager
            .exchange_code_for_token_with_issuer(code, state, issuer)
            .await
            .map_err(login_fault)?;
        read_tokens(self.url, &self.credentials, self.client).await
    }
}

/// The authorization server of an endpoint.
struct LoginPlace {
    url: Url,
    manager: AuthorizationManager,
    /// The store that the manager writes to.
    credentials: InMemoryCredentialStore,
    metadata: AuthorizationMetadata,
}

impl LoginPlace {
    /// Finds the authorization server. Without a challenge, asks the endpoint for one.
    async fn discover(url: &Url, challenge: Option<&str>) -> Result<Self, Fault> {
        cryptography::install();
        let manager = if is_loopback(url) {
            let client = Arc::new(near::client().map_err(login_fault)?);
            AuthorizationManager::new_with_oauth_http_client(url.clone(), client).await
        } else {
            // A server on the network must not lead jp to this machine or its local network, so rmcp's own
            // client refuses such addresses.
            AuthorizationManager::new(url.clone()).await
        };
        let mut manager = manager.map_err(login_fault)?;
        let credentials = InMemoryCredentialStore::new();
        manager.set_credential_store(credentials.clone());
        let metadata = manager
            .resolve_metadata_from_challenge(challenge)
            .await
            .map_err(login_fault)?
            .metadata;
        let (page, token) = (&metadata.authorization_endpoint, &metadata.token_endpoint);
        if let Some(endpoint) = [page, token]
            .into_iter()
            .chain(&metadata.registration_endpoint)
            .find(|endpoint| is_unsafe(endpoint))
        {
            let endpoint = quote(endpoint);
            return Err(Fault::Login(format!(
                "its authorization server does not use https: {endpoint}"
            )));
        }
        manager.set_metadata(metadata.clone());
        Ok(Self {
            url: url.clone(),
            manager,
            credentials,
            metadata,
        })
    }

    /// Returns the scopes to request: those that the server and the configuration want. If the server wants
    /// more than was granted, the granted ones are added.
    async fn scopes(&self, login: &Login, before: Option<&StoredTokens>) -> Vec<String> {
        let challenge = login
            .challenge
            .as_deref()
            .map(|challenge| WWWAuthenticateParams::parse(challenge, &self.url));
        let is_too_little = challenge.is_some_and(|challenge| challenge.is_insufficient_scope());
        let before = before.filter(|before| is_too_little && before.issuer == self.metadata.issuer);
        let mut scopes = before
            .map(|before| before.scopes.clone())
            .unwrap_or_default();
        let wanted = self.manager.select_initial_scopes(&[]).await;
        for scope in wanted.into_iter().chain(login.scopes.iter().cloned()) {
            if !scopes.contains(&scope) {
                scopes.push(scope);
            }
        }
        scopes
    }

    /// Returns jp's client: the configured one, jp's own document, or a newly registered one.
    async fn client(
        &mut self,
        login: &Login,
        redirect: &str,
        scopes: &[&str],
    ) -> Result<OAuthClientConfig, Fault> {
        if let Some(KnownClient { id, secret }) = &login.client {
            return Ok(client(id, secret.as_deref(), redirect));
        }
        let supported = self
            .metadata
            .additional_fields
            .get("client_id_metadata_document_supported");
        match &login.metadata_url {
            Some(document) if supported == Some(&true.into()) => {
                Ok(client(document.as_str(), None, redirect))
            }
            _ => self
                .manager
                .register_client("jp", redirect, scopes)
                .await
                .map_err(login_fault),
        }
    }
}

fn client(id: &str, secret: Option<&str>, redirect: &str) -> OAuthClientConfig {
    let client = OAuthClientConfig::new(id, redirect);
    match secret {
        Some(secret) => client.with_client_secret(secret),
        None => client,
    }
}

/// Renews tokens. Fails if the server has changed its authorization server.
pub(super) async fn renew(old: &StoredTokens) -> Result<StoredTokens, Fault> {
    let LoginPlace {
        mut manager,
        credentials,
        metadata,
        ..
    } = LoginPlace::discover(&old.url, None).await?;
    if metadata.issuer != old.issuer {
        return Err(Fault::Login(
            "the server has changed its authorization server".to_owned(),
        ));
    }
    // Renewal doesn't use the redirect.
    let client = client(
        &old.client_id,
        old.client_secret.as_deref(),
        "http://127.0.0.1/",
    );
    manager
        .configure_client(client.clone())
        .map_err(login_fault)?;
    let response = json!({"access_token": old.access_token, "token_type": "bearer", "refresh_token": old.refresh_token});
    let response = serde_json::from_value(response)
        .map_err(|_| Fault::Login("its stored tokens are damaged".to_owned()))?;
    let stored = StoredCredentials::new(
        old.client_id.clone(),
        Some(response),
        old.scopes.clone(),
        None,
    );
    credentials.save(stored).await.map_err(login_fault)?;
    manager.refresh_token().await.map_err(login_fault)?;
    read_tokens(old.url.clone(), &credentials, client).await
}

/// Returns the tokens to store.
async fn read_tokens(
    url: Url,
    credentials: &InMemoryCredentialStore,
    client: OAuthClientConfig,
) -> Result<StoredTokens, Fault> {
    let stored = credentials
        .load()
        .await
        .map_err(login_fault)?
        .ok_or_else(missing_token)?;
    // Its getters are in a trait of a crate that jp doesn't depend on.
    let response = json!(stored.token_response);
    let text = |key: &str| response[key].as_str().map(str::to_owned);
    Ok(StoredTokens {
        url,
        issuer: stored.issuer,
        client_id: client.client_id,
        client_secret: client.client_secret,
        access_token: text("access_token").ok_or_else(missing_token)?,
        refresh_token: text("refresh_token"),
        expires_at: response["expires_in"]
            .as_u64()
            .map(|seconds| now().saturating_add(seconds)),
        scopes: stored.granted_scopes,
    })
}

fn missing_token() -> Fault {
    Fault::Login("its authorization server sent no token".to_owned())
}

fn is_unsafe(endpoint: &str) -> bool {
    !Url::parse(endpoint).is_ok_and(|endpoint| is_safe(&endpoint))
}

/// Returns the seconds since 1970.
pub(super) fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs()
}

/// Makes the fault of a failed login.
fn login_fault(error: AuthError) -> Fault {
    let mut reason = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        reason.push_str(&format!(": {error}"));
        cause = error.source();
    }
    reason.retain(|letter| !letter.is_control());
    if let Some((end, _)) = reason.char_indices().nth(MAX_REASON) {
        reason.truncate(end);
        reason.push('…');
    }
    Fault::Login(reason)
}
