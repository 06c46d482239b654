use std::{
    collections::BTreeSet,
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

use jp_resource::Checksum;

/// Stores the declarations that the user made or approved in this checkout.
///
/// It is outside the history and the workspace's configuration, because both can come from a stranger.
/// It contains only checksums, because a command line may contain secrets.
#[derive(Debug, Clone)]
pub struct Trust {
    path: PathBuf,
}

impl Trust {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// Returns the path of the file, which may not exist. The file changes when a declaration is added.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns true if the user made or approved a declaration. If the file can't be read, nothing
    /// counts as approved.
    #[must_use]
    pub fn contains(&self, declaration: &str) -> bool {
        let checksum = Checksum::compute(declaration.as_bytes()).to_string();
        self.text()
            .is_ok_and(|text| text.lines().any(|known| known == checksum))
    }

    /// Adds declarations. Other processes may add some at the same time.
    ///
    /// # Errors
    ///
    /// Fails if the file can't be read or written.
    pub fn add<'d>(&self, declarations: impl IntoIterator<Item = &'d str>) -> io::Result<()> {
        let mut checksums = declarations
            .into_iter()
            .map(|one| Checksum::compute(one.as_bytes()).to_string())
            .peekable();
        if checksums.peek().is_none() {
            return Ok(());
        }
        let text = self.text()?;
        let mut known: BTreeSet<String> = text.lines().map(str::to_owned).collect();
        let new: String = checksums
            .filter(|one| known.insert(one.clone()))
            .map(|one| format!("{one}\n"))
            .collect();
        if new.is_empty() {
            return Ok(());
        }
        // A crash may have cut off the last line. Without a newline, the first new line would be lost
        // with it.
        let is_cut = !text.is_empty() && !text.ends_with('\n');
        let new = if is_cut { format!("\n{new}") } else { new };
        if let Some(directory) = self.path.parent() {
            fs::create_dir_all(directory)?;
        }
        let mut file = fs::OpenOptions::new()
            .append(true)
            .create(true)
            .open(&self.path)?;
        file.write_all(new.as_bytes())
    }

    fn text(&self) -> io::Result<String> {
        match fs::read_to_string(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
            text => text,
        }
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

    #[test]
    fn concurrent_approvals_are_all_kept() {
        let directory = tempfile::tempdir().unwrap();
        let trust = Trust::new(directory.path().join("trusted"));
        let names: Vec<String> = (0..50).map(|number| format!("cmd://{number}")).collect();
        std::thread::scope(|scope| {
            for name in &names {
                scope.spawn(|| trust.add([&**name, "cmd://all"]).unwrap());
            }
        });
        assert!(names.iter().all(|name| trust.contains(name)));
        fs::write(trust.path(), "ab").unwrap();
        trust.add(["cmd://all"]).unwrap();
        assert!(
            trust.contains("cmd://all"),
            "a line that was cut off stays alone"
        );
        fs::write(trust.path(), b"\xff\n").unwrap();
        assert!(!trust.contains("cmd://all") && trust.add(["cmd://all"]).is_err());
        assert_eq!(fs::read(trust.path()).unwrap(), b"\xff\n");
        assert!(trust.add([]).is_ok(), "there is nothing to remember");
    }
}
