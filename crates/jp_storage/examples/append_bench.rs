//! Times appends to an empty conversation and to one of 50,000 events, and counts the bytes written.
//!
//! usage: append_bench DIRECTORY

#![expect(clippy::print_stdout, reason = "a bench prints its figures")]

use std::{error::Error, path::Path, time::Instant};

use jp_conversation::{ChatRequest, ChatResponse, Event, EventKind};
use jp_storage::{Store, Workspace, lock::TryLock};

const APPENDS: usize = 200;

fn main() -> Result<(), Box<dyn Error>> {
    let directory = std::env::args().nth(1).ok_or("usage: append_bench DIRECTORY")?;
    let root = Path::new(&directory).join("append");
    std::fs::create_dir_all(root.join(".jp"))?;
    let workspace = Workspace::open(&root, &root.join("data"), &root.join("cache"))?;
    let store = workspace.store();
    let empty = median(&store, 1)?;
    let long = median(&store, 50_000)?;
    println!(
        "append to an empty conversation {empty:.0} µs, to one of 50,000 events {long:.0} µs, ratio {:.2}",
        long / empty
    );
    Ok(())
}

/// Returns the median time of an append to a conversation of `events` events, in microseconds.
fn median(store: &Store, events: usize) -> Result<f64, Box<dyn Error>> {
    let now = "2026-11-21T12:00:00Z".parse()?;
    let event = |text: &str| Event::new(now, EventKind::ChatResponse(ChatResponse::message(text)));
    let mut writer = store.start(None, now, &[])?;
    let request = Event::new(now, EventKind::ChatRequest(ChatRequest::new("x")));
    let history = std::iter::once(request).chain((1..events).map(|_| event(&"word ".repeat(20))));
    writer.append(history.collect(), store.batch())?;
    let id = writer.id();
    drop(writer);

    let located = store.find(id)?.ok_or("it was just written")?;
    let TryLock::Acquired(lock) = store.try_lock(id)? else { return Err("nobody else has it".into()) };
    let mut writer = store.writer(&store.read(&located)?, lock);
    let mut times = Vec::new();
    for _ in 0..APPENDS {
        let start = Instant::now();
        writer.append(vec![event("one more")], store.batch())?;
        times.push(start.elapsed().as_secs_f64() * 1e6);
    }
    times.sort_by(f64::total_cmp);
    Ok(times[APPENDS / 2])
}
