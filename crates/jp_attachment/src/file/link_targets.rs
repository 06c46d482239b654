use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
};

use super::ignore_rules::{IgnoreRules, is_never_entered};
use crate::{IgnoreRule, Place};

/// Applies the rules of a walk to the files that links lead to, wherever they are.
///
/// The rules do not apply to the directories that the walk starts in, because the user named them.
pub(super) struct LinkTargets<'a> {
    place: &'a Place,
    /// The canonical directory that the walk starts from.
    base: &'a Path,
    /// The directory of the last target. Links of one directory often lead to one directory.
    last: Option<TargetDirectory<'a>>,
}

struct TargetDirectory<'a> {
    path: PathBuf,
    rules: IgnoreRules<'a>,
    /// The rule that ignores the directory, if one does.
    ignoring: Option<IgnoreRule>,
}

impl<'a> LinkTargets<'a> {
    pub(super) fn new(base: &'a Path, place: &'a Place) -> Self {
        Self {
            place,
            base,
            last: None,
        }
    }

    /// Returns the directory on the way to the file that no walk enters, if there is one.
    pub(super) fn never_entered<'t>(&self, target: &'t Path) -> Option<&'t OsStr> {
        let path = self.beyond_base(target);
        let is_git = path.file_name().filter(|name| *name == ".git");
        path.parent()?
            .iter()
            .find(|name| is_never_entered(name))
            .or(is_git)
    }

    /// Returns the rule that ignores the file or a directory that it is in.
    pub(super) fn ignoring(&mut self, target: &Path) -> Option<IgnoreRule> {
        let path = target.parent()?;
        let last = match self.last.take().filter(|last| last.path == path) {
            Some(last) => last,
            None => self.read_rules(path),
        };
        let last = self.last.insert(last);
        last.ignoring
            .clone()
            .or_else(|| last.rules.ignoring(target, false))
    }

    fn read_rules(&self, path: &Path) -> TargetDirectory<'a> {
        let (rules, ignoring) = IgnoreRules::for_link_target(path, self.base, self.place);
        TargetDirectory {
            path: path.to_owned(),
            rules,
            ignoring,
        }
    }

    /// Returns the path of the file below the innermost directory that it shares with the base.
    fn beyond_base<'t>(&self, target: &'t Path) -> &'t Path {
        let shared = target
            .ancestors()
            .find(|directory| self.base.starts_with(directory));
        shared
            .and_then(|shared| target.strip_prefix(shared).ok())
            .unwrap_or(target)
    }
}
