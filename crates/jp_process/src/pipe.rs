//! Pipes and terminals: read and written on threads, so that a program can't block jp.

use std::{
    io::{self, Read, Write},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        mpsc::{Receiver, Sender, channel},
    },
    thread,
    time::Instant,
};

use crate::{BoundedOutput, grace};

/// Bytes that are read at once: the size of a pipe on Linux.
const CHUNK: usize = 64 * 1024;

/// Runs something on a thread that is never joined: a process that left its group may hold a pipe
/// open for as long as it likes.
pub fn detach(run: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let thread = thread::Builder::new().name("program pipe".into());
    thread.spawn(run).map(drop)
}

/// Reads to the end, or until `take` returns false.
pub fn read_chunks(mut pipe: impl Read, mut take: impl FnMut(&[u8]) -> bool) -> io::Result<()> {
    let mut buffer = vec![0; CHUNK];
    loop {
        match pipe.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(length) if !take(&buffer[..length]) => return Ok(()),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// A program's input. Dropping it closes the input once everything sent is written.
#[derive(Debug)]
pub struct InputQueue(Sender<Vec<u8>>);

impl InputQueue {
    /// Creates a queue whose bytes are written into a pipe on a thread.
    pub fn new(pipe: impl Write + Send + 'static) -> io::Result<Self> {
        let (queue, sent) = channel();
        detach(move || write_all(pipe, &sent))?;
        Ok(Self(queue))
    }

    /// Sends bytes without waiting until the program reads them. If it never does, whatever waits
    /// for its answer finds that out.
    pub fn send(&self, bytes: Vec<u8>) {
        _ = self.0.send(bytes);
    }
}

fn write_all(mut pipe: impl Write, sent: &Receiver<Vec<u8>>) {
    while let Ok(bytes) = sent.recv() {
        // A program may close its input without having read it.
        if pipe.write_all(&bytes).and_then(|()| pipe.flush()).is_err() {
            return;
        }
    }
}

/// The end of what a program writes to stderr; the rest is dropped as it comes.
#[derive(Debug)]
pub struct StderrTail(Arc<Mutex<Tail>>);

#[derive(Debug)]
struct Tail {
    output: BoundedOutput,
    is_complete: bool,
}

impl StderrTail {
    /// Reads from a pipe on a thread, and keeps the last `bytes`.
    pub fn new(pipe: impl Read + Send + 'static, bytes: usize) -> io::Result<Self> {
        let tail = Arc::new(Mutex::new(Tail {
            output: BoundedOutput::last(bytes),
            is_complete: false,
        }));
        let writer = Arc::clone(&tail);
        detach(move || {
            _ = read_chunks(pipe, |bytes| {
                lock(&writer).output.push(bytes);
                true
            });
            lock(&writer).is_complete = true;
        })?;
        Ok(Self(tail))
    }

    /// Returns the text so far, trimmed.
    #[must_use]
    pub fn text(&self) -> String {
        let bytes = lock(&self.0).output.clone().into_bytes();
        String::from_utf8_lossy(&bytes).trim().to_owned()
    }

    /// Returns the text of a program that has ended, trimmed; waits for the last words for at most
    /// [`grace::OUTPUT_AND_EXIT`].
    #[must_use]
    pub fn final_text(&self) -> String {
        let started = Instant::now();
        while !lock(&self.0).is_complete && started.elapsed() < grace::OUTPUT_AND_EXIT {
            thread::sleep(grace::TICK);
        }
        self.text()
    }
}

fn lock(tail: &Mutex<Tail>) -> MutexGuard<'_, Tail> {
    tail.lock().unwrap_or_else(PoisonError::into_inner)
}
