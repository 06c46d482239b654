//! The files that are served, each under a name of its own.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use mcp_resources::{ReadError, read_unlinked};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// The largest file in bytes that is read. A client is given less at once, but may read a part of it.
const MAX_FILE: u64 = 64 * 1024 * 1024;

/// What a name in a URI can't hold as it is (RFC 3986 §2.3); the slash stays.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b'/');

/// What follows a name in the URIs of the templates.
const PARTS: [&str; 2] = ["outline", "headline"];

/// The files, in the order in which they were named. Clones share them.
#[derive(Debug, Clone)]
pub(crate) struct Files(Arc<[File]>);

/// A file that may be read. A symbolic link is one too: it was named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct File {
    /// The file's name; where that is another file's too, with directories before it.
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    /// The file behind the links that the path had when it was named.
    real: PathBuf,
}

impl Files {
    /// Names the files; one that is there twice counts once.
    pub(crate) fn new(paths: Vec<PathBuf>) -> Self {
        let mut known = BTreeSet::new();
        let places = paths
            .iter()
            .map(|path| place(path))
            .filter(|place| known.insert(place.clone()));
        let places: Vec<PathBuf> = places.collect();
        let segments: Vec<Vec<String>> = places.iter().map(|place| segments(place)).collect();
        let file = |(own, path): (&Vec<String>, PathBuf)| {
            let real = path.canonicalize().unwrap_or_else(|_| path.clone());
            File {
                name: name(own, &segments),
                path,
                real,
            }
        };
        Self(segments.iter().zip(places).map(file).collect())
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &File> {
        self.0.iter()
    }

    /// Reads those that can be read: one that can't must not hide what is in another.
    pub(crate) fn texts(&self) -> impl Iterator<Item = String> {
        self.iter().filter_map(|file| file.read().ok())
    }

    /// Finds the file with a name; there are no others, whatever a name says.
    pub(crate) fn named(&self, name: &str) -> Result<&File, ReadError> {
        let unknown = || format!("there is no file {name:?}; resources/list names all");
        self.iter()
            .find(|file| file.name == name)
            .ok_or_else(|| ReadError::bad_parameters(unknown()))
    }
}

impl File {
    /// Gives the URI of the file.
    pub(crate) fn uri(&self) -> String {
        format!("org://{}", utf8_percent_encode(&self.name, ENCODED))
    }

    /// Reads the file as it is now.
    pub(crate) fn read(&self) -> Result<String, ReadError> {
        if self.path.canonicalize()? != self.real {
            let why = format!(
                "{} is a link to another file now; start the server again to serve that",
                self.name
            );
            return Err(ReadError::failed(why));
        }
        let not_text =
            |_| ReadError::failed(format!("{} is not UTF-8 text; save it as UTF-8", self.name));
        String::from_utf8(read_unlinked(&self.real, MAX_FILE)?).map_err(not_text)
    }
}

/// Where a file is: in a directory without links or `..`, under its own name even where that is a link.
fn place(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let directory = absolute
        .parent()
        .and_then(|directory| directory.canonicalize().ok());
    match (directory, absolute.file_name()) {
        (Some(directory), Some(name)) => directory.join(name),
        _ => absolute,
    }
}

fn segments(path: &Path) -> Vec<String> {
    let normal = path
        .components()
        .filter(|component| matches!(component, std::path::Component::Normal(_)));
    normal
        .map(|component| component.as_os_str().to_string_lossy().into_owned())
        .collect()
}

/// The shortest end of a path that can't be taken for something else.
fn name(own: &[String], all: &[Vec<String>]) -> String {
    let others: Vec<&[String]> = all
        .iter()
        .map(Vec::as_slice)
        .filter(|other| *other != own)
        .collect();
    let ends = (1..=own.len()).map(|length| &own[own.len() - length..]);
    ends.clone()
        .find(|end| !is_taken(end, &others))
        .unwrap_or(own)
        .join("/")
}

/// Whether a name is another file's, or its URI would be that of an ID or of a part of another file.
fn is_taken(name: &[String], others: &[&[String]]) -> bool {
    let may_be = |name: &[String]| others.iter().any(|other| other.ends_with(name));
    let is_part = |end: usize| PARTS.contains(&name[end].as_str()) && may_be(&name[..end]);
    name[0] == "id" || may_be(name) || (1..name.len()).any(is_part)
}
