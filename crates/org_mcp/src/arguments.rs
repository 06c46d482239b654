//! What the program is told to serve.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::Parser;
use glob::{GlobError, MatchOptions, Pattern, PatternError};
use walkdir::{DirEntry, WalkDir};

/// The characters that make a pattern of an argument.
const WILDCARDS: [char; 3] = ['*', '?', '['];

/// As a shell matches: what starts with a dot is named, as the locks of editors do.
const AS_SHELLS: MatchOptions =
    MatchOptions { case_sensitive: true, require_literal_separator: true, require_literal_leading_dot: true };

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
    Pattern { pattern: String, source: PatternError },
    #[error("a directory can't be searched: {0}")]
    Search(#[from] GlobError),
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
    let address: SocketAddr =
        argument.parse().map_err(|_| "write an address and a port, as 127.0.0.1:8080".to_owned())?;
    match address.ip().is_loopback() {
        true => Ok(address),
        false => Err("only this machine is served; name a loopback address, as 127.0.0.1".to_owned()),
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
    let found = match pattern.split_once("**") {
        Some((start, _)) if start.is_empty() || start.ends_with('/') => below(start, pattern, report),
        _ => listed(pattern, report),
    };
    let found = match found {
        Ok(found) => found,
        Err(source) => {
            report(Problem::Pattern { pattern: pattern.to_owned(), source });
            return Vec::new();
        }
    };
    let files: Vec<PathBuf> = found.into_iter().filter(|path| !path.is_dir()).collect();
    if files.is_empty() {
        report(Problem::NoMatch(pattern.to_owned()));
    }
    files
}

fn listed(pattern: &str, report: &mut impl FnMut(Problem)) -> Result<Vec<PathBuf>, PatternError> {
    let found = glob::glob_with(pattern, AS_SHELLS)?;
    Ok(found.filter_map(|entry| entry.map_err(|error| report(error.into())).ok()).collect())
}

/// What a pattern with a `**` names, which goes through no link to a directory: that may lead anywhere.
fn below(start: &str, pattern: &str, report: &mut impl FnMut(Problem)) -> Result<Vec<PathBuf>, PatternError> {
    let names_hidden = pattern.contains("/.");
    let pattern = Pattern::new(pattern)?;
    let is_open = |entry: &DirEntry| {
        entry.depth() == 0 || names_hidden || !entry.file_name().as_encoded_bytes().starts_with(b".")
    };
    let starts = if start.is_empty() { vec![PathBuf::new()] } else { listed(start, report)? };
    let mut found = Vec::new();
    for start in starts {
        let directory = if start.as_os_str().is_empty() { Path::new(".") } else { &start };
        for entry in WalkDir::new(directory).sort_by_file_name().into_iter().filter_entry(is_open) {
            match entry {
                Ok(entry) => {
                    found.push(start.join(entry.path().strip_prefix(directory).unwrap_or(entry.path())))
                }
                Err(error) => report(error.into()),
            }
        }
    }
    Ok(found.into_iter().filter(|path| pattern.matches_path_with(path, AS_SHELLS)).collect())
}

fn check(path: &Path) -> Result<(), Problem> {
    match path.metadata() {
        // What is shown of two such names may be the same.
        Ok(_) if path.to_str().is_none() => Err(Problem::NotUtf8(path.to_owned())),
        Ok(metadata) if metadata.is_file() => Ok(()),
        Ok(metadata) if metadata.is_dir() => Err(Problem::Directory(path.to_owned())),
        Ok(_) => Err(Problem::Special(path.to_owned())),
        Err(source) => Err(Problem::Unreadable { path: path.to_owned(), source }),
    }
}
