//! Times attaching a directory, first with a store that hashes, then with one that knows every
//! file.
//!
//! `cargo run --release -p jp_attachment --example resolve_bench -- DIRECTORY [WORKERS]`
#![expect(clippy::print_stdout, reason = "this is a program")]

use std::{
    collections::HashMap,
    env,
    error::Error,
    fs,
    num::NonZeroUsize,
    path::Path,
    sync::Mutex,
    time::{Duration, Instant, SystemTime},
};

use jp_attachment::{
    ContentStore, Context, FileStamp, Limits, Place, StoredFile, canonical_path, parse_input,
    resolve,
};
use jp_resource::{BlobRef, ResourceContent};

#[derive(Default)]
struct Hashing {
    known: Mutex<HashMap<FileStamp, StoredFile>>,
}

impl ContentStore for Hashing {
    fn lookup(&self, file: &FileStamp) -> Option<StoredFile> {
        self.known.lock().ok()?.get(file).cloned()
    }

    fn keep(
        &self,
        content: &ResourceContent,
        mime_type: &str,
        file: Option<&FileStamp>,
    ) -> Result<BlobRef, Box<dyn Error + Send + Sync>> {
        let blob = content.blob_ref();
        if let (Some(file), Ok(mut known)) = (file, self.known.lock()) {
            known.insert(
                file.clone(),
                StoredFile {
                    blob,
                    mime_type: mime_type.to_owned(),
                },
            );
        }
        Ok(blob)
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let directory = arguments
        .next()
        .ok_or("usage: resolve_bench DIRECTORY [WORKERS]")?;
    let root = canonical_path(Path::new(&directory))?;
    let place = Place::new(root);
    let store = Hashing::default();
    let mut context = Context::new(&place, &store, SystemTime::now() + Duration::from_secs(3));
    context.limits = Limits {
        max_bytes: u64::MAX,
        max_total_bytes: u64::MAX,
        max_files: usize::MAX,
    };
    if let Some(workers) = arguments.next() {
        context.workers = workers.parse::<NonZeroUsize>()?;
    }
    for (label, forget) in [
        ("read", true),
        ("read", true),
        ("read", true),
        ("known", false),
        ("known", false),
    ] {
        if forget {
            store.known.lock().map_err(|_| "poisoned")?.clear();
        }
        let start = Instant::now();
        let declared = parse_input(".", &place)?;
        let totals = resolve(&[declared], &context)?.totals;
        let (files, megabytes) = (totals.files, totals.bytes / 1_000_000);
        println!(
            "{label:5}: {files} files, {megabytes} MB in {:.1?} ({} known)",
            start.elapsed(),
            totals.known
        );
    }
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    println!(
        "{}",
        status
            .lines()
            .find(|line| line.starts_with("VmHWM"))
            .unwrap_or("no peak known")
    );
    Ok(())
}
