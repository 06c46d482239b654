//! The files that are served, each under its own name.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use mcp_resources::{ReadError, read_unlinked};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// The largest file in bytes that is read. It is more than the 10 MiB that a client gets at once, because a
/// client may read single headlines of it.
const MAX_FILE: u64 = 64 * 1024 * 1024;

/// The characters that are percent-encoded in a name: all but the unreserved ones (RFC 3986 §2.3) and the
/// slash.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b'/');

/// The words that follow a name in the URIs of the templates.
const PARTS: [&str; 2] = ["outline", "headline"];

/// The files, in the order in which they were named. Clones share them.
#[derive(Debug, Clone)]
pub(crate) struct Files(Arc<[File]>);

/// A file that may be read. It may be a symbolic link, if the user named that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct File {
    /// The file's name. If another file has it too, directories stand before it.
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    /// The file that the path led to when the server started.
    real: PathBuf,
}

impl Files {
    /// Names the files. A file that is given twice is named once.
    pub(crate) fn new(paths: Vec<PathBuf>) -> Self {
        let mut known = BTreeSet::new();
        let places: Vec<PathBuf> = paths
            .iter()
            .map(|path| canonical_place(path))
            .filter(|place| known.insert(place.clone()))
            .collect();
        let segments: Vec<Vec<String>> = places.iter().map(|place| split(place)).collect();
        let files = segments.iter().zip(places).map(|(own, path)| File {
            name: choose_name(own, &segments),
            real: path.canonicalize().unwrap_or_else(|_| path.clone()),
            path,
        });
        Self(files.collect())
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &File> {
        self.0.iter()
    }

    /// Reads the files. One that can't be read is left out, so it doesn't hide what is in the others.
    pub(crate) fn texts(&self) -> impl Iterator<Item = String> {
        self.iter().filter_map(|file| file.read().ok())
    }

    /// Finds a file by its name. No other file can be read, whatever the name says.
    pub(crate) fn find(&self, name: &str) -> Result<&File, ReadError> {
        self.iter().find(|file| file.name == name).ok_or_else(|| {
            let why = format!("there is no file {name:?}; resources/list names all");
            ReadError::bad_parameters(why)
        })
    }
}

impl File {
    /// Returns the URI of the file.
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
        // No link is followed: what was compared is what is read.
        String::from_utf8(read_unlinked(&self.real, MAX_FILE)?).map_err(|_| {
            ReadError::failed(format!("{} is not UTF-8 text; save it as UTF-8", self.name))
        })
    }
}

/// Returns a path whose directory has no links or `..`. The last name stays, even if it is that of a link.
fn canonical_place(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let directory = absolute
        .parent()
        .and_then(|directory| directory.canonicalize().ok());
    match (directory, absolute.file_name()) {
        (Some(directory), Some(name)) => directory.join(name),
        _ => absolute,
    }
}

fn split(path: &Path) -> Vec<String> {
    let normal = path
        .components()
        .filter(|component| matches!(component, std::path::Component::Normal(_)));
    normal
        .map(|component| component.as_os_str().to_string_lossy().into_owned())
        .collect()
}

/// Returns the shortest end of a path that can't be taken for something else.
fn choose_name(own: &[String], all: &[Vec<String>]) -> String {
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

/// Returns whether a name may be another file's, or its URI that of an ID or of a part of another file.
fn is_taken(name: &[String], others: &[&[String]]) -> bool {
    name[0] == "id"
        || is_end_of(name, others)
        || (1..name.len())
            .any(|end| PARTS.contains(&name[end].as_str()) && is_end_of(&name[..end], others))
}

fn is_end_of(name: &[String], paths: &[&[String]]) -> bool {
    paths.iter().any(|path| path.ends_with(name))
}
