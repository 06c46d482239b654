//! Follows a path to its place in the workspace.

use std::{
    collections::VecDeque,
    ffi::{OsStr, OsString},
    io,
    path::PathBuf,
};

use cap_fs_ext::DirExt;
use cap_std::fs::Dir;

use super::{
    Found, Spot, path_names,
    spot::{display_path, special_kind},
};

/// The maximum number of links in a path: the limit of Linux (path_resolution(7)), which also ends
/// cycles.
const MAX_LINKS: usize = 40;
/// The maximum depth of a path in directories. Each directory stays open while the path is
/// followed, and a process may have only some hundred files open.
const MAX_DEPTH: usize = 256;

/// The treatment of a link at the end of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LastLink {
    Followed,
    Kept,
}

/// A path while it is followed.
///
/// Each directory is opened from the one before, and never through a link. The target of a link is
/// read and put in its place. `..` occurs only in targets of links, and goes back to a directory
/// that is open.
pub(super) struct Finding<'a> {
    root: &'a Dir,
    /// The paths of the root, for absolute links.
    roots: &'a [PathBuf],
    /// The path for errors.
    text: &'a str,
    last_link: LastLink,
    /// The directories on the way, with their names.
    opened: Vec<(OsString, Dir)>,
    pending: VecDeque<OsString>,
    links: usize,
}

impl<'a> Finding<'a> {
    pub(super) fn new(
        root: &'a Dir,
        roots: &'a [PathBuf],
        names: Vec<OsString>,
        last_link: LastLink,
        text: &'a str,
    ) -> Self {
        Self {
            root,
            roots,
            text,
            last_link,
            opened: Vec::new(),
            pending: names.into(),
            links: 0,
        }
    }

    /// Follows the path to its end. The error is a sentence for the model.
    pub(super) fn run(mut self) -> Result<Spot, String> {
        while let Some(name) = self.pending.pop_front() {
            if name == ".." {
                self.opened
                    .pop()
                    .ok_or_else(|| path_names::refuse_outside(self.text))?;
                continue;
            }
            let is_last = self.pending.is_empty();
            match look(self.directory(), &name).map_err(|error| self.describe_error(&error))? {
                Found::Link if !is_last || self.last_link == LastLink::Followed => {
                    self.follow(&name)?
                }
                Found::Directory(directory) => self.enter(name, directory)?,
                Found::Nothing { .. } => return self.finish_missing(name),
                found if is_last => return self.finish(name, found),
                _ => {
                    let path = display_path(&self.path_to(&name));
                    return Err(format!(
                        "{:?} can't be reached: {path} is not a directory.",
                        self.text
                    ));
                }
            }
        }
        match self.opened.pop() {
            Some((name, directory)) => self.finish(name, Found::Directory(directory)),
            None => {
                let directory = self
                    .root
                    .try_clone()
                    .map_err(|error| self.describe_error(&error))?;
                self.finish(OsString::new(), Found::Directory(directory))
            }
        }
    }

    fn describe_error(&self, error: &io::Error) -> String {
        format!("{:?} can't be reached: {error}.", self.text)
    }

    fn directory(&self) -> &Dir {
        self.opened
            .last()
            .map_or(self.root, |(_, directory)| directory)
    }

    fn path_to(&self, name: &OsStr) -> PathBuf {
        self.opened
            .iter()
            .map(|(name, _)| name.as_os_str())
            .chain([name])
            .collect()
    }

    fn enter(&mut self, name: OsString, directory: Dir) -> Result<(), String> {
        self.check_depth(self.opened.len() + 1)?;
        self.opened.push((name, directory));
        Ok(())
    }

    fn check_depth(&self, depth: usize) -> Result<(), String> {
        match depth > MAX_DEPTH {
            true => Err(format!(
                "{:?} is more than {MAX_DEPTH} directories deep.",
                self.text
            )),
            false => Ok(()),
        }
    }

    /// Puts a link's target in its place.
    fn follow(&mut self, name: &OsStr) -> Result<(), String> {
        self.links += 1;
        if self.links > MAX_LINKS {
            return Err(format!(
                "{:?} leads through more than {MAX_LINKS} symbolic links.",
                self.text
            ));
        }
        let target = self
            .directory()
            .read_link_contents(name)
            .map_err(|error| self.describe_error(&error))?;
        let (is_absolute, names) =
            path_names::read_target(&target, self.roots).ok_or_else(|| self.refuse_link(name))?;
        let ascends = names.iter().take_while(|name| *name == "..").count();
        if !is_absolute && ascends > self.opened.len() {
            return Err(self.refuse_link(name));
        }
        if is_absolute {
            // An absolute target inside the workspace starts again at the root.
            self.opened.clear();
        }
        names
            .into_iter()
            .rev()
            .for_each(|name| self.pending.push_front(name));
        Ok(())
    }

    fn refuse_link(&self, link: &OsStr) -> String {
        let link = display_path(&self.path_to(link));
        format!(
            "{:?} is refused: the symbolic link {link} points outside the workspace.",
            self.text
        )
    }

    /// Ends at a name that does not exist.
    fn finish_missing(mut self, name: OsString) -> Result<Spot, String> {
        let mut above: Vec<_> = std::iter::once(name)
            .chain(std::mem::take(&mut self.pending))
            .collect();
        if above.iter().any(|name| name == "..") {
            return Err(format!(
                "{:?} can't be reached: a symbolic link is broken.",
                self.text
            ));
        }
        self.check_depth(self.opened.len() + above.len())?;
        let path = self
            .opened
            .iter()
            .map(|(name, _)| name)
            .chain(&above)
            .collect();
        let name = above.pop().expect("one name at least is missing");
        let parent = self
            .directory()
            .try_clone()
            .map_err(|error| self.describe_error(&error))?;
        Ok(Spot {
            path,
            found: Found::Nothing { above },
            parent,
            name,
        })
    }

    /// Ends at a name that exists.
    fn finish(self, name: OsString, found: Found) -> Result<Spot, String> {
        let parent = self
            .directory()
            .try_clone()
            .map_err(|error| self.describe_error(&error))?;
        Ok(Spot {
            path: self.path_to(&name),
            found,
            parent,
            name,
        })
    }
}

/// Looks up a name in a directory. A directory is opened, unless it was replaced by a link
/// meanwhile.
fn look(directory: &Dir, name: &OsStr) -> io::Result<Found> {
    let kind = match directory.symlink_metadata(name) {
        Ok(found) => found.file_type(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(Found::Nothing { above: Vec::new() });
        }
        Err(error) => return Err(error),
    };
    Ok(match special_kind(kind) {
        Some(special) => Found::Special(special),
        None if kind.is_symlink() => Found::Link,
        None if kind.is_dir() => Found::Directory(directory.open_dir_nofollow(name)?),
        None => Found::File,
    })
}
