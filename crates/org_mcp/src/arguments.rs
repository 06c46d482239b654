//! The command line.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::Parser;
use glob::{MatchOptions, Pattern, PatternError};
use walkdir::WalkDir;

/// The characters that make an argument a pattern.
const WILDCARDS: [char; 3] = ['*', '?', '['];

/// Patterns match as in a shell. A name with a leading dot, such as an editor's lock file, has to be written
/// out.
const AS_SHELLS: MatchOptions = MatchOptions {
    case_sensitive: true,
    require_literal_separator: true,
    require_literal_leading_dot: true,
};

/// Serves Org files to MCP clients: whole files, their outlines, and headlines by path and by ID.
///
/// Without --http it serves one client on standard input and output, and ends with it. It reads only the
/// files that you name.
#[derive(Debug, Parser)]
#[command(name = "org-mcp", version)]
pub(crate) struct Arguments {
    /// Serve clients on this machine over HTTP, for example at 127.0.0.1:8080. With ORG_MCP_TOKEN set, clients must send
    /// that token
    #[arg(long, value_name = "ADDRESS", value_parser = parse_loopback)]
    pub(crate) http: Option<SocketAddr>,
    /// Org files, or patterns such as '~/org/**/*.org'
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

/// A file that can't be served, or an argument that names none.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Problem {
    #[error("nothing matches {0}; check the pattern, or the directory that it starts with")]
    NoMatch(String),
    #[error("{pattern} is not a valid pattern: {source}")]
    Pattern {
        pattern: String,
        source: PatternError,
    },
    #[error("{path} can't be searched: {source}", path = path.display())]
    Search { path: PathBuf, source: io::Error },
    #[error("a directory can't be searched: {0}")]
    Walk(#[from] walkdir::Error),
    #[error("{path} is left out: it is a directory; name the files in it, such as '{path}/**/*.org'", path = .0.display())]
    Directory(PathBuf),
    #[error("{path} is left out: it is neither a file nor a directory", path = .0.display())]
    Special(PathBuf),
    #[error("{path} is left out: its name is not UTF-8, so it has no URI; rename it", path = .0.display())]
    NotUtf8(PathBuf),
    #[error("{path} is left out: {source}; correct that and start again", path = path.display())]
    Unreadable { path: PathBuf, source: io::Error },
}

impl Arguments {
    /// Finds the files that the arguments name, in their order, and reports those that can't be served.
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

fn parse_loopback(argument: &str) -> Result<SocketAddr, String> {
    let address: SocketAddr = argument
        .parse()
        .map_err(|_| "write an address and a port, such as 127.0.0.1:8080".to_owned())?;
    match address.ip().is_loopback() {
        true => Ok(address),
        false => {
            Err("only this machine is served; use a loopback address, such as 127.0.0.1".to_owned())
        }
    }
}

/// Expands `~` and patterns in an argument, because clients start servers without a shell.
fn expand(argument: &Path, report: &mut impl FnMut(Problem)) -> Vec<PathBuf> {
    let path = with_home(argument);
    match path.to_str() {
        Some(pattern) if pattern.contains(WILDCARDS) && !path.exists() => {
            find_matches(pattern, report)
        }
        _ => vec![path],
    }
}

fn with_home(argument: &Path) -> PathBuf {
    match (argument.strip_prefix("~"), std::env::home_dir()) {
        (Ok(rest), Some(home)) => home.join(rest),
        _ => argument.to_owned(),
    }
}

/// Finds the files that match a pattern. Directories that match are left out.
fn find_matches(pattern: &str, report: &mut impl FnMut(Problem)) -> Vec<PathBuf> {
    let mut found = vec![PathBuf::new()];
    for component in Path::new(pattern).components() {
        let name = component.as_os_str().to_str().unwrap_or_default();
        let next = found
            .into_iter()
            .map(|at| find_below(at, name, report))
            .collect::<Result<Vec<_>, PatternError>>();
        found = match next {
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

/// Finds what one part of a pattern, a name between slashes, matches below a path.
fn find_below(
    at: PathBuf,
    name: &str,
    report: &mut impl FnMut(Problem),
) -> Result<Vec<PathBuf>, PatternError> {
    if name == "**" {
        return Ok(find_directories(at, report));
    }
    if name.contains(WILDCARDS) {
        return Ok(match_names(&at, &Pattern::new(name)?, report));
    }
    let path = at.join(name);
    Ok(match path.symlink_metadata() {
        Ok(_) => vec![path],
        Err(_) => Vec::new(),
    })
}

/// Finds the entries of a directory that match a pattern. A name that is not UTF-8 is reported later, with the
/// other files that can't be served.
fn match_names(
    directory: &Path,
    pattern: &Pattern,
    report: &mut impl FnMut(Problem),
) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    let entries = match readable(directory).read_dir() {
        Ok(entries) => entries,
        // A file on the way is no directory to search, and no mistake.
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => return paths,
        Err(source) => {
            let path = directory.to_owned();
            report(Problem::Search { path, source });
            return paths;
        }
    };
    for entry in entries {
        match entry.map(|entry| entry.file_name()) {
            Ok(name) if pattern.matches_with(&name.to_string_lossy(), AS_SHELLS) => {
                paths.push(directory.join(name));
            }
            Ok(_) => (),
            Err(source) => {
                let path = directory.to_owned();
                report(Problem::Search { path, source });
            }
        }
    }
    paths
}

/// Finds a directory and those below it that are not hidden. Links are not followed, because they may lead
/// anywhere.
fn find_directories(start: PathBuf, report: &mut impl FnMut(Problem)) -> Vec<PathBuf> {
    let walk = WalkDir::new(readable(&start))
        .into_iter()
        .filter_entry(|entry| {
            let is_hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
            entry.depth() == 0 || entry.file_type().is_dir() && !is_hidden
        });
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

/// Returns a path that can be opened: the empty one stands for the current directory.
fn readable(directory: &Path) -> &Path {
    if directory.as_os_str().is_empty() {
        Path::new(".")
    } else {
        directory
    }
}

fn check(path: &Path) -> Result<(), Problem> {
    match path.metadata() {
        // It can't be part of a URI, and two such names may be shown alike.
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
