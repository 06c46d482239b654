//! The name of each notice in JSON, and its importance.

use super::{Level, Notice};

impl Notice {
    /// Returns the stable name of the notice in JSON.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::WaitingForLock { .. } => "waiting_for_lock",
            Self::ConversationDamaged { .. } => "conversation_damaged",
            Self::CurrentNotSaved { .. } => "current_not_saved",
            Self::ApprovalsNotSaved { .. } => "approvals_not_saved",
            Self::FileStatesNotSaved { .. } => "file_states_not_saved",
            Self::UnknownKey { .. } => "unknown_key",
            Self::SettingIgnored(_) => "setting_ignored",
            Self::NoModel { .. } => "no_model",
            Self::SentByWorkspace { .. } => "sent_by_workspace",
            Self::FactsUnknown { .. } => "facts_unknown",
            Self::ModelChanged { .. } => "model_changed",
            Self::FactsNotSaved { .. } => "facts_not_saved",
            Self::AskingForSummary { .. } => "asking_for_summary",
            Self::ModelSilent { .. } => "model_silent",
            Self::Retry { .. } => "retry",
            Self::RequestTooLong { .. } => "request_too_long",
            Self::NotShown { .. } => "not_shown",
            Self::MoreNotShown { .. } => "more_not_shown",
            Self::SupersededLeftOut { .. } => "superseded_left_out",
            Self::Turn { .. } => "turn",
            Self::TurnDetail { .. } => "turn_detail",
            Self::ToolOffByHistory { .. } => "tool_off_by_history",
            Self::ToolNeedsApproval { .. } => "tool_needs_approval",
            Self::ToolWithoutServer { .. } => "tool_without_server",
            Self::ToolsChanged { .. } => "tools_changed",
            Self::ServerListFault { .. } => "server_list_fault",
            Self::ServerToolMissing { .. } => "server_tool_missing",
            Self::ServerToolSkipped { .. } => "server_tool_skipped",
            Self::ServerToolNameTaken { .. } => "server_tool_name_taken",
            Self::ServerToolsUnchecked { .. } => "server_tools_unchecked",
            Self::ServerToolNotOffered { .. } => "server_tool_not_offered",
            Self::ManyServerTools { .. } => "many_server_tools",
            Self::MoreServerTools { .. } => "more_server_tools",
            Self::ServerToolsKept { .. } => "server_tools_kept",
            Self::ServerLeftOut { .. } => "server_left_out",
            Self::ServerNeedsApproval { .. } => "server_needs_approval",
            Self::ServerTokenExposed { .. } => "server_token_exposed",
            Self::ServerAsks { .. } => "server_asks",
            Self::ServerLog { .. } => "server_log",
            Self::Attachment { .. } => "attachment",
            Self::AttachmentSkipped { .. } => "attachment_skipped",
            Self::AttachmentNotApproved { .. } => "attachment_not_approved",
            Self::OutsideWorkspace { .. } => "outside_workspace",
            Self::ExcludeNotStored { .. } => "exclude_not_stored",
            Self::SnapshotMissing { .. } => "snapshot_missing",
            Self::UnreadableDeclarations { .. } => "unreadable_declarations",
            Self::TemplateExpanded { .. } => "template_expanded",
            Self::ChangeUnknown { .. } => "change_unknown",
            Self::ResourceChanged { .. } => "resource_changed",
            Self::ResourcesChanged { .. } => "resources_changed",
            Self::MoreResourcesChanged { .. } => "more_resources_changed",
        }
    }

    /// Returns the importance of the notice.
    #[must_use]
    pub fn level(&self) -> Level {
        match self {
            Self::WaitingForLock { .. }
            | Self::FactsUnknown { .. }
            | Self::AskingForSummary { .. }
            | Self::ModelSilent { .. }
            | Self::Retry { .. }
            | Self::ToolOffByHistory { .. }
            | Self::ToolsChanged { .. }
            | Self::ResourceChanged { .. }
            | Self::ResourcesChanged { .. }
            | Self::MoreResourcesChanged { .. } => Level::Status,
            Self::FileStatesNotSaved { .. }
            | Self::FactsNotSaved { .. }
            | Self::SupersededLeftOut { .. }
            | Self::TurnDetail { .. }
            | Self::ServerLog { .. }
            | Self::TemplateExpanded { .. } => Level::Detail,
            Self::ConversationDamaged { .. }
            | Self::CurrentNotSaved { .. }
            | Self::ApprovalsNotSaved { .. }
            | Self::UnknownKey { .. }
            | Self::SettingIgnored(_)
            | Self::NoModel { .. }
            | Self::SentByWorkspace { .. }
            | Self::ModelChanged { .. }
            | Self::RequestTooLong { .. }
            | Self::NotShown { .. }
            | Self::MoreNotShown { .. }
            | Self::Turn { .. }
            | Self::ToolNeedsApproval { .. }
            | Self::ToolWithoutServer { .. }
            | Self::ServerListFault { .. }
            | Self::ServerToolMissing { .. }
            | Self::ServerToolSkipped { .. }
            | Self::ServerToolNameTaken { .. }
            | Self::ServerToolsUnchecked { .. }
            | Self::ServerToolNotOffered { .. }
            | Self::ManyServerTools { .. }
            | Self::MoreServerTools { .. }
            | Self::ServerToolsKept { .. }
            | Self::ServerLeftOut { .. }
            | Self::ServerNeedsApproval { .. }
            | Self::ServerTokenExposed { .. }
            | Self::ServerAsks { .. }
            | Self::Attachment { .. }
            | Self::AttachmentSkipped { .. }
            | Self::AttachmentNotApproved { .. }
            | Self::OutsideWorkspace { .. }
            | Self::ExcludeNotStored { .. }
            | Self::SnapshotMissing { .. }
            | Self::UnreadableDeclarations { .. }
            | Self::ChangeUnknown { .. } => Level::Warning,
        }
    }
}
