//! The mock servers of model providers that `scripts/get_mocks` installs.

use std::{
    io::{self, BufRead as _, BufReader, Read, Write as _},
    net::{Shutdown, TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex, mpsc},
    thread,
    time::Duration,
};

use serde_json::Value;

use crate::{programs, skip};

/// A mock server. It ends with the value, or after two minutes.
pub struct Mock {
    process: Child,
    /// Its root.
    pub url: String,
}

/// The time after which a mock ends if a test could not end it, in seconds.
const LIFETIME: &str = "120";
const START: Duration = Duration::from_secs(60);
const ANSWER: Duration = Duration::from_secs(20);

impl Drop for Mock {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Mock {
    /// Starts llmock, or says why it can't.
    pub fn llmock() -> Option<Self> {
        let packages = installed("llmock")?;
        let program =
            format!("import signal; signal.alarm({LIFETIME}); from llmock.cli import app; app()");
        let python = std::env::var("PYTHON").unwrap_or_else(|_| "python3".to_owned());
        let mut command = Command::new(python);
        command.args([
            "-c",
            &program,
            "serve",
            "--port",
            "0",
            "--response-style",
            "hello",
        ]);
        // Else an answer is in the socket whole before jp can hang up.
        command.args(["--stream-chunk-delay-ms", "20"]);
        command.env("PYTHONPATH", packages).stdout(Stdio::null());
        let mut process = spawn(command.stderr(Stdio::piped()));
        let log = process.stderr.take().unwrap();
        Some(Self {
            url: url_in(log),
            process,
        })
    }

    /// Starts aimock with a file of fixtures, or says why it can't.
    pub fn aimock(fixtures: &Path) -> Option<Self> {
        let packages = installed("aimock")?;
        let end = format!("data:text/javascript,setTimeout(()=>process.exit(),{LIFETIME}000)");
        let program = packages.join("node_modules/@copilotkit/aimock/dist/cli.js");
        let mut command = Command::new("node");
        command.arg("--import").arg(end).arg(program);
        command
            .args([
                "--port",
                "0",
                "--chunk-size",
                "7",
                "--validate-on-load",
                "--fixtures",
            ])
            .arg(fixtures);
        let mut process = spawn(command.stdout(Stdio::piped()).stderr(Stdio::null()));
        let log = process.stdout.take().unwrap();
        Some(Self {
            url: url_in(log),
            process,
        })
    }

    /// Returns a JSON document of the server.
    pub fn get(&self, path: &str) -> Value {
        exchange(&self.url, "GET", path, "")
    }

    /// Sends a JSON document, and returns the answer.
    pub fn post(&self, path: &str, body: &Value) -> Value {
        exchange(&self.url, "POST", path, &body.to_string())
    }
}

fn installed(name: &str) -> Option<PathBuf> {
    let directory = programs::installed(name);
    if directory.is_none() {
        skip(&format!("no {name}; scripts/get_mocks installs it"));
    }
    directory
}

fn spawn(command: &mut Command) -> Child {
    command.stdin(Stdio::null()).spawn().unwrap()
}

/// Waits until a log says where its server listens; goes on reading, so that the server never waits for a reader.
fn url_in(log: impl Read + Send + 'static) -> String {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(log).lines().map_while(Result::ok) {
            let words = line.split_whitespace();
            let url = words
                .filter(|_| line.contains(" on http://"))
                .find(|word| word.starts_with("http://"));
            url.into_iter()
                .for_each(|url| _ = sender.send(url.to_owned()));
        }
    });
    receiver
        .recv_timeout(START)
        .expect("the mock server starts")
}

/// Sends a small request and returns the JSON document that comes back.
fn exchange(url: &str, method: &str, path: &str, body: &str) -> Value {
    let mut stream = connect(url).unwrap();
    stream.set_read_timeout(Some(ANSWER)).unwrap();
    let length = body.len();
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nhost: mock\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (_, document) = answer.split_once("\r\n\r\n").unwrap();
    // Whether in chunks or not, the document is all of the body that is between its brackets.
    let document = document
        .find(['{', '['])
        .zip(document.rfind(['}', ']']))
        .map(|(from, to)| &document[from..=to]);
    serde_json::from_str(document.unwrap_or_default())
        .unwrap_or_else(|error| panic!("{error}: {answer}"))
}

fn connect(url: &str) -> io::Result<TcpStream> {
    TcpStream::connect(url.trim_start_matches("http://"))
}

/// Passes requests on to a server and keeps them as they were sent: aimock keeps only what it understood of one.
pub struct Relay {
    /// Its root.
    pub url: String,
    bodies: Arc<Mutex<Vec<Value>>>,
}

impl Relay {
    /// Starts a relay to the server at this URL.
    pub fn new(server: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let bodies = Arc::new(Mutex::new(Vec::new()));
        let (log, server) = (Arc::clone(&bodies), server.to_owned());
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                // A client that goes away ends its connection's thread.
                let (log, server) = (Arc::clone(&log), server.clone());
                thread::spawn(move || pass_on(&client, &server, &log));
            }
        });
        Self { url, bodies }
    }

    /// Returns the body of the last request.
    pub fn last(&self) -> Value {
        self.bodies.lock().unwrap().last().unwrap().clone()
    }
}

/// Passes one request on, and its answer back.
fn pass_on(mut client: &TcpStream, server: &str, log: &Mutex<Vec<Value>>) -> io::Result<()> {
    let mut reader = BufReader::new(client);
    let mut head = String::new();
    while reader.read_line(&mut head)? > 2 {}
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body)?;
    // A question about the model has none.
    if !body.is_empty() {
        log.lock()
            .unwrap()
            .push(serde_json::from_slice(&body).unwrap());
    }
    let mut server = connect(server)?;
    server.write_all(
        head.replacen("\r\n", "\r\nconnection: close\r\n", 1)
            .as_bytes(),
    )?;
    server.write_all(&body)?;
    io::copy(&mut server, &mut client)?;
    client.shutdown(Shutdown::Both)
}
