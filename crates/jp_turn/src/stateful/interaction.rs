//! One call of a stateful tool, from what the model wants to the result.

use std::{path::PathBuf, time::Duration};

use jp_conversation::ToolCallRequest;
use jp_tool::{ContentBlock, InputRequest, Status, ToolResponse};
use serde_json::{Map, Value};

use super::{
    handles::{Pending, Session},
    kept,
    order::{self, Kind, Order},
    process::{Process, Reply},
};
use crate::{
    Action, Answerer, Schema, Stateful, Tool, Toolbox, calls::Line, local::with_canonical_uris,
    question::Asking,
};

/// How often a tool may ask in one call.
const MAX_ROUNDS: usize = 100;
/// How long a process that is told to end may take to answer.
const LAST_WORDS: Duration = Duration::from_secs(1);
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
            Action::Spawn => handles.spawn(name, handle, || self.start(), |session| self.spawn(session)),
            Action::Fetch => handles.with(name, handle, |session| self.fetch(session)),
            Action::Apply => handles.with(name, handle, |session| self.apply(session)),
            Action::Abort => handles.with(name, handle, |session| self.abort(session)),
        };
        let (mut response, status) = match result {
            Ok(result) => result,
            Err(reason) => return ToolResponse::error([ContentBlock::text(reason)]),
        };
        if status == Status::Stopped {
            handles.remove(name, handle);
        }
        response.status = Some(status);
        response.content.push(ContentBlock::text(format!("Status of {handle:?}: {}.", word(status))));
        response
    }

    fn start(&self) -> Result<Process, String> {
        let command = order::command(self.tool, &self.order.input, &self.toolbox.surroundings)?;
        let program = command.get_program().to_string_lossy().into_owned();
        let process = match self.stateful.keep {
            true => Process::keep(command, &self.directory()?),
            false => Process::start(command),
        };
        process
            .map_err(|error| format!("`{}` can't be started, as {program:?} can't: {error}.", self.tool.name))
    }

    /// Returns where a process that stays is to have its pipes; the error is for the model.
    fn directory(&self) -> Result<PathBuf, String> {
        let (name, handles) = (&self.tool.name, &self.toolbox.surroundings.handles);
        let is_plain = |character: char| character.is_ascii_alphanumeric() || "_-".contains(character);
        match handles {
            _ if cfg!(not(unix)) => {
                Err(format!("`{name}` is to outlive the turn, which takes Unix's named pipes."))
            }
            _ if !name.chars().all(is_plain) => Err(format!(
                "`{name}` is to outlive the turn, for which its name may have letters, digits, `_` and `-` only."
            )),
            None => Err(format!(
                "`{name}` is to outlive the turn, and this conversation has no place to keep it."
            )),
            Some(handles) => Ok(kept::directory(handles, name, &self.order.handle)),
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
            return (error(format!("`{name}` has not answered the last call yet.{ways}")), Status::Running);
        }
        let left_out = left_out(&mut session.process);
        let answers = match &session.pending {
            None => None,
            Some(Pending::Person) => {
                let ways = self.ways(&[(Action::Fetch, "has them asked again"), (Action::Abort, "ends it")]);
                let reason = format!("`{name}` waits for an answer that only the person can give.{ways}");
                return (error(reason), Status::Waiting);
            }
            Some(Pending::Model { questions, held }) => match answers(questions, held, &self.order.input) {
                Ok(answers) => Some(answers),
                Err(reason) => return (error(reason), Status::Waiting),
            },
        };
        let (mut response, status) = match answers {
            Some(answers) => self.exchange(session, Kind::Answers, &answers),
            None => self.exchange(session, Kind::Arguments, &self.order.input),
        };
        response.content.splice(0..0, left_out);
        (response, status)
    }

    /// Tells the process to end, gives it a moment to say something, and ends it.
    fn abort(&self, session: &mut Session) -> Settled {
        let process = &mut session.process;
        _ = left_out(process);
        let was_owed = process.is_owed();
        process.send(self.order.line(Kind::Arguments, &self.order.input));
        let mut reply = process.receive(LAST_WORDS, &|| self.line.is_cancelled());
        if was_owed && matches!(reply, Reply::Line(_)) {
            // That was the answer to the call before.
            let last = process.receive(LAST_WORDS, &|| self.line.is_cancelled());
            if matches!(last, Reply::Line(_)) {
                reply = last;
            }
        }
        process.end();
        let response = match reply {
            Reply::Line(line) => self.parsed(&line).map_or_else(error, written_out),
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

    fn reply(&self, session: &mut Session) -> Reply {
        session.process.receive(self.tool.timeout, &|| self.line.is_cancelled())
    }

    /// Makes the result of a reply, once all questions in it are answered that others than the model answer.
    fn settle(&self, session: &mut Session, mut reply: Reply) -> Settled {
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
                    session.process.end();
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
        let reason =
            format!("`{}` asked {MAX_ROUNDS} times in one call and was answered each time.", self.tool.name);
        (error(reason), Status::Waiting)
    }

    /// Answers the questions that the configuration or the person answers; the error is what is left for the model.
    fn answered(&self, response: &ToolResponse) -> Result<Map<String, Value>, Box<(Pending, ToolResponse)>> {
        let asking = Asking::new(self.call, self.tool, self.toolbox, self.line);
        let (mut held, mut left, mut start) = (Map::new(), Vec::new(), 0);
        for (index, block) in response.content.iter().enumerate() {
            let ContentBlock::Question { question } = block else { continue };
            let since = &response.content[std::mem::replace(&mut start, index + 1)..index];
            if matches!(self.tool.questions.get(&question.id), Some(Answerer::Assistant)) {
                left.push(question.clone());
                continue;
            }
            match asking.answer_to(question, &response.content[..index], since) {
                Ok(answer) => _ = held.insert(question.id.clone(), answer),
                Err(reason) => return Err(Box::new((Pending::Person, error(reason)))),
            }
        }
        if left.is_empty() {
            return Ok(held);
        }
        let is_open = |block: &ContentBlock| match block {
            ContentBlock::Question { question } => !held.contains_key(&question.id),
            _ => true,
        };
        let mut response = response.clone();
        response.content.retain(is_open);
        let mut response = written_out(response);
        response.content.push(ContentBlock::text(
            "It waits for answers: `apply` gives them, with an `input` that has one property for each question's id.",
        ));
        Err(Box::new((Pending::Model { questions: left, held }, response)))
    }

    /// Reads the response of a reply; the error is the result where there is none.
    fn response(&self, session: &mut Session, reply: Reply) -> Result<ToolResponse, Box<Settled>> {
        let (name, process) = (&self.tool.name, &mut session.process);
        match reply {
            Reply::Line(line) => {
                self.parsed(&line).map_err(|reason| Box::new((error(reason), Status::Running)))
            }
            Reply::Silence => {
                let seconds = self.tool.timeout.as_secs_f64();
                let ways = self.ways(&[(Action::Fetch, "waits on"), (Action::Abort, "ends it")]);
                let text = format!("`{name}` has said nothing for {seconds} seconds and still runs.{ways}");
                let text = with_errors(text, &process.errors());
                Err(Box::new((ToolResponse::new([ContentBlock::text(text)]), Status::Running)))
            }
            Reply::Moot => {
                let text = format!("The call was interrupted before `{name}` answered.");
                Err(Box::new((error(text), Status::Running)))
            }
            Reply::TooLong => {
                process.end();
                let text = format!("`{name}` wrote a line of more than 16 MB and was ended.");
                Err(Box::new((error(text), Status::Stopped)))
            }
            Reply::Gone => {
                let ending = process.end().map_or_else(String::new, |status| format!(" ({status})"));
                let text = format!("`{name}` ended without an answer{ending}.");
                Err(Box::new((error(with_errors(text, &process.errors())), Status::Stopped)))
            }
        }
    }

    /// Reads a line; what is wrong with parts of it is said to the person, and to the model in the response.
    fn parsed(&self, line: &[u8]) -> Result<ToolResponse, String> {
        let read = serde_json::from_slice(line).ok().and_then(|value| ToolResponse::from_json(value).ok());
        let (response, warnings) = read.ok_or_else(|| {
            format!("`{}` wrote a line that is no response: {}", self.tool.name, shortened(line))
        })?;
        let (mut response, of_uris) = with_canonical_uris(response, &self.toolbox.surroundings);
        for warning in warnings.into_iter().chain(of_uris) {
            self.line.notice(format!("`{}`: {warning}", self.tool.name));
            response.content.push(ContentBlock::text(format!("Warning: {warning}.")));
        }
        Ok(response)
    }

    /// Says which of these the model can do.
    fn ways(&self, ways: &[(Action, &str)]) -> String {
        let possible = ways.iter().filter(|(action, _)| self.stateful.actions.contains(action));
        let ways: Vec<_> = possible.map(|(action, what)| format!("`{}` {what}", action.name())).collect();
        if ways.is_empty() { String::new() } else { format!(" {}.", ways.join(", ")) }
    }
}

/// Puts the model's answers to those that are there already.
fn answers(
    questions: &[InputRequest],
    held: &Map<String, Value>,
    given: &Map<String, Value>,
) -> Result<Map<String, Value>, String> {
    let ids: Vec<_> = questions.iter().map(|question| format!("`{}`", question.id)).collect();
    let mut answers = held.clone();
    for question in questions {
        let id = &question.id;
        let answer = given
            .get(id)
            .ok_or_else(|| format!("The `input` has no answer to `{id}`; wanted are: {}.", ids.join(", ")))?;
        let schema = Schema::compile(&question.schema)
            .map_err(|error| format!("The question `{id}` has a schema that is none: {error}"))?;
        schema
            .check_value(answer)
            .map_err(|faults| format!("The answer to `{id}` does not fit: {faults}"))?;
        answers.insert(id.clone(), answer.clone());
    }
    Ok(answers)
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
            let mut text =
                format!("Question `{}`: {}\nSchema of the answer: {schema}", question.id, question.text);
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
    response.content.push(ContentBlock::text("The tool says that it waits, and asks nothing."));
    response
}

/// Takes what the process wrote unasked: it is no answer to what comes next.
fn left_out(process: &mut Process) -> Option<ContentBlock> {
    let mut count = 0;
    while process.receive_ready().is_some() {
        count += 1;
    }
    (count > 0)
        .then(|| ContentBlock::text(format!("Lines that it wrote unasked before, left out here: {count}.")))
}

fn error(text: String) -> ToolResponse {
    ToolResponse::error([ContentBlock::text(text)])
}

fn with_errors(text: String, errors: &str) -> String {
    if errors.is_empty() { text } else { format!("{text}\nThe last that came on stderr:\n{errors}") }
}

fn shortened(line: &[u8]) -> String {
    let line = String::from_utf8_lossy(line.trim_ascii());
    let shown: String = line.chars().take(MAX_SHOWN).collect();
    if shown.len() < line.len() { format!("{shown}…") } else { shown }
}

fn word(status: Status) -> &'static str {
    match status {
        Status::Running => "running",
        Status::Waiting => "waiting",
        Status::Stopped => "stopped",
    }
}
