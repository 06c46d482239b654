//! The words for what a session tells: one arm for each notice.

use jp_session::{
    attachments::resolve::detach_command,
    notice::{Notice, ResourceChange, UncheckedTool},
    size,
    text::{one_line, quoted, visible},
};

use crate::terminal::MARGIN;

/// How many characters of a server's question are shown.
const SHOWN_QUESTION: usize = 200;
/// How many characters of what a server logs are shown.
const SHOWN_LOG: usize = 500;
/// How many tools with arguments that jp can't check are named.
const NAMED_TOOLS: usize = 3;

/// What the terminal says: the lines, and what the user can do about them.
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

fn say(line: impl Into<String>) -> Words {
    Words {
        lines: vec![line.into()],
        hints: Vec::new(),
    }
}

/// Says something of a server that it has a part in, so nothing of it may steer the terminal.
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
                "Waiting for another jp{process}, which is using conversation {conversation} …"
            ))
        }
        Notice::ConversationDamaged { warning } => say(warning),
        Notice::CurrentNotSaved { error } => say(format!(
            "the current conversation was not remembered: {error}"
        )),
        Notice::ApprovalsNotSaved { path, error } => say(format!(
            "what you agreed to was not remembered in {path}: {error}"
        ))
        .with_hint("if that file is damaged, remove it: you are asked again about what it held."),
        Notice::FileStatesNotSaved { error } => {
            say(format!("the cache of file states was not saved: {error}"))
        }

        // The configuration.
        Notice::UnknownKey { key, layer } => {
            say(format!("unknown key `{key}` in {layer}: it has no effect"))
        }
        Notice::SettingIgnored {
            key,
            path,
            reason,
            hint,
        } => say(format!("{key} in {path} is ignored: {reason}")).with_hint(*hint),

        // The model and its provider.
        Notice::NoModel { reason } => say(reason),
        Notice::SentByWorkspace { path, base_url } => {
            say(format!("{path} sends this conversation to {base_url}"))
        }
        Notice::FactsUnknown {
            provider,
            error,
            is_remembered,
        } => {
            let known = match is_remembered {
                true => "what it said last holds",
                false => "the usual is assumed",
            };
            say(format!(
                "{provider} did not say what the model takes ({error}): {known}"
            ))
        }
        Notice::ModelChanged {
            model,
            what,
            is_taken,
        } => {
            let takes = match is_taken {
                true => "takes",
                false => "no longer takes",
            };
            say(format!(
                "{model} {takes} {what} now: what the history holds of them is sent in another form"
            ))
        }
        Notice::FactsNotSaved { error } => say(format!(
            "what the provider said of its model was not remembered: {error}"
        )),
        Notice::AskingForSummary { model } => say(format!("Asking {model} for a summary …")),
        Notice::ModelSilent { model, is_kept } => {
            let kept = match is_kept {
                true => ", and the message is kept",
                false => "",
            };
            say(format!(
                "Still waiting for {model}; Ctrl-C ends it{kept}."
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
                "the request has about {tokens} tokens, and the model takes {limit}"
            ))
        }
        Notice::NotShown { note } => say(note.to_string()),
        Notice::MoreNotShown { count } => say(format!(
            "{} more are not shown; `jp resource ls` lists all that is attached",
            size::thousands(*count as u64)
        )),
        Notice::SupersededLeftOut { snapshots } => say(format!(
            "the provider's cache of this conversation is lost; left out from now on, as newer ones replaced them: {}",
            size::count(*snapshots, "snapshot")
        )),

        // The turn.
        Notice::Turn { text } | Notice::TurnDetail { text } => say(visible(text)),

        // Tools.
        Notice::ToolOffByHistory { tool } => say(format!(
            "The history of this conversation has the tool `{tool}` on; here it is off until you say `-t {tool}`."
        )),
        Notice::ToolNeedsApproval { tool } => say(format!(
            "the tool `{tool}` asks, as the workspace has a part in what it runs, and a workspace can come from anywhere"
        ))
        .with_hint(format!(
            "`--yes` takes its word for this command; yours counts always: -c conversation.tools.{tool}.run=unattended"
        )),
        Notice::ToolWithoutServer { key, layer, server } => say(format!(
            "{key} in {layer} names an MCP server that is not configured: `{server}`; the tool is left out"
        ))
        .with_hint(format!(
            "[providers.mcp.{server}] says how it is reached; `jp help mcp-servers` has more."
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
            &format!("it has no tool `{tool}`, which conversation.tools.{name}.source names"),
        ),
        Notice::ServerToolSkipped {
            server,
            tool,
            reason,
        } => say_of_server(
            server,
            &format!("its tool {tool:?} was passed over: {reason}"),
        ),
        Notice::ServerToolNameTaken { server, tool, name } => say_of_server(
            server,
            &format!(
                "its tool {tool:?} was passed over: there is another one with the name `{name}`"
            ),
        ),
        Notice::ServerToolsUnchecked { server, tools } => say_of_server(
            server,
            &format!(
                "jp can't use all of these tools' argument schemas, so it checks less: {}",
                name_unchecked(tools)
            ),
        ),
        Notice::ServerToolNotOffered { server, name } => say_of_server(
            server,
            &format!(
                "none of its tools is offered as `{name}`, which conversation.tools.{name} is about"
            ),
        ),
        Notice::ManyServerTools { server, count } => say_of_server(
            server,
            &format!(
                "each request has its {count} tools; providers.mcp.{server}.tools = false and an entry for each that is needed make it less"
            ),
        ),
        Notice::MoreServerTools { server, count } => say_of_server(
            server,
            &format!("{count} more of its tools were passed over"),
        ),
        Notice::ServerToolsKept { reason } => {
            say(format!("{reason}; its tools stay as they were"))
        }

        // MCP servers.
        Notice::ServerLeftOut {
            reason,
            stderr,
            hints,
        } => say(format!("{reason}; it is left out{}", quote_stderr(stderr))).with_hints(hints),
        Notice::ServerNeedsApproval { server, reason } => say(format!(
            "the MCP server `{server}` is not started: {reason}, and there is no terminal to ask you on"
        ))
        .with_hint("`--yes` starts it."),
        Notice::ServerTokenExposed { server, variable } => say(format!(
            "the MCP server `{server}`: what {variable} holds goes to it by http, which others can read on the way"
        ))
        .with_hint(format!(
            "an https URL as providers.mcp.{server}.url keeps it to the two of you."
        )),
        Notice::ServerAsks { server, message } => say(format!(
            "the MCP server `{server}` asks, and is not answered: {}",
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
            "{declaration} is outside the workspace and is left out: a workspace and its history can come from anywhere"
        ))
        .with_hint("attach it yourself with --attach, or in ~/.config/jp/config.toml."),
        Notice::ExcludeNotStored { input } => say(format!(
            "`{}` counts for this command alone: it is outside of the workspace, and no path of there is stored",
            visible(input)
        )),
        Notice::SnapshotMissing {
            declaration,
            conversation,
        } => say(format!(
            "{declaration} is attached, but this conversation holds no snapshot of it"
        ))
        .with_hint(format!(
            "attach the file again with --attach, or `{}`.",
            detach_command(&quoted(declaration), conversation.as_deref())
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
            "mend it in the conversation's events.json, which `jp conversation show --files` names.",
        ),
        Notice::TemplateExpanded { uri } => say(format!("The template gives {uri}.")),

        // Changes of attached resources.
        Notice::ChangeUnknown { name, reason, hint } => Words {
            hints: hint.iter().map(|hint| (*hint).to_owned()).collect(),
            ..say(format!(
                "it is not known whether {name} has changed: {reason}"
            ))
        },
        Notice::ResourceChanged { name, change } => {
            let change = match change {
                ResourceChange::Gone => "is gone".to_owned(),
                ResourceChange::Restored { turn } => format!("is again as in turn {turn}"),
                ResourceChange::Modified { turn } => format!("has changed since turn {turn}"),
            };
            say(format!("{name} {change}; the model is told."))
        }
        Notice::ResourcesChanged { count, first } => say(format!(
            "{count} attached resources have changed ({}, …); the model is told.",
            first.join(", ")
        )),
        Notice::MoreResourcesChanged { count, limit } => say(format!(
            "{count} more have changed; a message tells of at most {limit}, and the next ones tell of those."
        )),
    }
}

/// Names the first tools, each with the reason, and counts the others.
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

/// Returns what a server wrote to stderr, each line behind a margin that keeps it apart from jp's words.
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
