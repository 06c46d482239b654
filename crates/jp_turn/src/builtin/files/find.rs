//! Follows a path to its place.

use std::{
    collections::VecDeque,
    ffi::{OsStr, OsString},
    io,
    path::PathBuf,
};

use cap_fs_ext::DirExt;
use cap_std::fs::Dir;

use super::{
    Found, Spot, named,
    spot::{shown, special},
};

/// How many links one path may lead through.
const MAX_LINKS: usize = 40;
/// How many directories deep a path may be: each is held open while it is followed.
const MAX_DEPTH: usize = 256;

/// What is done with a link that a path ends in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LastLink {
    Followed,
    Kept,
}

/// A path on its way.
///
/// It goes from directory to directory, each opened from the one before and through no link; what a link says is read
/// and put in its place. `..`, which only links have, goes back to a directory that is open.
pub(super) struct Finding<'a> {
    root: &'a Dir,
    /// Where the root is, for links that are absolute.
    roots: &'a [PathBuf],
    /// What a refusal calls the path.
    text: &'a str,
    last_link: LastLink,
    /// The directories gone through, with their names.
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

    /// Goes to the end; the error is a sentence.
    pub(super) fn run(mut self) -> Result<Spot, String> {
        while let Some(name) = self.pending.pop_front() {
            if name == ".." {
                self.opened.pop().ok_or_else(|| named::outside(self.text))?;
                continue;
            }
            let is_last = self.pending.is_empty();
            match look(self.directory(), &name).map_err(|error| self.failed(&error))? {
                Found::Link if !is_last || self.last_link == LastLink::Followed => {
                    self.follow(&name)?
                }
                Found::Directory(directory) => self.enter(name, directory)?,
                Found::Nothing { .. } => return self.missing(name),
                found if is_last => return self.ended(name, found),
                _ => {
                    let path = shown(&self.path_to(&name));
                    return Err(format!(
                        "{:?} can't be reached: {path} is no directory.",
                        self.text
                    ));
                }
            }
        }
        match self.opened.pop() {
            Some((name, directory)) => self.ended(name, Found::Directory(directory)),
            None => {
                let directory = self.root.try_clone().map_err(|error| self.failed(&error))?;
                self.ended(OsString::new(), Found::Directory(directory))
            }
        }
    }

    fn failed(&self, error: &io::Error) -> String {
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
            .map_err(|error| self.failed(&error))?;
        let (is_absolute, names) =
            named::of_target(&target, self.roots).ok_or_else(|| self.leads_out(name))?;
        let ascends = names.iter().take_while(|name| *name == "..").count();
        if !is_absolute && ascends > self.opened.len() {
            return Err(self.leads_out(name));
        }
        if is_absolute {
            self.opened.clear();
        }
        names
            .into_iter()
            .rev()
            .for_each(|name| self.pending.push_front(name));
        Ok(())
    }

    fn leads_out(&self, link: &OsStr) -> String {
        let link = shown(&self.path_to(link));
        format!(
            "{:?} is refused: the symbolic link {link} leads out of the workspace.",
            self.text
        )
    }

    /// Ends where there is nothing.
    fn missing(mut self, name: OsString) -> Result<Spot, String> {
        let mut above: Vec<_> = std::iter::once(name)
            .chain(std::mem::take(&mut self.pending))
            .collect();
        if above.iter().any(|name| name == "..") {
            return Err(format!(
                "{:?} can't be reached: a symbolic link leads nowhere.",
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
            .map_err(|error| self.failed(&error))?;
        Ok(Spot {
            path,
            found: Found::Nothing { above },
            parent,
            name,
        })
    }

    /// Ends at a name that is there.
    fn ended(self, name: OsString, found: Found) -> Result<Spot, String> {
        let parent = self
            .directory()
            .try_clone()
            .map_err(|error| self.failed(&error))?;
        Ok(Spot {
            path: self.path_to(&name),
            found,
            parent,
            name,
        })
    }
}

/// Looks at a name in a directory; a directory is opened, unless it has become a link by then.
fn look(directory: &Dir, name: &OsStr) -> io::Result<Found> {
    let kind = match directory.symlink_metadata(name) {
        Ok(found) => found.file_type(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(Found::Nothing { above: Vec::new() });
        }
        Err(error) => return Err(error),
    };
    Ok(match special(kind) {
        Some(special) => Found::Special(special),
        None if kind.is_symlink() => Found::Link,
        None if kind.is_dir() => Found::Directory(directory.open_dir_nofollow(name)?),
        None => Found::File,
    })
}
