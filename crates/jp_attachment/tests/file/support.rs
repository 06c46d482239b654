//! A workspace in a temporary directory, with a store that remembers files.

use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use jp_attachment::{
    AttachError, Context, Declared, MemoryStore, Place, Resolved, Unavailable, canonical_path,
    parse_input, resolve,
};
use jp_resource::BlobRef;
use tempfile::TempDir;

pub(crate) struct World {
    _directory: TempDir,
    pub(crate) outer: PathBuf,
    pub(crate) root: PathBuf,
    pub(crate) place: Place,
    pub(crate) store: MemoryStore,
}

impl World {
    /// Creates a workspace of files that contain their names. A name may start with `../`.
    pub(crate) fn new(files: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let outer = canonical_path(directory.path()).unwrap();
        let root = outer.join("workspace");
        fs::create_dir(&root).unwrap();
        let place = Place {
            home: Some(outer.join("home")),
            ..Place::new(&root)
        };
        let world = Self {
            _directory: directory,
            outer,
            root,
            place,
            store: MemoryStore::default(),
        };
        for file in files {
            world.write(file, file);
        }
        world
    }

    pub(crate) fn write(&self, file: &str, content: impl AsRef<[u8]>) {
        let path = self.root.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub(crate) fn context(&self) -> Context<'_> {
        Context::new(
            &self.place,
            &self.store,
            SystemTime::now() + Duration::from_secs(10),
        )
    }

    /// Returns a context that tolerates unavailable files.
    pub(crate) fn skipping(&self) -> Context<'_> {
        Context {
            unavailable: Unavailable::Skip,
            ..self.context()
        }
    }

    pub(crate) fn declare(&self, inputs: &[&str]) -> Result<Vec<Declared>, AttachError> {
        inputs
            .iter()
            .map(|input| parse_input(input, &self.place))
            .collect()
    }

    pub(crate) fn attach(&self, inputs: &[&str]) -> Result<Resolved, AttachError> {
        resolve(&self.declare(inputs)?, &self.context())
    }

    /// Attaches the inputs and returns the names of the resources.
    pub(crate) fn names(&self, inputs: &[&str]) -> Vec<String> {
        let resolved = self
            .attach(inputs)
            .unwrap_or_else(|error| panic!("{inputs:?}: {error}"));
        names(&resolved)
    }

    /// Attaches the inputs, which fails, and returns the message without the path of the temporary
    /// directory.
    pub(crate) fn error(&self, inputs: &[&str]) -> String {
        self.shorten(&self.attach(inputs).unwrap_err().to_string())
    }

    pub(crate) fn shorten(&self, text: &str) -> String {
        text.replace(self.outer.to_str().unwrap(), "OUTER")
    }

    pub(crate) fn notices(&self, resolved: &Resolved) -> Vec<String> {
        resolved
            .notices
            .iter()
            .map(|notice| self.shorten(&notice.to_string()))
            .collect()
    }

    pub(crate) fn text(&self, blob: &BlobRef) -> String {
        self.store.get(blob).unwrap().as_text().unwrap().to_owned()
    }
}

pub(crate) fn names(resolved: &Resolved) -> Vec<String> {
    resolved
        .resources
        .iter()
        .map(|resource| resource.name.clone().unwrap())
        .collect()
}

pub(crate) fn link(target: impl AsRef<Path>, link: impl AsRef<Path>) {
    std::os::unix::fs::symlink(target, link).unwrap();
}

pub(crate) fn pipe(path: &Path) {
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mkfifoat(rustix::fs::CWD, path, mode).unwrap();
}
