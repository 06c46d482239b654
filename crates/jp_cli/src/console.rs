//! The terminal as the person that a session meets.

mod call;

use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use jp_session::{
    Interrupt, SessionError,
    notice::{Level, Notice},
    person::{Answer, Person, Question, Shown},
    text::visible,
};

use crate::{
    environment::Environment,
    error::Failure,
    notices::{self, Words},
    output::{Output, Tone},
    prompt,
    signals::SignalListener,
    terminal::{Extent, Terminal, Typed, quote},
};

/// How many characters are shown of how far a call is: less than a row.
const PROGRESS_CHARACTERS: usize = 70;

/// The terminal, whether anyone sits at it or not.
#[derive(Debug)]
pub(crate) struct Console {
    pub(crate) output: Output,
    pub(crate) stdin_is_terminal: bool,
    pub(crate) stderr_is_terminal: bool,
    /// What the user edits text with, a command line.
    pub(crate) editor: Option<String>,
    signals: OnceLock<SignalListener>,
    screen: Mutex<Screen>,
}

/// What is on the screen.
#[derive(Debug, Default)]
struct Screen {
    /// Whether a line of the answer is open.
    has_open_line: bool,
    /// Whether reasoning was shown last.
    is_reasoning: bool,
    /// Whether the last line says how far a call is.
    has_call_progress: bool,
}

impl Console {
    pub(crate) fn new(environment: &Environment, output: Output) -> Self {
        Self {
            output,
            stdin_is_terminal: environment.stdin_is_terminal,
            stderr_is_terminal: environment.stderr_is_terminal,
            editor: environment.editor.clone(),
            signals: OnceLock::new(),
            screen: Mutex::default(),
        }
    }

    /// Listens for signals from the first call on.
    pub(crate) fn signals(&self) -> &SignalListener {
        self.signals.get_or_init(SignalListener::start)
    }

    /// Returns what knows of an interrupt.
    pub(crate) fn interrupt(&self) -> Interrupt {
        self.signals().interrupt.clone()
    }

    fn screen(&self) -> MutexGuard<'_, Screen> {
        self.screen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn try_show(&self, shown: Shown<'_>) -> Result<(), Failure> {
        let (output, screen) = (&self.output, &mut *self.screen());
        if !matches!(shown, Shown::CallProgress(_)) {
            screen.clear_call_progress(output);
        }
        match shown {
            Shown::Text(_) if output.is_json() => {}
            Shown::Text(text) => {
                screen.end_reasoning(output);
                screen.has_open_line = !text.ends_with('\n');
                output.text(text)?;
            }
            Shown::Reasoning(text) => {
                screen.is_reasoning = true;
                output.reasoning(text);
            }
            Shown::Progress(line) => output.progress(line),
            Shown::CallProgress(line) => screen.show_call_progress(line, output)?,
            Shown::Call {
                request,
                edited,
                response,
            } => {
                screen.end_reasoning(output);
                screen.end_line(output)?;
                output.status(&call::describe_call(request, edited, response));
            }
            Shown::Blocks { tool, blocks } => {
                screen.make_room(output)?;
                prompt::show_blocks(tool, blocks, self);
            }
            Shown::UserOnly { tool, blocks } => {
                screen.make_room(output)?;
                prompt::show_to_user(tool, blocks, output);
            }
            Shown::End => screen.end_line(output)?,
        }
        Ok(())
    }

    /// Begins a line of its own for a prompt.
    fn make_room(&self) {
        let mut screen = self.screen();
        screen.clear_call_progress(&self.output);
        // What can't be written shows again with the next piece of the answer.
        _ = screen.make_room(&self.output);
    }
}

impl Person for Console {
    fn ask(&self, question: Question<'_>) -> Option<Answer> {
        if !matches!(question, Question::Presence) {
            self.make_room();
        }
        match question {
            Question::Presence => Terminal::open(self).map(|_| Answer::Yes),
            Question::Confirm {
                intro,
                details,
                question,
            } => {
                let terminal = Terminal::open(self)?;
                intro
                    .iter()
                    .for_each(|line| terminal.tell(Tone::Plain, line));
                for line in details {
                    // One line stays one: none of it passes for another.
                    quote(&terminal, &visible(line), Extent::Whole, |_| Tone::Plain);
                }
                Some(terminal.confirm(question))
            }
            Question::Line { intro, prompt } => {
                let terminal = Terminal::open(self)?;
                intro
                    .iter()
                    .for_each(|line| terminal.tell(Tone::Plain, line));
                Some(match terminal.ask(prompt) {
                    Typed::Line(line) => Answer::Line(line),
                    Typed::Nothing => Answer::Nothing,
                    Typed::Interrupted => Answer::Interrupted,
                })
            }
            Question::Permission {
                request,
                approvable,
            } => prompt::permit(request, approvable, self),
            Question::Tool(question) => prompt::answer(question, self).map(Answer::Reply),
        }
    }

    fn tell(&self, notice: Notice) {
        self.screen().clear_call_progress(&self.output);
        let Words { lines, hints } = notices::find_words(&notice);
        for line in &lines {
            match notice.level() {
                Level::Warning => self.output.warn(line),
                Level::Status => self.output.status(line),
                Level::Detail => self.output.detail(line),
            }
        }
        hints.iter().for_each(|hint| self.output.hint(hint));
    }

    fn show(&self, shown: Shown<'_>) -> Result<(), SessionError> {
        self.try_show(shown).map_err(SessionError::from)
    }
}

impl Screen {
    /// Begins a line of its own for what isn't part of the answer.
    fn make_room(&mut self, output: &Output) -> Result<(), Failure> {
        self.end_reasoning(output);
        if self.has_open_line && output.end_line_on_screen()? {
            self.has_open_line = false;
        }
        Ok(())
    }

    fn end_reasoning(&mut self, output: &Output) {
        if std::mem::take(&mut self.is_reasoning) {
            output.reasoning("\n\n");
        }
    }

    fn end_line(&mut self, output: &Output) -> Result<(), Failure> {
        match std::mem::take(&mut self.has_open_line) {
            true => output.line(""),
            false => Ok(()),
        }
    }

    /// Shows how far a call is, in the place of what was shown of it before.
    fn show_call_progress(&mut self, line: &str, output: &Output) -> Result<(), Failure> {
        if output.shows_progress() {
            self.make_room(output)?;
            self.has_call_progress = true;
            let shown: String = visible(line).chars().take(PROGRESS_CHARACTERS).collect();
            output.progress(&shown);
        }
        Ok(())
    }

    fn clear_call_progress(&mut self, output: &Output) {
        if std::mem::take(&mut self.has_call_progress) {
            output.progress("");
        }
    }
}
