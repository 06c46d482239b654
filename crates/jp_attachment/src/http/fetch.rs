use std::{error::Error as StdError, io, net::SocketAddr, time::Duration};

use reqwest::{
    Response, StatusCode,
    header::{
        ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, HeaderName, LAST_MODIFIED, LOCATION,
    },
};
use tokio::time::timeout;

use super::{
    Credentials, HttpError, HttpUrl,
    address::is_public,
    body::{Body, BodyError},
    client::{Access, Clients, NoPublicAddress, is_refused},
};
use crate::Progress;

/// The number of redirects that jp follows. Browsers follow 20, but real pages need at most a few.
pub(super) const MAX_REDIRECTS: usize = 10;

/// Fetches pages.
pub(super) struct Fetcher<'a> {
    pub(super) clients: Clients,
    /// The most time for one page, with its redirects.
    pub(super) timeout: Duration,
    /// The longest content, decompressed.
    pub(super) max_bytes: u64,
    /// Counts the bytes that arrive.
    pub(super) progress: Option<&'a Progress>,
}

/// A page to fetch.
pub(super) struct Request<'a> {
    pub(super) url: &'a HttpUrl,
    pub(super) credentials: Option<&'a Credentials>,
    /// Whether the user typed the URL.
    pub(super) is_trusted: bool,
}

/// The answer of a server.
#[derive(Debug, Default)]
pub(super) struct Page {
    pub(super) content_type: Option<String>,
    pub(super) last_modified: Option<String>,
    pub(super) bytes: Vec<u8>,
}

impl Fetcher<'_> {
    /// Fetches a page and follows its redirects.
    pub(super) async fn get(&self, request: &Request<'_>) -> Result<Page, HttpError> {
        let mut chain = Chain::new(request);
        let after = self.timeout;
        match timeout(after, self.follow(&mut chain)).await {
            Ok(result) => result,
            Err(_) => Err(HttpError::Timeout {
                at: chain.at.to_string(),
                after,
            }),
        }
    }

    async fn follow(&self, chain: &mut Chain<'_>) -> Result<Page, HttpError> {
        loop {
            let response = self.send(chain).await?;
            chain.note_answer(response.remote_addr());
            if !chain.advance(response.status(), header(&response, &LOCATION).as_deref())? {
                return self.read(&chain.at, response).await;
            }
        }
    }

    async fn send(&self, chain: &Chain<'_>) -> Result<Response, HttpError> {
        let (url, access) = (&chain.at, chain.access());
        if is_refused(url, access) {
            return Err(HttpError::PrivateAddress {
                at: url.to_string(),
            });
        }
        let client = self
            .clients
            .client(url, access)
            .map_err(HttpError::Client)?;
        // jp decompresses the body itself, because it has to limit the decompressed length.
        let mut request = client
            .get(url.as_url().clone())
            .header(ACCEPT_ENCODING, "gzip");
        if let Some(credentials) = chain.credentials() {
            request = request.basic_auth(&credentials.user, credentials.password.as_deref());
        }
        request
            .send()
            .await
            .map_err(|error| request_error(url, error))
    }

    /// Reads the content of a response that is not a redirect.
    async fn read(&self, at: &HttpUrl, mut response: Response) -> Result<Page, HttpError> {
        let at = at.to_string();
        if !response.status().is_success() {
            return Err(HttpError::Status {
                at,
                status: display_status(response.status()),
            });
        }
        let limit = self.max_bytes;
        let encoding = header(&response, &CONTENT_ENCODING);
        let Some(mut body) = Body::new(encoding.as_deref(), limit) else {
            return Err(HttpError::Encoding {
                at,
                encoding: encoding.unwrap_or_default(),
            });
        };
        // The header saves the transfer of content that is too long. A compressed body may be
        // longer than it says, so `Body` checks the length again.
        let is_plain = matches!(body, Body::Plain(_));
        if is_plain
            && response
                .content_length()
                .is_some_and(|length| length > limit)
        {
            return Err(HttpError::TooLong { at, limit });
        }
        let (content_type, last_modified) = (
            header(&response, &CONTENT_TYPE),
            header(&response, &LAST_MODIFIED),
        );
        let failed = |error| match error {
            BodyError::TooLong => HttpError::TooLong {
                at: at.clone(),
                limit,
            },
            BodyError::Malformed(source) => HttpError::Decompress {
                at: at.clone(),
                source,
            },
        };
        let cut_off = |error: reqwest::Error| HttpError::Body {
            at: at.clone(),
            source: error.without_url(),
        };
        if let Some(progress) = self.progress {
            progress.expect(0, response.content_length().unwrap_or(0));
        }
        while let Some(chunk) = response.chunk().await.map_err(cut_off)? {
            if let Some(progress) = self.progress {
                progress.read(chunk.len() as u64);
            }
            body.push(&chunk).map_err(failed)?;
        }
        let bytes = body.finish().map_err(failed)?;
        Ok(Page {
            content_type,
            last_modified,
            bytes,
        })
    }
}

/// A chain of redirects.
struct Chain<'a> {
    request: &'a Request<'a>,
    /// The current end of the chain.
    at: HttpUrl,
    /// The URLs before it.
    visited: Vec<HttpUrl>,
    /// Whether the first server has a private address.
    is_private: bool,
}

impl<'a> Chain<'a> {
    fn new(request: &'a Request<'a>) -> Self {
        Self {
            request,
            at: request.url.clone(),
            visited: Vec::new(),
            is_private: false,
        }
    }

    /// Decides which addresses the next request may go to.
    ///
    /// A URL that the user typed may be anywhere, and a private server may redirect to itself
    /// (another port is another server). A public server can't lead jp into the private network,
    /// not even by its own name, whose address may have changed.
    fn access(&self) -> Access {
        let is_first = self.visited.is_empty();
        let is_same_server = self.at.is_same_server(self.request.url);
        if self.request.is_trusted && (is_first || self.is_private && is_same_server) {
            Access::Any
        } else {
            Access::Public
        }
    }

    /// Returns the credentials if the next request goes to the origin that they are for.
    fn credentials(&self) -> Option<&'a Credentials> {
        self.request
            .credentials
            .filter(|_| self.at.is_same_origin(self.request.url))
    }

    /// Notes whether the first answer came from a private address.
    fn note_answer(&mut self, address: Option<SocketAddr>) {
        if self.visited.is_empty() {
            self.is_private = address.is_some_and(|address| !is_public(address.ip()));
        }
    }

    /// Follows a redirect. Returns whether the answer is one.
    fn advance(&mut self, status: StatusCode, location: Option<&str>) -> Result<bool, HttpError> {
        let Some(location) = location.filter(|_| is_redirect(status)) else {
            return Ok(false);
        };
        let at = self.at.to_string();
        let next = self.at.join(location);
        let next = next.map_err(|reason| HttpError::RedirectTarget {
            at: at.clone(),
            reason,
        })?;
        if self.at.is_encrypted() && !next.is_encrypted() {
            return Err(HttpError::Downgrade {
                at,
                to: next.to_string(),
            });
        }
        // From here on the next URL is the end of the chain.
        self.visited.push(std::mem::replace(&mut self.at, next));
        let at = self.at.to_string();
        if self.visited.contains(&self.at) {
            return Err(HttpError::RedirectLoop { at });
        }
        if self.visited.len() > MAX_REDIRECTS {
            return Err(HttpError::TooManyRedirects {
                at,
                limit: MAX_REDIRECTS,
            });
        }
        Ok(true)
    }
}

/// Returns whether a status is a redirect to `Location` (RFC 9110 §15.4); 300 and 304 are not.
fn is_redirect(status: StatusCode) -> bool {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
}

fn display_status(status: StatusCode) -> String {
    match status.canonical_reason() {
        Some(reason) => format!("{} ({reason})", status.as_u16()),
        None => status.as_u16().to_string(),
    }
}

/// Returns the value of a header if it is UTF-8.
fn header(response: &Response, name: &HeaderName) -> Option<String> {
    let value = response.headers().get(name)?;
    std::str::from_utf8(value.as_bytes())
        .ok()
        .map(|value| value.trim().to_owned())
}

/// Classifies a failed connection by the causes of the error.
fn request_error(at: &HttpUrl, error: reqwest::Error) -> HttpError {
    let at = at.to_string();
    // reqwest wraps the errors of TLS and of the guard several times.
    let mut causes = std::iter::successors(error.source(), |cause| next_cause(*cause));
    if let Some(tls) = causes
        .clone()
        .find_map(|cause| cause.downcast_ref::<rustls::Error>())
    {
        return HttpError::Tls {
            at,
            source: tls.clone(),
        };
    }
    if causes.any(|cause| cause.is::<NoPublicAddress>()) {
        return HttpError::PrivateAddress { at };
    }
    HttpError::Request {
        at,
        source: error.without_url(),
    }
}

/// Returns the cause of an error. `io::Error::source` skips the error that it wraps.
fn next_cause<'a>(error: &'a (dyn StdError + 'static)) -> Option<&'a (dyn StdError + 'static)> {
    let wrapped = error
        .downcast_ref::<io::Error>()
        .and_then(io::Error::get_ref);
    wrapped
        .map(|wrapped| wrapped as &(dyn StdError + 'static))
        .or_else(|| error.source())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> HttpUrl {
        HttpUrl::parse(text).unwrap().0
    }

    /// Returns the access of a redirect to `target`, and whether it receives the credentials.
    fn after_redirect(
        typed: &str,
        answered_by: &str,
        target: &str,
        is_trusted: bool,
    ) -> (Access, bool) {
        let credentials = Credentials {
            user: "u".into(),
            password: None,
        };
        let request = Request {
            url: &url(typed),
            credentials: Some(&credentials),
            is_trusted,
        };
        let mut chain = Chain::new(&request);
        chain.note_answer(Some(answered_by.parse().unwrap()));
        assert!(chain.advance(StatusCode::FOUND, Some(target)).unwrap());
        (chain.access(), chain.credentials().is_some())
    }

    #[test]
    fn first_request_may_go_anywhere_if_typed() {
        for (is_trusted, access) in [(true, Access::Any), (false, Access::Public)] {
            let request = Request {
                url: &url("http://a"),
                credentials: None,
                is_trusted,
            };
            assert_eq!(Chain::new(&request).access(), access);
        }
    }

    #[test]
    fn redirect_stays_where_it_is_allowed() {
        let (private, public) = ("10.0.0.1:80", "8.8.8.8:80");
        let table = [
            ("http://a/", private, "/b", true, Access::Any, true),
            (
                "http://a/",
                private,
                "http://a:81/b",
                true,
                Access::Public,
                false,
            ),
            (
                "http://a:81/",
                private,
                "https://a/b",
                true,
                Access::Public,
                false,
            ),
            (
                "http://a/",
                private,
                "https://a/b",
                true,
                Access::Any,
                false,
            ),
            (
                "http://a/",
                private,
                "http://b/",
                true,
                Access::Public,
                false,
            ),
            ("http://a/", private, "/b", false, Access::Public, true),
            // Its name may have another address by now.
            ("http://a/", public, "/b", true, Access::Public, true),
            (
                "http://a/",
                public,
                "http://b/",
                true,
                Access::Public,
                false,
            ),
        ];
        for (typed, answered_by, target, is_trusted, access, has_credentials) in table {
            let found = after_redirect(typed, answered_by, target, is_trusted);
            assert_eq!(
                found,
                (access, has_credentials),
                "{typed} {answered_by} {target} {is_trusted}"
            );
        }
    }

    #[test]
    fn redirect_must_lead_somewhere() {
        let table = [
            (
                "http://b/x",
                "get http://b/x: https://a/ redirects to it without encryption; attach that URL itself to allow this",
            ),
            (
                "file:///etc/passwd",
                "get https://a/: it redirects to an invalid URL: `file:` is not `http:` or `https:`",
            ),
            (
                "https://[",
                "get https://a/: it redirects to an invalid URL: invalid IPv6 address",
            ),
            (
                "https://u:p@a/",
                "get https://a/: its redirects form a loop",
            ),
        ];
        for (location, message) in table {
            let request = Request {
                url: &url("https://a/"),
                credentials: None,
                is_trusted: true,
            };
            let error = Chain::new(&request)
                .advance(StatusCode::FOUND, Some(location))
                .unwrap_err();
            assert_eq!(error.to_string(), message, "{location}");
        }
    }
}
