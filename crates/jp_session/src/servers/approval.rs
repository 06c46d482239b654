//! The approval that a server needs before it starts, if the workspace configures it or it runs a
//! file of the workspace.

use std::{env, ffi::OsString};

use crate::{
    error::SessionError,
    notice::Notice,
    scripts::{CommandWords, Script, SearchPath, describe_content},
    servers::{Refusal, ServerEntry, Servers},
    session::Session,
    text::without_credentials,
    trust::{Approvals, Decision, Effect, Origin, decide, decide_unapproved},
};
use jp_config::{Entry, Layer};
use jp_mcp::{Program, ServerConfig, Transport};

/// The approval that a server needs.
#[derive(Debug)]
pub(crate) struct ServerApproval {
    /// The text that jp remembers: if any of it changes, jp asks the user again.
    text: String,
    /// The same for people, a line for each setting.
    lines: Vec<String>,
    /// Who configures it: the workspace, in part at least, or the user's file.
    origin: Origin,
    /// The effect of starting it.
    effect: Effect,
}

impl ServerApproval {
    /// Returns the reason why the server needs an approval.
    fn reason(&self) -> &'static str {
        match self.is_of_workspace() {
            true => "the workspace configures it",
            false => "it runs a file of the workspace",
        }
    }

    /// Returns whether the workspace configures any of it. If not, the server is the user's and runs
    /// a file of the workspace.
    fn is_of_workspace(&self) -> bool {
        self.origin == Origin::Workspace
    }

    fn decide(&self, approvals: Approvals) -> Decision {
        decide(self.origin, self.effect, approvals)
    }
}

impl Servers {
    /// Returns whether a server may start. Asks the user if the workspace has a part in it and they
    /// have not been asked before.
    ///
    /// The caller must have the terminal, and call this before [`Self::connect`].
    pub fn approve_or_ask(&self, session: &Session, name: &str) -> Result<bool, SessionError> {
        let Some(approval) = self.find_pending(session, name) else {
            return Ok(self.may_start(name));
        };
        let is_approved = ask_to_start(session, name, approval)?;
        if is_approved {
            session.remember_approvals([approval.text.as_str()]);
        }
        self.answers().insert(name.to_owned(), is_approved);
        Ok(is_approved)
    }

    /// Returns whether a server may start now, without a prompt.
    pub(crate) fn may_start_unasked(&self, session: &Session, name: &str) -> bool {
        self.find_pending(session, name).is_none() && self.may_start(name)
    }

    /// Returns whether the workspace configures a server, in part at least.
    pub(crate) fn is_of_workspace(&self, name: &str) -> bool {
        self.approval(name)
            .is_some_and(ServerApproval::is_of_workspace)
    }

    /// Returns the approval that jp still has to ask for, if any. Answers and approvals from before count.
    fn find_pending(&self, session: &Session, name: &str) -> Option<&ServerApproval> {
        let approval = self.approval(name)?;
        let mut answers = self.answers();
        if answers.contains_key(name) {
            return None;
        }
        let approvals = Approvals {
            is_remembered: session.workspace.trust().contains(&approval.text),
            is_yes: session.options.yes,
            answer: None,
        };
        if approval.decide(approvals) == Decision::Allowed {
            // `may_start` only knows the answers of this command.
            answers.insert(name.to_owned(), true);
            return None;
        }
        Some(approval)
    }

    /// Returns whether a server may start, as far as the user has decided.
    pub(crate) fn may_start(&self, name: &str) -> bool {
        let approvals = Approvals {
            answer: self.answers().get(name).copied(),
            ..Approvals::default()
        };
        self.approval(name)
            .is_none_or(|approval| approval.decide(approvals) == Decision::Allowed)
    }

    /// Makes the error for a server that the user has not approved.
    pub(crate) fn not_approved(&self, name: &str) -> Refusal {
        Refusal::NotApproved {
            server: name.to_owned(),
            why: self
                .approval(name)
                .map_or("it is not configured", ServerApproval::reason),
        }
    }

    fn approval(&self, name: &str) -> Option<&ServerApproval> {
        self.known.get(name)?.approval.as_ref()
    }
}

/// Asks the user whether a server may start. If no one can be asked, it may not, and a notice says so.
fn ask_to_start(
    session: &Session,
    name: &str,
    approval: &ServerApproval,
) -> Result<bool, SessionError> {
    let intro = match approval.is_of_workspace() {
        true => format!("The workspace configures the MCP server `{name}`:"),
        false => format!("Your MCP server `{name}` runs a file of the workspace:"),
    };
    let answer = session.confirm(Some(&intro), &approval.lines, "Start it?")?;
    if answer.is_none() {
        session.person.tell(Notice::ServerNeedsApproval {
            server: name.to_owned(),
            reason: approval.reason(),
        });
    }
    Ok(answer.unwrap_or(false))
}

impl ServerEntry<'_> {
    /// Returns the approval that the server needs, if the workspace has a part in it.
    ///
    /// A command in the user's own configuration is older than this workspace, and may name one of
    /// its files by accident.
    pub(crate) fn approval(
        &self,
        session: &Session,
        server: &ServerConfig,
    ) -> Option<ServerApproval> {
        // One setting of the workspace makes the whole entry its own: a harmless one can change what others do.
        let key = format!("providers.mcp.{}", self.name);
        let origin = Origin::least_trusted(self.config.contributors(&key));
        // If a script makes no difference, jp needn't look for any.
        if may_start(origin, true) {
            return None;
        }
        let path = search_path(server);
        // The workspace may set `PATH` itself, so no directory in it proves that a program is the user's.
        let search = match origin {
            Origin::Workspace => SearchPath::Any,
            _ => SearchPath::Users,
        };
        let scripts = find_scripts(session, server, path.as_deref().map(search));
        let runs_script = !scripts.is_empty();
        if may_start(origin, runs_script) {
            return None;
        }
        let settings = serde_json::to_string(self.settings).unwrap_or_default();
        let mut lines = self.lines();
        lines.extend(scripts.iter().map(|script| {
            format!(
                "{} is a file of the workspace; you approve its current content",
                script.word
            )
        }));
        Some(ServerApproval {
            text: format!(
                "MCP server {}: {settings}{}",
                self.name,
                describe_content(&scripts)
            ),
            lines,
            origin,
            effect: Effect::StartServer { runs_script },
        })
    }

    /// Returns a line for each setting, with its layer if the workspace sets it.
    fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for Entry { key, value, layer } in self.config.entries() {
            let parts: Vec<&str> = key.parts().collect();
            let ["providers", "mcp", name, fields @ ..] = &*parts else {
                continue;
            };
            if *name != self.name {
                continue;
            }
            // A prompt may be recorded or seen by others, and the user knows the values that they set.
            let may_be_secret = matches!(fields, ["headers" | "environment", ..]);
            let field = fields.join(".");
            let value = without_credentials(&value.to_string());
            let is_of_workspace = matches!(layer, Layer::Workspace { .. });
            lines.push(match is_of_workspace {
                true => format!("{field} = {value} ({layer})"),
                false if may_be_secret => format!("{field}, as you set it"),
                false => format!("{field} = {value}"),
            });
        }
        lines
    }
}

/// Returns whether a server may start without any approval.
fn may_start(origin: Origin, runs_script: bool) -> bool {
    decide_unapproved(origin, Effect::StartServer { runs_script }) == Decision::Allowed
}

/// Returns the files of the workspace that the command names.
fn find_scripts(
    session: &Session,
    server: &ServerConfig,
    path: Option<SearchPath<'_>>,
) -> Vec<Script> {
    let Transport::Stdio(Program {
        program, arguments, ..
    }) = &server.transport
    else {
        return Vec::new();
    };
    CommandWords { program, arguments }.scripts(session.workspace.root(), path)
}

/// Returns the `PATH` in which the system looks up the server's program.
fn search_path(server: &ServerConfig) -> Option<OsString> {
    let Transport::Stdio(Program { environment, .. }) = &server.transport else {
        return None;
    };
    environment
        .get("PATH")
        .map(OsString::from)
        .or_else(|| env::var_os("PATH"))
}
