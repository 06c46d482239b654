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

/// How many redirects are followed.
pub(super) const MAX_REDIRECTS: usize = 10;

/// Gets pages.
pub(super) struct Fetcher<'a> {
    pub(super) clients: Clients,
    /// How long one page may take in all.
    pub(super) timeout: Duration,
    /// How long its content may be, decompressed.
    pub(super) max_bytes: u64,
    /// Counts what arrives.
    pub(super) progress: Option<&'a Progress>,
}

/// What to get.
pub(super) struct Request<'a> {
    pub(super) url: &'a HttpUrl,
    pub(super) credentials: Option<&'a Credentials>,
    /// Whether the person typed it.
    pub(super) is_trusted: bool,
}

/// What a server gave.
#[derive(Debug, Default)]
pub(super) struct Page {
    pub(super) content_type: Option<String>,
    pub(super) last_modified: Option<String>,
    pub(super) bytes: Vec<u8>,
}

impl Fetcher<'_> {
    /// Gets a page, wherever its redirects lead.
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
            chain.answered(response.remote_addr());
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

    /// Reads the content of a response that is no redirect.
    async fn read(&self, at: &HttpUrl, mut response: Response) -> Result<Page, HttpError> {
        let at = at.to_string();
        if !response.status().is_success() {
            return Err(HttpError::Status {
                at,
                status: shown_status(response.status()),
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

/// A chain of redirects, as far as it was followed.
struct Chain<'a> {
    request: &'a Request<'a>,
    /// The end of it.
    at: HttpUrl,
    /// What redirected.
    visited: Vec<HttpUrl>,
    /// Whether the first server's address is not one of the internet.
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

    /// Decides where the next request may go.
    ///
    /// What is typed may be anywhere, and its server go on where it was (another port is another server); a
    /// server of the internet that later claims an address of this network gets nothing, were it by its own
    /// name.
    fn access(&self) -> Access {
        let is_first = self.visited.is_empty();
        let is_same_server = self.at.is_same_server(self.request.url);
        if self.request.is_trusted && (is_first || self.is_private && is_same_server) {
            Access::Any
        } else {
            Access::Public
        }
    }

    /// Returns the credentials, if the next request is to whom they are meant for.
    fn credentials(&self) -> Option<&'a Credentials> {
        self.request
            .credentials
            .filter(|_| self.at.is_same_origin(self.request.url))
    }

    /// Notes where the first answer came from.
    fn answered(&mut self, address: Option<SocketAddr>) {
        if self.visited.is_empty() {
            self.is_private = address.is_some_and(|address| !is_public(address.ip()));
        }
    }

    /// Goes to where an answer redirects, if it does.
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

fn is_redirect(status: StatusCode) -> bool {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
}

fn shown_status(status: StatusCode) -> String {
    match status.canonical_reason() {
        Some(reason) => format!("{} ({reason})", status.as_u16()),
        None => status.as_u16().to_string(),
    }
}

/// Returns a header that is UTF-8.
fn header(response: &Response, name: &HeaderName) -> Option<String> {
    let value = response.headers().get(name)?;
    std::str::from_utf8(value.as_bytes())
        .ok()
        .map(|value| value.trim().to_owned())
}

/// Tells what is wrong with a connection by its causes.
fn request_error(at: &HttpUrl, error: reqwest::Error) -> HttpError {
    let at = at.to_string();
    let mut causes = std::iter::successors(error.source(), |cause| inner(*cause));
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

/// Returns the cause of an error; what an I/O error wraps is not its source.
fn inner<'a>(error: &'a (dyn StdError + 'static)) -> Option<&'a (dyn StdError + 'static)> {
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

    /// Returns where `target` may be, and whether the credentials go there.
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
        chain.answered(Some(answered_by.parse().unwrap()));
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
            // Its name stands for another address by now.
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
                "get http://b/x: https://a/ redirects to it without encryption; attach that URL to get it nonetheless",
            ),
            (
                "file:///etc/passwd",
                "get https://a/: it redirects to what is no URL of a page: `file:` is not `http:` or `https:`",
            ),
            (
                "https://[",
                "get https://a/: it redirects to what is no URL of a page: invalid IPv6 address",
            ),
            (
                "https://u:p@a/",
                "get https://a/: its redirects lead in a circle",
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
