//! Sending the request, showing the answer and keeping it.

use std::{
    borrow::Cow, cell::Cell, collections::HashSet, convert::Infallible, error::Error,
    future::pending, io::ErrorKind, rc::Rc, sync::Arc, time::Duration,
};

use jp_conversation::{Event, EventKind, view};
use jp_llm::{Body, Client, Format, Note, Request, Tool, anthropic, models::Facts};
use jp_resource::Checksum;
use jp_storage::{WriteError, Writer};
use jp_turn::{
    Decision, Delta, Host, Outcome, PermissionRequest, Schema, Toolbox, Turn, TurnEvent,
};
use serde_json::Value;
use tokio::sync::oneshot;

use super::{
    Asked, Recording, budget, contents, ended::Ended, facts, model::Model, prompt, refused, schema,
    tools,
};
use crate::{
    error::{Code, Failure},
    output::{Output, visible},
    size,
    workspace::Context,
};

/// How much is shown of how far a call is: less than a row.
const PROGRESS_CHARACTERS: usize = 70;

/// After how long without a word the person is told that an answer is waited for.
const SILENCE: Duration = Duration::from_secs(10);

/// How many parts of a request are named that the model is not shown.
const SHOWN_NOTES: usize = 10;

pub(super) fn run(
    asked: Asked<'_>,
    model: &Model,
    mut recording: Option<&mut Recording>,
) -> Result<Code, Failure> {
    let interrupt = asked.context.interrupt();
    let ready = || ready(&asked, model);
    let ready = match recording.as_deref_mut() {
        Some(recording) => recording.beside(asked.context, ready)?,
        None => ready(),
    };
    let ready = ready.and_then(|ready| interrupt.check().map(|()| ready));
    let Ready {
        runtime,
        schema,
        toolbox,
        tools,
        facts,
        first,
    } = ready.map_err(|failure| kept_message(failure, recording.is_some()))?;

    let writer = recording.map(|recording| &mut recording.writer);
    let id = writer.as_ref().map(|writer| writer.id().to_string());
    let mut keeper = Keeper::new(asked, model, facts, tools, writer);
    let body = keeper.written(first);
    keeper.prepared = Some(body);
    let (output, is_kept, has_come) = (
        keeper.asked.context.output,
        keeper.asked.is_kept(),
        Rc::clone(&keeper.has_come),
    );
    let outcome = runtime.block_on(async {
        let client = Client::new(model.endpoint.clone())?;
        let fault = |answer: &str| schema.as_ref()?.check(answer).err();
        let turn = Turn {
            client: &client,
            toolbox: &toolbox,
            model: &model.label,
            check: Some(&fault),
            max_rounds: Turn::MAX_ROUNDS,
        };
        Ok::<_, Failure>(tokio::select! {
            outcome = jp_turn::run(turn, interrupt.wait(), &mut keeper) => outcome,
            never = tell_of_silence(output, &has_come, &model.label, is_kept) => match never {},
        })
    })?;
    keeper.end_line()?;
    if let Some(failure) = keeper.failure.take() {
        return Err(failure);
    }
    let Keeper {
        asked,
        kept,
        saved,
        ended,
        ..
    } = keeper;
    let ended = Ended {
        asked: &asked,
        model,
        id: id.as_deref(),
        kept: &kept,
        calls: &ended,
        saved_tokens: saved,
    };
    let finished = finish(&ended, schema.as_ref(), outcome);
    // The process is about to end, and its memory goes back at once, not piece by piece.
    std::mem::forget((asked.stream, asked.files));
    finished
}

/// Says that an answer is waited for, once it takes long to begin.
async fn tell_of_silence(
    output: &Output,
    has_come: &Cell<bool>,
    model: &str,
    is_kept: bool,
) -> Infallible {
    tokio::time::sleep(SILENCE).await;
    if !has_come.get() {
        let kept = if is_kept {
            ", and the message is kept"
        } else {
            ""
        };
        output.status(&format!("Still waiting for {model}; Ctrl-C ends it{kept}."));
    }
    pending().await
}

/// A request as it is sent.
pub(super) struct Written {
    pub(super) body: Body,
    /// What the model can't be shown.
    pub(super) notes: Vec<Note>,
    /// Whether anything in it stands for content that was sent before.
    is_shortened: bool,
}

/// What a turn needs.
struct Ready {
    runtime: tokio::runtime::Runtime,
    schema: Option<Schema>,
    toolbox: Arc<Toolbox>,
    tools: Vec<Tool>,
    facts: Facts,
    first: Written,
}

/// Prepares a turn and its first request.
fn ready(asked: &Asked<'_>, model: &Model) -> Result<Ready, Failure> {
    let runtime = runtime()?;
    let schema =
        super::newest_request(&asked.stream).and_then(|(_, request)| request.schema.as_ref());
    let schema = schema.map(schema::of_message).transpose()?;
    let toolbox = Arc::new(tools::toolbox(asked)?);
    let tools = toolbox.offered();
    let (facts, first) = prepare(asked, model, &tools, &runtime)?;
    Ok(Ready {
        runtime,
        schema,
        toolbox,
        tools,
        facts,
        first,
    })
}

/// Finds out what the model takes and writes the request.
pub(super) fn prepare(
    asked: &Asked<'_>,
    model: &Model,
    tools: &[Tool],
    runtime: &tokio::runtime::Runtime,
) -> Result<(Facts, Written), Failure> {
    let thread = &asked.thread(&asked.stream);
    let facts = runtime.block_on(async {
        tokio::select! {
            () = asked.context.interrupt().wait() => Err(Failure::interrupted()),
            facts = facts::facts(model, asked.context, thread, tools) => Ok(facts),
        }
    })?;
    let written = encode(asked, thread, tools, Some(model), facts)?;
    if let Some(limit) = facts.context_tokens {
        let mut rows = asked.rows(thread);
        written
            .notes
            .iter()
            .for_each(|note| budget::mark(note, thread, &mut rows));
        warn_of_length(asked.context, budget::tokens(&rows), limit);
    }
    Ok((facts, written))
}

/// Makes what runs asynchronous work: one thread, for what waits on a network.
pub(crate) fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
}

/// Writes the request's body.
pub(super) fn encode(
    asked: &Asked<'_>,
    thread: &view::Thread<'_>,
    tools: &[Tool],
    model: Option<&Model>,
    facts: Facts,
) -> Result<Written, Failure> {
    let cache_key = asked.id.map(|id| format!("jp-{id}"));
    let (format, request) = request(asked, thread, tools, model, facts);
    let request = Request {
        cache_key: cache_key.as_deref(),
        ..request
    };
    let mut contents = contents::contents(thread, asked);
    let (body, notes) = format.body(&request, &mut contents)?;
    Ok(Written {
        body,
        notes,
        is_shortened: thread.is_shortened(),
    })
}

/// Returns whether to warn the user about what the model doesn't see. Missing tools matter only if the user enabled
/// one, because some are on by default.
pub(super) fn is_worth_a_warning(note: &Note, asked: &Asked<'_>) -> bool {
    !note.is_about_tools() || asked.tools.has_wanted(asked.config)
}

/// Puts together what is asked, in what format.
pub(super) fn request<'a>(
    asked: &'a Asked<'_>,
    thread: &'a view::Thread<'a>,
    tools: &'a [Tool],
    model: Option<&'a Model>,
    facts: Facts,
) -> (Format, Request<'a>) {
    let (label, format) = match model {
        Some(model) => (model.label.as_str(), model.endpoint.format),
        None => ("(no model chosen)", Format::Chat),
    };
    let request = Request {
        system: asked.config.config.assistant.system_prompt.as_deref(),
        tools,
        max_output: max_output(model, facts),
        context: model.and_then(|model| model.configured.context_tokens),
        capabilities: facts.capabilities(),
        ..Request::new(label, thread)
    };
    (format, request)
}

/// Says that a request is likely to be refused, or cut by the server.
pub(super) fn warn_of_length(context: &Context<'_>, tokens: u64, limit: u64) {
    if tokens > limit {
        let [tokens, limit] = [tokens, limit].map(size::thousands);
        context.output.warn(&format!(
            "the request has about {tokens} tokens, and the model takes {limit}"
        ));
    }
}

/// Returns how long the answer may be: as configured, else the provider decides. Anthropic wants a limit, and none
/// beyond the model's own.
fn max_output(model: Option<&Model>, facts: Facts) -> Option<u64> {
    let Model {
        endpoint,
        configured,
        ..
    } = model?;
    let own = facts
        .max_output_tokens
        .map(|own| own.min(anthropic::DEFAULT_MAX_TOKENS));
    configured
        .max_output_tokens
        .or(own.filter(|_| endpoint.format == Format::Anthropic))
}

/// Returns a body's bytes.
pub(super) fn bytes(body: &Body) -> Result<Vec<u8>, jp_llm::Error> {
    let mut bytes = Vec::new();
    for chunk in body.chunks() {
        bytes.extend(chunk?);
    }
    Ok(bytes)
}

/// Shows what arrives, appends it to the conversation and writes the requests that go on from there.
struct Keeper<'a> {
    asked: Asked<'a>,
    model: &'a Model,
    facts: Facts,
    tools: Vec<Tool>,
    /// How many of them are no servers': those come first.
    own_tools: usize,
    /// The first request.
    prepared: Option<Body>,
    /// What the person knows that the model is not shown.
    noted: HashSet<String>,
    writer: Option<&'a mut Writer>,
    /// What the model said in this turn, and what it cost.
    kept: Vec<EventKind>,
    /// The calls that ended in this turn, in the order of their results.
    ended: Vec<tools::EndedCall>,
    /// About how many tokens delivery saved in the requests that were answered.
    saved: u64,
    /// Whether a request has no answer yet.
    is_asking: bool,
    /// Whether delivery saved anything in the last request.
    is_shortened: bool,
    /// The first thing that went wrong here; the answer is received to its end all the same.
    failure: Option<Failure>,
    /// Whether a line of the answer is open.
    is_shown: bool,
    /// Whether reasoning was shown last.
    is_reasoning: bool,
    /// Whether the line says how far a call is.
    is_progressing: bool,
    /// Whether anything came of the turn.
    has_come: Rc<Cell<bool>>,
}

impl Host for Keeper<'_> {
    fn take(&mut self, event: TurnEvent<'_>) {
        let output = self.asked.context.output;
        self.has_come.set(true);
        if !matches!(event, TurnEvent::Progress(_) | TurnEvent::Record(_)) {
            self.end_progress();
        }
        let taken = match event {
            TurnEvent::Delta(Delta::Text(text)) => self.show(text),
            TurnEvent::Delta(Delta::Reasoning(text)) => {
                self.is_reasoning = true;
                output.reasoning(text);
                Ok(())
            }
            TurnEvent::Retry(notice) => {
                output.status(&format!("{notice}"));
                Ok(())
            }
            TurnEvent::Notice(notice) => {
                output.warn(&visible(notice));
                Ok(())
            }
            TurnEvent::Progress(progress) => self.progress(progress),
            TurnEvent::Detail(detail) => {
                output.detail(&visible(detail));
                Ok(())
            }
            TurnEvent::Record(kinds) => self.record(kinds),
            TurnEvent::Permit(request, reply) => self.permit(&request, reply),
            TurnEvent::Ask(question, reply) => self
                .make_room()
                .map(|()| answer_with(reply, prompt::answer(&question, self.asked.context))),
            TurnEvent::Show { tool, blocks } => self
                .make_room()
                .map(|()| prompt::show_blocks(tool, blocks, self.asked.context)),
            TurnEvent::ShowToUser { tool, blocks } => self
                .make_room()
                .map(|()| prompt::show_to_user(tool, blocks, self.asked.context.output)),
            TurnEvent::Called {
                call,
                response,
                verdict,
                edited,
            } => {
                self.ended
                    .push(tools::EndedCall::new(call, verdict, edited, &self.asked));
                self.called(&tools::line(call, edited, response))
            }
        };
        if let Err(failure) = taken {
            self.failure.get_or_insert(failure);
        }
    }

    fn served(&mut self) -> Option<Vec<jp_turn::Tool>> {
        // The first request is written already.
        if self.prepared.is_some() {
            return None;
        }
        let served = tools::changed(&mut self.asked)?;
        self.tools.truncate(self.own_tools);
        self.tools.extend(
            served
                .iter()
                .filter(|tool| tool.may_run())
                .map(jp_turn::Tool::offered),
        );
        Some(served)
    }

    fn body(&mut self, aside: &[EventKind]) -> Result<Body, Box<dyn Error + Send + Sync>> {
        if let Some(failure) = &self.failure {
            // What could not be stored is not built upon.
            return Err(failure.message.clone().into());
        }
        self.is_asking = true;
        if let Some(body) = self.prepared.take_if(|_| aside.is_empty()) {
            return Ok(body);
        }
        let mut stream = Cow::Borrowed(&self.asked.stream);
        let now = self.asked.context.now();
        aside
            .iter()
            .for_each(|kind| stream.to_mut().push(Event::new(now, kind.clone())));
        let thread = self.asked.thread(&stream);
        let notes = || budget::notes(&self.asked, &thread, &self.tools, self.facts);
        let over = budget::over(
            &self.asked,
            &thread,
            budget::taken(&self.tools, self.facts),
            notes,
        );
        if let Some(failure) = over.map_err(|failure| failure.message)? {
            let message = failure.message.clone();
            self.failure = Some(match self.asked.is_kept() {
                true => failure.with_hint(
                    "what came so far is kept: `jp query` without words and with a larger --budget goes on from there.",
                ),
                false => failure,
            });
            return Err(message.into());
        }
        let written = encode(
            &self.asked,
            &thread,
            &self.tools,
            Some(self.model),
            self.facts,
        )
        .map_err(|failure| failure.message)?;
        Ok(self.written(written))
    }

    fn blob(
        &mut self,
        checksum: &Checksum,
    ) -> Result<Option<Vec<u8>>, Box<dyn Error + Send + Sync>> {
        let mut blobs = self.asked.stream.events().iter().flat_map(Event::blobs);
        let Some(blob) = blobs.find(|blob| blob.checksum == *checksum) else {
            return Ok(None);
        };
        Ok(Some(contents::read(&self.asked, &blob)?.into_bytes()))
    }
}

impl<'a> Keeper<'a> {
    fn new(
        asked: Asked<'a>,
        model: &'a Model,
        facts: Facts,
        tools: Vec<Tool>,
        writer: Option<&'a mut Writer>,
    ) -> Self {
        let own_tools = tools.len() - asked.tools.served_that_may_run();
        Self {
            asked,
            model,
            facts,
            tools,
            own_tools,
            prepared: None,
            noted: HashSet::new(),
            writer,
            kept: Vec::new(),
            ended: Vec::new(),
            saved: 0,
            is_asking: false,
            is_shortened: false,
            failure: None,
            is_shown: false,
            is_reasoning: false,
            is_progressing: false,
            has_come: Rc::default(),
        }
    }

    /// Takes in a request that is to be sent.
    fn written(&mut self, written: Written) -> Body {
        self.note(&written.notes);
        self.is_shortened = written.is_shortened;
        written.body
    }

    /// Tells of what the model is not shown of the newest turn, once.
    fn note(&mut self, notes: &[Note]) {
        let newest = super::newest_request(&self.asked.stream).map_or(0, |(turn, _)| turn);
        let output = self.asked.context.output;
        let notes = notes
            .iter()
            .filter(|note| note.turn == newest && is_worth_a_warning(note, &self.asked));
        let (content, other): (Vec<_>, Vec<_>) = notes
            .map(|note| (note.to_string(), note.bytes.is_some()))
            .partition(|(_, is_content)| *is_content);
        let mut is_new =
            |(note, _): (String, bool)| self.noted.insert(note.clone()).then_some(note);
        other
            .into_iter()
            .filter_map(&mut is_new)
            .for_each(|note| output.warn(&note));
        let new: Vec<_> = content.into_iter().filter_map(is_new).collect();
        new.iter()
            .take(SHOWN_NOTES)
            .for_each(|note| output.warn(note));
        if new.len() > SHOWN_NOTES {
            let others = size::thousands((new.len() - SHOWN_NOTES) as u64);
            output.warn(&format!(
                "{others} more are not shown; `jp resource ls` lists all that is attached"
            ));
        }
    }

    fn show(&mut self, text: &str) -> Result<(), Failure> {
        let output = self.asked.context.output;
        if output.is_json() {
            return Ok(());
        }
        if std::mem::take(&mut self.is_reasoning) {
            output.reasoning("\n\n");
        }
        self.is_shown = !text.ends_with('\n');
        output.text(text)
    }

    /// Asks for leave; agreeing to what the workspace wants unattended is remembered.
    fn permit(
        &mut self,
        request: &PermissionRequest,
        reply: oneshot::Sender<Decision>,
    ) -> Result<(), Failure> {
        if self.failure.is_some() {
            answer_with(reply, Some(Decision::Interrupted));
            return Ok(());
        }
        self.make_room()?;
        let agreement = tools::agreement(&self.asked, &request.tool);
        let decision = match prompt::permit(request, agreement, self.asked.context) {
            Some(prompt::Leave::Trusted) => {
                tools::agreed(&self.asked, &request.tool);
                Some(Decision::AllowForTurn)
            }
            Some(prompt::Leave::Decided(decision)) => Some(decision),
            None => None,
        };
        answer_with(reply, decision);
        Ok(())
    }

    /// Begins a line of its own for a prompt.
    fn make_room(&mut self) -> Result<(), Failure> {
        let output = self.asked.context.output;
        if std::mem::take(&mut self.is_reasoning) {
            output.reasoning("\n\n");
        }
        if self.is_shown && output.end_line_on_screen()? {
            self.is_shown = false;
        }
        Ok(())
    }

    /// Shows how far a call is, to somebody who watches, in the place of what was shown of it before.
    fn progress(&mut self, progress: &str) -> Result<(), Failure> {
        let output = self.asked.context.output;
        if output.shows_progress() {
            self.make_room()?;
            self.is_progressing = true;
            output.progress(
                &visible(progress)
                    .chars()
                    .take(PROGRESS_CHARACTERS)
                    .collect::<String>(),
            );
        }
        Ok(())
    }

    /// Takes away how far a call is.
    fn end_progress(&mut self) {
        if std::mem::take(&mut self.is_progressing) {
            self.asked.context.output.progress("");
        }
    }

    fn called(&mut self, line: &str) -> Result<(), Failure> {
        let output = self.asked.context.output;
        if std::mem::take(&mut self.is_reasoning) {
            output.reasoning("\n\n");
        }
        self.end_line()?;
        output.status(line);
        Ok(())
    }

    fn record(&mut self, kinds: Vec<EventKind>) -> Result<(), Failure> {
        let is_the_models = |kind: &&EventKind| !matches!(kind, EventKind::ToolCallResponse(_));
        if self.is_asking && kinds.iter().any(|kind| is_the_models(&kind)) {
            if self.is_shortened {
                // The conversation is still what was sent.
                let saved = budget::saved_tokens(&self.asked, &self.asked.stream);
                self.saved = self.saved.saturating_add(saved);
            }
            self.is_asking = false;
        }
        self.kept
            .extend(kinds.iter().filter(is_the_models).cloned());
        let now = self.asked.context.now();
        let mut events: Vec<_> = kinds
            .into_iter()
            .map(|kind| Event::new(now, kind))
            .collect();
        let events = match self.writer.take() {
            None => {
                if let Some(scratch) = self.asked.scratch {
                    let batch = scratch.blobs().batch();
                    let mut put = |bytes: &[u8], encoding| batch.put(bytes, encoding);
                    events
                        .iter_mut()
                        .try_for_each(|event| event.store_payloads(&mut put))?;
                    batch.commit()?;
                }
                events
            }
            Some(writer) => {
                let batch = writer.batch();
                let events = writer.append(events, batch).map_err(unkept)?;
                // Not given back where that failed: what came after it would be an answer with a hole in it.
                self.writer = Some(writer);
                events
            }
        };
        events
            .into_iter()
            .for_each(|event| self.asked.stream.push(event));
        Ok(())
    }

    fn end_line(&mut self) -> Result<(), Failure> {
        if std::mem::take(&mut self.is_shown) {
            self.asked.context.output.line("")
        } else {
            Ok(())
        }
    }
}

/// Sends an answer; where there is none the channel is dropped, which says that nobody is there.
fn answer_with<T>(reply: oneshot::Sender<T>, answer: Option<T>) {
    if let Some(answer) = answer {
        // Fails where the call was given up meanwhile.
        _ = reply.send(answer);
    }
}

fn finish(ended: &Ended<'_>, schema: Option<&Schema>, outcome: Outcome) -> Result<Code, Failure> {
    let (code, answered) = judge(ended, schema, outcome);
    let output = ended.asked.context.output;
    if let (Ok(_), Some(reason)) = (&answered, ended.incomplete()) {
        output.warn(&format!("the answer is incomplete: {reason}"));
    }
    if let (Ok(structured), true) = (&answered, output.is_json()) {
        output.json(&ended.document(structured.as_ref()))?;
    }
    if ended.has_answer() && !output.is_json() {
        ended.summarise();
    }
    match answered {
        Ok(_) => {
            go_on(output, ended.id);
            // The answer is whole, but not what it would be with the permission.
            Ok(if ended.has_refusal_unasked() {
                Code::Refused
            } else {
                code
            })
        }
        Err(failure) => Err(with_way_on(Failure { code, ..failure }, ended)),
    }
}

/// Says how the turn ended: with what code, and with the document that was asked for, or why there is no answer.
fn judge(
    ended: &Ended<'_>,
    schema: Option<&Schema>,
    outcome: Outcome,
) -> (Code, Result<Option<Value>, Failure>) {
    let failure = match outcome {
        Outcome::Done { .. } if !ended.has_last_words() => {
            Failure::new("the model's answer is empty")
        }
        Outcome::Done { .. } => match schema
            .map(|schema| read_structured(schema, ended))
            .transpose()
        {
            Ok(structured) => return (Code::Done, Ok(structured)),
            Err(failure) => failure,
        },
        Outcome::Interrupted => return (Code::Interrupted, Err(Failure::interrupted())),
        Outcome::Failed(error) => refused::failure(&error, ended.asked, ended.model),
        Outcome::Unprepared(error) => {
            Failure::new(format!("failed to put the next request together: {error}"))
        }
        Outcome::Endless { rounds } => Failure::new(format!(
            "the model called tools {rounds} times in a row and was stopped"
        ))
        .with_hint("`jp query` without words lets it go on."),
    };
    (Code::Failed, Err(failure))
}

/// Says what is kept and how to go on from there.
fn with_way_on(failure: Failure, ended: &Ended<'_>) -> Failure {
    match (ended.id.is_some() && ended.has_answer(), ended.incomplete()) {
        (false, _) => kept_message(failure, ended.id.is_some()),
        (true, None) if !ended.has_last_words() => failure.with_hint(
            "what the tools returned is kept: `jp query` without words lets the model go on from there.",
        ),
        (true, None) => failure.with_hint("the answer is kept: `jp query \"…\"` goes on from there."),
        (true, Some(_)) => failure.with_hint(
            "what arrived of the answer is kept: `jp query \"Go on.\"` goes on from there, `jp query` without words asks again.",
        ),
    }
}

/// Says what is lost where the answer could not be stored, and what is not.
fn unkept(error: WriteError) -> Failure {
    let is_gone =
        matches!(&error, WriteError::Io { source, .. } if source.kind() == ErrorKind::NotFound);
    let failure = Failure::from(error);
    if is_gone {
        return failure.with_hint(
            "the conversation is gone, and what was shown of the answer is not stored.",
        );
    }
    failure.with_hint(
        "what was shown last is not stored; what came before it is: `jp query` without words goes on.",
    )
}

/// Says that the message is not lost.
pub(super) fn kept_message(failure: Failure, is_kept: bool) -> Failure {
    if is_kept {
        failure.with_hint("the message is kept: `jp query` without words sends it again.")
    } else {
        failure
    }
}

/// Reads the answer as the document that was asked for.
fn read_structured(schema: &Schema, ended: &Ended<'_>) -> Result<Value, Failure> {
    schema
        .check(&ended.answer())
        .map_err(|fault| match ended.incomplete() {
            Some(reason) if reason != fault => {
                Failure::new(format!("the answer was cut off, {reason}: {fault}"))
            }
            _ => Failure::new(fault),
        })
}

fn go_on(output: &Output, id: Option<&str>) {
    match id {
        Some(id) => output.hint(&format!(
            "`jp query \"…\"` goes on with conversation {id}; `jp resource ls` shows what it holds."
        )),
        None => output.status("Nothing was stored."),
    }
}
