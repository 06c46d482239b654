//! Sending the requests of a turn, and taking in what comes back.

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
        finish::{FinishedTurn, Report, judge, kept_message},
        ready_query::{ReadyQuery, newest_request},
        record::{Recorder, Recording, is_the_models},
        schema,
    },
    runtime::runtime,
    tools::{call_outcome::EndedCall, toolbox},
    trust::{self, Approvals, Effect, Origin, decide},
};

/// How long a model may be silent before the user is told that jp still waits.
const SILENCE: Duration = Duration::from_secs(10);

/// Runs the turn of a query that is ready to send.
pub(crate) fn run(
    asked: ReadyQuery<'_>,
    mut recording: Option<Recording>,
) -> Result<Report<'_>, SessionError> {
    let session = asked.session;
    let interrupt = session.interrupt();
    let ready = match &mut recording {
        Some(recording) => recording.beside(session, || ready(&asked))?,
        None => ready(&asked),
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

    let id = recording
        .as_ref()
        .map(|recording| recording.writer.id().to_string());
    let model = asked.model();
    let (label, endpoint) = (model.label.clone(), model.endpoint.clone());
    let mut host = TurnHost {
        builder: RequestBuilder::new(&asked, facts, tools, first),
        recorder: Recorder::new(recording.map(|recording| recording.writer)),
        asked,
        calls: Vec::new(),
        is_asking: false,
        failure: None,
        has_come: Rc::default(),
    };
    let (is_kept, has_come) = (host.asked.is_kept(), Rc::clone(&host.has_come));
    let outcome = runtime.block_on(async {
        let client = Client::new(endpoint)?;
        let fault = |answer: &str| schema.as_ref()?.check(answer).err();
        let turn = Turn {
            client: &client,
            toolbox: &toolbox,
            model: &label,
            check: Some(&fault),
            max_rounds: Turn::MAX_ROUNDS,
        };
        Ok::<_, SessionError>(tokio::select! {
            outcome = jp_turn::run(turn, interrupt.wait(), &mut host) => outcome,
            never = tell_of_silence(&*session.person, &has_come, &label, is_kept) => match never {},
        })
    })?;
    session.person.show(Shown::End)?;
    if let Some(failure) = host.failure.take() {
        return Err(failure);
    }
    Ok(judge(host.into_turn(id), schema.as_ref(), outcome))
}

/// Says that an answer is waited for, once it takes long to begin.
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
fn ready(asked: &ReadyQuery<'_>) -> Result<Ready, SessionError> {
    let runtime = runtime()?;
    let schema = newest_request(&asked.stream).and_then(|(_, request)| request.schema.as_ref());
    let schema = schema.map(schema::of_message).transpose()?;
    let toolbox = Arc::new(toolbox::assemble(asked)?);
    let tools = toolbox.offered();
    let (facts, first) = prepare(asked, &tools, &runtime)?;
    Ok(Ready {
        runtime,
        schema,
        toolbox,
        tools,
        facts,
        first,
    })
}

/// What a turn talks to: it shows what arrives, records it and builds the next request.
struct TurnHost<'s> {
    asked: ReadyQuery<'s>,
    builder: RequestBuilder,
    recorder: Recorder,
    /// The calls that ended in this turn, in the order of their results.
    calls: Vec<EndedCall>,
    /// Whether a request has no answer yet.
    is_asking: bool,
    /// The first thing that went wrong here; the answer is received to its end all the same.
    failure: Option<SessionError>,
    /// Whether anything came of the turn.
    has_come: Rc<Cell<bool>>,
}

impl Host for TurnHost<'_> {
    fn take(&mut self, event: TurnEvent<'_>) {
        self.has_come.set(true);
        if let Err(failure) = self.take_in(event) {
            self.failure.get_or_insert(failure);
        }
    }

    fn served(&mut self) -> Option<Vec<jp_turn::Tool>> {
        // The first request is written already.
        if self.builder.has_first() {
            return None;
        }
        let served = toolbox::list_again(&mut self.asked)?;
        self.builder.offer_served(&served);
        Some(served)
    }

    fn body(&mut self, aside: &[EventKind]) -> Result<Body, Box<dyn Error + Send + Sync>> {
        if let Some(failure) = &self.failure {
            // What could not be stored is not built upon.
            return Err(failure.message.clone().into());
        }
        self.is_asking = true;
        match self.builder.build(&self.asked, aside) {
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
        let mut blobs = self.asked.stream.events().iter().flat_map(Event::blobs);
        let Some(blob) = blobs.find(|blob| blob.checksum == *checksum) else {
            return Ok(None);
        };
        Ok(Some(contents::read(&self.asked, &blob)?.into_bytes()))
    }
}

impl<'s> TurnHost<'s> {
    fn take_in(&mut self, event: TurnEvent<'_>) -> Result<(), SessionError> {
        let person = &self.asked.session.person;
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
                self.calls.push(self.asked.end_call(call, verdict, edited));
                person.show(Shown::Call {
                    request: call,
                    edited,
                    response,
                })?;
            }
        }
        Ok(())
    }

    /// Asks whether a call may run; approving what the workspace wants unattended is remembered.
    fn permit(&self, request: &PermissionRequest, reply: oneshot::Sender<Decision>) {
        let decision = match self.failure {
            Some(_) => Some(Decision::Interrupted),
            None => self.ask_to_permit(request),
        };
        answer_with(reply, decision);
    }

    fn ask_to_permit(&self, request: &PermissionRequest) -> Option<Decision> {
        let session = self.asked.session;
        let yes = Approvals {
            is_yes: session.options.yes,
            ..Approvals::default()
        };
        let call = Effect::CallTool(Permission::Ask);
        if decide(Origin::Model, call, yes) == trust::Decision::Allowed {
            return Some(Decision::Allow);
        }
        let approvable = self.asked.tools.approvable(&request.tool);
        match session.person.ask(Question::Permission {
            request,
            approvable,
        })? {
            Answer::Trust => {
                session.remember_agreed(approvable);
                Some(Decision::AllowForTurn)
            }
            Answer::Decision(decision) => Some(decision),
            Answer::Interrupted => Some(Decision::Interrupted),
            _ => Some(Decision::Refuse { reason: None }),
        }
    }

    fn record(&mut self, kinds: Vec<EventKind>) -> Result<(), SessionError> {
        if self.is_asking && kinds.iter().any(is_the_models) {
            if self.builder.is_shortened {
                // The conversation is still what was sent.
                let saved = budget::saved_tokens(&self.asked, &self.asked.stream);
                self.recorder.saved_tokens = self.recorder.saved_tokens.saturating_add(saved);
            }
            self.is_asking = false;
        }
        self.recorder.append(&mut self.asked, kinds)
    }

    /// Returns what the turn came to; `id` names its conversation if that is kept.
    fn into_turn(self, id: Option<String>) -> FinishedTurn<'s> {
        FinishedTurn {
            asked: self.asked,
            id,
            kept: self.recorder.kept,
            calls: self.calls,
            saved_tokens: self.recorder.saved_tokens,
        }
    }
}

/// Has the person answer a tool's question.
fn ask_for_tool(person: &dyn Person, question: &jp_turn::Question) -> Option<Reply> {
    match person.ask(Question::Tool(question))? {
        Answer::Reply(reply) => Some(reply),
        _ => None,
    }
}

/// Sends an answer; where there is none the channel is dropped, which says that nobody is there.
fn answer_with<T>(reply: oneshot::Sender<T>, answer: Option<T>) {
    if let Some(answer) = answer {
        // Fails where the call was given up meanwhile.
        _ = reply.send(answer);
    }
}
