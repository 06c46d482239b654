//! The server over HTTP (Streamable HTTP at `/mcp`), a thread a connection and a request a connection.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, File, OpenOptions},
    io::{self, BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::exit,
    sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc},
    thread,
};

use serde_json::Value;

use super::{
    LIFE,
    modes::Mode,
    outgoing::Outgoing,
    server::{MODERN, Server, refused},
};

const HEADER_MISMATCH: i64 = -32020;
const LARGEST_BODY: u64 = 1_000_000;
const HTML: &str = "<!doctype html><title>Welcome</title><p>This is a web page, no MCP server.";

/// The state of all connections.
struct Front {
    mode: Mode,
    server: Mutex<Server>,
    sessions: Mutex<Sessions>,
    /// The target of `http-redirect`.
    elsewhere: Option<u16>,
}

/// The sessions of 2025-11-25.
#[derive(Default)]
struct Sessions {
    issued: u32,
    live: BTreeSet<String>,
    lost: bool,
}

/// A request, as far as it matters here; the names of its headers are lower case.
struct Request {
    method: String,
    path: String,
    headers: BTreeMap<String, String>,
    body: Vec<u8>,
}

/// An answer that is no stream: status, further headers, type, body.
struct Response {
    status: &'static str,
    headers: Vec<(&'static str, String)>,
    kind: &'static str,
    body: String,
}

/// Serves until stdin ends; the port is in `port_file` once it listens, and then on stdout for who wants to wait.
pub(crate) fn serve(mode: Mode, port_file: &Path) -> io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let elsewhere = (mode == Mode::HttpRedirect)
        .then(|| listen_elsewhere(port_file))
        .transpose()?;
    let front = Arc::new(Front {
        mode,
        server: Mutex::new(Server::new(mode)),
        sessions: Mutex::default(),
        elsewhere,
    });
    let port = listener.local_addr()?.port();
    write_whole(port_file, &port.to_string())?;
    writeln!(io::stdout(), "{port}")?;
    thread::spawn(|| {
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        exit(0);
    });
    for stream in listener.incoming().map_while(Result::ok) {
        let front = Arc::clone(&front);
        // A client that hangs up is no failure of ours.
        thread::spawn(move || front.answer(&stream));
    }
    Ok(())
}

/// Makes the file appear with all that it holds.
fn write_whole(path: &Path, text: &str) -> io::Result<()> {
    let partial = with_suffix(path, ".partial");
    fs::write(&partial, text)?;
    fs::rename(partial, path)
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Listens on a second port, and writes down what it is sent.
fn listen_elsewhere(port_file: &Path) -> io::Result<u16> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let port = listener.local_addr()?.port();
    let record = with_suffix(port_file, ".redirected");
    File::create(&record)?;
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let _ = write_down(&stream, &record);
        }
    });
    Ok(port)
}

fn write_down(stream: &TcpStream, record: &Path) -> io::Result<()> {
    let mut record = OpenOptions::new().append(true).open(record)?;
    writeln!(record, "a connection")?;
    let Request {
        method,
        path,
        headers,
        body,
    } = Request::read(stream)?;
    writeln!(
        record,
        "{method} {path} {headers:?} {}",
        String::from_utf8_lossy(&body)
    )?;
    Response::plain("403 Forbidden", "Nobody is to come here.").write(stream)
}

impl Request {
    fn read(stream: &TcpStream) -> io::Result<Self> {
        let mut reader = BufReader::new(stream.take(LARGEST_BODY));
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let mut words = line.split_whitespace().map(str::to_owned);
        let (method, path) = (
            words.next().unwrap_or_default(),
            words.next().unwrap_or_default(),
        );
        let mut headers = BTreeMap::new();
        loop {
            let mut line = String::new();
            reader.read_line(&mut line)?;
            let Some((name, value)) = line.split_once(':') else {
                break;
            };
            headers.insert(name.to_lowercase(), value.trim().to_owned());
        }
        let length = headers
            .get("content-length")
            .and_then(|length| length.parse().ok())
            .unwrap_or_default();
        let mut body = Vec::new();
        reader.take(length).read_to_end(&mut body)?;
        Ok(Self {
            method,
            path,
            headers,
            body,
        })
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }
}

impl Response {
    fn plain(status: &'static str, body: &str) -> Self {
        Self {
            status,
            headers: Vec::new(),
            kind: "text/plain",
            body: body.to_owned(),
        }
    }

    fn json(status: &'static str, body: &Value) -> Self {
        Self {
            status,
            headers: Vec::new(),
            kind: "application/json",
            body: body.to_string(),
        }
    }

    fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    fn write(&self, stream: &TcpStream) -> io::Result<()> {
        let headers = [
            head(self.status, self.kind, Some(self.body.len()), &self.headers),
            self.body.clone(),
        ];
        (&*stream).write_all(headers.concat().as_bytes())
    }
}

fn head(status: &str, kind: &str, length: Option<usize>, headers: &[(&str, String)]) -> String {
    let length = length
        .map(|length| format!("content-length: {length}\r\n"))
        .unwrap_or_default();
    let headers: String = headers
        .iter()
        .map(|(name, value)| format!("{name}: {value}\r\n"))
        .collect();
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\nconnection: close\r\n{length}{headers}\r\n"
    )
}

impl Front {
    fn answer(&self, stream: &TcpStream) -> io::Result<()> {
        let request = Request::read(stream)?;
        match self.mode {
            Mode::HttpHang => hang(),
            Mode::HttpHalf => {
                let half =
                    head("200 OK", "application/json", Some(1000), &[]) + r#"{"jsonrpc":"2.0","#;
                (&*stream).write_all(half.as_bytes())
            }
            _ => match self.misbehave().or_else(|| refuse(&request)) {
                Some(response) => response.write(stream),
                None => self.post(&request, stream),
            },
        }
    }

    /// The answer of the modes that have one for everything.
    fn misbehave(&self) -> Option<Response> {
        Some(match self.mode {
            Mode::Http401 => Response::plain("401 Unauthorized", "Who are you?").with(
                "www-authenticate",
                r#"Bearer realm="hostile", error="invalid_token""#,
            ),
            Mode::Http403 => Response::plain("403 Forbidden", "Not you."),
            Mode::Http404 => Response::plain("404 Not Found", "There is nothing here."),
            Mode::Http500 => Response::plain(
                "500 Internal Server Error",
                "Something \u{1b}[31mbroke\u{1b}[0m.",
            ),
            Mode::HttpRedirect => Response::plain("302 Found", "").with(
                "location",
                format!(
                    "http://127.0.0.1:{}/mcp",
                    self.elsewhere.unwrap_or_default()
                ),
            ),
            Mode::HttpHtml => Response {
                kind: "text/html",
                ..Response::plain("200 OK", HTML)
            },
            _ => return None,
        })
    }

    fn post(&self, request: &Request, stream: &TcpStream) -> io::Result<()> {
        let Ok(message) = serde_json::from_slice::<Value>(&request.body) else {
            return Response::plain("400 Bad Request", "This is no JSON.").write(stream);
        };
        let is_request = message.get("id").is_some() && message.get("method").is_some();
        let checked = if self.mode.is_modern() {
            check_headers(request, &message).map(|()| None)
        } else {
            self.sessions().admit(request, &message)
        };
        let session = match checked {
            Ok(session) => session,
            Err(response) => return response.write(stream),
        };
        let (outbox, outgoing) = mpsc::channel();
        let called_tool = message["method"] == "tools/call";
        self.server
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .receive(message, &outbox);
        drop(outbox);
        if !is_request {
            return Response::plain("202 Accepted", "").write(stream);
        }
        if called_tool && self.mode == Mode::HttpSessionLost {
            self.sessions().lose();
        }
        send(stream, &outgoing, session)
    }

    fn sessions(&self) -> MutexGuard<'_, Sessions> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The answer to what is no message at the right place.
fn refuse(request: &Request) -> Option<Response> {
    match (&*request.method, &*request.path) {
        ("POST", "/mcp") => None,
        ("DELETE", "/mcp") => Some(Response::plain("200 OK", "")),
        (_, "/mcp") => {
            Some(Response::plain("405 Method Not Allowed", "").with("allow", "POST, DELETE"))
        }
        _ => Some(Response::plain("404 Not Found", "MCP is at /mcp.")),
    }
}

impl Sessions {
    /// The id of the session that the message starts, if it does; an answer to what belongs to none.
    fn admit(&mut self, request: &Request, message: &Value) -> Result<Option<String>, Response> {
        match (message["method"].as_str(), request.header("mcp-session-id")) {
            (Some("initialize"), _) => {
                self.issued += 1;
                let id = format!("hostile-{}", self.issued);
                self.live.insert(id.clone());
                Ok(Some(id))
            }
            (Some("server/discover"), _) => Ok(None),
            (_, Some(id)) if self.live.contains(id) => Ok(None),
            (_, Some(_)) => Err(Response::plain(
                "404 Not Found",
                "There is no such session.",
            )),
            (_, None) => Err(Response::plain(
                "400 Bad Request",
                "Mcp-Session-Id is missing.",
            )),
        }
    }

    fn lose(&mut self) {
        if !self.lost {
            self.live.clear();
            self.lost = true;
        }
    }
}

/// Checks that the headers say of the message what it says itself (2026-07-28).
fn check_headers(request: &Request, message: &Value) -> Result<(), Response> {
    let Some(method) = message["method"].as_str() else {
        return Ok(());
    };
    let version = &message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"];
    for (name, value) in [
        ("mcp-protocol-version", version.as_str().unwrap_or(MODERN)),
        ("mcp-method", method),
    ] {
        if request.header(name) != Some(value) {
            let what = format!("the header {name} is not {value}");
            let error = refused(message["id"].clone(), HEADER_MISMATCH, what, Value::Null);
            return Err(Response::json("400 Bad Request", &error));
        }
    }
    Ok(())
}

/// Sends what the request leads to: its answer alone as JSON, else all as a stream of events.
fn send(
    stream: &TcpStream,
    outgoing: &mpsc::Receiver<Outgoing>,
    session: Option<String>,
) -> io::Result<()> {
    let Ok(first) = outgoing.recv_timeout(LIFE) else {
        hang()
    };
    let mut to = io::BufWriter::new(stream);
    let headers: Vec<_> = session
        .map(|id| ("mcp-session-id", id))
        .into_iter()
        .collect();
    if first.is_answer() {
        to.write_all(head("200 OK", "application/json", Some(first.len()), &headers).as_bytes())?;
        first.write(&mut to)?;
        return to.flush();
    }
    to.write_all(head("200 OK", "text/event-stream", None, &headers).as_bytes())?;
    let mut next = Some(first);
    while let Some(sent) = next {
        to.write_all(b"event: message\ndata: ")?;
        sent.write(&mut to)?;
        to.write_all(b"\n\n")?;
        to.flush()?;
        next = if sent.is_answer() {
            None
        } else {
            outgoing.recv_timeout(LIFE).ok()
        };
    }
    Ok(())
}

/// Keeps the connection open, and says nothing on it.
fn hang() -> ! {
    thread::sleep(LIFE);
    exit(0);
}
