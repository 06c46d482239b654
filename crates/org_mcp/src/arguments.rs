//! What the program is told to serve.

use std::ffi::OsString;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::Parser;
use glob::{MatchOptions, Pattern, PatternError};
use walkdir::{DirEntry, WalkDir};

/// The characters that make a pattern of an argument.
const WILDCARDS: [char; 3] = ['*', '?', '['];

/// As a shell matches: what starts with a dot is named, as the locks of editors do.
const AS_SHELLS: MatchOptions = MatchOptions {
    case_sensitive: true,
    require_literal_separator: true,
    require_literal_leading_dot: true,
};

/// Serves Org files to MCP clients: whole files, their outlines, and headlines by path and by ID.
///
/// Without --http it serves one client, on standard input and output, and ends with it. No other file than those named
/// is ever read.
#[derive(Debug, Parser)]
#[command(name = "org-mcp", version)]
pub(crate) struct Arguments {
    /// Serve clients of this machine over HTTP, as 127.0.0.1:8080; with ORG_MCP_TOKEN set, those that send this token
    #[arg(long, value_name = "ADDRESS", value_parser = loopback)]
    pub(crate) http: Option<SocketAddr>,
    /// Org files, and patterns that name some, as '~/org/**/*.org'
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

/// Why an argument adds no file, or not all that it should.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Problem {
    #[error("nothing matches {0}; check the pattern, or the directory that it starts with")]
    NoMatch(String),
    #[error("{pattern} is no pattern: {source}")]
    Pattern {
        pattern: String,
        source: PatternError,
    },
    #[error("{path} can't be searched: {source}", path = path.display())]
    Search { path: PathBuf, source: io::Error },
    #[error("a directory can't be searched: {0}")]
    Walk(#[from] walkdir::Error),
    #[error("{path} is left out: it is a directory; name the files in it, as '{path}/**/*.org'", path = .0.display())]
    Directory(PathBuf),
    #[error("{path} is left out: it is neither a file nor a directory", path = .0.display())]
    Special(PathBuf),
    #[error("{path} is left out: its name is not UTF-8, so no URI can say it; rename it", path = .0.display())]
    NotUtf8(PathBuf),
    #[error("{path} is left out: {source}; correct that and start again", path = path.display())]
    Unreadable { path: PathBuf, source: io::Error },
}

impl Arguments {
    /// Finds the files that the arguments name, in their order, and tells of those that can't be served.
    pub(crate) fn files(&self, mut report: impl FnMut(Problem)) -> Vec<PathBuf> {
        let mut files = Vec::new();
        for argument in &self.files {
            for path in expand(argument, &mut report) {
                match check(&path) {
                    Ok(()) => files.push(path),
                    Err(problem) => report(problem),
                }
            }
        }
        files
    }
}

fn loopback(argument: &str) -> Result<SocketAddr, String> {
    let address: SocketAddr = argument
        .parse()
        .map_err(|_| "write an address and a port, as 127.0.0.1:8080".to_owned())?;
    match address.ip().is_loopback() {
        true => Ok(address),
        false => {
            Err("only this machine is served; name a loopback address, as 127.0.0.1".to_owned())
        }
    }
}

/// Makes paths of an argument. Clients start servers without a shell, so patterns and `~` come as they were written.
fn expand(argument: &Path, report: &mut impl FnMut(Problem)) -> Vec<PathBuf> {
    let path = with_home(argument);
    match path.to_str() {
        Some(pattern) if pattern.contains(WILDCARDS) && !path.exists() => matches(pattern, report),
        _ => vec![path],
    }
}

fn with_home(argument: &Path) -> PathBuf {
    match (argument.strip_prefix("~"), std::env::home_dir()) {
        (Ok(rest), Some(home)) => home.join(rest),
        _ => argument.to_owned(),
    }
}

/// The files that a pattern names; directories that it names too are none.
fn matches(pattern: &str, report: &mut impl FnMut(Problem)) -> Vec<PathBuf> {
    let mut found = vec![PathBuf::new()];
    for component in Path::new(pattern).components() {
        let name = component.as_os_str().to_str().unwrap_or_default();
        let is_pattern = name.contains(WILDCARDS);
        let next = |at: PathBuf| match name {
            "**" => Ok(directories(at, report)),
            _ if is_pattern => Ok(named(&at, &Pattern::new(name)?, report)),
            _ => Ok(Vec::from_iter(
                Some(at.join(name)).filter(|path| path.symlink_metadata().is_ok()),
            )),
        };
        found = match found
            .into_iter()
            .map(next)
            .collect::<Result<Vec<_>, PatternError>>()
        {
            Ok(found) => found.concat(),
            Err(source) => {
                report(Problem::Pattern {
                    pattern: pattern.to_owned(),
                    source,
                });
                return Vec::new();
            }
        };
    }
    found.retain(|path| !path.is_dir());
    found.sort();
    found.dedup();
    if found.is_empty() {
        report(Problem::NoMatch(pattern.to_owned()));
    }
    found
}

/// What a directory has of a pattern's names; nothing if it is none.
fn named(directory: &Path, pattern: &Pattern, report: &mut impl FnMut(Problem)) -> Vec<PathBuf> {
    let mut failed = |source: io::Error| {
        let path = directory.to_owned();
        if source.kind() != io::ErrorKind::NotADirectory {
            report(Problem::Search { path, source });
        }
    };
    let entries = match readable(directory).read_dir() {
        Ok(entries) => entries,
        Err(error) => {
            failed(error);
            return Vec::new();
        }
    };
    let names = entries.filter_map(|entry| Some(entry.map_err(&mut failed).ok()?.file_name()));
    // A name that is not UTF-8 is told of by whoever looks at the files.
    let is_named = |name: &OsString| pattern.matches_with(&name.to_string_lossy(), AS_SHELLS);
    names
        .filter(is_named)
        .map(|name| directory.join(name))
        .collect()
}

/// A directory and those below it that are not hidden. They go through no link: that may lead anywhere.
fn directories(start: PathBuf, report: &mut impl FnMut(Problem)) -> Vec<PathBuf> {
    let is_open = |entry: &DirEntry| {
        let is_hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
        entry.depth() == 0 || entry.file_type().is_dir() && !is_hidden
    };
    let walk = WalkDir::new(readable(&start))
        .into_iter()
        .filter_entry(is_open);
    let mut directories = Vec::new();
    for entry in walk {
        match entry {
            Ok(entry) if entry.depth() == 0 => directories.push(start.clone()),
            Ok(entry) => {
                let below = entry
                    .path()
                    .strip_prefix(readable(&start))
                    .unwrap_or(entry.path());
                directories.push(start.join(below));
            }
            Err(error) => report(error.into()),
        }
    }
    directories
}

/// The path of a directory where the empty one stands for the current one.
fn readable(directory: &Path) -> &Path {
    if directory.as_os_str().is_empty() {
        Path::new(".")
    } else {
        directory
    }
}

fn check(path: &Path) -> Result<(), Problem> {
    match path.metadata() {
        // What is shown of two such names may be the same.
        Ok(_) if path.to_str().is_none() => Err(Problem::NotUtf8(path.to_owned())),
        Ok(metadata) if metadata.is_file() => Ok(()),
        Ok(metadata) if metadata.is_dir() => Err(Problem::Directory(path.to_owned())),
        Ok(_) => Err(Problem::Special(path.to_owned())),
        Err(source) => Err(Problem::Unreadable {
            path: path.to_owned(),
            source,
        }),
    }
}
