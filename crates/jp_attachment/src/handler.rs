use std::{
    num::NonZeroUsize,
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, SystemTime},
};

use crate::{AttachError, ContentStore, Declared, Displays, Place, Progress, ReadMcp, Resolved};

/// Resolves the declarations of some URI schemes; holds no state.
pub(crate) trait Handler {
    /// Returns the schemes, in lower case and without the colon.
    fn schemes(&self) -> &'static [&'static str];

    /// Resolves declarations, includes and excludes together; a single one for a refresh.
    ///
    /// Gives the first error in declared order and then keeps nothing of the result, unless
    /// [`Unavailable::Skip`] tolerates it.
    fn resolve(
        &self,
        declared: &[Declared],
        context: &Context<'_>,
    ) -> Result<Resolved, AttachError>;
}

/// What resolving depends on besides the declarations.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// The workspace, and how paths are read.
    pub place: &'a Place,
    /// Where content goes.
    pub store: &'a dyn ContentStore,
    /// The time, taken before resolving: a file that was written to shortly before is not remembered.
    pub now: SystemTime,
    /// How much may be attached.
    pub limits: Limits,
    /// What happens to what can't be had.
    pub unavailable: Unavailable,
    /// What happens to text that looks like it holds a secret.
    pub secrets: Secrets,
    /// How many threads read files.
    pub workers: NonZeroUsize,
    /// How long one page or command may take.
    pub timeout: Duration,
    /// Reads from MCP servers; without it there are none.
    pub mcp: Option<&'a dyn ReadMcp>,
    /// The database of the Bear app; without it where the app keeps it, below the home directory.
    pub bear_database: Option<&'a Path>,
    /// Where there may be clipboards; without it there are none, but for a Mac's and Windows'.
    pub displays: Option<&'a Displays>,
    /// Counts what is done.
    pub progress: Option<&'a Progress>,
    /// Ends what takes time, once set.
    pub cancelled: Option<&'a AtomicBool>,
    /// Set by [`resolve`](crate::resolve) once one handler has failed: nobody waits for the others.
    pub failed: Option<&'a AtomicBool>,
}

/// How much may be attached with one command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Length of one resource.
    pub max_bytes: u64,
    /// Length of all resources.
    pub max_total_bytes: u64,
    /// Number of files.
    pub max_files: usize,
}

/// What happens to what is missing, unreadable or too large ([`AttachError::is_unavailable`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Unavailable {
    /// Nothing is attached.
    #[default]
    Fail,
    /// The rest is attached, with a [`Notice::Skipped`](crate::Notice::Skipped).
    Skip,
}

/// What happens to text that looks like it holds a secret, such as a token or a private key.
///
/// Looking costs a pass over each text, at some hundred MB a second, of files that the store knows too:
/// those are read again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Secrets {
    /// Nothing looks.
    #[default]
    Off,
    /// It is attached, with a [`Notice::Secret`](crate::Notice::Secret) for each kind.
    Warn,
    /// It is not attached: [`AttachError::Secret`].
    Refuse,
}

impl<'a> Context<'a> {
    /// Makes a context with the default limits, that fails where something is unavailable.
    ///
    /// Reads on as many threads as the machine has processors, four at most.
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
    /// Fails once the person has interrupted, or nobody waits any more.
    pub(crate) fn check_cancelled(&self) -> Result<(), AttachError> {
        if self.is_cancelled() {
            Err(AttachError::Interrupted)
        } else {
            Ok(())
        }
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        let is_set = |flag: &AtomicBool| flag.load(Ordering::Relaxed);
        self.cancelled.into_iter().chain(self.failed).any(is_set)
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
