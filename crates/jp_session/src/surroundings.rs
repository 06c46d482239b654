//! The surroundings of a session: directories, devices and the environment. The front end reads them once.

use std::path::{Path, PathBuf};

use jp_attachment::Displays;

/// Directories, names and devices around the process.
#[derive(Debug, Clone)]
pub struct Surroundings {
    /// The current directory.
    pub current_dir: PathBuf,
    /// The user's home directory.
    pub home: Option<PathBuf>,
    /// The directory of the user's configurations; jp's is `jp/` below it.
    pub config: Option<PathBuf>,
    /// The directory of jp's data.
    pub data: PathBuf,
    /// The directory of jp's caches.
    pub cache: PathBuf,
    /// The database of Bear's notes, if it is not in its usual place.
    pub bear_database: Option<PathBuf>,
    /// The displays whose clipboards jp can read.
    pub displays: Displays,
    /// The program `jp`, which some tools run.
    pub executable: PathBuf,
    /// Names of variables that look like those of keys.
    pub secret_variables: Vec<String>,
    /// The terminal session; each has its own current conversation.
    pub terminal_session: Option<String>,
}

impl Surroundings {
    /// Returns the user's own configuration file.
    pub fn user_config(&self) -> Option<PathBuf> {
        self.config
            .as_deref()
            .map(|config| config.join("jp/config.toml"))
    }

    /// Returns a path as people write it: from the current directory, from `~`, or in full.
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
