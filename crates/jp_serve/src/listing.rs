//! What is attached to a conversation, and its snapshots, as resources of the list.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

use jp_attachment::{
    AttachError, Declared, Limits, Notice, Place, Reach, Source, Survey, Surveyed, Walked,
    binary_type, parse_configured, parse_stored,
};
use jp_conversation::{
    Declaration, Stream,
    attachments::{deliveries, newest_by_declaration},
    resolution::{effective, newest_snapshots},
};
use jp_resource::{Payload, ResourceContent, Snapshot, mime, uri::percent_decode};
use jp_storage::{Store, Trust};
use mcp_resources::{Annotations, PathParam, Resource};

use crate::{
    Warning,
    blobs::read_payload,
    files::{Files, Listed},
    stamps::Stamps,
};

/// Makes the list of a conversation.
#[derive(Debug)]
pub(crate) struct Lister {
    pub(crate) files: Arc<Files>,
    /// What configuration files declare.
    pub(crate) configured: Vec<Declaration>,
    pub(crate) persons: Persons,
    pub(crate) limits: Limits,
    /// How many bytes a read gives at most.
    pub(crate) max_given: u64,
}

/// What the person themself attached, which neither the workspace's configuration nor a history can say.
#[derive(Debug)]
pub(crate) struct Persons {
    /// What their own configuration declares.
    pub(crate) configured: HashSet<Declaration>,
    /// What their commands attached.
    pub(crate) trust: Trust,
}

/// The workspace's files that declarations stand for.
#[derive(Debug)]
pub(crate) struct Attached {
    declared: Vec<Declaration>,
    by_declaration: HashMap<Declaration, Vec<Entry>>,
    /// Of what they depend on; none where that is not known, as there is too much to go through all of it.
    stamps: Option<Stamps>,
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
    File { path: PathParam, listed: Listed },
    /// What the conversation keeps.
    Kept(Payload<ResourceContent>),
}

impl Attached {
    /// Returns whether a survey would find what this one found.
    pub(crate) fn is_current(&self, declared: &[Declaration]) -> bool {
        self.declared == declared && self.stamps.as_ref().is_some_and(Stamps::are_current)
    }
}

impl Lister {
    /// Returns what is declared as attached.
    pub(crate) fn declared(&self, stream: &Stream) -> Vec<Declaration> {
        effective(stream, &self.configured)
    }

    /// Finds the workspace's files that declarations give now; opens none of them. What can't be had is told.
    pub(crate) fn survey(&self, declared: Vec<Declaration>) -> (Attached, Vec<Warning>) {
        let begun = SystemTime::now();
        let mut surveying = Surveying::new(self);
        let (excludes, includes): (Vec<_>, Vec<_>) =
            declared.iter().partition(|one| one.is_exclude());
        let excludes: Vec<_> = excludes
            .into_iter()
            .filter_map(|one| surveying.parsed(one))
            .collect();
        let parsed = includes
            .into_iter()
            .filter_map(|one| Some((one, surveying.parsed(one)?)));
        let parsed: Vec<_> = parsed.filter(|(_, one)| self.is_of_files(one)).collect();
        let outright: HashSet<_> = parsed
            .iter()
            .filter_map(|(declaration, one)| self.outright(declaration, one))
            .collect();
        let mut by_declaration = HashMap::new();
        for (declaration, one) in parsed {
            let entries = surveying.entries(one, &excludes, &outright);
            by_declaration.insert(declaration.clone(), entries);
        }
        let Surveying {
            warnings,
            depends_on,
            is_whole,
            ..
        } = surveying;
        let stamps = is_whole.then(|| Stamps::after_looking(depends_on, begun));
        (
            Attached {
                declared,
                by_declaration,
                stamps,
            },
            warnings,
        )
    }

    /// Lists what is attached, then the snapshots, the oldest first; each URI once.
    pub(crate) fn entries(&self, stream: &Stream, attached: &Attached) -> Vec<Entry> {
        let mut entries = self.attached(stream, attached);
        for (turn, snapshots, _) in deliveries(stream) {
            // One that is in the conversation itself has no checksum by which it could be read later.
            let stored = snapshots
                .iter()
                .filter(|snapshot| matches!(snapshot.content, Payload::Stored(_)));
            entries.extend(stored.map(|snapshot| kept(turn, snapshot)));
        }
        let mut seen = HashSet::new();
        entries.retain(|entry| seen.insert(entry.uri.clone()));
        entries
    }

    /// Makes the resource of an entry of a conversation in this store.
    pub(crate) fn resource(&self, entry: &Entry, store: &Store) -> Resource {
        let (files, store, content) = (
            Arc::clone(&self.files),
            store.clone(),
            entry.content.clone(),
        );
        let max_bytes = self.max_given;
        let read = move || match &content {
            Reading::File { path, listed } => files.read_listed(path, listed),
            Reading::Kept(payload) => read_payload(&store, payload, max_bytes),
        };
        let mut resource = Resource::new(&entry.uri, &entry.name, read)
            .description(entry.description)
            .size(entry.size);
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

    fn attached(&self, stream: &Stream, attached: &Attached) -> Vec<Entry> {
        let (by_declaration, by_uri) = (newest_by_declaration(stream), newest_snapshots(stream));
        let mut entries = Vec::new();
        for declaration in attached
            .declared
            .iter()
            .filter(|declaration| !declaration.is_exclude())
        {
            if let Some(files) = attached.by_declaration.get(declaration) {
                entries.extend(files.iter().cloned());
                continue;
            }
            let given = by_declaration.get(declaration).into_iter().flatten();
            let mut snapshots: Vec<_> = given.map(|(_, snapshot)| *snapshot).collect();
            if snapshots.is_empty() {
                snapshots.extend(by_uri.get(declaration.as_str()));
            }
            // Whoever made a snapshot chose its URI. What is now at the place of one of the workspace's files, or of
            // its conversations, is never that.
            snapshots.retain(|snapshot| !self.files.is_own(&snapshot.uri));
            entries.extend(snapshots.into_iter().map(newest));
        }
        entries
    }

    fn is_of_files(&self, declared: &Declared) -> bool {
        let is_path = matches!(declared.source, Source::Path(_) | Source::Glob(_));
        is_path && declared.source.reach(self.files.place()) == Reach::Workspace
    }

    /// Returns the URI of the file that a declaration names itself, if it is the person's.
    fn outright(&self, declaration: &Declaration, declared: &Declared) -> Option<String> {
        let Source::Path(path) = &declared.source else {
            return None;
        };
        let (uri, _) = self.files.place().named(path)?;
        self.persons
            .made(declaration, self.files.place())
            .then_some(uri)
    }
}

impl Persons {
    /// Returns whether the person attached what a declaration names. They did so to a file, not to a link that someone
    /// put in its place since: that names another file.
    fn made(&self, declaration: &Declaration, place: &Place) -> bool {
        let named = parse_configured(declaration.as_str(), place)
            .ok()
            .and_then(|declared| declared.declaration);
        named.is_some_and(|named| {
            self.configured.contains(&Declaration::new(&named)) || self.trust.contains(&named)
        })
    }
}

/// A survey under way.
struct Surveying<'a> {
    lister: &'a Lister,
    warnings: Vec<Warning>,
    depends_on: BTreeSet<PathBuf>,
    /// Whether it depends on nothing else.
    is_whole: bool,
}

impl<'a> Surveying<'a> {
    fn new(lister: &'a Lister) -> Self {
        let depends_on = BTreeSet::from([lister.persons.trust.path().to_owned()]);
        Self {
            lister,
            warnings: Vec::new(),
            depends_on,
            is_whole: true,
        }
    }
}

impl Surveying<'_> {
    fn parsed(&mut self, declaration: &Declaration) -> Option<Declared> {
        let place = self.lister.files.place();
        // What it names may come, go, or become a link to something else.
        let path = declaration
            .as_str()
            .strip_prefix("file:")
            .and_then(|path| percent_decode(path).ok());
        self.depends_on
            .extend(path.map(|path| place.root.join(path)));
        match parse_stored(declaration.as_str(), place) {
            Ok(declared) => Some(declared),
            // Its content is what a conversation keeps.
            Err(AttachError::Snapshot { .. }) => None,
            Err(error) => {
                self.warnings.push(Warning::Attachment(error));
                None
            }
        }
    }

    fn entries(
        &mut self,
        declared: Declared,
        excludes: &[Declared],
        outright: &HashSet<String>,
    ) -> Vec<Entry> {
        let Lister { files, limits, .. } = self.lister;
        let survey = Survey::of(&declared, excludes, files.place(), *limits);
        let survey = survey.unwrap_or_else(|error| {
            self.is_whole = false;
            Survey {
                notices: vec![Notice::Skipped(error)],
                ..Survey::default()
            }
        });
        self.depends_on.extend(survey.depends_on);
        self.warnings.extend(
            survey
                .notices
                .into_iter()
                .filter_map(|notice| match notice {
                    Notice::Skipped(error) => Some(Warning::Attachment(error)),
                    _ => None,
                }),
        );
        let base = declared.source.base().map(Path::to_owned);
        let walked = Arc::new(Walked::new(declared, excludes));
        let entry = |file: Surveyed| {
            let path = match files.path_of(&file.uri) {
                Ok(path) => path?,
                Err(path) => {
                    self.warnings.push(Warning::Name { path });
                    return None;
                }
            };
            let listed = match outright.contains(&file.uri) {
                true => Listed::Outright,
                false if base.as_ref() == Some(&file.path) => Listed::Named,
                false => Listed::Walked {
                    walked: Arc::clone(&walked),
                    found_at: file.found_at,
                },
            };
            if listed == Listed::Named && files.walked(&path).is_err() {
                self.warnings.push(Warning::NotWalked {
                    path: path.to_string(),
                });
                return None;
            }
            Some(Entry {
                name: path.as_str().to_owned(),
                description: "A file that is attached to the conversation, as it is now",
                mime_type: type_of(path.as_str()),
                size: file.size,
                last_modified: file.last_modified,
                uri: file.uri,
                content: Reading::File { path, listed },
            })
        };
        survey.files.into_iter().filter_map(entry).collect()
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
    let when = if turn > 0 {
        format!("turn {turn}")
    } else {
        "not sent yet".to_owned()
    };
    let uri = format!("jp://blob/{}", snapshot.blob_ref().checksum);
    let name = format!("{} ({when})", snapshot.label());
    entry(
        snapshot,
        uri,
        name,
        "A snapshot: what a model was shown, or will be",
    )
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
