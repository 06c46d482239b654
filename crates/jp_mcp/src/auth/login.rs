//! The terms of a login.

use std::{fmt, time::Duration};

use url::Url;

/// How often a wait for the user looks whether the caller cancelled: faster than a person notices.
pub(super) const TICK: Duration = Duration::from_millis(50);

/// The terms of a login.
#[derive(Clone)]
pub struct Login {
    /// The client that the authorization server knows jp as, if that was agreed beforehand.
    pub client: Option<KnownClient>,
    /// Where jp describes itself to authorization servers that read such a document (`https`). They know jp by this URL.
    /// If neither this nor [`Self::client`] serves, jp registers itself.
    pub metadata_url: Option<Url>,
    /// The challenge of the server to a refused request (`WWW-Authenticate`); without it, the server
    /// is asked for one.
    pub challenge: Option<String>,
    /// Rights to ask for beside what the server wants.
    pub scopes: Vec<String>,
    /// The port on this machine that the page leads back to; 0 for one that is free.
    pub port: u16,
    /// Time that the user has.
    pub timeout: Duration,
}

/// A client that an authorization server knows.
#[derive(Clone)]
pub struct KnownClient {
    /// Its identifier.
    pub id: String,
    /// The secret that the two share.
    pub secret: Option<String>,
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login")
            .field("client", &self.client)
            .field("port", &self.port)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for KnownClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KnownClient")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}
