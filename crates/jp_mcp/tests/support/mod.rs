//! A server of HTTP on this machine that answers as a test wants it to.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test file has this as a module of its own, and uses some of it"
)]

use std::{
    collections::BTreeMap,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    sync::Arc,
    thread,
};

use serde_json::Value;
use url::Url;

/// What a server was asked.
pub struct Request {
    /// Method and path.
    pub what: String,
    pub target: Url,
    pub headers: BTreeMap<String, String>,
    pub body: String,
}

/// What a server answers.
pub struct Response {
    pub status: &'static str,
    /// One line.
    pub header: String,
    pub body: String,
}

impl Response {
    pub fn json(value: &Value) -> Self {
        Self {
            status: "200 OK",
            header: "Cache-Control: no-store".to_owned(),
            body: value.to_string(),
        }
    }

    pub fn empty(status: &'static str, header: impl Into<String>) -> Self {
        Self {
            status,
            header: header.into(),
            body: String::new(),
        }
    }
}

/// Starts a server; returns its root. It ends with the test.
pub fn start(answer: impl Fn(&Request) -> Response + Send + Sync + 'static) -> Url {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let root = Url::parse(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
    let (answer, base) = (Arc::new(answer), root.clone());
    thread::spawn(move || {
        for connection in listener.incoming() {
            let (answer, base) = (Arc::clone(&answer), base.clone());
            thread::spawn(move || serve(connection.unwrap(), &base, &*answer));
        }
    });
    root
}

/// Answers one request.
fn serve(mut connection: TcpStream, base: &Url, answer: &dyn Fn(&Request) -> Response) {
    let mut reader = BufReader::new(connection.try_clone().unwrap());
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    let mut words = line.split_whitespace();
    let (Some(method), Some(target)) = (words.next(), words.next()) else {
        return;
    };
    let target = base.join(target).unwrap();
    let mut headers = BTreeMap::new();
    for line in reader
        .by_ref()
        .lines()
        .map(Result::unwrap)
        .take_while(|line| !line.is_empty())
    {
        let (name, value) = line.split_once(':').unwrap();
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let mut body = vec![
        0;
        headers
            .get("content-length")
            .map_or(0, |length| length.parse().unwrap())
    ];
    reader.read_exact(&mut body).unwrap();
    let what = format!("{method} {}", target.path());
    let Response {
        status,
        header,
        body,
    } = answer(&Request {
        what,
        target,
        headers,
        body: String::from_utf8(body).unwrap(),
    });
    let kind = "Content-Type: application/json\r\nConnection: close";
    let length = body.len();
    // Whoever asked may be gone.
    _ = write!(
        connection,
        "HTTP/1.1 {status}\r\n{header}\r\n{kind}\r\nContent-Length: {length}\r\n\r\n{body}"
    );
}
