//! The console: it asks, tells and shows for a session.

mod call;

use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use jp_session::{
    Interrupt,
    notice::{Level, Notice},
    person::{Answer, Person, Question, Shown},
    text::visible,
};

use crate::{
    environment::Environment,
    error::SessionError,
    notices::{self, Words},
    output::{Output, Tone},
    prompt,
    signals::SignalListener,
    terminal::{Extent, Terminal, Typed, quote},
};

/// Longest progress of a call that is shown, in characters. It fits in a row of 80 columns, because only the last row can be
/// replaced.
const PROGRESS_CHARACTERS: usize = 70;

/// Standard output, standard error and the terminal, if there is one.
#[derive(Debug)]
pub(crate) struct Console {
    pub(crate) output: Output,
    stdin_is_terminal: bool,
    stderr_is_terminal: bool,
    /// The command line of the user's editor.
    editor: Option<String>,
    signals: OnceLock<SignalListener>,
    screen: Mutex<Screen>,
}

/// The state of the screen.
#[derive(Debug, Default)]
struct Screen {
    /// Set while the answer's last line has no end.
    has_open_line: bool,
    /// Set if the last text was reasoning.
    is_reasoning: bool,
    /// Set while the last line shows the progress of a call.
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

    /// Opens the terminal for prompts.
    fn open_terminal(&self) -> Option<Terminal<'_>> {
        Terminal::open(
            self.stdin_is_terminal,
            self.stderr_is_terminal,
            &self.output,
            || self.signals(),
            self.editor.as_deref(),
        )
    }

    /// Returns the listener for signals. The first call starts it.
    fn signals(&self) -> &SignalListener {
        self.signals.get_or_init(SignalListener::start)
    }

    /// Returns the interrupt that Ctrl-C sets.
    pub(crate) fn interrupt(&self) -> Interrupt {
        self.signals().interrupt.clone()
    }

    fn screen(&self) -> MutexGuard<'_, Screen> {
        self.screen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn try_show(&self, shown: Shown<'_>) -> Result<(), SessionError> {
        let (output, screen) = (&self.output, &mut *self.screen());
        if !matches!(shown, Shown::CallProgress(_)) {
            screen.clear_call_progress(output);
        }
        match shown {
            // The JSON document contains the text.
            Shown::Text(_) if output.is_json() => {}
            Shown::Text(text) => {
                // An empty line separates the reasoning from the answer.
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
                // The user has just answered at this terminal, so it opens again.
                if let Some(terminal) = self.open_terminal() {
                    prompt::show_blocks(tool, blocks, &terminal);
                }
            }
            Shown::UserOnly { tool, blocks } => {
                screen.make_room(output)?;
                prompt::show_to_user(tool, blocks, output);
            }
            Shown::End => screen.end_line(output)?,
        }
        Ok(())
    }

    /// Starts a new line for a prompt.
    fn make_room(&self) {
        let mut screen = self.screen();
        screen.clear_call_progress(&self.output);
        // If stdout fails, writing the next part of the answer reports it.
        _ = screen.make_room(&self.output);
    }
}

impl Person for Console {
    fn ask(&self, question: Question<'_>) -> Option<Answer> {
        if !matches!(question, Question::Presence) {
            self.make_room();
        }
        let terminal = &self.open_terminal()?;
        Some(match question {
            Question::Presence => Answer::Yes,
            Question::Confirm {
                intro,
                details,
                question,
            } => {
                intro
                    .iter()
                    .for_each(|line| terminal.tell(Tone::Plain, line));
                for line in details {
                    // `visible` escapes line ends, so that a part of a line can't pass for another line.
                    quote(terminal, &visible(line), Extent::Whole, |_| Tone::Plain);
                }
                terminal.confirm(question)
            }
            Question::Line { intro, prompt } => {
                intro
                    .iter()
                    .for_each(|line| terminal.tell(Tone::Plain, line));
                match terminal.ask(prompt) {
                    Typed::Line(line) => Answer::Line(line),
                    Typed::Nothing => Answer::Nothing,
                    Typed::Interrupted => Answer::Interrupted,
                }
            }
            Question::Permission {
                request,
                approvable,
            } => prompt::permit(request, approvable, terminal),
            Question::Tool(question) => Answer::Reply(prompt::ask_question(question, terminal)?),
        })
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
        self.try_show(shown)
    }
}

impl Screen {
    /// Starts a new line for output that is not part of the answer.
    fn make_room(&mut self, output: &Output) -> Result<(), SessionError> {
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

    fn end_line(&mut self, output: &Output) -> Result<(), SessionError> {
        match std::mem::take(&mut self.has_open_line) {
            true => output.line(""),
            false => Ok(()),
        }
    }

    /// Shows the progress of a call in place of its earlier progress.
    fn show_call_progress(&mut self, line: &str, output: &Output) -> Result<(), SessionError> {
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
