//! Everything the command takes from its surroundings, read once.

use std::{
    env,
    ffi::OsString,
    fs,
    io::{self, IsTerminal as _},
    path::{Path, PathBuf},
};

use jp_attachment::Displays;
use jp_session::Surroundings;

use crate::error::Failure;

/// What the process was started with.
#[derive(Debug)]
pub(crate) struct Environment {
    /// What a session takes of it.
    pub(crate) surroundings: Surroundings,
    /// What stands in for a home, where data or caches would be below one and there is none.
    stand_in: Option<PathBuf>,
    /// What the person edits text with, a command line.
    pub(crate) editor: Option<String>,
    pub(crate) stdin_is_terminal: bool,
    pub(crate) stdout_is_terminal: bool,
    pub(crate) stderr_is_terminal: bool,
    pub(crate) no_color: bool,
    /// Whether `TERM` is `dumb` or empty. Such a terminal may have no colours and can't overwrite a
    /// line.
    pub(crate) terminal_is_dumb: bool,
}

impl Environment {
    pub(crate) fn read() -> Self {
        let home = env::var_os("HOME").or_else(|| env::var_os("USERPROFILE"));
        let home = home.map(PathBuf::from).filter(|home| home.is_absolute());
        let stderr_is_terminal = io::stderr().is_terminal();
        let stdin_is_terminal = io::stdin().is_terminal();
        // Without a home there is still somewhere to keep locks, of this user's own.
        let stand_in = env::temp_dir().join(format!("jp-{}", user()));
        let below_home = |path: &str| {
            home.as_deref()
                .map_or_else(|| stand_in.clone(), |home| home.join(path))
        };
        let (data, cache) = (directory("XDG_DATA_HOME"), directory("XDG_CACHE_HOME"));
        let is_needed = home.is_none() && (data.is_none() || cache.is_none());
        let surroundings = Surroundings {
            current_dir: env::current_dir().unwrap_or_else(|_| PathBuf::from(".")),
            config: directory("XDG_CONFIG_HOME")
                .or_else(|| home.as_ref().map(|home| home.join(".config"))),
            data: data
                .unwrap_or_else(|| below_home(".local/share"))
                .join("jp"),
            cache: cache.unwrap_or_else(|| below_home(".cache")).join("jp"),
            bear_database: env::var_os("JP_BEAR_DATABASE").map(PathBuf::from),
            displays: Displays {
                wayland: display("WAYLAND_DISPLAY"),
                x11: display("DISPLAY"),
            },
            executable: env::current_exe().unwrap_or_else(|_| PathBuf::from("jp")),
            secret_variables: secret_variables(),
            terminal_session: session(stdin_is_terminal || stderr_is_terminal),
            home,
        };
        Self {
            surroundings,
            stand_in: is_needed.then_some(stand_in),
            editor: variable("VISUAL").or_else(|| variable("EDITOR")),
            stdin_is_terminal,
            stdout_is_terminal: io::stdout().is_terminal(),
            stderr_is_terminal,
            no_color: env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty()),
            terminal_is_dumb: env::var_os("TERM")
                .is_some_and(|terminal| terminal.is_empty() || terminal == "dumb"),
        }
    }

    /// Makes what stands in for a home, or makes sure that nobody else can have put anything there: what is in it is
    /// trusted.
    pub(crate) fn secure_stand_in(&self) -> Result<(), Failure> {
        let Some(directory) = &self.stand_in else {
            return Ok(());
        };
        let shown = directory.display();
        let reason = match make_own(directory) {
            Ok(true) => return Ok(()),
            Ok(false) => "is another user's, or open to others".to_owned(),
            Err(error) => format!("can't be used: {error}"),
        };
        Err(Failure::new(format!(
            "there is no home directory, and {shown}, which stands in for it, {reason}"
        ))
        .with_hint("set HOME to a directory of your own."))
    }
}

fn display(variable: &str) -> Option<OsString> {
    env::var_os(variable).filter(|display| !display.is_empty())
}

fn secret_variables() -> Vec<String> {
    let names = env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    names
        .filter(|name| jp_config::is_secret_name(name))
        .collect()
}

fn directory(variable: &str) -> Option<PathBuf> {
    // A relative path is invalid by the XDG base directory specification.
    env::var_os(variable)
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
}

fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.trim().is_empty())
}

/// Names the terminal session: `JP_SESSION` where it is set, else the session of the terminal.
fn session(has_terminal: bool) -> Option<String> {
    variable("JP_SESSION").or_else(|| terminal_session(has_terminal))
}

/// Makes a directory that is this user's alone; returns whether one that was there is.
#[cfg(unix)]
fn make_own(directory: &Path) -> io::Result<bool> {
    use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
    match fs::DirBuilder::new().mode(0o700).create(directory) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let metadata = fs::symlink_metadata(directory)?;
            Ok(metadata.is_dir() && metadata.uid() == user() && metadata.mode() & 0o077 == 0)
        }
        made => made.map(|()| true),
    }
}

/// Makes a directory; temporary ones are their user's alone here.
#[cfg(not(unix))]
fn make_own(directory: &Path) -> io::Result<bool> {
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
fn terminal_session(has_terminal: bool) -> Option<String> {
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
fn terminal_session(_has_terminal: bool) -> Option<String> {
    None
}
