use std::{
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf},
};

use jp_resource::Checksum;

use crate::files;

/// Remembers which declarations this person made or agreed to in this checkout.
///
/// A history and a workspace's configuration can be a stranger's; this is kept outside of both. Holds
/// checksums, as a command line may hold what nobody else should read.
#[derive(Debug, Clone)]
pub struct Trust {
    path: PathBuf,
}

impl Trust {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// Returns the file that remembers, which need not be there: it changes when something is added.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns whether a declaration is this person's.
    #[must_use]
    pub fn contains(&self, declaration: &str) -> bool {
        self.read().contains(&Checksum::of(declaration.as_bytes()).to_string())
    }

    /// Remembers declarations.
    pub fn add<'d>(&self, declarations: impl IntoIterator<Item = &'d str>) -> io::Result<()> {
        let mut known = self.read();
        let before = known.len();
        known.extend(declarations.into_iter().map(|one| Checksum::of(one.as_bytes()).to_string()));
        if known.len() == before {
            return Ok(());
        }
        let text: String = known.iter().map(|checksum| format!("{checksum}\n")).collect();
        files::replace_cache(&self.path, text.as_bytes())
    }

    fn read(&self) -> BTreeSet<String> {
        let text = fs::read_to_string(&self.path).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declaration_is_trusted_once_it_was_added() {
        let directory = tempfile::tempdir().unwrap();
        let trust = Trust::new(directory.path().join("a/trusted"));
        assert!(!trust.contains("cmd://git?arg=diff"));
        trust.add(["cmd://git?arg=diff", "cmd://date"]).unwrap();
        assert!(trust.contains("cmd://git?arg=diff"));
        assert!(!trust.contains("cmd://git"));
        let text = fs::read_to_string(directory.path().join("a/trusted")).unwrap();
        assert!(!text.contains("git"));
    }
}
