//! One call of a stateful tool, from what the model wants to the result.

use std::{
    collections::BTreeSet,
    path::PathBuf,
    process::ExitStatus,
    time::{Duration, Instant},
};

use jp_conversation::ToolCallRequest;
use jp_process::brief_program;
use jp_tool::{ContentBlock, InputRequest, Status, ToolResponse};
use serde_json::{Map, Value};

use super::{
    handles::Session,
    order::{self, Kind, Order},
    pending::Pending,
    process::LineProcess,
    reply::{LineReply, MAX_LINE},
};
use crate::{
    Action, Answerer, Parsed, Source, Stateful, Tool, Toolbox,
    line::Line,
    local, parse,
    question::{Asking, Told},
};

/// How often a tool may ask in one call.
const MAX_ROUNDS: usize = 100;
/// How long a process that is told to end may take to answer.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// How many lines that came unasked are left out, and how long that may take.
const MAX_UNASKED: usize = 1000;
const UNASKED: Duration = Duration::from_secs(1);
/// How much is shown of a line that is no response.
const MAX_SHOWN: usize = 500;

/// The result of a call, and where the process stands after it.
type Settled = (ToolResponse, Status);

/// One call.
pub(super) struct Interaction<'a> {
    pub(super) call: &'a ToolCallRequest,
    pub(super) stateful: &'a Stateful,
    pub(super) tool: &'a Tool,
    pub(super) order: &'a Order,
    pub(super) toolbox: &'a Toolbox,
    pub(super) line: &'a Line,
}

impl Interaction<'_> {
    /// Does what the model wants; whatever goes wrong is in the result.
    pub(super) fn run(&self) -> ToolResponse {
        let Order { action, handle, .. } = self.order;
        let (handles, name) = (&self.toolbox.handles, &self.tool.name);
        if let Some(directory) = &self.toolbox.surroundings.handles {
            handles.adopt(directory);
        }
        let result = match action {
            Action::Spawn => {
                handles.spawn(name, handle, || self.start(), |session| self.spawn(session))
            }
            Action::Fetch => handles.with(name, handle, |session| self.fetch(session)),
            Action::Apply => handles.with(name, handle, |session| self.apply(session)),
            Action::Abort => handles.with(name, handle, |session| self.abort(session)),
        };
        let (mut response, status) = match result {
            Ok(result) => result,
            Err(reason) => return ToolResponse::error([ContentBlock::text(reason)]),
        };
        response.status = Some(status);
        response.content.push(ContentBlock::text(format!(
            "Status of {handle:?}: {}.",
            status.name()
        )));
        response
    }

    fn start(&self) -> Result<LineProcess, String> {
        let command = order::command(self.tool, &self.order.input, &self.toolbox.surroundings)?;
        // Where it is looked for is this machine's alone.
        let program = match &self.tool.source {
            Source::Local(command) => {
                brief_program(&command.words[0], &self.toolbox.surroundings.root)
            }
            Source::Builtin(_) | Source::Server(_) => "jp".to_owned(),
        };
        let process = match self.stateful.keep {
            true => LineProcess::start_lasting(command, &self.directory()?),
            false => LineProcess::start(command),
        };
        process.map_err(|error| {
            format!(
                "`{}` can't be started, as {program:?} can't: {error}.",
                self.tool.name
            )
        })
    }

    /// Returns where a process that stays is to have its pipes; the error is for the model.
    fn directory(&self) -> Result<PathBuf, String> {
        let (name, handles) = (&self.tool.name, &self.toolbox.surroundings.handles);
        let is_plain =
            |character: char| character.is_ascii_alphanumeric() || "_-".contains(character);
        match handles {
            _ if cfg!(not(unix)) => Err(format!(
                "`{name}` is to outlive the turn, which takes Unix's named pipes."
            )),
            _ if !name.chars().all(is_plain) => Err(format!(
                "`{name}` is to outlive the turn, for which its name may have letters, digits, `_` and `-` only."
            )),
            None => Err(format!(
                "`{name}` is to outlive the turn, and this conversation has no place to keep it."
            )),
            // The handle alone could be `..`.
            Some(handles) => Ok(handles.join(format!("{name}={}", self.order.handle))),
        }
    }

    fn spawn(&self, session: &mut Session) -> Settled {
        self.exchange(session, Kind::Arguments, &self.order.input)
    }

    /// Takes what the process wrote meanwhile, or asks it.
    fn fetch(&self, session: &mut Session) -> Settled {
        match session.process.receive_ready() {
            Some(reply) => self.settle(session, reply),
            None if session.process.is_owed() => {
                let reply = self.reply(session);
                self.settle(session, reply)
            }
            None => self.exchange(session, Kind::Arguments, &self.order.input),
        }
    }

    fn apply(&self, session: &mut Session) -> Settled {
        let name = &self.tool.name;
        if session.process.is_owed() {
            let ways = self.ways(&[(Action::Fetch, "waits for its answer")]);
            return (
                error(format!(
                    "`{name}` has not answered the last call yet.{ways}"
                )),
                Status::Running,
            );
        }
        let left_out = self.left_out(&mut session.process);
        let (mut response, status) = self.applied(session);
        response.content.splice(0..0, left_out);
        (response, status)
    }

    fn applied(&self, session: &mut Session) -> Settled {
        match &session.pending {
            None => self.exchange(session, Kind::Arguments, &self.order.input),
            Some(Pending::Person) => {
                let ways = self.ways(&[
                    (Action::Fetch, "has them asked again"),
                    (Action::Abort, "ends it"),
                ]);
                let name = &self.tool.name;
                let reason =
                    format!("`{name}` waits for an answer that is not the model's to give.{ways}");
                (error(reason), Status::Waiting)
            }
            Some(Pending::Model { questions, held }) => match self.answers(questions, held) {
                Ok(answers) => self.exchange(session, Kind::Answers, &answers),
                Err(reason) => (error(reason), Status::Waiting),
            },
        }
    }

    /// Tells the process to end, gives it a moment to say something, and ends it.
    fn abort(&self, session: &mut Session) -> Settled {
        let process = &mut session.process;
        _ = self.left_out(process);
        let was_owed = process.is_owed();
        process.send(self.order.line(Kind::Arguments, &self.order.input));
        let mut reply = process.receive(LAST_WORDS, &|| self.line.is_cancelled());
        if was_owed && matches!(reply, LineReply::Line(_)) {
            // That was the answer to the call before.
            let last = process.receive(LAST_WORDS, &|| self.line.is_cancelled());
            if matches!(last, LineReply::Line(_)) {
                reply = last;
            }
        }
        end(session);
        let response = match reply {
            LineReply::Line(line) => self
                .parsed(&line, &mut session.told)
                .map_or_else(error, written_out),
            _ => ToolResponse::new([ContentBlock::text(format!(
                "`{}` gave no last answer and was ended.",
                self.tool.name
            ))]),
        };
        (response, Status::Stopped)
    }

    /// Sends a line and deals with the answer to it.
    fn exchange(&self, session: &mut Session, kind: Kind, sent: &Map<String, Value>) -> Settled {
        self.send(session, kind, sent);
        let reply = self.reply(session);
        self.settle(session, reply)
    }

    fn send(&self, session: &mut Session, kind: Kind, sent: &Map<String, Value>) {
        if matches!(kind, Kind::Answers) {
            session.pending = None;
        }
        session.process.send(self.order.line(kind, sent));
    }

    fn reply(&self, session: &mut Session) -> LineReply {
        session
            .process
            .receive(self.tool.timeout, &|| self.line.is_cancelled())
    }

    /// Makes the result of a reply, once all questions in it are answered that others than the model answer.
    fn settle(&self, session: &mut Session, mut reply: LineReply) -> Settled {
        for _ in 0..MAX_ROUNDS {
            let response = match self.response(session, reply) {
                Ok(response) => response,
                Err(settled) => return *settled,
            };
            session.pending = None;
            let has_questions = questions(&response).next().is_some();
            match response.status {
                Some(Status::Running | Status::Waiting) | None if has_questions => {}
                Some(Status::Running) => return (response, Status::Running),
                Some(Status::Waiting) => return (waits_for_nothing(response), Status::Running),
                Some(Status::Stopped) | None => {
                    end(session);
                    return (written_out(response), Status::Stopped);
                }
            }
            match self.answered(&response) {
                Ok(answers) => self.send(session, Kind::Answers, &answers),
                Err(unanswered) => {
                    let (pending, response) = *unanswered;
                    session.pending = Some(pending);
                    return (response, Status::Waiting);
                }
            }
            reply = self.reply(session);
        }
        session.pending = Some(Pending::Person);
        let reason = format!(
            "`{}` asked {MAX_ROUNDS} times in one call and was answered each time.",
            self.tool.name
        );
        (error(reason), Status::Waiting)
    }

    /// Answers the questions that the configuration or the person answers; the error is what is left for the model.
    fn answered(
        &self,
        response: &ToolResponse,
    ) -> Result<Map<String, Value>, Box<(Pending, ToolResponse)>> {
        let unanswerable = |reason| Box::new((Pending::Person, error(reason)));
        let asking = self.asking();
        let (mut held, mut left, mut told) = (Map::new(), Vec::new(), Told::new(response));
        for (index, question) in asking.questions(response).map_err(unanswerable)? {
            if matches!(
                self.tool.questions.get(&question.id),
                Some(Answerer::Assistant)
            ) {
                left.push(asking.checked(question).map_err(unanswerable)?.question);
                continue;
            }
            let answer = asking.answer_to(question, index, &mut told);
            held.insert(question.id.clone(), answer.map_err(unanswerable)?);
        }
        if left.is_empty() {
            asking.show_rest(told);
            return Ok(held);
        }
        let mut open = left.iter();
        let shown = |block: &ContentBlock| match block {
            ContentBlock::Question { question } if held.contains_key(&question.id) => None,
            // Those that are open are shown as they were checked.
            ContentBlock::Question { .. } => open.next().cloned().map(ContentBlock::question),
            block => Some(block.clone()),
        };
        let content = response.content.iter().filter_map(shown).collect();
        let mut response = written_out(ToolResponse {
            content,
            ..response.clone()
        });
        response.content.push(ContentBlock::text(
            "It waits for answers: `apply` gives them, with an `input` that has one property for each question's id.",
        ));
        Err(Box::new((
            Pending::Model {
                questions: left,
                held,
            },
            response,
        )))
    }

    /// Reads the response of a reply; the error is the result where there is none.
    fn response(
        &self,
        session: &mut Session,
        reply: LineReply,
    ) -> Result<ToolResponse, Box<Settled>> {
        let name = &self.tool.name;
        match reply {
            LineReply::Line(line) => self
                .parsed(&line, &mut session.told)
                .map_err(|reason| Box::new((error(reason), Status::Running))),
            LineReply::Silence => {
                let seconds = self.tool.timeout.as_secs_f64();
                let ways = self.ways(&[(Action::Fetch, "waits on"), (Action::Abort, "ends it")]);
                let text = format!(
                    "`{name}` has said nothing for {seconds} seconds and still runs.{ways}"
                );
                let text = with_errors(text, &session.process.errors());
                Err(Box::new((
                    ToolResponse::new([ContentBlock::text(text)]),
                    Status::Running,
                )))
            }
            LineReply::Moot => {
                let text = format!("The call was interrupted before `{name}` answered.");
                Err(Box::new((error(text), Status::Running)))
            }
            LineReply::TooLong => {
                end(session);
                let text =
                    format!("`{name}` wrote a line of more than {MAX_LINE} bytes and was ended.");
                Err(Box::new((error(text), Status::Stopped)))
            }
            LineReply::Gone => {
                let ending = end(session).map_or_else(String::new, |status| format!(" ({status})"));
                let text = format!("`{name}` ended without an answer{ending}.");
                Err(Box::new((
                    error(with_errors(text, &session.process.errors())),
                    Status::Stopped,
                )))
            }
        }
    }

    /// Reads a line; what is wrong with parts of it is said to the person, who was `told` some already, and to the
    /// model in the response.
    fn parsed(&self, line: &[u8], told: &mut BTreeSet<String>) -> Result<ToolResponse, String> {
        let read = serde_json::from_slice(line)
            .ok()
            .and_then(|value| ToolResponse::from_json(value).ok());
        let (response, mut warnings) = read.ok_or_else(|| {
            format!(
                "`{}` wrote a line that is no response: {}",
                self.tool.name,
                shortened(line)
            )
        })?;
        let response = parse::with_uris(response, &mut warnings);
        let parsed = Parsed { response, warnings };
        Ok(local::with_warnings(
            parsed,
            self.tool,
            &self.toolbox.surroundings,
            self.line,
            told,
        ))
    }

    /// Puts the model's answers to those that are there already.
    fn answers(
        &self,
        questions: &[InputRequest],
        held: &Map<String, Value>,
    ) -> Result<Map<String, Value>, String> {
        let (asking, given) = (self.asking(), &self.order.input);
        let ids: Vec<_> = questions
            .iter()
            .map(|question| format!("`{}`", question.id))
            .collect();
        let mut answers = held.clone();
        for question in questions {
            let id = &question.id;
            let missing = || {
                format!(
                    "The `input` has no answer to `{id}`; wanted are: {}.",
                    ids.join(", ")
                )
            };
            let answer = given.get(id).ok_or_else(missing)?;
            let fits = asking.checked(question)?.fitting(answer);
            fits.map_err(|faults| format!("The answer to `{id}` does not fit: {faults}"))?;
            answers.insert(id.clone(), answer.clone());
        }
        for question in questions {
            asking.keep(question, &answers[&question.id], "assistant");
        }
        Ok(answers)
    }

    fn asking(&self) -> Asking<'_> {
        Asking::new(self.call, self.tool, self.toolbox, self.line)
    }

    /// Takes what the process wrote unasked: it is no answer to what comes next. One that never stops writing is not
    /// waited for.
    fn left_out(&self, process: &mut LineProcess) -> Option<ContentBlock> {
        let (started, mut count) = (Instant::now(), 0);
        let is_enough = |count| {
            count >= MAX_UNASKED || started.elapsed() >= UNASKED || self.line.is_cancelled()
        };
        while !is_enough(count) && process.receive_ready().is_some() {
            count += 1;
        }
        let more = match is_enough(count) {
            true => " There may be more, so what follows may be no answer.",
            false => "",
        };
        let text = format!("Lines that it wrote unasked before, left out here: {count}.{more}");
        (count > 0).then(|| ContentBlock::text(text))
    }

    /// Says which of these the model can do.
    fn ways(&self, ways: &[(Action, &str)]) -> String {
        let possible = ways
            .iter()
            .filter(|(action, _)| self.stateful.actions.contains(action));
        let ways: Vec<_> = possible
            .map(|(action, what)| format!("`{}` {what}", action.name()))
            .collect();
        if ways.is_empty() {
            String::new()
        } else {
            format!(" {}.", ways.join(", "))
        }
    }
}

/// Ends the process of a session, which is over then.
fn end(session: &mut Session) -> Option<ExitStatus> {
    session.is_over = true;
    session.process.end()
}

fn questions(response: &ToolResponse) -> impl Iterator<Item = &InputRequest> {
    response.content.iter().filter_map(|block| match block {
        ContentBlock::Question { question } => Some(question),
        _ => None,
    })
}

/// Makes text of questions.
fn written_out(mut response: ToolResponse) -> ToolResponse {
    for block in &mut response.content {
        if let ContentBlock::Question { question } = block {
            let schema = Value::Object(question.schema.clone());
            let mut text = format!(
                "Question `{}`: {}\nSchema of the answer: {schema}",
                question.id, question.text
            );
            if let Some(default) = &question.default {
                text += &format!("\nDefault: {default}");
            }
            *block = ContentBlock::text(text);
        }
    }
    response
}

fn waits_for_nothing(mut response: ToolResponse) -> ToolResponse {
    response.is_error = true;
    response.content.push(ContentBlock::text(
        "The tool says that it waits, and asks nothing.",
    ));
    response
}

fn error(text: String) -> ToolResponse {
    ToolResponse::error([ContentBlock::text(text)])
}

fn with_errors(text: String, errors: &str) -> String {
    if errors.is_empty() {
        text
    } else {
        format!("{text}\nThe last that came on stderr:\n{errors}")
    }
}

fn shortened(line: &[u8]) -> String {
    let line = String::from_utf8_lossy(line.trim_ascii());
    let shown: String = line.chars().take(MAX_SHOWN).collect();
    if shown.len() < line.len() {
        format!("{shown}…")
    } else {
        shown
    }
}
