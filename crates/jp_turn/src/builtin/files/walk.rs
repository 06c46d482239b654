//! Goes through a directory and what is below it.

use std::{
    ffi::{OsStr, OsString},
    ops::ControlFlow,
    path::{Path, PathBuf},
};

use cap_fs_ext::DirExt;
use cap_std::fs::{Dir, FileType};
use jp_attachment::{IgnoreRules, is_never_entered};

use super::{Files, Found, Spot};

/// How deep a walk goes: each directory on the way is held open.
const MAX_DEPTH: usize = 128;

/// A walk through a directory, in the order of names, without what is ignored.
///
/// It goes through no link to a directory and never into `.git`, `.jp` and their like.
pub(crate) struct Walk<'a> {
    pub(crate) files: &'a Files,
    /// How deep it goes; 1 is what the directory itself holds.
    pub(crate) depth: usize,
    /// Whether nobody wants it any more.
    pub(crate) is_moot: &'a dyn Fn() -> bool,
}

/// What a walk finds.
pub(crate) struct Entry<'a> {
    /// Where it is; open.
    pub(crate) directory: &'a Dir,
    pub(crate) name: &'a OsStr,
    /// The path from the root.
    pub(crate) path: &'a Path,
    pub(crate) kind: FileType,
}

/// A directory that is being gone through.
struct Level {
    directory: Dir,
    path: PathBuf,
    entries: std::vec::IntoIter<(OsString, FileType)>,
    has_rules: bool,
}

impl Walk<'_> {
    /// Visits everything below a directory; returns how many directories could not be gone through.
    pub(crate) fn run(
        &self,
        start: &Spot,
        visit: &mut dyn FnMut(&Entry<'_>) -> ControlFlow<()>,
    ) -> Result<usize, String> {
        let path = start.shown();
        let Found::Directory(directory) = &start.found else {
            return Err(match start.found {
                Found::File => format!("{path} is a file and no directory; `read_file` reads it."),
                _ => format!("There is no directory {path}."),
            });
        };
        if let Some(name) = start.path.iter().find(|name| is_never_entered(name)) {
            return Err(format!(
                "{path} is not gone through: {} is left alone.",
                name.to_string_lossy()
            ));
        }
        let failed = |error: std::io::Error| format!("{path} can't be read: {error}.");
        let directory = directory.try_clone().map_err(failed)?;
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
            .map_err(failed)?;
        walking.run(visit);
        Ok(walking.unreadable)
    }
}

/// A walk under way.
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

    /// Goes into a directory of the innermost one; one that can't be read is counted.
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
