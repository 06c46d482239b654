//! Waiting for servers while a person watches.

use std::{
    panic,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc::{self, RecvTimeoutError},
    },
    thread,
    time::Duration,
};

use jp_mcp::{Caller, Elicitation, Elicited, LogMessage, Progress};

use crate::{
    output::{Output, one_line},
    workspace::Context,
};

/// How long something may take before it is shown that it does, and how often that is said anew.
const PATIENCE: Duration = Duration::from_millis(500);
const REDRAW: Duration = Duration::from_millis(100);
const SPINNER: [&str; 4] = ["|", "/", "-", "\\"];

/// The line that says what is waited for, which is drawn anew and cleared in the end.
struct Line<'a> {
    output: &'a Output,
    text: Mutex<String>,
}

/// The person, as a server meets them.
pub(crate) struct Person<'a> {
    server: &'a str,
    cancelled: &'a AtomicBool,
    line: &'a Line<'a>,
}

impl Caller for Person<'_> {
    fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    /// Declines: nobody is asked here yet.
    fn asked(&self, elicitation: &Elicitation) -> Elicited {
        let (Elicitation::Form { message, .. } | Elicitation::Url { message, .. }) = elicitation;
        self.line.output.warn(&format!(
            "the MCP server `{}` asks, and is not answered: {}",
            self.server,
            one_line(message, 200)
        ));
        Elicited::Decline
    }

    fn progressed(&self, progress: &Progress) {
        *self.line.text() = format!("{}: {}", self.server, one_line(&progress.to_string(), 200));
    }

    fn logged(&self, message: &LogMessage) {
        tell_log(self.line.output, self.server, message);
    }
}

/// Says with `-v` what a server logs.
pub(super) fn tell_log(output: &Output, server: &str, message: &LogMessage) {
    output.detail(&format!("{server}: {}", one_line(&message.to_string(), 500)));
}

impl Line<'_> {
    fn draw(&self, sign: &str) {
        // What goes on in a second row would stay there.
        self.output.progress(&format!("{sign} {} …", one_line(&self.text(), 70)));
    }

    fn text(&self) -> MutexGuard<'_, String> {
        self.text.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Does something with each of several servers, all at once; returns what came of it in their order.
///
/// What takes more than half a second is shown while it goes on.
pub(crate) fn with_each<T: Send>(
    context: &Context<'_>,
    servers: &[&str],
    what: &str,
    work: impl Fn(&str, &Person<'_>) -> T + Sync,
) -> Vec<T> {
    let cancelled = context.interrupt().flag();
    let line = Line { output: context.output, text: Mutex::new(what.to_owned()) };
    let work = |server: &&str| work(server, &Person { server, cancelled, line: &line });
    watched(&line, || at_once(servers, work))
}

/// Does something with a server; what takes more than half a second is shown while it goes on.
pub(crate) fn with<T>(
    context: &Context<'_>,
    server: &str,
    what: &str,
    work: impl FnOnce(&Person<'_>) -> T,
) -> T {
    let line = Line { output: context.output, text: Mutex::new(what.to_owned()) };
    let person = Person { server, cancelled: context.interrupt().flag(), line: &line };
    watched(&line, || work(&person))
}

/// Does something for each, on a thread each; returns what came of it in their order.
fn at_once<I: Sync, T: Send>(items: &[I], work: impl Fn(&I) -> T + Sync) -> Vec<T> {
    thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = items.iter().map(|item| scope.spawn(move || work(item))).collect();
        let done = threads.into_iter().map(thread::ScopedJoinHandle::join);
        done.map(|done| done.unwrap_or_else(|panicked| panic::resume_unwind(panicked))).collect()
    })
}

fn watched<T>(line: &Line<'_>, work: impl FnOnce() -> T) -> T {
    if !line.output.shows_progress() {
        return work();
    }
    thread::scope(|scope| {
        let (done, is_done) = mpsc::channel::<()>();
        scope.spawn(move || spin(line, &is_done));
        let result = work();
        drop(done);
        result
    })
}

/// Draws the line until the other end of `is_done` is dropped.
fn spin(line: &Line<'_>, is_done: &mpsc::Receiver<()>) {
    let goes_on = |wait| is_done.recv_timeout(wait) == Err(RecvTimeoutError::Timeout);
    if !goes_on(PATIENCE) {
        return;
    }
    for sign in SPINNER.iter().cycle() {
        line.draw(sign);
        if !goes_on(REDRAW) {
            break;
        }
    }
    line.output.progress("");
}
