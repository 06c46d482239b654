//! Builds the bodies of requests.

use std::{borrow::Cow, collections::HashSet};

use jp_conversation::{Event, EventKind, view};
use jp_llm::{Body, Format, Note, Request, Tool, anthropic, models::Facts};

use crate::{
    error::SessionError,
    model::{Model, facts},
    notice::Notice,
    query::{
        budget, contents,
        ready_query::{ReadyQuery, newest_request},
    },
    session::Session,
};

/// The number of hidden parts of a request that jp names: more lines would push the answer off the screen.
const SHOWN_NOTES: usize = 10;

/// A request that is ready to send.
pub(crate) struct Written {
    pub(crate) body: Body,
    /// The parts that the model is not shown.
    pub(crate) notes: Vec<Note>,
    /// True if a reference or a diff replaces any content.
    is_shortened: bool,
}

/// Finds the model's facts and writes the first request. Warns if it is longer than the model accepts.
pub(crate) fn prepare(
    query: &ReadyQuery<'_>,
    tools: &[Tool],
    runtime: &tokio::runtime::Runtime,
) -> Result<(Facts, Written), SessionError> {
    let (model, thread) = (query.model(), &query.thread(&query.stream));
    // The facts may need a request to the provider, which an interrupt must end.
    let facts = runtime.block_on(async {
        tokio::select! {
            () = query.session.interrupt().wait() => Err(SessionError::interrupted()),
            facts = facts::find_facts(model, query.session, thread, tools) => Ok(facts),
        }
    })?;
    let written = encode(query, thread, tools, Some(model), facts)?;
    if let Some(limit) = facts.context_tokens {
        let mut rows = query.rows(thread);
        written
            .notes
            .iter()
            .for_each(|note| budget::mark_note(note, thread, &mut rows));
        query.session.warn_of_length(budget::tokens(&rows), limit);
    }
    Ok((facts, written))
}

/// Writes the request's body.
pub(crate) fn encode(
    query: &ReadyQuery<'_>,
    thread: &view::Thread<'_>,
    tools: &[Tool],
    model: Option<&Model>,
    facts: Facts,
) -> Result<Written, SessionError> {
    // Providers send requests with the same key to the machine that has their cache.
    let cache_key = query.id.map(|id| format!("jp-{id}"));
    let (format, request) = request(query, thread, tools, model, facts);
    let request = Request {
        cache_key: cache_key.as_deref(),
        ..request
    };
    let mut contents = contents::read_ahead(thread, query);
    let (body, notes) = format.body(&request, &mut contents)?;
    Ok(Written {
        body,
        notes,
        is_shortened: thread.is_shortened(),
    })
}

/// Returns whether to warn the user about a hidden part. Missing tools matter only if the user enabled
/// one, because some are on by default.
pub(crate) fn is_worth_a_warning(note: &Note, query: &ReadyQuery<'_>) -> bool {
    !note.is_about_tools() || query.tools.has_explicit(&query.config)
}

/// Puts a request together, and chooses its format. An explained query without a model uses that of
/// Chat Completions.
pub(crate) fn request<'a>(
    query: &'a ReadyQuery<'_>,
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
        system: query.config.config.assistant.system_prompt.as_deref(),
        tools,
        max_output: max_output(model, facts),
        context: model.and_then(|model| model.configured.context_tokens),
        capabilities: facts.capabilities(),
        ..Request::new(label, thread)
    };
    (format, request)
}

impl Session {
    /// Warns if a request is longer than the model accepts: the provider may refuse it or cut it.
    pub fn warn_of_length(&self, tokens: u64, limit: u64) {
        if tokens > limit {
            self.person.tell(Notice::RequestTooLong { tokens, limit });
        }
    }
}

/// Returns the largest answer, in tokens: the configured one, or `None`, and the provider decides.
/// Anthropic requires a limit, and refuses one above the model's own.
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
pub(crate) fn bytes(body: &Body) -> Result<Vec<u8>, jp_llm::Error> {
    let mut bytes = Vec::new();
    for chunk in body.chunks() {
        bytes.extend(chunk?);
    }
    Ok(bytes)
}

/// Builds the requests of a turn.
pub(crate) struct RequestBuilder {
    facts: Facts,
    tools: Vec<Tool>,
    /// The number of tools that don't come from servers. They come first.
    own_tools: usize,
    /// The first request, until it is sent.
    first: Option<Body>,
    /// The hidden parts that jp has named, as it worded them.
    noted: HashSet<String>,
    /// True if delivery saved anything in the last request.
    pub(crate) is_shortened: bool,
}

impl RequestBuilder {
    /// Starts with the first request, which is written already.
    pub(crate) fn new(
        query: &ReadyQuery<'_>,
        facts: Facts,
        tools: Vec<Tool>,
        first: Written,
    ) -> Self {
        let own_tools = tools.len() - query.tools.count_server_tools();
        let mut builder = Self {
            facts,
            tools,
            own_tools,
            first: None,
            noted: HashSet::new(),
            is_shortened: false,
        };
        builder.first = Some(builder.accept(query, first));
        builder
    }

    /// Returns whether the first request is still to be sent.
    pub(crate) fn has_first(&self) -> bool {
        self.first.is_some()
    }

    /// Replaces the tools of servers in later requests.
    pub(crate) fn offer_served(&mut self, served: &[jp_turn::Tool]) {
        self.tools.truncate(self.own_tools);
        let offered = served.iter().filter(|tool| tool.may_run());
        self.tools.extend(offered.map(jp_turn::Tool::definition));
    }

    /// Builds the next request. `aside` has events for this request only, which the conversation
    /// does not keep.
    ///
    /// The inner error says that the request is beyond the budget.
    pub(crate) fn build(
        &mut self,
        query: &ReadyQuery<'_>,
        aside: &[EventKind],
    ) -> Result<Result<Body, SessionError>, SessionError> {
        // The first request is ready, unless events for this request only must be added to it.
        if let Some(body) = self.first.take_if(|_| aside.is_empty()) {
            return Ok(Ok(body));
        }
        let mut stream = Cow::Borrowed(&query.stream);
        let now = query.session.now();
        aside
            .iter()
            .for_each(|kind| stream.to_mut().push(Event::new(now, kind.clone())));
        let thread = query.thread(&stream);
        let sent = budget::usable_tools(&self.tools, self.facts);
        if let Some(failure) = budget::find_excess(query, &thread, sent, || {
            budget::find_notes(query, &thread, &self.tools, self.facts)
        })? {
            return Ok(Err(match query.is_kept() {
                true => failure.with_hint(
                    "the answer so far is kept: `jp query` with a larger --budget and without a message continues it.",
                ),
                false => failure,
            }));
        }
        let written = encode(
            query,
            &thread,
            &self.tools,
            query.model.as_ref(),
            self.facts,
        )?;
        Ok(Ok(self.accept(query, written)))
    }

    /// Returns the body of a request that is sent next, and tells of its hidden parts.
    fn accept(&mut self, query: &ReadyQuery<'_>, written: Written) -> Body {
        self.tell_of_notes(query, &written.notes);
        self.is_shortened = written.is_shortened;
        written.body
    }

    /// Tells of the hidden parts of the newest turn, each once.
    fn tell_of_notes(&mut self, query: &ReadyQuery<'_>, notes: &[Note]) {
        let newest = newest_request(&query.stream).map_or(0, |(turn, _)| turn);
        let person = &query.session.person;
        let notes = notes
            .iter()
            .filter(|note| note.turn == newest && is_worth_a_warning(note, query));
        // The turn is not part of the words: the same note of another turn says nothing new.
        let new = notes.filter(|note| self.noted.insert(note.to_string()));
        let (content, other): (Vec<_>, Vec<_>) = new.partition(|note| note.bytes.is_some());
        let shown = other
            .into_iter()
            .chain(content.iter().copied().take(SHOWN_NOTES));
        for note in shown.cloned() {
            person.tell(Notice::NotShown { note });
        }
        if let Some(count @ 1..) = content.len().checked_sub(SHOWN_NOTES) {
            person.tell(Notice::MoreNotShown { count });
        }
    }
}
