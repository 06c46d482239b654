//! Shows progress while jp waits for servers.

use std::sync::{
    Mutex, MutexGuard, PoisonError,
    atomic::{AtomicBool, Ordering},
};

use crate::{
    notice::Notice, parallel::run_in_parallel, person::Person, progress::with_progress,
    session::Session, text::one_line,
};
use jp_mcp::{Caller, Elicitation, Elicited, LogMessage, Progress};

/// The frames of the spinner.
const SPINNER: [&str; 4] = ["|", "/", "-", "\\"];

/// The status line: it names what jp waits for, is drawn again for each update and is cleared in the end.
struct StatusLine<'a> {
    session: &'a Session,
    text: Mutex<String>,
}

/// A caller that shows the server's progress and log to the user.
pub(crate) struct ProgressCaller<'a> {
    server: &'a str,
    cancelled: &'a AtomicBool,
    line: &'a StatusLine<'a>,
}

impl Caller for ProgressCaller<'_> {
    fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    /// Declines, because no prompt can interrupt the status line.
    fn answer(&self, elicitation: &Elicitation) -> Elicited {
        let (Elicitation::Form { message, .. } | Elicitation::Url { message, .. }) = elicitation;
        self.line.session.person.tell(Notice::ServerAsks {
            server: self.server.to_owned(),
            message: message.clone(),
        });
        Elicited::Decline
    }

    fn report_progress(&self, progress: &Progress) {
        // `render` cuts the line again, but the server's text shouldn't be kept whole until then.
        *self.line.text() = format!("{}: {}", self.server, one_line(&progress.to_string(), 200));
    }

    fn report_log(&self, message: &LogMessage) {
        tell_log(&*self.line.session.person, self.server, message);
    }
}

/// Shows a log message of a server, if the user wants them (`-v`).
pub(crate) fn tell_log(person: &dyn Person, server: &str, message: &LogMessage) {
    person.tell(Notice::ServerLog {
        server: server.to_owned(),
        message: message.to_string(),
    });
}

impl StatusLine<'_> {
    /// Returns the line, cut to fit one row of 80 columns, because a second row would not be cleared.
    fn render(&self, sign: &str) -> String {
        format!("{sign} {} …", one_line(&self.text(), 70))
    }

    fn caller<'a>(&'a self, server: &'a str) -> ProgressCaller<'a> {
        ProgressCaller {
            server,
            cancelled: self.session.interrupt().flag(),
            line: self,
        }
    }

    fn text(&self) -> MutexGuard<'_, String> {
        self.text.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Does some work with each server, all at once, and returns the results in their order. Shows progress if it takes long.
pub(crate) fn with_each_server<T: Send>(
    session: &Session,
    servers: &[&str],
    what: &str,
    work: impl Fn(&str, &ProgressCaller<'_>) -> T + Sync,
) -> Vec<T> {
    with_status_line(session, what, |line| {
        run_in_parallel(servers, |server| work(server, &line.caller(server)))
    })
}

/// Does some work with a server. Shows progress if it takes long.
pub(crate) fn with_server<T>(
    session: &Session,
    server: &str,
    what: &str,
    work: impl FnOnce(&ProgressCaller<'_>) -> T,
) -> T {
    with_status_line(session, what, |line| work(&line.caller(server)))
}

/// Does some work, and shows the line with a spinner if it takes long.
fn with_status_line<T>(
    session: &Session,
    what: &str,
    work: impl FnOnce(&StatusLine<'_>) -> T,
) -> T {
    let line = StatusLine {
        session,
        text: Mutex::new(what.to_owned()),
    };
    let mut signs = SPINNER.iter().cycle();
    with_progress(
        session,
        || line.render(signs.next().unwrap_or(&"")),
        || work(&line),
    )
}
