//! Stores the tokens of logins in files that only the user can read.

use std::{
    fmt,
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Write as _},
    path::PathBuf,
    thread,
    time::{Duration, Instant},
};

use jp_resource::Checksum;
use serde::{Deserialize, Serialize};
use url::Url;

/// The longest wait for another process to release the tokens.
const PATIENCE: Duration = Duration::from_secs(5);
/// The pause between two attempts to lock them.
const TICK: Duration = Duration::from_millis(20);

/// The store of tokens: a directory with a file for each endpoint.
///
/// A file belongs to the URL of an endpoint, not to its name in a configuration. So a token is never sent
/// anywhere else.
#[derive(Debug, Clone)]
pub struct Tokens {
    directory: PathBuf,
}

/// The tokens of one login.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct StoredTokens {
    /// The endpoint.
    pub(super) url: Url,
    /// The authorization server that issued them.
    pub(super) issuer: Option<String>,
    pub(super) client_id: String,
    pub(super) client_secret: Option<String>,
    pub(super) access_token: String,
    pub(super) refresh_token: Option<String>,
    /// The expiry of the access token, in seconds since 1970.
    pub(super) expires_at: Option<u64>,
    /// The granted scopes.
    pub(super) scopes: Vec<String>,
}

impl fmt::Debug for StoredTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredTokens")
            .field("url", &self.url)
            .finish_non_exhaustive()
    }
}

impl Tokens {
    /// Makes the store in a directory, which is created when needed. It must be outside of workspaces.
    #[must_use]
    pub fn new(directory: PathBuf) -> Self {
        Self { directory }
    }

    /// Removes the tokens of an endpoint. Returns true if there were any.
    pub fn forget(&self, url: &Url) -> io::Result<bool> {
        match fs::remove_file(self.path(url, "json")) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    pub(super) fn load(&self, url: &Url) -> io::Result<Option<StoredTokens>> {
        let text = match fs::read(self.path(url, "json")) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        // The parser's message may quote a token.
        let kept: StoredTokens = serde_json::from_slice(&text).map_err(|_| {
            io::Error::new(
                io::ErrorKind::InvalidData,
                "the file is damaged; log in again",
            )
        })?;
        Ok((kept.url == *url).then_some(kept))
    }

    /// Prevents other processes from renewing the tokens of an endpoint until the file is closed.
    pub(super) fn lock(&self, url: &Url) -> io::Result<File> {
        directory_builder().create(&self.directory)?;
        let file = private_options()
            .create(true)
            .truncate(false)
            .open(self.path(url, "lock"))?;
        let start = Instant::now();
        while let Err(error) = file.try_lock() {
            match error {
                fs::TryLockError::WouldBlock if start.elapsed() < PATIENCE => thread::sleep(TICK),
                fs::TryLockError::WouldBlock => {
                    return Err(io::Error::new(
                        io::ErrorKind::TimedOut,
                        "another process has them",
                    ));
                }
                fs::TryLockError::Error(error) => return Err(error),
            }
        }
        Ok(file)
    }

    /// Stores tokens. The caller must hold the lock.
    pub(super) fn save(&self, kept: &StoredTokens) -> io::Result<()> {
        directory_builder().create(&self.directory)?;
        let new = self.path(&kept.url, "new");
        // A process that was killed may have left it.
        if let Err(error) = fs::remove_file(&new)
            && error.kind() != io::ErrorKind::NotFound
        {
            return Err(error);
        }
        let mut file = private_options().create_new(true).open(&new)?;
        file.write_all(&serde_json::to_vec(kept)?)?;
        file.sync_all()?;
        fs::rename(&new, self.path(&kept.url, "json"))
    }

    fn path(&self, url: &Url, extension: &str) -> PathBuf {
        self.directory.join(format!(
            "{}.{extension}",
            Checksum::compute(url.as_str().as_bytes())
        ))
    }
}

fn directory_builder() -> DirBuilder {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder
}

fn private_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(url: &str) -> StoredTokens {
        StoredTokens {
            url: Url::parse(url).unwrap(),
            issuer: None,
            client_id: "jp".to_owned(),
            client_secret: Some("hush-1".to_owned()),
            access_token: "hush-2".to_owned(),
            refresh_token: Some("hush-3".to_owned()),
            expires_at: Some(1),
            scopes: Vec::new(),
        }
    }

    #[test]
    fn tokens_are_stored_by_endpoint() {
        let directory = tempfile::tempdir().unwrap();
        let tokens = Tokens::new(directory.path().join("a/b"));
        let (one, other) = (
            kept("https://example.com/mcp"),
            kept("https://example.com/other"),
        );
        assert!(tokens.load(&one.url).unwrap().is_none());
        tokens.save(&one).unwrap();
        tokens.save(&one).unwrap();
        assert_eq!(
            tokens.load(&one.url).unwrap().unwrap().access_token,
            "hush-2"
        );
        assert!(tokens.load(&other.url).unwrap().is_none());
        assert!(tokens.forget(&one.url).unwrap());
        assert!(!tokens.forget(&one.url).unwrap());
    }

    #[cfg(unix)]
    #[test]
    fn only_the_user_reads_the_files() {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().unwrap();
        let tokens = Tokens::new(directory.path().join("a"));
        let kept = kept("https://example.com/mcp");
        let _lock = tokens.lock(&kept.url).unwrap();
        tokens.save(&kept).unwrap();
        let mode = |path: PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(directory.path().join("a")), 0o700);
        let files: Vec<_> = fs::read_dir(directory.path().join("a"))
            .unwrap()
            .map(|file| mode(file.unwrap().path()))
            .collect();
        assert_eq!(files, [0o600, 0o600]);
    }

    #[test]
    fn error_of_a_damaged_file_does_not_quote_it() {
        let directory = tempfile::tempdir().unwrap();
        let tokens = Tokens::new(directory.path().to_owned());
        let url = Url::parse("https://example.com/mcp").unwrap();
        fs::write(tokens.path(&url, "json"), r#"{"url": "hush"}"#).unwrap();
        assert_eq!(
            tokens.load(&url).unwrap_err().to_string(),
            "the file is damaged; log in again"
        );
    }

    #[test]
    fn secrets_are_not_shown() {
        let shown = format!("{:?}", kept("https://example.com/mcp"));
        assert!(!shown.contains("hush"), "{shown}");
    }
}
