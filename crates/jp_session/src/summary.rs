//! Asks the model for a summary of a conversation.
//!
//! The request starts with the same bytes as the conversation, so that the provider's prompt cache
//! serves them. Neither it nor the answer is recorded.

use std::sync::Arc;

use crate::{
    error::SessionError,
    model::{self, Model},
    notice::Notice,
    query::{
        Scratch,
        body::{self, Written},
        delivery,
        ready_query::ReadyQuery,
        refusal,
        request::QueryRequest,
    },
    runtime::runtime,
    session::{Found, Session, Setup},
    tools::{self, toolbox},
};
use jp_config::Resolved;
use jp_conversation::{ChatRequest, Event, EventKind, Stream, Usage};
use jp_llm::{Body, Client, FinishReason, StreamEvent};
use jp_storage::Conversation;

/// A summary by the model.
#[derive(Default)]
pub struct Summary {
    /// The summary.
    pub text: String,
    /// The usage of the request.
    pub usage: Option<Usage>,
    has_called: bool,
    /// The reason why it is incomplete.
    cut_off: Option<&'static str>,
}

/// Asks the conversation's model for a summary of the first `turns` turns.
pub fn ask(
    session: &Session,
    found: &Found,
    conversation: &Conversation,
    config: &Resolved,
    turns: usize,
) -> Result<Summary, SessionError> {
    // The tools of the conversation, although the model must not call any: other definitions at the start
    // of the request would miss the prompt cache.
    let tools = tools::choose(
        &QueryRequest::default(),
        Setup::new(session, config),
        Some(conversation),
    )?;
    let model = model::choose(config)?;
    model.warn(&*session.person);
    let mut stream = conversation.stream.clone();
    let request = ChatRequest::new(instruction(&stream, turns));
    stream.push(Event::new(session.now(), EventKind::ChatRequest(request)));
    let scratch = Scratch::new()?;
    let query = ReadyQuery {
        session,
        config: config.clone(),
        store: found.store.clone(),
        scratch: Some(scratch),
        files: Arc::default(),
        measures: Arc::default(),
        tools,
        stream,
        model: Some(model),
        id: Some(found.located.id),
        budget: None,
        compared: delivery::Compared::default(),
    };
    let runtime = runtime()?;
    let interrupt = session.interrupt();
    let offered = toolbox::assemble(&query)?.definitions();
    let (_, Written { body, .. }) = body::prepare(&query, &offered, &runtime)?;
    interrupt.check()?;
    let model = query.model();
    session.person.tell(Notice::AskingForSummary {
        model: model.label.clone(),
    });
    let summary = runtime.block_on(async {
        tokio::select! {
            () = interrupt.wait() => Err(SessionError::interrupted()),
            summary = receive(&body, &query) => summary,
        }
    })?;
    summary.check(model)
}

/// Returns the instruction for the model: the content of the summary, and the end of the part to
/// summarise.
fn instruction(stream: &Stream, turns: usize) -> String {
    /// Characters of the first message after that part: enough to recognise it.
    const SHOWN: usize = 80;
    let until = stream
        .requests()
        .nth(turns)
        .map_or_else(String::new, |(_, request)| {
            let words = request
                .content
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(" ");
            format!(
                ", of everything before the message that begins with {:?}",
                words.chars().take(SHOWN).collect::<String>()
            )
        });
    format!(
        "Write a summary of this conversation{until}. It will replace those messages, so include everything \
         that the work needs to continue without them: the decisions and the reasons for them, the facts that were \
         found, the finished and the remaining work, the open questions, the names of the relevant files, functions \
         and commands, and the attempts that failed. Write only the summary, and call no tools."
    )
}

/// Sends the request and receives the answer.
async fn receive(body: &Body, query: &ReadyQuery<'_>) -> Result<Summary, SessionError> {
    let model = query.model();
    let client = Client::new(model.endpoint.clone())?;
    let mut on_retry = |notice: jp_llm::RetryNotice<'_>| query.session.person.tell(notice.into());
    let mut response = client
        .send(body, &mut on_retry)
        .await
        .map_err(|error| refusal::describe(&error, query))?;
    let mut summary = Summary::default();
    while let Some(event) = response
        .next()
        .await
        .map_err(|error| refusal::describe(&error, query))?
    {
        summary.take(event);
    }
    Ok(summary)
}

impl Summary {
    fn take(&mut self, event: StreamEvent) {
        match event {
            StreamEvent::Text(text) => self.text.push_str(&text),
            StreamEvent::ToolCall(_) => self.has_called = true,
            StreamEvent::Usage(usage) => self.usage = Some(usage),
            StreamEvent::Finish(FinishReason::Length) => {
                self.cut_off = Some("the length limit was reached")
            }
            StreamEvent::Finish(FinishReason::ContentFilter) => {
                self.cut_off = Some("it was blocked by the provider's content filter");
            }
            StreamEvent::Reasoning(_) | StreamEvent::EndPart(_) | StreamEvent::Finish(_) => {}
        }
    }

    /// Returns the summary, with the name of the model in its usage. Fails if the answer is no summary.
    fn check(mut self, model: &Model) -> Result<Self, SessionError> {
        self.text = self.text.trim().to_owned();
        let fault = match self.cut_off {
            _ if self.has_called => Some("it called a tool".to_owned()),
            Some(reason) => Some(format!("its answer was cut off, {reason}")),
            None if self.text.is_empty() => Some("its answer is empty".to_owned()),
            None => None,
        };
        if let Some(fault) = fault {
            return Err(SessionError::new(format!("{} wrote no summary: {fault}", model.label))
                .with_hint("nothing was stored. `jp conversation compact` without --summarize works without a model."));
        }
        if let Some(usage) = &mut self.usage {
            usage.model.clone_from(&model.label);
        }
        Ok(self)
    }
}
