//! A workspace in a temporary directory, and the real binary in it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(
    dead_code,
    missing_docs,
    unreachable_pub,
    reason = "each test file uses a part of it"
)]

use std::{
    ffi::OsStr,
    fs,
    io::ErrorKind,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    time::{SystemTime, UNIX_EPOCH},
};

use jp_llm::testing::{Reply, Server, chunk};
use serde_json::{Value, json};

/// A person's home, with a workspace in it.
pub struct Sandbox {
    pub directory: tempfile::TempDir,
    pub home: PathBuf,
    pub root: PathBuf,
}

/// What a run of the command gave.
#[derive(Debug)]
pub struct Run {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
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

    /// Configures the model that `server` plays; whether it takes tools is said, so that the server is not asked.
    pub fn with_server(self, server: &Server) -> Self {
        self.with_url(server.url())
    }

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

    pub fn path(&self, path: &str) -> PathBuf {
        match path.strip_prefix("~/") {
            Some(below) => self.home.join(below),
            None => self.root.join(path),
        }
    }

    pub fn command<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_jp"));
        command
            .args(arguments)
            .current_dir(&self.root)
            .stdin(Stdio::null());
        command
            .env_clear()
            .env("HOME", &self.home)
            .env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command
    }

    pub fn jp<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Run {
        run(self.command(arguments))
    }

    /// Runs a command that must succeed, and returns its JSON document.
    pub fn json<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Value {
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

    pub fn events(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.conversation().join("events.json")).unwrap();
        serde_json::from_str(&text).unwrap()
    }

    /// Returns every file below a directory of the workspace.
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

pub fn run(mut command: Command) -> Run {
    let output = command.output().unwrap();
    Run {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

impl Run {
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

/// A server that always answers with these words, and with what they cost.
pub fn answering(words: &str) -> Server {
    Server::new(vec![answer(words)])
}

pub fn answer(words: &str) -> Reply {
    let end = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
    let usage = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":50,\"completion_tokens\":7,\"prompt_tokens_details\":{\"cached_tokens\":40}}}\n\n";
    Reply::stream(&format!("{}{end}{usage}data: [DONE]\n\n", chunk(words)))
}

/// A server that gives each request to the model the next reply, and the last for ever.
pub fn playing(replies: Vec<Reply>) -> Server {
    let count = AtomicUsize::new(0);
    Server::scripted(move |_, path| match path {
        "/v1/chat/completions" => {
            replies[count.fetch_add(1, Relaxed).min(replies.len() - 1)].clone()
        }
        _ => Reply::json(404, "{}"),
    })
}

/// Calls tools: each has a name and its arguments; their ids count from 1.
pub fn calling(calls: &[(&str, Value)]) -> Reply {
    let call = |(index, (name, arguments)): (usize, &(&str, Value))| {
        json!({"index": index, "id": format!("call_{}", index + 1),
            "function": {"name": name, "arguments": arguments.to_string()}})
    };
    let calls: Vec<_> = calls.iter().enumerate().map(call).collect();
    let chunk = json!({"choices": [{"delta": {"tool_calls": calls}}]});
    let end = json!({"choices": [{"delta": {}, "finish_reason": "tool_calls"}]});
    Reply::stream(&format!("data: {chunk}\n\ndata: {end}\n\ndata: [DONE]\n\n"))
}

/// Returns the results of tools in the last request.
pub fn results(server: &Server) -> Vec<String> {
    let request = last_request(server);
    let messages = request["messages"].as_array().unwrap().iter();
    let results = messages.filter(|message| message["role"] == "tool");
    results
        .map(|message| message["content"].as_str().unwrap().to_owned())
        .collect()
}

/// Returns the JSON body of the last request that a server got.
pub fn last_request(server: &Server) -> Value {
    serde_json::from_slice(&server.received().last().unwrap().body).unwrap()
}

/// Returns the text of the last user message, parts joined.
pub fn last_message(server: &Server) -> String {
    let request = last_request(server);
    let message = request["messages"]
        .as_array()
        .unwrap()
        .last()
        .unwrap()
        .clone();
    match &message["content"] {
        Value::String(text) => text.clone(),
        parts => {
            let texts = parts
                .as_array()
                .unwrap()
                .iter()
                .filter_map(|part| part["text"].as_str());
            texts.collect::<Vec<_>>().join("\n")
        }
    }
}

pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

pub fn shown(path: &Path) -> String {
    path.display().to_string()
}

/// Says why a test does not check what its name says.
#[expect(clippy::print_stderr, reason = "a skipped test says why")]
pub fn skip(reason: &str) {
    eprintln!("skipped: {reason}");
}
