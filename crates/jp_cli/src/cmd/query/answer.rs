//! Sending the request, showing the answer and keeping it.

use std::io::Write as _;

use jp_conversation::{Event, EventKind, ResponseContent, Usage, view};
use jp_llm::{Body, Client, Format, Note, Request, anthropic, models::Facts};
use jp_storage::{Pending, Writer};
use jp_turn::{Delta, Outcome, Turn, TurnEvent};
use serde_json::{Value, json};

use super::{Asked, Recording, contents::contents, facts, model::Model, refused, schema::Schema};
use crate::{
    cmd::resource::{Attached, describe},
    error::{Code, Failure},
    output::{Output, table},
    size,
    workspace::Context,
};

pub(super) fn run(
    asked: &Asked<'_>,
    model: &Model,
    mut recording: Option<&mut Recording>,
) -> Result<Code, Failure> {
    let runtime = runtime()?;
    let schema = super::newest_request(&asked.stream).and_then(|(_, request)| request.schema.as_ref());
    let schema = schema.map(Schema::of_message).transpose()?;
    let thread = view::thread(&asked.stream);
    let interrupt = asked.context.interrupt();
    let pending = recording.as_mut().map(|recording| std::mem::take(&mut recording.pending));
    let prepared = beside(pending.unwrap_or_default(), || prepare(asked, model, &thread, &runtime));
    let prepared = prepared.and_then(|prepared| interrupt.check().map(|()| prepared));
    let (body, notes) = prepared.map_err(|failure| match failure.code {
        Code::Interrupted => kept_message(failure, recording.is_some()),
        _ => failure,
    })?;
    let newest = super::newest_request(&asked.stream).map_or(0, |(turn, _)| turn);
    let is_new = |note: &&Note| note.turn == newest;
    notes.iter().filter(is_new).for_each(|note| asked.context.output.warn(&note.to_string()));

    let writer = recording.map(|recording| &mut recording.writer);
    let id = writer.as_ref().map(|writer| writer.id().to_string());
    let mut keeper = Keeper {
        context: asked.context,
        writer,
        kept: Vec::new(),
        failure: None,
        is_shown: false,
        is_reasoning: false,
    };
    let outcome = runtime.block_on(async {
        let client = Client::new(model.endpoint.clone())?;
        let fault = |answer: &str| schema.as_ref()?.check(answer).err();
        let turn = Turn { client: &client, body: &body, model: &model.label, check: Some(&fault) };
        Ok::<_, Failure>(jp_turn::run(turn, interrupt.wait(), &mut |event| keeper.take(event)).await)
    })?;
    keeper.end_line()?;
    if let Some(failure) = keeper.failure.take() {
        return Err(failure);
    }
    let kept = std::mem::take(&mut keeper.kept);
    finish(asked, model, id.as_deref(), &kept, schema.as_ref(), outcome)
}

/// Finds out what the model takes and writes the request.
fn prepare(
    asked: &Asked<'_>,
    model: &Model,
    thread: &view::Thread<'_>,
    runtime: &tokio::runtime::Runtime,
) -> Result<(Body, Vec<Note>), Failure> {
    let facts = runtime.block_on(async {
        tokio::select! {
            () = asked.context.interrupt().wait() => Err(Failure::interrupted()),
            facts = facts::facts(model, asked.context, thread) => Ok(facts),
        }
    })?;
    if let Some(limit) = facts.context_tokens {
        warn_of_length(asked.context, tokens(&view::explain(thread)), limit);
    }
    encode(asked, thread, Some(model), facts)
}

/// Does some work while the disk takes what was written; nothing is sent before both are done.
fn beside<T>(pending: Vec<Pending>, work: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    std::thread::scope(|scope| {
        let start = |pending: Pending| scope.spawn(|| pending.finish());
        let finishing: Vec<_> = pending.into_iter().map(start).collect();
        let done = work();
        for thread in finishing {
            thread.join().map_err(|_| Failure::new("failed to store the message: its thread panicked"))??;
        }
        done
    })
}

/// Makes what runs asynchronous work: one thread, for what waits on a network.
pub(crate) fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}

/// Writes the request's body; says what the model can't be shown.
pub(super) fn encode(
    asked: &Asked<'_>,
    thread: &view::Thread<'_>,
    model: Option<&Model>,
    facts: Facts,
) -> Result<(Body, Vec<Note>), Failure> {
    let system = asked.config.config.assistant.system_prompt.as_deref();
    let (label, format) = match model {
        Some(model) => (model.label.as_str(), model.endpoint.format),
        None => ("(no model chosen)", Format::Chat),
    };
    let cache_key = asked.id.map(|id| format!("jp-{id}"));
    let request = Request {
        system,
        max_output: max_output(model, facts),
        context: model.and_then(|model| model.configured.context_tokens),
        cache_key: cache_key.as_deref(),
        capabilities: facts.capabilities(),
        ..Request::new(label, thread)
    };
    let mut contents = contents(thread, asked);
    Ok(Body::new(|out| format.encode(&request, &mut contents, out))?)
}

/// Returns about how many tokens a request has.
pub(super) fn tokens(turns: &[view::TurnRow]) -> u64 {
    turns.iter().flat_map(|turn| &turn.blocks).map(|block| block.tokens).sum()
}

/// Says that a request is likely to be refused, or cut by the server.
pub(super) fn warn_of_length(context: &Context<'_>, tokens: u64, limit: u64) {
    if tokens > limit {
        let [tokens, limit] = [tokens, limit].map(size::thousands);
        context.output.warn(&format!("the request has about {tokens} tokens, and the model takes {limit}"));
    }
}

/// Returns how long the answer may be: as configured, else the provider decides. Anthropic wants a limit, and none
/// beyond the model's own.
fn max_output(model: Option<&Model>, facts: Facts) -> Option<u64> {
    let Model { endpoint, configured, .. } = model?;
    let own = facts.max_output_tokens.map(|own| own.min(anthropic::DEFAULT_MAX_TOKENS));
    configured.max_output_tokens.or(own.filter(|_| endpoint.format == Format::Anthropic))
}

/// Returns a body's bytes.
pub(super) fn bytes(body: &Body) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    body.chunks().try_for_each(|chunk| bytes.write_all(&chunk?))?;
    Ok(bytes)
}

/// Shows what arrives and appends it to the conversation.
struct Keeper<'a> {
    context: &'a Context<'a>,
    writer: Option<&'a mut Writer>,
    kept: Vec<EventKind>,
    /// The first thing that went wrong here; the answer is received to its end all the same.
    failure: Option<Failure>,
    /// Whether a line of the answer is open.
    is_shown: bool,
    /// Whether reasoning was shown last.
    is_reasoning: bool,
}

impl Keeper<'_> {
    fn take(&mut self, event: TurnEvent<'_>) {
        let taken = match event {
            TurnEvent::Delta(Delta::Text(text)) => self.show(text),
            TurnEvent::Delta(Delta::Reasoning(text)) => {
                self.is_reasoning = true;
                self.context.output.reasoning(text);
                Ok(())
            }
            TurnEvent::Retry(notice) => {
                self.context.output.status(&format!("{notice}"));
                Ok(())
            }
            TurnEvent::Notice(notice) => {
                self.context.output.warn(notice);
                Ok(())
            }
            TurnEvent::Record(kind) => self.record(kind),
        };
        if let Err(failure) = taken {
            self.failure.get_or_insert(failure);
        }
    }

    fn show(&mut self, text: &str) -> Result<(), Failure> {
        if self.context.output.is_json() {
            return Ok(());
        }
        if std::mem::take(&mut self.is_reasoning) {
            self.context.output.reasoning("\n\n");
        }
        self.is_shown = !text.ends_with('\n');
        self.context.output.text(text)
    }

    fn record(&mut self, kind: EventKind) -> Result<(), Failure> {
        let event = Event::new(self.context.now(), kind.clone());
        self.kept.push(kind);
        let Some(writer) = self.writer.take() else { return Ok(()) };
        let batch = writer.batch();
        writer.append(vec![event], batch)?;
        // Not given back where that failed: what came after it would be an answer with a hole in it.
        self.writer = Some(writer);
        Ok(())
    }

    fn end_line(&mut self) -> Result<(), Failure> {
        if std::mem::take(&mut self.is_shown) { self.context.output.line("") } else { Ok(()) }
    }
}

fn finish(
    asked: &Asked<'_>,
    model: &Model,
    id: Option<&str>,
    kept: &[EventKind],
    schema: Option<&Schema>,
    outcome: Outcome,
) -> Result<Code, Failure> {
    let mut structured = None;
    let output = asked.context.output;
    let has_answer =
        kept.iter().any(|kind| matches!(kind, EventKind::ChatResponse(_) | EventKind::ToolCallRequest(_)));
    let (code, failure) = match outcome {
        Outcome::Done { .. } if !has_answer => {
            (Code::Failed, Some(Failure::new("the model's answer is empty")))
        }
        Outcome::Done { .. } => match schema.map(|schema| read_structured(schema, kept)).transpose() {
            Ok(value) => {
                structured = value;
                (Code::Done, None)
            }
            Err(failure) => (Code::Failed, Some(failure)),
        },
        Outcome::Interrupted => (Code::Interrupted, Some(Failure::interrupted())),
        Outcome::Failed(error) => (Code::Failed, Some(refused::failure(&error, asked, model))),
    };
    let cut_off = incomplete(kept).filter(|_| failure.is_none());
    if let Some(reason) = cut_off {
        output.warn(&format!("the answer is incomplete: {reason}"));
    }
    if output.is_json() && failure.is_none() {
        output.json(&document(asked, model, id, kept, structured))?;
    }
    if has_answer && !output.is_json() {
        summarise(asked, kept);
    }
    let Some(mut failure) = failure else {
        go_on(output, id);
        return Ok(code);
    };
    failure.code = code;
    Err(match (id.is_some() && has_answer, incomplete(kept)) {
        (false, _) => kept_message(failure, id.is_some()),
        (true, None) => failure.with_hint("the answer is kept: `jp query \"…\"` goes on from there."),
        (true, Some(_)) => failure.with_hint(
            "what arrived of the answer is kept: `jp query \"Go on.\"` goes on from there, `jp query` without words asks again.",
        ),
    })
}

/// Says that the message is not lost.
fn kept_message(failure: Failure, is_kept: bool) -> Failure {
    if is_kept {
        failure.with_hint("the message is kept: `jp query` without words sends it again.")
    } else {
        failure
    }
}

/// Reads the answer as the document that was asked for.
fn read_structured(schema: &Schema, kept: &[EventKind]) -> Result<Value, Failure> {
    schema.check(&answer(kept)).map_err(|fault| match incomplete(kept) {
        Some(reason) if reason != fault => Failure::new(format!("the answer was cut off, {reason}: {fault}")),
        _ => Failure::new(fault),
    })
}

/// Returns why the answer was cut off, if it was.
fn incomplete(kept: &[EventKind]) -> Option<&str> {
    kept.iter().find_map(|kind| match kind {
        EventKind::ChatResponse(response) => response.incomplete.as_deref(),
        _ => None,
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

/// Says what the model was given and what it cost.
fn summarise(asked: &Asked<'_>, kept: &[EventKind]) {
    let output = asked.context.output;
    output.status("");
    attached_lines(asked, output);
    if let Some(usage) = usage(kept) {
        output.status(&usage_line(usage));
    }
}

fn attached_lines(asked: &Asked<'_>, output: &Output) {
    const SHOWN: usize = 10;
    let Some((_, request)) = super::newest_request(&asked.stream) else { return };
    let snapshots = &request.resources;
    if snapshots.is_empty() {
        return;
    }
    let bytes = snapshots.iter().map(|snapshot| snapshot.blob_ref().size).sum();
    output.status(&format!("Attached {}, {}:", size::count(snapshots.len(), "resource"), size::bytes(bytes)));
    let row = |snapshot: &jp_resource::Snapshot| {
        vec![format!("  {}", snapshot.label()), size::bytes(snapshot.blob_ref().size), snapshot.uri.clone()]
    };
    let rows: Vec<_> = snapshots.iter().take(SHOWN).map(row).collect();
    table(&rows).iter().for_each(|line| output.status(line));
    if snapshots.len() > SHOWN {
        output.status(&format!("  … and {} more", size::thousands((snapshots.len() - SHOWN) as u64)));
    }
}

fn usage(kept: &[EventKind]) -> Option<&Usage> {
    kept.iter().find_map(|kind| match kind {
        EventKind::Usage(usage) => Some(usage),
        _ => None,
    })
}

fn usage_line(usage: &Usage) -> String {
    let figures = [("input", usage.input), ("from cache", usage.cached_read), ("output", usage.output)];
    let figures =
        figures.into_iter().filter_map(|(name, tokens)| Some(format!("{} {name}", size::thousands(tokens?))));
    format!("Tokens: {}", figures.collect::<Vec<_>>().join(", "))
}

/// Returns the words of the answer, reasoning aside.
fn answer(kept: &[EventKind]) -> String {
    text(kept, |content| match content {
        ResponseContent::Message(text) => Some(text),
        ResponseContent::Reasoning(_) => None,
    })
}

fn text(kept: &[EventKind], is_wanted: fn(&ResponseContent) -> Option<&String>) -> String {
    let texts = kept.iter().filter_map(|kind| match kind {
        EventKind::ChatResponse(response) => is_wanted(&response.content),
        _ => None,
    });
    texts.cloned().collect()
}

fn document(
    asked: &Asked<'_>,
    model: &Model,
    id: Option<&str>,
    kept: &[EventKind],
    structured: Option<Value>,
) -> Value {
    let reasoning = text(kept, |content| match content {
        ResponseContent::Reasoning(text) => Some(text),
        ResponseContent::Message(_) => None,
    });
    let (turn, resources) =
        super::newest_request(&asked.stream).map_or((0, Vec::new()), |(turn, request)| {
            (turn, request.resources.iter().map(|snapshot| describe(&Attached { turn, snapshot })).collect())
        });
    let mut document = json!({
        "conversation": id, "turn": turn, "model": model.label, "answer": answer(kept),
        "reasoning": (!reasoning.is_empty()).then_some(reasoning),
        "incomplete": incomplete(kept), "resources": resources, "usage": usage(kept),
    });
    if let Some(structured) = structured {
        document["structured"] = structured;
    }
    document
}
