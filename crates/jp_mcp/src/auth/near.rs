//! Sends requests of a login to this machine, which must not use a proxy.

use std::time::Duration;

use reqwest::redirect;
use rmcp::transport::auth::{
    AuthError, OAuthHttpClient, OAuthHttpClientError, OAuthHttpClientFuture, OAuthHttpRequest,
    default_oauth_http_client,
};
use url::Url;

use crate::config::is_loopback;

/// The time limit for a request.
const TIMEOUT: Duration = Duration::from_secs(30);
/// The largest answer, in bytes.
const MAX_BYTES: usize = 1_000_000;

/// Sends requests to this machine. Passes all others to rmcp's client.
struct Near<Other> {
    client: reqwest::Client,
    other: Other,
}

/// Returns the HTTP client for a login at a server on this machine.
pub(super) fn client() -> Result<impl OAuthHttpClient, AuthError> {
    let builder = reqwest::Client::builder()
        .no_proxy()
        .redirect(redirect::Policy::none())
        .timeout(TIMEOUT);
    Ok(Near {
        client: builder.build()?,
        other: default_oauth_http_client()?,
    })
}

impl<Other: OAuthHttpClient> OAuthHttpClient for Near<Other> {
    fn execute(&self, request: OAuthHttpRequest) -> OAuthHttpClientFuture<'_> {
        match Url::parse(&request.request.uri().to_string()) {
            Ok(url) if is_loopback(&url) => Box::pin(self.send(request.request)),
            _ => self.other.execute(request),
        }
    }
}

impl<Other> Near<Other> {
    async fn send(
        &self,
        request: http::Request<Vec<u8>>,
    ) -> Result<http::Response<Vec<u8>>, OAuthHttpClientError> {
        let mut response = self
            .client
            .execute(reqwest::Request::try_from(request)?)
            .await?;
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await? {
            body.extend_from_slice(&chunk);
            if body.len() > MAX_BYTES {
                return Err(format!("the answer is longer than {MAX_BYTES} bytes").into());
            }
        }
        let mut answer = http::Response::new(body);
        *answer.status_mut() = response.status();
        *answer.headers_mut() = response.headers().clone();
        Ok(answer)
    }
}
