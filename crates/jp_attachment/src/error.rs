use std::{error::Error, fmt, io, path::PathBuf};

use jp_process::ProcessError;
use jp_resource::uri::UriError;

use crate::{BearError, ClipboardError, HttpError, McpError, Scheme};

/// Why something could not be attached. Each message finishes "failed to …".
///
/// Messages may hold absolute paths: they are for the terminal of the person who attached, and never
/// for anything that is stored.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// The input is an empty text.
    #[error("attach an empty name")]
    Empty,
    /// Nothing is there.
    #[error("attach {input:?}: {path:?} does not exist")]
    Missing {
        /// What was asked for.
        input: String,
        /// Where it was looked for.
        path: PathBuf,
    },
    /// The file system refused.
    #[error("attach {input:?}: {action} {path:?}")]
    Io {
        /// What was asked for.
        input: String,
        /// What was tried, as a verb.
        action: &'static str,
        /// On which file or directory.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// The path is neither a file nor a directory.
    #[error("attach {input:?}: {path:?} is a {kind}, not a file or directory")]
    Special {
        /// What was asked for.
        input: String,
        /// The path.
        path: PathBuf,
        /// What it is.
        kind: SpecialFile,
    },
    /// A name can't be part of a URI.
    #[error("attach {input:?}: the name of {path:?} is not UTF-8; rename it or exclude it")]
    NotUtf8 {
        /// What was asked for.
        input: String,
        /// The path.
        path: PathBuf,
    },
    /// `~` was used and no home directory is known.
    #[error("attach {input:?}: there is no home directory that `~` could stand for")]
    NoHome {
        /// What was asked for.
        input: String,
    },
    /// A stored URI names a snapshot.
    #[error(
        "attach {input:?}: it names a snapshot, which can't be read again; attach what it is of once more"
    )]
    Snapshot {
        /// What was asked for.
        input: String,
    },
    /// There is no handler for the scheme.
    #[error(
        "attach {input:?}: `{scheme}` is not supported; what can be attached is {}",
        Scheme::supported()
    )]
    Unsupported {
        /// What was asked for.
        input: String,
        /// The scheme, or what stands for it.
        scheme: String,
    },
    /// A URL does not decode.
    #[error("attach {input:?}")]
    Url {
        /// What was asked for.
        input: String,
        /// In what way it is malformed.
        source: UriError,
    },
    /// A glob is malformed.
    #[error("attach {input:?}: {reason}")]
    InvalidGlob {
        /// What was asked for.
        input: String,
        /// In what way it is malformed.
        reason: String,
    },
    /// A glob matches no file.
    #[error("attach {input:?}: no file in {directory:?} matches")]
    NoMatch {
        /// What was asked for.
        input: String,
        /// The directory that was searched.
        directory: PathBuf,
    },
    /// A directory holds no file at any depth.
    #[error("attach {input:?}: {directory:?} holds no file")]
    EmptyDirectory {
        /// What was asked for.
        input: String,
        /// The directory.
        directory: PathBuf,
    },
    /// Ignore rules leave nothing.
    #[error(
        "attach {input:?}: everything is ignored, {example:?} by {rule}; name a file outright to attach it"
    )]
    AllIgnored {
        /// What was asked for.
        input: String,
        /// Something that would have been attached.
        example: PathBuf,
        /// The rule that ignores it.
        rule: IgnoreRule,
    },
    /// All that a directory or glob gives looks like it holds secrets.
    #[error(
        "attach {input:?}: nothing is left but what looks like it holds secrets, {example:?} for one; name a file outright to attach it"
    )]
    AllSecret {
        /// What was asked for.
        input: String,
        /// A file that was left out, as a notice names it.
        example: String,
    },
    /// All that a directory or glob gives are links to what is never entered: a version control system's, or jp's own.
    #[error(
        "attach {input:?}: nothing is left but links into directories that are entered only by name, {example:?} for one; name a file outright to attach it"
    )]
    AllClosed {
        /// What was asked for.
        input: String,
        /// Such a link, as a notice names it.
        example: String,
    },
    /// A text looks like it holds a secret, and [`Secrets::Refuse`](crate::Secrets::Refuse) refuses it.
    #[error(
        "attach {input:?}: {name:?} line {line} holds what looks like {kind}, and conversation.attachment.secrets refuses it"
    )]
    Secret {
        /// What was asked for.
        input: String,
        /// The name of the file or resource.
        name: String,
        /// What it looks like, with an article.
        kind: &'static str,
        /// Where, counted from 1.
        line: usize,
    },
    /// Exclude patterns leave nothing.
    #[error("attach {input:?}: everything in {directory:?} is excluded")]
    AllExcluded {
        /// What was asked for.
        input: String,
        /// The directory.
        directory: PathBuf,
    },
    /// There is something to exclude and nothing to exclude it from.
    #[error("attach nothing but excludes: {0:?} has nothing to be excluded from")]
    OnlyExcludes(String),
    /// A file is larger than allowed.
    #[error(
        "attach {input:?}: {path:?} has {size} bytes, more than the {limit} that conversation.attachment.max_bytes allows"
    )]
    TooLarge {
        /// What was asked for.
        input: String,
        /// The file.
        path: PathBuf,
        /// Its length in bytes.
        size: u64,
        /// The most a file may have.
        limit: u64,
    },
    /// There are more files than allowed.
    #[error(
        "attach {input:?}: with it there are more than the {limit} files that conversation.attachment.max_files allows"
    )]
    TooManyFiles {
        /// What was asked for when the limit was passed.
        input: String,
        /// The most files that may be attached at once.
        limit: usize,
    },
    /// The files are together larger than allowed.
    #[error(
        "attach {files} files of {size} bytes in all, more than the {limit} that conversation.attachment.max_total_bytes allows"
    )]
    TooManyBytes {
        /// How many files there are.
        files: usize,
        /// Their length in bytes.
        size: u64,
        /// The most they may have.
        limit: u64,
    },
    /// A file was written to each time it was read.
    #[error("attach {input:?}: {path:?} keeps changing while it is read")]
    Changing {
        /// What was asked for.
        input: String,
        /// The file.
        path: PathBuf,
    },
    /// A file gives more or less than the size it has, and nobody writes to it: the system makes it up as it is read.
    #[error("attach {input:?}: what {path:?} holds is made up as it is read")]
    MadeUp {
        /// What was asked for.
        input: String,
        /// The file.
        path: PathBuf,
    },
    /// A URL does not say what it has to.
    #[error("attach {input:?}: {reason}")]
    Malformed {
        /// What was asked for.
        input: String,
        /// In what way it is malformed.
        reason: String,
    },
    /// Content that is not a file's is longer than allowed.
    #[error(
        "attach {input:?}: it is longer than the {limit} bytes that conversation.attachment.max_bytes allows"
    )]
    TooLong {
        /// What was asked for.
        input: String,
        /// The most it may have.
        limit: u64,
    },
    /// A page could not be had.
    #[error("attach {input:?}")]
    Http {
        /// What was asked for, without credentials.
        input: String,
        /// Why it failed.
        source: Box<HttpError>,
    },
    /// Standard input can't be read.
    #[error("attach stdin")]
    Stdin {
        /// Why it failed.
        source: io::Error,
    },
    /// Nothing is piped in.
    #[error("attach stdin: there is nothing in it")]
    EmptyStdin,
    /// There is no output of a command.
    #[error("attach {input:?}{}", spaced_hint(source))]
    Command {
        /// What was asked for.
        input: String,
        /// Why there is none.
        source: ProcessError,
    },
    /// The clipboard can't be read.
    #[error("attach the clipboard")]
    Clipboard {
        /// Why it can't.
        source: ClipboardError,
    },
    /// A resource of an MCP server can't be had.
    #[error("attach {input:?} of the MCP server {server:?}")]
    Mcp {
        /// What was asked for.
        input: String,
        /// The name of the server.
        server: String,
        /// Why it can't.
        source: McpError,
    },
    /// Notes of the Bear app can't be had.
    #[error("attach {input:?}")]
    Bear {
        /// What was asked for.
        input: String,
        /// Why they can't.
        source: BearError,
    },
    /// The person interrupted.
    #[error("attach anything: interrupted")]
    Interrupted,
    /// The content could not be kept.
    #[error("attach {input:?}: keep the content of {of:?}")]
    Store {
        /// What was asked for.
        input: String,
        /// The file or URI.
        of: String,
        /// Why it failed.
        source: Box<dyn Error + Send + Sync>,
    },
}

/// What a path may be that is neither a file nor a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpecialFile {
    /// A FIFO.
    Pipe,
    /// A Unix domain socket.
    Socket,
    /// A block or character device.
    Device,
    /// Anything else.
    Other,
}

/// A line of an ignore file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IgnoreRule {
    /// The ignore file, from the workspace root where it is inside.
    pub file: PathBuf,
    /// The line.
    pub pattern: String,
}

impl AttachError {
    /// Returns whether the error is about one thing that can't be had, so that a person may choose to
    /// go on without it: it is missing, unreadable, too large, a command that fails, or looks like a secret.
    #[must_use]
    pub fn is_unavailable(&self) -> bool {
        match self {
            Self::Missing { .. }
            | Self::Io { .. }
            | Self::Special { .. }
            | Self::NotUtf8 { .. }
            | Self::NoMatch { .. }
            | Self::EmptyDirectory { .. }
            | Self::AllIgnored { .. }
            | Self::AllSecret { .. }
            | Self::AllClosed { .. }
            | Self::Secret { .. }
            | Self::AllExcluded { .. }
            | Self::TooLarge { .. }
            | Self::TooLong { .. }
            | Self::Http { .. }
            | Self::Stdin { .. }
            | Self::EmptyStdin
            | Self::Command { .. }
            | Self::Clipboard { .. }
            | Self::Mcp { .. }
            | Self::Bear { .. }
            | Self::Changing { .. }
            | Self::MadeUp { .. } => true,
            Self::Empty
            | Self::NoHome { .. }
            | Self::Snapshot { .. }
            | Self::Malformed { .. }
            | Self::Interrupted
            | Self::Unsupported { .. }
            | Self::Url { .. }
            | Self::InvalidGlob { .. }
            | Self::OnlyExcludes(_)
            | Self::TooManyFiles { .. }
            | Self::TooManyBytes { .. }
            | Self::Store { .. } => false,
        }
    }

    /// Names what `action` on `path` failed with; what is not there is [`Self::Missing`].
    pub(crate) fn io(
        input: &str,
        action: &'static str,
        path: impl Into<PathBuf>,
        source: io::Error,
    ) -> Self {
        let (input, path) = (input.to_owned(), path.into());
        match source.kind() {
            io::ErrorKind::NotFound => Self::Missing { input, path },
            _ => Self::Io {
                input,
                action,
                path,
                source,
            },
        }
    }
}

/// Explains a program with a space in its name.
fn spaced_hint(error: &ProcessError) -> &'static str {
    match error {
        ProcessError::NotFound { program } if program.contains(' ') => {
            " (a cmd:// URL has its arguments as `?arg=…&arg=…`)"
        }
        _ => "",
    }
}

impl fmt::Display for SpecialFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pipe => "pipe",
            Self::Socket => "socket",
            Self::Device => "device",
            Self::Other => "special file",
        })
    }
}

impl fmt::Display for IgnoreRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` of {:?}", self.pattern.escape_debug(), self.file)
    }
}
