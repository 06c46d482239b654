//! Offers the files of the workspace that a walk would attach.
//!
//! The walk itself checks a path ([`Walked`]) and returns the canonical path of the file. That path is
//! opened from the root without following links, so the file that was checked is the one that is read.

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

use crate::{
    answer::{refusal, to_content},
    error::OpenError,
};

/// The most names that complete a path. A client receives a hundred of them and learns that there are more.
const MAX_OFFERED: usize = 1000;

/// The advice for a malformed path.
const GIVE_PATH: &str = "give a path from the workspace's root, such as src/main.rs";

/// The advice if there is no such file.
const SEE_COMPLETION: &str = "completion of the template offers the files";

/// The files below the workspace's root.
#[derive(Debug)]
pub(crate) struct Files {
    root: Root,
    place: Place,
    /// Ends in a slash.
    root_uri: String,
    secrets: Secrets,
    /// The walk from the root.
    whole: Walked,
}

/// The reason why a file is in the list. It decides if the file may be read.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Listed {
    /// A walk found it at this path.
    Walked {
        walked: Arc<Walked>,
        found_at: PathBuf,
    },
    /// The workspace or its history attaches this file by its path. It may be read if a walk from the root
    /// finds it.
    Named,
    /// The user attached this file by its path.
    ByUser,
}

/// The reason why a file may be read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Grant {
    /// The user attached this file by its path, so it may be a private key.
    User,
    /// A walk found it.
    Walk,
}

/// Makes the template of all files.
pub(crate) fn template(files: &Arc<Files>) -> ResourceTemplate {
    let [reading, completing, watched] = [(); 3].map(|()| Arc::clone(files));
    let uri_template = format!("{}{{+path}}", files.root_uri);
    ResourceTemplate::new(uri_template, "File", move |parameters: Parameters| {
        let path = parameters
            .path("path")
            .map_err(|error| refusal(error, GIVE_PATH))?;
        reading.read(&path)
    })
    .title("A file of the workspace")
    .description("The path is relative to the workspace's root. Ignored files are not offered.")
    .complete("path", move |partial: Partial| {
        completing.complete_path(&partial.value)
    })
    .source(move |parameters| watched.source(&parameters.path("path").ok()?))
}

impl Files {
    pub(crate) fn open(place: Place, max_bytes: u64, secrets: Secrets) -> Result<Self, OpenError> {
        let path = place.root.clone();
        let root = match Root::open(&path) {
            Ok(root) => root.with_limit(max_bytes),
            Err(source) => return Err(OpenError::Root { path, source }),
        };
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

    /// Returns the path of a URI if it is that of a file of the workspace and isn't closed.
    ///
    /// # Errors
    ///
    /// The path, if no client can name it.
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

    /// Returns true if this server reads the URI itself, or a client could think so. Such a URI must not be
    /// listed for the resource of another server.
    pub(crate) fn is_own(&self, uri: &str) -> bool {
        let (scheme, rest) = uri.split_once(':').unwrap_or(("", uri));
        match scheme.to_ascii_lowercase().as_str() {
            "jp" => true,
            "file" => {
                let canonical = canonical_file_uri(uri, PathStyle::native()).unwrap_or_default();
                let root = percent_decode(self.root_uri.trim_end_matches('/')).unwrap_or_default();
                [format!("file:{rest}"), canonical]
                    .iter()
                    .any(|form| percent_decode(form).map_or(true, |form| form.starts_with(&root)))
            }
            _ => false,
        }
    }

    /// Returns the absolute path of a file.
    pub(crate) fn absolute(&self, path: &PathParam) -> PathBuf {
        self.place.root.join(path)
    }

    /// Reads a file by its path if a walk from the root finds it.
    pub(crate) fn read(&self, path: &PathParam) -> Result<Content, ReadError> {
        Self::check_open(path, Path::new(path.as_str()))?;
        let real = self
            .find_walked(path)
            .map_err(|why| Self::explain(path, why))?;
        self.read_real(path, &real, Grant::Walk)
    }

    /// Returns the canonical path of a file that a walk from the root finds.
    pub(crate) fn find_walked(&self, path: &PathParam) -> Result<PathBuf, LeftOut> {
        self.whole.find(&self.absolute(path), &self.place)
    }

    /// Reads a file of the list. If a walk found it, the same walk must still find it.
    pub(crate) fn read_listed(
        &self,
        path: &PathParam,
        listed: &Listed,
    ) -> Result<Content, ReadError> {
        let absolute = self.absolute(path);
        let (walked, found_at) = match listed {
            Listed::ByUser => return self.read_real(path, &absolute, Grant::User),
            Listed::Named => return self.read(path),
            Listed::Walked { walked, found_at } => (walked, found_at),
        };
        let real = walked
            .find(found_at, &self.place)
            .map_err(|why| Self::explain(path, why))?;
        match real == absolute {
            true => self.read_real(path, &real, Grant::Walk),
            false => Err(refusal(
                format!("the link {path} has a new target"),
                "list the resources again",
            )),
        }
    }

    /// Reads the file at a canonical path.
    fn read_real(&self, path: &PathParam, real: &Path, grant: Grant) -> Result<Content, ReadError> {
        let Ok(relative) = real.strip_prefix(&self.place.root) else {
            return Err(Self::explain(path, LeftOut::LeadsOut));
        };
        Self::check_open(path, relative)?;
        // Without following links, this reads the file that was checked.
        let bytes = self
            .root
            .read_unlinked(relative)
            .map_err(|error| explain_error(path, error))?;
        if grant == Grant::Walk && is_private_key(&bytes) {
            return Err(refuse_secret(path, "it is a private key"));
        }
        let (content, mime_type) = classify(bytes, path.as_str());
        if let (Secrets::Refuse, Some(found)) =
            (self.secrets, content.as_text().and_then(find_secret))
        {
            let why = format!(
                "line {} seems to contain {}, and conversation.attachment.secrets refuses it",
                found.line, found.kind
            );
            return Err(refuse(path, &why));
        }
        Ok(to_content(content).mime_type(mime_type))
    }

    fn check_open(path: &PathParam, relative: &Path) -> Result<(), ReadError> {
        match has_closed(relative) {
            true => Err(Self::explain(path, LeftOut::NeverEntered)),
            false => Ok(()),
        }
    }

    /// Returns the path to watch for a subscriber. The file may not exist yet.
    fn source(&self, path: &PathParam) -> Option<PathBuf> {
        let named = Path::new(path.as_str());
        if has_closed(named) || has_secret_name(named) {
            return None;
        }
        match self.find_walked(path) {
            Ok(real) => real
                .strip_prefix(&self.place.root)
                .is_ok_and(|real| !has_closed(real))
                .then_some(real),
            Err(LeftOut::Missing) => self
                .root
                .source(path)
                .filter(|path| self.would_be_offered(path)),
            Err(_) => None,
        }
    }

    /// Returns true if a walk would find a file if it existed.
    fn would_be_offered(&self, path: &Path) -> bool {
        !has_secret_name(path) && IgnoreRules::rule_for_file(path, &self.place).is_none()
    }

    /// Completes a path by one name. Directories end in a slash. Files that can't be read by their path are
    /// left out.
    ///
    /// A `%` becomes `%25`, because `{+path}` doesn't encode text that looks percent-encoded (RFC 6570
    /// §3.2.3).
    fn complete_path(&self, partial: &str) -> Vec<String> {
        let partial = partial.replace("%25", "%");
        let (directory, start) = partial.rsplit_once('/').unwrap_or(("", &partial));
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
                && entry.name.starts_with(start)
                && offered.len() < MAX_OFFERED
            {
                let slash = if entry.is_directory { "/" } else { "" };
                offered.push(format!("{before}{}{slash}", entry.name).replace('%', "%25"));
            }
        }
        offered
    }

    /// Refuses a file that a walk excludes, and says what to do instead.
    fn explain(path: &PathParam, why: LeftOut) -> ReadError {
        match why {
            LeftOut::Missing => {
                refusal(format!("the workspace has no file {path}"), SEE_COMPLETION)
            }
            LeftOut::NotAFile => refusal(format!("{path} is not a file"), SEE_COMPLETION),
            LeftOut::NeverEntered => refuse(path, "it belongs to version control or to jp"),
            LeftOut::DirectoryLink => refuse(path, "a directory in its path is a link"),
            LeftOut::LeadsOut => refuse(path, "a link points outside the workspace"),
            LeftOut::Ignored(rule) => refuse(path, &describe_rule(&rule)),
            LeftOut::Secret => refuse_secret(path, "files with this name usually contain secrets"),
            LeftOut::NotSelected => refuse(path, "it is excluded from the attachments"),
        }
    }
}

/// Returns true if a path has a name that no walk enters, such as `.git`. Case is ignored, because on some
/// file systems `.GIT` is the same directory.
fn has_closed(path: &Path) -> bool {
    path.iter()
        .any(|name| is_never_entered(&name.to_ascii_lowercase()))
}

fn describe_rule(rule: &IgnoreRule) -> String {
    // An ignore file may be above the root. Clients must not learn its directory.
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

fn refuse(path: &PathParam, why: &str) -> ReadError {
    refusal(format!("{path} is not offered: {why}"), "read another file")
}

fn refuse_secret(path: &PathParam, why: &str) -> ReadError {
    refusal(
        format!("{path} is not offered: {why}"),
        "the user can attach it with `jp attachment add` and this path",
    )
}

fn explain_error(path: &PathParam, error: PathError) -> ReadError {
    match error {
        PathError::NotAFile => Files::explain(path, LeftOut::NotAFile),
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
        _ => Files::explain(path, LeftOut::Missing),
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
