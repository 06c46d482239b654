//! The notices of a session: values, which the front end words.

mod kind;

use std::{fmt, time::Duration};

use jp_llm::{Note, RetryNotice};
use serde::{Serialize, Serializer};

/// The importance of a notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// The user should know it.
    Warning,
    /// It reports progress or a state.
    Status,
    /// It is shown with `--verbose` only.
    Detail,
}

/// A message of a session to the user.
///
/// The fields are values, which the front end words. Some fields are texts: messages of servers, of the
/// system and of other crates, and a `reason` or `hint` that a
/// [`SessionError`](crate::SessionError) contains as well. In JSON a notice is an object whose `kind`
/// is [`Notice::kind`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Notice {
    // The conversation and what jp stores.
    /// Another process has the conversation locked.
    WaitingForLock {
        /// The conversation's id.
        conversation: String,
        /// The id of the other process, if it is known.
        process: Option<u32>,
    },
    /// A conversation's files are damaged in a way that does not prevent reading it.
    ConversationDamaged {
        /// The damage, in the words of the store.
        warning: String,
    },
    /// jp could not remember which conversation is the current one.
    CurrentNotSaved {
        /// The reason.
        error: String,
    },
    /// jp could not remember approvals.
    ApprovalsNotSaved {
        /// The file that stores approvals.
        path: String,
        /// The reason.
        error: String,
    },
    /// jp could not save the cache of file states.
    FileStatesNotSaved {
        /// The reason.
        error: String,
    },

    // The configuration.
    /// A key has no effect because jp doesn't know it.
    UnknownKey {
        /// The key.
        key: String,
        /// The layer that sets it, without the value.
        layer: String,
    },
    /// A setting has no effect on the model.
    SettingIgnored(IgnoredSetting),

    // The model and its provider.
    /// No usable model is configured. An explained query continues without.
    NoModel {
        /// The reason.
        reason: String,
    },
    /// The workspace chose the server that receives the conversation.
    SentByWorkspace {
        /// The workspace's configuration file.
        path: String,
        /// The base URL of the server.
        base_url: String,
    },
    /// A provider did not report the facts about its model.
    FactsUnknown {
        /// The provider.
        provider: String,
        /// The error, without credentials.
        error: String,
        /// True if jp uses its earlier answer. If not, it uses the built-in facts.
        is_remembered: bool,
    },
    /// A model accepts something that it did not accept before, or the other way round.
    ModelChanged {
        /// `provider/name`.
        model: String,
        /// The kind of content or the feature: `images`, `tools`.
        what: &'static str,
        /// True if the model accepts it now.
        is_taken: bool,
    },
    /// jp could not cache the facts that a provider reported.
    FactsNotSaved {
        /// The reason.
        error: String,
    },
    /// jp asks the model for a summary.
    AskingForSummary {
        /// `provider/name`.
        model: String,
    },
    /// The model has not answered yet.
    ModelSilent {
        /// `provider/name`.
        model: String,
        /// True if the message is stored.
        is_kept: bool,
    },
    /// A request failed and is sent again.
    Retry {
        /// The failure, worded to follow "failed to".
        error: String,
        /// The number of the retry, from 1.
        attempt: u32,
        /// The time that jp waits before it.
        #[serde(rename = "delay_secs", serialize_with = "write_seconds")]
        delay: Duration,
    },

    // The request.
    /// The request has more tokens than the model accepts.
    RequestTooLong {
        /// The estimated tokens of the request.
        tokens: u64,
        /// The model's limit in tokens.
        limit: u64,
    },
    /// The model is not shown a part of the request.
    NotShown {
        /// The part and the reason.
        note: Note,
    },
    /// The model is not shown further parts of the request.
    MoreNotShown {
        /// The number of further parts.
        count: usize,
    },
    /// The provider's cache is lost, so superseded snapshots are left out from now on.
    SupersededLeftOut {
        /// The number of snapshots.
        snapshots: usize,
    },

    // The turn.
    /// A warning of the turn.
    Turn {
        /// The message, unchanged.
        text: String,
    },
    /// A detail of the turn.
    TurnDetail {
        /// The message, unchanged.
        text: String,
    },

    // Tools.
    /// A conversation's history enables a tool that the user did not enable, so it stays off.
    ToolOffByHistory {
        /// The tool.
        tool: String,
    },
    /// The workspace lets a tool run without a prompt, and no one can be asked to approve that.
    ToolNeedsApproval {
        /// The tool.
        tool: String,
    },
    /// A tool belongs to a server that is not configured.
    ToolWithoutServer {
        /// The key that names the server.
        key: String,
        /// The layer that sets it.
        layer: String,
        /// The server.
        server: String,
    },
    /// The tools of servers have changed.
    ToolsChanged {
        /// The servers.
        servers: Vec<String>,
        /// The names of new tools.
        new: Vec<String>,
    },

    // The tools of one MCP server.
    /// A server's list of tools has a fault.
    ServerListFault {
        /// The server.
        server: String,
        /// The fault.
        fault: String,
    },
    /// The configuration names a tool that the server doesn't have.
    ServerToolMissing {
        /// The server.
        server: String,
        /// The tool's name at the server.
        tool: String,
        /// The tool's name in the configuration.
        name: String,
    },
    /// A tool is not offered.
    ServerToolSkipped {
        /// The server.
        server: String,
        /// The tool's name at the server.
        tool: String,
        /// The reason.
        reason: String,
    },
    /// A tool is not offered because another one has its name.
    ServerToolNameTaken {
        /// The server.
        server: String,
        /// The tool's name at the server.
        tool: String,
        /// The name.
        name: String,
    },
    /// jp can't check all arguments of some tools.
    ServerToolsUnchecked {
        /// The server.
        server: String,
        /// The tools.
        tools: Vec<UncheckedTool>,
    },
    /// The configuration has settings for a tool that the server doesn't offer.
    ServerToolNotOffered {
        /// The server.
        server: String,
        /// The tool's name in the configuration.
        name: String,
    },
    /// A server has many tools, which cost tokens in each request.
    ManyServerTools {
        /// The server.
        server: String,
        /// The number of tools.
        count: usize,
    },
    /// There are further warnings about the tools of a server.
    MoreServerTools {
        /// The server.
        server: String,
        /// The number of further warnings.
        count: usize,
    },
    /// jp can't list a server's tools again and keeps the earlier list.
    ServerToolsKept {
        /// The reason.
        reason: String,
    },

    // MCP servers.
    /// A server failed and the command continues without it.
    ServerLeftOut {
        /// The failure.
        reason: String,
        /// The last lines that the server wrote to stderr.
        stderr: Vec<String>,
        /// Possible next steps.
        hints: Vec<String>,
    },
    /// A server needs the user's approval, and no one can be asked.
    ServerNeedsApproval {
        /// The server.
        server: String,
        /// The workspace's part in the server.
        reason: &'static str,
    },
    /// A server's token is sent without encryption.
    ServerTokenExposed {
        /// The server.
        server: String,
        /// The variable that holds the token.
        variable: String,
    },
    /// A server asks a question that jp can't pass on to the user now.
    ServerAsks {
        /// The server.
        server: String,
        /// The question, unchanged.
        message: String,
    },
    /// A log message of a server.
    ServerLog {
        /// The server.
        server: String,
        /// The message, unchanged.
        message: String,
    },

    // Attachments.
    /// A notice of the handler of an attachment.
    Attachment {
        /// Their words.
        text: String,
    },
    /// An attachment is not available and is skipped.
    AttachmentSkipped {
        /// The reason.
        reason: String,
        /// Possible next steps.
        hints: Vec<String>,
    },
    /// The user did not approve an attachment.
    AttachmentNotApproved {
        /// The attachment.
        what: String,
    },
    /// An attachment of the workspace or its history is outside the workspace.
    OutsideWorkspace {
        /// The declaration.
        declaration: String,
    },
    /// An exclude pattern is not stored because it is outside the workspace.
    ExcludeNotStored {
        /// The pattern as the user typed it.
        input: String,
    },
    /// The conversation has no snapshot of one of its attachments.
    SnapshotMissing {
        /// The declaration.
        declaration: String,
        /// The conversation's id, if the user named it.
        conversation: Option<String>,
    },
    /// The conversation's history has declarations of attachments that can't be read.
    UnreadableDeclarations {
        /// The declarations.
        declarations: Vec<UnreadableDeclaration>,
    },
    /// A template of a server was expanded.
    TemplateExpanded {
        /// The URI.
        uri: String,
    },

    // Changes of attached resources.
    /// jp can't check whether a resource has changed.
    ChangeUnknown {
        /// The resource or its declaration.
        name: String,
        /// The reason.
        reason: String,
        /// Possible next steps.
        hint: Option<&'static str>,
    },
    /// A resource has changed, and the next request says so.
    ResourceChanged {
        /// The resource.
        name: String,
        /// The change.
        change: ResourceChange,
    },
    /// Many resources have changed, and the next request says so.
    ResourcesChanged {
        /// The number of resources.
        count: usize,
        /// The first ones.
        first: Vec<String>,
    },
    /// More resources have changed than one request reports.
    MoreResourcesChanged {
        /// The number of further resources.
        count: usize,
        /// The number that one request reports at most.
        limit: usize,
    },
}

impl From<RetryNotice<'_>> for Notice {
    fn from(retry: RetryNotice<'_>) -> Self {
        Self::Retry {
            error: retry.describe_failure(),
            attempt: retry.attempt,
            delay: retry.delay,
        }
    }
}

/// A setting that has no effect.
///
/// Its [`Display`](fmt::Display) is the warning, because a
/// [`SessionError`](crate::SessionError) may have it as a hint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct IgnoredSetting {
    /// The key.
    pub key: String,
    /// The file that sets it.
    pub path: String,
    /// The reason.
    pub reason: IgnoreReason,
}

/// The reason why a setting has no effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum IgnoreReason {
    /// The workspace redirects a provider that it does not define.
    RedirectsProvider,
    /// The workspace chooses the key of a provider that it does not define.
    ChoosesKey,
    /// The workspace's provider is named like another one, except for the case of letters.
    ResemblesProvider {
        /// The other provider.
        provider: String,
    },
    /// An alias contains a `/`, so it reads as `PROVIDER/NAME`.
    AliasWithSlash,
}

impl fmt::Display for IgnoredSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, path, reason } = self;
        write!(f, "{key} in {path} is ignored: ")?;
        match reason {
            IgnoreReason::RedirectsProvider => {
                f.write_str("a workspace can't redirect a provider that it does not define")
            }
            IgnoreReason::ChoosesKey => f.write_str(
                "a workspace can't choose the key of a provider that it does not define",
            ),
            IgnoreReason::ResemblesProvider { provider } => write!(
                f,
                "its name differs from that of the provider `{provider}` only in case"
            ),
            IgnoreReason::AliasWithSlash => f.write_str("an alias can't contain a `/`"),
        }
    }
}

impl IgnoredSetting {
    /// Returns a sentence with the next step.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self.reason {
            IgnoreReason::AliasWithSlash => "rename it: PROVIDER/NAME always means that provider.",
            _ => "to use it, set it in ~/.config/jp/config.toml.",
        }
    }
}

/// A tool whose arguments jp can't check fully.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UncheckedTool {
    /// The tool's name at the server.
    pub tool: String,
    /// The part of its schema that jp can't use.
    pub reason: String,
}

/// A declaration in a conversation's history that can't be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UnreadableDeclaration {
    /// The declaration, unchanged.
    pub written: String,
    /// The reason why jp can't read it.
    pub reason: String,
}

/// The change of a resource since its snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum ResourceChange {
    /// It is gone.
    Gone,
    /// It has the content of an earlier turn again.
    Restored {
        /// The turn.
        turn: usize,
    },
    /// It differs from its content in an earlier turn.
    Modified {
        /// The turn.
        turn: usize,
    },
}

fn write_seconds<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(duration.as_secs_f64())
}
