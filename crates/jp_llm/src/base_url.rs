use std::fmt;

use url::{Host, ParseError, Url};

use crate::Error;

/// The root of a server: `http://127.0.0.1:8080`, `https://openrouter.ai/api`.
///
/// A trailing `/`, `/v1` or `/v1beta` is taken off. Shown without a trailing slash; never holds credentials.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BaseUrl(Url);

impl BaseUrl {
    /// Reads an `http` or `https` URL without credentials, query and fragment.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let refuse = |reason: &str| {
            // What stands before an `@` may be a password.
            let shown = text.rsplit('@').next().unwrap_or_default();
            Error::BaseUrl {
                text: shown.to_owned(),
                reason: reason.to_owned(),
            }
        };
        const START: &str = "it does not start with http:// or https://";
        let mut url = Url::parse(text.trim()).map_err(|error| match error {
            ParseError::RelativeUrlWithoutBase => refuse(START),
            error => refuse(&error.to_string()),
        })?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(refuse(START));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(refuse("it contains credentials"));
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(refuse("it has a query or a fragment"));
        }
        let path = url.path().trim_end_matches('/');
        let versions = ["/v1", "/v1beta"].into_iter();
        let root = versions
            .filter_map(|version| path.strip_suffix(version))
            .next()
            .unwrap_or(path);
        let path = root.trim_end_matches('/').to_owned();
        url.set_path(&path);
        Ok(Self(url))
    }

    /// Returns whether the server is on this machine by its name or address alone.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        match self.0.host() {
            Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
            Some(Host::Ipv4(address)) => address.is_loopback(),
            Some(Host::Ipv6(address)) => address.is_loopback(),
            None => false,
        }
    }

    pub(crate) fn is_encrypted(&self) -> bool {
        self.0.scheme() == "https"
    }

    /// Returns the URL of `path`, which may have a query, below the root.
    pub(crate) fn join(&self, path: &str) -> Url {
        let (path, query) = path
            .split_once('?')
            .map_or((path, None), |(path, query)| (path, Some(query)));
        let mut url = self.0.clone();
        url.set_query(query);
        url.set_path(&format!("{}/{path}", self.0.path().trim_end_matches('/')));
        url
    }
}

impl fmt::Display for BaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_str().trim_end_matches('/'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_is_found_in_urls_with_versions() {
        for (text, root, chat) in [
            (
                "http://127.0.0.1:8080",
                "http://127.0.0.1:8080",
                "http://127.0.0.1:8080/v1/x",
            ),
            (
                "http://127.0.0.1:8080/",
                "http://127.0.0.1:8080",
                "http://127.0.0.1:8080/v1/x",
            ),
            (
                "http://localhost:11434/v1",
                "http://localhost:11434",
                "http://localhost:11434/v1/x",
            ),
            (
                "http://localhost:11434/v1//",
                "http://localhost:11434",
                "http://localhost:11434/v1/x",
            ),
            (
                "https://openrouter.ai/api/v1/",
                "https://openrouter.ai/api",
                "https://openrouter.ai/api/v1/x",
            ),
            (
                "http://google.test/v1beta",
                "http://google.test",
                "http://google.test/v1/x",
            ),
        ] {
            let base_url = BaseUrl::parse(text).unwrap();
            assert_eq!(
                (
                    base_url.to_string().as_str(),
                    base_url.join("v1/x").as_str()
                ),
                (root, chat)
            );
        }
    }

    #[test]
    fn query_stays_a_query() {
        let base_url = BaseUrl::parse("http://localhost:1/a").unwrap();
        assert_eq!(
            base_url.join("m/x%2Fy:z?alt=sse").as_str(),
            "http://localhost:1/a/m/x%2Fy:z?alt=sse"
        );
    }

    #[test]
    fn loopback_is_told_from_the_host_alone() {
        for (text, expected) in [
            ("http://localhost:1", true),
            ("http://127.3.2.1", true),
            ("http://[::1]:8080", true),
            ("http://10.0.0.1", false),
            ("https://localhost.example.com", false),
        ] {
            assert_eq!(
                BaseUrl::parse(text).unwrap().is_loopback(),
                expected,
                "{text}"
            );
        }
    }

    #[test]
    fn what_is_no_root_is_refused_without_showing_credentials() {
        let messages: Vec<String> = [
            "localhost:8080",
            "127.0.0.1:8080",
            "ftp://host",
            "http://host/?key=1",
            "http://me:hunter2@host",
        ]
        .map(|text| BaseUrl::parse(text).unwrap_err().to_string())
        .into();
        insta::assert_snapshot!(messages.join("\n"), @r#"
        use `localhost:8080` as base_url: it does not start with http:// or https://
        use `127.0.0.1:8080` as base_url: it does not start with http:// or https://
        use `ftp://host` as base_url: it does not start with http:// or https://
        use `http://host/?key=1` as base_url: it has a query or a fragment
        use `host` as base_url: it contains credentials
        "#);
    }
}
