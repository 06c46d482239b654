//! `jp query`: from the arguments to the answer, in the order in which it happens.

pub(crate) mod advice;
pub(crate) mod answer;
pub(crate) mod budget;
mod cold;
mod contents;
pub(crate) mod declarations;
pub(crate) mod delivered;
mod ended;
mod explain;
pub(crate) mod facts;
pub(crate) mod keeper;
pub(crate) mod locking;
mod message;
pub(crate) mod model;
mod prepare;
mod prompt;
pub(crate) mod provider;
mod refused;
pub(crate) mod resolve;
mod schema;
mod stale;
pub(crate) mod summary;
pub(crate) mod template;
mod tools;
pub(crate) mod trust;
mod watched;

use std::{
    borrow::Cow,
    collections::HashMap,
    path::PathBuf,
    sync::{Arc, mpsc},
    thread::{Scope, ScopedJoinHandle},
};

use jp_config::Resolved;
use jp_conversation::{Event, Stream};
use jp_llm::Measure;
use jp_resource::Checksum;
use jp_storage::{Conversation, ConversationId, Pending, WriteError, Writer};

pub(crate) use self::{contents::Scratch, tools::offered_names};
use self::{keeper::Kept, prepare::Prepared, tools::Tools};
use crate::{
    args::Query,
    error::{Code, Failure},
    workspace::{Context, Found},
};

pub(crate) fn run(query: Query, context: &Context<'_>) -> Result<Code, Failure> {
    let message = message::compose(&query, context)?;
    let target = Target::open(&query, context)?;
    let config = target.config(&query, context)?;
    warn_of_unknown_keys(context, &config);
    let tools = tools::choose(&query, context, &config, target.conversation())?;
    // Without a model there is no use in resolving or storing anything.
    let model = choose_model(&query, context, &config)?;
    let persists = !query.explain && !context.global.no_persist;
    let scratch = if persists {
        None
    } else {
        Some(Scratch::new()?)
    };
    let store = target.store().clone();
    let mut prepared = prepare::prepare(
        &query,
        context,
        &target,
        &config,
        message,
        &tools,
        scratch.as_ref(),
    )?;
    let Kept { files, measures } = std::mem::take(&mut prepared.kept);
    let mut asked = Asked {
        context,
        config: &config,
        store,
        scratch: scratch.as_ref(),
        files: Arc::new(files),
        measures: Arc::new(measures),
        tools,
        stream: Stream::default(),
        model: model.as_ref(),
        id: target.conversation().map(|conversation| conversation.id),
        budget: query.budget,
        compared: delivered::Compared::default(),
    };
    if let Some(model) = &model {
        cold::supersede(&mut prepared, &target.stream(), model, &asked);
    }
    if query.budget.is_some() && !query.explain {
        asked.stream = prepared.beside(&target.stream());
        budget::check(&asked, &prepared.batch)?;
    }
    let mut recording = None;
    if persists {
        let (stream, recorded) = record(context, target, prepared)?;
        context.remember_tools(recorded.writer.id(), asked.tools.chosen_on());
        (asked.stream, asked.id) = (stream, Some(recorded.writer.id()));
        recording = Some(recorded);
    } else {
        asked.stream = prepared.into_stream(target.into_stream())?;
    }
    match &model {
        model if query.explain => explain::run(&asked, model.as_ref()),
        Some(model) => answer::run(asked, model, recording.as_mut()),
        None => unreachable!("a query that is sent has a model: `choose` gave one"),
    }
}

/// Chooses the model, and says what the person should know of it; `--explain` can do without.
fn choose_model(
    query: &Query,
    context: &Context<'_>,
    config: &Resolved,
) -> Result<Option<model::Model>, Failure> {
    let model = match model::choose(config) {
        Err(failure) if query.explain => {
            context.output.warn(&failure.message);
            model::configured(config)?
        }
        model => Some(model?),
    };
    model.iter().for_each(|model| model.warn(context.output));
    Ok(model)
}

/// A conversation whose newest request is to be answered.
struct Asked<'a> {
    context: &'a Context<'a>,
    config: &'a Resolved,
    store: jp_storage::Store,
    /// Where the content is of a query that stores nothing.
    scratch: Option<&'a Scratch>,
    /// Files that hold content of the request as it is.
    files: Arc<HashMap<Checksum, PathBuf>>,
    /// The measures of texts that are from files.
    measures: Arc<HashMap<Checksum, Measure>>,
    tools: Tools,
    stream: Stream,
    /// The model that is asked, where one is known.
    model: Option<&'a model::Model>,
    /// The conversation, where it has an id.
    id: Option<ConversationId>,
    /// About how many tokens a request may have.
    budget: Option<u64>,
    /// Texts that were read to be compared.
    compared: delivered::Compared,
}

impl Asked<'_> {
    /// Returns whether the message is in the conversation, to be sent again.
    fn is_kept(&self) -> bool {
        self.scratch.is_none()
    }
}

/// A conversation that is being written to.
struct Recording {
    writer: Writer,
    /// The message on its way to the disk.
    message: Option<Pending>,
    /// That the conversation is used, on its way there, too.
    activation: Option<Pending>,
}

/// The conversation that a query goes to.
enum Target {
    /// A new one.
    New {
        store: jp_storage::Store,
        is_local: bool,
        title: Option<String>,
    },
    /// One that is there; locked unless nothing is stored.
    Existing {
        found: Found,
        conversation: Box<Conversation>,
        lock: Option<jp_storage::lock::Lock>,
    },
}

impl Target {
    fn open(query: &Query, context: &Context<'_>) -> Result<Self, Failure> {
        let new = || Self::New {
            store: context.store(query.local),
            is_local: query.local,
            title: query.title.clone(),
        };
        let found = match (query.new, &query.id) {
            (true, _) => return Ok(new()),
            (false, Some(id)) => context.selected(Some(id))?,
            (false, None) => match context.current()? {
                Some(found) => found,
                None => return Ok(new()),
            },
        };
        let persists = !query.explain && !context.global.no_persist;
        let lock = if persists {
            Some(locking::acquire(context, &found)?)
        } else {
            None
        };
        let conversation = Box::new(context.read(&found)?);
        Ok(Self::Existing {
            found,
            conversation,
            lock,
        })
    }

    fn conversation(&self) -> Option<&Conversation> {
        match self {
            Self::New { .. } => None,
            Self::Existing { conversation, .. } => Some(conversation),
        }
    }

    fn config(&self, query: &Query, context: &Context<'_>) -> Result<Resolved, Failure> {
        let model = query
            .model
            .as_deref()
            .map(|model| ("--model", "assistant.model.id", model));
        context.config(self.conversation(), &Vec::from_iter(model))
    }

    fn stream(&self) -> Cow<'_, Stream> {
        self.conversation()
            .map_or_else(Cow::default, |conversation| {
                Cow::Borrowed(&conversation.stream)
            })
    }

    fn into_stream(self) -> Stream {
        match self {
            Self::New { .. } => Stream::default(),
            Self::Existing { conversation, .. } => conversation.stream,
        }
    }

    fn store(&self) -> &jp_storage::Store {
        match self {
            Self::New { store, .. } => store,
            Self::Existing { found, .. } => &found.store,
        }
    }
}

/// Stores what was prepared; returns the conversation with it.
fn record(
    context: &Context<'_>,
    target: Target,
    prepared: Prepared,
) -> Result<(Stream, Recording), Failure> {
    let Prepared {
        kinds, batch, now, ..
    } = prepared;
    let events: Vec<_> = kinds
        .into_iter()
        .map(|kind| Event::new(now, kind))
        .collect();
    let mut activation = None;
    let (mut stream, mut writer) = match target {
        Target::New {
            store,
            is_local,
            title,
        } => {
            let title = title.or_else(|| events.iter().find_map(message::title));
            (
                Stream::default(),
                store.start(title.as_deref(), now, &[context.store(!is_local)])?,
            )
        }
        Target::Existing {
            found,
            conversation,
            lock,
        } => {
            let lock = lock.ok_or_else(|| Failure::new("the conversation is not locked"))?;
            let mut writer = found.store.writer(&conversation, lock);
            activation = Some(writer.activate(now));
            (conversation.stream, writer)
        }
    };
    let mut message = None;
    if !events.is_empty() {
        let (events, unsynced) = writer.write(events, batch)?;
        events.into_iter().for_each(|event| stream.push(event));
        message = Some(unsynced);
    }
    Ok((
        stream,
        Recording {
            writer,
            message,
            activation,
        },
    ))
}

impl Recording {
    /// Does some work while the disk takes what was written; nothing is sent before both are done. Once it is stored,
    /// the conversation is the current one.
    fn beside<T>(&mut self, context: &Context<'_>, work: impl FnOnce() -> T) -> Result<T, Failure> {
        let pending = [self.message.take(), self.activation.take()];
        let (done, [message, activation]) = std::thread::scope(|scope| {
            let finishing =
                pending.map(|pending| pending.map(|pending| start_finishing(scope, pending)));
            let done = work();
            (
                done,
                finishing.map(|finishing| finishing.map_or(Ok(()), finished)),
            )
        });
        message?;
        activation.map_err(|failure| answer::kept_message(failure, true))?;
        if let Err(error) = context.sessions().set_current(self.writer.id()) {
            context.output.warn(&format!(
                "the current conversation was not remembered: {error}"
            ));
        }
        Ok(done)
    }
}

/// What writes the message: a thread, or, where the system had none for it, what came of it already.
type Finishing<'scope> =
    Result<ScopedJoinHandle<'scope, Result<(), WriteError>>, Result<(), WriteError>>;

fn start_finishing<'scope>(
    scope: &'scope Scope<'scope, '_>,
    pending: Pending,
) -> Finishing<'scope> {
    let (sender, receiver) = mpsc::channel::<Pending>();
    let finish = move || receiver.recv().map_or(Ok(()), Pending::finish);
    match std::thread::Builder::new().spawn_scoped(scope, finish) {
        Ok(thread) => {
            sender.send(pending).expect("the thread waits for it");
            Ok(thread)
        }
        Err(_) => Err(pending.finish()),
    }
}

/// Waits for what a thread writes.
fn finished(finishing: Finishing<'_>) -> Result<(), Failure> {
    let panicked = |_| Failure::new("failed to store the message: its thread panicked");
    let done = finishing.map_or_else(Ok, |thread| thread.join().map_err(panicked));
    Ok(done??)
}

fn warn_of_unknown_keys(context: &Context<'_>, config: &Resolved) {
    let is_ours = |layer: &jp_config::Layer| {
        !matches!(
            layer,
            jp_config::Layer::Conversation | jp_config::Layer::Default
        )
    };
    for (key, layer) in config.unknown.iter().filter(|(_, layer)| is_ours(layer)) {
        context.output.warn(&format!(
            "unknown key `{key}` in {}: it has no effect",
            layer.without_value()
        ));
    }
}

/// Returns the request that is to be answered, with its turn.
fn newest_request(stream: &Stream) -> Option<(usize, &jp_conversation::ChatRequest)> {
    stream.requests().last()
}
