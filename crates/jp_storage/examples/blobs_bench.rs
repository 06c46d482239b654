//! Measures the blob store on a tree of files.
//!
//! `blobs_bench put TREE STORE` attaches every file below TREE with two threads; a second run finds
//! all of them stored. `blobs_bench read STORE` reads everything back. Take a fresh STORE each time:
//! file systems are slow for a while after many files were removed.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a program to run by hand"
)]

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    thread,
    time::{Duration, Instant},
};

use jp_resource::{BlobRef, Encoding};
use jp_storage::{Batch, Blobs};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["put", tree, store] => put(Path::new(tree), &Blobs::open(store)),
        ["read", store] => read(&Blobs::open(store)),
        _ => println!("usage: blobs_bench put TREE STORE | read STORE"),
    }
}

fn put(tree: &Path, blobs: &Blobs) {
    let start = Instant::now();
    let mut files = Vec::new();
    walk(tree, &mut files);
    report("walk", start.elapsed());

    let start = Instant::now();
    let batch = blobs.batch();
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| put_some(&batch, &files, &next));
        }
    });
    report("put", start.elapsed());

    let start = Instant::now();
    let committed = batch.commit().unwrap();
    report("commit", start.elapsed());
    println!("{committed:?}, peak {}", peak_memory());
}

fn put_some(batch: &Batch, files: &[PathBuf], next: &AtomicUsize) {
    while let Some(path) = files.get(next.fetch_add(1, Relaxed)) {
        batch.put(&fs::read(path).unwrap(), Encoding::Utf8).unwrap();
    }
}

fn read(blobs: &Blobs) {
    let start = Instant::now();
    let refs: Vec<BlobRef> = blobs
        .iter()
        .unwrap()
        .map(|file| blob_ref(blobs, file.unwrap().path))
        .collect();
    report("list", start.elapsed());

    let start = Instant::now();
    let mut bytes = 0;
    for content in blobs.read_ahead(refs, Arc::default()) {
        bytes += content.unwrap().as_bytes().len();
    }
    report("read", start.elapsed());
    println!("{bytes} bytes, peak {}", peak_memory());
}

fn blob_ref(blobs: &Blobs, path: PathBuf) -> BlobRef {
    let file = fs::read(&path).unwrap();
    let size = u32::from_le_bytes(*file.last_chunk().unwrap()).into();
    let digits: String = path
        .strip_prefix(blobs.directory())
        .unwrap()
        .to_str()
        .unwrap()
        .replace('/', "");
    let checksum = digits.strip_suffix(".blob.gz").unwrap().parse().unwrap();
    BlobRef {
        checksum,
        size,
        encoding: Encoding::Utf8,
    }
}

fn walk(directory: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_dir() {
            walk(&entry.path(), files);
        } else {
            files.push(entry.path());
        }
    }
}

fn report(what: &str, elapsed: Duration) {
    println!("{what:>8} {:7.1} ms", elapsed.as_secs_f64() * 1000.0);
}

/// Reads the peak of resident memory, where the system tells.
fn peak_memory() -> String {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    line.map_or("unknown", |line| line["VmHWM:".len()..].trim())
        .to_owned()
}
