//! Keeps resources and templates, and reads them.

mod bundle;
mod check;
mod interest;
mod observe;
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
use crate::template::{Match, TemplateSet, normal_uri};
use crate::{
    Body, CacheScope, Content, Contents, Limits, Parameters, ReadError, Resource, ResourceTemplate,
};
pub use bundle::Bundle;
pub(crate) use check::CheckedTemplate;
pub use check::RegisterError;
use check::{Checked, Keys, check};
pub use interest::Interest;
use interest::Interests;
pub use observe::Observing;
#[cfg(feature = "server")]
pub(crate) use protocol::CompleteError;
use table::{Removal, Table};

/// The most changes that a server may lag behind. After more, it notifies its clients that everything
/// changed. A client may subscribe to as many URIs.
const EVENTS: usize = 1024;

/// The most overlaps that a registration names. Comparing a thousand templates with each other takes long,
/// and no one reads a list of thousands of pairs.
const MAX_OVERLAPS: usize = 100;

/// Keeps resources and templates with their handlers.
///
/// Clones are the same registry. Several servers can share one, and each tells its clients when the list
/// changes. To keep a server's resources apart, give it a registry of its own.
///
/// - You can register a URI or a template more than once. The first registration stays, and the entry
///   disappears after as many unregistrations.
/// - A URI that is registered is read by its own handler. Otherwise the most specific template that
///   matches reads it; among equally specific ones, the first. A hostile URI that nearly matches hundreds
///   of templates may match none: see [`TemplateSet`].
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

/// The result of a registration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Registered {
    /// The URIs and templates that were registered before. Those stay; the new ones only count.
    pub known: Vec<String>,
    /// The first 100 pairs of a new template and another one that may match the same URI.
    pub overlaps: Vec<Overlap>,
    /// True if there are more such pairs.
    pub has_more_overlaps: bool,
}

/// Two templates that may match the same URI. The more specific one reads it.
///
/// See [`Matcher::overlaps`](crate::template::Matcher::overlaps).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Overlap {
    /// The template that was registered.
    pub template: String,
    /// The template that was registered before it, or stands before it in the same bundle.
    pub other: String,
}

/// The result of a read.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reading {
    /// The contents, each with its URI. One of a template has a MIME type only if the handler or the
    /// registration names one.
    pub contents: Contents,
    /// The time for which a client may cache it.
    pub ttl: Option<Duration>,
    /// The caches that may keep it.
    pub cache_scope: CacheScope,
}

/// A change that all servers report to their clients.
#[derive(Debug, Clone)]
pub(crate) enum Event {
    ListChanged,
    /// The resource with this URI, in the form in which URIs are compared.
    Updated(
        #[cfg_attr(not(feature = "server"), expect(dead_code, reason = "servers read it"))]
        Arc<str>,
    ),
}

#[derive(Debug)]
struct Shared {
    limits: Limits,
    /// The places for handlers that block.
    room: Room,
    /// The places for observers of subscriptions that block. Handlers that hang don't take them.
    #[cfg(feature = "server")]
    observer_room: Room,
    state: RwLock<Registrations>,
    events: broadcast::Sender<Event>,
    interests: Interests<Registry>,
}

#[derive(Debug, Default)]
struct Registrations {
    resources: Table<Resource>,
    templates: Table<CheckedTemplate>,
    /// The keys of each call of [`Registry::register_server`], by name, the latest last.
    servers: HashMap<String, Vec<Keys>>,
    /// Computed on first use, because many registrations may come in a row.
    index: OnceLock<Arc<SearchIndex>>,
    /// True if a template completes a variable. It is computed on first use, because each request over HTTP
    /// without sessions needs it.
    #[cfg(feature = "server")]
    completes_variables: OnceLock<bool>,
}

/// The templates in the form in which they are searched.
#[derive(Debug)]
struct SearchIndex {
    set: TemplateSet,
    templates: Vec<Arc<CheckedTemplate>>,
}

/// The resource or template that reads a URI.
enum Reader {
    Resource(Arc<Resource>),
    Template(Arc<CheckedTemplate>, Match),
}

impl Default for Shared {
    fn default() -> Self {
        let (events, _) = broadcast::channel(EVENTS);
        Self {
            limits: Limits::default(),
            room: Room::for_registry(),
            #[cfg(feature = "server")]
            observer_room: Room::for_function(),
            state: RwLock::default(),
            events,
            interests: Interests::default(),
        }
    }
}

impl Registry {
    /// Makes an empty registry with the default [`Limits`].
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes an empty registry with these limits.
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
    /// Refuses a URI without a scheme or with characters that no URI has, an empty name, and a priority
    /// outside 0 to 1.
    pub fn register_resource(&self, resource: Resource) -> Result<Registered, RegisterError> {
        self.add(Bundle::new().resource(resource), None)
    }

    /// Registers a template.
    ///
    /// # Errors
    ///
    /// Refuses a template that can't be parsed or matched, an empty name, and a completer for a variable
    /// that the template lacks.
    #[doc(alias = "register_resource_template")]
    pub fn register_template(
        &self,
        template: ResourceTemplate,
    ) -> Result<Registered, RegisterError> {
        self.add(Bundle::new().template(template), None)
    }

    /// Registers a bundle under a name, for [`Registry::unregister_server`].
    ///
    /// # Errors
    ///
    /// As for each resource and template. Also refuses a bundle that has a URI or a template twice. Then
    /// nothing is registered.
    pub fn register_server(
        &self,
        name: impl Into<String>,
        bundle: Bundle,
    ) -> Result<Registered, RegisterError> {
        self.add(bundle, Some(name.into()))
    }

    /// Takes back one registration of a resource, and returns whether there was one.
    pub fn unregister_resource(&self, uri: &str) -> bool {
        let removal = self.change(|state| state.remove_resource(uri));
        self.announce(removal == Removal::Gone);
        removal != Removal::Unknown
    }

    /// Takes back one registration of a template by its text, and returns whether there was one.
    #[doc(alias = "unregister_resource_template")]
    pub fn unregister_template(&self, uri_template: &str) -> bool {
        let removal = self.change(|state| state.remove_template(uri_template));
        self.announce(removal == Removal::Gone);
        removal != Removal::Unknown
    }

    /// Takes back the latest [`Registry::register_server`] with this name, and returns whether there was
    /// one.
    pub fn unregister_server(&self, name: &str) -> bool {
        let removals = self.change(|state| state.remove_server(name));
        let Some(removals) = removals else {
            return false;
        };
        self.announce(removals.contains(&Removal::Gone));
        true
    }

    /// Replaces the latest [`Registry::register_server`] with this name, if there is one, in one step.
    ///
    /// No client sees a state in between. Entries that were there before and stay in the same order keep
    /// their place in the list, up to the first new one. A client that is reading pages continues from
    /// its place, or from there.
    ///
    /// # Errors
    ///
    /// As for [`Registry::register_server`]. Then nothing changes.
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
    /// [`ReadError::NotFound`] if nothing is registered for the URI, and those of the handler.
    pub async fn read(&self, uri: &str) -> Result<Reading, ReadError> {
        let found = self.find(uri).ok_or(ReadError::NotFound)?;
        match found {
            Reader::Resource(resource) => {
                let contents = self.shared.read(&resource.handler, ()).await?;
                Ok(complete_reading(contents, uri, &resource.details, |body| {
                    Some(body.default_mime_type())
                }))
            }
            Reader::Template(template, found) => {
                let ResourceTemplate {
                    handler, details, ..
                } = &template.description;
                let contents = self
                    .shared
                    .read(handler, Parameters::new(uri.to_owned(), found))
                    .await?;
                Ok(complete_reading(contents, uri, details, |_| None))
            }
        }
    }

    /// Tells the clients that subscribed to this URI that the resource has changed.
    pub fn notify_updated(&self, uri: &str) {
        if let Some(uri) = normal_uri(uri) {
            self.send(Event::Updated(uri.into()));
        }
    }

    /// Returns the files that this URI is read from, if its registration names any.
    pub fn sources(&self, uri: &str) -> Vec<PathBuf> {
        let found = self.find(uri);
        match found {
            Some(Reader::Resource(resource)) => resource.source.iter().cloned().collect(),
            Some(Reader::Template(template, found)) => match &template.description.source {
                Some(source) => source.find(&Parameters::new(uri.to_owned(), found)),
                None => Vec::new(),
            },
            None => Vec::new(),
        }
    }

    /// Returns whether a resource or a template is registered for this URI.
    pub fn contains(&self, uri: &str) -> bool {
        self.find(uri).is_some()
    }

    fn find(&self, uri: &str) -> Option<Reader> {
        let key = normal_uri(uri)?;
        let index = {
            let state = self.state();
            if let Some(resource) = state.resources.entry(&key) {
                return Some(Reader::Resource(resource));
            }
            state.index()
        };
        let (place, found) = index.set.find(uri)?;
        Some(Reader::Template(Arc::clone(&index.templates[place]), found))
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

    fn state(&self) -> RwLockReadGuard<'_, Registrations> {
        self.shared
            .state
            .read()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the registrations. Entries that go are dropped after the lock is released, because what a
    /// handler owns may use the registry when it is dropped.
    fn change<T>(&self, change: impl FnOnce(&mut Registrations) -> T) -> T {
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

impl Registrations {
    fn insert(&mut self, checked: Checked, name: Option<String>) -> Registered {
        let keys = checked.keys();
        let mut registered = Registered::default();
        for (key, resource) in checked.resources {
            let uri = resource.uri.clone();
            registered
                .known
                .extend(self.resources.add(key, resource).is_known().then_some(uri));
        }
        for template in checked.templates {
            self.add_template(template, &mut registered);
        }
        if let Some(name) = name {
            self.servers.entry(name).or_default().push(keys);
        }
        registered
    }

    fn add_template(&mut self, template: CheckedTemplate, registered: &mut Registered) {
        let text = template.description.uri_template.clone();
        if !self.templates.contains(&text) {
            registered.add_overlaps(
                self.templates
                    .entries()
                    .filter_map(|other| find_overlap(&template, other)),
            );
            self.forget_derived();
        }
        registered.known.extend(
            self.templates
                .add(text.clone(), template)
                .is_known()
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

    /// Drops what was computed from the templates.
    fn forget_derived(&mut self) {
        self.index = OnceLock::new();
        #[cfg(feature = "server")]
        {
            self.completes_variables = OnceLock::new();
        }
    }

    #[cfg(feature = "server")]
    fn completes_variables(&self) -> bool {
        *self.completes_variables.get_or_init(|| {
            self.templates
                .entries()
                .any(|template| !template.description.completers.is_empty())
        })
    }

    fn index(&self) -> Arc<SearchIndex> {
        Arc::clone(
            self.index
                .get_or_init(|| Arc::new(SearchIndex::new(&self.templates))),
        )
    }
}

impl Registered {
    /// Adds overlaps until there are more than [`MAX_OVERLAPS`], and looks for no further ones.
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

impl SearchIndex {
    fn new(templates: &Table<CheckedTemplate>) -> Self {
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

fn find_overlap(template: &CheckedTemplate, other: &CheckedTemplate) -> Option<Overlap> {
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

/// Fills in the URI and the MIME type where the handler leaves them to the registration.
fn complete_reading(
    mut contents: Contents,
    uri: &str,
    details: &Details,
    default: impl Fn(&Body) -> Option<&'static str>,
) -> Reading {
    for content in &mut contents.0 {
        content.uri.get_or_insert_with(|| uri.to_owned());
        if content.mime_type.is_none() {
            let registered = details.mime_type.clone();
            content.mime_type = registered.or_else(|| default(&content.body).map(str::to_owned));
        }
    }
    Reading {
        contents,
        ttl: details.ttl,
        cache_scope: details.cache_scope,
    }
}

impl Reading {
    /// Returns the text, if there is exactly one content and it is a text.
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
