//! Declarations: parsing what the user types, and the form that is stored.

mod parser;

use std::{
    fs,
    path::{Path, PathBuf},
};

use self::parser::{InputParser, canonicalize_existing, exists, from_native, strip_exclude};
use crate::{
    AttachError, BearUri, CommandLine, Credentials, Exclude, Glob, HttpUrl, McpUri, Place, Scheme,
    data::url as data_url, glob::has_wildcard,
};

/// A declaration of something to attach, or to exclude from attachments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Declared {
    /// The name in messages: what the user typed, or the stored declaration.
    pub input: String,
    /// The form to store, which is valid on every machine. A directory, glob or pattern outside the
    /// workspace has none: each of its files is declared ([`Delivered`](crate::Delivered)).
    pub declaration: Option<String>,
    /// The source to resolve.
    pub source: Source,
    /// Whether the user asked for it, on the command line or in their own configuration. A
    /// declaration of a workspace or a history can be a stranger's.
    pub is_trusted: bool,
    /// The path, from the workspace root, of a link that led out of the workspace to it.
    pub link_out: Option<String>,
}

/// The source of a declaration on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// An explicitly named file or directory, as a canonical path.
    Path(PathBuf),
    /// The files that match a pattern.
    Glob(Glob),
    /// Files to leave out.
    Exclude(Exclude),
    /// A page.
    Http {
        /// Its canonical URL.
        url: HttpUrl,
        /// The credentials of the URL, which are never stored.
        credentials: Option<Credentials>,
    },
    /// A `data:` URL.
    Data(String),
    /// The output of a program.
    Command(CommandLine),
    /// Standard input.
    Stdin,
    /// The content of the clipboard.
    Clipboard,
    /// A resource of an MCP server.
    Mcp(McpUri),
    /// Notes of the Bear app.
    Bear(BearUri),
}

/// The things that resolving a source touches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// Files of the workspace, or nothing.
    Workspace,
    /// Servers of the internet. Only a trusted declaration ([`Declared::is_trusted`]) reaches those
    /// of this machine and of private networks.
    Network,
    /// Other files of this machine, and other personal data on it.
    Machine,
    /// A program, which may do anything.
    Program,
    /// An MCP server.
    Server,
}

/// What the user's approval of a declaration allows. A workspace or its history can't allow this
/// itself.
///
/// The user approves a declaration when they attach it, declare it in their own configuration, or
/// say yes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApprovalScope {
    /// Nothing. Only files that a walk of the workspace finds are allowed.
    Nothing,
    /// `jp mcp serve` serves this file of the workspace even if a walk would leave it out. For a
    /// directory it allows nothing.
    Serving,
    /// jp resolves it without asking, also in later commands.
    Resolving,
    /// jp attaches it at all. This can't be approved later: the user has to attach it.
    Attaching,
}

impl Source {
    /// Returns what the user's approval allows. Pure: it looks at no file.
    #[must_use]
    pub fn approval_scope(&self, place: &Place) -> ApprovalScope {
        match (self.reach(place), self) {
            (Reach::Workspace, Self::Path(_)) => ApprovalScope::Serving,
            (Reach::Workspace, _) => ApprovalScope::Nothing,
            (Reach::Network | Reach::Program | Reach::Server, _) => ApprovalScope::Resolving,
            (Reach::Machine, _) => ApprovalScope::Attaching,
        }
    }

    /// Returns the URI scheme that chooses the handler.
    pub(crate) fn scheme(&self) -> &'static str {
        match self {
            Self::Path(_) | Self::Glob(_) | Self::Exclude(_) => "file",
            Self::Http { .. } => "http",
            Self::Data(_) => "data",
            Self::Command(_) => "cmd",
            Self::Stdin => "stdin",
            Self::Clipboard => "clip",
            Self::Mcp(_) => "mcp",
            Self::Bear(_) => "bear",
        }
    }

    /// Returns what resolving the source touches. Pure: it looks at no file.
    #[must_use]
    pub fn reach(&self, place: &Place) -> Reach {
        match self {
            Self::Path(path) if !path.starts_with(&place.root) => Reach::Machine,
            Self::Glob(glob) if !glob.base.starts_with(&place.root) => Reach::Machine,
            Self::Path(_) | Self::Glob(_) | Self::Exclude(_) | Self::Data(_) => Reach::Workspace,
            Self::Stdin | Self::Clipboard | Self::Bear(_) => Reach::Machine,
            Self::Http { .. } => Reach::Network,
            Self::Command(_) => Reach::Program,
            Self::Mcp(_) => Reach::Server,
        }
    }
}

/// Parses what the user typed.
///
/// That is a path (absolute, relative to the current directory, or `~/…`) of a file or directory,
/// possibly with wildcards; a URL; `cmd:` with a command line; `-` for stdin; `clip:` for the
/// clipboard; or `!PATTERN` or `PATTERN?exclude`. An existing path wins over any other meaning.
///
/// Resolves links: the target is attached, and decides whether it is inside the workspace.
///
/// # Errors
///
/// Paths that do not exist, or are neither a file nor a directory, and malformed input.
pub fn parse_input(input: &str, place: &Place) -> Result<Declared, AttachError> {
    if input.is_empty() {
        return Err(AttachError::Empty);
    }
    let parser = InputParser {
        input,
        place,
        directory: &place.current_dir,
    };
    let path = parser.absolute(input)?;
    // An existing path wins, so that a file named `cmd:x` can be attached.
    // A file named `-` is `./-`.
    if input != "-" && exists(&path) {
        return parser.path(&path);
    }
    if let Some(pattern) = input.strip_prefix('!') {
        return parser.exclude(&from_native(pattern));
    }
    match Scheme::split(input) {
        Some((Scheme::File, "" | "//")) => return Err(AttachError::Empty),
        Some((Scheme::File, rest)) => return parser.file_url(rest),
        Some((Scheme::Http, _)) => return parser.http(),
        Some((Scheme::Data, _)) => return parser.data(),
        Some((Scheme::Command, _)) => return parser.command(),
        Some((Scheme::Clipboard, "")) => return Ok(parser.declare(None, Source::Clipboard)),
        Some((Scheme::Mcp, _)) => return parser.mcp(),
        Some((Scheme::Bear, rest)) => return parser.bear(rest),
        Some((Scheme::Stdin, "")) => return Ok(parser.declare(None, Source::Stdin)),
        Some((scheme, _)) => return Err(parser.refusal(&scheme)),
        None => {}
    }
    if let Some(pattern) = strip_exclude(input) {
        return parser.exclude(&from_native(pattern));
    }
    let pattern = from_native(input);
    if has_wildcard(&pattern) {
        parser.glob(&pattern)
    } else {
        parser.path(&path)
    }
}

/// Parses a stored declaration. Its paths are relative to the workspace root.
///
/// In older declarations the root is `/` or a host: `file:///crates/x` and `file://docs/x` are
/// relative to the root if there is no such absolute path.
pub fn parse_stored(declaration: &str, place: &Place) -> Result<Declared, AttachError> {
    let place = Place {
        current_dir: place.root.clone(),
        ..place.clone()
    };
    let parser = InputParser {
        input: declaration,
        place: &place,
        directory: &place.root,
    };
    let declared = match Scheme::split(declaration) {
        Some((Scheme::File, rest)) => parser.file_url(rest),
        _ => parse_input(declaration, &place),
    }?;
    Ok(Declared {
        declaration: Some(declaration.to_owned()),
        is_trusted: false,
        ..declared
    })
}

/// Parses a declaration of a configuration file. Its paths are relative to the workspace root.
///
/// It is parsed again for every conversation, so it always has a stored form. For a directory or
/// glob outside the workspace that is `external:…/NAME/` or `external:…/NAME/PATTERN`.
pub fn parse_configured(input: &str, place: &Place) -> Result<Declared, AttachError> {
    let place = Place {
        current_dir: place.root.clone(),
        ..place.clone()
    };
    let mut declared = Declared {
        is_trusted: false,
        ..parse_input(input, &place)?
    };
    if declared.declaration.is_some() {
        return Ok(declared);
    }
    let (directory, pattern) = match &declared.source {
        Source::Path(directory) => (directory, ""),
        Source::Glob(glob) => (&glob.base, glob.pattern.as_str()),
        Source::Exclude(_) => return Ok(declared),
        Source::Stdin => {
            return Err(AttachError::invalid(
                input,
                "only `--attach -` attaches stdin",
            ));
        }
        // Its resource names a snapshot, but the configured declaration has to be recognised again.
        _ => {
            return Ok(Declared {
                declaration: Some(input.to_owned()),
                ..declared
            });
        }
    };
    let uri = place
        .external(directory)
        .map_err(|_| AttachError::NotUtf8 {
            input: input.to_owned(),
            path: directory.clone(),
        })?;
    declared.declaration = Some(format!("{uri}/{pattern}"));
    Ok(declared)
}

/// Returns the stored declarations that `input` may mean, to find the one to remove. The files need
/// not exist any more.
#[must_use]
pub fn possible_declarations(input: &str, place: &Place) -> Vec<String> {
    let mut declarations = vec![input.to_owned()];
    // A directory or glob outside the workspace was stored file by file.
    let mut files = Vec::new();
    if let Ok(declared) = parse_input(input, place) {
        declarations.extend(declared.declaration);
        match declared.source {
            Source::Data(url) => declarations.extend(data_url::uri(&url)),
            Source::Glob(glob) if place.relative(&glob.base).is_none() => {
                files = files_below(&glob.base);
                files.retain(|file| {
                    file.strip_prefix(&glob.base)
                        .is_ok_and(|below| glob.matches(below))
                });
            }
            _ => {}
        }
    }
    let parser = InputParser {
        input,
        place,
        directory: &place.current_dir,
    };
    if let Ok(path) = parser.absolute(input) {
        let path = canonicalize_existing(&path);
        if place.relative(&path).is_none() && path.is_dir() {
            files.extend(files_below(&path));
        }
        if let Ok(file) = place.declaration(&path) {
            declarations.push(format!("{file}/"));
            declarations.push(file);
        }
    }
    let files = files.iter().filter_map(|file| place.declaration(file).ok());
    declarations.extend(files);
    declarations.sort_unstable();
    declarations.dedup();
    declarations
}

/// The most entries of a directory that are listed to find its declarations. A whole home directory
/// would take too long.
const MAX_ENTRIES: usize = 100_000;

/// Lists all files below a directory, including those that a walk would leave out.
fn files_below(directory: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut left = MAX_ENTRIES;
    let mut pending = vec![directory.to_owned()];
    while let Some(directory) = pending.pop() {
        for entry in fs::read_dir(directory)
            .into_iter()
            .flatten()
            .flatten()
            .take(left)
        {
            left -= 1;
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => pending.push(entry.path()),
                _ => files.push(entry.path()),
            }
        }
    }
    files
}

#[cfg(test)]
mod tests;
