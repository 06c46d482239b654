//! The surroundings of the process: environment variables, directories and terminals. jp reads them once.

use std::{
    env,
    ffi::OsString,
    fs,
    io::{self, IsTerminal as _},
    path::{Path, PathBuf},
};

use jp_attachment::Displays;
use jp_session::Surroundings;

use crate::error::SessionError;

/// The surroundings of the process.
#[derive(Debug)]
pub(crate) struct Environment {
    /// The part that a session uses.
    pub(crate) surroundings: Surroundings,
    /// The directory that replaces a missing home directory, if data or caches would be in it.
    substitute_home: Option<PathBuf>,
    /// The command line of the user's editor.
    pub(crate) editor: Option<String>,
    pub(crate) stdin_is_terminal: bool,
    pub(crate) stdout_is_terminal: bool,
    pub(crate) stderr_is_terminal: bool,
    pub(crate) no_color: bool,
    /// Set if `TERM` is `dumb` or empty. Such a terminal may have no colours and can't overwrite a
    /// line.
    pub(crate) terminal_is_dumb: bool,
}

impl Environment {
    pub(crate) fn read() -> Self {
        let home = env::var_os("HOME").or_else(|| env::var_os("USERPROFILE"));
        let home = home.map(PathBuf::from).filter(|home| home.is_absolute());
        let stderr_is_terminal = io::stderr().is_terminal();
        let stdin_is_terminal = io::stdin().is_terminal();
        // Locks need a directory even without a home. The user's number keeps users apart.
        let substitute_home = env::temp_dir().join(format!("jp-{}", user()));
        // The substitute is the directory itself; in a home, both have their usual places.
        let below_home = |path: &str| {
            home.as_ref()
                .map_or_else(|| substitute_home.clone(), |home| home.join(path))
        };
        let (data, cache) = (
            read_directory("XDG_DATA_HOME"),
            read_directory("XDG_CACHE_HOME"),
        );
        // With both XDG variables set, nothing is below the home directory.
        let is_needed = home.is_none() && (data.is_none() || cache.is_none());
        let surroundings = Surroundings {
            // The current directory may have been removed; the error then comes from what needs it.
            current_dir: env::current_dir().unwrap_or_else(|_| PathBuf::from(".")),
            config: read_directory("XDG_CONFIG_HOME")
                .or_else(|| home.as_ref().map(|home| home.join(".config"))),
            data: data
                .unwrap_or_else(|| below_home(".local/share"))
                .join("jp"),
            cache: cache.unwrap_or_else(|| below_home(".cache")).join("jp"),
            bear_database: env::var_os("JP_BEAR_DATABASE").map(PathBuf::from),
            displays: Displays {
                wayland: read_display("WAYLAND_DISPLAY"),
                x11: read_display("DISPLAY"),
            },
            // The tool `shell` starts jp itself. Without /proc, jp relies on PATH.
            executable: env::current_exe().unwrap_or_else(|_| PathBuf::from("jp")),
            secret_variables: list_secret_variables(),
            terminal_session: name_session(stdin_is_terminal || stderr_is_terminal),
            home,
        };
        Self {
            surroundings,
            substitute_home: is_needed.then_some(substitute_home),
            editor: read_variable("VISUAL").or_else(|| read_variable("EDITOR")),
            stdin_is_terminal,
            stdout_is_terminal: io::stdout().is_terminal(),
            stderr_is_terminal,
            no_color: env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty()),
            terminal_is_dumb: env::var_os("TERM")
                .is_some_and(|terminal| terminal.is_empty() || terminal == "dumb"),
        }
    }

    /// Creates the substitute for a home directory. If it exists, checks that no other user could write to it, because jp
    /// trusts its content.
    pub(crate) fn secure_substitute_home(&self) -> Result<(), SessionError> {
        let Some(directory) = &self.substitute_home else {
            return Ok(());
        };
        let shown = directory.display();
        let reason = match create_private(directory) {
            Ok(true) => return Ok(()),
            Ok(false) => "belongs to another user or is open to others".to_owned(),
            Err(error) => format!("is not usable: {error}"),
        };
        Err(SessionError::new(format!(
            "there is no home directory, and its substitute {shown} {reason}"
        ))
        .with_hint("set HOME to a directory that you own."))
    }
}

fn read_display(variable: &str) -> Option<OsString> {
    env::var_os(variable).filter(|display| !display.is_empty())
}

/// Lists the environment variables whose names suggest a secret. Programs of a workspace start without them.
fn list_secret_variables() -> Vec<String> {
    let names = env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    names
        .filter(|name| jp_config::is_secret_name(name))
        .collect()
}

fn read_directory(variable: &str) -> Option<PathBuf> {
    // A relative path is invalid by the XDG base directory specification.
    env::var_os(variable)
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
}

/// Reads a variable; a blank value counts as unset.
fn read_variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.trim().is_empty())
}

/// Names the terminal session: `JP_SESSION` if it is set, else the session of the terminal.
fn name_session(has_terminal: bool) -> Option<String> {
    read_variable("JP_SESSION").or_else(|| name_terminal_session(has_terminal))
}

/// Creates a directory that only this user can access. If one exists, returns whether it is like that.
#[cfg(unix)]
fn create_private(directory: &Path) -> io::Result<bool> {
    use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
    match fs::DirBuilder::new().mode(0o700).create(directory) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let metadata = fs::symlink_metadata(directory)?;
            Ok(metadata.is_dir() && metadata.uid() == user() && metadata.mode() & 0o077 == 0)
        }
        made => made.map(|()| true),
    }
}

/// Creates a directory; outside Unix, temporary directories belong to one user.
#[cfg(not(unix))]
fn create_private(directory: &Path) -> io::Result<bool> {
    fs::create_dir_all(directory).map(|()| true)
}

#[cfg(unix)]
fn user() -> u32 {
    rustix::process::getuid().as_raw()
}

#[cfg(not(unix))]
fn user() -> &'static str {
    "user"
}

#[cfg(unix)]
/// Names a terminal by its device and the process that leads its session: a device is reused after the terminal closes.
fn name_terminal_session(has_terminal: bool) -> Option<String> {
    if !has_terminal {
        return None;
    }
    let leader = rustix::process::getsid(None).ok()?;
    let terminal = rustix::termios::ttyname(io::stderr(), Vec::new())
        .or_else(|_| rustix::termios::ttyname(io::stdin(), Vec::new()))
        .ok()?;
    Some(format!(
        "{}-{}",
        terminal.to_string_lossy(),
        leader.as_raw_nonzero()
    ))
}

#[cfg(not(unix))]
fn name_terminal_session(_has_terminal: bool) -> Option<String> {
    None
}
