use std::{error::Error, fmt, io, path::PathBuf};

use jp_process::ProcessError;
use jp_resource::uri::UriError;

use crate::{BearError, ClipboardError, HttpError, McpError, scheme};

/// An error of parsing or resolving a declaration. Each message finishes "failed to …".
///
/// Messages may hold absolute paths, so they are only for the user's terminal and must not be
/// stored.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// The input is an empty text.
    #[error("attach an empty name")]
    Empty,
    /// The file or directory does not exist.
    #[error("attach {input:?}: {path:?} does not exist")]
    Missing {
        /// The input.
        input: String,
        /// The path.
        path: PathBuf,
    },
    /// An operation of the file system failed.
    #[error("attach {input:?}: {action} {path:?}")]
    Io {
        /// The input.
        input: String,
        /// The operation, as a verb.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The path is neither a file nor a directory.
    #[error("attach {input:?}: {path:?} is a {kind}, not a file or directory")]
    Special {
        /// The input.
        input: String,
        /// The path.
        path: PathBuf,
        /// Its kind.
        kind: SpecialFile,
    },
    /// A name is not UTF-8 and so can't be part of a URI.
    #[error("attach {input:?}: the name of {path:?} is not UTF-8; rename it or exclude it")]
    NotUtf8 {
        /// The input.
        input: String,
        /// The path.
        path: PathBuf,
    },
    /// `~` was used and no home directory is known.
    #[error("attach {input:?}: the home directory that `~` stands for is unknown")]
    NoHome {
        /// The input.
        input: String,
    },
    /// The URI names a snapshot, whose source is unknown.
    #[error("attach {input:?}: a snapshot can't be read again; attach its source again")]
    Snapshot {
        /// The input.
        input: String,
    },
    /// There is no handler for the scheme.
    #[error(
        "attach {input:?}: `{scheme}` is not supported; jp attaches {}",
        scheme::ATTACHABLE
    )]
    Unsupported {
        /// The input.
        input: String,
        /// The scheme as the user writes it.
        scheme: String,
    },
    /// A URL can't be decoded.
    #[error("attach {input:?}")]
    Url {
        /// The input.
        input: String,
        /// The reason.
        source: UriError,
    },
    /// A glob is malformed.
    #[error("attach {input:?}: {reason}")]
    InvalidGlob {
        /// The input.
        input: String,
        /// The reason.
        reason: String,
    },
    /// A glob matches no file.
    #[error("attach {input:?}: no file in {directory:?} matches")]
    NoMatch {
        /// The input.
        input: String,
        /// The directory that was searched.
        directory: PathBuf,
    },
    /// A directory holds no file at any depth.
    #[error("attach {input:?}: {directory:?} contains no files")]
    EmptyDirectory {
        /// The input.
        input: String,
        /// The directory.
        directory: PathBuf,
    },
    /// Ignore rules leave out all files.
    #[error(
        "attach {input:?}: all files are ignored, for example {example:?} by {rule}; name a file explicitly to attach it"
    )]
    AllIgnored {
        /// The input.
        input: String,
        /// A file that would have been attached.
        example: PathBuf,
        /// The rule that ignores it.
        rule: IgnoreRule,
    },
    /// All files of a directory or glob look like they hold secrets.
    #[error(
        "attach {input:?}: every file seems to contain secrets, for example {example:?}; name a file explicitly to attach it"
    )]
    AllSecret {
        /// The input.
        input: String,
        /// The name of such a file.
        example: String,
    },
    /// All matches are links into directories that no walk enters, such as `.git` and `.jp`.
    #[error(
        "attach {input:?}: every match is a link into a directory that jp doesn't enter, for example {example:?}; name a file explicitly to attach it"
    )]
    AllClosed {
        /// The input.
        input: String,
        /// The name of such a link.
        example: String,
    },
    /// A text looks like it holds a secret, and [`Secrets::Refuse`](crate::Secrets::Refuse) refuses
    /// it.
    #[error(
        "attach {input:?}: {name:?} line {line} seems to contain {kind}, and conversation.attachment.secrets refuses it"
    )]
    Secret {
        /// The input.
        input: String,
        /// The name of the file or resource.
        name: String,
        /// The kind of secret, with an article.
        kind: &'static str,
        /// The line, counted from 1.
        line: usize,
    },
    /// Exclude patterns leave out all files.
    #[error("attach {input:?}: everything in {directory:?} is excluded")]
    AllExcluded {
        /// The input.
        input: String,
        /// The directory.
        directory: PathBuf,
    },
    /// There are excludes, but no files to exclude from.
    #[error("attach {0:?}: it only excludes files, and nothing else is attached with it")]
    OnlyExcludes(String),
    /// A file is larger than allowed.
    #[error(
        "attach {input:?}: {path:?} has {size} bytes, more than the {limit} that conversation.attachment.max_bytes allows"
    )]
    TooLarge {
        /// The input.
        input: String,
        /// The file.
        path: PathBuf,
        /// Its length in bytes.
        size: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// There are more files than allowed.
    #[error(
        "attach {input:?}: there are more than the {limit} files that conversation.attachment.max_files allows"
    )]
    TooManyFiles {
        /// The input that exceeds the limit.
        input: String,
        /// The most files that can be attached at once.
        limit: usize,
    },
    /// The files are together larger than allowed.
    #[error(
        "attach {files} files of {size} bytes in all, more than the {limit} that conversation.attachment.max_total_bytes allows"
    )]
    TooManyBytes {
        /// The number of files.
        files: usize,
        /// Their length in bytes.
        size: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// A file changed during each attempt to read it.
    #[error("attach {input:?}: {path:?} keeps changing while it is read")]
    Changing {
        /// The input.
        input: String,
        /// The file.
        path: PathBuf,
    },
    /// A file has another length than its metadata says although it does not change, such as one in
    /// `/proc`: the system generates the content while it is read.
    #[error("attach {input:?}: the system generates the content of {path:?} while it is read")]
    MadeUp {
        /// The input.
        input: String,
        /// The file.
        path: PathBuf,
    },
    /// A URL or command line has a wrong form.
    #[error("attach {input:?}: {reason}")]
    Malformed {
        /// The input.
        input: String,
        /// The reason.
        reason: String,
    },
    /// Content from another source than a file is longer than allowed.
    #[error(
        "attach {input:?}: it is longer than the {limit} bytes that conversation.attachment.max_bytes allows"
    )]
    TooLong {
        /// The input.
        input: String,
        /// The limit in bytes.
        limit: u64,
    },
    /// A page could not be fetched.
    #[error("attach {input:?}")]
    Http {
        /// The input, without credentials.
        input: String,
        /// The cause.
        source: Box<HttpError>,
    },
    /// Standard input can't be read.
    #[error("attach stdin")]
    Stdin {
        /// The cause.
        source: io::Error,
    },
    /// Standard input is empty.
    #[error("attach stdin: it is empty")]
    EmptyStdin,
    /// A command could not be run to its end.
    #[error("attach {input:?}{}", spaced_hint(source))]
    Command {
        /// The input.
        input: String,
        /// The cause.
        source: ProcessError,
    },
    /// The clipboard can't be read.
    #[error("attach the clipboard")]
    Clipboard {
        /// The cause.
        source: ClipboardError,
    },
    /// A resource of an MCP server is unavailable.
    #[error("attach {input:?} from the MCP server {server:?}")]
    Mcp {
        /// The input.
        input: String,
        /// The name of the server.
        server: String,
        /// The cause.
        source: McpError,
    },
    /// Notes of the Bear app are unavailable.
    #[error("attach {input:?}")]
    Bear {
        /// The input.
        input: String,
        /// The cause.
        source: BearError,
    },
    /// The user interrupted the command.
    #[error("attach: interrupted")]
    Interrupted,
    /// The content could not be stored.
    #[error("attach {input:?}: store the content of {of:?}")]
    Store {
        /// The input.
        input: String,
        /// The file or URI.
        of: String,
        /// The cause.
        source: Box<dyn Error + Send + Sync>,
    },
}

/// A kind of file that can't be attached.
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
    /// The ignore file, relative to the workspace root if it is inside.
    pub file: PathBuf,
    /// The text of the line.
    pub pattern: String,
}

impl AttachError {
    /// Returns whether the error affects only one declaration, so that the user can continue
    /// without it. It may be missing, unreadable or too large, a failing command, or look like a
    /// secret.
    ///
    /// Wrong input is not unavailable: the user has to correct it. Neither are limits of the whole
    /// command.
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

    /// Returns the error of an `input` with a wrong form.
    pub(crate) fn invalid(input: &str, reason: impl Into<String>) -> Self {
        Self::Malformed {
            input: input.to_owned(),
            reason: reason.into(),
        }
    }

    /// Returns the error of a failed `action` on `path`: [`Self::Missing`] if nothing is there.
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

/// Returns the hint for a program that is not found and whose name has a space in it.
fn spaced_hint(error: &ProcessError) -> &'static str {
    match error {
        ProcessError::NotFound { program } if program.contains(' ') => {
            " (write the arguments of a cmd:// URL as `?arg=…&arg=…`)"
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
