//! `jp conversation compact`: shortens older turns in future requests.

use crate::{
    args,
    context::Context,
    error::{Code, SessionError},
};
use jp_config::Resolved;
use jp_conversation::{
    Compaction, Event, EventKind, Stream, Strip,
    view::{self, Compacted, Thread},
};
use jp_session::{
    lock, model,
    query::{budget, delivery},
    session::Found,
    size,
    summary::{self, Summary},
};
use jp_storage::{Conversation, lock::Lock};
use serde_json::{Value, json};

/// A conversation to shorten.
struct CompactTarget<'a> {
    context: &'a Context<'a>,
    found: Found,
    conversation: Conversation,
    config: Resolved,
    /// `None` in a dry run, which stores nothing.
    lock: Option<Lock>,
}

/// The effect of a compaction.
#[derive(Default)]
struct Effect {
    /// The number of turns that it covers.
    turns: usize,
    /// The tokens of the next request without it, as an estimate.
    before: u64,
    /// The same with it; `None` if the summary is not written yet.
    after: Option<u64>,
    /// Set once the history has it.
    is_stored: bool,
}

pub(super) fn run(context: &Context<'_>, options: &args::Compact) -> Result<Code, SessionError> {
    let found = context.session.select(options.conversation.id())?;
    // Locked before the conversation is read, so that no event is appended between reading and writing.
    let lock = if options.dry_run {
        None
    } else {
        Some(lock::acquire(&context.session, &found)?)
    };
    let conversation = context.session.read(&found)?;
    let config = context.session.config(Some(&conversation), &[])?;
    let target = CompactTarget {
        context,
        found,
        conversation,
        config,
        lock,
    };
    if options.reset {
        target.reset()
    } else {
        target.compact(options)
    }
}

impl CompactTarget<'_> {
    fn compact(self, options: &args::Compact) -> Result<Code, SessionError> {
        let events = self.stream().events();
        let turns = view::covered_turns(events, options.keep_last);
        let mut compaction = Compaction {
            keep_last: options.keep_last,
            strip: choose_strip(options),
            ..Compaction::default()
        };
        if turns == 0 {
            return self.report_nothing(&format!(
                "has {}",
                size::count(self.stream().turns().len(), "turn")
            ));
        }
        // A summary costs a request, so jp writes one only if it covers more turns than the last.
        let is_new = options.summarize && Compacted::from_events(events).summarised < turns;
        if !is_new
            && self.full_thread(&self.with_compaction(&compaction))
                == self.full_thread(self.stream())
        {
            return self.report_nothing("has nothing more to leave out of its older turns");
        }
        let before = self.count_tokens(self.stream());
        // A dry run asks no model, so the size with the summary stays unknown.
        if is_new && options.dry_run {
            return self.report(
                &compaction,
                &Effect {
                    turns,
                    before,
                    ..Effect::default()
                },
            );
        }
        let mut kinds = Vec::new();
        if is_new {
            let Summary { text, usage, .. } = summary::ask(
                &self.context.session,
                &self.found,
                &self.conversation,
                &self.config,
                turns,
            )?;
            // The tokens of the summary count towards the conversation.
            kinds.extend(usage.map(EventKind::Usage));
            compaction.summary = Some(text);
        }
        let after = Some(self.count_tokens(&self.with_compaction(&compaction)));
        kinds.push(EventKind::Compaction(compaction.clone()));
        self.store(
            &compaction,
            Effect {
                turns,
                before,
                after,
                ..Effect::default()
            },
            kinds,
        )
    }

    fn reset(self) -> Result<Code, SessionError> {
        let compaction = Compaction {
            reset: true,
            ..Compaction::default()
        };
        let before = self.count_tokens(self.stream());
        if Compacted::from_events(self.stream().events()).is_nothing() {
            return self.report_nothing("has no compaction to undo");
        }
        let after = Some(self.count_tokens(&self.with_compaction(&compaction)));
        let kinds = vec![EventKind::Compaction(compaction.clone())];
        self.store(
            &compaction,
            Effect {
                before,
                after,
                ..Effect::default()
            },
            kinds,
        )
    }

    fn stream(&self) -> &Stream {
        &self.conversation.stream
    }

    /// Returns the conversation with one more compaction.
    fn with_compaction(&self, compaction: &Compaction) -> Stream {
        let mut stream = self.stream().clone();
        stream.push(Event::new(
            self.context.session.now(),
            EventKind::Compaction(compaction.clone()),
        ));
        stream
    }

    /// Estimates the tokens of the next request, without the text of its message.
    fn count_tokens(&self, stream: &Stream) -> u64 {
        let blobs = self.found.store.blobs();
        let thread = delivery::deliver_stored(stream, &self.config.config, blobs);
        // Without a usable model jp estimates for the most common case.
        let model = model::find_configured(&self.config).ok().flatten();
        budget::tokens(&budget::rows(&thread, model.as_ref()))
    }

    /// Returns the messages that the configured model would receive, before references and diffs replace content.
    fn full_thread<'s>(&self, stream: &'s Stream) -> Thread<'s> {
        let thread = view::thread(stream);
        match model::find_configured(&self.config).ok().flatten() {
            Some(model) => model.filter_thread(thread),
            None => thread,
        }
    }

    /// Reports that there is nothing to do.
    fn report_nothing(&self, reason: &str) -> Result<Code, SessionError> {
        let output = self.context.output;
        if output.is_json() {
            let tokens = self.count_tokens(self.stream());
            let effect = Effect {
                before: tokens,
                after: Some(tokens),
                ..Effect::default()
            };
            output.json(&to_json(&Compaction::default(), &effect))?;
        } else {
            output.status(&format!(
                "Nothing to compact: conversation {} {reason}.",
                self.found.located.id
            ));
        }
        Ok(Code::Done)
    }

    /// Appends the events, unless this is a dry run, and reports the effect.
    fn store(
        mut self,
        compaction: &Compaction,
        mut effect: Effect,
        kinds: Vec<EventKind>,
    ) -> Result<Code, SessionError> {
        if let Some(lock) = self.lock.take() {
            let now = self.context.session.now();
            let mut writer = self.found.store.writer(&self.conversation, lock);
            let events = kinds
                .into_iter()
                .map(|kind| Event::new(now, kind))
                .collect();
            let batch = writer.batch();
            writer.append(events, batch)?;
            effect.is_stored = true;
        }
        self.report(compaction, &effect)
    }

    fn report(&self, compaction: &Compaction, effect: &Effect) -> Result<Code, SessionError> {
        let output = self.context.output;
        if output.is_json() {
            output.json(&to_json(compaction, effect))?;
            return Ok(Code::Done);
        }
        let lines = [describe_change(compaction, effect), describe_size(effect)];
        if !effect.is_stored {
            // A dry run's effect is its result, so it goes to stdout.
            lines.iter().try_for_each(|line| output.line(line))?;
            output.status("Nothing was stored.");
            return Ok(Code::Done);
        }
        lines.iter().for_each(|line| output.status(line));
        if !compaction.reset {
            output.hint("the history is unchanged; `jp conversation compact --reset` sends all of it again.");
        }
        Ok(Code::Done)
    }
}

/// Chooses what to leave out. Without an option it is both, unless a summary replaces the turns anyway.
fn choose_strip(options: &args::Compact) -> Vec<Strip> {
    if options.strip.is_empty() && !options.summarize {
        return vec![Strip::Reasoning, Strip::Tools];
    }
    let mut stripped: Vec<_> = options
        .strip
        .iter()
        .map(|strip| match strip {
            args::Strip::Reasoning => Strip::Reasoning,
            args::Strip::Tools => Strip::Tools,
        })
        .collect();
    // The event has each kind once, in a fixed order.
    stripped.sort_unstable();
    stripped.dedup();
    stripped
}

fn describe_change(compaction: &Compaction, effect: &Effect) -> String {
    if compaction.reset {
        return "Future requests send all turns in full.".to_owned();
    }
    let turns = match effect.turns {
        1 => "turn 1".to_owned(),
        last => format!("turns 1 to {}", size::thousands(last as u64)),
    };
    let without = compaction.strip.iter().map(|strip| match strip {
        Strip::Reasoning => "the model's reasoning",
        Strip::Tools => "the results of tools",
    });
    let without = without.collect::<Vec<_>>().join(" and ");
    match (&compaction.summary, effect.after) {
        (Some(summary), _) => {
            format!("Future requests send this summary instead of {turns}:\n\n{summary}\n")
        }
        (None, None) => {
            format!(
                "The model would write a summary, which future requests would send instead of {turns}."
            )
        }
        (None, Some(_)) => format!("Future requests send {turns} without {without}."),
    }
}

fn describe_size(effect: &Effect) -> String {
    let before = size::thousands(effect.before);
    match effect.after {
        Some(after) => {
            format!(
                "The conversation takes about {} tokens of a request instead of {before}.",
                size::thousands(after)
            )
        }
        None => format!("The conversation now takes about {before} tokens of a request."),
    }
}

fn to_json(compaction: &Compaction, effect: &Effect) -> Value {
    json!({
        "compacted": effect.is_stored && !compaction.reset,
        "reset": compaction.reset,
        "turns": effect.turns,
        "tokens_before": effect.before,
        "tokens_after": effect.after,
        "strip": compaction.strip,
        "summary": compaction.summary,
    })
}
