//! The workspace's files, as a walk would attach them.
//!
//! A path is checked by the walk itself ([`Walked`]), and what is then read is what it found: the canonical path, opened
//! from the root on, through no link.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use jp_attachment::{
    Declared, IgnoreRule, IgnoreRules, LeftOut, Place, Secrets, Source, Walked, classify,
    find_secret, has_secret_name, is_never_entered, is_private_key,
};
use jp_resource::uri::{PathStyle, canonical_file_uri, file_path, file_uri, percent_decode};
use mcp_resources::{
    Content, Parameters, Partial, PathError, PathParam, ReadError, ResourceTemplate, Root,
};

use crate::{OpenError, blobs::content_of};

/// How many names are offered for a path: more than a client gets at once, so that it is told that there are more.
const MAX_OFFERED: usize = 1000;

/// What to do about a path that means nothing.
const SAY_A_PATH: &str = "give a path from the workspace's root, such as src/main.rs";

/// What to do where there is no such file.
const OFFERS: &str = "completion of the template offers what there is";

/// The files below the workspace's root.
#[derive(Debug)]
pub(crate) struct Files {
    root: Root,
    place: Place,
    /// Ends in a slash.
    root_uri: String,
    secrets: Secrets,
    /// What a walk from the root gives.
    whole: Walked,
}

/// How a file came to be in the list, which decides what may be given.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Listed {
    /// A walk found it at this path.
    Walked {
        walked: Arc<Walked>,
        found_at: PathBuf,
    },
    /// The workspace or its history attaches this very file: it is given if a walk from the root would give it.
    Named,
    /// The person themself attached this very file.
    Outright,
}

/// Whether the person themself attached this very file, which lets its secrets be read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum IsOutright {
    Yes,
    No,
}

/// Makes the template of all files.
pub(crate) fn template(files: &Arc<Files>) -> ResourceTemplate {
    let (reading, completing, watched) = (Arc::clone(files), Arc::clone(files), Arc::clone(files));
    let read = move |parameters: Parameters| {
        let path = parameters
            .path("path")
            .map_err(|error| refusal(error, SAY_A_PATH))?;
        reading.read(&path)
    };
    ResourceTemplate::new(format!("{}{{+path}}", files.root_uri), "File", read)
        .title("A file of the workspace")
        .description(
            "The path is relative to the workspace's root. What the workspace ignores is not offered.",
        )
        .complete("path", move |partial: Partial| completing.offered(&partial.value))
        .source(move |parameters| watched.source(&parameters.path("path").ok()?))
}

impl Files {
    pub(crate) fn open(place: Place, max_bytes: u64, secrets: Secrets) -> Result<Self, OpenError> {
        let path = place.root.clone();
        let failed = |source| OpenError::Root {
            path: path.clone(),
            source,
        };
        let root = Root::open(&path).map_err(failed)?.with_limit(max_bytes);
        let uri = path
            .to_str()
            .and_then(|path| file_uri(path, PathStyle::native()).ok());
        let uri = uri.ok_or(OpenError::Uri { path })?;
        let root_uri = format!("{}/", uri.trim_end_matches('/'));
        let whole = Walked::new(
            Declared {
                input: ".".to_owned(),
                declaration: None,
                source: Source::Path(place.root.clone()),
                is_trusted: false,
                link_out: None,
            },
            &[],
        );
        Ok(Self {
            root,
            place,
            root_uri,
            secrets,
            whole,
        })
    }

    /// Returns the URI of the root, which ends in a slash.
    pub(crate) fn root_uri(&self) -> &str {
        &self.root_uri
    }

    pub(crate) fn place(&self) -> &Place {
        &self.place
    }

    /// Returns the path that the URI of one of the workspace's files stands for, if it is one that may be given.
    ///
    /// # Errors
    ///
    /// The path, where no client can name it.
    pub(crate) fn path_of(&self, uri: &str) -> Result<Option<PathParam>, String> {
        let Some(path) = self
            .relative(uri)
            .filter(|path| !has_closed(Path::new(path)))
        else {
            return Ok(None);
        };
        PathParam::new(&path).map(Some).map_err(|_| path)
    }

    /// Returns the path of a URI from the root, with `/` on every platform.
    fn relative(&self, uri: &str) -> Option<String> {
        let path = file_path(uri, PathStyle::native()).ok()?;
        let relative = Path::new(&path).strip_prefix(&self.place.root).ok()?;
        let names: Option<Vec<&str>> = relative.iter().map(|name| name.to_str()).collect();
        Some(names?.join("/"))
    }

    /// Returns whether a URI is one of those that this server gives a meaning, or could be taken for one.
    pub(crate) fn is_own(&self, uri: &str) -> bool {
        let (scheme, rest) = uri.split_once(':').unwrap_or(("", uri));
        match scheme.to_ascii_lowercase().as_str() {
            "jp" => true,
            "file" => {
                let canonical = canonical_file_uri(uri, PathStyle::native()).unwrap_or_default();
                let forms = [format!("file:{rest}"), canonical];
                let root = percent_decode(self.root_uri.trim_end_matches('/')).unwrap_or_default();
                let is_below = |form: &String| {
                    percent_decode(form).map_or(true, |form| form.starts_with(&root))
                };
                forms.iter().any(is_below)
            }
            _ => false,
        }
    }

    /// Returns where a file is, below the root.
    pub(crate) fn absolute(&self, path: &PathParam) -> PathBuf {
        self.place.root.join(path)
    }

    /// Reads a file of which the path alone is known: it is given if a walk from the root would.
    pub(crate) fn read(&self, path: &PathParam) -> Result<Content, ReadError> {
        Self::check_open(path, Path::new(path.as_str()))?;
        let real = self.walked(path).map_err(|why| Self::left_out(path, why))?;
        self.content(path, &real, IsOutright::No)
    }

    /// Returns the canonical path of a file that a walk from the root gives.
    pub(crate) fn walked(&self, path: &PathParam) -> Result<PathBuf, LeftOut> {
        self.whole.find(&self.absolute(path), &self.place)
    }

    /// Reads a file of the list: one that a walk found is given if the same walk still does.
    pub(crate) fn read_listed(
        &self,
        path: &PathParam,
        listed: &Listed,
    ) -> Result<Content, ReadError> {
        let absolute = self.absolute(path);
        let (walked, found_at) = match listed {
            Listed::Outright => return self.content(path, &absolute, IsOutright::Yes),
            Listed::Named => return self.read(path),
            Listed::Walked { walked, found_at } => (walked, found_at),
        };
        let real = walked
            .find(found_at, &self.place)
            .map_err(|why| Self::left_out(path, why))?;
        match real == absolute {
            true => self.content(path, &real, IsOutright::No),
            false => Err(refusal(
                format!("the link that gave {path} leads elsewhere now"),
                "list again",
            )),
        }
    }

    /// Gives what the file at a canonical path holds.
    fn content(
        &self,
        path: &PathParam,
        real: &Path,
        outright: IsOutright,
    ) -> Result<Content, ReadError> {
        let Ok(relative) = real.strip_prefix(&self.place.root) else {
            return Err(Self::left_out(path, LeftOut::LeadsOut));
        };
        Self::check_open(path, relative)?;
        // Through no link at all: what was checked is what is read.
        let bytes = self
            .root
            .read_unlinked(relative)
            .map_err(|error| unreadable(path, error))?;
        if outright == IsOutright::No && is_private_key(&bytes) {
            return Err(secret(path, "it is a private key"));
        }
        let (content, mime_type) = classify(bytes, path.as_str());
        if let (Secrets::Refuse, Some(found)) =
            (self.secrets, content.as_text().and_then(find_secret))
        {
            let why = format!(
                "line {} holds what looks like {}, and conversation.attachment.secrets refuses it",
                found.line, found.kind
            );
            return Err(refused(path, &why));
        }
        Ok(content_of(content).mime_type(mime_type))
    }

    fn check_open(path: &PathParam, relative: &Path) -> Result<(), ReadError> {
        match has_closed(relative) {
            true => Err(Self::left_out(path, LeftOut::NeverEntered)),
            false => Ok(()),
        }
    }

    /// Returns what to watch for whoever subscribes to a file, one that is not there yet too.
    fn source(&self, path: &PathParam) -> Option<PathBuf> {
        let named = Path::new(path.as_str());
        if has_closed(named) || has_secret_name(named) {
            return None;
        }
        match self.walked(path) {
            Ok(real) => real
                .strip_prefix(&self.place.root)
                .is_ok_and(|real| !has_closed(real))
                .then_some(real),
            Err(LeftOut::Missing) => self
                .root
                .source(path)
                .filter(|path| self.would_be_given(path)),
            Err(_) => None,
        }
    }

    /// Returns whether a walk would give a file that is not there.
    fn would_be_given(&self, path: &Path) -> bool {
        !has_secret_name(path) && IgnoreRules::of_file(path, &self.place).is_none()
    }

    /// Returns what a path may go on with, one name further; directories end in a slash. A `%` is `%25`: `{+path}` keeps
    /// what looks encoded as it is (RFC 6570 §3.2.3). What can't be read by its path is not offered.
    fn offered(&self, begun: &str) -> Vec<String> {
        let begun = begun.replace("%25", "%");
        let (directory, begun) = begun.rsplit_once('/').unwrap_or(("", &begun));
        let absolute = match (directory, PathParam::new(directory)) {
            ("", _) => self.place.root.clone(),
            (_, Ok(directory)) => self.absolute(&directory),
            (_, Err(_)) => return Vec::new(),
        };
        let before = if directory.is_empty() {
            String::new()
        } else {
            format!("{directory}/")
        };
        let mut offered = Vec::new();
        for entry in self.whole.names(&absolute, &self.place) {
            let is_open = entry
                .path
                .strip_prefix(&self.place.root)
                .is_ok_and(|path| !has_closed(path));
            let is_nameable = PathParam::new(entry.name.as_str()).is_ok();
            if is_open
                && is_nameable
                && entry.name.starts_with(begun)
                && offered.len() < MAX_OFFERED
            {
                let slash = if entry.is_directory { "/" } else { "" };
                offered.push(format!("{before}{}{slash}", entry.name).replace('%', "%25"));
            }
        }
        offered
    }

    /// Says why a walk does not give a file, and what to do instead.
    fn left_out(path: &PathParam, why: LeftOut) -> ReadError {
        match why {
            LeftOut::Missing => refusal(format!("the workspace has no file {path}"), OFFERS),
            LeftOut::NotAFile => refusal(format!("{path} is no file"), OFFERS),
            LeftOut::NeverEntered => {
                refused(path, "what belongs to version control and to jp is closed")
            }
            LeftOut::DirectoryLink => refused(path, "a directory on its path is a link"),
            LeftOut::LeadsOut => refused(path, "a link leads out of the workspace"),
            LeftOut::Ignored(rule) => refused(path, &because_of(&rule)),
            LeftOut::Secret => secret(path, "its name is that of a file that holds secrets"),
            LeftOut::NotSelected => refused(path, "it is excluded from what is attached"),
        }
    }
}

/// Returns whether a name on a path is one that no walk enters, in capital letters too: case may not tell files apart.
fn has_closed(path: &Path) -> bool {
    path.iter()
        .any(|name| is_never_entered(&name.to_ascii_lowercase()))
}

fn because_of(rule: &IgnoreRule) -> String {
    // Rules may stand above the root; where that is, is nobody's business.
    let file = match rule.file.is_absolute() {
        true => rule.file.file_name().map(Path::new).unwrap_or(&rule.file),
        false => &rule.file,
    };
    format!(
        "{} ignores it by the rule `{}`",
        file.display(),
        rule.pattern.escape_debug()
    )
}

fn refused(path: &PathParam, why: &str) -> ReadError {
    refusal(format!("{path} is not offered: {why}"), "read another file")
}

fn secret(path: &PathParam, why: &str) -> ReadError {
    refusal(
        format!("{path} is not offered: {why}"),
        "a person who wants it read can attach it: `jp attachment add` with this path",
    )
}

/// Says what can't be given, and what to do instead.
pub(crate) fn refusal(what: impl std::fmt::Display, instead: &str) -> ReadError {
    ReadError::bad_parameters(format!("{what}; {instead}"))
}

fn unreadable(path: &PathParam, error: PathError) -> ReadError {
    match error {
        PathError::NotAFile => Files::left_out(path, LeftOut::NotAFile),
        PathError::TooLarge { limit } => refusal(
            format!(
                "{path} has more than the {limit} bytes that conversation.attachment.max_bytes allows"
            ),
            "read a smaller file",
        ),
        PathError::Io(error) if !is_missing(&error) => refusal(
            format!("{path} can't be read: {}", error.kind()),
            "read another file",
        ),
        _ => Files::left_out(path, LeftOut::Missing),
    }
}

fn is_missing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

#[cfg(test)]
mod tests;
