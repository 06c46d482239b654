//! What is registered, and reading it.

mod check;
mod interest;
#[cfg(feature = "server")]
mod protocol;
mod table;
#[cfg(test)]
#[cfg(feature = "server")]
mod tests;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock, PoisonError, RwLock, RwLockReadGuard};
use std::time::Duration;

use tokio::sync::broadcast;

use crate::call::{Interruption, Room};
use crate::handler::HandlerCall;
use crate::resource::Details;
use crate::template::{Match, Matcher, TemplateSet, normal_uri};
use crate::{
    Body, CacheScope, Content, Contents, Parameters, ReadError, Resource, ResourceTemplate,
};
pub use check::RegisterError;
use check::{Checked, check};
use interest::Interests;
pub use interest::{Interest, Observing};
#[cfg(feature = "server")]
pub(crate) use protocol::CompleteError;
use table::{Removal, Table};

/// How many changes a server may be behind before it tells its clients that everything changed.
const EVENTS: usize = 1024;

/// How many overlaps a registration names: nobody reads more, and finding all of a thousand templates takes long.
const MAX_OVERLAPS: usize = 100;

/// Resources and templates, and who reads them.
///
/// Clones are the same registry: several servers can share one, and each tells its clients when the list changes. A
/// registry of its own keeps a server's resources apart.
///
/// - Registering the same URI or template again counts, and the first one stays; it is gone after as many
///   unregistrations.
/// - A URI that is registered is read by its own handler; otherwise the most specific template that matches it reads
///   it, and among equally specific ones the first. What is made to fit hundreds and fits none is found nowhere: see
///   [`TemplateSet`].
///
/// ```
/// use mcp_resources::{Registry, Resource};
///
/// let registry = Registry::new();
/// registry.register_resource(Resource::new("org://notes.org", "notes.org", || "* To do"))?;
/// assert!(registry.unregister_resource("org://notes.org"));
/// # Ok::<(), mcp_resources::RegisterError>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Registry {
    shared: Arc<Shared>,
}

/// What handlers may take.
///
/// ```
/// # use std::time::Duration;
/// # use mcp_resources::{Limits, Registry};
/// Registry::with_limits(Limits::default().time(Duration::from_secs(5)).bytes(1024 * 1024));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// How long one may run; by default 30 seconds.
    pub time: Duration,
    /// How many bytes one may give, all contents together, or all values that it offers; by default 10 MiB.
    pub bytes: usize,
}

/// Resources and templates that are registered together, or not at all.
///
/// ```
/// use mcp_resources::{Bundle, Parameters, Registry, Resource, ResourceTemplate};
///
/// let files = ["notes.org", "journal.org"];
/// let bundle = Bundle::new()
///     .resources(files.map(|file| Resource::new(format!("org://{file}"), file, move || std::fs::read_to_string(file))))
///     .template(ResourceTemplate::new("org://id/{id}", "Headline", |parameters: Parameters| parameters.text("id").map(str::to_owned)));
/// let registry = Registry::new();
/// registry.register_server("org", bundle)?;
/// assert!(registry.unregister_server("org"));
/// # Ok::<(), mcp_resources::RegisterError>(())
/// ```
#[derive(Debug, Default)]
#[must_use]
pub struct Bundle {
    resources: Vec<Resource>,
    templates: Vec<ResourceTemplate>,
}

/// What there is to know about a registration that worked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Registered {
    /// The URIs and templates that were there before: the earlier ones stay, those of this call only count.
    pub known: Vec<String>,
    /// The new templates that share URIs with others: the first 100 such pairs.
    pub overlaps: Vec<Overlap>,
    /// Whether there are more of them.
    pub has_more_overlaps: bool,
}

/// Two templates that may match one URI (see [`Matcher::overlaps`]); the more specific one reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Overlap {
    /// The template that was registered.
    pub template: String,
    /// The one that was there, or came before it in the same call.
    pub other: String,
}

/// What a read gave.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reading {
    /// The contents, each with its URI; without a MIME type if nobody named one.
    pub contents: Contents,
    /// How long it may be kept.
    pub ttl: Option<Duration>,
    /// Who may keep it.
    pub cache_scope: CacheScope,
}

/// What the clients of all servers are told.
#[derive(Debug, Clone)]
pub(crate) enum Event {
    ListChanged,
    Updated(
        #[cfg_attr(not(feature = "server"), expect(dead_code, reason = "servers read it"))]
        Arc<str>,
    ),
}

#[derive(Debug)]
struct Shared {
    limits: Limits,
    /// Where handlers block.
    room: Room,
    /// Where those that observe subscriptions do, whatever handlers do.
    #[cfg(feature = "server")]
    room_of_observers: Room,
    state: RwLock<State>,
    events: broadcast::Sender<Event>,
    interests: Interests,
}

#[derive(Debug, Default)]
struct State {
    resources: Table<Resource>,
    templates: Table<Template>,
    /// What each call registered, the latest last.
    servers: HashMap<String, Vec<Keys>>,
    /// The templates as they are searched; made when it is first needed.
    index: OnceLock<Arc<Index>>,
    /// Whether a template completes a variable; computed on first use. Over HTTP without sessions that is with
    /// each request.
    #[cfg(feature = "server")]
    completes_variables: OnceLock<bool>,
}

/// A template that was checked.
#[derive(Debug)]
pub(crate) struct Template {
    pub(crate) description: ResourceTemplate,
    matcher: Matcher,
}

#[derive(Debug)]
struct Index {
    set: TemplateSet,
    templates: Vec<Arc<Template>>,
}

#[derive(Debug)]
struct Keys {
    resources: Vec<String>,
    templates: Vec<String>,
}

enum Found {
    Resource(Arc<Resource>),
    Template(Arc<Template>, Match),
}

impl Limits {
    /// Sets how long one may run.
    #[must_use]
    pub fn time(mut self, time: Duration) -> Self {
        self.time = time;
        self
    }

    /// Sets how many bytes one may give.
    #[must_use]
    pub fn bytes(mut self, bytes: usize) -> Self {
        self.bytes = bytes;
        self
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            time: Duration::from_secs(30),
            bytes: 10 * 1024 * 1024,
        }
    }
}

impl Default for Shared {
    fn default() -> Self {
        let (events, _) = broadcast::channel(EVENTS);
        Self {
            limits: Limits::default(),
            room: Room::of_all(),
            #[cfg(feature = "server")]
            room_of_observers: Room::of_one(),
            state: RwLock::default(),
            events,
            interests: Interests::default(),
        }
    }
}

impl Bundle {
    /// Makes an empty one.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a resource.
    pub fn resource(mut self, resource: Resource) -> Self {
        self.resources.push(resource);
        self
    }

    /// Adds resources.
    pub fn resources(mut self, resources: impl IntoIterator<Item = Resource>) -> Self {
        self.resources.extend(resources);
        self
    }

    /// Adds a template.
    pub fn template(mut self, template: ResourceTemplate) -> Self {
        self.templates.push(template);
        self
    }

    /// Adds templates.
    pub fn templates(mut self, templates: impl IntoIterator<Item = ResourceTemplate>) -> Self {
        self.templates.extend(templates);
        self
    }
}

impl Registry {
    /// Makes an empty one with [`Limits`] as they are by default.
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes an empty one.
    pub fn with_limits(limits: Limits) -> Self {
        Self {
            shared: Arc::new(Shared {
                limits,
                ..Shared::default()
            }),
        }
    }

    /// Registers a resource.
    ///
    /// # Errors
    ///
    /// A URI without a scheme or with characters that none has, an empty name, a priority that isn't one.
    pub fn register_resource(&self, resource: Resource) -> Result<Registered, RegisterError> {
        self.add(Bundle::new().resource(resource), None)
    }

    /// Registers a template.
    ///
    /// # Errors
    ///
    /// A template that can't be parsed or matched, an empty name, a completer for no variable of it.
    #[doc(alias = "register_resource_template")]
    pub fn register_template(
        &self,
        template: ResourceTemplate,
    ) -> Result<Registered, RegisterError> {
        self.add(Bundle::new().template(template), None)
    }

    /// Registers all that a server has under a name of its own, for [`Registry::unregister_server`].
    ///
    /// # Errors
    ///
    /// As for each, and a URI or a template that is there twice; then nothing is registered.
    pub fn register_server(
        &self,
        name: impl Into<String>,
        bundle: Bundle,
    ) -> Result<Registered, RegisterError> {
        self.add(bundle, Some(name.into()))
    }

    /// Takes one registration of a resource back; says whether there was one.
    pub fn unregister_resource(&self, uri: &str) -> bool {
        let removal = self.change(|state| state.remove_resource(uri));
        self.announce(removal == Removal::Gone);
        removal != Removal::Unknown
    }

    /// Takes one registration of a template back, by its text; says whether there was one.
    #[doc(alias = "unregister_resource_template")]
    pub fn unregister_template(&self, uri_template: &str) -> bool {
        let removal = self.change(|state| state.remove_template(uri_template));
        self.announce(removal == Removal::Gone);
        removal != Removal::Unknown
    }

    /// Takes the latest [`Registry::register_server`] with this name back; says whether there was one.
    pub fn unregister_server(&self, name: &str) -> bool {
        let removals = self.change(|state| state.remove_server(name));
        let Some(removals) = removals else {
            return false;
        };
        self.announce(removals.contains(&Removal::Gone));
        true
    }

    /// Takes the latest [`Registry::register_server`] with this name back, if there is one, and registers this in its
    /// place, at once: no client sees anything between. What was there before, in the same order, stays where it is in the
    /// list up to the first that is new, so that a client that turns pages meanwhile goes on where it was, or there.
    ///
    /// # Errors
    ///
    /// As for [`Registry::register_server`]; then all stays as it was.
    pub fn replace_server(
        &self,
        name: impl Into<String>,
        bundle: Bundle,
    ) -> Result<Registered, RegisterError> {
        let (checked, name) = (check(bundle)?, name.into());
        let registered = self.change(|state| {
            state.remove_server(&name);
            state
                .resources
                .keep_places(checked.resources.iter().map(|(key, _)| key.as_str()));
            let texts = checked
                .templates
                .iter()
                .map(|template| template.description.uri_template.as_str());
            state.templates.keep_places(texts);
            state.insert(checked, Some(name))
        });
        self.announce(true);
        Ok(registered)
    }

    /// Reads a resource, as a server does for a client.
    ///
    /// # Errors
    ///
    /// [`ReadError::NotFound`] where nothing is registered for the URI, and those of the handler.
    pub async fn read(&self, uri: &str) -> Result<Reading, ReadError> {
        let found = self.find(uri).ok_or(ReadError::NotFound)?;
        match found {
            Found::Resource(resource) => {
                let contents = self.shared.read(&resource.handler, ()).await?;
                Ok(reading(contents, uri, &resource.details, |body| {
                    Some(body.default_mime_type())
                }))
            }
            Found::Template(template, found) => {
                let ResourceTemplate {
                    handler, details, ..
                } = &template.description;
                let contents = self
                    .shared
                    .read(handler, Parameters::new(uri.to_owned(), found))
                    .await?;
                Ok(reading(contents, uri, details, |_| None))
            }
        }
    }

    /// Tells the clients that subscribed to this URI that it has something new.
    pub fn notify_updated(&self, uri: &str) {
        if let Some(uri) = normal_uri(uri) {
            self.send(Event::Updated(uri.into()));
        }
    }

    /// Gives the files that this URI is read from, if its registration names any.
    pub fn sources(&self, uri: &str) -> Vec<PathBuf> {
        let found = self.find(uri);
        match found {
            Some(Found::Resource(resource)) => resource.source.iter().cloned().collect(),
            Some(Found::Template(template, found)) => match &template.description.source {
                Some(source) => source.paths(&Parameters::new(uri.to_owned(), found)),
                None => Vec::new(),
            },
            None => Vec::new(),
        }
    }

    /// Whether somebody would read this URI.
    pub fn contains(&self, uri: &str) -> bool {
        self.find(uri).is_some()
    }

    fn find(&self, uri: &str) -> Option<Found> {
        let key = normal_uri(uri)?;
        let index = {
            let state = self.state();
            if let Some(resource) = state.resources.entry(&key) {
                return Some(Found::Resource(resource));
            }
            state.index()
        };
        let (place, found) = index.set.find(uri)?;
        Some(Found::Template(Arc::clone(&index.templates[place]), found))
    }

    fn add(&self, bundle: Bundle, name: Option<String>) -> Result<Registered, RegisterError> {
        let checked = check(bundle)?;
        let all = checked.resources.len() + checked.templates.len();
        let registered = self.change(|state| state.insert(checked, name));
        self.announce(registered.known.len() < all);
        Ok(registered)
    }

    fn announce(&self, changed: bool) {
        if changed {
            self.send(Event::ListChanged);
        }
    }

    fn send(&self, event: Event) {
        // An error says that no server listens.
        let _ = self.shared.events.send(event);
    }

    fn state(&self) -> RwLockReadGuard<'_, State> {
        self.shared
            .state
            .read()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes what is registered. What goes is dropped when nothing is locked any more: handlers may have things that look
    /// into the registry.
    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self
            .shared
            .state
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        let changed = change(&mut state);
        let _gone = (state.resources.take_gone(), state.templates.take_gone());
        drop(state);
        changed
    }
}

impl State {
    fn insert(&mut self, checked: Checked, name: Option<String>) -> Registered {
        let keys = checked.keys();
        let mut registered = Registered::default();
        for (key, resource) in checked.resources {
            let uri = resource.uri.clone();
            registered
                .known
                .extend(self.resources.add(key, resource).known().then_some(uri));
        }
        for template in checked.templates {
            self.add_template(template, &mut registered);
        }
        if let Some(name) = name {
            self.servers.entry(name).or_default().push(keys);
        }
        registered
    }

    fn add_template(&mut self, template: Template, registered: &mut Registered) {
        let text = template.description.uri_template.clone();
        if !self.templates.contains(&text) {
            registered.add_overlaps(
                self.templates
                    .entries()
                    .filter_map(|other| overlap(&template, other)),
            );
            self.forget_derived();
        }
        registered.known.extend(
            self.templates
                .add(text.clone(), template)
                .known()
                .then_some(text),
        );
    }

    fn remove_resource(&mut self, uri: &str) -> Removal {
        normal_uri(uri).map_or(Removal::Unknown, |key| self.resources.remove(&key))
    }

    fn remove_template(&mut self, uri_template: &str) -> Removal {
        let removal = self.templates.remove(uri_template);
        if removal == Removal::Gone {
            self.forget_derived();
        }
        removal
    }

    fn remove_server(&mut self, name: &str) -> Option<Vec<Removal>> {
        let calls = self.servers.get_mut(name)?;
        let keys = calls.pop()?;
        if calls.is_empty() {
            self.servers.remove(name);
        }
        let mut removals: Vec<Removal> = keys
            .resources
            .iter()
            .map(|key| self.resources.remove(key))
            .collect();
        removals.extend(keys.templates.iter().map(|key| self.remove_template(key)));
        Some(removals)
    }

    /// Drops what was made of the templates, which have changed.
    fn forget_derived(&mut self) {
        self.index = OnceLock::new();
        #[cfg(feature = "server")]
        {
            self.completes_variables = OnceLock::new();
        }
    }

    #[cfg(feature = "server")]
    fn completes_variables(&self) -> bool {
        let completes = |template: &Arc<Template>| !template.description.completers.is_empty();
        *self
            .completes_variables
            .get_or_init(|| self.templates.entries().any(completes))
    }

    /// The templates as they are searched.
    fn index(&self) -> Arc<Index> {
        Arc::clone(
            self.index
                .get_or_init(|| Arc::new(Index::new(&self.templates))),
        )
    }
}

impl Registered {
    /// Adds overlaps as they are found, and looks for no more than are named.
    fn add_overlaps(&mut self, mut overlaps: impl Iterator<Item = Overlap>) {
        while !self.has_more_overlaps {
            let Some(overlap) = overlaps.next() else {
                return;
            };
            match self.overlaps.len() < MAX_OVERLAPS {
                true => self.overlaps.push(overlap),
                false => self.has_more_overlaps = true,
            }
        }
    }
}

impl Index {
    fn new(templates: &Table<Template>) -> Self {
        let templates: Vec<_> = templates.entries().cloned().collect();
        let matchers = templates
            .iter()
            .map(|template| template.matcher.clone())
            .collect();
        Self {
            set: TemplateSet::new(matchers),
            templates,
        }
    }
}

fn overlap(template: &Template, other: &Template) -> Option<Overlap> {
    template.matcher.overlaps(&other.matcher).then(|| Overlap {
        template: template.description.uri_template.clone(),
        other: other.description.uri_template.clone(),
    })
}

impl Shared {
    async fn read<I: Send + 'static>(
        &self,
        handler: &HandlerCall<I>,
        input: I,
    ) -> Result<Contents, ReadError> {
        let Limits { time, bytes } = self.limits;
        let contents = handler
            .run(input, time, &self.room)
            .await
            .map_err(|interruption| match interruption {
                Interruption::Panic => ReadError::Panicked,
                Interruption::Timeout => ReadError::TimedOut(time),
                Interruption::Busy => ReadError::Busy,
            })??;
        match contents.size() {
            size if size > bytes => Err(ReadError::TooLarge { size, limit: bytes }),
            _ => Ok(contents),
        }
    }
}

/// Fills in what the handler leaves to the registration.
fn reading(
    mut contents: Contents,
    uri: &str,
    details: &Details,
    default: impl Fn(&Body) -> Option<&'static str>,
) -> Reading {
    for content in &mut contents.0 {
        content.uri.get_or_insert_with(|| uri.to_owned());
        if content.mime_type.is_none() {
            let of_body = || default(&content.body).map(str::to_owned);
            content.mime_type = details.mime_type.clone().or_else(of_body);
        }
    }
    Reading {
        contents,
        ttl: details.ttl,
        cache_scope: details.cache_scope,
    }
}

impl Reading {
    /// Gives the text, if there is one content and it is a text.
    pub fn text(&self) -> Option<&str> {
        match self.contents.0.as_slice() {
            [
                Content {
                    body: Body::Text(text),
                    ..
                },
            ] => Some(text),
            _ => None,
        }
    }
}
