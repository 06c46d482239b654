//! Measures the view of a long conversation, and diffs of texts that are made to be slow.
//!
//! `view_bench` runs as it is: 10,000 events with 2,000 resources (and twice and four times that) from memory.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a program to run by hand"
)]

use std::{collections::HashMap, convert::Infallible, sync::Arc, time::Instant};

use jp_conversation::{
    ChatRequest, ChatResponse, Event, EventKind, Stream, ToolCallRequest, ToolCallResponse,
    view::{Delivery, NoTexts, Policy, Texts, deliver, thread},
};
use jp_resource::{BlobRef, Checksum, Resource, ResourceContent};
use jp_tool::ContentBlock;
use serde_json::Map;

/// Texts by checksum, as a store has them.
#[derive(Default)]
struct Stored(HashMap<Checksum, Arc<str>>);

impl Texts for Stored {
    fn text(&mut self, blob: &BlobRef) -> Option<Arc<str>> {
        self.0.get(&blob.checksum).cloned()
    }
}

fn main() {
    for (scale, every, said) in [
        (1, 80, ""),
        (2, 80, ""),
        (4, 80, ""),
        (1, 3, ", a third of the lines changed each time"),
    ] {
        let (stream, mut texts) = conversation(400 * scale, every);
        let plain = best(|| thread(&stream).messages.len());
        let view = best(|| {
            deliver(&stream, &Policy::default(), &mut texts)
                .messages
                .len()
        });
        println!(
            "{} events{said}: plain {plain:.2} ms, delivered {view:.2} ms",
            stream.events().len()
        );
        let thread = deliver(&stream, &Policy::default(), &mut texts);
        let mut names: HashMap<&str, usize> = HashMap::new();
        let deliveries = thread
            .messages
            .iter()
            .flat_map(|message| message.deliveries());
        deliveries.for_each(|delivery| *names.entry(Delivery::name(delivery)).or_default() += 1);
        println!("  {names:?}");
    }
    println!("changed files that are made to be slow to compare, 2 versions each:");
    let numbers = |seed: u64, kinds: u64| -> String {
        let line = |n: u64| format!("{}\n", n.wrapping_mul(seed).wrapping_add(n >> 3) % kinds);
        (0..9_900).map(line).collect()
    };
    let reversed = |text: String| text.lines().rev().map(|line| format!("{line}\n")).collect();
    for (name, old, new) in [
        ("3 kinds of lines", numbers(7919, 3), numbers(104_729, 3)),
        (
            "997 kinds of lines",
            numbers(7919, 997),
            numbers(104_729, 997),
        ),
        (
            "one line again and again",
            "a\n".repeat(9_900),
            "a\nb\n".repeat(4_950),
        ),
        (
            "reversed",
            numbers(1, 1 << 40),
            reversed(numbers(1, 1 << 40)),
        ),
        (
            "a million characters on a line",
            "ab".repeat(500_000),
            "ab".repeat(400_000),
        ),
        (
            "a million empty lines",
            "\n".repeat(1_000_000),
            "\n".repeat(999_999) + "x",
        ),
    ] {
        let lines = format!("a:b#L2-{}", new.len());
        let results = [
            result(1, "a:b", &old),
            result(2, "a:b", &new),
            result(3, &lines, &new[1..]),
        ];
        let kinds = results
            .into_iter()
            .enumerate()
            .flat_map(|(index, result)| [call(index + 1), result]);
        let stream = Stream::from_events(kinds.map(event).collect());
        let time = best(|| {
            deliver(&stream, &Policy::default(), &mut NoTexts)
                .messages
                .len()
        });
        println!("  {name}: {time:.1} ms");
    }
}

/// Returns the least time of some runs, in milliseconds.
fn best(mut run: impl FnMut() -> usize) -> f64 {
    let time = |_| {
        let started = Instant::now();
        std::hint::black_box(run());
        started.elapsed().as_secs_f64() * 1000.0
    };
    (0..7).map(time).fold(f64::INFINITY, f64::min)
}

/// Turns of 25 events: a request, with a file in every other, and rounds of reading files that change now and then, each
/// time one line of `every`.
fn conversation(turns: usize, every: usize) -> (Stream, Stored) {
    let mut versions = [0; 60];
    let mut kinds = Vec::new();
    for turn in 0..turns {
        let attached = (turn % 2 == 0).then(|| file(0, turn / 20, every));
        kinds.extend([EventKind::TurnStart, request(attached)]);
        for round in 0..5 {
            let number = (turn * 7 + round * 31) % 60;
            let id = turn * 10 + round;
            kinds.extend([
                EventKind::ChatResponse(ChatResponse::message("Let me look.")),
                call(id),
            ]);
            if round == 4 || every == 3 {
                versions[number] += 1;
            }
            let text = file(number, versions[number], every);
            let uri = format!("file:///w/src/{number}.rs");
            kinds.push(match round {
                1 | 3 => result(id, &format!("{uri}#L50-90"), &lines(&text, 50, 90)),
                _ => result(id, &uri, &text),
            });
            kinds.push(EventKind::ChatResponse(ChatResponse::reasoning("Hm.")));
        }
        kinds.extend(std::iter::repeat_n(
            EventKind::ChatResponse(ChatResponse::message("Done.")),
            3,
        ));
    }
    let mut texts = Stored::default();
    let store = |kind| {
        let mut event = event(kind);
        let put = |bytes: &[u8], encoding| {
            let blob = BlobRef::for_content(bytes, encoding);
            texts
                .0
                .entry(blob.checksum)
                .or_insert_with(|| String::from_utf8_lossy(bytes).into());
            Ok::<_, Infallible>(blob)
        };
        event.store_payloads(put).unwrap();
        event
    };
    (
        Stream::from_events(kinds.into_iter().map(store).collect()),
        texts,
    )
}

fn file(number: usize, version: usize, every: usize) -> String {
    let line = |line: usize| match line % every == version % every {
        true => format!("    let version = {version};\n"),
        false => format!("    let line_{line}_of_{number} = compute({line}); // some code\n"),
    };
    (0..150).map(line).collect()
}

fn lines(text: &str, first: usize, last: usize) -> String {
    text.split_inclusive('\n')
        .skip(first - 1)
        .take(last - first + 1)
        .collect()
}

fn event(kind: EventKind) -> Event {
    Event::new("2026-11-21T12:00:00Z".parse().unwrap(), kind)
}

fn request(attached: Option<String>) -> EventKind {
    let resource = |text| Resource::new("file:///w/notes.md", ResourceContent::Text(text)).into();
    let resources = attached.into_iter().map(resource).collect();
    EventKind::ChatRequest(ChatRequest {
        resources,
        ..ChatRequest::new("And?")
    })
}

fn call(id: usize) -> EventKind {
    let (id, name) = (id.to_string(), "read_file".to_owned());
    EventKind::ToolCallRequest(ToolCallRequest {
        id,
        name,
        arguments: Map::new(),
        metadata: Map::new(),
    })
}

fn result(id: usize, uri: &str, text: &str) -> EventKind {
    let resource = Resource::new(uri, ResourceContent::Text(text.to_owned()));
    EventKind::ToolCallResponse(ToolCallResponse {
        id: id.to_string(),
        content: vec![ContentBlock::resource(resource).into()],
        is_error: false,
        structured_content: None,
        meta: Map::new(),
    })
}
