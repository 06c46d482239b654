//! What a session takes from its surroundings; the front end reads it once.

use std::path::{Path, PathBuf};

use jp_attachment::Displays;

/// Directories, names and devices around the process.
#[derive(Debug, Clone)]
pub struct Surroundings {
    /// The current directory.
    pub current_dir: PathBuf,
    /// The user's home.
    pub home: Option<PathBuf>,
    /// Where the user's configurations are, jp's in `jp/` below it.
    pub config: Option<PathBuf>,
    /// jp's own data.
    pub data: PathBuf,
    /// jp's own caches.
    pub cache: PathBuf,
    /// Where Bear's notes are, if not where the app keeps them.
    pub bear_database: Option<PathBuf>,
    /// The displays whose clipboards can be read.
    pub displays: Displays,
    /// The program `jp`, which some tools run.
    pub executable: PathBuf,
    /// Names of variables that look as if they held keys.
    pub secret_variables: Vec<String>,
    /// The terminal session, which has a current conversation of its own.
    pub terminal_session: Option<String>,
}

impl Surroundings {
    /// Returns the user's own configuration file.
    pub fn user_config(&self) -> Option<PathBuf> {
        self.config
            .as_deref()
            .map(|config| config.join("jp/config.toml"))
    }

    /// Returns a path as people write it: below the current directory or the home if it is there.
    pub fn display(&self, path: &Path) -> String {
        let home = self
            .home
            .as_deref()
            .and_then(|home| path.strip_prefix(home).ok());
        match (path.strip_prefix(&self.current_dir), home) {
            (Ok(relative), _) if !relative.as_os_str().is_empty() => relative.display().to_string(),
            (_, Some(below)) => format!("~/{}", below.display()),
            _ => path.display().to_string(),
        }
    }
}
