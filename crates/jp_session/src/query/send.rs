//! Sends the requests of a turn, and handles its events.

use std::{
    cell::Cell, convert::Infallible, error::Error, future::pending, rc::Rc, sync::Arc,
    time::Duration,
};

use jp_conversation::{Event, EventKind};
use jp_llm::{Body, Client, Tool, models::Facts};
use jp_resource::Checksum;
use jp_turn::{
    Decision, Delta, Host, Permission, PermissionRequest, Reply, Schema, Toolbox, Turn, TurnEvent,
};
use tokio::sync::oneshot;

use crate::{
    error::SessionError,
    notice::Notice,
    person::{Answer, Person, Question, Shown},
    query::{
        body::{RequestBuilder, Written, prepare},
        budget, contents,
        finish::{Report, kept_message},
        ready_query::{ReadyQuery, newest_request},
        record::{Recorder, Recording, is_from_model},
        schema,
    },
    runtime::runtime,
    tools::{call_outcome::EndedCall, toolbox},
    trust::{self, Approvals, Effect, Origin, decide},
};

/// The time without an answer after which jp says that it still waits. Most models begin to answer earlier.
const SILENCE: Duration = Duration::from_secs(10);

/// Runs the turn of a query that is ready to send.
pub(crate) fn run(
    query: ReadyQuery<'_>,
    mut recording: Option<Recording>,
) -> Result<Report<'_>, SessionError> {
    let session = query.session;
    let interrupt = session.interrupt();
    // The disk syncs the message while jp writes the first request.
    let prepared = match &mut recording {
        Some(recording) => recording.finish_during(session, || prepare_turn(&query))?,
        None => prepare_turn(&query),
    };
    // The last moment at which an interrupt costs nothing: nothing has been sent yet.
    let prepared = prepared.and_then(|prepared| interrupt.check().map(|()| prepared));
    let PreparedTurn {
        runtime,
        schema,
        toolbox,
        tools,
        facts,
        first,
    } = prepared.map_err(|failure| kept_message(failure, recording.is_some()))?;

    let id = recording
        .as_ref()
        .map(|recording| recording.writer.id().to_string());
    let model = query.model();
    let (label, endpoint) = (model.label.clone(), model.endpoint.clone());
    let mut host = TurnHost {
        builder: RequestBuilder::new(&query, facts, tools, first),
        recorder: Recorder::new(recording.map(|recording| recording.writer)),
        query,
        calls: Vec::new(),
        is_asking: false,
        failure: None,
        has_come: Rc::default(),
    };
    let (is_kept, has_come) = (host.query.is_kept(), Rc::clone(&host.has_come));
    let outcome = runtime.block_on(async {
        let client = Client::new(endpoint)?;
        let turn = Turn {
            client: &client,
            toolbox: &toolbox,
            model: &label,
            check: Some(&|answer: &str| schema.as_ref()?.check(answer).err()),
            max_rounds: Turn::MAX_ROUNDS,
        };
        // Dropping the turn would lose its events, so only its own end ends the wait.
        Ok::<_, SessionError>(tokio::select! {
            outcome = jp_turn::run(turn, interrupt.wait(), &mut host) => outcome,
            never = tell_of_silence(&*session.person, &has_come, &label, is_kept) => match never {},
        })
    })?;
    session.person.show(Shown::End)?;
    // A failure to show or store the answer matters more than the outcome of the turn.
    if let Some(failure) = host.failure.take() {
        return Err(failure);
    }
    Ok(host.into_report(id).judge(schema.as_ref(), outcome))
}

/// Tells the user that jp still waits if no answer begins in time. Never returns.
async fn tell_of_silence(
    person: &dyn Person,
    has_come: &Cell<bool>,
    model: &str,
    is_kept: bool,
) -> Infallible {
    tokio::time::sleep(SILENCE).await;
    if !has_come.get() {
        person.tell(Notice::ModelSilent {
            model: model.to_owned(),
            is_kept,
        });
    }
    pending().await
}

/// Everything that a turn needs.
struct PreparedTurn {
    runtime: tokio::runtime::Runtime,
    schema: Option<Schema>,
    toolbox: Arc<Toolbox>,
    tools: Vec<Tool>,
    facts: Facts,
    first: Written,
}

/// Puts the tools together and writes the first request.
fn prepare_turn(query: &ReadyQuery<'_>) -> Result<PreparedTurn, SessionError> {
    let runtime = runtime()?;
    let schema = newest_request(&query.stream).and_then(|(_, request)| request.schema.as_ref());
    let schema = schema.map(schema::compile_stored).transpose()?;
    let toolbox = Arc::new(toolbox::assemble(query)?);
    let tools = toolbox.definitions();
    let (facts, first) = prepare(query, &tools, &runtime)?;
    Ok(PreparedTurn {
        runtime,
        schema,
        toolbox,
        tools,
        facts,
        first,
    })
}

/// The host of a turn: it shows and records its events, and builds its requests.
struct TurnHost<'s> {
    query: ReadyQuery<'s>,
    builder: RequestBuilder,
    recorder: Recorder,
    /// The calls that ended in this turn, in the order of their results.
    calls: Vec<EndedCall>,
    /// `true` from a request until its first recorded event.
    is_asking: bool,
    /// The first failure of this host. The turn still receives the answer to its end, so the user sees all of it.
    failure: Option<SessionError>,
    /// True if the turn has sent any event.
    has_come: Rc<Cell<bool>>,
}

impl Host for TurnHost<'_> {
    fn take(&mut self, event: TurnEvent<'_>) {
        self.has_come.set(true);
        if let Err(failure) = self.handle(event) {
            self.failure.get_or_insert(failure);
        }
    }

    fn changed_tools(&mut self) -> Option<Vec<jp_turn::Tool>> {
        // The first request is written already, with the tools that the servers had then.
        if self.builder.has_first() {
            return None;
        }
        let served = toolbox::list_again(&mut self.query)?;
        self.builder.offer_served(&served);
        Some(served)
    }

    fn body(&mut self, aside: &[EventKind]) -> Result<Body, Box<dyn Error + Send + Sync>> {
        if let Some(failure) = &self.failure {
            // A request must not build on events that could not be stored.
            return Err(failure.message.clone().into());
        }
        self.is_asking = true;
        match self.builder.build(&self.query, aside) {
            Ok(Ok(body)) => Ok(body),
            Ok(Err(beyond_budget)) => {
                let message = beyond_budget.message.clone();
                self.failure = Some(beyond_budget);
                Err(message.into())
            }
            Err(failure) => Err(failure.message.into()),
        }
    }

    fn blob(
        &mut self,
        checksum: &Checksum,
    ) -> Result<Option<Vec<u8>>, Box<dyn Error + Send + Sync>> {
        // A checksum alone gives no access to content of other conversations.
        let mut blobs = self.query.stream.events().iter().flat_map(Event::blobs);
        let Some(blob) = blobs.find(|blob| blob.checksum == *checksum) else {
            return Ok(None);
        };
        Ok(Some(contents::read(&self.query, &blob)?.into_bytes()))
    }
}

impl<'s> TurnHost<'s> {
    fn handle(&mut self, event: TurnEvent<'_>) -> Result<(), SessionError> {
        let person = &self.query.session.person;
        match event {
            TurnEvent::Delta(Delta::Text(text)) => person.show(Shown::Text(text))?,
            TurnEvent::Delta(Delta::Reasoning(text)) => person.show(Shown::Reasoning(text))?,
            TurnEvent::Retry(notice) => person.tell(notice.into()),
            TurnEvent::Notice(text) => person.tell(Notice::Turn {
                text: text.to_owned(),
            }),
            TurnEvent::Progress(progress) => person.show(Shown::CallProgress(progress))?,
            TurnEvent::Detail(text) => person.tell(Notice::TurnDetail {
                text: text.to_owned(),
            }),
            TurnEvent::Record(kinds) => self.record(kinds)?,
            TurnEvent::Permit(request, reply) => self.permit(&request, reply),
            TurnEvent::Ask(question, reply) => {
                answer_with(reply, ask_for_tool(&**person, &question));
            }
            TurnEvent::Show { tool, blocks } => person.show(Shown::Blocks { tool, blocks })?,
            TurnEvent::ShowToUser { tool, blocks } => {
                person.show(Shown::UserOnly { tool, blocks })?;
            }
            TurnEvent::Called {
                call,
                response,
                verdict,
                edited,
            } => {
                self.calls.push(self.query.end_call(call, verdict, edited));
                person.show(Shown::Call {
                    request: call,
                    edited,
                    response,
                })?;
            }
        }
        Ok(())
    }

    /// Decides whether a call may run. After a failure no call runs, because its result could not be stored.
    fn permit(&self, request: &PermissionRequest, reply: oneshot::Sender<Decision>) {
        let decision = match self.failure {
            Some(_) => Some(Decision::Interrupted),
            None => self.ask_to_permit(request),
        };
        answer_with(reply, decision);
    }

    /// Asks the user whether a call may run, unless `--yes` answers. Returns `None` if no one can be
    /// asked.
    ///
    /// jp remembers an approval of what the workspace lets the tool do.
    fn ask_to_permit(&self, request: &PermissionRequest) -> Option<Decision> {
        let session = self.query.session;
        // `tools::permission` settled all other approvals before the turn.
        let yes = Approvals {
            is_yes: session.options.yes,
            ..Approvals::default()
        };
        let call = Effect::CallTool(Permission::Ask);
        if decide(Origin::Model, call, yes) == trust::Decision::Allowed {
            return Some(Decision::Allow);
        }
        let approvable = self.query.tools.approvable(&request.tool);
        match session.person.ask(Question::Permission {
            request,
            approvable,
        })? {
            Answer::Trust => {
                session.remember_approvals(approvable);
                Some(Decision::AllowForTurn)
            }
            Answer::Decision(decision) => Some(decision),
            Answer::Interrupted => Some(Decision::Interrupted),
            _ => Some(Decision::Refuse { reason: None }),
        }
    }

    /// Records events. The first ones of an answer also count the tokens that its request saved.
    fn record(&mut self, kinds: Vec<EventKind>) -> Result<(), SessionError> {
        if self.is_asking && kinds.iter().any(is_from_model) {
            if self.builder.is_shortened {
                // Before the events are added, the stream is still that of the request.
                let saved = budget::saved_tokens(&self.query, &self.query.stream);
                self.recorder.saved_tokens = self.recorder.saved_tokens.saturating_add(saved);
            }
            self.is_asking = false;
        }
        self.recorder.append(&mut self.query, kinds)
    }

    /// Returns the report of the turn, before its outcome is judged. `id` names the conversation if it
    /// keeps the query.
    fn into_report(self, id: Option<String>) -> Report<'s> {
        Report {
            query: self.query,
            id,
            kept: self.recorder.kept,
            calls: self.calls,
            saved_tokens: self.recorder.saved_tokens,
            answered: Ok(None),
        }
    }
}

/// Asks the user a tool's question. Returns `None` if no one can be asked.
fn ask_for_tool(person: &dyn Person, question: &jp_turn::Question) -> Option<Reply> {
    match person.ask(Question::Tool(question))? {
        Answer::Reply(reply) => Some(reply),
        _ => None,
    }
}

/// Sends an answer. Without one, drops the channel: that tells the turn that no one could be asked.
fn answer_with<T>(reply: oneshot::Sender<T>, answer: Option<T>) {
    if let Some(answer) = answer {
        // Fails if the call has been cancelled, and then needs no answer.
        _ = reply.send(answer);
    }
}
