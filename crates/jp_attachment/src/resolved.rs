use jp_resource::{BlobRef, Resource};

use crate::{AttachError, SpecialFile};

/// The result of resolving declarations.
///
/// Resources, declarations and notices other than [`Notice::Skipped`] hold no path of the machine,
/// except the workspace root in `file:` URIs.
#[derive(Debug, Default)]
pub struct Resolved {
    /// Resources in declared order, those of one declaration sorted by the bytes of their path.
    /// Each canonical URI occurs once.
    pub resources: Vec<Resource<BlobRef>>,
    /// The resources of each declaration, in declared order. Excludes and skipped declarations have
    /// no entry.
    pub delivered: Vec<Delivered>,
    /// Warnings for the user.
    pub notices: Vec<Notice>,
    /// The number and size of the resources.
    pub totals: Totals,
}

/// The resources of one declaration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivered {
    /// The index of the declaration.
    pub declared: usize,
    /// The stored form. A directory or glob outside the workspace becomes one for each file.
    pub declaration: String,
    /// Indexes of the resources. A file of two declarations is in both.
    pub resources: Vec<usize>,
}

/// The number and size of resolved resources.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    /// The number of resources.
    pub files: usize,
    /// Their length in bytes.
    pub bytes: u64,
    /// The number of files that the store knew, so that they were not read.
    pub known: usize,
}

/// A warning about something that the user may not expect. A `name` is the name of a resource.
#[derive(Debug, thiserror::Error)]
pub enum Notice {
    /// A link inside the workspace, or inside the attached directory, leads out of it.
    #[error(
        "{name:?} points outside the workspace and is attached as {}",
        uri.as_deref().unwrap_or("external files")
    )]
    LeavesWorkspace {
        /// The link.
        name: String,
        /// The URI of the target; `None` for a directory.
        uri: Option<String>,
    },
    /// A link points outside the workspace and was left out, because its declaration is not trusted.
    #[error(
        "{name:?} points outside the workspace and was left out, because you did not attach it yourself"
    )]
    LeftOut {
        /// The link.
        name: String,
    },
    /// A link to a directory was not followed.
    #[error("{name:?} is a link to a directory and was not followed")]
    DirectoryLink {
        /// The link.
        name: String,
    },
    /// A link to an ignored file was left out.
    #[error(
        "{name:?} is a link to an ignored file and was left out; name it explicitly to attach it"
    )]
    IgnoredLink {
        /// The link.
        name: String,
    },
    /// A link into a directory that no walk enters was left out.
    #[error(
        "{name:?} is a link into {directory:?} and was left out; name it explicitly to attach it"
    )]
    ClosedLink {
        /// The link.
        name: String,
        /// The name of the directory.
        directory: String,
    },
    /// The target of a link does not exist.
    #[error("{name:?} is a broken link and was left out")]
    BrokenLink {
        /// The link.
        name: String,
    },
    /// A special file was left out.
    #[error("{name:?} is a {kind} and was left out")]
    Special {
        /// Its name.
        name: String,
        /// Its kind.
        kind: SpecialFile,
    },
    /// An explicitly named file matches an exclude pattern and was left out.
    #[error("{name:?} is excluded and was left out")]
    Excluded {
        /// The file.
        name: String,
    },
    /// A command succeeded and printed nothing. It is attached as an empty text.
    #[error("{name:?} printed nothing")]
    EmptyOutput {
        /// The command.
        name: String,
    },
    /// A command failed. Its output is attached with the exit status.
    #[error("{name:?} ended with exit status {status}; its output is attached with the status")]
    ExitStatus {
        /// The command.
        name: String,
        /// Its exit status.
        status: i32,
    },
    /// A process that a command started held its output open after the command's end. Later output
    /// is not attached.
    #[error(
        "{name:?} left a process that held its output open; output after half a second was left out"
    )]
    HeldOutput {
        /// The command.
        name: String,
    },
    /// A file of a directory or glob looks like it holds secrets, by its name or because it is a
    /// private key, and was left out.
    #[error("{name:?} seems to contain secrets and was left out; name it explicitly to attach it")]
    SecretFile {
        /// The file.
        name: String,
    },
    /// A text looks like it holds a secret and is attached.
    #[error("{name:?} line {line} seems to contain {kind}")]
    Secret {
        /// The file or resource.
        name: String,
        /// The kind of secret, with an article.
        kind: &'static str,
        /// The line, counted from 1.
        line: usize,
    },
    /// A page declares no charset and is not UTF-8.
    #[error("{name:?} declares no charset and is not UTF-8; it is read as {charset}")]
    GuessedCharset {
        /// The page.
        name: String,
        /// The charset that it was read as.
        charset: String,
    },
    /// A text has bytes that are invalid in its charset.
    #[error("{name:?} has bytes that are invalid in {charset}; the model sees � in their place")]
    Garbled {
        /// The resource.
        name: String,
        /// The charset.
        charset: String,
    },
    /// A page is declared as text but is not, or its charset is unknown.
    #[error(
        "{name:?} is declared as {mime_type} but is not readable text; it is attached as binary"
    )]
    NotText {
        /// The page.
        name: String,
        /// The declared type.
        mime_type: String,
    },
    /// An HTML page shows no text unless its scripts run.
    #[error("{name:?} shows no text without its scripts; its HTML is attached unchanged")]
    EmptyPage {
        /// The page.
        name: String,
    },
    /// An HTML page was not converted to Markdown: that takes too long, gives too much or would
    /// lose some of it.
    #[error(
        "{name:?} is too large or too malformed to convert to Markdown; its HTML is attached unchanged"
    )]
    NotConverted {
        /// The page.
        name: String,
    },
    /// A part of an MCP server's answer can't be read and was left out.
    #[error("{name:?} is attached in part: {reason}")]
    PassedOver {
        /// The input.
        name: String,
        /// The part, and why it was left out.
        reason: String,
    },
    /// An unavailable declaration was left out because of
    /// [`Unavailable::Skip`](crate::Unavailable::Skip).
    #[error("skipped: failed to {0}")]
    Skipped(AttachError),
}
