//! Offers the workspace's conversations and their turns.

use std::{cell::Cell, path::PathBuf, sync::Arc, time::SystemTime};

use jp_conversation::{Stream, Turn, transcript};
use jp_resource::BlobRef;
use jp_storage::{Conversation, ConversationId, Located, Store, Workspace};
use mcp_resources::{Parameters, Partial, ReadError, ResourceTemplate};

use crate::{answer::refusal, settings::Chosen, stamps::Stamps};

/// The advice if there is no such conversation.
const SEE_IDS: &str = "completion of jp://conversation/{id} offers the ids, the newest first";

/// The conversations that clients may read: those of the workspace, and a local one if the user names it.
#[derive(Debug)]
pub(crate) struct Conversations {
    shared: Store,
    local: Store,
    chosen: Chosen,
    /// The longest text, in bytes.
    max_bytes: u64,
}

/// A conversation's place, and the store it is in.
#[derive(Debug, Clone)]
pub(crate) struct FoundConversation {
    pub(crate) store: Store,
    pub(crate) located: Located,
}

/// The conversation whose attachments are listed.
#[derive(Debug)]
pub(crate) struct Choice {
    pub(crate) found: Option<FoundConversation>,
    wanted: Option<ConversationId>,
    /// The states of the directories with conversations.
    stamps: Stamps,
}

/// Makes the templates of conversations and turns.
pub(crate) fn templates(conversations: &Arc<Conversations>) -> [ResourceTemplate; 2] {
    [
        conversation_template(conversations),
        turn_template(conversations),
    ]
}

fn conversation_template(conversations: &Arc<Conversations>) -> ResourceTemplate {
    let [reading, completing, watched] = [(); 3].map(|()| Arc::clone(conversations));
    ResourceTemplate::new("jp://conversation/{id}", "Conversation", move |parameters| {
        reading.read_conversation(&parameters)
    })
    .title("A conversation")
    .description("All turns of a conversation: the user's messages and attachments, the model's tool calls and answers.")
    .mime_type("text/markdown")
    .complete("id", move |partial| completing.complete_id(&partial))
    .source(move |parameters| watched.source(parameters))
}

fn turn_template(conversations: &Arc<Conversations>) -> ResourceTemplate {
    let [reading, ids, numbers, watched] = [(); 4].map(|()| Arc::clone(conversations));
    ResourceTemplate::new(
        "jp://conversation/{id}/turn/{n}",
        "Turn",
        move |parameters| reading.read_turn(&parameters),
    )
    .title("One turn of a conversation")
    .description("Turns are numbered from 1.")
    .mime_type("text/markdown")
    .complete("id", move |partial| ids.complete_id(&partial))
    .complete("n", move |partial| numbers.complete_turn(&partial))
    .source(move |parameters| watched.source(parameters))
}

impl Conversations {
    /// Opens the conversations of a workspace. A text has at most `max_bytes`.
    pub(crate) fn new(workspace: &Workspace, chosen: Chosen, max_bytes: u64) -> Self {
        Self {
            shared: workspace.store(),
            local: workspace.local_store(),
            chosen,
            max_bytes,
        }
    }

    /// Returns the store of the workspace's conversations.
    pub(crate) fn shared_store(&self) -> &Store {
        &self.shared
    }

    /// Returns the conversation whose attachments are listed. `before` is the previous choice. It stays valid
    /// until a conversation is added or removed.
    pub(crate) fn choice(&self, before: Option<Choice>) -> Choice {
        let wanted = match &self.chosen {
            Chosen::Named(id) => Some(*id),
            Chosen::Current(sessions) => sessions.current(),
        };
        if let Some(before) = before
            && before.wanted == wanted
            && before.stamps.are_current()
        {
            return before;
        }
        let start = SystemTime::now();
        let found = self.choose(wanted);
        let directories = [&self.shared, &self.local].map(Store::conversations);
        Choice {
            wanted,
            found,
            stamps: Stamps::after_looking(directories, start),
        }
    }

    fn choose(&self, wanted: Option<ConversationId>) -> Option<FoundConversation> {
        let Some(id) = wanted else {
            return self.newest();
        };
        match (self.find(id), &self.chosen) {
            (Some(found), _) => Some(found),
            // A local conversation is current. Listing another one in its place would mislead.
            (None, Chosen::Current(_)) if self.is_local(id) => None,
            (None, Chosen::Current(_)) => self.newest(),
            (None, Chosen::Named(_)) => None,
        }
    }

    /// Returns the conversations of the workspace, the newest first.
    pub(crate) fn list_shared(&self) -> Vec<FoundConversation> {
        let located = self.shared.list().unwrap_or_default();
        located
            .into_iter()
            .map(|located| self.in_shared(located))
            .collect()
    }

    /// Returns the conversations that clients may read, the newest first.
    fn list(&self) -> Vec<FoundConversation> {
        let mut found = self.list_shared();
        found.extend(self.named_local());
        found.sort_by_key(|found| std::cmp::Reverse(found.located.id));
        found
    }

    fn find(&self, id: ConversationId) -> Option<FoundConversation> {
        let shared = self
            .shared
            .find(id)
            .ok()
            .flatten()
            .map(|located| self.in_shared(located));
        shared.or_else(|| self.named_local().filter(|found| found.located.id == id))
    }

    fn newest(&self) -> Option<FoundConversation> {
        self.shared
            .list()
            .ok()?
            .into_iter()
            .next()
            .map(|located| self.in_shared(located))
    }

    fn in_shared(&self, located: Located) -> FoundConversation {
        FoundConversation {
            store: self.shared.clone(),
            located,
        }
    }

    /// Returns the local conversation that the user named.
    pub(crate) fn named_local(&self) -> Option<FoundConversation> {
        let Chosen::Named(id) = &self.chosen else {
            return None;
        };
        let located = self.local.find(*id).ok().flatten()?;
        Some(FoundConversation {
            store: self.local.clone(),
            located,
        })
    }

    fn is_local(&self, id: ConversationId) -> bool {
        self.local.find(id).is_ok_and(|found| found.is_some())
    }

    fn complete_id(&self, partial: &Partial) -> Vec<String> {
        let ids = self
            .list()
            .into_iter()
            .map(|found| found.located.id.to_string());
        ids.filter(|id| id.starts_with(&partial.value)).collect()
    }

    /// Returns the numbers of a conversation's turns, the newest first.
    fn complete_turn(&self, partial: &Partial) -> Vec<String> {
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

    fn find_named(&self, parameters: &Parameters) -> Result<FoundConversation, ReadError> {
        let id = parameters
            .parse("id")
            .map_err(|error| refusal(error, SEE_IDS))?;
        self.find(id)
            .ok_or_else(|| refusal(format!("the workspace has no conversation {id}"), SEE_IDS))
    }

    fn read_conversation(&self, parameters: &Parameters) -> Result<String, ReadError> {
        let found = self.find_named(parameters)?;
        let stream = found.read()?.stream;
        let instead = "read one turn of it, as jp://conversation/{id}/turn/{n}";
        found.write_turns(&stream, &stream.turns(), self.max_bytes, instead)
    }

    fn read_turn(&self, parameters: &Parameters) -> Result<String, ReadError> {
        let found = self.find_named(parameters)?;
        let instead = "turns are numbered from 1; completion of the template offers the numbers";
        let number = parameters
            .parse::<usize>("n")
            .map_err(|error| refusal(error, instead))?;
        let stream = found.read()?.stream;
        let turns = stream.turns();
        match turns.iter().position(|turn| turn.number == number) {
            Some(index) => {
                let instead =
                    "read another turn, or ask the user to run `jp conversation print` with --turn";
                found.write_turns(&stream, &turns[index..=index], self.max_bytes, instead)
            }
            None => {
                let (id, count) = (found.located.id, turns.len());
                Err(refusal(
                    format!("conversation {id} has {count} turns and no turn {number}"),
                    instead,
                ))
            }
        }
    }
}

impl FoundConversation {
    pub(crate) fn read(&self) -> Result<Conversation, ReadError> {
        self.store
            .read(&self.located)
            .map_err(|error| self.explain(&error))
    }

    fn explain(&self, error: &jp_storage::ReadError) -> ReadError {
        let id = self.located.id;
        match error {
            jp_storage::ReadError::Removed { .. } => {
                refusal(format!("the workspace has no conversation {id}"), SEE_IDS)
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
        ReadError::failed(format!("{what}; the user can run `jp storage check`"))
    }

    /// Writes turns like `jp conversation print`. Refuses text that is too long, before it reads the blob that
    /// makes it so. `instead` is the advice in the refusal.
    fn write_turns(
        &self,
        stream: &Stream,
        turns: &[Turn],
        max_bytes: u64,
        instead: &str,
    ) -> Result<String, ReadError> {
        // A blob counts before it is read, and later as text. So the room is computed again after each event.
        let room = Cell::new(max_bytes);
        let read = |blob: &BlobRef| {
            room.set(
                room.get()
                    .checked_sub(blob.size)
                    .ok_or_else(|| self.too_long(max_bytes, instead))?,
            );
            self.store.blobs().read(blob).map_err(|_| self.unreadable())
        };
        let mut text = String::new();
        for turn in turns {
            for event in transcript::order(&stream.events()[turn.events.clone()]) {
                text += &transcript::event(turn.number, event, &read)?;
                let left = max_bytes.checked_sub(text.len() as u64);
                room.set(left.ok_or_else(|| self.too_long(max_bytes, instead))?);
            }
        }
        Ok(text)
    }

    fn too_long(&self, max_bytes: u64, instead: &str) -> ReadError {
        let id = self.located.id;
        refusal(
            format!("conversation {id} is longer than {max_bytes} bytes, the limit of one read"),
            instead,
        )
    }
}
