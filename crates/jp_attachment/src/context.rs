use std::{
    num::NonZeroUsize,
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, SystemTime},
};

use crate::{AttachError, ContentStore, Displays, Place, Progress, ReadMcp};

/// The environment that declarations are resolved in.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// The workspace, and the rules for paths.
    pub place: &'a Place,
    /// The store that keeps the content.
    pub store: &'a dyn ContentStore,
    /// The time, taken before resolving. The store doesn't remember a file that changed shortly
    /// before.
    pub now: SystemTime,
    /// The limits of one command.
    pub limits: Limits,
    /// The treatment of unavailable sources.
    pub unavailable: Unavailable,
    /// The treatment of text that looks like it holds a secret.
    pub secrets: Secrets,
    /// The number of threads that read files.
    pub workers: NonZeroUsize,
    /// The most time that one page or command may take.
    pub timeout: Duration,
    /// The connections to MCP servers, if there are any.
    pub mcp: Option<&'a dyn ReadMcp>,
    /// The database of the Bear app. Its default place is below the home directory.
    pub bear_database: Option<&'a Path>,
    /// The displays whose clipboards can be read. macOS and Windows need none.
    pub displays: Option<&'a Displays>,
    /// Counts finished work.
    pub progress: Option<&'a Progress>,
    /// Once set, stops all work that takes time.
    pub cancelled: Option<&'a AtomicBool>,
    /// Set by [`resolve`](crate::resolve) once one handler has failed, so that the others stop.
    pub failed: Option<&'a AtomicBool>,
}

/// The limits of what one command may attach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The length of one resource, in bytes.
    pub max_bytes: u64,
    /// The length of all resources, in bytes.
    pub max_total_bytes: u64,
    /// The number of files.
    pub max_files: usize,
}

/// The treatment of sources that are missing, unreadable or too large
/// ([`AttachError::is_unavailable`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Unavailable {
    /// Nothing is attached.
    #[default]
    Fail,
    /// The rest is attached, with a [`Notice::Skipped`](crate::Notice::Skipped).
    Skip,
}

/// The treatment of text that looks like it holds a secret, such as a token or a private key.
///
/// A scan reads some hundred megabytes a second. It also has to read files that the store knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Secrets {
    /// Text is not scanned.
    #[default]
    Off,
    /// It is attached, with a [`Notice::Secret`](crate::Notice::Secret) for each kind.
    Warn,
    /// It is not attached: [`AttachError::Secret`].
    Refuse,
}

/// A value, or the error that [`Unavailable::Skip`] tolerates in its place.
pub(crate) type Tolerated<T> = Result<T, AttachError>;

impl<'a> Context<'a> {
    /// Creates a context with the default limits, which fails if something is unavailable.
    ///
    /// It reads with as many threads as the machine has processors, at most four: more of them only
    /// wait for the same disk.
    pub fn new(place: &'a Place, store: &'a dyn ContentStore, now: SystemTime) -> Self {
        let four = NonZeroUsize::MIN.saturating_add(3);
        Self {
            place,
            store,
            now,
            limits: Limits::default(),
            unavailable: Unavailable::default(),
            secrets: Secrets::default(),
            workers: thread::available_parallelism()
                .map_or(NonZeroUsize::MIN, |processors| processors.min(four)),
            timeout: Duration::from_secs(60),
            mcp: None,
            bear_database: None,
            displays: None,
            progress: None,
            cancelled: None,
            failed: None,
        }
    }
}

impl Context<'_> {
    /// Fails if the user has interrupted, or if another handler has failed.
    pub(crate) fn check_cancelled(&self) -> Result<(), AttachError> {
        if self.is_cancelled() {
            Err(AttachError::Interrupted)
        } else {
            Ok(())
        }
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        [self.cancelled, self.failed]
            .into_iter()
            .flatten()
            .any(|flag| flag.load(Ordering::Relaxed))
    }

    /// Fails if content of this length may not be attached.
    pub(crate) fn check_length(&self, input: &str, length: usize) -> Result<(), AttachError> {
        let limit = self.limits.max_bytes;
        if length as u64 > limit {
            return Err(AttachError::TooLong {
                input: input.to_owned(),
                limit,
            });
        }
        Ok(())
    }
}

impl Unavailable {
    /// Returns a tolerable error in the place of a value, and fails with any other error.
    pub(crate) fn tolerate<T>(
        self,
        result: Result<T, AttachError>,
    ) -> Result<Tolerated<T>, AttachError> {
        match (self, result) {
            (Self::Skip, Err(error)) if error.is_unavailable() => Ok(Err(error)),
            (_, Err(error)) => Err(error),
            (_, Ok(value)) => Ok(Ok(value)),
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_bytes: 10_000_000,
            max_total_bytes: 200_000_000,
            max_files: 20_000,
        }
    }
}
