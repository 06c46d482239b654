//! Waiting for servers while a person watches.

use std::{
    panic,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use crate::{
    notice::Notice, person::Person, progress::with_progress, session::Session, text::one_line,
};
use jp_mcp::{Caller, Elicitation, Elicited, LogMessage, Progress};

const SPINNER: [&str; 4] = ["|", "/", "-", "\\"];

/// The line that says what is waited for, which is drawn anew and cleared in the end.
struct Line<'a> {
    session: &'a Session,
    text: Mutex<String>,
}

/// The person, as a server meets them.
pub(crate) struct PersonAtServer<'a> {
    server: &'a str,
    cancelled: &'a AtomicBool,
    line: &'a Line<'a>,
}

impl Caller for PersonAtServer<'_> {
    fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    /// Declines: nobody is asked here yet.
    fn asked(&self, elicitation: &Elicitation) -> Elicited {
        let (Elicitation::Form { message, .. } | Elicitation::Url { message, .. }) = elicitation;
        self.line.session.person.tell(Notice::ServerAsks {
            server: self.server.to_owned(),
            message: message.clone(),
        });
        Elicited::Decline
    }

    fn progressed(&self, progress: &Progress) {
        *self.line.text() = format!("{}: {}", self.server, one_line(&progress.to_string(), 200));
    }

    fn logged(&self, message: &LogMessage) {
        tell_log(&*self.line.session.person, self.server, message);
    }
}

/// Says with `-v` what a server logs.
pub(crate) fn tell_log(person: &dyn Person, server: &str, message: &LogMessage) {
    person.tell(Notice::ServerLog {
        server: server.to_owned(),
        message: message.to_string(),
    });
}

impl Line<'_> {
    /// Returns the line, cut to fit one row: a second row would not be cleared.
    fn render(&self, sign: &str) -> String {
        format!("{sign} {} …", one_line(&self.text(), 70))
    }

    fn text(&self) -> MutexGuard<'_, String> {
        self.text.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Does something with each of several servers, all at once; returns what came of it in their order.
///
/// What takes more than half a second is shown while it goes on.
pub(crate) fn with_each<T: Send>(
    session: &Session,
    servers: &[&str],
    what: &str,
    work: impl Fn(&str, &PersonAtServer<'_>) -> T + Sync,
) -> Vec<T> {
    let cancelled = session.interrupt().flag();
    let line = Line {
        session,
        text: Mutex::new(what.to_owned()),
    };
    let work = |server: &&str| {
        work(
            server,
            &PersonAtServer {
                server,
                cancelled,
                line: &line,
            },
        )
    };
    spin_during(&line, || at_once(servers, work))
}

/// Does something with a server; what takes more than half a second is shown while it goes on.
pub(crate) fn with<T>(
    session: &Session,
    server: &str,
    what: &str,
    work: impl FnOnce(&PersonAtServer<'_>) -> T,
) -> T {
    let line = Line {
        session,
        text: Mutex::new(what.to_owned()),
    };
    let person = PersonAtServer {
        server,
        cancelled: session.interrupt().flag(),
        line: &line,
    };
    spin_during(&line, || work(&person))
}

/// Does something for each, on a thread each; returns what came of it in their order.
fn at_once<I: Sync, T: Send>(items: &[I], work: impl Fn(&I) -> T + Sync) -> Vec<T> {
    thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = items
            .iter()
            .map(|item| scope.spawn(move || work(item)))
            .collect();
        let done = threads.into_iter().map(thread::ScopedJoinHandle::join);
        done.map(|done| done.unwrap_or_else(|panicked| panic::resume_unwind(panicked)))
            .collect()
    })
}

/// Does some work; shows the line with a spinner if that takes long.
fn spin_during<T>(line: &Line<'_>, work: impl FnOnce() -> T) -> T {
    let mut signs = SPINNER.iter().cycle();
    with_progress(
        line.session,
        || line.render(signs.next().unwrap_or(&"")),
        work,
    )
}
