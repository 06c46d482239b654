//! A server that plays a script, for tests: real TCP on loopback, nothing but `std`.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
};

/// A server; it answers until the process ends.
#[derive(Debug)]
pub struct Server {
    url: String,
    received: Arc<Mutex<Vec<Received>>>,
}

/// A request that came.
#[derive(Debug, Clone)]
pub struct Received {
    /// Request line and headers, in lower case.
    pub head: String,
    /// The body, as long as `content-length` says.
    pub body: Vec<u8>,
}

/// The server's answer to one request.
#[derive(Debug, Clone)]
pub struct Reply {
    bytes: Vec<u8>,
    then: Then,
}

#[derive(Debug, Clone)]
enum Then {
    Close,
    Hang,
    Repeat(Vec<u8>),
}

type Script = Box<dyn Fn(usize, &str) -> Reply + Send + Sync>;

impl Server {
    /// Starts a server that answers each request with the next reply, and with the last for ever.
    #[must_use]
    pub fn new(replies: Vec<Reply>) -> Self {
        Self::start(Box::new(move |index, _| {
            replies[index.min(replies.len() - 1)].clone()
        }))
    }

    /// Starts a server that answers by the request's number, from 0, and its path.
    pub fn scripted(script: impl Fn(usize, &str) -> Reply + Send + Sync + 'static) -> Self {
        Self::start(Box::new(script))
    }

    /// Starts a server that answers by path, and with 404 elsewhere.
    #[must_use]
    pub fn routed(routes: Vec<(&'static str, Reply)>) -> Self {
        Self::start(Box::new(move |_, path| {
            let route = routes.iter().find(|(known, _)| *known == path);
            route.map_or_else(|| Reply::json(404, "{}"), |(_, reply)| reply.clone())
        }))
    }

    /// Returns the server's root.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns the requests that came so far.
    #[must_use]
    pub fn received(&self) -> Vec<Received> {
        lock(&self.received).clone()
    }

    fn start(script: Script) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
        let url = url_of(&listener);
        let received = Arc::new(Mutex::new(Vec::new()));
        let (script, log) = (Arc::new(script), Arc::clone(&received));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (script, log) = (Arc::clone(&script), Arc::clone(&log));
                // A client that goes away ends its connection's thread.
                thread::spawn(move || serve(&stream, &script, &log));
            }
        });
        Self { url, received }
    }
}

impl Reply {
    /// Makes a whole response by hand; `Connection: close` should be among its headers.
    pub fn raw(bytes: impl Into<Vec<u8>>) -> Self {
        Self {
            bytes: bytes.into(),
            then: Then::Close,
        }
    }

    /// Makes a stream of server-sent events.
    #[must_use]
    pub fn stream(events: &str) -> Self {
        let head =
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
        Self::raw(format!("{head}{events}"))
    }

    /// Makes a stream of chunks with these words, then the end.
    #[must_use]
    pub fn words(words: &[&str]) -> Self {
        let end =
            "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
        Self::stream(&(words.iter().map(|word| chunk(word)).collect::<String>() + end))
    }

    /// Makes a JSON document.
    #[must_use]
    pub fn json(status: u16, body: &str) -> Self {
        Self::with_headers(status, "content-type: application/json\r\n", body)
    }

    /// Makes a response; each header ends with CR LF.
    #[must_use]
    pub fn with_headers(status: u16, headers: &str, body: &str) -> Self {
        let length = body.len();
        Self::raw(format!(
            "HTTP/1.1 {status} Status\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n{body}"
        ))
    }

    /// Makes no response at all, with the connection open.
    #[must_use]
    pub fn hang() -> Self {
        Self::raw("").then_hang()
    }

    /// Keeps the connection open, silent, until the client leaves.
    #[must_use]
    pub fn then_hang(self) -> Self {
        Self {
            then: Then::Hang,
            ..self
        }
    }

    /// Goes on with `bytes` again and again, until the client leaves.
    #[must_use]
    pub fn then_repeat(self, bytes: impl Into<Vec<u8>>) -> Self {
        Self {
            then: Then::Repeat(bytes.into()),
            ..self
        }
    }
}

/// Returns a chunk of a stream that brings these words.
#[must_use]
pub fn chunk(words: &str) -> String {
    let words = serde_json::Value::from(words);
    format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":{words}}}}}]}}\n\n")
}

/// The root of a server that nobody runs: the system gives its port to nobody who asks for any.
pub const UNUSED_URL: &str = "http://127.0.0.1:1";

/// Runs a future to its end.
pub fn block_on<F: Future>(future: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime
        .expect("a runtime needs no more than a few file descriptors")
        .block_on(future)
}

fn url_of(listener: &TcpListener) -> String {
    format!(
        "http://{}",
        listener
            .local_addr()
            .expect("a bound socket has an address")
    )
}

fn lock(received: &Mutex<Vec<Received>>) -> MutexGuard<'_, Vec<Received>> {
    received.lock().unwrap_or_else(PoisonError::into_inner)
}

fn serve(mut stream: &TcpStream, script: &Script, log: &Mutex<Vec<Received>>) -> io::Result<()> {
    let request = read_request(stream)?;
    let path = request
        .head
        .split(' ')
        .nth(1)
        .unwrap_or_default()
        .to_owned();
    let index = {
        let mut log = lock(log);
        log.push(request);
        log.len() - 1
    };
    let reply = script(index, &path);
    stream.write_all(&reply.bytes)?;
    match reply.then {
        Then::Close => Ok(()),
        Then::Hang => stream.read(&mut [0]).map(drop),
        Then::Repeat(bytes) => loop {
            stream.write_all(&bytes)?;
        },
    }
}

fn read_request(stream: &TcpStream) -> io::Result<Received> {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while reader.read_line(&mut head)? > 2 {}
    if !head.ends_with("\r\n\r\n") {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let head = head.to_lowercase();
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body)?;
    Ok(Received { head, body })
}
