//! Lists the attachments of a conversation and its snapshots.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

use jp_attachment::{
    ApprovalScope, AttachError, Declared, Limits, Notice, Place, Reach, Source, Survey, Surveyed,
    Walked, binary_type, parse_configured, parse_stored,
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
    blobs::read_payload,
    error::Warning,
    files::{Files, Listed},
    stamps::Stamps,
};

/// Makes the list of a conversation.
#[derive(Debug)]
pub(crate) struct Lister {
    pub(crate) files: Arc<Files>,
    /// The declarations of configuration files.
    pub(crate) configured: Vec<Declaration>,
    pub(crate) by_user: UserAttachments,
    pub(crate) limits: Limits,
    /// The largest content of one read, in bytes.
    pub(crate) max_read_bytes: u64,
}

/// The attachments that the user made. Neither the workspace's configuration nor a history can add to them.
#[derive(Debug)]
pub(crate) struct UserAttachments {
    /// The declarations in the user's configuration.
    pub(crate) configured: HashSet<Declaration>,
    /// The declarations that the user attached with commands.
    pub(crate) trust: Trust,
}

/// The attached files of the workspace.
#[derive(Debug)]
pub(crate) struct Attached {
    declared: Vec<Declaration>,
    by_declaration: HashMap<Declaration, Vec<Entry>>,
    /// The states of all files and directories that the survey depends on. `None` if some are unknown,
    /// because the survey stopped at a limit.
    stamps: Option<Stamps>,
}

/// An entry of the list. Equal entries have the same content.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entry {
    pub(crate) uri: String,
    name: String,
    description: &'static str,
    mime_type: Option<String>,
    size: u64,
    last_modified: Option<String>,
    content: EntryContent,
}

/// The source of an entry's content.
#[derive(Debug, Clone, PartialEq)]
enum EntryContent {
    /// The current content of a file.
    File { path: PathParam, listed: Listed },
    /// A snapshot that the conversation keeps.
    Snapshot(Payload<ResourceContent>),
}

impl Attached {
    /// Returns true if a new survey would have the same result.
    pub(crate) fn is_current(&self, declared: &[Declaration]) -> bool {
        self.declared == declared && self.stamps.as_ref().is_some_and(Stamps::are_current)
    }
}

impl Lister {
    /// Returns the declarations in effect.
    pub(crate) fn list_declarations(&self, stream: &Stream) -> Vec<Declaration> {
        effective(stream, &self.configured)
    }

    /// Finds the workspace's files of declarations without opening them.
    pub(crate) fn survey(&self, declared: Vec<Declaration>) -> (Attached, Vec<Warning>) {
        let start = SystemTime::now();
        let mut surveying = Surveying::new(self);
        let (excludes, includes): (Vec<_>, Vec<_>) =
            declared.iter().partition(|one| one.is_exclude());
        let excludes: Vec<_> = excludes
            .into_iter()
            .filter_map(|one| surveying.parse(one))
            .collect();
        let parsed = includes
            .into_iter()
            .filter_map(|one| Some((one, surveying.parse(one)?)));
        let parsed: Vec<_> = parsed
            .filter(|(_, one)| self.is_of_workspace_files(one))
            .collect();
        let by_user: HashSet<_> = parsed
            .iter()
            .filter_map(|(declaration, one)| self.find_user_file(declaration, one))
            .collect();
        let mut by_declaration = HashMap::new();
        for (declaration, one) in parsed {
            let entries = surveying.survey(one, &excludes, &by_user);
            by_declaration.insert(declaration.clone(), entries);
        }
        let Surveying {
            warnings,
            depends_on,
            is_whole,
            ..
        } = surveying;
        let stamps = is_whole.then(|| Stamps::after_looking(depends_on, start));
        (
            Attached {
                declared,
                by_declaration,
                stamps,
            },
            warnings,
        )
    }

    /// Lists the attachments, then the snapshots, the oldest first. Each URI is listed once.
    pub(crate) fn entries(&self, stream: &Stream, attached: &Attached) -> Vec<Entry> {
        let mut entries = self.list_attached(stream, attached);
        for (turn, snapshots, _) in deliveries(stream) {
            // A snapshot inside the events isn't in the store, so clients can't read it by its checksum.
            let stored = snapshots
                .iter()
                .filter(|snapshot| matches!(snapshot.content, Payload::Stored(_)));
            entries.extend(stored.map(|snapshot| snapshot_entry(turn, snapshot)));
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
        let max_bytes = self.max_read_bytes;
        let read = move || match &content {
            EntryContent::File { path, listed } => files.read_listed(path, listed),
            EntryContent::Snapshot(payload) => read_payload(&store, payload, max_bytes),
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
            EntryContent::File { path, .. } => resource.source(self.files.absolute(path)),
            EntryContent::Snapshot(_) => resource,
        }
    }

    fn list_attached(&self, stream: &Stream, attached: &Attached) -> Vec<Entry> {
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
            // Servers and tools choose the URIs of their snapshots. Such a URI must not replace a file or a
            // conversation of the workspace.
            snapshots.retain(|snapshot| !self.files.is_own(&snapshot.uri));
            entries.extend(snapshots.into_iter().map(attachment_entry));
        }
        entries
    }

    fn is_of_workspace_files(&self, declared: &Declared) -> bool {
        let is_path = matches!(declared.source, Source::Path(_) | Source::Glob(_));
        is_path && declared.source.reach(self.files.place()) == Reach::Workspace
    }

    /// Returns the URI of a declaration's file if the user made the declaration.
    fn find_user_file(&self, declaration: &Declaration, declared: &Declared) -> Option<String> {
        let place = self.files.place();
        match &declared.source {
            Source::Path(path)
                if declared.source.approval_scope(place) == ApprovalScope::Serving =>
            {
                let (uri, _) = place.uri_and_name(path)?;
                self.by_user.contains(declaration, place).then_some(uri)
            }
            _ => None,
        }
    }
}

impl UserAttachments {
    /// Returns true if the user attached the file that a declaration names now. If a link has replaced it, the
    /// declaration names another file, which the user did not attach.
    fn contains(&self, declaration: &Declaration, place: &Place) -> bool {
        let named = parse_configured(declaration.as_str(), place)
            .ok()
            .and_then(|declared| declared.declaration);
        named.is_some_and(|named| {
            self.configured.contains(&Declaration::new(&named)) || self.trust.contains(&named)
        })
    }
}

/// The state of a survey.
struct Surveying<'a> {
    lister: &'a Lister,
    warnings: Vec<Warning>,
    depends_on: BTreeSet<PathBuf>,
    /// True if `depends_on` is complete.
    is_whole: bool,
}

impl<'a> Surveying<'a> {
    fn new(lister: &'a Lister) -> Self {
        let depends_on = BTreeSet::from([lister.by_user.trust.path().to_owned()]);
        Self {
            lister,
            warnings: Vec::new(),
            depends_on,
            is_whole: true,
        }
    }
}

impl Surveying<'_> {
    /// Parses a declaration. `None` if it names a snapshot or is malformed.
    fn parse(&mut self, declaration: &Declaration) -> Option<Declared> {
        let place = self.lister.files.place();
        // Its file may be made, removed, or replaced with a link.
        let path = declaration
            .as_str()
            .strip_prefix("file:")
            .and_then(|path| percent_decode(path).ok());
        self.depends_on
            .extend(path.map(|path| place.root.join(path)));
        match parse_stored(declaration.as_str(), place) {
            Ok(declared) => Some(declared),
            // The conversation keeps its content.
            Err(AttachError::Snapshot { .. }) => None,
            Err(error) => {
                self.warnings.push(Warning::Attachment(error));
                None
            }
        }
    }

    /// Finds the files of one declaration.
    fn survey(
        &mut self,
        declared: Declared,
        excludes: &[Declared],
        by_user: &HashSet<String>,
    ) -> Vec<Entry> {
        let survey = self.walk(&declared, excludes);
        let walk = SurveyedWalk {
            base: declared.source.base().map(Path::to_owned),
            walked: Arc::new(Walked::new(declared, excludes)),
            by_user,
        };
        let files = &self.lister.files;
        let mut entries = Vec::new();
        for file in survey.files {
            match walk.entry(file, files) {
                Ok(entry) => entries.extend(entry),
                Err(warning) => self.warnings.push(warning),
            }
        }
        entries
    }

    fn walk(&mut self, declared: &Declared, excludes: &[Declared]) -> Survey {
        let Lister { files, limits, .. } = self.lister;
        let mut survey =
            Survey::take(declared, excludes, files.place(), *limits).unwrap_or_else(|error| {
                self.is_whole = false;
                Survey {
                    notices: vec![Notice::Skipped(error)],
                    ..Survey::default()
                }
            });
        self.depends_on.append(&mut survey.depends_on);
        for notice in survey.notices.drain(..) {
            if let Notice::Skipped(error) = notice {
                self.warnings.push(Warning::Attachment(error));
            }
        }
        survey
    }
}

/// A declaration whose files were found by a walk.
struct SurveyedWalk<'a> {
    /// The path that the declaration names.
    base: Option<PathBuf>,
    walked: Arc<Walked>,
    /// The URIs of the files that the user attached.
    by_user: &'a HashSet<String>,
}

impl SurveyedWalk<'_> {
    /// Lists a file; `None` if it is closed.
    fn entry(&self, file: Surveyed, files: &Files) -> Result<Option<Entry>, Warning> {
        let path = match files.path_of(&file.uri) {
            Ok(Some(path)) => path,
            Ok(None) => return Ok(None),
            Err(path) => return Err(Warning::Name { path }),
        };
        let listed = if self.by_user.contains(&file.uri) {
            Listed::ByUser
        } else if self.base.as_ref() == Some(&file.path) {
            Listed::Named
        } else {
            Listed::Walked {
                walked: Arc::clone(&self.walked),
                found_at: file.found_at,
            }
        };
        if listed == Listed::Named && files.find_walked(&path).is_err() {
            let path = path.to_string();
            return Err(Warning::NotWalked { path });
        }
        Ok(Some(Entry {
            name: path.as_str().to_owned(),
            description: "The current content of a file that is attached to the conversation",
            mime_type: guess_type(path.as_str()),
            size: file.size,
            last_modified: file.last_modified,
            uri: file.uri,
            content: EntryContent::File { path, listed },
        }))
    }
}

/// Guesses the MIME type from a file's name. Its content may have another one.
fn guess_type(path: &str) -> Option<String> {
    let name = Path::new(path).file_name()?.to_str()?;
    let binary = Some(binary_type(&[], name)).filter(|kind| *kind != "application/octet-stream");
    mime::from_path(name).or(binary).map(str::to_owned)
}

/// Lists an attachment that is not a file of the workspace by its newest snapshot.
fn attachment_entry(snapshot: &Snapshot) -> Entry {
    let name = snapshot.label().to_owned();
    let description = "The newest snapshot of an attachment of the conversation";
    entry(snapshot, snapshot.uri.clone(), name, description)
}

/// Lists a snapshot by its checksum.
fn snapshot_entry(turn: usize, snapshot: &Snapshot) -> Entry {
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
        "A snapshot: content that a model received or will receive",
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
        content: EntryContent::Snapshot(snapshot.content.clone()),
    }
}

/// Returns true if subscribers of a changed entry must be notified.
pub(crate) fn is_updated(before: &Entry, now: &Entry) -> bool {
    // The file watch notifies subscribers of files.
    matches!(now.content, EntryContent::Snapshot(_)) && before.content != now.content
}
