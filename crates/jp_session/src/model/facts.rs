//! What is known of the model: what the configuration says, then its provider, then the documentation.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use crate::{
    error::chain, model::Model, notice::Notice, session::Session, text::without_credentials,
};
use jiff::{SignedDuration, Timestamp};
use jp_conversation::view::Thread;
use jp_llm::{
    Endpoint, Tool,
    discover::PROBE_TIMEOUT,
    models::{self, Facts},
};
use serde::{Deserialize, Serialize};

/// How long a server elsewhere may take to say what one model takes.
const ASK_TIMEOUT: Duration = Duration::from_secs(3);
/// How long what a server elsewhere said is believed.
const FRESH: SignedDuration = SignedDuration::from_hours(24);

/// Finds out what a model takes. Its provider is asked only if the request has more than text in it, and a server
/// elsewhere once a day. Tools are in nearly every request: for them alone a server here is asked once a day, too, and
/// each time where it said that it takes none, as it may have another model now.
///
/// What it said is remembered: should it not answer, nothing changes in how the history is sent.
pub(crate) async fn facts(
    model: &Model,
    session: &Session,
    thread: &Thread<'_>,
    tools: &[Tool],
) -> Facts {
    let Model {
        endpoint,
        configured,
        ..
    } = model;
    let asks_of_tools = !tools.is_empty() && configured.tools.is_none();
    let need = match (thread.has_binaries() || thread.has_schema(), asks_of_tools) {
        (true, _) => Need::Content,
        (false, true) if models::says_who_calls_tools(endpoint) => Need::Tools,
        (false, _) => Need::Nothing,
    };
    let said = match (models::says_what_it_takes(endpoint), need) {
        (true, Need::Nothing) => Remembered::read(&path(session)).find(endpoint),
        (true, need) => said(endpoint, need, session).await,
        (false, _) => Facts::default(),
    };
    configured
        .or(said)
        .or(models::built_in(endpoint.format, &endpoint.model))
}

/// Returns the known capabilities of a model, without a request to its provider.
pub fn known(model: &Model, session: &Session) -> Facts {
    let Model {
        endpoint,
        configured,
        ..
    } = model;
    let said = Remembered::read(&path(session)).find(endpoint);
    configured
        .or(said)
        .or(models::built_in(endpoint.format, &endpoint.model))
}

/// What a request needs to know of its model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Need {
    /// Nothing: it is text.
    Nothing,
    /// Whether it takes tools.
    Tools,
    /// What content it takes, and schemas.
    Content,
}

impl Need {
    /// Returns whether what a server said will do.
    fn is_met(self, said: &Said, is_here: bool, now: Timestamp) -> bool {
        let is_fresh = now.duration_since(said.at) < FRESH;
        match (is_here, self) {
            (true, Self::Tools) => is_fresh && said.facts.tools != Some(false),
            (true, _) => false,
            (false, _) => is_fresh,
        }
    }
}

async fn said(endpoint: &Endpoint, need: Need, session: &Session) -> Facts {
    let path = path(session);
    let mut remembered = Remembered::read(&path);
    let (key, now) = (key(endpoint), session.now());
    let is_here = endpoint.base_url.is_loopback();
    let earlier = remembered.0.get(&key);
    if let Some(said) = earlier.filter(|said| need.is_met(said, is_here, now)) {
        return said.facts;
    }
    let limit = if is_here && endpoint.provider == "llamacpp" {
        PROBE_TIMEOUT
    } else {
        ASK_TIMEOUT
    };
    match models::ask(endpoint, limit).await {
        Ok(facts) => {
            // What it does not say this time still holds.
            let facts = earlier.map_or(facts, |said| facts.or(said.facts));
            if let Some(said) = earlier {
                tell_of_change(endpoint, said.facts, facts, session);
            }
            let is_old = earlier.is_none_or(|said| now.duration_since(said.at) >= FRESH);
            if earlier.is_none_or(|said| !is_here || is_old || said.facts != facts)
                && !session.options.no_persist
            {
                remembered.0.insert(key, Said { at: now, facts });
                remembered.write(&path, session);
            }
            facts
        }
        Err(error) => {
            session.person.tell(Notice::FactsUnknown {
                provider: endpoint.provider.clone(),
                error: without_credentials(&chain(&error)),
                is_remembered: earlier.is_some(),
            });
            let facts = earlier.map(|said| said.facts).unwrap_or_default();
            if !is_here && !session.options.no_persist {
                // What is assumed now is assumed for as long, so that the history stays as it was sent.
                remembered.0.insert(key, Said { at: now, facts });
                remembered.write(&path, session);
            }
            facts
        }
    }
}

/// Says that attachments of earlier messages are sent in another form now.
fn tell_of_change(endpoint: &Endpoint, before: Facts, now: Facts, session: &Session) {
    let changes = [
        ("images", before.images, now.images),
        ("PDF", before.pdf, now.pdf),
        ("audio", before.audio, now.audio),
        ("schemas", before.schema, now.schema),
        ("tools", before.tools, now.tools),
    ];
    for (what, _, takes) in changes
        .into_iter()
        .filter(|(_, before, now)| before.is_some() && before != now)
    {
        session.person.tell(Notice::ModelChanged {
            model: format!("{}/{}", endpoint.provider, endpoint.model),
            what,
            is_taken: takes == Some(true),
        });
    }
}

/// What providers said of their models, by server and model: a file in the user's cache directory that may be
/// deleted at any time.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Remembered(BTreeMap<String, Said>);

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Said {
    at: Timestamp,
    facts: Facts,
}

fn path(session: &Session) -> PathBuf {
    session.surroundings.cache.join("models.json")
}

fn key(endpoint: &Endpoint) -> String {
    format!(
        "{} {} {}",
        endpoint.provider, endpoint.base_url, endpoint.model
    )
}

impl Remembered {
    /// Reads the file; one that is missing or damaged is empty.
    fn read(path: &Path) -> Self {
        fs::read(path)
            .ok()
            .and_then(|bytes| serde_json::from_slice(&bytes).ok())
            .unwrap_or_default()
    }

    fn find(&self, endpoint: &Endpoint) -> Facts {
        self.0
            .get(&key(endpoint))
            .map(|said| said.facts)
            .unwrap_or_default()
    }

    /// Writes the file; where that fails the server is asked again.
    fn write(&self, path: &Path, session: &Session) {
        let write = || -> std::io::Result<()> {
            let directory = path.parent().ok_or(std::io::ErrorKind::NotFound)?;
            fs::create_dir_all(directory)?;
            let mut file = tempfile::NamedTempFile::new_in(directory)?;
            serde_json::to_writer(&mut file, self)?;
            file.persist(path)?;
            Ok(())
        };
        if let Err(error) = write() {
            session.person.tell(Notice::FactsNotSaved {
                error: error.to_string(),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_asked_of_tools_once_a_day_but_a_no_here_is_asked_again() {
        let now: Timestamp = "2026-11-21T12:00:00Z".parse().unwrap();
        let said = |hours: i64, tools: Option<bool>| Said {
            at: now - SignedDuration::from_hours(hours),
            facts: Facts {
                tools,
                ..Facts::default()
            },
        };
        let is_met = |need: Need, said: Said, is_here: bool| need.is_met(&said, is_here, now);
        for is_here in [true, false] {
            assert!(is_met(Need::Tools, said(23, Some(true)), is_here));
            assert!(is_met(Need::Tools, said(23, None), is_here));
            assert!(!is_met(Need::Tools, said(24, Some(true)), is_here));
            assert_eq!(is_met(Need::Tools, said(1, Some(false)), is_here), !is_here);
            assert_eq!(
                is_met(Need::Content, said(1, Some(true)), is_here),
                !is_here
            );
        }
    }
}
