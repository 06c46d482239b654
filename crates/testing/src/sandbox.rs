//! A workspace in a temporary directory, and the real binary in it.

use std::{
    ffi::{OsStr, OsString},
    fs,
    io::ErrorKind,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{SystemTime, UNIX_EPOCH},
};

use serde_json::Value;

use crate::{Server, answering, programs};

/// A person's home, with a workspace in it.
pub struct Sandbox {
    /// Removed with the value.
    pub directory: tempfile::TempDir,
    /// The home, below the directory.
    pub home: PathBuf,
    /// The workspace, below the home.
    pub root: PathBuf,
}

/// What a run of the command gave.
#[derive(Debug)]
pub struct Run {
    /// The exit code; -1 if a signal ended it.
    pub code: i32,
    /// What it wrote to stdout.
    pub stdout: String,
    /// What it wrote to stderr.
    pub stderr: String,
}

/// The arguments of a command: one string as a shell splits it, or a list of words.
pub trait Arguments {
    /// Returns the words.
    fn words(self) -> Vec<OsString>;
}

impl Arguments for &str {
    fn words(self) -> Vec<OsString> {
        let words = shlex::split(self).unwrap_or_else(|| panic!("a quote is open: {self}"));
        words.into_iter().map(OsString::from).collect()
    }
}

impl Arguments for &String {
    fn words(self) -> Vec<OsString> {
        self.as_str().words()
    }
}

impl<S: AsRef<OsStr>> Arguments for &[S] {
    fn words(self) -> Vec<OsString> {
        self.iter().map(|word| word.as_ref().to_owned()).collect()
    }
}

impl<S: AsRef<OsStr>, const N: usize> Arguments for &[S; N] {
    fn words(self) -> Vec<OsString> {
        self.as_slice().words()
    }
}

impl<S: AsRef<OsStr>> Arguments for &Vec<S> {
    fn words(self) -> Vec<OsString> {
        self.as_slice().words()
    }
}

/// Makes a temporary directory whose name is ten letters from G to V.
///
/// Paths are in many of the texts that tests search: a random name could hold the `a2` that a test doesn't want to find.
fn make_directory() -> tempfile::TempDir {
    loop {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap()
            .subsec_nanos();
        let digits = format!(
            "{:05x}{:05x}",
            std::process::id() & 0xf_ffff,
            now & 0xf_ffff
        );
        let name: String = digits
            .chars()
            .map(|digit| (b'G' + digit.to_digit(16).unwrap() as u8) as char)
            .collect();
        match tempfile::Builder::new()
            .prefix(&name)
            .rand_bytes(0)
            .tempdir()
        {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            directory => return directory.unwrap(),
        }
    }
}

impl Sandbox {
    /// Makes a home with an empty workspace.
    #[expect(clippy::new_without_default, reason = "it makes directories")]
    pub fn new() -> Self {
        let directory = make_directory();
        let home = directory.path().canonicalize().unwrap().join("jean");
        let root = home.join("work/project");
        fs::create_dir_all(root.join(".jp")).unwrap();
        fs::write(root.join(".jp/.id"), "test\n").unwrap();
        Self {
            directory,
            home,
            root,
        }
    }

    /// Makes a home whose model always answers with these words, and returns the model's server too.
    pub fn with_answer(words: &str) -> (Self, Server) {
        let server = answering(words);
        (Self::new().with_server(&server), server)
    }

    /// Configures the model that `server` plays; whether it takes tools is said, so that the server is not asked.
    pub fn with_server(self, server: &Server) -> Self {
        self.with_url(server.url())
    }

    /// Configures the model at this URL, as [`with_server`](Self::with_server) does.
    pub fn with_url(self, url: &str) -> Self {
        let config = format!(
            "[assistant.model]\nid = \"llamacpp/m\"\n[providers.llm.llamacpp]\nbase_url = \"{url}\"\nmodels.m.tools = true\n"
        );
        self.write(".jp/config.toml", config);
        self
    }

    /// Writes a file of the workspace, or one below the home with `~/`.
    pub fn write(&self, path: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    /// Returns the path of a file of the workspace, or of one below the home with `~/`.
    pub fn path(&self, path: &str) -> PathBuf {
        match path.strip_prefix("~/") {
            Some(below) => self.home.join(below),
            None => self.root.join(path),
        }
    }

    /// Prepares the command with these arguments, in the workspace.
    #[track_caller]
    pub fn command(&self, arguments: impl Arguments) -> Command {
        let mut command = Command::new(programs::binary("jp"));
        command
            .args(arguments.words())
            .current_dir(&self.root)
            .stdin(Stdio::null());
        command
            .env_clear()
            .env("HOME", &self.home)
            .env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command
    }

    /// Runs the command, which may fail.
    #[track_caller]
    pub fn jp(&self, arguments: impl Arguments) -> Run {
        run(self.command(arguments))
    }

    /// Runs the command, which must succeed.
    #[track_caller]
    pub fn run(&self, arguments: impl Arguments) -> Run {
        self.jp(arguments).succeeded()
    }

    /// Runs the command, which must fail with this code and these words on stderr.
    #[track_caller]
    pub fn fail(&self, arguments: impl Arguments, code: i32, words: &[&str]) -> Run {
        self.jp(arguments).failed(code, words)
    }

    /// Runs a command that must succeed, and returns its JSON document.
    #[track_caller]
    pub fn json(&self, arguments: impl Arguments) -> Value {
        let mut command = self.command(arguments);
        command.args(["--format", "json"]);
        let run = run(command).succeeded();
        serde_json::from_str(&run.stdout).unwrap_or_else(|error| panic!("{error}: {}", run.stdout))
    }

    /// Returns the directory of the only conversation.
    pub fn conversation(&self) -> PathBuf {
        let mut entries = fs::read_dir(self.root.join(".jp/conversations")).unwrap();
        let only = entries.next().unwrap().unwrap().path();
        assert!(
            entries.next().is_none(),
            "there is more than one conversation"
        );
        only
    }

    /// Returns the events of the only conversation.
    pub fn events(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.conversation().join("events.json")).unwrap();
        serde_json::from_str(&text).unwrap()
    }

    /// Returns the lines of the cache of file states.
    pub fn file_states(&self) -> Option<String> {
        let text = fs::read_to_string(self.file_states_path()?).unwrap();
        Some(text.split_once('\n')?.1.to_owned())
    }

    /// Makes these the lines of the cache of file states.
    pub fn write_file_states(&self, lines: &str) {
        let checksum = jp_resource::Checksum::compute(lines.as_bytes());
        fs::write(
            self.file_states_path().unwrap(),
            format!("{checksum}\n{lines}"),
        )
        .unwrap();
    }

    fn file_states_path(&self) -> Option<PathBuf> {
        self.files("../../.cache")
            .into_iter()
            .find(|path| path.ends_with("checksums"))
    }

    /// Returns every file below a directory of the workspace, sorted.
    pub fn files(&self, directory: &str) -> Vec<PathBuf> {
        let mut files = Vec::new();
        let mut pending = vec![self.path(directory)];
        while let Some(directory) = pending.pop() {
            for entry in fs::read_dir(directory).into_iter().flatten() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    pending.push(path)
                } else {
                    files.push(path)
                }
            }
        }
        files.sort();
        files
    }
}

/// Runs a command to its end.
pub fn run(mut command: Command) -> Run {
    let output = command.output().unwrap();
    Run {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

impl Run {
    /// Checks that the run succeeded.
    #[track_caller]
    pub fn succeeded(self) -> Self {
        assert_eq!(
            self.code, 0,
            "stdout: {}\nstderr: {}",
            self.stdout, self.stderr
        );
        self
    }

    /// Checks that the run failed with this code and these words on stderr.
    #[track_caller]
    pub fn failed(self, code: i32, words: &[&str]) -> Self {
        assert_eq!(
            self.code, code,
            "stdout: {}\nstderr: {}",
            self.stdout, self.stderr
        );
        for words in words {
            assert!(
                self.stderr.contains(words),
                "{words:?} is not in {}",
                self.stderr
            );
        }
        self
    }
}

/// Returns whether the test runs as root, whom permissions do not bind.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Returns a path as text.
pub fn shown(path: &Path) -> String {
    path.display().to_string()
}

/// Says why a test does not check what its name says.
#[expect(clippy::print_stderr, reason = "a skipped test says why")]
pub fn skip(reason: &str) {
    eprintln!("skipped: {reason}");
}
