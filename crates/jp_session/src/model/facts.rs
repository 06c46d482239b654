//! The facts about a model: those of the configuration first, then those of its provider, then the
//! built-in ones.

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

/// The time that a remote server has to describe a model. Without an answer jp continues with what it knows, so
/// the user should not wait longer.
const ASK_TIMEOUT: Duration = Duration::from_secs(3);
/// The time for which a remote server's answer is cached: providers rarely change a model.
const FRESH: SignedDuration = SignedDuration::from_hours(24);

/// Finds the facts about a model. jp asks the provider only if the request has more than text, and a
/// remote server at most once a day.
///
/// Nearly every request has tools. If only they matter, jp asks a local server once a day, too. It asks
/// again each time if the server said that the model accepts no tools, because it may have loaded
/// another model since.
///
/// The answers are cached. If a provider doesn't answer later, jp sends the history in the same form as
/// before.
pub(crate) async fn find_facts(
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
    // Only some servers describe their models.
    let reported = match (models::says_what_it_takes(endpoint), need) {
        (true, Need::Nothing) => FactsCache::read(&path(session)).find(endpoint),
        (true, need) => ask_provider(endpoint, need, session).await,
        (false, _) => Facts::default(),
    };
    configured
        .or(reported)
        .or(models::built_in(endpoint.format, &endpoint.model))
}

/// Returns the known capabilities of a model, without a request to its provider.
pub fn recall_facts(model: &Model, session: &Session) -> Facts {
    let Model {
        endpoint,
        configured,
        ..
    } = model;
    let reported = FactsCache::read(&path(session)).find(endpoint);
    configured
        .or(reported)
        .or(models::built_in(endpoint.format, &endpoint.model))
}

/// The facts about its model that a request needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Need {
    /// None: it is text.
    Nothing,
    /// The support for tools.
    Tools,
    /// The accepted content, and the support for schemas.
    Content,
}

impl Need {
    /// Returns whether a cached answer is enough. `is_here` says whether the server is on this
    /// machine, so that it may load another model at any time.
    fn is_met(self, cached: &CachedFacts, is_here: bool, now: Timestamp) -> bool {
        let is_fresh = now.duration_since(cached.at) < FRESH;
        match (is_here, self) {
            (true, Self::Tools) => is_fresh && cached.facts.tools != Some(false),
            (true, _) => false,
            (false, _) => is_fresh,
        }
    }
}

/// Returns the cached answer of the provider, or asks it and caches the answer.
async fn ask_provider(endpoint: &Endpoint, need: Need, session: &Session) -> Facts {
    let path = path(session);
    let mut cache = FactsCache::read(&path);
    let (key, now) = (key(endpoint), session.now());
    let is_here = endpoint.base_url.is_loopback();
    let earlier = cache.0.get(&key);
    if let Some(cached) = earlier.filter(|cached| need.is_met(cached, is_here, now)) {
        return cached.facts;
    }
    let limit = if is_here && endpoint.provider == "llamacpp" {
        PROBE_TIMEOUT
    } else {
        ASK_TIMEOUT
    };
    match models::ask(endpoint, limit).await {
        Ok(facts) => {
            // Facts that this answer leaves out stay as they were.
            let facts = earlier.map_or(facts, |cached| facts.or(cached.facts));
            if let Some(cached) = earlier {
                tell_of_change(endpoint, cached.facts, facts, session);
            }
            // A local server is asked often: the file is written only if the answer or its day is new.
            let is_old = earlier.is_none_or(|cached| now.duration_since(cached.at) >= FRESH);
            if earlier.is_none_or(|cached| !is_here || is_old || cached.facts != facts)
                && !session.options.no_persist
            {
                cache.0.insert(key, CachedFacts { at: now, facts });
                cache.write(&path, session);
            }
            facts
        }
        Err(error) => {
            session.person.tell(Notice::FactsUnknown {
                provider: endpoint.provider.clone(),
                error: without_credentials(&chain(&error)),
                is_remembered: earlier.is_some(),
            });
            let facts = earlier.map(|cached| cached.facts).unwrap_or_default();
            if !is_here && !session.options.no_persist {
                // Cached like an answer, so that jp sends the history in the same form all day.
                cache.0.insert(key, CachedFacts { at: now, facts });
                cache.write(&path, session);
            }
            facts
        }
    }
}

/// Tells the user that later requests send parts of the history in another form.
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

/// The answers of providers about their models, by server and model. They are in a file of the user's
/// cache directory, which the user may delete at any time.
#[derive(Debug, Default, Serialize, Deserialize)]
struct FactsCache(BTreeMap<String, CachedFacts>);

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct CachedFacts {
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

impl FactsCache {
    /// Reads the file. A missing or damaged file counts as empty.
    fn read(path: &Path) -> Self {
        fs::read(path)
            .ok()
            .and_then(|bytes| serde_json::from_slice(&bytes).ok())
            .unwrap_or_default()
    }

    fn find(&self, endpoint: &Endpoint) -> Facts {
        self.0
            .get(&key(endpoint))
            .map(|cached| cached.facts)
            .unwrap_or_default()
    }

    /// Writes the file. If that fails, jp asks the provider again next time.
    fn write(&self, path: &Path, session: &Session) {
        if let Err(error) = self.replace_file(path) {
            session.person.tell(Notice::FactsNotSaved {
                error: error.to_string(),
            });
        }
    }

    /// Replaces the file in one step, so that another jp never reads half of it.
    fn replace_file(&self, path: &Path) -> std::io::Result<()> {
        let directory = path.parent().ok_or(std::io::ErrorKind::NotFound)?;
        fs::create_dir_all(directory)?;
        let mut file = tempfile::NamedTempFile::new_in(directory)?;
        serde_json::to_writer(&mut file, self)?;
        file.persist(path)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cached_support_for_tools_lasts_a_day_unless_a_local_server_denied_it() {
        let now: Timestamp = "2026-11-21T12:00:00Z".parse().unwrap();
        let said = |hours: i64, tools: Option<bool>| CachedFacts {
            at: now - SignedDuration::from_hours(hours),
            facts: Facts {
                tools,
                ..Facts::default()
            },
        };
        let is_met =
            |need: Need, said: CachedFacts, is_here: bool| need.is_met(&said, is_here, now);
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
