use std::{
    fs, io,
    path::{Path, PathBuf},
};

use jp_resource::uri::percent_decode;

use super::{Declared, Source};
use crate::{
    AttachError, BearUri, CommandLine, Exclude, Glob, HttpUrl, McpUri, Place, Scheme,
    canonical_path,
    data::url as data_url,
    glob::{self, escape, has_wildcard},
    http::redacted,
    place::{encode_literal, normalized, slashed},
    special::special_file,
};

/// An input that is being read, and what relative paths in it are relative to.
#[derive(Clone, Copy)]
pub(super) struct Reading<'a> {
    pub(super) input: &'a str,
    pub(super) place: &'a Place,
    pub(super) directory: &'a Path,
}

/// What follows the `?` of a declaration.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Query {
    None,
    Exclude,
}

/// Takes `?exclude` off. Any other `?` is a wildcard.
pub(super) fn split_query(text: &str) -> (&str, Query) {
    match text.rsplit_once('?') {
        Some((path, query)) if query.split('&').any(|parameter| parameter == "exclude") => {
            (path, Query::Exclude)
        }
        _ => (text, Query::None),
    }
}

/// Returns a typed pattern with `/` between its names.
pub(super) fn from_native(pattern: &str) -> String {
    if cfg!(windows) {
        pattern.replace('\\', "/")
    } else {
        pattern.to_owned()
    }
}

/// Returns whether there is something at `path`, be it a dangling link or out of reach.
pub(super) fn exists(path: &Path) -> bool {
    use io::ErrorKind::{InvalidFilename, InvalidInput, NotADirectory, NotFound};
    match fs::symlink_metadata(path) {
        Ok(_) => true,
        Err(error) => !matches!(
            error.kind(),
            NotFound | NotADirectory | InvalidFilename | InvalidInput
        ),
    }
}

/// Canonicalises as much of a path as exists.
pub(super) fn resolved_as_far_as_possible(path: &Path) -> PathBuf {
    let resolved = path.ancestors().find_map(|ancestor| {
        let rest = path.strip_prefix(ancestor).ok()?;
        canonical_path(ancestor)
            .ok()
            .map(|canonical| normalized(&canonical.join(rest)))
    });
    resolved.unwrap_or_else(|| normalized(path))
}

impl Reading<'_> {
    /// Returns the same with paths relative to another directory.
    fn at<'b>(&'b self, directory: &'b Path) -> Reading<'b> {
        Reading {
            input: self.input,
            place: self.place,
            directory,
        }
    }

    /// Returns the path that a typed `path` means.
    pub(super) fn absolute(&self, path: &str) -> Result<PathBuf, AttachError> {
        let separators: &[char] = if cfg!(windows) { &['/', '\\'] } else { &['/'] };
        match path.strip_prefix('~') {
            Some(rest) if rest.is_empty() || rest.starts_with(separators) => {
                let home = self.place.home.as_ref();
                let home = home.ok_or_else(|| AttachError::NoHome {
                    input: self.input.to_owned(),
                })?;
                Ok(home.join(rest.trim_start_matches(separators)))
            }
            _ => Ok(self.directory.join(path)),
        }
    }

    /// Declares the file or directory at `path`.
    pub(super) fn path(&self, path: &Path) -> Result<Declared, AttachError> {
        let canonical = canonical_path(path).map_err(|error| self.unresolved(path, error))?;
        let metadata =
            fs::metadata(&canonical).map_err(|error| self.io("look at", &canonical, error))?;
        if let Some(kind) = special_file(metadata.file_type()) {
            return Err(AttachError::Special {
                input: self.input.to_owned(),
                path: canonical,
                kind,
            });
        }
        let is_inside = self.place.relative(&canonical).is_some();
        let not_utf8 = |_| self.not_utf8(&canonical);
        let declaration = match (is_inside, metadata.is_dir()) {
            (_, false) => Some(self.place.declaration(&canonical).map_err(not_utf8)?),
            (true, true) => Some(
                self.place
                    .directory_declaration(&canonical)
                    .map_err(not_utf8)?,
            ),
            (false, true) => None,
        };
        let link_out = if is_inside { None } else { self.link_out(path) };
        Ok(Declared {
            link_out,
            ..self.declared(declaration, Source::Path(canonical))
        })
    }

    /// Says what a path is that has no other name: a pipe that was opened, as the shell's `<(…)`.
    fn unresolved(&self, path: &Path, error: io::Error) -> AttachError {
        match fs::metadata(path)
            .ok()
            .and_then(|metadata| special_file(metadata.file_type()))
        {
            Some(kind) => AttachError::Special {
                input: self.input.to_owned(),
                path: path.to_owned(),
                kind,
            },
            None => self.io("resolve", path, error),
        }
    }

    /// Declares the files that match a `/`-separated pattern.
    pub(super) fn glob(&self, pattern: &str) -> Result<Declared, AttachError> {
        let (base, rest) = self.split_pattern(pattern)?;
        let base = canonical_path(&base).map_err(|error| self.io("resolve", &base, error))?;
        let prefix = self.prefix(&base)?;
        let glob = Glob::new(base, rest).map_err(|reason| self.invalid_glob(reason))?;
        let declaration =
            prefix.map(|prefix| format!("file:{}{}", encode_literal(&prefix), glob::encode(rest)));
        Ok(self.declared(declaration, Source::Glob(glob)))
    }

    /// Declares that what matches a `/`-separated pattern is left out. What it names need not exist.
    pub(super) fn exclude(&self, pattern: &str) -> Result<Declared, AttachError> {
        let name = pattern.strip_suffix('/').unwrap_or(pattern);
        let (base, rest) = self.split_pattern(name)?;
        if rest.is_empty() {
            return Err(AttachError::Empty);
        }
        let base = resolved_as_far_as_possible(&base);
        let prefix = self.prefix(&base)?;
        let from_prefix = match (name.contains('/'), prefix.as_deref()) {
            (false, None | Some("")) => rest.to_owned(),
            (true, None | Some("")) if !rest.contains('/') => format!("./{rest}"),
            (true, prefix) => format!("{}{rest}", escape(prefix.unwrap_or_default())),
            (false, Some(prefix)) => format!("{}**/{rest}", escape(prefix)),
        };
        let pattern = from_prefix + &pattern[name.len()..];
        let declaration = prefix
            .is_some()
            .then(|| format!("file:{}?exclude", glob::encode(&pattern)));
        let base = if prefix.is_some() {
            self.place.root.clone()
        } else {
            base
        };
        let exclude = Exclude::new(base, &pattern).map_err(|reason| self.invalid_glob(reason))?;
        Ok(self.declared(declaration, Source::Exclude(exclude)))
    }

    /// Declares what follows `file:`, an existing path before a pattern.
    pub(super) fn file_url(&self, rest: &str) -> Result<Declared, AttachError> {
        let (path, query) = split_query(rest);
        let candidates = self.candidates(path);
        if query == Query::Exclude {
            return self.exclude_of(&candidates);
        }
        for (directory, text) in &candidates {
            if let Some(path) = self.at(directory).existing(text)? {
                return self.path(&path);
            }
        }
        let mut failure = None;
        for (directory, text) in &candidates {
            match self.at(directory).unmatched(text) {
                Err(error @ AttachError::Missing { .. }) => failure = failure.or(Some(error)),
                settled => return settled,
            }
        }
        Err(failure.unwrap_or(AttachError::Empty))
    }

    /// Declares the page of a URL, which is called by its canonical form where it has credentials.
    pub(super) fn http(&self) -> Result<Declared, AttachError> {
        let malformed = |reason| AttachError::Malformed {
            input: redacted(self.input),
            reason,
        };
        let (url, credentials) = HttpUrl::parse(self.input).map_err(malformed)?;
        let declaration = url.to_string();
        let input = if credentials.is_some() {
            declaration.clone()
        } else {
            self.input.to_owned()
        };
        let declared = self.declared(Some(declaration), Source::Http { url, credentials });
        Ok(Declared { input, ..declared })
    }

    /// Declares the content of a `data:` URL.
    pub(super) fn data(&self) -> Result<Declared, AttachError> {
        let declaration = data_url::declaration(self.input)?;
        let declared = self.declared(declaration, Source::Data(self.input.to_owned()));
        Ok(Declared {
            input: data_url::shown(self.input),
            ..declared
        })
    }

    /// Declares the output of a command.
    pub(super) fn command(&self) -> Result<Declared, AttachError> {
        let line = CommandLine::parse(self.input)?;
        Ok(self.declared(Some(line.uri().to_owned()), Source::Command(line)))
    }

    /// Declares a resource of an MCP server.
    pub(super) fn mcp(&self) -> Result<Declared, AttachError> {
        let uri = McpUri::parse(self.input).map_err(|reason| self.malformed(reason))?;
        Ok(self.declared(Some(self.input.to_owned()), Source::Mcp(uri)))
    }

    /// Declares what follows `bear:`.
    pub(super) fn bear(&self, rest: &str) -> Result<Declared, AttachError> {
        let uri = BearUri::parse(rest).map_err(|reason| self.malformed(reason))?;
        Ok(self.declared(Some(self.input.to_owned()), Source::Bear(uri)))
    }

    /// Says why there is no handler for `scheme`.
    pub(super) fn refusal(&self, scheme: &Scheme) -> AttachError {
        let input = self.input.to_owned();
        match scheme {
            Scheme::External | Scheme::Stdin | Scheme::Clipboard => AttachError::Snapshot { input },
            scheme => AttachError::Unsupported {
                input: redacted(&input),
                scheme: scheme.shown(),
            },
        }
    }

    /// Lists what the path of a `file:` URL may be relative to.
    ///
    /// A host that is not this machine, and an absolute path that does not exist, are older
    /// declarations' ways to say the workspace root.
    fn candidates<'t>(&self, path: &'t str) -> Vec<(PathBuf, &'t str)> {
        let root = self.place.root.clone();
        let (host, path) = match path.strip_prefix("//") {
            Some(rest) => rest.split_at(rest.find('/').unwrap_or(rest.len())),
            None => ("", path),
        };
        match path.strip_prefix('/') {
            None if host.is_empty() => vec![(self.directory.to_owned(), path)],
            Some(path) if host.is_empty() || host.eq_ignore_ascii_case("localhost") => {
                vec![(PathBuf::from("/"), path), (root, path)]
            }
            path => vec![(root.join(host), path.unwrap_or_default())],
        }
    }

    /// Returns the path that `text` names, if there is one: decoded, else as it is.
    fn existing(&self, text: &str) -> Result<Option<PathBuf>, AttachError> {
        let decoded = percent_decode(text)
            .ok()
            .map(|name| self.directory.join(name));
        if let Some(path) = decoded.filter(|path| exists(path)) {
            return Ok(Some(path));
        }
        if text.is_empty() {
            return Ok(None);
        }
        Ok(Some(self.absolute(text)?).filter(|path| exists(path)))
    }

    /// Declares a URL's path that does not exist as it is: a glob, or nothing.
    fn unmatched(&self, text: &str) -> Result<Declared, AttachError> {
        let pattern = self.decode(text)?;
        if has_wildcard(&pattern) {
            self.glob(&pattern)
        } else {
            self.path(&self.absolute(&glob::unescape(&pattern))?)
        }
    }

    fn exclude_of(&self, candidates: &[(PathBuf, &str)]) -> Result<Declared, AttachError> {
        let names_existing = |directory: &Path, text: &str| {
            let (base, _) = glob::split(text, |_| false);
            base != Path::new("") && exists(&directory.join(base))
        };
        let chosen = candidates
            .iter()
            .find(|(directory, text)| names_existing(directory, text));
        let Some((directory, text)) = chosen.or(candidates.last()) else {
            return Err(AttachError::Empty);
        };
        self.at(directory).exclude(&self.decode(text)?)
    }

    fn decode(&self, text: &str) -> Result<String, AttachError> {
        let pattern = glob::decode(text);
        let pattern = pattern.map_err(|source| AttachError::Url {
            input: self.input.to_owned(),
            source,
        })?;
        // An encoded `~` is a directory of that name.
        let is_literal = pattern.starts_with('~') && !text.starts_with('~');
        Ok(if is_literal {
            format!("./{pattern}")
        } else {
            pattern
        })
    }

    /// Splits a pattern into the directory that it starts from and the rest.
    fn split_pattern<'p>(&self, pattern: &'p str) -> Result<(PathBuf, &'p str), AttachError> {
        let (base, rest) = glob::split(pattern, |path| exists(&self.directory.join(path)));
        if rest.split('/').any(|name| name == "..") {
            return Err(self.invalid_glob("`..` can't come after a wildcard".into()));
        }
        Ok((self.absolute(&base.to_string_lossy())?, rest))
    }

    /// Returns what comes before the name of a file in `directory`, from the workspace root: `a/b/`,
    /// nothing for the root itself. Outside the workspace there is none.
    fn prefix(&self, directory: &Path) -> Result<Option<String>, AttachError> {
        let Some(relative) = self.place.relative(directory) else {
            return Ok(None);
        };
        let relative = slashed(relative).map_err(|_| self.not_utf8(directory))?;
        Ok(Some(if relative.is_empty() {
            relative
        } else {
            relative + "/"
        }))
    }

    /// Returns where inside the workspace `path` is, whose target is outside.
    fn link_out(&self, path: &Path) -> Option<String> {
        let path = normalized(path);
        path.ancestors().skip(1).find_map(|ancestor| {
            let canonical = canonical_path(ancestor).ok()?;
            let inside = self
                .place
                .relative(&canonical)?
                .join(path.strip_prefix(ancestor).ok()?);
            Some(inside.to_string_lossy().into_owned())
        })
    }

    pub(super) fn declared(&self, declaration: Option<String>, source: Source) -> Declared {
        Declared {
            input: self.input.to_owned(),
            declaration,
            source,
            is_trusted: true,
            link_out: None,
        }
    }

    fn malformed(&self, reason: String) -> AttachError {
        AttachError::Malformed {
            input: self.input.to_owned(),
            reason,
        }
    }

    fn io(&self, action: &'static str, path: &Path, error: io::Error) -> AttachError {
        AttachError::io(self.input, action, path, error)
    }

    fn not_utf8(&self, path: &Path) -> AttachError {
        AttachError::NotUtf8 {
            input: self.input.to_owned(),
            path: path.to_owned(),
        }
    }

    fn invalid_glob(&self, reason: String) -> AttachError {
        AttachError::InvalidGlob {
            input: self.input.to_owned(),
            reason,
        }
    }
}
