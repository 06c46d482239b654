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

/// Directories that no walk enters, because they belong to version control systems or jp. They can
/// be attached by name.
const NEVER_ENTERED: [&str; 5] = [".git", ".hg", ".jj", ".jp", ".svn"];

/// The longest ignore file that is read, in bytes. A real one is far shorter; this protects the
/// memory.
const MAX_BYTES: u64 = 10_000_000;

/// The kinds of ignore files. The first kind with a matching rule decides.
const FILES: [&str; 3] = [".jpignore", ".ignore", ".gitignore"];

/// The ignore rules of a directory and of the directories that it is in.
pub struct IgnoreRules<'a> {
    place: &'a Place,
    levels: Vec<RuleSet>,
}

/// The rules of one directory: those of [`FILES`], then those of `.git/info/exclude`.
type RuleSet = [Gitignore; FILES.len() + 1];

impl<'a> IgnoreRules<'a> {
    /// Reads the rules of the directories that `directory` is in, from the root of the repository
    /// or workspace on. Also returns the rule that ignores `directory` itself, if one does.
    pub fn above(directory: &Path, place: &'a Place) -> (Self, Option<IgnoreRule>) {
        Self::read_above(Path::new(""), directory, place)
    }

    /// Reads the rules for the files of `directory`, which a link leads to from a walk of `walked`.
    /// Also returns the rule that ignores `directory`, or a directory that it is in but `walked` is
    /// not.
    pub(super) fn for_link_target(
        directory: &Path,
        walked: &Path,
        place: &'a Place,
    ) -> (Self, Option<IgnoreRule>) {
        let (mut rules, ignoring) = Self::read_above(walked, directory, place);
        rules.enter(directory, FILES.iter().chain(&[".git"]).map(OsStr::new));
        (rules, ignoring)
    }

    /// Returns the rule that ignores the file at `path`, or a directory of the workspace that it is
    /// in. The file need not exist.
    pub fn rule_for_file(path: &Path, place: &Place) -> Option<IgnoreRule> {
        let (rules, ignoring) = IgnoreRules::for_link_target(path.parent()?, &place.root, place);
        ignoring.or_else(|| rules.ignoring(path, false))
    }

    /// Does the same as [`Self::above`], but applies no rule to the directories that `known` is in.
    fn read_above(known: &Path, directory: &Path, place: &'a Place) -> (Self, Option<IgnoreRule>) {
        let mut rules = Self {
            place,
            levels: Vec::new(),
        };
        let top = outermost(directory, place);
        let mut path: Vec<&Path> = directory
            .ancestors()
            .take_while(|parent| parent.starts_with(&top))
            .collect();
        path.reverse();
        let mut ignoring = None;
        for step in path.windows(2) {
            rules.levels.extend(load(step[0], |_| true));
            if ignoring.is_none() && !known.starts_with(step[1]) {
                ignoring = rules.ignoring(step[1], true);
            }
        }
        (rules, ignoring)
    }

    /// Returns the files whose rules apply in a directory, whether they exist or not.
    pub(super) fn files(directory: &Path, place: &Place) -> Vec<PathBuf> {
        let top = outermost(directory, place);
        directory
            .ancestors()
            .take_while(|parent| parent.starts_with(&top))
            .flat_map(Self::own_files)
            .collect()
    }

    /// Returns the files of a directory's own rules, whether they exist or not.
    pub(super) fn own_files(directory: &Path) -> Vec<PathBuf> {
        FILES
            .iter()
            .map(|name| directory.join(name))
            .chain(exclude_file(directory))
            .collect()
    }

    /// Reads the rules of `directory`, whose entries have the given names. Returns whether it has
    /// any rules, so that [`leave`](Self::leave) must follow.
    pub fn enter<'n>(&mut self, directory: &Path, names: impl Iterator<Item = &'n OsStr>) -> bool {
        let names: Vec<&OsStr> = names
            .filter(|name| FILES.iter().chain(&[".git"]).any(|file| file == name))
            .collect();
        let rules = if names.is_empty() {
            None
        } else {
            load(directory, |file| names.contains(&OsStr::new(file)))
        };
        let has_rules = rules.is_some();
        self.levels.extend(rules);
        has_rules
    }

    /// Drops the rules of the innermost directory that has any.
    pub fn leave(&mut self) {
        self.levels.pop();
    }

    /// Returns the rule that ignores `path`. Of the first kind of ignore file with a matching rule,
    /// the innermost directory decides.
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
                            file: self.place.display_path(file),
                            pattern,
                        });
                    }
                }
            }
        }
        None
    }
}

/// Returns whether no walk enters a directory of this name, because it belongs to a version control
/// system or jp.
#[must_use]
pub fn is_never_entered(name: &OsStr) -> bool {
    NEVER_ENTERED.iter().any(|never| *never == name)
}

/// Returns the outermost directory whose rules apply in `directory`.
///
/// Inside the workspace that is the root of the workspace or of the repository that it is in.
/// Outside it is the root of `directory`'s repository. The home directory does not count as a
/// repository: people keep configuration files in one, which ignores everything else.
fn outermost(directory: &Path, place: &Place) -> PathBuf {
    let start = if directory.starts_with(&place.root) {
        &place.root
    } else {
        directory
    };
    let repository = start
        .ancestors()
        .take_while(|path| place.home.as_deref() != Some(path))
        .find(|path| path.join(".git").exists());
    repository.unwrap_or(start).to_owned()
}

/// Reads the ignore files of `directory`. `has` returns whether an entry of this name exists.
fn load(directory: &Path, has: impl Fn(&str) -> bool) -> Option<RuleSet> {
    let files = FILES.map(|name| has(name).then(|| directory.join(name)));
    let exclude = has(".git").then(|| exclude_file(directory)).flatten();
    let [jpignore, ignore, gitignore] = files;
    let rules = [jpignore, ignore, gitignore, exclude]
        .map(|file| file.map_or_else(Gitignore::empty, |file| read(directory, &file)));
    rules.iter().any(|rules| !rules.is_empty()).then_some(rules)
}

/// Reads an ignore file. Malformed lines are ignored, as in git. An unreadable file has no rules.
fn read(directory: &Path, file: &Path) -> Gitignore {
    // Reading a pipe would block.
    let is_readable =
        fs::metadata(file).is_ok_and(|found| found.is_file() && found.len() <= MAX_BYTES);
    if !is_readable {
        return Gitignore::empty();
    }
    let mut builder = GitignoreBuilder::new(directory);
    builder.add(file);
    builder.build().unwrap_or_else(|_| Gitignore::empty())
}

/// Returns the exclude file of the repository at `directory`, which may be a linked worktree
/// (gitrepository-layout(5)).
fn exclude_file(directory: &Path) -> Option<PathBuf> {
    let git = directory.join(".git");
    let metadata = fs::metadata(&git).ok()?;
    if metadata.is_dir() {
        return Some(git.join("info/exclude"));
    }
    if !metadata.is_file() || metadata.len() > MAX_BYTES {
        return None;
    }
    // A linked worktree: `.git` has the path of its directory, whose `commondir` leads to the
    // repository.
    let link = fs::read_to_string(git).ok()?;
    let worktree = directory.join(link.strip_prefix("gitdir:")?.trim());
    let common = fs::read_to_string(worktree.join("commondir"));
    Some(
        common
            .map_or(worktree.clone(), |common| worktree.join(common.trim()))
            .join("info/exclude"),
    )
}
