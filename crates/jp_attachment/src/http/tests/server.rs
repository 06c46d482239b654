//! A server on loopback that does what a test says, however wrong.

use std::{
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

/// How long a peer is waited for, where a test goes wrong.
const PATIENCE: Duration = Duration::from_secs(30);
/// What a TLS record starts with that opens a connection.
const TLS_HANDSHAKE: u8 = 0x16;

pub(super) struct Server {
    pub(super) address: SocketAddr,
    requests: Arc<Mutex<Vec<String>>>,
    is_stopped: Arc<AtomicBool>,
    accepting: Option<JoinHandle<()>>,
}

/// One request and where its answer goes.
pub(super) struct Exchange {
    pub(super) path: String,
    stream: TcpStream,
}

impl Server {
    /// Starts a server that answers each connection once.
    pub(super) fn start(answer: impl Fn(&mut Exchange) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (requests, is_stopped) = (
            Arc::<Mutex<Vec<_>>>::default(),
            Arc::<AtomicBool>::default(),
        );
        let (answer, seen, stopped) = (
            Arc::new(answer),
            Arc::clone(&requests),
            Arc::clone(&is_stopped),
        );
        let accepting = thread::spawn(move || {
            for stream in listener.incoming() {
                if stopped.load(Ordering::Relaxed) {
                    break;
                }
                let (answer, seen, stream) =
                    (Arc::clone(&answer), Arc::clone(&seen), stream.unwrap());
                thread::spawn(move || {
                    if let Some(mut exchange) = Exchange::accept(stream, &seen) {
                        answer(&mut exchange);
                    }
                });
            }
        });
        Self {
            address,
            requests,
            is_stopped,
            accepting: Some(accepting),
        }
    }

    /// Starts a server that answers each request with the same bytes.
    pub(super) fn always(answer: impl Into<Vec<u8>>) -> Self {
        let answer = answer.into();
        Self::start(move |exchange| exchange.write(&answer))
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Returns the heads of all requests.
    pub(super) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.is_stopped.store(true, Ordering::Relaxed);
        // Wakes the server's thread.
        _ = TcpStream::connect(self.address);
        _ = self.accepting.take().unwrap().join();
    }
}

impl Exchange {
    fn accept(mut stream: TcpStream, seen: &Mutex<Vec<String>>) -> Option<Self> {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        let (mut head, mut buffer) = (Vec::new(), [0; 4096]);
        while !head.ends_with(b"\r\n\r\n") && head.first() != Some(&TLS_HANDSHAKE) {
            match stream.read(&mut buffer) {
                Ok(length @ 1..) => head.extend_from_slice(&buffer[..length]),
                _ => return None,
            }
        }
        let head = String::from_utf8_lossy(&head).into_owned();
        let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
        seen.lock().unwrap().push(head);
        Some(Self { path, stream })
    }

    /// Sends bytes. The client may have closed the connection.
    pub(super) fn write(&mut self, bytes: &[u8]) {
        _ = self.stream.write_all(bytes);
    }

    pub(super) fn redirect(&mut self, location: &str) {
        let head = format!(
            "HTTP/1.1 302 Found\r\nlocation: {location}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
        );
        self.write(head.as_bytes());
    }

    /// Sends the same bytes until the client closes the connection.
    pub(super) fn write_endlessly(&mut self, bytes: &[u8]) {
        for _ in 0..100_000 {
            if self.stream.write_all(bytes).is_err() {
                return;
            }
        }
    }

    /// Waits without an answer until the client closes the connection.
    pub(super) fn stall(&mut self) {
        _ = self.stream.read(&mut [0]);
    }
}

/// Makes an answer with a length.
pub(super) fn ok(headers: &str, body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    let head = format!(
        "HTTP/1.1 200 OK\r\n{headers}content-length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}
