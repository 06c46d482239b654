use std::fmt;

use jp_resource::{BlobRef, Resource};

use crate::{AttachError, SpecialFile};

/// What declarations gave.
///
/// Resources, declarations and notices but [`Notice::Skipped`] hold no path of the machine, save that
/// of the workspace root in `file:` URIs.
#[derive(Debug, Default)]
pub struct Resolved {
    /// Resources in declared order, those of one declaration sorted by the bytes of their path; each
    /// canonical URI once.
    pub resources: Vec<Resource<BlobRef>>,
    /// What each declaration gave, in declared order; without those that were skipped, and excludes.
    pub delivered: Vec<Delivered>,
    /// What the person should know.
    pub notices: Vec<Notice>,
    /// How much it was.
    pub totals: Totals,
}

/// Which resources a declaration gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivered {
    /// Which of the declarations it is, counted from 0.
    pub declared: usize,
    /// The stored form. A directory or glob outside the workspace becomes one for each file.
    pub declaration: String,
    /// Indexes of the resources. A file that two declarations give is in both.
    pub resources: Vec<usize>,
}

/// How much was resolved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    /// Number of resources.
    pub files: usize,
    /// Their length in bytes.
    pub bytes: u64,
    /// How many of them were known and so not read.
    pub known: usize,
}

/// Something that was not done as a person might expect. `name`s are as those of resources.
#[derive(Debug)]
pub enum Notice {
    /// A link inside the workspace, or inside the attached directory, leads out of it.
    LeavesWorkspace {
        /// The link.
        name: String,
        /// What its target is attached as; none for a directory.
        uri: Option<String>,
    },
    /// A link leads out of the workspace and was left out, as who declared it is not trusted.
    LeftOut {
        /// The link.
        name: String,
    },
    /// A link to a directory was not followed.
    DirectoryLink {
        /// The link.
        name: String,
    },
    /// A link leads to a file that is ignored, and was left out as that is.
    IgnoredLink {
        /// The link.
        name: String,
    },
    /// A link leads into a directory that no walk enters, and was left out.
    ClosedLink {
        /// The link.
        name: String,
        /// The directory's name.
        directory: String,
    },
    /// A link leads nowhere.
    BrokenLink {
        /// The link.
        name: String,
    },
    /// What is neither file nor directory was left out.
    Special {
        /// Its name.
        name: String,
        /// What it is.
        kind: SpecialFile,
    },
    /// A file that was named outright matches an exclude pattern and was left out.
    Excluded {
        /// The file.
        name: String,
    },
    /// A command ended well and printed nothing; it is attached as an empty text.
    EmptyOutput {
        /// The command.
        name: String,
    },
    /// A command says that it failed; what it printed is attached with that.
    ExitStatus {
        /// The command.
        name: String,
        /// Its exit status.
        status: i32,
    },
    /// Something that a command started held its output open after its end; what came later is not
    /// attached.
    HeldOutput {
        /// The command.
        name: String,
    },
    /// A file that a directory or glob gave looks like it holds secrets, by its name or as it is a private
    /// key, and was left out.
    SecretFile {
        /// The file.
        name: String,
    },
    /// A text looks like it holds a secret and is attached.
    Secret {
        /// The file or resource.
        name: String,
        /// What it looks like, with an article.
        kind: &'static str,
        /// Where, counted from 1.
        line: usize,
    },
    /// A page does not say its charset and is not UTF-8.
    GuessedCharset {
        /// The page.
        name: String,
        /// What it was read as.
        charset: String,
    },
    /// Text has bytes that mean nothing in its charset.
    Garbled {
        /// What holds it.
        name: String,
        /// The charset.
        charset: String,
    },
    /// What is said to be text is not, or is in a charset that nobody knows.
    NotText {
        /// The page.
        name: String,
        /// What it is said to be.
        mime_type: String,
    },
    /// A page of HTML shows nothing unless its scripts run.
    EmptyPage {
        /// The page.
        name: String,
    },
    /// A page of HTML is not made Markdown: that takes too long, gives too much or would lose some of it.
    NotConverted {
        /// The page.
        name: String,
    },
    /// A part of what an MCP server gave can't be read and was left out.
    PassedOver {
        /// What was asked for.
        name: String,
        /// What was left out, and why.
        reason: String,
    },
    /// Something can't be had and was left out, as [`Unavailable::Skip`](crate::Unavailable::Skip) says.
    Skipped(AttachError),
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LeavesWorkspace {
                name,
                uri: Some(uri),
            } => {
                write!(
                    f,
                    "{name:?} leads out of the workspace and is attached as {uri}"
                )
            }
            Self::LeavesWorkspace { name, uri: None } => {
                write!(
                    f,
                    "{name:?} leads out of the workspace; its files are attached as external ones"
                )
            }
            Self::LeftOut { name } => write!(
                f,
                "{name:?} leads out of the workspace and was left out: what attaches it came with the workspace"
            ),
            Self::DirectoryLink { name } => {
                write!(f, "{name:?} is a link to a directory and was not followed")
            }
            Self::IgnoredLink { name } => write!(
                f,
                "{name:?} is a link to a file that is ignored and was left out; name it outright to attach it"
            ),
            Self::ClosedLink { name, directory } => write!(
                f,
                "{name:?} is a link to what belongs to {directory:?} and was left out; name it outright to attach it"
            ),
            Self::BrokenLink { name } => {
                write!(f, "{name:?} is a link that leads nowhere and was left out")
            }
            Self::Special { name, kind } => write!(f, "{name:?} is a {kind} and was left out"),
            Self::Excluded { name } => write!(f, "{name:?} is excluded and was left out"),
            Self::EmptyOutput { name } => write!(f, "{name:?} printed nothing"),
            Self::ExitStatus { name, status } => {
                write!(
                    f,
                    "{name:?} ended with exit status {status}; what it printed is attached with that"
                )
            }
            Self::HeldOutput { name } => {
                write!(
                    f,
                    "{name:?} left something that held its output open; what that printed after half a second is left out"
                )
            }
            Self::SecretFile { name } => write!(
                f,
                "{name:?} looks like it holds secrets and was left out; name it outright to attach it"
            ),
            Self::Secret { name, kind, line } => {
                write!(f, "{name:?} line {line} holds what looks like {kind}")
            }
            Self::GuessedCharset { name, charset } => {
                write!(
                    f,
                    "{name:?} does not say its charset and is not UTF-8; it is read as {charset}"
                )
            }
            Self::Garbled { name, charset } => {
                write!(
                    f,
                    "{name:?} has bytes that are not {charset}; they are shown to the model as �"
                )
            }
            Self::NotText { name, mime_type } => {
                write!(
                    f,
                    "{name:?} is said to be {mime_type} and is not text that can be read; it is attached as binary"
                )
            }
            Self::EmptyPage { name } => {
                write!(
                    f,
                    "{name:?} shows no text by itself; its HTML is attached as it is"
                )
            }
            Self::NotConverted { name } => {
                write!(
                    f,
                    "{name:?} is too large or too malformed to be made Markdown; its HTML is attached as it is"
                )
            }
            Self::PassedOver { name, reason } => {
                write!(f, "{name:?} is attached without a part of it: {reason}")
            }
            Self::Skipped(error) => write!(f, "skipped: failed to {error}"),
        }
    }
}
