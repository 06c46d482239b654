//! Waiting for servers while a person watches.

use std::{
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc::{self, RecvTimeoutError},
    },
    thread,
    time::Duration,
};

use jp_mcp::{Caller, Elicitation, Elicited, LogMessage, Progress};

use crate::output::{Output, one_line};

/// How long something may take before it is shown that it does, and how often that is said anew.
const PATIENCE: Duration = Duration::from_millis(500);
const REDRAW: Duration = Duration::from_millis(100);
const SPINNER: [&str; 4] = ["|", "/", "-", "\\"];

/// The line that says what is waited for, which is drawn anew and cleared in the end.
pub(crate) struct Watched<'a> {
    output: &'a Output,
    line: Mutex<Line>,
}

struct Line {
    text: String,
    is_drawn: bool,
}

/// The person, as a server meets them.
pub(crate) struct Person<'a> {
    pub(crate) server: &'a str,
    pub(crate) cancelled: &'a AtomicBool,
    pub(crate) watched: &'a Watched<'a>,
}

impl Caller for Person<'_> {
    fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    /// Declines: nobody is asked here yet.
    fn asked(&self, elicitation: &Elicitation) -> Elicited {
        let (Elicitation::Form { message, .. } | Elicitation::Url { message, .. }) = elicitation;
        let told =
            format!("the MCP server `{}` asks, and is not answered: {}", self.server, one_line(message, 200));
        self.watched.say(|output| output.warn(&told));
        Elicited::Decline
    }

    fn progressed(&self, progress: &Progress) {
        self.watched.line().text = format!("{}: {}", self.server, one_line(&progress.to_string(), 200));
    }

    fn logged(&self, message: &LogMessage) {
        let told = format!("{}: {}", self.server, one_line(&message.to_string(), 500));
        self.watched.say(|output| output.detail(&told));
    }
}

impl Watched<'_> {
    /// Says something while the line may be there.
    fn say(&self, say: impl FnOnce(&Output)) {
        let mut line = self.line();
        self.clear(&mut line);
        say(self.output);
    }

    fn draw(&self, sign: &str) {
        let mut line = self.line();
        // What goes on in a second row would stay there.
        self.output.progress(&format!("{sign} {} …", one_line(&line.text, 70)));
        line.is_drawn = true;
    }

    fn clear(&self, line: &mut Line) {
        if std::mem::take(&mut line.is_drawn) {
            self.output.progress("");
        }
    }

    fn line(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Does something that may take long; what takes more than half a second is shown while it goes on.
pub(crate) fn watched<T>(output: &Output, what: &str, work: impl FnOnce(&Watched<'_>) -> T) -> T {
    let watched = Watched { output, line: Mutex::new(Line { text: what.to_owned(), is_drawn: false }) };
    if !output.shows_progress() {
        return work(&watched);
    }
    thread::scope(|scope| {
        let (done, is_done) = mpsc::channel::<()>();
        scope.spawn(|| spin(&watched, is_done));
        let result = work(&watched);
        drop(done);
        result
    })
}

/// Draws the line until the other end of `is_done` is dropped.
fn spin(watched: &Watched<'_>, is_done: mpsc::Receiver<()>) {
    let goes_on = |wait| is_done.recv_timeout(wait) == Err(RecvTimeoutError::Timeout);
    if !goes_on(PATIENCE) {
        return;
    }
    for sign in SPINNER.iter().cycle() {
        watched.draw(sign);
        if !goes_on(REDRAW) {
            break;
        }
    }
    watched.clear(&mut watched.line());
}
