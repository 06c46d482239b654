use std::{collections::BTreeSet, time::Duration};

use jp_llm::Note;
use jp_session::notice::{IgnoreReason, IgnoredSetting, UnreadableDeclaration};

use super::*;

/// How many variants [`Notice`] has: a new one belongs in [`each`].
const VARIANTS: usize = 51;

fn texts<const N: usize>(texts: [&str; N]) -> Vec<String> {
    texts.map(str::to_owned).into()
}

/// Returns one notice of each variant.
fn each() -> Vec<Notice> {
    vec![
        Notice::WaitingForLock {
            conversation: "17".to_owned(),
            process: Some(7),
        },
        Notice::ConversationDamaged {
            warning: "events.json ends in the middle".to_owned(),
        },
        Notice::CurrentNotSaved {
            error: "disk full".to_owned(),
        },
        Notice::ApprovalsNotSaved {
            path: "config.toml".to_owned(),
            error: "disk full".to_owned(),
        },
        Notice::FileStatesNotSaved {
            error: "disk full".to_owned(),
        },
        Notice::UnknownKey {
            key: "a.b".to_owned(),
            layer: "config.toml".to_owned(),
        },
        Notice::SettingIgnored(IgnoredSetting {
            key: "a.b".to_owned(),
            path: "config.toml".to_owned(),
            reason: IgnoreReason::ChoosesKey,
        }),
        Notice::NoModel {
            reason: "it failed".to_owned(),
        },
        Notice::SentByWorkspace {
            path: "config.toml".to_owned(),
            base_url: "https://llm.example".to_owned(),
        },
        Notice::FactsUnknown {
            provider: "ollama".to_owned(),
            error: "disk full".to_owned(),
            is_remembered: true,
        },
        Notice::ModelChanged {
            model: "ollama/qwen3".to_owned(),
            what: "images",
            is_taken: true,
        },
        Notice::FactsNotSaved {
            error: "disk full".to_owned(),
        },
        Notice::AskingForSummary {
            model: "ollama/qwen3".to_owned(),
        },
        Notice::ModelSilent {
            model: "ollama/qwen3".to_owned(),
            is_kept: true,
        },
        Notice::Retry {
            error: "disk full".to_owned(),
            attempt: 1,
            delay: Duration::from_millis(1500),
        },
        Notice::RequestTooLong {
            tokens: 1234567,
            limit: 4096,
        },
        Notice::NotShown {
            note: Note {
                turn: 1,
                subject: "photo.png".to_owned(),
                reason: "this model does not accept image/png".to_owned(),
                bytes: Some(12),
            },
        },
        Notice::MoreNotShown { count: 1200 },
        Notice::SupersededLeftOut { snapshots: 2 },
        Notice::Turn {
            text: "a \u{1b}[2J tool".to_owned(),
        },
        Notice::TurnDetail {
            text: "a text".to_owned(),
        },
        Notice::ToolOffByHistory {
            tool: "find".to_owned(),
        },
        Notice::ToolNeedsApproval {
            tool: "find".to_owned(),
        },
        Notice::ToolWithoutServer {
            key: "a.b".to_owned(),
            layer: "config.toml".to_owned(),
            server: "docs".to_owned(),
        },
        Notice::ToolsChanged {
            servers: texts(["docs", "wiki"]),
            new: texts(["docs_find"]),
        },
        Notice::ServerListFault {
            server: "docs".to_owned(),
            fault: "a page \u{202e} is empty".to_owned(),
        },
        Notice::ServerToolMissing {
            server: "docs".to_owned(),
            tool: "find".to_owned(),
            name: "notes".to_owned(),
        },
        Notice::ServerToolSkipped {
            server: "docs".to_owned(),
            tool: "fi\nnd".to_owned(),
            reason: "it failed".to_owned(),
        },
        Notice::ServerToolNameTaken {
            server: "docs".to_owned(),
            tool: "find".to_owned(),
            name: "notes".to_owned(),
        },
        Notice::ServerToolsUnchecked {
            server: "docs".to_owned(),
            tools: ["a", "b", "c", "d"]
                .map(|tool| UncheckedTool {
                    tool: tool.to_owned(),
                    reason: "no pattern".to_owned(),
                })
                .into(),
        },
        Notice::ServerToolNotOffered {
            server: "docs".to_owned(),
            name: "notes".to_owned(),
        },
        Notice::ManyServerTools {
            server: "docs".to_owned(),
            count: 60,
        },
        Notice::MoreServerTools {
            server: "docs".to_owned(),
            count: 4,
        },
        Notice::ServerToolsKept {
            reason: "it failed".to_owned(),
        },
        Notice::ServerLeftOut {
            reason: "it failed".to_owned(),
            stderr: texts(["no database"]),
            hints: texts(["start it."]),
        },
        Notice::ServerNeedsApproval {
            server: "docs".to_owned(),
            reason: "the workspace configures it",
        },
        Notice::ServerTokenExposed {
            server: "docs".to_owned(),
            variable: "TOKEN".to_owned(),
        },
        Notice::ServerAsks {
            server: "docs".to_owned(),
            message: "your\nname?".to_owned(),
        },
        Notice::ServerLog {
            server: "docs".to_owned(),
            message: "ready".to_owned(),
        },
        Notice::Attachment {
            text: "a text".to_owned(),
        },
        Notice::AttachmentSkipped {
            reason: "it failed".to_owned(),
            hints: texts(["pass `--yes` to run it."]),
        },
        Notice::AttachmentNotApproved {
            what: "the output of `date`".to_owned(),
        },
        Notice::OutsideWorkspace {
            declaration: "/etc/hosts".to_owned(),
        },
        Notice::ExcludeNotStored {
            input: "!/tmp".to_owned(),
        },
        Notice::SnapshotMissing {
            declaration: "a b.txt".to_owned(),
            conversation: Some("17".to_owned()),
        },
        Notice::UnreadableDeclarations {
            declarations: ["1", "2"]
                .map(|written| UnreadableDeclaration {
                    written: written.to_owned(),
                    reason: "it is a number".to_owned(),
                })
                .into(),
        },
        Notice::TemplateExpanded {
            uri: "mcp+docs+x:1".to_owned(),
        },
        Notice::ChangeUnknown {
            name: "notes".to_owned(),
            reason: "it failed".to_owned(),
            hint: Some("attach it once with --attach."),
        },
        Notice::ResourceChanged {
            name: "notes".to_owned(),
            change: ResourceChange::Modified { turn: 2 },
        },
        Notice::ResourcesChanged {
            count: 5,
            first: texts(["a.txt", "b.txt"]),
        },
        Notice::MoreResourcesChanged {
            count: 3,
            limit: 50,
        },
    ]
}

#[test]
fn kinds_are_unique() {
    let all = each();
    let kinds: BTreeSet<_> = all.iter().map(Notice::kind).collect();
    assert_eq!([kinds.len(), all.len()], [VARIANTS; 2]);
}

#[test]
fn json_names_the_kind() {
    for notice in each() {
        let json = serde_json::to_value(&notice).unwrap();
        assert_eq!(json["kind"], notice.kind());
    }
}

#[test]
fn each_notice_has_words() {
    let worded: Vec<String> = each().iter().map(describe).collect();
    insta::assert_snapshot!(worded.join("\n"), @r#"
    Status waiting_for_lock
      Waiting for another jp (process 7) that is using conversation 17 …
    Warning conversation_damaged
      events.json ends in the middle
    Warning current_not_saved
      failed to remember which conversation is current: disk full
    Warning approvals_not_saved
      failed to save your approvals in config.toml: disk full
      hint: if the file is damaged, delete it; jp then asks for these approvals again.
    Detail file_states_not_saved
      failed to save the cache of file states: disk full
    Warning unknown_key
      unknown key `a.b` in config.toml: it has no effect
    Warning setting_ignored
      a.b in config.toml is ignored: a workspace can't choose the key of a provider that it does not define
      hint: to use it, set it in ~/.config/jp/config.toml.
    Warning no_model
      it failed
    Warning sent_by_workspace
      config.toml makes jp send this conversation to https://llm.example
    Status facts_unknown
      ollama did not report the model's capabilities (failed to disk full); using its last report
    Warning model_changed
      ollama/qwen3 now accepts images; jp sends those in the history in another form
    Detail facts_not_saved
      failed to save the model's capabilities: disk full
    Status asking_for_summary
      Asking ollama/qwen3 for a summary …
    Status model_silent
      Still waiting for ollama/qwen3. Press Ctrl-C to stop; the message stays in the conversation.
    Status retry
      failed to disk full; retry 1 in 1.5 s
    Warning request_too_long
      the request has about 1,234,567 tokens, but the model accepts at most 4,096
    Warning not_shown
      photo.png is not shown: this model does not accept image/png (12 bytes)
    Warning more_not_shown
      1,200 more are not shown; `jp resource ls` lists all attached content
    Detail superseded_left_out
      the provider no longer caches this conversation; jp now leaves out 2 snapshots that newer ones replaced
    Warning turn
      a \u{1b}[2J tool
    Detail turn_detail
      a text
    Status tool_off_by_history
      This conversation's history enables the tool `find`. It stays off until you enable it with `-t find`.
    Warning tool_needs_approval
      the tool `find` needs your approval for each call because the workspace affects what it runs
      hint: `--yes` accepts the workspace's setting for this command; your own setting is always accepted: -c conversation.tools.find.run=unattended
    Warning tool_without_server
      a.b in config.toml names the MCP server `docs`, which is not configured; the tool is left out
      hint: configure the server in [providers.mcp.docs]; `jp help mcp-servers` explains how.
    Status tools_changed
      The tools of docs, wiki have changed; new: `docs_find`.
    Warning server_list_fault
      the MCP server `docs`: a page \u{202e} is empty
    Warning server_tool_missing
      the MCP server `docs`: no tool `find`, which conversation.tools.notes.source names
    Warning server_tool_skipped
      the MCP server `docs`: its tool "fi\nnd" is skipped: it failed
    Warning server_tool_name_taken
      the MCP server `docs`: its tool "find" is skipped: another tool has the name `notes`
    Warning server_tools_unchecked
      the MCP server `docs`: jp can't fully check the arguments of these tools: "a" (no pattern), "b" (no pattern), "c" (no pattern), 1 more
    Warning server_tool_not_offered
      the MCP server `docs`: no tool is offered as `notes`, which conversation.tools.notes configures
    Warning many_server_tools
      the MCP server `docs`: each request includes its 60 tools
      hint: set providers.mcp.docs.tools = false, and configure each tool that you need.
    Warning more_server_tools
      the MCP server `docs`: 4 more of its tools are skipped
    Warning server_tools_kept
      it failed; jp keeps its earlier list of tools
    Warning server_left_out
      it failed; jp continues without it; its last lines on stderr:
      │ no database
      hint: start it.
    Warning server_needs_approval
      the MCP server `docs` needs your approval before it starts: the workspace configures it, and there is no terminal to ask you on
      hint: `--yes` starts it.
    Warning server_token_exposed
      the MCP server `docs` receives the token in TOKEN over plain HTTP, which others can read
      hint: set providers.mcp.docs.url to an https URL.
    Warning server_asks
      the MCP server `docs` asked a question that jp can't pass on to you: your\nname?
    Detail server_log
      docs: ready
    Warning attachment
      a text
    Warning attachment_skipped
      skipped: it failed
      hint: pass `--yes` to run it.
    Warning attachment_not_approved
      the output of `date` is left out
      hint: `jp attachment rm` detaches it from the conversation.
    Warning outside_workspace
      /etc/hosts is outside the workspace and is left out: only you can attach such a file
      hint: attach it yourself with --attach, or in ~/.config/jp/config.toml.
    Warning exclude_not_stored
      `!/tmp` applies to this command only: jp stores no paths outside the workspace
    Warning snapshot_missing
      a b.txt is attached, but this conversation has no snapshot of it
      hint: attach the file again with --attach, or detach it with `jp attachment rm 'a b.txt' -i 17`.
    Warning unreadable_declarations
      an attachment of the conversation can't be read: 1: it is a number
      an attachment of the conversation can't be read: 2: it is a number
      hint: fix it in the conversation's events.json; `jp conversation show --files` prints its path.
    Detail template_expanded
      The template expands to mcp+docs+x:1.
    Warning change_unknown
      can't tell whether notes has changed: it failed
      hint: attach it once with --attach.
    Status resource_changed
      notes has changed since turn 2; jp tells the model.
    Status resources_changed
      5 attached resources have changed (a.txt, b.txt, …); jp tells the model.
    Status more_resources_changed
      3 more have changed; a message reports at most 50, and the next ones report the rest.
    "#);
}

/// Writes a notice as `LEVEL KIND`, its lines and its hints.
fn describe(notice: &Notice) -> String {
    let Words { lines, hints } = find_words(notice);
    let mut text = format!("{:?} {}", notice.level(), notice.kind());
    lines.iter().for_each(|line| text += &format!("\n  {line}"));
    hints
        .iter()
        .for_each(|hint| text += &format!("\n  hint: {hint}"));
    text
}

#[test]
fn two_unchecked_tools_are_both_named() {
    let tools = ["a", "b"].map(|tool| UncheckedTool {
        tool: tool.to_owned(),
        reason: "no pattern".to_owned(),
    });
    assert_eq!(
        name_unchecked(&tools),
        r#""a" (no pattern), "b" (no pattern)"#
    );
}

#[test]
fn changed_resource_names_its_new_state() {
    let line = |change| {
        let name = "a.txt".to_owned();
        find_words(&Notice::ResourceChanged { name, change }).lines
    };
    assert_eq!(
        line(ResourceChange::Gone),
        ["a.txt is gone; jp tells the model."]
    );
    assert_eq!(
        line(ResourceChange::Restored { turn: 1 }),
        ["a.txt is the same as in turn 1 again; jp tells the model."]
    );
}
