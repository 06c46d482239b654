use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
};

use super::{ignored::IgnoreRules, walk::is_never_entered};
use crate::{IgnoreRule, Place};

/// What a walk's rules say of files that links lead to, wherever they are.
///
/// The directories that the walk itself starts in are named, so nothing is asked about them.
pub(super) struct Linked<'a> {
    place: &'a Place,
    /// The canonical directory that the walk starts from.
    base: &'a Path,
    /// The directory of the last such file: links that are side by side tend to lead to one.
    last: Option<Directory<'a>>,
}

struct Directory<'a> {
    path: PathBuf,
    rules: IgnoreRules<'a>,
    /// The rule that ignores all of it.
    ignoring: Option<IgnoreRule>,
}

impl<'a> Linked<'a> {
    pub(super) fn new(base: &'a Path, place: &'a Place) -> Self {
        Self {
            place,
            base,
            last: None,
        }
    }

    /// Returns the name on the way to the file that no walk passes, if there is one.
    pub(super) fn never_entered<'t>(&self, target: &'t Path) -> Option<&'t OsStr> {
        let path = self.beyond_base(target);
        let is_git = path.file_name().filter(|name| *name == ".git");
        path.parent()?
            .iter()
            .find(|name| is_never_entered(name))
            .or(is_git)
    }

    /// Returns the rule that ignores the file, or a directory that it is in.
    pub(super) fn ignoring(&mut self, target: &Path) -> Option<IgnoreRule> {
        let path = target.parent()?;
        let last = match self.last.take().filter(|last| last.path == path) {
            Some(last) => last,
            None => self.read(path),
        };
        let last = self.last.insert(last);
        last.ignoring
            .clone()
            .or_else(|| last.rules.ignoring(target, false))
    }

    fn read(&self, path: &Path) -> Directory<'a> {
        let (rules, ignoring) = IgnoreRules::of_linked(path, self.base, self.place);
        Directory {
            path: path.to_owned(),
            rules,
            ignoring,
        }
    }

    /// Returns the rest of the way to the file, from where it parts from the way to the base.
    fn beyond_base<'t>(&self, target: &'t Path) -> &'t Path {
        let shared = target
            .ancestors()
            .find(|directory| self.base.starts_with(directory));
        shared
            .and_then(|shared| target.strip_prefix(shared).ok())
            .unwrap_or(target)
    }
}
