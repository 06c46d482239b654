//! Words the notices of a session for the terminal: one arm for each kind of notice.

use jp_session::{
    attachments::resolve::detach_command,
    notice::{Notice, ResourceChange, UncheckedTool},
    size,
    text::{one_line, quote_word, visible},
};

use crate::output::MARGIN;

/// Longest part of a server's question that is shown, in characters: two rows of a terminal.
const SHOWN_QUESTION: usize = 200;
/// Longest part of a server's log message that is shown, in characters.
///
/// Such messages appear only with `--verbose`, so they may take more rows than a question.
const SHOWN_LOG: usize = 500;
/// Number of tools with unchecked arguments that one warning names; it counts the others.
const NAMED_TOOLS: usize = 3;

/// The text of a notice: its lines, and hints with what the user can do.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Words {
    pub(crate) lines: Vec<String>,
    pub(crate) hints: Vec<String>,
}

impl Words {
    fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    fn with_hints(self, hints: &[String]) -> Self {
        Self {
            hints: hints.to_vec(),
            ..self
        }
    }
}

/// Words a notice of one line.
fn say(line: impl Into<String>) -> Words {
    Words {
        lines: vec![line.into()],
        hints: Vec::new(),
    }
}

/// Words a notice about a server. The line may contain the server's own text, so control characters become visible.
fn say_of_server(server: &str, line: &str) -> Words {
    say(format!("the MCP server `{server}`: {}", visible(line)))
}

/// Returns the words for a notice.
pub(crate) fn find_words(notice: &Notice) -> Words {
    match notice {
        // The conversation and what jp stores.
        Notice::WaitingForLock {
            conversation,
            process,
        } => {
            let process = process.map(|process| format!(" (process {process})"));
            let process = process.unwrap_or_default();
            say(format!(
                "Waiting for another jp{process} that is using conversation {conversation} …"
            ))
        }
        Notice::ConversationDamaged { warning } => say(warning),
        Notice::CurrentNotSaved { error } => say(format!(
            "failed to remember which conversation is current: {error}"
        )),
        Notice::ApprovalsNotSaved { path, error } => say(format!(
            "failed to save your approvals in {path}: {error}"
        ))
        .with_hint("if the file is damaged, delete it; jp then asks for these approvals again."),
        Notice::FileStatesNotSaved { error } => {
            say(format!("failed to save the cache of file states: {error}"))
        }

        // The configuration.
        Notice::UnknownKey { key, layer } => {
            say(format!("unknown key `{key}` in {layer}: it has no effect"))
        }
        Notice::SettingIgnored(ignored) => say(ignored.to_string()).with_hint(ignored.hint()),

        // The model and its provider.
        Notice::NoModel { reason } => say(reason),
        Notice::SentByWorkspace { path, base_url } => {
            say(format!("{path} makes jp send this conversation to {base_url}"))
        }
        Notice::FactsUnknown {
            provider,
            error,
            is_remembered,
        } => {
            let known = match is_remembered {
                true => "using its last report",
                false => "using defaults",
            };
            say(format!(
                "{provider} did not report the model's capabilities (failed to {error}); {known}"
            ))
        }
        Notice::ModelChanged {
            model,
            what,
            is_taken,
        } => {
            let accepts = match is_taken {
                true => "now accepts",
                false => "no longer accepts",
            };
            say(format!(
                "{model} {accepts} {what}; jp sends those in the history in another form"
            ))
        }
        Notice::FactsNotSaved { error } => say(format!(
            "failed to save the model's capabilities: {error}"
        )),
        Notice::AskingForSummary { model } => say(format!("Asking {model} for a summary …")),
        Notice::ModelSilent { model, is_kept } => {
            let kept = match is_kept {
                true => "; the message stays in the conversation",
                false => "",
            };
            say(format!(
                "Still waiting for {model}. Press Ctrl-C to stop{kept}."
            ))
        }
        Notice::Retry {
            error,
            attempt,
            delay,
        } => say(format!(
            "failed to {error}; retry {attempt} in {:.1} s",
            delay.as_secs_f64()
        )),

        // The request.
        Notice::RequestTooLong { tokens, limit } => {
            let [tokens, limit] = [*tokens, *limit].map(size::thousands);
            say(format!(
                "the request has about {tokens} tokens, but the model accepts at most {limit}"
            ))
        }
        Notice::NotShown { note } => say(note.to_string()),
        Notice::MoreNotShown { count } => say(format!(
            "{} more are not shown; `jp resource ls` lists all attached content",
            size::thousands(*count as u64)
        )),
        Notice::SupersededLeftOut { snapshots } => say(format!(
            "the provider no longer caches this conversation; jp now leaves out {} that newer ones replaced",
            size::count(*snapshots, "snapshot")
        )),

        // The turn. Its texts quote models and tools, so control characters become visible.
        Notice::Turn { text } | Notice::TurnDetail { text } => say(visible(text)),

        // Tools.
        Notice::ToolOffByHistory { tool } => say(format!(
            "This conversation's history enables the tool `{tool}`. It stays off until you enable it with `-t {tool}`."
        )),
        Notice::ToolNeedsApproval { tool } => say(format!(
            "the tool `{tool}` needs your approval for each call because the workspace affects what it runs"
        ))
        .with_hint(format!(
            "`--yes` accepts the workspace's setting for this command; your own setting is always accepted: -c conversation.tools.{tool}.run=unattended"
        )),
        Notice::ToolWithoutServer { key, layer, server } => say(format!(
            "{key} in {layer} names the MCP server `{server}`, which is not configured; the tool is left out"
        ))
        .with_hint(format!(
            "configure the server in [providers.mcp.{server}]; `jp help mcp-servers` explains how."
        )),
        Notice::ToolsChanged { servers, new } => {
            let names: Vec<_> = new.iter().map(|name| format!("`{name}`")).collect();
            let new = match names.is_empty() {
                true => String::new(),
                false => format!("; new: {}", names.join(", ")),
            };
            say(format!(
                "The tools of {} have changed{new}.",
                servers.join(", ")
            ))
        }

        // The tools of one MCP server.
        Notice::ServerListFault { server, fault } => say_of_server(server, fault),
        Notice::ServerToolMissing { server, tool, name } => say_of_server(
            server,
            &format!("no tool `{tool}`, which conversation.tools.{name}.source names"),
        ),
        Notice::ServerToolSkipped {
            server,
            tool,
            reason,
        } => say_of_server(
            server,
            &format!("its tool {tool:?} is skipped: {reason}"),
        ),
        Notice::ServerToolNameTaken { server, tool, name } => say_of_server(
            server,
            &format!(
                "its tool {tool:?} is skipped: another tool has the name `{name}`"
            ),
        ),
        Notice::ServerToolsUnchecked { server, tools } => say_of_server(
            server,
            &format!(
                "jp can't fully check the arguments of these tools: {}",
                name_unchecked(tools)
            ),
        ),
        Notice::ServerToolNotOffered { server, name } => say_of_server(
            server,
            &format!(
                "no tool is offered as `{name}`, which conversation.tools.{name} configures"
            ),
        ),
        Notice::ManyServerTools { server, count } => say_of_server(
            server,
            &format!("each request includes its {count} tools"),
        )
        .with_hint(format!(
            "set providers.mcp.{server}.tools = false, and configure each tool that you need."
        )),
        Notice::MoreServerTools { server, count } => say_of_server(
            server,
            &format!("{count} more of its tools are skipped"),
        ),
        Notice::ServerToolsKept { reason } => {
            say(format!("{reason}; jp keeps its earlier list of tools"))
        }

        // MCP servers.
        Notice::ServerLeftOut {
            reason,
            stderr,
            hints,
        } => say(format!("{reason}; jp continues without it{}", quote_stderr(stderr))).with_hints(hints),
        Notice::ServerNeedsApproval { server, reason } => say(format!(
            "the MCP server `{server}` needs your approval before it starts: {reason}, and there is no terminal to ask you on"
        ))
        .with_hint("`--yes` starts it."),
        Notice::ServerTokenExposed { server, variable } => say(format!(
            "the MCP server `{server}` receives the token in {variable} over plain HTTP, which others can read"
        ))
        .with_hint(format!(
            "set providers.mcp.{server}.url to an https URL."
        )),
        Notice::ServerAsks { server, message } => say(format!(
            "the MCP server `{server}` asked a question that jp can't pass on to you: {}",
            one_line(message, SHOWN_QUESTION)
        )),
        Notice::ServerLog { server, message } => {
            say(format!("{server}: {}", one_line(message, SHOWN_LOG)))
        }

        // Attachments.
        Notice::Attachment { text } => say(text),
        Notice::AttachmentSkipped { reason, hints } => {
            say(format!("skipped: {reason}")).with_hints(hints)
        }
        Notice::AttachmentNotApproved { what } => say(format!("{what} is left out"))
            .with_hint("`jp attachment rm` detaches it from the conversation."),
        Notice::OutsideWorkspace { declaration } => say(format!(
            "{declaration} is outside the workspace and is left out: only you can attach such a file"
        ))
        .with_hint("attach it yourself with --attach, or in ~/.config/jp/config.toml."),
        Notice::ExcludeNotStored { input } => say(format!(
            "`{}` applies to this command only: jp stores no paths outside the workspace",
            visible(input)
        )),
        Notice::SnapshotMissing {
            declaration,
            conversation,
        } => say(format!(
            "{declaration} is attached, but this conversation has no snapshot of it"
        ))
        .with_hint(format!(
            "attach the file again with --attach, or detach it with `{}`.",
            detach_command(&quote_word(declaration), conversation.as_deref())
        )),
        Notice::UnreadableDeclarations { declarations } => Words {
            lines: declarations
                .iter()
                .map(|one| {
                    format!(
                        "an attachment of the conversation can't be read: {}: {}",
                        one.written, one.reason
                    )
                })
                .collect(),
            hints: Vec::new(),
        }
        .with_hint(
            "fix it in the conversation's events.json; `jp conversation show --files` prints its path.",
        ),
        Notice::TemplateExpanded { uri } => say(format!("The template expands to {uri}.")),

        // Changes of attached resources.
        Notice::ChangeUnknown { name, reason, hint } => Words {
            hints: hint.iter().map(|hint| (*hint).to_owned()).collect(),
            ..say(format!(
                "can't tell whether {name} has changed: {reason}"
            ))
        },
        Notice::ResourceChanged { name, change } => {
            let change = match change {
                ResourceChange::Gone => "is gone".to_owned(),
                ResourceChange::Restored { turn } => format!("is the same as in turn {turn} again"),
                ResourceChange::Modified { turn } => format!("has changed since turn {turn}"),
            };
            say(format!("{name} {change}; jp tells the model."))
        }
        Notice::ResourcesChanged { count, first } => say(format!(
            "{count} attached resources have changed ({}, …); jp tells the model.",
            first.join(", ")
        )),
        Notice::MoreResourcesChanged { count, limit } => say(format!(
            "{count} more have changed; a message reports at most {limit}, and the next ones report the rest."
        )),
    }
}

/// Names the first [`NAMED_TOOLS`] tools with their reasons, and counts the others.
fn name_unchecked(tools: &[UncheckedTool]) -> String {
    let more = tools.len().saturating_sub(NAMED_TOOLS);
    let more = (more > 0).then(|| format!("{more} more"));
    tools
        .iter()
        .take(NAMED_TOOLS)
        .map(|UncheckedTool { tool, reason }| format!("{tool:?} ({reason})"))
        .chain(more)
        .collect::<Vec<_>>()
        .join(", ")
}

/// Quotes what a server wrote to stderr. A margin sets each line apart from jp's own words.
fn quote_stderr(lines: &[String]) -> String {
    if lines.is_empty() {
        return String::new();
    }
    let lines: String = lines
        .iter()
        .map(|line| format!("\n{MARGIN}{line}"))
        .collect();
    format!("; its last lines on stderr:{lines}")
}

#[cfg(test)]
mod tests;
