//! Times appends to an empty conversation and to one of 50,000 events, and counts the bytes written.
//!
//! usage: append_bench DIRECTORY

#![expect(clippy::print_stdout, reason = "a bench prints its figures")]

use std::{error::Error, path::Path, time::Instant};

use jp_conversation::{ChatRequest, ChatResponse, Event, EventKind};
use jp_storage::{Store, Workspace, Writer, lock::TryLock};

const NOW: &str = "2026-11-21T12:00:00Z";
const APPENDS: usize = 200;

fn main() -> Result<(), Box<dyn Error>> {
    let directory = std::env::args()
        .nth(1)
        .ok_or("usage: append_bench DIRECTORY")?;
    let root = Path::new(&directory).join("append");
    std::fs::create_dir_all(root.join(".jp"))?;
    let workspace = Workspace::open(&root, &root.join("data"), &root.join("cache"))?;
    let store = workspace.store();
    let mut writers = [writer(&store, 1)?, writer(&store, 50_000)?];
    let mut times = [Vec::new(), Vec::new()];
    // In turn, so that what else the disk does meets both.
    for _ in 0..APPENDS {
        for (writer, times) in writers.iter_mut().zip(&mut times) {
            let start = Instant::now();
            writer.append(vec![event("one more")?], store.batch())?;
            times.push(start.elapsed().as_secs_f64() * 1e6);
        }
    }
    let [empty, long] = times.map(|mut times| {
        times.sort_by(f64::total_cmp);
        times[APPENDS / 2]
    });
    println!(
        "append to an empty conversation {empty:.0} µs, to one of 50,000 events {long:.0} µs, ratio {:.2}",
        long / empty
    );
    Ok(())
}

/// Returns what appends to a conversation of `events` events that was opened again.
fn writer(store: &Store, events: usize) -> Result<Writer, Box<dyn Error>> {
    let request = Event::new(NOW.parse()?, EventKind::ChatRequest(ChatRequest::new("x")));
    let mut history = vec![request];
    for _ in 1..events {
        history.push(event(&"word ".repeat(20))?);
    }
    let mut writer = store.start(None, NOW.parse()?, &[])?;
    writer.append(history, store.batch())?;
    let id = writer.id();
    drop(writer);

    let located = store.find(id)?.ok_or("it was just written")?;
    let TryLock::Acquired(lock) = store.try_lock(id)? else {
        return Err("nobody else has it".into());
    };
    Ok(store.writer(&store.read(&located)?, lock))
}

fn event(text: &str) -> Result<Event, Box<dyn Error>> {
    Ok(Event::new(
        NOW.parse()?,
        EventKind::ChatResponse(ChatResponse::message(text)),
    ))
}
