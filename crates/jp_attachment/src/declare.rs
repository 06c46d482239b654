//! What a person types, and what is stored of it.

mod reading;

use std::{
    fs,
    path::{Path, PathBuf},
};

use self::reading::{
    Query, Reading, exists, from_native, resolved_as_far_as_possible, split_query,
};
use crate::{
    AttachError, BearUri, CommandLine, Credentials, Exclude, Glob, HttpUrl, McpUri, Place, Scheme,
    data::url as data_url, glob::has_wildcard,
};

/// Something to attach, or to exclude from what is attached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Declared {
    /// What it is called in messages: what the person typed, else the stored declaration.
    pub input: String,
    /// What to store, good on every machine. There is none for a directory, glob or pattern outside the
    /// workspace: what it gives is declared file by file ([`Delivered`](crate::Delivered)).
    pub declaration: Option<String>,
    /// What to resolve.
    pub source: Source,
    /// Whether the person asked for it themself, on the command line or in their own configuration; what
    /// comes with a workspace or a history can be a stranger's.
    pub is_trusted: bool,
    /// The name, from the workspace root, of a link that led to it and out of the workspace.
    pub link_out: Option<String>,
}

/// What a declaration stands for on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A file or directory that is named outright; the path is canonical.
    Path(PathBuf),
    /// The files that match a pattern.
    Glob(Glob),
    /// What is to be left out.
    Exclude(Exclude),
    /// A page.
    Http {
        /// Its canonical URL.
        url: HttpUrl,
        /// What was in the URL to show to its server; never stored.
        credentials: Option<Credentials>,
    },
    /// A `data:` URL.
    Data(String),
    /// What a program prints.
    Command(CommandLine),
    /// What is piped into the command.
    Stdin,
    /// What the clipboard holds.
    Clipboard,
    /// A resource of an MCP server.
    Mcp(McpUri),
    /// Notes of the Bear app.
    Bear(BearUri),
}

/// What resolving something reaches for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// Files of the workspace, or nothing.
    Workspace,
    /// Servers of the internet. Those of this machine and of private networks are reached only by what the
    /// person declared themself ([`Declared::is_trusted`]).
    Network,
    /// Other files of this machine, and what else on it is the person's own.
    Machine,
    /// A program, which may do anything.
    Program,
    /// Asks an MCP server.
    Server,
}

/// What the user's approval of a declaration allows that a workspace or its history can't allow itself.
///
/// The user approves a declaration when they attach it, declare it in their own configuration, or say yes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApprovalScope {
    /// Nothing. A walk of the workspace may give what it names, and no more.
    Nothing,
    /// `jp mcp serve` gives this file of the workspace even if a walk would leave it out. Of a directory
    /// it allows nothing.
    Serving,
    /// jp resolves it without asking, also in later commands.
    Resolving,
    /// jp attaches it at all. This can't be approved afterwards: the user attaches it themself.
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

    /// Returns what resolving it reaches for.
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

/// Reads what a person typed.
///
/// That is a path (absolute, relative to the current directory, `~/…`), of a file or directory or with wildcards, a
/// URL, `cmd:` with a command line, `-` for stdin, `clip:` for the clipboard, or `!PATTERN` or `PATTERN?exclude`. An
/// existing path wins over any other reading. Resolves links: a link's target is what is attached, and what decides
/// whether it is inside the workspace. Refuses what does not exist, and what is neither file nor directory.
pub fn parse_input(input: &str, place: &Place) -> Result<Declared, AttachError> {
    if input.is_empty() {
        return Err(AttachError::Empty);
    }
    let reading = Reading {
        input,
        place,
        directory: &place.current_dir,
    };
    let path = reading.absolute(input)?;
    if input != "-" && exists(&path) {
        return reading.path(&path);
    }
    if let Some(pattern) = input.strip_prefix('!') {
        return reading.exclude(&from_native(pattern));
    }
    match Scheme::split(input) {
        Some((Scheme::File, "" | "//")) => return Err(AttachError::Empty),
        Some((Scheme::File, rest)) => return reading.file_url(rest),
        Some((Scheme::Http, _)) => return reading.http(),
        Some((Scheme::Data, _)) => return reading.data(),
        Some((Scheme::Command, _)) => return reading.command(),
        Some((Scheme::Clipboard, "")) => return Ok(reading.declared(None, Source::Clipboard)),
        Some((Scheme::Mcp, _)) => return reading.mcp(),
        Some((Scheme::Bear, rest)) => return reading.bear(rest),
        Some((Scheme::Stdin, "")) => return Ok(reading.declared(None, Source::Stdin)),
        Some((scheme, _)) => return Err(reading.refusal(&scheme)),
        None => {}
    }
    if let (pattern, Query::Exclude) = split_query(input) {
        return reading.exclude(&from_native(pattern));
    }
    let pattern = from_native(input);
    if has_wildcard(&pattern) {
        reading.glob(&pattern)
    } else {
        reading.path(&path)
    }
}

/// Reads a declaration that was stored, or that a configuration makes: its paths are relative to the
/// workspace root.
///
/// Older ones name the root `/` or a host: `file:///crates/x` and `file://docs/x` are relative to the
/// root where there is no such absolute path.
pub fn parse_stored(declaration: &str, place: &Place) -> Result<Declared, AttachError> {
    let place = Place {
        current_dir: place.root.clone(),
        ..place.clone()
    };
    let reading = Reading {
        input: declaration,
        place: &place,
        directory: &place.root,
    };
    let declared = match Scheme::split(declaration) {
        Some((Scheme::File, rest)) => reading.file_url(rest),
        _ => parse_input(declaration, &place),
    }?;
    Ok(Declared {
        declaration: Some(declaration.to_owned()),
        is_trusted: false,
        ..declared
    })
}

/// Reads a declaration of a configuration file; its paths are relative to the workspace root.
///
/// Unlike what is typed, it is read again for every conversation, so it always has a stored form: for
/// a directory or glob outside the workspace that is `external:…/NAME/` or `external:…/NAME/PATTERN`.
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
            let reason = "stdin is attached with `--attach -` alone".to_owned();
            return Err(AttachError::Malformed {
                input: input.to_owned(),
                reason,
            });
        }
        // What it gives names a snapshot; what was configured is delivered with it all the same.
        _ => {
            return Ok(Declared {
                declaration: Some(input.to_owned()),
                ..declared
            });
        }
    };
    let not_utf8 = |_| AttachError::NotUtf8 {
        input: input.to_owned(),
        path: directory.clone(),
    };
    declared.declaration = Some(format!(
        "{}/{pattern}",
        place.external(directory).map_err(not_utf8)?
    ));
    Ok(declared)
}

/// Returns the stored declarations that `input` may mean, to find the one to remove: what it names need
/// not exist any more.
#[must_use]
pub fn possible_declarations(input: &str, place: &Place) -> Vec<String> {
    let mut declarations = vec![input.to_owned()];
    declarations.extend(
        parse_input(input, place)
            .ok()
            .and_then(|declared| declared.declaration),
    );
    match parse_input(input, place).map(|declared| declared.source) {
        Ok(Source::Data(url)) => declarations.extend(data_url::uri(&url)),
        Ok(Source::Glob(glob)) if place.relative(&glob.base).is_none() => {
            let files = files_below(&glob.base).into_iter();
            let is_match = |file: &PathBuf| {
                file.strip_prefix(&glob.base)
                    .is_ok_and(|below| glob.matches(below))
            };
            declarations.extend(
                files
                    .filter(is_match)
                    .filter_map(|file| place.declaration(&file).ok()),
            );
        }
        _ => {}
    }
    let reading = Reading {
        input,
        place,
        directory: &place.current_dir,
    };
    if let Ok(path) = reading.absolute(input) {
        let path = resolved_as_far_as_possible(&path);
        if place.relative(&path).is_none() && path.is_dir() {
            declarations.extend(
                files_below(&path)
                    .iter()
                    .filter_map(|file| place.declaration(file).ok()),
            );
        }
        if let Ok(file) = place.declaration(&path) {
            declarations.push(format!("{file}/"));
            declarations.push(file);
        }
    }
    declarations.sort_unstable();
    declarations.dedup();
    declarations
}

/// How many entries of a directory are looked at to find what it gave.
const MAX_ENTRIES: usize = 100_000;

/// Lists what a directory outside the workspace may have given, without regard to any rule.
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
