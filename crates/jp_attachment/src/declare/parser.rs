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
    http::redact,
    place::{encode_literal, normalize, with_slashes},
    special_file::special_file,
};

/// Parses an input whose relative paths start from `directory`.
#[derive(Clone, Copy)]
pub(super) struct InputParser<'a> {
    pub(super) input: &'a str,
    pub(super) place: &'a Place,
    pub(super) directory: &'a Path,
}

/// Returns the pattern before `?exclude`, if the text ends so. Any other `?` is a wildcard.
pub(super) fn strip_exclude(text: &str) -> Option<&str> {
    let (pattern, query) = text.rsplit_once('?')?;
    query
        .split('&')
        .any(|parameter| parameter == "exclude")
        .then_some(pattern)
}

/// Returns a typed pattern with `/` as the separator.
pub(super) fn from_native(pattern: &str) -> String {
    if cfg!(windows) {
        pattern.replace('\\', "/")
    } else {
        pattern.to_owned()
    }
}

/// Returns whether something is at `path`, even if it is a broken link or not accessible.
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

/// Canonicalises the part of a path that exists, and normalizes the rest.
pub(super) fn canonicalize_existing(path: &Path) -> PathBuf {
    let canonical = path.ancestors().find_map(|ancestor| {
        let rest = path.strip_prefix(ancestor).ok()?;
        canonical_path(ancestor)
            .ok()
            .map(|canonical| normalize(&canonical.join(rest)))
    });
    canonical.unwrap_or_else(|| normalize(path))
}

impl InputParser<'_> {
    /// Returns a parser whose relative paths start from another directory.
    fn at<'b>(&'b self, directory: &'b Path) -> InputParser<'b> {
        InputParser {
            input: self.input,
            place: self.place,
            directory,
        }
    }

    /// Returns the absolute path of a typed `path`, with `~` expanded.
    pub(super) fn absolute(&self, path: &str) -> Result<PathBuf, AttachError> {
        let separators: &[char] = if cfg!(windows) { &['/', '\\'] } else { &['/'] };
        match path.strip_prefix('~') {
            Some(rest) if rest.is_empty() || rest.starts_with(separators) => {
                let home = self
                    .place
                    .home
                    .as_ref()
                    .ok_or_else(|| AttachError::NoHome {
                        input: self.input.to_owned(),
                    })?;
                Ok(home.join(rest.trim_start_matches(separators)))
            }
            _ => Ok(self.directory.join(path)),
        }
    }

    /// Declares the file or directory at `path`.
    pub(super) fn path(&self, path: &Path) -> Result<Declared, AttachError> {
        let canonical = canonical_path(path).map_err(|error| self.resolve_error(path, error))?;
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
        let declaration = match (is_inside, metadata.is_dir()) {
            (_, false) => Some(self.place.declaration(&canonical)),
            (true, true) => Some(self.place.directory_declaration(&canonical)),
            (false, true) => None,
        };
        let declaration = declaration
            .transpose()
            .map_err(|_| self.not_utf8(&canonical))?;
        let link_out = if is_inside { None } else { self.link_out(path) };
        Ok(Declared {
            link_out,
            ..self.declare(declaration, Source::Path(canonical))
        })
    }

    /// Returns the error of a path that can't be canonicalised. It may be an open pipe without
    /// another name, such as the shell's `<(…)`.
    fn resolve_error(&self, path: &Path, error: io::Error) -> AttachError {
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
        Ok(self.declare(declaration, Source::Glob(glob)))
    }

    /// Declares an exclude for a `/`-separated pattern. Its files need not exist.
    pub(super) fn exclude(&self, pattern: &str) -> Result<Declared, AttachError> {
        let name = pattern.strip_suffix('/').unwrap_or(pattern);
        let (base, rest) = self.split_pattern(name)?;
        if rest.is_empty() {
            return Err(AttachError::Empty);
        }
        let base = canonicalize_existing(&base);
        let prefix = self.prefix(&base)?;
        // The pattern relative to the workspace root. Without a `/` it matches at any depth below
        // the current directory, as in a `.gitignore` there.
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
        Ok(self.declare(declaration, Source::Exclude(exclude)))
    }

    /// Declares the text after `file:`. An existing path wins over a pattern.
    pub(super) fn file_url(&self, rest: &str) -> Result<Declared, AttachError> {
        if let Some(pattern) = strip_exclude(rest) {
            return self.exclude_first(&self.candidates(pattern));
        }
        let candidates = self.candidates(rest);
        for (directory, text) in &candidates {
            if let Some(path) = self.at(directory).find_existing(text)? {
                return self.path(&path);
            }
        }
        // No candidate exists literally. The error of the first one is reported, because it is the
        // path that the user meant.
        let mut failure = None;
        for (directory, text) in &candidates {
            match self.at(directory).pattern_or_path(text) {
                Err(error @ AttachError::Missing { .. }) => failure = failure.or(Some(error)),
                other => return other,
            }
        }
        Err(failure.unwrap_or(AttachError::Empty))
    }

    /// Declares the page of a URL. If it has credentials, messages show the canonical URL without
    /// them.
    pub(super) fn http(&self) -> Result<Declared, AttachError> {
        let (url, credentials) = HttpUrl::parse(self.input)
            .map_err(|reason| AttachError::invalid(&redact(self.input), reason))?;
        let declaration = url.to_string();
        let input = match credentials {
            Some(_) => declaration.clone(),
            None => self.input.to_owned(),
        };
        let declared = self.declare(Some(declaration), Source::Http { url, credentials });
        Ok(Declared { input, ..declared })
    }

    /// Declares the content of a `data:` URL.
    pub(super) fn data(&self) -> Result<Declared, AttachError> {
        let declaration = data_url::declaration(self.input)?;
        let declared = self.declare(declaration, Source::Data(self.input.to_owned()));
        Ok(Declared {
            input: data_url::shorten(self.input),
            ..declared
        })
    }

    /// Declares the output of a command.
    pub(super) fn command(&self) -> Result<Declared, AttachError> {
        let line = CommandLine::parse(self.input)?;
        Ok(self.declare(Some(line.uri().to_owned()), Source::Command(line)))
    }

    /// Declares a resource of an MCP server.
    pub(super) fn mcp(&self) -> Result<Declared, AttachError> {
        let uri =
            McpUri::parse(self.input).map_err(|reason| AttachError::invalid(self.input, reason))?;
        Ok(self.declare(Some(self.input.to_owned()), Source::Mcp(uri)))
    }

    /// Declares the notes of the text after `bear:`.
    pub(super) fn bear(&self, rest: &str) -> Result<Declared, AttachError> {
        let uri =
            BearUri::parse(rest).map_err(|reason| AttachError::invalid(self.input, reason))?;
        Ok(self.declare(Some(self.input.to_owned()), Source::Bear(uri)))
    }

    /// Returns the error of a `scheme` without a handler.
    pub(super) fn refusal(&self, scheme: &Scheme) -> AttachError {
        let input = self.input.to_owned();
        // These schemes exist only as URIs of stored snapshots.
        match scheme {
            Scheme::External | Scheme::Stdin | Scheme::Clipboard => AttachError::Snapshot { input },
            scheme => AttachError::Unsupported {
                input: redact(&input),
                scheme: scheme.display_name(),
            },
        }
    }

    /// Lists the directories that the path of a `file:` URL may be relative to, each with the path.
    ///
    /// In older declarations a host, or the `/` of an absolute path, stands for the workspace root.
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

    /// Returns the existing path that `text` names, decoded or literally.
    fn find_existing(&self, text: &str) -> Result<Option<PathBuf>, AttachError> {
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

    /// Declares the path of a URL that does not exist literally: a glob, or a path with escapes.
    fn pattern_or_path(&self, text: &str) -> Result<Declared, AttachError> {
        let pattern = self.decode(text)?;
        if has_wildcard(&pattern) {
            self.glob(&pattern)
        } else {
            self.path(&self.absolute(&glob::unescape(&pattern))?)
        }
    }

    /// Declares an exclude for the first candidate whose base directory exists, or for the last
    /// one.
    fn exclude_first(&self, candidates: &[(PathBuf, &str)]) -> Result<Declared, AttachError> {
        let existing = candidates.iter().find(|(directory, text)| {
            let (base, _) = glob::split(text, |_| false);
            base != Path::new("") && exists(&directory.join(base))
        });
        let Some((directory, text)) = existing.or(candidates.last()) else {
            return Err(AttachError::Empty);
        };
        self.at(directory).exclude(&self.decode(text)?)
    }

    /// Decodes the pattern of a `file:` URL.
    fn decode(&self, text: &str) -> Result<String, AttachError> {
        let pattern = glob::decode(text).map_err(|source| AttachError::Url {
            input: self.input.to_owned(),
            source,
        })?;
        // An encoded `~` is a directory of that name, not the home directory.
        if pattern.starts_with('~') && !text.starts_with('~') {
            return Ok(format!("./{pattern}"));
        }
        Ok(pattern)
    }

    /// Splits a pattern into the absolute directory at its start and the rest.
    fn split_pattern<'p>(&self, pattern: &'p str) -> Result<(PathBuf, &'p str), AttachError> {
        let (base, rest) = glob::split(pattern, |path| exists(&self.directory.join(path)));
        if rest.split('/').any(|name| name == "..") {
            return Err(self.invalid_glob("`..` can't come after a wildcard".into()));
        }
        Ok((self.absolute(&base.to_string_lossy())?, rest))
    }

    /// Returns the prefix of the files in `directory`, relative to the workspace root: `a/b/`, or
    /// nothing for the root itself. Returns `None` outside the workspace.
    fn prefix(&self, directory: &Path) -> Result<Option<String>, AttachError> {
        let Some(relative) = self.place.relative(directory) else {
            return Ok(None);
        };
        let mut prefix = with_slashes(relative).map_err(|_| self.not_utf8(directory))?;
        if !prefix.is_empty() {
            prefix.push('/');
        }
        Ok(Some(prefix))
    }

    /// Returns the path, from the workspace root, of a link inside the workspace whose target is
    /// outside.
    fn link_out(&self, path: &Path) -> Option<String> {
        let path = normalize(path);
        path.ancestors().skip(1).find_map(|ancestor| {
            let canonical = canonical_path(ancestor).ok()?;
            let inside = self
                .place
                .relative(&canonical)?
                .join(path.strip_prefix(ancestor).ok()?);
            Some(inside.to_string_lossy().into_owned())
        })
    }

    /// Creates the declaration of a source.
    pub(super) fn declare(&self, declaration: Option<String>, source: Source) -> Declared {
        Declared {
            input: self.input.to_owned(),
            declaration,
            source,
            is_trusted: true,
            link_out: None,
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
