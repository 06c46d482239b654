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
    order::{self, Order, Payload},
    pending::Pending,
    process::LineProcess,
    reply::{LineReply, MAX_LINE},
};
use crate::{
    Action, Answerer, Parsed, Source, Stateful, Tool, Toolbox, excerpt,
    line::Line,
    local, parse,
    question::{Asking, ShownBlocks},
};

/// The maximum number of rounds of questions in one call: a tool that always asks would never end.
const MAX_ROUNDS: usize = 100;
/// The time that a process has to answer `abort` before jp ends it.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// The maximum number of unasked lines that jp skips, and the maximum time for that.
const MAX_UNASKED: usize = 1000;
const UNASKED: Duration = Duration::from_secs(1);
/// The number of characters of an invalid line in an error.
const MAX_SHOWN: usize = 500;

/// The result of a call, and the status of the process after it.
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
            // Processes of earlier turns become known when the first call needs them.
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
            Err(reason) => return ToolResponse::from_error(reason),
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
        // The full path is specific to this machine.
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
        process.map_err(|error| format!("`{}` can't start {program:?}: {error}.", self.tool.name))
    }

    /// Returns where a process that stays is to have its pipes; the error is for the model.
    fn directory(&self) -> Result<PathBuf, String> {
        let (name, handles) = (&self.tool.name, &self.toolbox.surroundings.handles);
        match handles {
            _ if cfg!(not(unix)) => Err(format!(
                "`{name}` has `keep = true`, which needs the named pipes of Unix."
            )),
            _ if !name
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "_-".contains(c)) =>
            {
                Err(format!(
                    "`{name}` has `keep = true`, so its name may only contain letters, digits, `_` and `-`."
                ))
            }
            None => Err(format!(
                "`{name}` has `keep = true`, but this conversation has no place to keep it."
            )),
            // The handle alone could be `..`.
            Some(handles) => Ok(handles.join(format!("{name}={}", self.order.handle))),
        }
    }

    fn spawn(&self, session: &mut Session) -> Settled {
        self.exchange(session, Payload::Arguments, &self.order.input)
    }

    /// Takes what the process wrote meanwhile, or asks it.
    fn fetch(&self, session: &mut Session) -> Settled {
        match session.process.receive_ready() {
            Some(reply) => self.settle(session, reply),
            // The last call timed out or was interrupted. Its answer comes first, so send nothing
            // before it.
            None if session.process.is_owed() => {
                let reply = self.await_reply(session);
                self.settle(session, reply)
            }
            None => self.exchange(session, Payload::Arguments, &self.order.input),
        }
    }

    fn apply(&self, session: &mut Session) -> Settled {
        let name = &self.tool.name;
        if session.process.is_owed() {
            let ways = self.describe_ways(&[(Action::Fetch, "waits for its answer")]);
            return (
                ToolResponse::from_error(format!(
                    "`{name}` has not answered the last call yet.{ways}"
                )),
                Status::Running,
            );
        }
        let left_out = self.skip_unasked(&mut session.process);
        let (mut response, status) = self.apply_input(session);
        response.content.splice(0..0, left_out);
        (response, status)
    }

    fn apply_input(&self, session: &mut Session) -> Settled {
        match &session.pending {
            None => self.exchange(session, Payload::Arguments, &self.order.input),
            Some(Pending::Person) => {
                let ways = self.describe_ways(&[
                    (Action::Fetch, "asks the user again"),
                    (Action::Abort, "ends it"),
                ]);
                let name = &self.tool.name;
                let reason =
                    format!("`{name}` is waiting for an answer that only the user can give.{ways}");
                (ToolResponse::from_error(reason), Status::Waiting)
            }
            Some(Pending::Model { questions, held }) => match self.collect_answers(questions, held)
            {
                Ok(answers) => self.exchange(session, Payload::Answers, &answers),
                Err(reason) => (ToolResponse::from_error(reason), Status::Waiting),
            },
        }
    }

    /// Tells the process to end, gives it a moment to say something, and ends it.
    fn abort(&self, session: &mut Session) -> Settled {
        let process = &mut session.process;
        // A line that the process wrote before is no answer to `abort`.
        _ = self.skip_unasked(process);
        let was_owed = process.is_owed();
        process.send(self.order.line(Payload::Arguments, &self.order.input));
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
                .parse_line(&line, &mut session.told)
                .map_or_else(ToolResponse::from_error, write_questions),
            _ => ToolResponse::new([ContentBlock::text(format!(
                "`{}` sent no final answer and was ended.",
                self.tool.name
            ))]),
        };
        (response, Status::Stopped)
    }

    /// Sends a line and deals with the answer to it.
    fn exchange(&self, session: &mut Session, kind: Payload, sent: &Map<String, Value>) -> Settled {
        self.send(session, kind, sent);
        let reply = self.await_reply(session);
        self.settle(session, reply)
    }

    fn send(&self, session: &mut Session, kind: Payload, sent: &Map<String, Value>) {
        if matches!(kind, Payload::Answers) {
            session.pending = None;
        }
        session.process.send(self.order.line(kind, sent));
    }

    fn await_reply(&self, session: &mut Session) -> LineReply {
        session
            .process
            .receive(self.tool.timeout, &|| self.line.is_cancelled())
    }

    /// Makes the result of a reply, once all questions in it are answered that others than the
    /// model answer.
    fn settle(&self, session: &mut Session, mut reply: LineReply) -> Settled {
        for _ in 0..MAX_ROUNDS {
            let response = match self.read_response(session, reply) {
                Ok(response) => response,
                Err(settled) => return *settled,
            };
            session.pending = None;
            let has_questions = questions(&response).next().is_some();
            match response.status {
                Some(Status::Running | Status::Waiting) | None if has_questions => {}
                Some(Status::Running) => return (response, Status::Running),
                Some(Status::Waiting) => return (note_missing_question(response), Status::Running),
                Some(Status::Stopped) | None => {
                    end(session);
                    return (write_questions(response), Status::Stopped);
                }
            }
            match self.answer_questions(&response) {
                Ok(answers) => self.send(session, Payload::Answers, &answers),
                Err(unanswered) => {
                    let (pending, response) = *unanswered;
                    session.pending = Some(pending);
                    return (response, Status::Waiting);
                }
            }
            reply = self.await_reply(session);
        }
        session.pending = Some(Pending::Person);
        let reason = format!(
            "`{}` asked {MAX_ROUNDS} times in one call and got an answer each time.",
            self.tool.name
        );
        (ToolResponse::from_error(reason), Status::Waiting)
    }

    /// Answers the questions that the configuration or the user has to answer. The error has the
    /// questions for the model.
    fn answer_questions(
        &self,
        response: &ToolResponse,
    ) -> Result<Map<String, Value>, Box<(Pending, ToolResponse)>> {
        let asking = self.asking();
        let (mut held, mut left, mut told) = (Map::new(), Vec::new(), ShownBlocks::new(response));
        for (index, question) in asking.questions(response).map_err(unanswerable)? {
            if matches!(
                self.tool.questions.get(&question.id),
                Some(Answerer::Assistant)
            ) {
                left.push(asking.check(question).map_err(unanswerable)?.question);
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
            // Show open questions as they were checked: without invalid defaults.
            ContentBlock::Question { .. } => open.next().cloned().map(ContentBlock::question),
            block => Some(block.clone()),
        };
        let content = response.content.iter().filter_map(shown).collect();
        let mut response = write_questions(ToolResponse {
            content,
            ..response.clone()
        });
        response.content.push(ContentBlock::text(
            "The tool is waiting for answers. Call `apply` with an `input` that has one property for each question id.",
        ));
        Err(Box::new((
            Pending::Model {
                questions: left,
                held,
            },
            response,
        )))
    }

    /// Reads the response of a reply; the error is the result of the call if there is none.
    fn read_response(
        &self,
        session: &mut Session,
        reply: LineReply,
    ) -> Result<ToolResponse, Box<Settled>> {
        let name = &self.tool.name;
        match reply {
            LineReply::Line(line) => self
                .parse_line(&line, &mut session.told)
                .map_err(|reason| Box::new((ToolResponse::from_error(reason), Status::Running))),
            LineReply::Silence => {
                let seconds = self.tool.timeout.as_secs_f64();
                let ways = self
                    .describe_ways(&[(Action::Fetch, "waits longer"), (Action::Abort, "ends it")]);
                let text = format!(
                    "`{name}` has written nothing for {seconds} seconds and is still running.{ways}"
                );
                let text = append_errors(text, &session.process.errors());
                Err(Box::new((
                    ToolResponse::new([ContentBlock::text(text)]),
                    Status::Running,
                )))
            }
            LineReply::Moot => {
                let text = format!("The call was interrupted before `{name}` answered.");
                Err(Box::new((ToolResponse::from_error(text), Status::Running)))
            }
            LineReply::TooLong => {
                end(session);
                let text =
                    format!("`{name}` wrote a line of more than {MAX_LINE} bytes and was ended.");
                Err(Box::new((ToolResponse::from_error(text), Status::Stopped)))
            }
            LineReply::Gone => {
                let ending = end(session).map_or_else(String::new, |status| format!(" ({status})"));
                let text = format!("`{name}` ended without an answer{ending}.");
                Err(Box::new((
                    ToolResponse::from_error(append_errors(text, &session.process.errors())),
                    Status::Stopped,
                )))
            }
        }
    }

    /// Reads a line. Warnings about its faults go to the user, except for those in `told`, and to
    /// the model in the response.
    fn parse_line(&self, line: &[u8], told: &mut BTreeSet<String>) -> Result<ToolResponse, String> {
        let read = serde_json::from_slice(line)
            .ok()
            .and_then(|value| ToolResponse::from_json(value).ok());
        let (response, mut warnings) = read.ok_or_else(|| {
            format!(
                "`{}` wrote a line that is not a response: {}",
                self.tool.name,
                excerpt::beginning(&String::from_utf8_lossy(line.trim_ascii()), MAX_SHOWN)
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
    fn collect_answers(
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
            let answer = given.get(id).ok_or_else(|| {
                format!(
                    "The `input` has no answer to `{id}`. It needs: {}.",
                    ids.join(", ")
                )
            })?;
            let fits = asking.check(question)?.check_answer(answer);
            fits.map_err(|faults| format!("The answer to `{id}` is invalid: {faults}"))?;
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

    /// Skips lines that the process wrote unasked: they don't answer the next line. jp does not
    /// wait for a process that never stops writing.
    fn skip_unasked(&self, process: &mut LineProcess) -> Option<ContentBlock> {
        let (started, mut count) = (Instant::now(), 0);
        let is_enough = |count| {
            count >= MAX_UNASKED || started.elapsed() >= UNASKED || self.line.is_cancelled()
        };
        while !is_enough(count) && process.receive_ready().is_some() {
            count += 1;
        }
        let more = match is_enough(count) {
            true => " There may be more, so the answer below may not be the answer to this call.",
            false => "",
        };
        let text =
            format!("Lines that the tool wrote before this call, left out here: {count}.{more}");
        (count > 0).then(|| ContentBlock::text(text))
    }

    /// Says which of these the model can do.
    fn describe_ways(&self, ways: &[(Action, &str)]) -> String {
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

/// Makes the result of a call whose questions can't be answered.
fn unanswerable(reason: String) -> Box<(Pending, ToolResponse)> {
    Box::new((Pending::Person, ToolResponse::from_error(reason)))
}

/// Turns questions into text, because models receive no question blocks.
fn write_questions(mut response: ToolResponse) -> ToolResponse {
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

fn note_missing_question(mut response: ToolResponse) -> ToolResponse {
    response.is_error = true;
    response.content.push(ContentBlock::text(
        "The tool reports that it is waiting for answers, but it has not asked a question.",
    ));
    response
}

fn append_errors(text: String, errors: &str) -> String {
    if errors.is_empty() {
        text
    } else {
        format!("{text}\nIts last output on stderr:\n{errors}")
    }
}
