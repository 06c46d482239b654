//! The workspace's conversations, and their turns.

use std::{cell::Cell, path::PathBuf, sync::Arc, time::SystemTime};

use jp_conversation::{Stream, Turn, transcript};
use jp_resource::BlobRef;
use jp_storage::{Conversation, ConversationId, Located, Store, Workspace};
use mcp_resources::{Parameters, Partial, ReadError, ResourceTemplate};

use crate::{Chosen, files::refusal, stamps::Stamps};

/// What to do where there is no such conversation.
const IDS: &str = "completion of jp://conversation/{id} offers the ids there are, the newest first";

/// The conversations that may be read: those of the workspace, and one that the person keeps for themself if they name
/// it.
#[derive(Debug)]
pub(crate) struct Conversations {
    shared: Store,
    local: Store,
    chosen: Chosen,
    /// How long a text may be.
    max_bytes: u64,
}

/// A conversation's place, and the store it is in.
#[derive(Debug, Clone)]
pub(crate) struct Found {
    pub(crate) store: Store,
    pub(crate) located: Located,
}

/// Which conversation's attachments are listed.
#[derive(Debug)]
pub(crate) struct Choice {
    pub(crate) found: Option<Found>,
    wanted: Option<ConversationId>,
    /// Of the directories that it is in.
    stamps: Stamps,
}

/// Makes the templates of conversations and turns.
pub(crate) fn templates(conversations: &Arc<Conversations>) -> [ResourceTemplate; 2] {
    let of = || Arc::clone(conversations);
    let (whole, of_whole, ids) = (of(), of(), of());
    let (turn, of_turn, ids_of_turn, turns) = (of(), of(), of(), of());
    let whole = ResourceTemplate::new("jp://conversation/{id}", "Conversation", move |parameters| {
        whole.markdown(&parameters)
    })
    .title("A conversation")
    .description("All turns of a conversation: what the person asked, what was attached, what the model did and answered.")
    .mime_type("text/markdown")
    .complete("id", move |partial| ids.ids(&partial))
    .source(move |parameters| of_whole.source(parameters));
    let turn = ResourceTemplate::new(
        "jp://conversation/{id}/turn/{n}",
        "Turn",
        move |parameters| turn.turn(&parameters),
    )
    .title("One turn of a conversation")
    .description("Turns are counted from 1.")
    .mime_type("text/markdown")
    .complete("id", move |partial| ids_of_turn.ids(&partial))
    .complete("n", move |partial| turns.turns(&partial))
    .source(move |parameters| of_turn.source(parameters));
    [whole, turn]
}

impl Conversations {
    /// Makes what reads the conversations of a workspace; of a text, no more than `max_bytes` are given.
    pub(crate) fn new(workspace: &Workspace, chosen: Chosen, max_bytes: u64) -> Self {
        Self {
            shared: workspace.store(),
            local: workspace.local_store(),
            chosen,
            max_bytes,
        }
    }

    /// Returns the store that all conversations share but those that the person keeps for themself.
    pub(crate) fn shared(&self) -> &Store {
        &self.shared
    }

    /// Returns the conversation whose attachments are listed, if there is one; `before` is what it was the last time,
    /// which spares looking for it while none came and none went.
    pub(crate) fn choice(&self, before: Option<Choice>) -> Choice {
        let wanted = match &self.chosen {
            Chosen::Named(id) => Some(*id),
            Chosen::Current(sessions) => sessions.current(),
        };
        let is_same = |before: &Choice| before.wanted == wanted && before.stamps.are_current();
        if let Some(same) = before.filter(is_same) {
            return same;
        }
        let begun = SystemTime::now();
        let found = self.choose(wanted);
        let directories = [&self.shared, &self.local].map(Store::conversations);
        Choice {
            wanted,
            found,
            stamps: Stamps::after_looking(directories, begun),
        }
    }

    fn choose(&self, wanted: Option<ConversationId>) -> Option<Found> {
        let Some(id) = wanted else {
            return self.newest();
        };
        match (self.find(id), &self.chosen) {
            (Some(found), _) => Some(found),
            // It is the person's own: nothing is listed in its place.
            (None, Chosen::Current(_)) if self.is_local(id) => None,
            (None, Chosen::Current(_)) => self.newest(),
            (None, Chosen::Named(_)) => None,
        }
    }

    /// Returns those of the workspace, the newest first.
    pub(crate) fn list_shared(&self) -> Vec<Found> {
        let located = self.shared.list().unwrap_or_default();
        located
            .into_iter()
            .map(|located| self.in_shared(located))
            .collect()
    }

    /// Returns all that may be read, the newest first.
    fn list(&self) -> Vec<Found> {
        let mut found = self.list_shared();
        found.extend(self.named_local());
        found.sort_by_key(|found| std::cmp::Reverse(found.located.id));
        found
    }

    fn find(&self, id: ConversationId) -> Option<Found> {
        let shared = self
            .shared
            .find(id)
            .ok()
            .flatten()
            .map(|located| self.in_shared(located));
        shared.or_else(|| self.named_local().filter(|found| found.located.id == id))
    }

    fn newest(&self) -> Option<Found> {
        self.shared
            .list()
            .ok()?
            .into_iter()
            .next()
            .map(|located| self.in_shared(located))
    }

    fn in_shared(&self, located: Located) -> Found {
        Found {
            store: self.shared.clone(),
            located,
        }
    }

    /// Returns the person's own conversation that they named.
    pub(crate) fn named_local(&self) -> Option<Found> {
        let Chosen::Named(id) = &self.chosen else {
            return None;
        };
        let located = self.local.find(*id).ok().flatten()?;
        Some(Found {
            store: self.local.clone(),
            located,
        })
    }

    fn is_local(&self, id: ConversationId) -> bool {
        self.local.find(id).is_ok_and(|found| found.is_some())
    }

    fn ids(&self, partial: &Partial) -> Vec<String> {
        let ids = self
            .list()
            .into_iter()
            .map(|found| found.located.id.to_string());
        ids.filter(|id| id.starts_with(&partial.value)).collect()
    }

    /// Returns the numbers of a conversation's turns, the newest first.
    fn turns(&self, partial: &Partial) -> Vec<String> {
        let id = partial.others.get("id").and_then(|id| id.parse().ok());
        let Some(conversation) = id.and_then(|id| self.find(id)?.read().ok()) else {
            return Vec::new();
        };
        let numbers = (1..=conversation.stream.turns().len())
            .rev()
            .map(|number| number.to_string());
        numbers
            .filter(|number| number.starts_with(&partial.value))
            .collect()
    }

    fn source(&self, parameters: &Parameters) -> Option<PathBuf> {
        Some(self.find(parameters.parse("id").ok()?)?.located.events())
    }

    fn named(&self, parameters: &Parameters) -> Result<Found, ReadError> {
        let id = parameters
            .parse("id")
            .map_err(|error| refusal(error, IDS))?;
        self.find(id)
            .ok_or_else(|| refusal(format!("the workspace has no conversation {id}"), IDS))
    }

    fn markdown(&self, parameters: &Parameters) -> Result<String, ReadError> {
        let found = self.named(parameters)?;
        let stream = found.read()?.stream;
        let instead = "read one turn of it, as jp://conversation/{id}/turn/{n}";
        found.written(&stream, &stream.turns(), self.max_bytes, instead)
    }

    fn turn(&self, parameters: &Parameters) -> Result<String, ReadError> {
        let found = self.named(parameters)?;
        let instead = "turns are counted from 1; completion of the template offers their numbers";
        let number = parameters
            .parse::<usize>("n")
            .map_err(|error| refusal(error, instead))?;
        let stream = found.read()?.stream;
        let turns = stream.turns();
        match turns.iter().position(|turn| turn.number == number) {
            Some(index) => {
                let instead =
                    "read another turn, or have a person run `jp conversation print` with --turn";
                found.written(&stream, &turns[index..=index], self.max_bytes, instead)
            }
            None => {
                let (id, count) = (found.located.id, turns.len());
                Err(refusal(
                    format!("conversation {id} has no turn {number}, it has {count}"),
                    instead,
                ))
            }
        }
    }
}

impl Found {
    pub(crate) fn read(&self) -> Result<Conversation, ReadError> {
        self.store
            .read(&self.located)
            .map_err(|error| self.explain(&error))
    }

    fn explain(&self, error: &jp_storage::ReadError) -> ReadError {
        let id = self.located.id;
        match error {
            jp_storage::ReadError::Removed { .. } => {
                refusal(format!("the workspace has no conversation {id}"), IDS)
            }
            jp_storage::ReadError::BeingWritten { .. } => {
                ReadError::failed(format!("conversation {id} is being written; read it again"))
            }
            _ => self.unreadable(),
        }
    }

    fn unreadable(&self) -> ReadError {
        let id = self.located.id;
        let what = format!("conversation {id} is damaged or can't be opened");
        ReadError::failed(format!(
            "{what}; `jp storage check` tells a person what is wrong with it"
        ))
    }

    /// Writes turns as `jp conversation print` does. Stops as soon as that is too long, before it reads what makes it so,
    /// and says what to read instead.
    fn written(
        &self,
        stream: &Stream,
        turns: &[Turn],
        max_bytes: u64,
        instead: &str,
    ) -> Result<String, ReadError> {
        let id = self.located.id;
        let too_long = || {
            refusal(
                format!("no more than {max_bytes} bytes of conversation {id} are given at once"),
                instead,
            )
        };
        let left = Cell::new(max_bytes);
        let read = |blob: &BlobRef| {
            left.set(left.get().checked_sub(blob.size).ok_or_else(too_long)?);
            self.store.blobs().read(blob).map_err(|_| self.unreadable())
        };
        let mut text = String::new();
        for turn in turns {
            for event in transcript::order(&stream.events()[turn.events.clone()]) {
                text += &transcript::event(turn.number, event, &read)?;
                left.set(
                    max_bytes
                        .checked_sub(text.len() as u64)
                        .ok_or_else(too_long)?,
                );
            }
        }
        Ok(text)
    }
}
