//! Measures what a request costs that carries 100 MB of attached files: encoding, sending, memory.
//!
//! `encode_bench` runs as it is; nothing but a listener in this process gets the request.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a program to run by hand"
)]

use std::{
    error::Error,
    io::{self, BufRead, BufReader, Read, Write},
    net::TcpListener,
    thread,
    time::Instant,
};

use jp_conversation::{ChatRequest, Event, EventKind, Stream, view};
use jp_llm::{BaseUrl, Capabilities, Client, Contents, Endpoint, Format, Request};
use jp_resource::{BlobRef, Checksum, Encoding, Payload, Resource, ResourceContent};

const FILES: u64 = 20;
const FILE_BYTES: u64 = 5 << 20;

/// Gives every file the same lines.
struct Lines(Vec<u8>);

impl Contents for Lines {
    fn load(&mut self, blob: &BlobRef) -> Result<ResourceContent, Box<dyn Error + Send + Sync>> {
        Ok(ResourceContent::from_blob(blob, self.0.clone())?)
    }
}

fn main() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base_url = BaseUrl::parse(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
    thread::spawn(move || {
        listener
            .incoming()
            .for_each(|stream| answer(stream.unwrap()).unwrap())
    });
    println!("at start: peak memory {}", peak_memory());

    for count in ["first", "second"] {
        let started = Instant::now();
        Client::new(Endpoint::new("bench", base_url.clone(), "m")).unwrap();
        println!(
            "{count} client: {:.2} ms",
            started.elapsed().as_secs_f64() * 1000.0
        );
    }

    let stream = conversation();
    let thread = view::thread(&stream);
    let capabilities = Capabilities {
        images: true,
        ..Capabilities::default()
    };
    let request = Request {
        capabilities,
        ..Request::new("bench/m", &thread)
    };
    let line = b"    let answer = format!(\"{question}\\n\"); // some code\n";
    let mut lines = Lines(
        line.iter()
            .copied()
            .cycle()
            .take(FILE_BYTES as usize)
            .collect(),
    );
    let started = Instant::now();
    let (body, _) = Format::Chat.body(&request, &mut lines).unwrap();
    println!(
        "encode {} bytes: {:.0} ms, peak memory {}",
        body.len(),
        millis(started),
        peak_memory()
    );

    let client = Client::new(Endpoint::new("bench", base_url, "m")).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let started = Instant::now();
    let event = runtime.block_on(async {
        let mut response = client
            .send(&body, &mut |notice| println!("{notice}"))
            .await
            .unwrap();
        response.next().await.unwrap()
    });
    println!(
        "send: {:.0} ms, peak memory {}, got {event:?}",
        millis(started),
        peak_memory()
    );
}

fn conversation() -> Stream {
    let file = |index: u64| {
        let checksum = Checksum::compute(&index.to_le_bytes());
        let blob = BlobRef {
            checksum,
            size: FILE_BYTES,
            encoding: Encoding::Utf8,
        };
        Resource::new(format!("file:///src/{index}.rs"), Payload::Stored(blob))
            .with_mime_type("text/x-rust")
    };
    let resources = (0..FILES).map(file).collect();
    let request = ChatRequest {
        resources,
        ..ChatRequest::new("Review this.")
    };
    let now = "2026-11-21T12:00:00Z".parse().unwrap();
    Stream::from_events(vec![Event::new(now, EventKind::ChatRequest(request))])
}

/// Reads a request to its end, keeping nothing, and answers with a word.
fn answer(mut stream: std::net::TcpStream) -> io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut head = String::new();
    while reader.read_line(&mut head)? > 2 {}
    let length = head
        .to_lowercase()
        .lines()
        .find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
    io::copy(&mut reader.take(length.unwrap()), &mut io::sink())?;
    stream.write_all(
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n",
    )?;
    stream.write_all(b"data: {\"choices\":[{\"delta\":{\"content\":\"ok\"}}]}\n\ndata: [DONE]\n\n")
}

fn millis(started: Instant) -> f64 {
    started.elapsed().as_secs_f64() * 1000.0
}

/// Reads the peak of resident memory, where the system tells.
fn peak_memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    line.map_or("unknown", |line| line["VmHWM:".len()..].trim())
        .to_owned()
}
