//! Takes new snapshots of attached resources for the tool `refresh_resource`.

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
            apply_earlier_approval, find_origin, find_reached, find_scripts, is_out_of_bounds,
            runs_unapproved,
        },
        declarations::{Bounds, ConfiguredDeclarations, place, read_configured},
    },
    error::SessionError,
    query::ready_query::ReadyQuery,
    servers::{Servers, reading},
    tools::refresher::{
        cause::cause,
        spelling::{canonical_uris, path_uri, unescape},
    },
    trust::{Decision, Effect, Occasion, Origin, decide_unapproved},
};
use jp_attachment::{
    AttachError, Declared, Displays, MemoryStore, Place, Reach, ReadMcp, Source, parse_stored,
};
use jp_conversation::{Declaration, Stream, resolution};
use jp_resource::uri::{self, PathStyle};
use jp_storage::{Places, Trust};
use jp_turn::{Consent, Permission, Refresh, Refreshed, Refreshing, Tool};

/// Limit for the resources that an error lists for the model.
const LISTED: usize = 10;
/// Limit for a URI in such a list, in bytes. A `data:` URI can contain a whole image.
const LISTED_BYTES: usize = 200;

/// Takes new snapshots of a conversation's resources.
#[derive(Debug)]
pub(crate) struct Refresher {
    /// The resources in the conversation's requests, by URI.
    attached: BTreeMap<String, AttachedResource>,
    configured: ConfiguredDeclarations,
    excludes: Vec<Declared>,
    place: Place,
    trust: Trust,
    bounds: Bounds,
    bear_database: Option<PathBuf>,
    displays: Displays,
    /// The MCP servers, if any are configured.
    servers: Option<Arc<Servers>>,
    /// The permission to run a program again.
    programs: Permission,
}

/// A resource of the conversation.
#[derive(Debug, Default)]
struct AttachedResource {
    name: Option<String>,
    /// The declaration that delivered it last, if the conversation has it.
    declaration: Option<Declaration>,
}

/// A resource that the model asks for.
struct RequestedResource<'h> {
    uri: &'h str,
    attached: &'h AttachedResource,
    /// Its name, or a short form of its URI.
    label: String,
}

impl Refresher {
    pub(crate) fn new(query: &ReadyQuery<'_>, tool: &Tool) -> Result<Self, SessionError> {
        let place = place(query.setup())?;
        let configured = read_configured(&query.config, &place)?;
        let excludes = resolution::effective(&query.stream, &configured.declarations)
            .iter()
            .filter(|declaration| declaration.is_exclude())
            .filter_map(|declaration| parse_stored(declaration.as_str(), &place).ok())
            .collect();
        let bounds = Bounds::from_config(&query.config);
        let servers = reading::find_servers(query.setup())?.map(Arc::clone);
        if let Some(servers) = &servers {
            // Only earlier approvals count: the tool runs on a thread that can't ask the user to approve a server.
            for name in servers.names() {
                servers.may_start_unasked(query.session, name);
            }
        }
        Ok(Self {
            servers,
            attached: list_attached(&query.stream),
            excludes,
            configured,
            place,
            trust: query.session.workspace.trust(),
            bounds: Bounds {
                // The call as a whole has the tool's timeout.
                timeout: bounds.timeout.min(tool.timeout),
                ..bounds
            },
            bear_database: query.session.surroundings.bear_database.clone(),
            displays: query.session.surroundings.displays.clone(),
            programs: query.tools.programs.unwrap_or(Permission::Ask),
        })
    }

    /// Finds a resource of the conversation by URI, path or name.
    ///
    /// The exact URI or path counts most, then one that differs only in the fragment, then another spelling, then the
    /// name. Models see URIs in XML and may escape them as XML does, so each is also looked for unescaped.
    fn find(&self, text: &str) -> Result<RequestedResource<'_>, String> {
        let unescaped = unescape(text);
        let (uri, attached) = match self.find_by_spelling(text) {
            Some(found) => found,
            None => match self.find_by_spelling(&unescaped) {
                Some(found) => found,
                None => self.find_by_name(text, &unescaped)?,
            },
        };
        let name = attached
            .name
            .as_ref()
            .map(|name| shorten(name, &self.place));
        Ok(RequestedResource {
            uri,
            attached,
            label: name.unwrap_or_else(|| shorten_uri(uri, &self.place)),
        })
    }

    fn find_by_spelling(&self, text: &str) -> Option<(&str, &AttachedResource)> {
        self.find_by_uri(text)
            .or_else(|| self.find_by_path(text))
            .or_else(|| self.find_by_path(uri::split_fragment(text).0))
            .or_else(|| {
                canonical_uris(text, &self.place)
                    .iter()
                    .filter_map(|uri| self.find_by_uri(uri))
                    // A server's URIs have no other spellings.
                    .find(|(_, attached)| !attached.is_of_server())
            })
    }

    fn find_by_path(&self, path: &str) -> Option<(&str, &AttachedResource)> {
        self.find_by_uri(&path_uri(path, &self.place)?)
    }

    /// Finds the resource of a URI, or else one whose URI differs only in the fragment.
    fn find_by_uri(&self, uri: &str) -> Option<(&str, &AttachedResource)> {
        let whole = uri::split_fragment(uri).0;
        self.attached
            .get_key_value(uri)
            .or_else(|| self.attached.get_key_value(whole))
            .or_else(|| {
                let mut all = self.attached.iter();
                all.find(|(known, _)| uri::split_fragment(known).0 == whole)
            })
            .map(|(uri, attached)| (uri.as_str(), attached))
    }

    /// Finds the only resource of a name, in either of its spellings.
    fn find_by_name(
        &self,
        name: &str,
        unescaped: &str,
    ) -> Result<(&str, &AttachedResource), String> {
        let found: Vec<_> = self
            .attached
            .iter()
            .filter(|(uri, attached)| {
                let short = shorten_uri(uri, &self.place);
                let name_and_short = attached
                    .name
                    .iter()
                    .flat_map(|name| [name.clone(), shorten(name, &self.place)]);
                name_and_short
                    .chain([short])
                    .any(|known| known == name || known == unescaped)
            })
            .collect();
        match &found[..] {
            [] => Err(self.not_attached(name)),
            [(uri, attached)] => Ok((uri.as_str(), *attached)),
            several => Err(format!(
                "Several attached resources have the name {name:?}. Pass the URI of one of them: {}.",
                join_some(several.iter().map(|(uri, _)| shorten_uri(uri, &self.place)))
            )),
        }
    }

    /// Words the error for a resource that the conversation doesn't have.
    fn not_attached(&self, uri: &str) -> String {
        let uri: String = shorten_uri(uri, &self.place)
            .chars()
            .take(LISTED_BYTES)
            .collect();
        let error = format!("{uri:?} is not attached to this conversation, so it was not read.");
        let refreshable: Vec<_> = self
            .attached
            .iter()
            // Snapshots without a source can't be refreshed, so the list leaves them out.
            .filter(|(uri, attached)| !attached.is_snapshot(uri))
            .map(|(uri, _)| shorten_uri(uri, &self.place))
            .collect();
        if refreshable.is_empty() {
            return format!("{error} No attachment can be refreshed.");
        }
        format!(
            "{error} You can refresh: {}.",
            join_some(refreshable.into_iter())
        )
    }

    /// Returns the source of a resource on this machine.
    fn source(&self, requested: &RequestedResource<'_>) -> Result<Declared, String> {
        let declared = self
            .configured
            .read(&requested.declaration(), &self.place)
            .and_then(|declared| self.narrow(declared, requested.uri))
            .map_err(|error| requested.failure(&cause(&error, &self.place)))?;
        if is_out_of_bounds(&declared, &self.place) {
            let cause = "it is outside the workspace; ask the user to attach it";
            return Err(requested.failure(cause));
        }
        Ok(apply_earlier_approval(declared, &self.trust, &self.place))
    }

    /// Narrows a directory or a pattern to one file.
    fn narrow(&self, declared: Declared, uri: &str) -> Result<Declared, AttachError> {
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

    /// Returns whether the user has to consent, and the text that they see.
    fn consent(
        &self,
        declared: &Declared,
        requested: &RequestedResource<'_>,
    ) -> Result<(Consent, String), String> {
        let from = match &declared.source {
            Source::Command(line) => format!("the output of `{}`", line.name()),
            _ => requested.label.clone(),
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
        // Reading changes nothing, but a program may, so it needs the same permission as a tool.
        if declared.source.reach(&self.place) != Reach::Program {
            return Ok((Consent::Unneeded, from));
        }
        match decide_unapproved(Origin::Model, Effect::CallTool(self.programs)) {
            Decision::Allowed => Ok((Consent::Unneeded, from)),
            Decision::Ask => Ok((Consent::OncePerTurn, from)),
            Decision::Refused => {
                Err(requested.failure("the user's configuration forbids the program to run"))
            }
        }
    }

    /// Resolves a declaration and returns the new snapshot of the requested resource.
    fn take(
        &self,
        declared: &Declared,
        requested: &RequestedResource<'_>,
        cancelled: &AtomicBool,
    ) -> Result<Refreshed, String> {
        let store = MemoryStore::default();
        let context = jp_attachment::Context {
            cancelled: Some(cancelled),
            mcp: self
                .servers
                .as_deref()
                .map(|servers| servers as &dyn ReadMcp),
            bear_database: self.bear_database.as_deref(),
            displays: Some(&self.displays),
            ..self.bounds.to_context(&self.place, &store)
        };
        // Excludes without anything to exclude from are an error.
        let excludes = match declared.source {
            Source::Path(_) | Source::Glob(_) => self.excludes.as_slice(),
            _ => &[],
        };
        let wanted: Vec<_> = excludes.iter().chain([declared]).cloned().collect();
        let resolved = jp_attachment::resolve(&wanted, &context)
            .map_err(|error| requested.failure(&cause(&error, &self.place)))?;
        let resource = resolved
            .resources
            .into_iter()
            // A declaration may deliver several resources, such as the contents of an MCP resource.
            .find(|resource| resource.uri == requested.uri)
            .and_then(|resource| {
                let content = store.get(&resource.content)?;
                Some(resource.map(|_| content, |formatted| formatted))
            });
        Ok(Refreshed {
            resource: resource.ok_or_else(|| {
                requested.failure("its declaration no longer covers it: it was moved or excluded")
            })?,
            notices: resolved.notices.iter().map(ToString::to_string).collect(),
        })
    }
}

impl Refresh for Refresher {
    fn plan(&self, name: &str) -> Result<Refreshing<'_>, String> {
        let requested = self.find(name)?;
        if requested.attached.is_snapshot(requested.uri) {
            return Err(requested.unrepeatable());
        }
        let declared = self.source(&requested)?;
        let (consent, from) = self.consent(&declared, &requested)?;
        Ok(Refreshing {
            uri: requested.uri.to_owned(),
            from,
            consent,
            take: Box::new(move |cancelled| self.take(&declared, &requested, cancelled)),
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

impl AttachedResource {
    /// Returns whether it came from an MCP server.
    fn is_of_server(&self) -> bool {
        self.declaration
            .as_ref()
            .and_then(Declaration::server)
            .is_some()
    }

    /// Returns whether the conversation has its content but not its source.
    fn is_snapshot(&self, uri: &str) -> bool {
        Declaration::new(uri).names_snapshot()
            || self
                .declaration
                .as_ref()
                .is_some_and(Declaration::names_snapshot)
    }
}

impl RequestedResource<'_> {
    /// Returns the declaration that delivered it. If the conversation has none, its URI is one.
    fn declaration(&self) -> Declaration {
        self.attached
            .declaration
            .clone()
            .unwrap_or_else(|| Declaration::new(self.uri))
    }

    /// Words the error for a resource without a source.
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

    /// Words the error for a new snapshot that failed.
    fn failure(&self, cause: &str) -> String {
        format!(
            "{} could not be refreshed: {cause}. The conversation still has the earlier snapshot.",
            self.label
        )
    }
}

/// Returns the resources in the requests of a conversation. Results of tools don't count, because a tool must not decide
/// what jp reads.
fn list_attached(stream: &Stream) -> BTreeMap<String, AttachedResource> {
    let mut attached: BTreeMap<String, AttachedResource> = BTreeMap::new();
    for (_, request) in stream.requests() {
        for snapshot in &request.resources {
            // The newest name and the newest declaration count.
            let known = attached.entry(snapshot.uri.clone()).or_default();
            known.name.clone_from(&snapshot.name);
        }
        for delivered in &request.delivered {
            let indexes = delivered.resources.iter();
            for snapshot in indexes.filter_map(|index| request.resources.get(*index)) {
                if let Some(known) = attached.get_mut(&snapshot.uri) {
                    known.declaration = Some(delivered.declaration.clone());
                }
            }
        }
    }
    attached
}

/// Shortens a URI for a result: a file of the workspace to its path from the root, any other file to its name.
///
/// Results are stored and may be read on other machines, so they must not contain paths of this one.
fn shorten_uri(uri: &str, place: &Place) -> String {
    let (whole, fragment) = uri::split_fragment(uri);
    let Some(path) = uri
        .starts_with("file:")
        .then(|| uri::file_path(whole, PathStyle::native()).ok())
        .flatten()
    else {
        return shorten(uri, place);
    };
    let path = Path::new(&path);
    let path = match path.strip_prefix(&place.root) {
        Ok(path) => path,
        // A file outside the workspace keeps only its name.
        Err(_) => path.file_name().map_or(path, Path::new),
    };
    let names: Vec<_> = path.iter().map(|name| name.to_string_lossy()).collect();
    let fragment = fragment
        .map(|fragment| format!("#{fragment}"))
        .unwrap_or_default();
    format!("{}{fragment}", names.join("/"))
}

/// Shortens the paths of the workspace and of the home directory in a command line or a URI.
fn shorten(text: &str, place: &Place) -> String {
    let text = Places::new(&place.root.to_string_lossy()).shorten(text, ".");
    match &place.home {
        Some(home) => Places::new(&home.to_string_lossy()).shorten(&text, "~"),
        None => text,
    }
}

/// Joins some names, and says how many more there are.
fn join_some(names: impl ExactSizeIterator<Item = String>) -> String {
    let all = names.len();
    let listed: Vec<_> = names
        .filter(|name| name.len() <= LISTED_BYTES)
        .take(LISTED)
        .collect();
    let more = match all - listed.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{}{more}", listed.join(", "))
}
