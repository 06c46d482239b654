//! Writes a twin of a real conversation, and measures how long it takes to build a request from it.
//!
//! `request_bench write DIRECTORY BYTES` makes DIRECTORY a workspace with one conversation of 692 events and BYTES
//! bytes of history; `request_bench build DIRECTORY` reads it and builds the request in all six formats;
//! `request_bench memory DIRECTORY` reads it and builds one request, once, for what that adds to the process's peak.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a program to run by hand"
)]

use std::{error::Error, fs, path::Path, sync::Arc, time::Instant};

use jiff::Timestamp;
use jp_conversation::{
    ChatRequest, ChatResponse, Event, EventKind, InquiryRequest, InquiryResponse, Stream,
    ToolCallRequest, ToolCallResponse, view,
};
use jp_llm::{Body, Contents, Format, Request};
use jp_resource::{BlobRef, Payload, ResourceContent};
use jp_storage::{ReadAhead, Store, Workspace};
use jp_tool::{InputRequest, StoredBlock};
use serde_json::{Map, Value, json};

/// How many events the twin has.
const EVENTS: usize = 692;
/// The kinds of a real conversation's events in their order: turn, question, reasoning, message, call, result of a
/// tool, inquiry and its answer.
const KINDS: &str = "TQRMCCCAAACCCAAARCCAACCAACACCAARCCAACCAARCCAACAMCAMTQRMTQRMTQRCARMTQRCACACAMCCAAMCAMTQMTQCACIYAMCACIYAMTQMCACAMCIYAM";
/// How many characters each of them has.
const SIZES: [usize; KINDS.len()] = [
    0, 4291, 489, 110, 52, 52, 56, 42188, 4460, 1956, 52, 24, 32, 32168, 88, 1912, 154, 52, 44,
    10696, 7860, 52, 160, 15836, 7648, 80, 11696, 120, 120, 7980, 4016, 860, 28, 78, 384, 160, 66,
    104, 112, 1624, 2225, 88, 101, 10764, 3444, 125, 6568, 150, 88, 6628, 5603, 0, 951, 5125, 3875,
    0, 1930, 12108, 4001, 0, 1439, 76, 64, 28440, 1032, 3568, 0, 108, 205, 108, 108, 108, 3208, 56,
    3100, 134, 80, 84, 2328, 2800, 68, 20119, 140, 1473, 0, 791, 3018, 0, 44, 108, 20004, 5824,
    4451, 4, 5820, 206, 142, 3772, 2160, 1847, 4, 2272, 1023, 0, 745, 1101, 1280, 148, 142, 4504,
    101, 1268, 921, 4, 1096, 325,
];
/// How many characters a signature has for one of the reasoning it signs.
const SIGNATURE: usize = 3;
const RUNS: usize = 41;
const MODEL: &str = "anthropic/m";
const FORMATS: [Format; 6] = [
    Format::Anthropic,
    Format::Chat,
    Format::Gemini,
    Format::OpenAi,
    Format::OpenRouter,
    Format::Ollama,
];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["write", directory, bytes] => write(&open(directory), bytes.parse().unwrap()),
        ["build", directory] => build(&open(directory)),
        ["memory", directory] => memory(&open(directory)),
        _ => println!(
            "usage: request_bench write DIRECTORY BYTES | build DIRECTORY | memory DIRECTORY"
        ),
    }
}

fn open(directory: &str) -> Store {
    let root = Path::new(directory);
    fs::create_dir_all(root.join(".jp")).unwrap();
    Workspace::open(root, &root.join("data"), &root.join("cache"))
        .unwrap()
        .store()
}

fn write(store: &Store, bytes: usize) {
    let now = Timestamp::now();
    let kinds = Twin::new(bytes).take(EVENTS);
    let mut writer = store.start(Some("A twin"), now, &[]).unwrap();
    writer
        .append(
            kinds.map(|kind| Event::new(now, kind)).collect(),
            store.batch(),
        )
        .unwrap();
}

/// The events of a conversation like the real one, over and over, with other words each time.
struct Twin {
    /// How much larger than those of the real conversation its texts are.
    scale: f64,
    random: fastrand::Rng,
    index: usize,
    /// Calls that have no result yet, and the number of the next.
    open: std::ops::Range<usize>,
}

impl Twin {
    fn new(bytes: usize) -> Self {
        let shape = KINDS.chars().zip(SIZES).cycle().take(EVENTS);
        let real: usize = shape
            .map(|(kind, size)| {
                if kind == 'R' {
                    size * (1 + SIGNATURE)
                } else {
                    size
                }
            })
            .sum();
        Self {
            scale: bytes as f64 / real as f64,
            random: fastrand::Rng::with_seed(692),
            index: 0,
            open: 0..0,
        }
    }

    /// Makes text like code: words in lines.
    fn text(&mut self, size: usize) -> String {
        const WORDS: [&str; 12] = [
            "let",
            "answer",
            "=",
            "\"part\"",
            "of",
            "the",
            "turn",
            "{\n",
            "}\n",
            "return;\n",
            "    if",
            "größer",
        ];
        let mut text = String::with_capacity(size + 8);
        while text.len() < (size as f64 * self.scale) as usize {
            text.push_str(WORDS[self.random.usize(..WORDS.len())]);
            text.push(' ');
            if self.random.u8(..4) == 0 {
                text.push_str(&self.random.u16(..).to_string());
            }
        }
        text
    }

    fn object(&mut self, key: &str, size: usize) -> Map<String, Value> {
        Map::from_iter([(key.to_owned(), Value::from(self.text(size)))])
    }

    fn reasoning(&mut self, size: usize) -> ChatResponse {
        let signature = (self.scale * (size * SIGNATURE) as f64) as usize;
        let signature: String = (0..signature).map(|_| self.random.alphanumeric()).collect();
        let metadata = json!({"model": MODEL, "anthropic_thinking_signature": signature});
        let metadata = metadata.as_object().unwrap().clone();
        ChatResponse {
            metadata,
            ..ChatResponse::reasoning(self.text(size))
        }
    }

    fn call(&mut self, size: usize) -> ToolCallRequest {
        let id = format!("call_{:020}", self.open.end);
        self.open.end += 1;
        let arguments = self.object("path", size);
        ToolCallRequest {
            id,
            name: "fs_read_file".to_owned(),
            arguments,
            metadata: Map::new(),
        }
    }

    fn result(&mut self, size: usize) -> ToolCallResponse {
        let id = format!("call_{:020}", self.open.next().unwrap());
        let text = Payload::Inline(self.text(size));
        let content = vec![StoredBlock::Text {
            text,
            annotations: None,
            meta: None,
        }];
        ToolCallResponse {
            id,
            content,
            is_error: false,
            structured_content: None,
            meta: Map::new(),
        }
    }

    fn inquiry(&mut self, size: usize) -> InquiryRequest {
        let (text, schema) = (self.text(size), self.object("type", 8));
        let question = InputRequest {
            id: "apply".to_owned(),
            text,
            schema,
            default: None,
        };
        InquiryRequest {
            id: "inquiry".to_owned(),
            source: Value::Null,
            question,
        }
    }
}

impl Iterator for Twin {
    type Item = EventKind;

    fn next(&mut self) -> Option<EventKind> {
        let position = self.index % SIZES.len();
        let size = SIZES[position];
        self.index += 1;
        Some(match KINDS.as_bytes()[position] {
            b'T' => EventKind::TurnStart,
            b'Q' => EventKind::ChatRequest(ChatRequest::new(self.text(size))),
            b'R' => EventKind::ChatResponse(self.reasoning(size)),
            b'C' => EventKind::ToolCallRequest(self.call(size)),
            b'A' => EventKind::ToolCallResponse(self.result(size)),
            b'I' => EventKind::InquiryRequest(self.inquiry(size)),
            b'Y' => EventKind::InquiryResponse(InquiryResponse {
                id: "inquiry".to_owned(),
                answer: true.into(),
            }),
            _ => EventKind::ChatResponse(ChatResponse::message(self.text(size))),
        })
    }
}

fn build(store: &Store) {
    let located = store.list().unwrap().pop().unwrap();
    let (read, mut stream) = timed(|| store.read(&located).unwrap().stream);
    let size = fs::metadata(located.directory.join("events.json"))
        .unwrap()
        .len();
    println!(
        "{:>24} {read}  ({size} bytes, {} events)",
        "read of events.json",
        stream.events().len()
    );
    stream.push(Event::new(
        Timestamp::now(),
        EventKind::ChatRequest(ChatRequest::new("And now?")),
    ));
    let blobs = view::thread(&stream).blobs().len();
    for format in FORMATS {
        let (times, body) = timed(|| encode(store, &stream, format));
        let name = format!("{format:?}");
        println!(
            "{name:>24} {times}  ({} bytes, {blobs} of the texts from blobs)",
            body.len()
        );
    }
}

fn memory(store: &Store) {
    let located = store.list().unwrap().pop().unwrap();
    let mut stream = store.read(&located).unwrap().stream;
    stream.push(Event::new(
        Timestamp::now(),
        EventKind::ChatRequest(ChatRequest::new("And now?")),
    ));
    let before = peak_kilobytes();
    let body = encode(store, &stream, Format::Anthropic);
    let added = (peak_kilobytes() - before) as f64 / 1000.0;
    let ratio = added * 1e6 / body.len() as f64;
    println!("building it adds {added:.1} MB to the peak of the process, {ratio:.2} x the request");
}

/// Reads the peak of resident memory, where the system tells.
fn peak_kilobytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok())
        .unwrap_or(0)
}

/// Builds a request as a query does.
fn encode(store: &Store, stream: &Stream, format: Format) -> Body {
    let thread = view::thread(stream);
    let mut contents = Ahead(store.blobs().read_ahead(thread.blobs(), Arc::default()));
    let request = Request {
        system: Some("You pair."),
        ..Request::new(MODEL, &thread)
    };
    format.body(&request, &mut contents).unwrap().0
}

/// Gives what a thread needs, in the order in which it does.
struct Ahead(ReadAhead);

impl Contents for Ahead {
    fn load(&mut self, _: &BlobRef) -> Result<ResourceContent, Box<dyn Error + Send + Sync>> {
        Ok(self
            .0
            .next()
            .ok_or("more was loaded than the thread needs")??)
    }
}

/// Does some work many times; returns the median and the least time, and what it made.
fn timed<T>(work: impl Fn() -> T) -> (String, T) {
    let time = || {
        let started = Instant::now();
        drop(work());
        started.elapsed().as_secs_f64() * 1000.0
    };
    let mut times: Vec<f64> = (0..RUNS).map(|_| time()).collect();
    times.sort_by(f64::total_cmp);
    (
        format!("{:6.2} ms, least {:5.2}", times[RUNS / 2], times[0]),
        work(),
    )
}
