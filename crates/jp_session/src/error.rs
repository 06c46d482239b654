//! The one error of this crate: what failed, of what kind, and what the user can do.

use std::{error::Error, fmt, io, path::Path};

use jp_config::{Layer, Resolved};
use jp_storage::{BlobError, Damage, NotRegular, ReadError, RefusedLink, read_regular};

/// How a failure ends the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// It failed.
    Failed,
    /// It was asked for something that makes no sense.
    Usage,
    /// A budget or a policy refused it.
    Refused,
    /// The user interrupted it.
    Interrupted,
}

/// A failure with what can be done about it.
#[derive(Debug)]
pub struct SessionError {
    /// What kind of failure it is.
    pub kind: ErrorKind,
    /// What failed, on what and why: a lowercase fragment.
    pub message: String,
    /// What the user can do: a sentence each.
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

    /// Makes a failure for a request that makes no sense.
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
    /// Words a library's error as "failed to …" with its causes and what the user can do.
    pub fn from_library(error: &(dyn Error + 'static)) -> Self {
        let mut failure = Self::new(format!("failed to {}", chain(error)));
        failure.hints = find_hints(error);
        failure
    }

    /// Words an error of the operating system, which never says what was attempted.
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

/// Returns what the user can do about an error of the system or the store.
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

/// Joins an error with its causes; a cause that its error already says is left out.
pub fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause_after(&text, cause);
        if !text.ends_with(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    text
}

/// Returns what a cause says after an error; a link that the error has just named is "it".
pub fn cause_after(text: &str, cause: &(dyn Error + 'static)) -> String {
    let cause_text = cause.to_string();
    let link = cause
        .downcast_ref::<std::io::Error>()
        .and_then(RefusedLink::behind);
    match link.map(|RefusedLink { path }| path.display().to_string()) {
        Some(path) if text.ends_with(&path) => cause_text.replacen(&path, "it", 1),
        _ => cause_text,
    }
}

/// Returns whether the process, or the system, has as many open files as it may have.
fn is_out_of_files(error: &std::io::Error) -> bool {
    const ENFILE: i32 = 23;
    const EMFILE: i32 = 24;
    cfg!(unix) && matches!(error.raw_os_error(), Some(ENFILE | EMFILE))
}

/// Returns whether git could not merge a file, which could be read a moment ago.
fn has_marks_of_a_merge(path: &Path) -> bool {
    let text = read_regular(path).unwrap_or_default();
    text.split(|byte| *byte == b'\n')
        .any(|line| line.starts_with(b"<<<<<<< "))
}

/// Returns a hint for a file that jp refused to open: a link or a special file.
fn refusal_hint(error: &(dyn Error + 'static)) -> Option<String> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(error) = error.downcast_ref::<std::io::Error>() {
            return match RefusedLink::behind(error) {
                Some(RefusedLink { path }) => Some(format!(
                    "remove the link: `rm {}`. If you created it, put the files in its place.",
                    quoted(path)
                )),
                None => NotRegular::behind(error)
                    .map(|_| "remove it, or restore the file from git or a backup.".to_owned()),
            };
        }
        next = error.source();
    }
    None
}

/// Quotes a path for a shell if it needs that.
fn quoted(path: &Path) -> String {
    let path = path.display().to_string();
    shlex::try_quote(&path).map_or_else(|_| path.clone(), |quoted| quoted.into_owned())
}

/// Finds advice for what the system or the store said.
fn hint_for(error: &(dyn Error + 'static)) -> Option<&'static str> {
    let mut next = Some(error);
    while let Some(error) = next {
        match error.downcast_ref::<BlobError>() {
            Some(BlobError::Missing { .. }) => {
                return Some(
                    "attach its source again to restore it; `jp storage check` lists all missing content.",
                );
            }
            Some(BlobError::Corrupt {
                damage: Damage::Size { .. },
                ..
            }) => {
                return Some(
                    "if someone edited the size in events.json, restore it there. If not, delete that file and attach its source again.",
                );
            }
            Some(BlobError::Corrupt { .. }) => {
                return Some(
                    "delete that file and attach its source again; `jp storage check` lists all damaged content.",
                );
            }
            _ => {}
        }
        match error.downcast_ref::<ReadError>() {
            Some(ReadError::BeingWritten { .. }) => {
                return Some("try again when the other program is finished.");
            }
            Some(ReadError::Removed { .. }) => {
                return Some("`jp conversation ls` lists the conversations.");
            }
            _ => {}
        }
        if let Some(ReadError::Events { path, .. } | ReadError::Json { path, .. }) =
            error.downcast_ref()
        {
            return Some(match has_marks_of_a_merge(path) {
                true => {
                    "it contains git's conflict markers: keep one side, or in events.json the events of both sides in order."
                }
                false => {
                    "fix it by hand, or restore it from git if it was committed; `jp query --new` starts another conversation."
                }
            });
        }
        if let Some(error) = error.downcast_ref::<std::io::Error>() {
            return match error.kind() {
                _ if is_out_of_files(error) => {
                    Some("raise the limit of open files: `ulimit -n 1024`.")
                }
                std::io::ErrorKind::StorageFull => {
                    Some("free some space on that disk and try again.")
                }
                std::io::ErrorKind::ReadOnlyFilesystem => {
                    Some("`jp query --no-persist` asks without storing anything.")
                }
                std::io::ErrorKind::PermissionDenied => {
                    Some("check the permissions of that file or directory.")
                }
                _ => None,
            };
        }
        next = error.source();
    }
    None
}
