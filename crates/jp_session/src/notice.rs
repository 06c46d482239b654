//! What a session tells: values, which a front end words.

mod kind;

use std::time::Duration;

use jp_llm::{Note, RetryNotice};
use serde::{Serialize, Serializer};

/// How much the person should care about a notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// The person should know it.
    Warning,
    /// It says how things stand.
    Status,
    /// It is of interest with `--verbose` only.
    Detail,
}

/// What a session tells the person.
///
/// A field holds a value, which the front end words. Some fields are texts: what servers and the
/// system say, what other crates word, and a `reason` or `hint` whose words a
/// [`SessionError`](crate::SessionError) has as well. As JSON a notice is an object whose `kind` is
/// [`Notice::kind`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Notice {
    // The conversation and what jp stores.
    /// Another process writes to the conversation.
    WaitingForLock {
        /// The conversation's id.
        conversation: String,
        /// The other process, if it said which it is.
        process: Option<u32>,
    },
    /// Something is wrong with a conversation's files, which it can be read without.
    ConversationDamaged {
        /// What the store says of it.
        warning: String,
    },
    /// The current conversation was not remembered.
    CurrentNotSaved {
        /// Why.
        error: String,
    },
    /// What the person approved was not remembered.
    ApprovalsNotSaved {
        /// The file that remembers it.
        path: String,
        /// Why.
        error: String,
    },
    /// The cache of file states was not saved.
    FileStatesNotSaved {
        /// Why.
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
    SettingIgnored {
        /// The key.
        key: String,
        /// The file that sets it.
        path: String,
        /// Why it has none.
        reason: String,
        /// What the person can do.
        hint: &'static str,
    },

    // The model and its provider.
    /// The configuration names no model that can be asked; explaining a query needs none.
    NoModel {
        /// Why.
        reason: String,
    },
    /// The workspace chooses where the conversation is sent.
    SentByWorkspace {
        /// The workspace's configuration file.
        path: String,
        /// Where it is sent.
        base_url: String,
    },
    /// A provider did not say what the model takes.
    FactsUnknown {
        /// The provider.
        provider: String,
        /// Why, without credentials.
        error: String,
        /// Whether its earlier answer counts instead; else the defaults do.
        is_remembered: bool,
    },
    /// A model takes something that it did not take before, or the other way round.
    ModelChanged {
        /// `provider/name`.
        model: String,
        /// What it takes: `images`, `tools`.
        what: &'static str,
        /// Whether it takes that now.
        is_taken: bool,
    },
    /// What a provider said of its model was not remembered.
    FactsNotSaved {
        /// Why.
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
        /// Whether the message is stored.
        is_kept: bool,
    },
    /// A request failed and is sent again.
    Retry {
        /// What failed, after "failed to".
        error: String,
        /// Which retry it is, from 1.
        attempt: u32,
        /// How long jp waits first.
        #[serde(rename = "delay_secs", serialize_with = "write_seconds")]
        delay: Duration,
    },

    // The request.
    /// The request has more tokens than the model takes.
    RequestTooLong {
        /// About how many tokens it has.
        tokens: u64,
        /// How many the model takes.
        limit: u64,
    },
    /// The model is not shown a part of the request.
    NotShown {
        /// The part, and why.
        note: Note,
    },
    /// There are more parts that the model is not shown.
    MoreNotShown {
        /// How many.
        count: usize,
    },
    /// The provider's cache is lost, so superseded snapshots are left out from now on.
    SupersededLeftOut {
        /// How many snapshots.
        snapshots: usize,
    },

    // The turn.
    /// What a turn warns of, as it words it.
    Turn {
        /// Its words, as they came.
        text: String,
    },
    /// What a turn says to people who want to know more, as it words it.
    TurnDetail {
        /// Its words, as they came.
        text: String,
    },

    // Tools.
    /// A conversation's history enables a tool, which is no reason to offer it here.
    ToolOffByHistory {
        /// The tool.
        tool: String,
    },
    /// The workspace wants a tool to run unattended, and nobody can be asked to approve that.
    ToolNeedsApproval {
        /// The tool.
        tool: String,
    },
    /// A tool is of a server that is not configured.
    ToolWithoutServer {
        /// The key that names the server.
        key: String,
        /// The layer that sets it.
        layer: String,
        /// The server.
        server: String,
    },
    /// Servers have other tools now.
    ToolsChanged {
        /// The servers.
        servers: Vec<String>,
        /// The names of new tools.
        new: Vec<String>,
    },

    // The tools of one MCP server.
    /// A server's list has a fault.
    ServerListFault {
        /// The server.
        server: String,
        /// What is wrong.
        fault: String,
    },
    /// The configuration names a tool that the server doesn't have.
    ServerToolMissing {
        /// The server.
        server: String,
        /// The tool as the server would call it.
        tool: String,
        /// The name that the configuration gives it.
        name: String,
    },
    /// A tool is not offered.
    ServerToolSkipped {
        /// The server.
        server: String,
        /// The tool as the server calls it.
        tool: String,
        /// Why.
        reason: String,
    },
    /// A tool is not offered because another one has its name.
    ServerToolNameTaken {
        /// The server.
        server: String,
        /// The tool as the server calls it.
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
    /// The configuration is about a tool that the server doesn't offer.
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
        /// How many.
        count: usize,
    },
    /// There is more to warn of that a server lists.
    MoreServerTools {
        /// The server.
        server: String,
        /// How many warnings.
        count: usize,
    },
    /// A server's tools can't be listed again and stay as they were.
    ServerToolsKept {
        /// Why.
        reason: String,
    },

    // MCP servers.
    /// A server failed and the command continues without it.
    ServerLeftOut {
        /// What failed.
        reason: String,
        /// The last lines that the server wrote to stderr.
        stderr: Vec<String>,
        /// What the person can do.
        hints: Vec<String>,
    },
    /// A server needs the person's approval, and nobody can be asked.
    ServerNeedsApproval {
        /// The server.
        server: String,
        /// What the workspace has to do with it.
        reason: &'static str,
    },
    /// Others can read a server's token on its way.
    ServerTokenExposed {
        /// The server.
        server: String,
        /// The variable that holds the token.
        variable: String,
    },
    /// A server asks something that jp can't ask the person now.
    ServerAsks {
        /// The server.
        server: String,
        /// What it asks, as it came.
        message: String,
    },
    /// A server logs something.
    ServerLog {
        /// The server.
        server: String,
        /// What it logs, as it came.
        message: String,
    },

    // Attachments.
    /// What the handlers of attachments tell, as they word it.
    Attachment {
        /// Their words.
        text: String,
    },
    /// An attachment is not available and is skipped.
    AttachmentSkipped {
        /// Why.
        reason: String,
        /// What the person can do.
        hints: Vec<String>,
    },
    /// The person did not approve an attachment.
    AttachmentNotApproved {
        /// What it would have attached.
        what: String,
    },
    /// An attachment of the workspace or its history is outside the workspace.
    OutsideWorkspace {
        /// The declaration.
        declaration: String,
    },
    /// An exclude pattern is not stored because it is outside the workspace.
    ExcludeNotStored {
        /// What the person typed, as it came.
        input: String,
    },
    /// The conversation attaches something that it has no snapshot of.
    SnapshotMissing {
        /// The declaration.
        declaration: String,
        /// The conversation's id if the person named it.
        conversation: Option<String>,
    },
    /// The conversation's history attaches or detaches something in a form that can't be read.
    UnreadableDeclarations {
        /// What is written there, and why it can't be read.
        declarations: Vec<UnreadableDeclaration>,
    },
    /// A template of a server was expanded.
    TemplateExpanded {
        /// The URI.
        uri: String,
    },

    // Changes of attached resources.
    /// jp can't find out whether a resource has changed.
    ChangeUnknown {
        /// The resource or its declaration.
        name: String,
        /// Why.
        reason: String,
        /// What the person can do.
        hint: Option<&'static str>,
    },
    /// A resource has changed, and the model is told.
    ResourceChanged {
        /// The resource.
        name: String,
        /// How.
        change: ResourceChange,
    },
    /// Many resources have changed, and the model is told.
    ResourcesChanged {
        /// How many.
        count: usize,
        /// The first ones.
        first: Vec<String>,
    },
    /// More resources have changed than one message tells of.
    MoreResourcesChanged {
        /// How many more.
        count: usize,
        /// How many one message tells of.
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

/// A tool whose arguments jp can't check fully.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UncheckedTool {
    /// The tool as its server calls it.
    pub tool: String,
    /// What jp can't use of its schema.
    pub reason: String,
}

/// A declaration in a conversation's history that can't be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UnreadableDeclaration {
    /// What is written there.
    pub written: String,
    /// Why it can't be read.
    pub reason: String,
}

/// How a resource has changed since the conversation got it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum ResourceChange {
    /// It is gone.
    Gone,
    /// It is again as it was in an earlier turn.
    Restored {
        /// The turn.
        turn: usize,
    },
    /// It is another version than that of an earlier turn.
    Modified {
        /// The turn.
        turn: usize,
    },
}

fn write_seconds<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(duration.as_secs_f64())
}
