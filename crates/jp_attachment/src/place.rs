use std::{
    fmt, io,
    path::{Component, Path, PathBuf},
};

use jp_resource::uri::{PathStyle, encode_path, external_uri, file_uri};

/// The places that paths depend on.
#[derive(Debug, Clone)]
pub struct Place {
    /// The workspace root, as [`canonical_path`] returns it.
    pub root: PathBuf,
    /// The directory that relative paths start from.
    pub current_dir: PathBuf,
    /// The home directory, for `~`.
    pub home: Option<PathBuf>,
    /// The key that makes `external:` URIs unguessable.
    pub external_key: Option<ExternalKey>,
}

/// A secret that is part of the hash of an `external:` URI. `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct ExternalKey(Vec<u8>);

/// The canonical URI and the name of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) uri: String,
    pub(crate) name: String,
}

/// The error of a path that is not UTF-8.
#[derive(Debug)]
pub(crate) struct NotUtf8;

impl Place {
    /// Creates the place of a workspace, with its root as the current directory, and without a home
    /// directory and a key.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        let root = root.into();
        Self {
            current_dir: root.clone(),
            root,
            home: None,
            external_key: None,
        }
    }

    /// Returns the canonical `path` relative to the workspace root, if it is inside.
    pub(crate) fn relative<'p>(&self, path: &'p Path) -> Option<&'p Path> {
        path.strip_prefix(&self.root).ok()
    }

    /// Returns `path` as messages on the terminal show it: relative to the workspace root, if it is
    /// inside.
    pub(crate) fn display_path(&self, path: &Path) -> PathBuf {
        match self.relative(path) {
            Some(relative) if relative != Path::new("") => relative.to_owned(),
            _ => path.to_owned(),
        }
    }

    /// Returns the canonical URI and the name of the file at a canonical path.
    ///
    /// The name is the path from the workspace root or, outside of the workspace, the file's name.
    /// Returns `None` if that is empty or not UTF-8.
    #[must_use]
    pub fn uri_and_name(&self, path: &Path) -> Option<(String, String)> {
        let identity = self.identify(path, None).ok()?;
        (!identity.name.is_empty()).then_some((identity.uri, identity.name))
    }

    /// Returns the URI and the name of the file at a canonical path. `attached` is the attached
    /// directory that it is in, if there is one.
    ///
    /// Inside the workspace, these are `file:///…` and the path from the root. Outside, they are
    /// `external:…` and the path below `attached`, or the file's name.
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
                name: with_slashes(relative)?,
            });
        }
        let uri = self.external(path)?;
        let below = attached.and_then(|directory| path.strip_prefix(directory).ok());
        let name = below.or(path.file_name().map(Path::new)).ok_or(NotUtf8)?;
        Ok(Identity {
            uri,
            name: with_slashes(name)?,
        })
    }

    /// Returns the stored declaration of the file at a canonical path: `file:RELATIVE`, or its
    /// `external:` URI if it is outside the workspace.
    pub(crate) fn declaration(&self, path: &Path) -> Result<String, NotUtf8> {
        match self.relative(path) {
            Some(relative) => Ok(format!("file:{}", encode_literal(&with_slashes(relative)?))),
            None => self.external(path),
        }
    }

    /// Returns the stored declaration of a directory inside the workspace, `file:RELATIVE/`.
    pub(crate) fn directory_declaration(&self, path: &Path) -> Result<String, NotUtf8> {
        let relative = self.relative(path).ok_or(NotUtf8)?;
        let relative = with_slashes(if relative == Path::new("") {
            Path::new(".")
        } else {
            relative
        })?;
        Ok(format!("file:{}/", encode_literal(&relative)))
    }

    /// Returns the `external:` URI of a path, which contains only the file's name.
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

/// Resolves links, `.` and `..`, and restores the case that the file system stores names in.
///
/// Every path is canonicalised with this function: a workspace root that was found in another way
/// might not be a prefix of its own files. Costs a few system calls for each name in the path.
pub fn canonical_path(path: &Path) -> io::Result<PathBuf> {
    path.canonicalize()
        .map(|canonical| true_case::restore(&canonical))
}

/// Removes `.` and `..` without a look at the file system.
pub(crate) fn normalize(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                normal.pop();
            }
            component => normal.push(component),
        }
    }
    normal
}

/// Returns a relative path with `/` between its names.
pub(crate) fn with_slashes(relative: &Path) -> Result<String, NotUtf8> {
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

    /// Returns the path, because canonical paths of Windows have the true case.
    pub(super) fn restore(canonical: &Path) -> PathBuf {
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

    /// Restores the case of each name in a canonical path.
    pub(super) fn restore(canonical: &Path) -> PathBuf {
        let mut path = PathBuf::new();
        for component in canonical.components() {
            let name = component
                .as_os_str()
                .to_str()
                .and_then(|name| stored_name(&path, name));
            match name {
                Some(name) => path.push(name),
                None => path.push(component),
            }
        }
        path
    }

    /// Returns the name that `directory` stores the file `name` under, if its case may differ.
    ///
    /// It may differ if the name with flipped case leads to the same file. Only then is the
    /// directory read.
    fn stored_name(directory: &Path, name: &str) -> Option<String> {
        let flipped = flip_case(name);
        if flipped == name {
            return None;
        }
        let file = file_number(&directory.join(flipped))?;
        if file_number(&directory.join(name))? != file {
            return None;
        }
        let entries: Vec<String> = fs::read_dir(directory)
            .ok()?
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .collect();
        uri::true_case(name, entries.iter().map(String::as_str), |entry| {
            file_number(&directory.join(entry)) == Some(file)
        })
        .map(str::to_owned)
    }

    /// Returns the numbers that identify a file.
    fn file_number(path: &Path) -> Option<(u64, u64)> {
        let metadata = fs::symlink_metadata(path).ok()?;
        Some((metadata.dev(), metadata.ino()))
    }

    fn flip_case(name: &str) -> String {
        name.chars()
            .map(|letter| {
                if letter.is_ascii_lowercase() {
                    letter.to_ascii_uppercase()
                } else {
                    letter.to_ascii_lowercase()
                }
            })
            .collect()
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
