//! `jp conversation compact`: older turns are sent shortened from the next message on.

use crate::{
    args,
    context::Context,
    error::{Code, Failure},
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

/// A conversation that is to be shortened.
struct Target<'a> {
    context: &'a Context<'a>,
    found: Found,
    conversation: Conversation,
    config: Resolved,
    /// Not there where nothing is to be stored.
    lock: Option<Lock>,
}

/// What a compaction does.
struct Effect {
    /// How many turns it covers.
    turns: usize,
    /// About how many tokens the next request has without it.
    before: u64,
    /// And with it, where that is known.
    after: Option<u64>,
    /// Whether it is in the history.
    is_stored: bool,
}

pub(super) fn run(context: &Context<'_>, options: &args::Compact) -> Result<Code, Failure> {
    let found = context.session.selected(options.conversation.id())?;
    let lock = if options.dry_run {
        None
    } else {
        Some(lock::acquire(&context.session, &found)?)
    };
    let conversation = context.session.read(&found)?;
    let config = context.session.config(Some(&conversation), &[])?;
    let target = Target {
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

impl Target<'_> {
    fn compact(self, options: &args::Compact) -> Result<Code, Failure> {
        let events = self.stream().events();
        let turns = view::covered_turns(events, options.keep_last);
        let mut compaction = Compaction {
            keep_last: options.keep_last,
            strip: stripped(options),
            ..Compaction::default()
        };
        if turns == 0 {
            return self.nothing(&format!(
                "has {}",
                size::count(self.stream().turns().len(), "turn")
            ));
        }
        let is_new = options.summarize && Compacted::from_events(events).summarised < turns;
        if !is_new && self.taken(&self.with(&compaction)) == self.taken(self.stream()) {
            return self.nothing(
                "has nothing more in the turns before the last ones that could be left out",
            );
        }
        let before = self.tokens(self.stream());
        if is_new && options.dry_run {
            return self.report(
                &compaction,
                &Effect {
                    turns,
                    before,
                    after: None,
                    is_stored: false,
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
            kinds.extend(usage.map(EventKind::Usage));
            compaction.summary = Some(text);
        }
        let after = Some(self.tokens(&self.with(&compaction)));
        kinds.push(EventKind::Compaction(compaction.clone()));
        self.store(
            &compaction,
            Effect {
                turns,
                before,
                after,
                is_stored: false,
            },
            kinds,
        )
    }

    fn reset(self) -> Result<Code, Failure> {
        let compaction = Compaction {
            reset: true,
            ..Compaction::default()
        };
        let before = self.tokens(self.stream());
        if Compacted::from_events(self.stream().events()).is_nothing() {
            return self.nothing("is sent whole already: there is nothing to reset");
        }
        let after = Some(self.tokens(&self.with(&compaction)));
        let kinds = vec![EventKind::Compaction(compaction.clone())];
        self.store(
            &compaction,
            Effect {
                turns: 0,
                before,
                after,
                is_stored: false,
            },
            kinds,
        )
    }

    fn stream(&self) -> &Stream {
        &self.conversation.stream
    }

    /// Returns the conversation as it would be.
    fn with(&self, compaction: &Compaction) -> Stream {
        let mut stream = self.stream().clone();
        stream.push(Event::new(
            self.context.session.now(),
            EventKind::Compaction(compaction.clone()),
        ));
        stream
    }

    /// Returns about how many tokens the next request has without its words.
    fn tokens(&self, stream: &Stream) -> u64 {
        let blobs = self.found.store.blobs();
        let thread = delivery::stored(stream, &self.config.config, blobs);
        let model = model::configured(&self.config).ok().flatten();
        budget::tokens(&budget::rows(&thread, model.as_ref()))
    }

    /// Returns what the model that is configured gets of a conversation, everything whole.
    fn taken<'s>(&self, stream: &'s Stream) -> Thread<'s> {
        let thread = view::thread(stream);
        match model::configured(&self.config).ok().flatten() {
            Some(model) => model.taken(thread),
            None => thread,
        }
    }

    /// Says that there is nothing to do.
    fn nothing(&self, reason: &str) -> Result<Code, Failure> {
        let output = self.context.output;
        if output.is_json() {
            let tokens = self.tokens(self.stream());
            let effect = Effect {
                turns: 0,
                before: tokens,
                after: Some(tokens),
                is_stored: false,
            };
            output.json(&document(&Compaction::default(), &effect))?;
        } else {
            output.status(&format!(
                "Nothing to compact: conversation {} {reason}.",
                self.found.located.id
            ));
        }
        Ok(Code::Done)
    }

    /// Appends the events, unless nothing is to be stored, and says what they do.
    fn store(
        mut self,
        compaction: &Compaction,
        mut effect: Effect,
        kinds: Vec<EventKind>,
    ) -> Result<Code, Failure> {
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

    fn report(&self, compaction: &Compaction, effect: &Effect) -> Result<Code, Failure> {
        let output = self.context.output;
        if output.is_json() {
            output.json(&document(compaction, effect))?;
            return Ok(Code::Done);
        }
        let lines = [what(compaction, effect), figures(effect)];
        if !effect.is_stored {
            lines.iter().try_for_each(|line| output.line(line))?;
            output.status("Nothing was stored.");
            return Ok(Code::Done);
        }
        lines.iter().for_each(|line| output.status(line));
        if !compaction.reset {
            output.hint("the history is as it was; `jp conversation compact --reset` sends all of it again.");
        }
        Ok(Code::Done)
    }
}

/// Returns what is left out: what was named, else both, but where a summary stands for all of it.
fn stripped(options: &args::Compact) -> Vec<Strip> {
    if options.strip.is_empty() && !options.summarize {
        return vec![Strip::Reasoning, Strip::Tools];
    }
    let strip = |strip: &args::Strip| match strip {
        args::Strip::Reasoning => Strip::Reasoning,
        args::Strip::Tools => Strip::Tools,
    };
    let mut stripped: Vec<_> = options.strip.iter().map(strip).collect();
    stripped.sort_unstable();
    stripped.dedup();
    stripped
}

fn what(compaction: &Compaction, effect: &Effect) -> String {
    if compaction.reset {
        return "From the next message on, all turns are sent whole.".to_owned();
    }
    let turns = match effect.turns {
        1 => "turn 1 is".to_owned(),
        last => format!("turns 1 to {} are", size::thousands(last as u64)),
    };
    let without = compaction.strip.iter().map(|strip| match strip {
        Strip::Reasoning => "the model's reasoning",
        Strip::Tools => "what tools returned",
    });
    let without = without.collect::<Vec<_>>().join(" and ");
    match (&compaction.summary, effect.after) {
        (Some(summary), _) => {
            format!(
                "From the next message on, a summary is sent where {turns} sent now:\n\n{summary}\n"
            )
        }
        (None, None) => {
            format!("The model would be asked for a summary, to be sent where {turns} sent now.")
        }
        (None, Some(_)) => format!("From the next message on, {turns} sent without {without}."),
    }
}

fn figures(effect: &Effect) -> String {
    let before = size::thousands(effect.before);
    match effect.after {
        Some(after) => {
            format!(
                "What is sent before the next message: about {} tokens instead of {before}.",
                size::thousands(after)
            )
        }
        None => format!("What is sent before the next message: about {before} tokens now."),
    }
}

fn document(compaction: &Compaction, effect: &Effect) -> Value {
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
