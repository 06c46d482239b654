//! The error of this crate: a kind, a message and hints.

use std::{error::Error, fmt, io, path::Path};

use jp_config::{Layer, Resolved};
use jp_storage::{BlobError, Damage, NotRegular, ReadError, RefusedLink, read_regular};

use crate::text::quote_word;

/// The kind of a failure, which decides the exit code of the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// The command failed.
    Failed,
    /// The user called the command wrongly.
    Usage,
    /// A budget or a policy refused it.
    Refused,
    /// The user interrupted it.
    Interrupted,
}

/// A failure, with hints.
#[derive(Debug)]
pub struct SessionError {
    /// The kind of the failure.
    pub kind: ErrorKind,
    /// The failed operation, its object and the cause: a lowercase fragment.
    pub message: String,
    /// Possible next steps of the user, a sentence each.
    pub hints: Vec<String>,
}

impl SessionError {
    /// Makes a plain failure.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            kind: ErrorKind::Failed,
            message: message.into(),
            hints: Vec::new(),
        }
    }

    /// Makes a failure for a command that the user called wrongly.
    pub fn usage(message: impl Into<String>) -> Self {
        Self {
            kind: ErrorKind::Usage,
            ..Self::new(message)
        }
    }

    /// Makes the failure of an interrupted command.
    pub fn interrupted() -> Self {
        Self {
            kind: ErrorKind::Interrupted,
            ..Self::new("interrupted")
        }
    }

    /// Adds a hint after those it has.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }
}

impl fmt::Display for SessionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.message)?;
        self.hints
            .iter()
            .try_for_each(|hint| write!(f, "\nhint: {hint}"))
    }
}

impl Error for SessionError {}

impl SessionError {
    /// Words a library's error: "failed to …" with its causes, and hints.
    pub fn from_library(error: &(dyn Error + 'static)) -> Self {
        let mut failure = Self::new(format!("failed to {}", chain(error)));
        failure.hints = find_hints(error);
        failure
    }

    /// Words an error of the operating system. Such an error doesn't name the operation, so `attempt`
    /// does.
    pub fn from_system(attempt: &str, error: io::Error) -> Self {
        let message = format!("failed to {attempt}: {}", cause_after(attempt, &error));
        Self {
            hints: find_hints(&error),
            ..Self::new(message)
        }
    }
}

impl SessionError {
    /// Makes the error about a key of the configuration: `KEY in LAYER FAULT`.
    ///
    /// It is a usage error if the user typed the value, because then the command line is at fault.
    pub(crate) fn about_key(config: &Resolved, key: &str, fault: &str) -> Self {
        let layer = config.contributors(key).pop().unwrap_or(&Layer::Default);
        let kind = match layer {
            Layer::Argument { .. } | Layer::Flag { .. } => ErrorKind::Usage,
            _ => ErrorKind::Failed,
        };
        Self {
            kind,
            ..Self::new(format!("{key} in {layer} {fault}"))
        }
    }
}

/// Returns hints for an error of the system or of the store.
fn find_hints(error: &(dyn Error + 'static)) -> Vec<String> {
    let hint = hint_for(error).map(str::to_owned);
    refusal_hint(error).into_iter().chain(hint).collect()
}

/// Writes the conversion of each library's error.
///
/// The list is explicit so that an error without a sentence of its own, such as a bare
/// [`io::Error`], doesn't reach the user by accident.
macro_rules! convert_library_errors {
    ($($error:ty),* $(,)?) => {
        $(impl From<$error> for SessionError {
            fn from(error: $error) -> Self {
                Self::from_library(&error)
            }
        })*
    };
}

convert_library_errors!(
    jp_config::Error,
    jp_llm::Error,
    jp_storage::BlobError,
    jp_storage::InitError,
    jp_storage::ReadError,
    jp_storage::StoreError,
    jp_storage::WriteError,
    jp_turn::FilesError,
    serde_json::Error,
);

/// Joins an error with its causes, except for a cause that the text before already contains.
pub fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause_after(&text, cause);
        // Some errors already end with the text of their cause.
        if !text.ends_with(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    text
}

/// Returns the text of a cause, to follow `text`. A refused link that `text` ends with becomes "it".
pub fn cause_after(text: &str, cause: &(dyn Error + 'static)) -> String {
    let cause_text = cause.to_string();
    let link = cause
        .downcast_ref::<io::Error>()
        .and_then(RefusedLink::behind);
    match link.map(|RefusedLink { path }| path.display().to_string()) {
        Some(path) if text.ends_with(&path) => cause_text.replacen(&path, "it", 1),
        _ => cause_text,
    }
}

/// Returns whether the process or the system has reached its limit of open files.
fn is_out_of_files(error: &io::Error) -> bool {
    // The standard library has no kinds for them. The numbers are the same on Linux and macOS.
    const ENFILE: i32 = 23;
    const EMFILE: i32 = 24;
    cfg!(unix) && matches!(error.raw_os_error(), Some(ENFILE | EMFILE))
}

/// Returns whether a file contains conflict markers of git.
fn has_conflict_markers(path: &Path) -> bool {
    let text = read_regular(path).unwrap_or_default();
    text.split(|byte| *byte == b'\n')
        .any(|line| line.starts_with(b"<<<<<<< "))
}

/// Returns a hint for a file that jp refused to open: a link or a special file.
fn refusal_hint(error: &(dyn Error + 'static)) -> Option<String> {
    let error = errors(error).find_map(|error| error.downcast_ref::<io::Error>())?;
    if let Some(RefusedLink { path }) = RefusedLink::behind(error) {
        let path = quote_word(&path.display().to_string());
        return Some(format!(
            "remove the link: `rm {path}`. If you created it, put the files in its place."
        ));
    }
    NotRegular::behind(error)
        .map(|_| "remove it, or restore the file from git or a backup.".to_owned())
}

/// Iterates over an error and its causes.
fn errors<'e>(error: &'e (dyn Error + 'static)) -> impl Iterator<Item = &'e (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&error| error.source())
}

/// Returns the hint for the outermost error that has one.
fn hint_for(error: &(dyn Error + 'static)) -> Option<&'static str> {
    errors(error).find_map(|error| {
        if let Some(error) = error.downcast_ref::<BlobError>() {
            hint_for_blob(error)
        } else if let Some(error) = error.downcast_ref::<ReadError>() {
            hint_for_conversation(error)
        } else {
            hint_for_system(error.downcast_ref::<io::Error>()?)
        }
    })
}

fn hint_for_blob(error: &BlobError) -> Option<&'static str> {
    match error {
        BlobError::Missing { .. } => Some(
            "attach its source again to restore it; `jp storage check` lists all missing content.",
        ),
        // The blob may be intact: its event names the size, too.
        BlobError::Corrupt {
            damage: Damage::Size { .. },
            ..
        } => Some(
            "if someone edited the size in events.json, restore it there. If not, delete the file of the content and attach its source again.",
        ),
        BlobError::Corrupt { .. } => Some(
            "delete the file of the content and attach its source again; `jp storage check` lists all damaged content.",
        ),
        _ => None,
    }
}

fn hint_for_conversation(error: &ReadError) -> Option<&'static str> {
    match error {
        ReadError::BeingWritten { .. } => Some("try again when the other program is finished."),
        ReadError::Removed { .. } => Some("`jp conversation ls` lists the conversations."),
        ReadError::Events { path, .. } | ReadError::Json { path, .. } => {
            Some(match has_conflict_markers(path) {
                true => {
                    "it contains git's conflict markers: keep one side, or in events.json the events of both sides in order."
                }
                false => {
                    "fix it by hand, or restore it from git if it was committed; `jp query --new` starts another conversation."
                }
            })
        }
        _ => None,
    }
}

fn hint_for_system(error: &io::Error) -> Option<&'static str> {
    match error.kind() {
        _ if is_out_of_files(error) => Some("raise the limit of open files: `ulimit -n 1024`."),
        io::ErrorKind::StorageFull => Some("free some space on that disk and try again."),
        io::ErrorKind::ReadOnlyFilesystem => {
            Some("`jp query --no-persist` asks without storing anything.")
        }
        io::ErrorKind::PermissionDenied => Some("check the permissions of that file or directory."),
        _ => None,
    }
}
