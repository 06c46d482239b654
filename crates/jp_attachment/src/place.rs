use std::{
    fmt, io,
    path::{Component, Path, PathBuf},
};

use jp_resource::uri::{PathStyle, encode_path, external_uri, file_uri};

/// Where a person is, as far as paths depend on it.
#[derive(Debug, Clone)]
pub struct Place {
    /// The workspace root, as [`canonical_path`] gives it.
    pub root: PathBuf,
    /// What relative paths are relative to.
    pub current_dir: PathBuf,
    /// What `~` stands for.
    pub home: Option<PathBuf>,
    /// Makes `external:` URIs unguessable.
    pub external_key: Option<ExternalKey>,
}

/// A secret that goes into the hash of an `external:` URI; never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct ExternalKey(Vec<u8>);

/// What names a file: the canonical URI, and what it is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) uri: String,
    pub(crate) name: String,
}

/// A path holds a name that is not UTF-8.
#[derive(Debug)]
pub(crate) struct NotUtf8;

impl Place {
    /// Returns `path` from the workspace root, if it is inside. `path` is canonical.
    pub(crate) fn relative<'p>(&self, path: &'p Path) -> Option<&'p Path> {
        path.strip_prefix(&self.root).ok()
    }

    /// Returns what a message on the terminal calls `path`.
    pub(crate) fn shown(&self, path: &Path) -> PathBuf {
        match self.relative(path) {
            Some(relative) if relative != Path::new("") => relative.to_owned(),
            _ => path.to_owned(),
        }
    }

    /// Returns the canonical URI of the file at a canonical path, and what it is called: its path from the workspace
    /// root, or outside of that its name. `None` where there is no such name, or none in UTF-8.
    #[must_use]
    pub fn named(&self, path: &Path) -> Option<(String, String)> {
        let identity = self.identify(path, None).ok()?;
        (!identity.name.is_empty()).then_some((identity.uri, identity.name))
    }

    /// Names the file at a canonical path; `attached` is the directory that was attached, if one was.
    ///
    /// Inside the workspace that is `file:///…` and the path from the root; outside `external:…` and
    /// the path below `attached`, else the file's name.
    pub(crate) fn identify(
        &self,
        path: &Path,
        attached: Option<&Path>,
    ) -> Result<Identity, NotUtf8> {
        if let Some(relative) = self.relative(path) {
            let text = path.to_str().ok_or(NotUtf8)?;
            let uri = file_uri(text, PathStyle::native()).map_err(|_| NotUtf8)?;
            return Ok(Identity {
                uri,
                name: slashed(relative)?,
            });
        }
        let uri = self.external(path)?;
        let below = attached.and_then(|directory| path.strip_prefix(directory).ok());
        let name = below.or(path.file_name().map(Path::new)).ok_or(NotUtf8)?;
        Ok(Identity {
            uri,
            name: slashed(name)?,
        })
    }

    /// Returns the stored declaration of the file at a canonical path: `file:RELATIVE`, or outside
    /// the workspace its `external:` URI.
    pub(crate) fn declaration(&self, path: &Path) -> Result<String, NotUtf8> {
        match self.relative(path) {
            Some(relative) => Ok(format!("file:{}", encode_literal(&slashed(relative)?))),
            None => self.external(path),
        }
    }

    /// Returns the stored declaration of a directory inside the workspace, `file:RELATIVE/`.
    pub(crate) fn directory_declaration(&self, path: &Path) -> Result<String, NotUtf8> {
        let relative = self.relative(path).ok_or(NotUtf8)?;
        let relative = slashed(if relative == Path::new("") {
            Path::new(".")
        } else {
            relative
        })?;
        Ok(format!("file:{}/", encode_literal(&relative)))
    }

    pub(crate) fn external(&self, path: &Path) -> Result<String, NotUtf8> {
        let parent = path.parent().and_then(Path::to_str).ok_or(NotUtf8)?;
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .ok_or(NotUtf8)?;
        let key = self.external_key.as_ref().map(|key| key.0.as_slice());
        Ok(external_uri(parent, name, key, PathStyle::native()))
    }
}

impl ExternalKey {
    /// Wraps the secret.
    pub fn new(secret: impl Into<Vec<u8>>) -> Self {
        Self(secret.into())
    }
}

impl fmt::Debug for ExternalKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ExternalKey(…)")
    }
}

/// Resolves links, `.` and `..`, and gives names the case that the file system keeps them in.
///
/// The one way to canonicalise here: a workspace root that was found otherwise might not be the prefix
/// of its own files. Costs a few system calls for each name in the path.
pub fn canonical_path(path: &Path) -> io::Result<PathBuf> {
    path.canonicalize()
        .map(|canonical| true_case::of(&canonical))
}

/// Removes `.` and `..` without asking the file system.
pub(crate) fn normalized(path: &Path) -> PathBuf {
    let mut normalized = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                normalized.pop();
            }
            component => normalized.push(component),
        }
    }
    normalized
}

/// Returns a relative path with `/` between its names.
pub(crate) fn slashed(relative: &Path) -> Result<String, NotUtf8> {
    let text = relative.to_str().ok_or(NotUtf8)?;
    Ok(if cfg!(windows) {
        text.replace('\\', "/")
    } else {
        text.to_owned()
    })
}

/// Percent-encodes a relative path for a declaration: nothing in it is a wildcard, `~` or query.
pub(crate) fn encode_literal(path: &str) -> String {
    let encoded = encode_path(path).replace('*', "%2A");
    match encoded.strip_prefix('~') {
        Some(rest) => format!("%7E{rest}"),
        None => encoded,
    }
}

#[cfg(not(unix))]
mod true_case {
    use std::path::{Path, PathBuf};

    /// Windows' canonical paths have the true case.
    pub(super) fn of(canonical: &Path) -> PathBuf {
        canonical.to_owned()
    }
}

#[cfg(unix)]
mod true_case {
    use std::{
        fs,
        os::unix::fs::MetadataExt,
        path::{Path, PathBuf},
    };

    use jp_resource::uri;

    pub(super) fn of(canonical: &Path) -> PathBuf {
        let mut path = PathBuf::new();
        for component in canonical.components() {
            let name = component
                .as_os_str()
                .to_str()
                .and_then(|name| kept_name(&path, name));
            match name {
                Some(name) => path.push(name),
                None => path.push(component),
            }
        }
        path
    }

    /// Returns the name that `directory` keeps the file `name` under, where that may be another.
    ///
    /// It may where the file answers to the name with its case flipped too; only then is the directory
    /// read.
    fn kept_name(directory: &Path, name: &str) -> Option<String> {
        let flipped = flip_case(name);
        let identity = |name: &str| {
            fs::symlink_metadata(directory.join(name))
                .ok()
                .map(|found| (found.dev(), found.ino()))
        };
        if flipped == name {
            return None;
        }
        let other = identity(&flipped)?;
        if identity(name)? != other {
            return None;
        }
        let entries: Vec<String> = fs::read_dir(directory)
            .ok()?
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .collect();
        let is_same = |entry: &str| identity(entry) == Some(other);
        uri::true_case(name, entries.iter().map(String::as_str), is_same).map(str::to_owned)
    }

    fn flip_case(name: &str) -> String {
        let flip = |letter: char| {
            if letter.is_ascii_lowercase() {
                letter.to_ascii_uppercase()
            } else {
                letter.to_ascii_lowercase()
            }
        };
        name.chars().map(flip).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn canonical_path_keeps_the_case_of_a_hard_link() {
        let directory = tempfile::tempdir().unwrap();
        let root = canonical_path(directory.path()).unwrap();
        std::fs::write(root.join("Readme"), "x").unwrap();
        std::fs::hard_link(root.join("Readme"), root.join("rEADME")).unwrap();
        for name in ["Readme", "rEADME"] {
            assert_eq!(
                canonical_path(&root.join("..").join(&root).join(name)).unwrap(),
                root.join(name)
            );
        }
    }

    #[test]
    fn literal_path_has_no_wildcard() {
        assert_eq!(
            encode_literal("~/a*[1]{x}?.rs"),
            "%7E/a%2A%5B1%5D%7Bx%7D%3F.rs"
        );
    }

    #[test]
    fn key_is_never_shown() {
        assert_eq!(
            format!("{:?}", ExternalKey::new("secret")),
            "ExternalKey(…)"
        );
    }
}
