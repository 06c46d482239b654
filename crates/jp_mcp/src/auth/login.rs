//! The terms of a login.

use std::{fmt, time::Duration};

use url::Url;

/// The interval at which a wait checks if the caller cancelled. A person doesn't notice it.
pub(super) const TICK: Duration = Duration::from_millis(50);

/// The terms of a login.
#[derive(Clone)]
pub struct Login {
    /// The client that the user registered for jp, if any.
    pub client: Option<KnownClient>,
    /// The `https` URL of jp's client metadata document, which is also its client id. If the authorization
    /// server doesn't support such documents and there is no [`Self::client`], jp registers itself.
    pub metadata_url: Option<Url>,
    /// The challenge of the server to a refused request (`WWW-Authenticate`); without it, the server
    /// is asked for one.
    pub challenge: Option<String>,
    /// Scopes to request in addition to the server's.
    pub scopes: Vec<String>,
    /// The port on this machine for the page's redirect; 0 for any free port.
    pub port: u16,
    /// The time limit for the user.
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
