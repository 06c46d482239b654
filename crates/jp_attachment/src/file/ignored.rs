use std::{
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
};

use ignore::{
    Match,
    gitignore::{Gitignore, GitignoreBuilder},
};

use crate::{IgnoreRule, Place};

/// The longest ignore file that is read, in bytes.
const MAX_BYTES: u64 = 10_000_000;

/// The kinds of ignore files, the first with a matching rule deciding.
const FILES: [&str; 3] = [".jpignore", ".ignore", ".gitignore"];

/// The ignore files of a directory and the directories it is in.
pub struct IgnoreRules<'a> {
    place: &'a Place,
    levels: Vec<Level>,
}

/// The rules of one directory: those of [`FILES`], then those of `.git/info/exclude`.
type Level = [Gitignore; FILES.len() + 1];

impl<'a> IgnoreRules<'a> {
    /// Reads the rules of the directories that `directory` is in, from the root of the repository or of
    /// the workspace on. Also returns the rule that ignores `directory` itself, if one does.
    pub fn above(directory: &Path, place: &'a Place) -> (Self, Option<IgnoreRule>) {
        Self::beyond(Path::new(""), directory, place)
    }

    /// Reads the rules for the files of `directory`, where a link led out of what is below `walked`. Also
    /// returns the rule that ignores one of the directories it is in which `walked` is not in.
    pub(super) fn of_linked(
        directory: &Path,
        walked: &Path,
        place: &'a Place,
    ) -> (Self, Option<IgnoreRule>) {
        let (mut rules, ignoring) = Self::beyond(walked, directory, place);
        rules.enter(directory, FILES.iter().chain(&[".git"]).map(OsStr::new));
        (rules, ignoring)
    }

    /// Returns the rule that ignores the file at `path`, or a directory of the workspace that it is in. The file may not be
    /// there.
    pub fn of_file(path: &Path, place: &Place) -> Option<IgnoreRule> {
        let (rules, ignoring) = IgnoreRules::of_linked(path.parent()?, &place.root, place);
        ignoring.or_else(|| rules.ignoring(path, false))
    }

    /// Does what [`Self::above`] does, and asks no rule about the directories that `known` is in.
    fn beyond(known: &Path, directory: &Path, place: &'a Place) -> (Self, Option<IgnoreRule>) {
        let mut rules = Self {
            place,
            levels: Vec::new(),
        };
        let top = top(directory, place);
        let mut path: Vec<&Path> = directory
            .ancestors()
            .take_while(|parent| parent.starts_with(&top))
            .collect();
        path.reverse();
        let mut ignoring = None;
        for step in path.windows(2) {
            rules.levels.extend(load(step[0], |_| true));
            let is_asked = ignoring.is_none() && !known.starts_with(step[1]);
            ignoring = if is_asked {
                rules.ignoring(step[1], true)
            } else {
                ignoring
            };
        }
        (rules, ignoring)
    }

    /// Returns the files whose rules count for what is in a directory, whether they are there or not.
    pub(super) fn files(directory: &Path, place: &Place) -> Vec<PathBuf> {
        let top = top(directory, place);
        directory
            .ancestors()
            .take_while(|parent| parent.starts_with(&top))
            .flat_map(Self::names)
            .collect()
    }

    /// Returns the files that a directory's own rules are in, whether they are there or not.
    pub(super) fn names(directory: &Path) -> Vec<PathBuf> {
        let exclude = exclude_file(directory);
        FILES
            .iter()
            .map(|name| directory.join(name))
            .chain(exclude)
            .collect()
    }

    /// Reads the rules of `directory`, whose entries have the given names; returns whether there are any.
    pub fn enter<'n>(&mut self, directory: &Path, names: impl Iterator<Item = &'n OsStr>) -> bool {
        let names: Vec<&OsStr> = names
            .filter(|name| FILES.iter().chain(&[".git"]).any(|file| file == name))
            .collect();
        let level = if names.is_empty() {
            None
        } else {
            load(directory, |file| names.contains(&OsStr::new(file)))
        };
        let is_some = level.is_some();
        self.levels.extend(level);
        is_some
    }

    /// Forgets the rules of the directory entered last that had any.
    pub fn leave(&mut self) {
        self.levels.pop();
    }

    /// Returns the rule that ignores `path`: of the first kind of file that has a matching rule, the one
    /// of the innermost directory.
    pub fn ignoring(&self, path: &Path, is_directory: bool) -> Option<IgnoreRule> {
        for kind in 0..=FILES.len() {
            for level in self.levels.iter().rev() {
                match level[kind].matched(path, is_directory) {
                    Match::None => {}
                    Match::Whitelist(_) => return None,
                    Match::Ignore(glob) => {
                        let file = glob.from().unwrap_or(Path::new(""));
                        let pattern = glob.original().to_owned();
                        return Some(IgnoreRule {
                            file: self.place.shown(file),
                            pattern,
                        });
                    }
                }
            }
        }
        None
    }
}

/// Returns the outermost directory whose rules count for `directory`.
///
/// That is the workspace root or, further out, the root of the repository that the workspace is in; else
/// the root of `directory`'s repository. A repository that is the home directory does not count: it keeps
/// configuration files and tends to ignore everything else.
fn top(directory: &Path, place: &Place) -> PathBuf {
    let start = if directory.starts_with(&place.root) {
        &place.root
    } else {
        directory
    };
    let below_home = |path: &&Path| place.home.as_deref() != Some(path);
    let repository = start
        .ancestors()
        .take_while(below_home)
        .find(|path| path.join(".git").exists());
    repository.unwrap_or(start).to_owned()
}

/// Reads the ignore files of `directory` that `has` says it has.
fn load(directory: &Path, has: impl Fn(&str) -> bool) -> Option<Level> {
    let file = |name: &str| has(name).then(|| directory.join(name));
    let exclude = || {
        if has(".git") {
            exclude_file(directory)
        } else {
            None
        }
    };
    let level = [file(FILES[0]), file(FILES[1]), file(FILES[2]), exclude()]
        .map(|file| file.map_or_else(Gitignore::empty, |file| read(directory, &file)));
    level.iter().any(|rules| !rules.is_empty()).then_some(level)
}

/// Reads an ignore file; lines that are malformed count for nothing, as git has it.
fn read(directory: &Path, file: &Path) -> Gitignore {
    let is_readable =
        fs::metadata(file).is_ok_and(|found| found.is_file() && found.len() <= MAX_BYTES);
    if !is_readable {
        return Gitignore::empty();
    }
    let mut builder = GitignoreBuilder::new(directory);
    builder.add(file);
    builder.build().unwrap_or_else(|_| Gitignore::empty())
}

/// Returns the exclude file of the repository at `directory`, a linked worktree's too
/// (gitrepository-layout(5)).
fn exclude_file(directory: &Path) -> Option<PathBuf> {
    let git = directory.join(".git");
    let metadata = fs::metadata(&git).ok()?;
    if metadata.is_dir() {
        return Some(git.join("info/exclude"));
    }
    let is_link = metadata.is_file() && metadata.len() <= MAX_BYTES;
    let link = if is_link {
        fs::read_to_string(git).ok()?
    } else {
        return None;
    };
    let worktree = directory.join(link.strip_prefix("gitdir:")?.trim());
    let common = fs::read_to_string(worktree.join("commondir"));
    Some(
        common
            .map_or(worktree.clone(), |common| worktree.join(common.trim()))
            .join("info/exclude"),
    )
}
