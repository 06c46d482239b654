//! Visits a directory and everything below it.

use std::{
    ffi::{OsStr, OsString},
    ops::ControlFlow,
    path::{Path, PathBuf},
};

use cap_fs_ext::DirExt;
use cap_std::fs::{Dir, FileType};
use jp_attachment::{IgnoreRules, is_never_entered};

use super::{Files, Found, Spot};

/// The maximum depth of a walk. Each directory on the way stays open, and a process may have only
/// some hundred files open.
const MAX_DEPTH: usize = 128;

/// A walk through a directory in the order of names, without ignored entries.
///
/// It follows no link to a directory, and never enters `.git`, `.jp` and similar directories.
pub(crate) struct Walk<'a> {
    pub(crate) files: &'a Files,
    /// The depth; 1 visits only the entries of the directory itself.
    pub(crate) depth: usize,
    /// Returns true once the result is no longer wanted.
    pub(crate) is_moot: &'a dyn Fn() -> bool,
}

/// An entry that a walk visits.
pub(crate) struct Entry<'a> {
    /// The open directory that contains it.
    pub(crate) directory: &'a Dir,
    pub(crate) name: &'a OsStr,
    /// The path from the root.
    pub(crate) path: &'a Path,
    pub(crate) kind: FileType,
}

/// A directory on the way.
struct Level {
    directory: Dir,
    path: PathBuf,
    entries: std::vec::IntoIter<(OsString, FileType)>,
    has_rules: bool,
}

impl Walk<'_> {
    /// Visits everything below a directory. Returns the number of directories that could not be
    /// read.
    pub(crate) fn run(
        &self,
        start: &Spot,
        visit: &mut dyn FnMut(&Entry<'_>) -> ControlFlow<()>,
    ) -> Result<usize, String> {
        let path = start.display();
        let Found::Directory(directory) = &start.found else {
            return Err(match start.found {
                Found::File => {
                    format!("{path} is a file, not a directory. Use `read_file` to read it.")
                }
                _ => format!("The directory {path} does not exist."),
            });
        };
        if let Some(name) = start.path.iter().find(|name| is_never_entered(name)) {
            return Err(format!(
                "{path} can't be listed or searched: tools skip {}.",
                name.to_string_lossy()
            ));
        }
        let directory = directory
            .try_clone()
            .map_err(|error| start.describe_error("read", &error))?;
        let place = &self.files.place;
        let (rules, _) = IgnoreRules::above(&place.root.join(&start.path), place);
        let mut walking = Walking {
            walk: self,
            rules,
            levels: Vec::new(),
            unreadable: 0,
        };
        walking
            .enter(directory, start.path.clone())
            .map_err(|error| start.describe_error("read", &error))?;
        walking.run(visit);
        Ok(walking.unreadable)
    }
}

/// A walk in progress.
struct Walking<'a> {
    walk: &'a Walk<'a>,
    rules: IgnoreRules<'a>,
    levels: Vec<Level>,
    unreadable: usize,
}

impl Walking<'_> {
    fn run(&mut self, visit: &mut dyn FnMut(&Entry<'_>) -> ControlFlow<()>) {
        while let Some(level) = self.levels.last_mut() {
            let Some((name, kind)) = level.entries.next().filter(|_| !(self.walk.is_moot)()) else {
                self.leave();
                continue;
            };
            let path = level.path.join(&name);
            let absolute = self.walk.files.place.root.join(&path);
            if is_never_entered(&name) || self.rules.ignoring(&absolute, kind.is_dir()).is_some() {
                continue;
            }
            let entry = Entry {
                directory: &level.directory,
                name: &name,
                path: &path,
                kind,
            };
            if visit(&entry).is_break() {
                return;
            }
            if kind.is_dir() && self.levels.len() < self.walk.depth {
                self.descend(&name, path);
            }
        }
    }

    /// Enters a subdirectory of the innermost directory, and counts it if it can't be read.
    fn descend(&mut self, name: &OsStr, path: PathBuf) {
        let parent = self.levels.last().filter(|_| self.levels.len() < MAX_DEPTH);
        let opened = parent.and_then(|level| level.directory.open_dir_nofollow(name).ok());
        if opened
            .and_then(|directory| self.enter(directory, path).ok())
            .is_none()
        {
            self.unreadable += 1;
        }
    }

    /// Lists a directory by name.
    fn enter(&mut self, directory: Dir, path: PathBuf) -> std::io::Result<()> {
        let mut entries = Vec::new();
        for entry in directory.entries()? {
            let entry = entry?;
            entries.push((entry.file_name(), entry.file_type()?));
        }
        // The same directory gives the same result each time, whatever the order on disk is.
        entries.sort_unstable_by(|left, right| left.0.cmp(&right.0));
        let names = entries.iter().map(|(name, _)| name.as_os_str());
        let has_rules = self
            .rules
            .enter(&self.walk.files.place.root.join(&path), names);
        self.levels.push(Level {
            directory,
            path,
            entries: entries.into_iter(),
            has_rules,
        });
        Ok(())
    }

    fn leave(&mut self) {
        if self.levels.pop().is_some_and(|level| level.has_rules) {
            self.rules.leave();
        }
    }
}
