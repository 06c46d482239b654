//! Asks the model for a summary of a conversation: a request beside it, with the same beginning, that is not kept.

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

/// What the model said.
#[derive(Default)]
pub struct Summary {
    /// The summary.
    pub text: String,
    /// What it cost.
    pub usage: Option<Usage>,
    has_called: bool,
    /// Why it is not whole.
    cut_off: Option<&'static str>,
}

/// Asks the conversation's model for a summary of its first `turns` turns.
pub fn ask(
    session: &Session,
    found: &Found,
    conversation: &Conversation,
    config: &Resolved,
    turns: usize,
) -> Result<Summary, SessionError> {
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
    let asked = ReadyQuery {
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
    let offered = toolbox::assemble(&asked)?.offered();
    let (_, Written { body, .. }) = body::prepare(&asked, &offered, &runtime)?;
    interrupt.check()?;
    let model = asked.model();
    session.person.tell(Notice::AskingForSummary {
        model: model.label.clone(),
    });
    let summary = runtime.block_on(async {
        tokio::select! {
            () = interrupt.wait() => Err(SessionError::interrupted()),
            summary = receive(&body, &asked) => summary,
        }
    })?;
    summary.checked(model)
}

/// Says what to write, and where what is to be summarised ends.
fn instruction(stream: &Stream, turns: usize) -> String {
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
        "Write a summary of this conversation{until}. It will stand in the place of those messages, so that the work can \
         go on without them. State the decisions and the reasons for them, the facts that were found, what is done and \
         what is left to do, the open questions, the names of the files, functions and commands that matter, and what \
         was tried without success. Write nothing but the summary, and call no tool now."
    )
}

async fn receive(body: &Body, asked: &ReadyQuery<'_>) -> Result<Summary, SessionError> {
    let model = asked.model();
    let client = Client::new(model.endpoint.clone())?;
    let refused = |error| refusal::failure(&error, asked, model);
    let mut on_retry = |notice: jp_llm::RetryNotice<'_>| asked.session.person.tell(notice.into());
    let mut response = client.send(body, &mut on_retry).await.map_err(refused)?;
    let mut summary = Summary::default();
    while let Some(event) = response.next().await.map_err(refused)? {
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
                self.cut_off = Some("it was held back by the provider's content filter");
            }
            StreamEvent::Reasoning(_) | StreamEvent::EndPart(_) | StreamEvent::Finish(_) => {}
        }
    }

    /// Returns the summary with the model's name in what it cost; fails where it is none.
    fn checked(mut self, model: &Model) -> Result<Self, SessionError> {
        let failed = |reason: &str| {
            Err(SessionError::new(format!("{} wrote no summary: {reason}", model.label)).with_hint(
                "nothing was stored. `jp conversation compact` without --summarize works without a model.",
            ))
        };
        if self.has_called {
            return failed("it called a tool");
        }
        if let Some(reason) = self.cut_off {
            return failed(&format!("its answer was cut off, {reason}"));
        }
        self.text = self.text.trim().to_owned();
        if self.text.is_empty() {
            return failed("its answer is empty");
        }
        if let Some(usage) = &mut self.usage {
            usage.model.clone_from(&model.label);
        }
        Ok(self)
    }
}
