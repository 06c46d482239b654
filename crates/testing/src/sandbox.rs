//! A workspace in a temporary directory, and the real binary in it.

use std::{
    ffi::{OsStr, OsString},
    fs,
    io::ErrorKind,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    time::{SystemTime, UNIX_EPOCH},
};

use serde_json::{Value, json};

use crate::{Reply, Server, Terminal, answering, assert_contains, playing, programs};

/// A person's home, with a workspace in it.
pub struct Sandbox {
    /// Removed with the value.
    pub directory: tempfile::TempDir,
    /// The home, below the directory.
    pub home: PathBuf,
    /// The workspace, below the home.
    pub root: PathBuf,
}

/// The outcome of a run of the command.
#[derive(Debug)]
pub struct Run {
    /// The exit code; -1 if a signal ended it.
    pub code: i32,
    /// Its stdout.
    pub stdout: String,
    /// Its stderr.
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
        Self::with_model(answering(words))
    }

    /// Makes a home whose model gives each of these replies once, and the last for ever.
    pub fn with_replies(replies: Vec<Reply>) -> (Self, Server) {
        Self::with_model(playing(replies))
    }

    /// Makes a home whose model `server` plays, and returns both.
    pub fn with_model(server: Server) -> (Self, Server) {
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

    /// Writes the user's own configuration.
    pub fn configure(&self, config: impl AsRef<[u8]>) {
        self.write("~/.config/jp/config.toml", config);
    }

    /// Adds to the end of the workspace's configuration.
    pub fn append_config(&self, config: impl AsRef<str>) {
        let before = self.read(".jp/config.toml");
        self.write(".jp/config.toml", before + config.as_ref());
    }

    /// Adds a line to the start of the workspace's configuration, before its tables.
    pub fn prepend_config(&self, line: impl AsRef<str>) {
        let after = self.read(".jp/config.toml");
        self.write(".jp/config.toml", format!("{}\n{after}", line.as_ref()));
    }

    /// Writes an executable file.
    pub fn write_program(&self, path: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.write(path, content);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    /// Reads a text file.
    #[track_caller]
    pub fn read(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).unwrap()
    }

    /// Makes a symbolic link to `target`.
    #[track_caller]
    pub fn link(&self, target: impl AsRef<Path>, path: &str) {
        symlink(target, self.path(path)).unwrap();
    }

    /// Makes a named pipe.
    #[track_caller]
    pub fn make_fifo(&self, path: &str) -> PathBuf {
        let path = self.path(path);
        let status = Command::new("mkfifo").arg(&path).status().unwrap();
        assert!(status.success(), "mkfifo failed");
        path
    }

    /// Returns the `file:` URI of a file of the workspace.
    pub fn uri(&self, path: &str) -> String {
        format!("file://{}/{path}", self.root.display())
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

    /// Runs the command, which must fail with this code.
    #[track_caller]
    pub fn fail(&self, arguments: impl Arguments, code: i32) -> Run {
        self.jp(arguments).failed(code)
    }

    /// Runs the command at a terminal.
    #[track_caller]
    pub fn terminal(&self, arguments: impl Arguments) -> Terminal {
        Terminal::run(self.command(arguments))
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

    /// Returns the identifier of the only conversation.
    pub fn id(&self) -> String {
        conversation_id(&self.conversation())
    }

    /// Returns the path of the events of the only conversation.
    pub fn events_path(&self) -> PathBuf {
        self.conversation().join("events.json")
    }

    /// Returns the events of the only conversation.
    pub fn events(&self) -> Vec<Value> {
        serde_json::from_str(&fs::read_to_string(self.events_path()).unwrap()).unwrap()
    }

    /// Returns the events of this type.
    pub fn events_of(&self, kind: &str) -> Vec<Value> {
        let mut events = self.events();
        events.retain(|event| event["type"] == kind);
        events
    }

    /// Returns whether there is an event of this type.
    pub fn has_event(&self, kind: &str) -> bool {
        !self.events_of(kind).is_empty()
    }

    /// Gives all events of the only conversation a time that is long ago.
    pub fn age_events(&self) {
        let mut events = self.events();
        for event in &mut events {
            event["timestamp"] = json!("2026-01-02T03:04:05Z");
        }
        self.write_events(&events);
    }

    /// Makes these the events of the only conversation.
    pub fn write_events(&self, events: &[Value]) {
        fs::write(self.events_path(), json!(events).to_string()).unwrap();
    }

    /// Writes a change of the configuration before the events, as if a history had come with it.
    pub fn prepend_delta(&self, delta: &Value) {
        let time = "2026-11-21T12:00:00Z";
        self.prepend_event(&json!({"timestamp": time, "type": "config_delta", "delta": delta}));
    }

    /// Writes an event before the others, and leaves their bytes as they are.
    pub fn prepend_event(&self, event: &Value) {
        let events = fs::read_to_string(self.events_path()).unwrap();
        let events = events.replacen("[\n", &format!("[\n{event},\n"), 1);
        fs::write(self.events_path(), events).unwrap();
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

/// Returns the identifier of the conversation in this directory.
pub fn conversation_id(directory: &Path) -> String {
    let name = directory.file_name().unwrap().to_str().unwrap();
    name.split('-').next().unwrap().to_owned()
}

/// Runs a command to its end.
pub fn run(mut command: Command) -> Run {
    command.output().unwrap().into()
}

/// Starts a command whose output is kept for [`finish`].
pub fn start(mut command: Command) -> Child {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

/// Waits for the end of a process that [`start`] started.
pub fn finish(process: Child) -> Run {
    process.wait_with_output().unwrap().into()
}

impl From<Output> for Run {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

impl Run {
    /// Checks that the run succeeded.
    #[track_caller]
    pub fn succeeded(self) -> Self {
        self.failed(0)
    }

    /// Checks that the run ended with this code.
    #[track_caller]
    pub fn failed(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{self:#?}");
        self
    }

    /// Checks that each of these words is on stderr.
    #[track_caller]
    pub fn says(self, words: impl IntoIterator<Item: AsRef<str>>) -> Self {
        for words in words {
            assert_contains(&self.stderr, words);
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
