//! The workspace's files, as a walk would attach them.

use std::{
    ffi::OsStr,
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use jp_attachment::{
    IgnoreRule, IgnoreRules, Place, Secrets, classify, find_secret, has_secret_name, is_never_entered,
    is_private_key,
};
use jp_resource::uri::{PathStyle, file_path, file_uri};
use mcp_resources::{Content, Parameters, Partial, PathError, PathParam, ReadError, ResourceTemplate, Root};

use crate::{OpenError, blobs::content_of};

/// How many names are offered for a path; clients get no more of them.
const MAX_OFFERED: usize = 100;

/// What to do about a path that means nothing.
const SAY_A_PATH: &str = "give a path from the workspace's root, such as src/main.rs";

/// The files below the workspace's root.
#[derive(Debug)]
pub(crate) struct Files {
    root: Root,
    place: Place,
    /// Ends in a slash.
    root_uri: String,
    secrets: Secrets,
}

/// How a file came to be asked for, which decides what may be given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    /// By whoever knows its path: it is given if a walk from the root would.
    ByPath,
    /// From the list, where a walk put it.
    FromWalk,
    /// From the list, where the person attached this very file.
    Outright,
}

/// Makes the template of all files.
pub(crate) fn template(files: &Arc<Files>) -> ResourceTemplate {
    let (reading, completing, watched) = (Arc::clone(files), Arc::clone(files), Arc::clone(files));
    let read = move |parameters: Parameters| {
        let path = parameters.path("path").map_err(|error| refusal(error, SAY_A_PATH))?;
        reading.read(&path, Asked::ByPath)
    };
    ResourceTemplate::new(format!("{}{{+path}}", files.root_uri), "File", read)
        .title("A file of the workspace")
        .description(
            "The path is relative to the workspace's root. What the workspace ignores is not offered.",
        )
        .complete("path", move |partial: Partial| completing.offered(&partial.value))
        .source(move |parameters| watched.checked(&parameters.path("path").ok()?, Asked::ByPath).ok())
}

impl Files {
    pub(crate) fn open(place: Place, max_bytes: u64, secrets: Secrets) -> Result<Self, OpenError> {
        let path = place.root.clone();
        let root = Root::open(&path).map_err(|source| OpenError::Root { path: path.clone(), source })?;
        let uri = path.to_str().and_then(|path| file_uri(path, PathStyle::native()).ok());
        let uri = uri.ok_or(OpenError::Uri { path })?;
        let root_uri = format!("{}/", uri.trim_end_matches('/'));
        Ok(Self { root: root.with_limit(max_bytes), place, root_uri, secrets })
    }

    /// Returns the URI of the root, which ends in a slash.
    pub(crate) fn root_uri(&self) -> &str {
        &self.root_uri
    }

    pub(crate) fn place(&self) -> &Place {
        &self.place
    }

    /// Returns the path that the URI of one of the workspace's files stands for.
    pub(crate) fn path_of(&self, uri: &str) -> Option<PathParam> {
        let path = file_path(uri, PathStyle::native()).ok()?;
        let relative = Path::new(&path).strip_prefix(&self.place.root).ok()?;
        PathParam::new(relative.to_str()?).ok()
    }

    /// Returns where a file is, below the root.
    pub(crate) fn absolute(&self, path: &PathParam) -> PathBuf {
        self.root.path().join(path)
    }

    /// Reads a file that may be given.
    pub(crate) fn read(&self, path: &PathParam, asked: Asked) -> Result<Content, ReadError> {
        self.checked(path, asked)?;
        let bytes = self.root.read(path).map_err(|error| unreadable(path, error))?;
        if asked != Asked::Outright && is_private_key(&bytes) {
            return Err(secret(path, "it is a private key"));
        }
        let (content, mime_type) = classify(bytes, path.as_str());
        if let (Secrets::Refuse, Some(found)) = (self.secrets, content.as_text().and_then(find_secret)) {
            let why = format!(
                "line {} holds what looks like {}, and conversation.attachment.secrets refuses it",
                found.line, found.kind
            );
            return Err(refusal(format!("{path} is not offered: {why}"), "read another file"));
        }
        Ok(content_of(content).mime_type(mime_type))
    }

    /// Returns where a file is that may be given as far as its path tells.
    fn checked(&self, path: &PathParam, asked: Asked) -> Result<PathBuf, ReadError> {
        let named = Path::new(path.as_str());
        let real = self.root.join(path).map_err(|error| unreadable(path, error))?;
        if has_closed(named) || real.strip_prefix(self.root.path()).is_ok_and(has_closed) {
            let why = "what belongs to version control and to jp is closed";
            return Err(refusal(format!("{path} is not offered: {why}"), "read another file"));
        }
        if asked == Asked::ByPath {
            self.check_walked(path)?;
        }
        if asked != Asked::Outright && (has_secret_name(named) || has_secret_name(&real)) {
            return Err(secret(path, "its name is that of a file that holds secrets"));
        }
        Ok(real)
    }

    /// Refuses what no walk from the root finds: what is ignored, and what is behind a link to a directory.
    fn check_walked(&self, path: &PathParam) -> Result<(), ReadError> {
        let (directory, name) = split(path.as_str());
        let refused = |why: String| refusal(format!("{path} is not offered: {why}"), "read another file");
        let directory = match self.directory(directory) {
            Ok(directory) => directory,
            Err(Closed::Elsewhere) => {
                return Err(refused("a directory on its path is a link, or has another name".to_owned()));
            }
            Err(Closed::Ignored(rule)) => return Err(refused(self.because_of(&rule))),
        };
        let rules = self.rules(&directory);
        match rules.ignoring(&directory.join(name), false) {
            Some(rule) => Err(refused(self.because_of(&rule))),
            None => Ok(()),
        }
    }

    /// Finds a directory that a walk from the root enters; the root itself is the empty path.
    fn directory(&self, path: &str) -> Result<PathBuf, Closed> {
        let named = self.root.path().join(path);
        if path.is_empty() {
            return Ok(self.root.path().to_owned());
        }
        let real = PathParam::new(path).ok().and_then(|path| self.root.join(&path).ok());
        if has_closed(Path::new(path)) || real.as_ref() != Some(&named) {
            return Err(Closed::Elsewhere);
        }
        match IgnoreRules::above(&named, &self.place) {
            (_, Some(rule)) => Err(Closed::Ignored(rule)),
            (_, None) => Ok(named),
        }
    }

    /// Reads the rules for the entries of a directory.
    fn rules(&self, directory: &Path) -> IgnoreRules<'_> {
        let (mut rules, _) = IgnoreRules::above(directory, &self.place);
        rules.enter(directory, [".jpignore", ".ignore", ".gitignore", ".git"].map(OsStr::new).into_iter());
        rules
    }

    fn because_of(&self, rule: &IgnoreRule) -> String {
        // Rules may stand above the root; where that is, is nobody's business.
        let file = match rule.file.is_absolute() {
            true => rule.file.file_name().map(Path::new).unwrap_or(&rule.file),
            false => &rule.file,
        };
        format!("{} ignores it by the rule `{}`", file.display(), rule.pattern.escape_debug())
    }

    /// Returns what a path may go on with, one name further; directories end in a slash.
    fn offered(&self, begun: &str) -> Vec<String> {
        let (directory, begun) = split(begun);
        let Ok(absolute) = self.directory(directory) else { return Vec::new() };
        let rules = self.rules(&absolute);
        let before = if directory.is_empty() { String::new() } else { format!("{directory}/") };
        let mut offered = Vec::new();
        for name in names(&absolute).unwrap_or_default().iter().filter(|name| name.starts_with(begun)) {
            let path = absolute.join(name);
            let Ok(kind) = fs::symlink_metadata(&path).map(|found| found.file_type()) else { continue };
            let is_directory = kind.is_dir();
            if has_closed(Path::new(name)) || rules.ignoring(&path, is_directory).is_some() {
                continue;
            }
            let relative = format!("{before}{name}");
            match is_directory {
                true => offered.push(format!("{relative}/")),
                false => offered.extend(self.is_offered(&path, &relative).then_some(relative)),
            }
            if offered.len() == MAX_OFFERED {
                break;
            }
        }
        offered
    }

    fn is_offered(&self, absolute: &Path, relative: &str) -> bool {
        let is_file = fs::metadata(absolute).is_ok_and(|found| found.is_file());
        let path = PathParam::new(relative);
        is_file && path.is_ok_and(|path| self.checked(&path, Asked::FromWalk).is_ok())
    }
}

/// Why no walk enters a directory.
enum Closed {
    /// It is another one than its path says, or is never entered.
    Elsewhere,
    Ignored(IgnoreRule),
}

/// Returns whether a name on a path is one that no walk enters, in capital letters too: case may not tell files apart.
fn has_closed(path: &Path) -> bool {
    path.iter().any(|name| is_never_entered(&name.to_ascii_lowercase()))
}

/// Splits a path into its directory, which may be empty, and the name in it.
fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

fn names(directory: &Path) -> io::Result<Vec<String>> {
    let entries = fs::read_dir(directory)?.collect::<io::Result<Vec<_>>>()?;
    let mut names: Vec<_> =
        entries.into_iter().filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort_unstable();
    Ok(names)
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
    let offers = "completion of the template offers what there is";
    match error {
        PathError::Io(error) => match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
                refusal(format!("the workspace has no file {path}"), offers)
            }
            kind => refusal(format!("{path} can't be read: {kind}"), "read another file"),
        },
        PathError::Escape => {
            refusal(format!("{path} is not offered: a link leads out of the workspace"), "read another file")
        }
        PathError::NotAFile => refusal(format!("{path} is no file"), offers),
        PathError::TooLarge { limit } => refusal(
            format!("{path} has more than the {limit} bytes that conversation.attachment.max_bytes allows"),
            "read a smaller file",
        ),
        error => refusal(format!("{path} can't be read: {error}"), SAY_A_PATH),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use jp_attachment::canonical_path;

    use super::*;

    #[test]
    fn rule_above_the_root_is_told_without_where_it_stands() {
        let directory = tempfile::tempdir().unwrap();
        let repository = canonical_path(directory.path()).unwrap();
        let root = repository.join("project");
        fs::create_dir_all(root.join("made")).unwrap();
        fs::create_dir(repository.join(".git")).unwrap();
        fs::write(repository.join(".gitignore"), "made/\n").unwrap();
        fs::write(root.join("made/x"), "x").unwrap();
        let place = Place { current_dir: root.clone(), root, home: None, external_key: None };
        let files = Files::open(place, 100, Secrets::Off).unwrap();
        let refused = files.read(&PathParam::new("made/x").unwrap(), Asked::ByPath).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "made/x is not offered: .gitignore ignores it by the rule `made/`; read another file"
        );
    }
}
