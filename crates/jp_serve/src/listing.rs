//! What is attached to a conversation, and its snapshots, as resources of the list.

use std::{collections::HashSet, error::Error, path::Path, sync::Arc, time::SystemTime};

use jp_attachment::{
    ContentStore, Context, Declared, FileStamp, Known, Reach, Secrets, Source, Unavailable, binary_type,
    parse_stored, resolve,
};
use jp_conversation::{
    Declaration, Stream,
    delivered::{deliveries, newest_by_declaration},
    resolution::{effective, newest_snapshots},
};
use jp_resource::{BlobRef, Encoding, Payload, ResourceContent, Snapshot, mime};
use jp_storage::Store;
use mcp_resources::{Annotations, PathParam, Resource};

use crate::{
    blobs::read_payload,
    conversations::Found,
    files::{Asked, Files},
};

/// Makes the list of a conversation.
#[derive(Debug)]
pub(crate) struct Lister {
    pub(crate) files: Arc<Files>,
    /// What configuration files declare.
    pub(crate) configured: Vec<Declaration>,
}

/// An entry of the list. Two that are equal have the same content.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entry {
    pub(crate) uri: String,
    name: String,
    description: &'static str,
    mime_type: Option<String>,
    size: u64,
    last_modified: Option<String>,
    content: Reading,
}

/// What a read of an entry gives.
#[derive(Debug, Clone, PartialEq)]
enum Reading {
    /// What the file has at the time.
    File { path: PathParam, asked: Asked },
    /// What the conversation keeps.
    Kept(Payload<ResourceContent>),
}

impl Lister {
    /// Lists what is attached, then the snapshots, the oldest first; each URI once.
    pub(crate) fn entries(&self, stream: &Stream) -> Vec<Entry> {
        let mut entries = self.attached(stream);
        for (turn, snapshots, _) in deliveries(stream) {
            entries.extend(snapshots.iter().map(|snapshot| kept(turn, snapshot)));
        }
        let mut seen = HashSet::new();
        entries.retain(|entry| seen.insert(entry.uri.clone()));
        entries
    }

    /// Makes the resource of an entry of a conversation in this store.
    pub(crate) fn resource(&self, entry: &Entry, store: &Store) -> Resource {
        let (files, store, content) = (Arc::clone(&self.files), store.clone(), entry.content.clone());
        let read = move || match &content {
            Reading::File { path, asked } => files.read(path, *asked),
            Reading::Kept(payload) => read_payload(&store, payload),
        };
        let mut resource =
            Resource::new(&entry.uri, &entry.name, read).description(entry.description).size(entry.size);
        if let Some(last_modified) = &entry.last_modified {
            resource = resource.annotations(Annotations::default().last_modified(last_modified));
        }
        if let Some(mime_type) = &entry.mime_type {
            resource = resource.mime_type(mime_type);
        }
        match &entry.content {
            Reading::File { path, .. } => resource.source(self.files.absolute(path)),
            Reading::Kept(_) => resource,
        }
    }

    fn attached(&self, stream: &Stream) -> Vec<Entry> {
        let declared = effective(stream, &self.configured);
        let (excludes, declared): (Vec<_>, Vec<_>) = declared.into_iter().partition(Declaration::is_exclude);
        let excludes: Vec<_> = excludes.iter().filter_map(|exclude| self.parsed(exclude)).collect();
        let (by_declaration, by_uri) = (newest_by_declaration(stream), newest_snapshots(stream));
        let mut entries = Vec::new();
        for declaration in &declared {
            match self.parsed(declaration).filter(|declared| self.is_of_files(declared)) {
                Some(files) => entries.extend(self.of_files(files, &excludes)),
                None => {
                    let given = by_declaration.get(declaration).into_iter().flatten();
                    let mut snapshots: Vec<_> = given.map(|(_, snapshot)| *snapshot).collect();
                    if snapshots.is_empty() {
                        snapshots.extend(by_uri.get(declaration.as_str()));
                    }
                    // What is now at the place of one of the workspace's files is never an old snapshot.
                    snapshots.retain(|snapshot| self.files.path_of(&snapshot.uri).is_none());
                    entries.extend(snapshots.into_iter().map(newest));
                }
            }
        }
        entries
    }

    fn parsed(&self, declaration: &Declaration) -> Option<Declared> {
        parse_stored(declaration.as_str(), self.files.place()).ok()
    }

    fn is_of_files(&self, declared: &Declared) -> bool {
        let is_path = matches!(declared.source, Source::Path(_) | Source::Glob(_));
        is_path && declared.source.reach(self.files.place()) == Reach::Workspace
    }

    /// Lists the workspace's files that a declaration gives now; none where it gives none. Opens no file.
    fn of_files(&self, declared: Declared, excludes: &[Declared]) -> Vec<Entry> {
        let outright = match &declared.source {
            Source::Path(path) => self.files.place().named(path).map(|(uri, _)| uri),
            _ => None,
        };
        let place = self.files.place();
        let context = Context {
            unavailable: Unavailable::Skip,
            secrets: Secrets::Off,
            ..Context::new(place, &Unread, SystemTime::now())
        };
        let all: Vec<_> = std::iter::once(declared).chain(excludes.iter().cloned()).collect();
        let resources = resolve(&all, &context).map(|resolved| resolved.resources).unwrap_or_default();
        let entry = |resource: jp_resource::Resource<BlobRef>| {
            let path = self.files.path_of(&resource.uri)?;
            let is_outright = outright.as_ref() == Some(&resource.uri);
            let asked = if is_outright { Asked::Outright } else { Asked::FromWalk };
            Some(Entry {
                name: path.as_str().to_owned(),
                description: "A file that is attached to the conversation, as it is now",
                mime_type: type_of(path.as_str()),
                size: resource.content.size,
                last_modified: resource.annotations.and_then(|annotations| annotations.last_modified),
                uri: resource.uri,
                content: Reading::File { path, asked },
            })
        };
        resources.into_iter().filter_map(entry).collect()
    }
}

/// Knows every file, so that none is read: the list tells sizes and times alone.
struct Unread;

impl ContentStore for Unread {
    fn known(&self, file: &FileStamp) -> Option<Known> {
        let checksum = BlobRef::of(&[], Encoding::Binary).checksum;
        let blob = BlobRef { checksum, size: file.size, encoding: Encoding::Binary };
        Some(Known { blob, mime_type: String::new() })
    }

    fn keep(
        &self,
        content: &ResourceContent,
        _: &str,
        _: Option<&FileStamp>,
    ) -> Result<BlobRef, Box<dyn Error + Send + Sync>> {
        Ok(content.blob_ref())
    }
}

/// Returns the type that a file's name tells; the content may tell another.
fn type_of(path: &str) -> Option<String> {
    let name = Path::new(path).file_name()?.to_str()?;
    let binary = || Some(binary_type(&[], name)).filter(|kind| *kind != "application/octet-stream");
    mime::from_path(name).or_else(binary).map(str::to_owned)
}

/// Lists what stands for an attachment that is not a file of the workspace: the newest snapshot.
fn newest(snapshot: &Snapshot) -> Entry {
    let name = snapshot.label().to_owned();
    let description = "What is attached to the conversation, as it was when it was read last";
    entry(snapshot, snapshot.uri.clone(), name, description)
}

fn kept(turn: usize, snapshot: &Snapshot) -> Entry {
    let when = if turn > 0 { format!("turn {turn}") } else { "not sent yet".to_owned() };
    let uri = format!("jp://blob/{}", snapshot.blob_ref().checksum);
    let name = format!("{} ({when})", snapshot.label());
    entry(snapshot, uri, name, "A snapshot: what a model was shown, or will be")
}

fn entry(snapshot: &Snapshot, uri: String, name: String, description: &'static str) -> Entry {
    let annotations = snapshot.annotations.as_ref();
    Entry {
        uri,
        name,
        description,
        mime_type: snapshot.mime_type.clone(),
        size: snapshot.blob_ref().size,
        last_modified: annotations.and_then(|annotations| annotations.last_modified.clone()),
        content: Reading::Kept(snapshot.content.clone()),
    }
}

/// Says of which entries the client that has the first list has to be told.
pub(crate) fn is_updated(before: &Entry, now: &Entry) -> bool {
    // Files are watched by whoever subscribed to them.
    matches!(now.content, Reading::Kept(_)) && before.content != now.content
}

impl Found {
    /// Reads the conversation and lists it.
    pub(crate) fn entries(&self, lister: &Lister) -> Option<Vec<Entry>> {
        Some(lister.entries(&self.read().ok()?.stream))
    }
}
