//! New snapshots for `refresh_resource`: of what the conversation holds, from where it was attached.

mod cause;
mod spelling;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Arc, atomic::AtomicBool},
};

use crate::{
    attachments::{
        approval::{
            find_origin, find_reached, find_scripts, is_out_of_bounds, known, runs_unapproved,
        },
        declarations::{Bounds, Configured, configured, place},
    },
    error::SessionError,
    query::ready_query::ReadyQuery,
    servers::{Servers, reading},
    tools::refreshing::{
        cause::cause,
        spelling::{unescape, uri_of, uris_of},
    },
    trust::{Decision, Effect, Occasion, Origin, decide_unapproved},
};
use jp_attachment::{Declared, Displays, MemoryStore, Place, Reach, ReadMcp, Source, parse_stored};
use jp_conversation::{Declaration, Stream, resolution};
use jp_resource::uri::{self, PathStyle};
use jp_storage::{Places, Trust};
use jp_turn::{Consent, Permission, Refresh, Refreshed, Refreshing, Tool};

/// How many resources are named to a model that asks for another, and how long their URIs may be for that.
const NAMED: usize = 10;
const NAMED_BYTES: usize = 200;

/// Takes new snapshots of what a conversation holds.
#[derive(Debug)]
pub(crate) struct Refresher {
    /// What the requests of the conversation hold, by URI.
    held: BTreeMap<String, Held>,
    configured: Configured,
    excludes: Vec<Declared>,
    place: Place,
    trust: Trust,
    bounds: Bounds,
    bear_database: Option<PathBuf>,
    displays: Displays,
    /// Where any are configured.
    servers: Option<Arc<Servers>>,
    /// Whether running a program again asks.
    programs: Permission,
}

/// A resource that the conversation holds.
#[derive(Debug)]
struct Held {
    name: Option<String>,
    /// What gave it last, where that is recorded.
    declaration: Option<Declaration>,
}

/// One that is asked for.
struct Found<'h> {
    uri: &'h str,
    held: &'h Held,
    /// Its name, or what stands for it where it has none.
    label: String,
}

impl Refresher {
    pub(crate) fn new(asked: &ReadyQuery<'_>, tool: &Tool) -> Result<Self, SessionError> {
        let place = place(asked.setup())?;
        let configured = configured(&asked.config, &place)?;
        let declared = resolution::effective(&asked.stream, &configured.declarations);
        let excludes = declared
            .iter()
            .filter(|declaration| declaration.is_exclude());
        let excludes =
            excludes.filter_map(|declaration| parse_stored(declaration.as_str(), &place).ok());
        let bounds = Bounds::of(&asked.config);
        let servers = reading::configured(asked.setup())?.map(Arc::clone);
        if let Some(servers) = &servers {
            // What the person agreed to before is not asked again, and a tool asks for nothing new.
            servers
                .names()
                .for_each(|name| _ = servers.is_agreed(asked.session, name));
        }
        Ok(Self {
            servers,
            held: held(&asked.stream),
            excludes: excludes.collect(),
            configured,
            place,
            trust: asked.session.workspace.trust(),
            bounds: Bounds {
                timeout: bounds.timeout.min(tool.timeout),
                ..bounds
            },
            bear_database: asked.session.surroundings.bear_database.clone(),
            displays: asked.session.surroundings.displays.clone(),
            programs: asked.tools.programs.unwrap_or(Permission::Ask),
        })
    }

    /// Finds what is meant: that very URI or path, else the one that differs in nothing but the fragment, else another
    /// spelling of it, else what is called so. All that with the entities of XML too, in which a model is shown URIs.
    ///
    /// Only what the conversation holds is found, however it is spelled.
    fn find(&self, text: &str) -> Result<Found<'_>, String> {
        let unescaped = unescape(text);
        let found = self.of_text(text).or_else(|| self.of_text(&unescaped));
        let (uri, held) = found.map_or_else(|| self.named(text, &unescaped), Ok)?;
        let name = held.name.as_ref().map(|name| brief(name, &self.place));
        let label = name.unwrap_or_else(|| shown(uri, &self.place));
        Ok(Found { uri, held, label })
    }

    fn of_text(&self, text: &str) -> Option<(&str, &Held)> {
        let of_path = |path| self.of_uri(&uri_of(path, &self.place)?);
        let found = self.of_uri(text).or_else(|| of_path(text));
        let found = found.or_else(|| of_path(uri::split_fragment(text).0));
        found.or_else(|| {
            let spelled = uris_of(text, &self.place);
            // A server's URIs are what it says, byte for byte.
            let of_uri = |uri: &String| self.of_uri(uri).filter(|(_, held)| !held.is_of_server());
            spelled.iter().find_map(of_uri)
        })
    }

    fn of_uri(&self, uri: &str) -> Option<(&str, &Held)> {
        let place = |uri| uri::split_fragment(uri).0;
        let found = self
            .held
            .get_key_value(uri)
            .or_else(|| self.held.get_key_value(place(uri)));
        let found = found.or_else(|| self.held.iter().find(|(held, _)| place(held) == place(uri)));
        found.map(|(uri, held)| (uri.as_str(), held))
    }

    /// Finds the only one of a name, in either of its spellings.
    fn named(&self, name: &str, unescaped: &str) -> Result<(&str, &Held), String> {
        let is_name = |known: &str| known == name || known == unescaped;
        let is_named = |(uri, held): &(&String, &Held)| {
            let has_name = |name| is_name(name) || is_name(&brief(name, &self.place));
            held.name.as_deref().is_some_and(has_name) || is_name(&shown(uri, &self.place))
        };
        let found: Vec<_> = self.held.iter().filter(is_named).collect();
        match &found[..] {
            [] => Err(self.unknown(name)),
            [(uri, held)] => Ok((uri.as_str(), *held)),
            several => Err(format!(
                "Several attached resources have the name {name:?}. Pass the URI of one of them: {}.",
                listed(several.iter().map(|(uri, _)| shown(uri, &self.place)))
            )),
        }
    }

    fn unknown(&self, uri: &str) -> String {
        let asked_for: String = shown(uri, &self.place).chars().take(NAMED_BYTES).collect();
        let refused =
            format!("{asked_for:?} is not attached to this conversation, so it was not read.");
        let known: Vec<_> = self
            .held
            .iter()
            .filter(|(uri, held)| !held.is_snapshot(uri))
            .collect();
        if known.is_empty() {
            return format!("{refused} No attachment can be refreshed.");
        }
        let known = listed(known.iter().map(|(uri, _)| shown(uri, &self.place)));
        format!("{refused} You can refresh: {known}.")
    }

    /// Finds out what gives a resource on this machine.
    fn source(&self, found: &Found<'_>) -> Result<Declared, String> {
        let failed = |error| found.failed(&cause(&error, &self.place));
        let declared = self
            .configured
            .read(&found.declaration(), &self.place)
            .map_err(failed)?;
        let declared = self.narrowed(declared, found.uri).map_err(failed)?;
        if is_out_of_bounds(&declared, &self.place) {
            let cause = "it is outside the workspace; ask the user to attach it";
            return Err(found.failed(cause));
        }
        Ok(known(declared, &self.trust, &self.place))
    }

    /// Narrows a directory or a pattern down to the one file.
    fn narrowed(
        &self,
        declared: Declared,
        uri: &str,
    ) -> Result<Declared, jp_attachment::AttachError> {
        let base = match &declared.source {
            Source::Path(directory) => directory,
            Source::Glob(glob) => &glob.base,
            _ => return Ok(declared),
        };
        match uri::file_path(uri, PathStyle::native()) {
            Ok(path) if Path::new(&path).starts_with(base) && Path::new(&path) != base => {
                let file = parse_stored(uri, &self.place)?;
                Ok(Declared {
                    is_trusted: declared.is_trusted,
                    ..file
                })
            }
            _ => Ok(declared),
        }
    }

    /// Returns whether the person is asked, and what they are told of it.
    fn consent(&self, declared: &Declared, found: &Found<'_>) -> Result<(Consent, String), String> {
        let from = match &declared.source {
            Source::Command(line) => format!("the output of `{}`", line.name()),
            _ => found.label.clone(),
        };
        let effect = Effect::Resolve {
            reached: find_reached(declared, self.servers.as_ref(), &self.place),
            occasion: Occasion::Refresh,
        };
        if decide_unapproved(find_origin(declared), effect) == Decision::Ask {
            let reason = match &find_scripts(declared, &self.place)[..] {
                [] => "which the workspace or its history attached".to_owned(),
                scripts => format!("which {}", runs_unapproved(scripts)),
            };
            return Ok((Consent::EachTime, format!("{from}, {reason}")));
        }
        if declared.source.reach(&self.place) != Reach::Program {
            return Ok((Consent::Unneeded, from));
        }
        match decide_unapproved(Origin::Model, Effect::CallTool(self.programs)) {
            Decision::Allowed => Ok((Consent::Unneeded, from)),
            Decision::Ask => Ok((Consent::OncePerTurn, from)),
            Decision::Refused => {
                Err(found.failed("the user's configuration forbids the program to run"))
            }
        }
    }

    fn take(
        &self,
        declared: &Declared,
        found: &Found<'_>,
        cancelled: &AtomicBool,
    ) -> Result<Refreshed, String> {
        let store = MemoryStore::default();
        let resolving = jp_attachment::Context {
            cancelled: Some(cancelled),
            mcp: self
                .servers
                .as_deref()
                .map(|servers| servers as &dyn ReadMcp),
            bear_database: self.bear_database.as_deref(),
            displays: Some(&self.displays),
            ..self.bounds.resolving(&self.place, &store)
        };
        let is_of_files = matches!(declared.source, Source::Path(_) | Source::Glob(_));
        let excludes = self.excludes.iter().filter(|_| is_of_files);
        let wanted: Vec<_> = excludes.chain([declared]).cloned().collect();
        let resolved = jp_attachment::resolve(&wanted, &resolving);
        let resolved = resolved.map_err(|error| found.failed(&cause(&error, &self.place)))?;
        let resource = resolved
            .resources
            .into_iter()
            .find(|resource| resource.uri == found.uri);
        let resource = resource
            .and_then(|resource| {
                let content = store.get(&resource.content)?;
                Some(resource.map(|_| content, |formatted| formatted))
            })
            .ok_or_else(|| {
                found.failed("its declaration no longer covers it: it was moved or excluded")
            })?;
        Ok(Refreshed {
            resource,
            notices: resolved.notices.iter().map(ToString::to_string).collect(),
        })
    }
}

impl Refresh for Refresher {
    fn plan(&self, name: &str) -> Result<Refreshing<'_>, String> {
        let found = self.find(name)?;
        if found.held.is_snapshot(found.uri) {
            return Err(found.unrepeatable());
        }
        let declared = self.source(&found)?;
        let (consent, from) = self.consent(&declared, &found)?;
        let uri = found.uri.to_owned();
        let take = move |cancelled: &AtomicBool| self.take(&declared, &found, cancelled);
        Ok(Refreshing {
            uri,
            from,
            consent,
            take: Box::new(take),
        })
    }

    fn server(&self, name: &str) -> Option<String> {
        self.find(name)
            .ok()?
            .declaration()
            .server()
            .map(str::to_owned)
    }
}

impl Held {
    /// Returns whether an MCP server gave it.
    fn is_of_server(&self) -> bool {
        self.declaration
            .as_ref()
            .and_then(Declaration::server)
            .is_some()
    }

    /// Returns whether nothing says where it is from.
    fn is_snapshot(&self, uri: &str) -> bool {
        Declaration::new(uri).names_snapshot()
            || self
                .declaration
                .as_ref()
                .is_some_and(Declaration::names_snapshot)
    }
}

impl Found<'_> {
    /// Returns the declaration that gave it, or its URI as one if none is recorded.
    fn declaration(&self) -> Declaration {
        self.held
            .declaration
            .clone()
            .unwrap_or_else(|| Declaration::new(self.uri))
    }

    fn unrepeatable(&self) -> String {
        let again = match self.uri.split_once(':') {
            Some(("stdin", _)) => "pipe it in again with `--attach -`".to_owned(),
            Some(("clip", _)) => "attach the clipboard again with `--attach clip:`".to_owned(),
            Some(("external", _)) => "attach the file again with `--attach PATH`".to_owned(),
            _ => "attach it again with `--attach`".to_owned(),
        };
        format!(
            "{} can't be refreshed: the conversation has its content but not its source. If you need the current content, ask the user to {again}.",
            self.label
        )
    }

    /// Says why there is no new snapshot.
    fn failed(&self, cause: &str) -> String {
        format!(
            "{} could not be refreshed: {cause}. The conversation still has the earlier snapshot.",
            self.label
        )
    }
}

/// Returns what the requests of a conversation hold. What tools returned does not count: they are no way around
/// attaching.
fn held(stream: &Stream) -> BTreeMap<String, Held> {
    let mut held: BTreeMap<String, Held> = BTreeMap::new();
    for (_, request) in stream.requests() {
        for snapshot in &request.resources {
            let entry = held.entry(snapshot.uri.clone());
            let known = entry.or_insert_with(|| Held {
                name: None,
                declaration: None,
            });
            known.name.clone_from(&snapshot.name);
        }
        for delivered in &request.delivered {
            for snapshot in delivered
                .resources
                .iter()
                .filter_map(|index| request.resources.get(*index))
            {
                if let Some(known) = held.get_mut(&snapshot.uri) {
                    known.declaration = Some(delivered.declaration.clone());
                }
            }
        }
    }
    held
}

/// Writes a URI as results may hold it: a file of the workspace by its path from the root, any other without where it is.
///
/// Results are stored, and read on other machines.
fn shown(uri: &str, place: &Place) -> String {
    let (whole, fragment) = uri::split_fragment(uri);
    let Some(path) = uri
        .starts_with("file:")
        .then(|| uri::file_path(whole, PathStyle::native()).ok())
        .flatten()
    else {
        return brief(uri, place);
    };
    let path = Path::new(&path);
    let path = match path.strip_prefix(&place.root) {
        Ok(path) => path,
        Err(_) => path.file_name().map_or(path, Path::new),
    };
    let names: Vec<_> = path.iter().map(|name| name.to_string_lossy()).collect();
    let fragment = fragment
        .map(|fragment| format!("#{fragment}"))
        .unwrap_or_default();
    format!("{}{fragment}", names.join("/"))
}

/// Writes a command line, or its URI, without where the workspace and the home directory are.
fn brief(text: &str, place: &Place) -> String {
    let text = Places::new(&place.root.to_string_lossy()).shorten(text, ".");
    match &place.home {
        Some(home) => Places::new(&home.to_string_lossy()).shorten(&text, "~"),
        None => text,
    }
}

/// Names some of them, and how many more there are.
fn listed(names: impl ExactSizeIterator<Item = String>) -> String {
    let all = names.len();
    let named: Vec<_> = names
        .filter(|name| name.len() <= NAMED_BYTES)
        .take(NAMED)
        .collect();
    let more = match all - named.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{}{more}", named.join(", "))
}
