//! The approval that a server needs before it starts, if the workspace configures it or it runs a
//! file of the workspace.

use std::{env, ffi::OsString};

use crate::{
    error::SessionError,
    notice::Notice,
    scripts::{CommandWords, Script, SearchPath, as_they_are},
    servers::{Reading, Refusal, Servers},
    session::Session,
    text::without_credentials,
    trust::{Approvals, Decision, Effect, Origin, decide, decide_unapproved},
};
use jp_config::{Entry, Layer};
use jp_mcp::{Program, ServerConfig, Transport};

/// All that a server is.
#[derive(Debug)]
pub(crate) struct Agreement {
    /// What is remembered: where any of it changes, the person is asked again.
    text: String,
    /// The same for people, a line for each setting.
    lines: Vec<String>,
    /// Who configures it: the workspace, in part at least, or the user's file.
    origin: Origin,
    /// What starting it amounts to.
    effect: Effect,
}

impl Agreement {
    /// Says what the workspace has to do with the server.
    fn why(&self) -> &'static str {
        match self.is_configured() {
            true => "the workspace configures it",
            false => "it runs a file of the workspace",
        }
    }

    /// Returns whether the workspace configures any of it. If not, the server is the user's and runs
    /// a file of the workspace.
    fn is_configured(&self) -> bool {
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
    pub fn agreed(&self, session: &Session, name: &str) -> Result<bool, SessionError> {
        let Some(agreement) = self.open(session, name) else {
            return Ok(self.may_start(name));
        };
        let is_agreed = self.asked(session, name, agreement)?;
        if is_agreed {
            session.remember_agreed([agreement.text.as_str()]);
        }
        self.said().insert(name.to_owned(), is_agreed);
        Ok(is_agreed)
    }

    /// Returns whether a server may be started without a question now: nobody is asked.
    pub(crate) fn is_agreed(&self, session: &Session, name: &str) -> bool {
        self.open(session, name).is_none() && self.may_start(name)
    }

    /// Returns whether the workspace has a part in how a server is configured.
    pub(crate) fn is_workspaces(&self, name: &str) -> bool {
        self.agreement(name).is_some_and(Agreement::is_configured)
    }

    /// Returns what the user still has to be asked about, if anything. An earlier answer counts.
    fn open(&self, session: &Session, name: &str) -> Option<&Agreement> {
        let agreement = self.agreement(name)?;
        let mut said = self.said();
        if said.contains_key(name) {
            return None;
        }
        let approvals = Approvals {
            is_remembered: session.workspace.trust().contains(&agreement.text),
            is_yes: session.options.yes,
            answer: None,
        };
        if agreement.decide(approvals) == Decision::Allowed {
            said.insert(name.to_owned(), true);
            return None;
        }
        Some(agreement)
    }

    fn asked(
        &self,
        session: &Session,
        name: &str,
        agreement: &Agreement,
    ) -> Result<bool, SessionError> {
        let what = match agreement.is_configured() {
            true => format!("The workspace configures the MCP server `{name}`:"),
            false => format!("Your MCP server `{name}` runs a file of the workspace:"),
        };
        let approved = session.confirm(Some(&what), &agreement.lines, "Start it?")?;
        if approved.is_none() {
            session.person.tell(Notice::ServerNeedsApproval {
                server: name.to_owned(),
                reason: agreement.why(),
            });
        }
        Ok(approved.unwrap_or(false))
    }

    pub(crate) fn may_start(&self, name: &str) -> bool {
        let approvals = Approvals {
            answer: self.said().get(name).copied(),
            ..Approvals::default()
        };
        self.agreement(name)
            .is_none_or(|agreement| agreement.decide(approvals) == Decision::Allowed)
    }

    /// Says why a server is not started that nobody agreed to.
    pub(crate) fn not_agreed(&self, name: &str) -> Refusal {
        let why = self
            .agreement(name)
            .map_or("it is not configured", Agreement::why);
        Refusal::NotAgreed {
            server: name.to_owned(),
            why,
        }
    }

    fn agreement(&self, name: &str) -> Option<&Agreement> {
        self.known.get(name)?.agreement.as_ref()
    }
}

impl Reading<'_> {
    /// Returns what the user has to approve, if the workspace has a part in the server.
    ///
    /// A command in the user's own configuration is older than this workspace, and may name one of
    /// its files by accident.
    pub(crate) fn agreement(&self, session: &Session, server: &ServerConfig) -> Option<Agreement> {
        let key = format!("providers.mcp.{}", self.name);
        let layers = self.config.contributors(&key);
        let origin = Origin::least_trusted(layers);
        // If a script makes no difference, none is looked for.
        if may_start(origin, true) {
            return None;
        }
        let path = path_of(server);
        let search = match origin {
            Origin::Workspace => SearchPath::Any,
            _ => SearchPath::Users,
        };
        let scripts = find_scripts(session, server, path.as_deref().map(search));
        if may_start(origin, !scripts.is_empty()) {
            return None;
        }
        let settings = serde_json::to_string(self.settings).unwrap_or_default();
        let mut text = format!("MCP server {}: {settings}", self.name);
        let mut lines = self.lines();
        text += &as_they_are(&scripts);
        let line = |script: &Script| {
            format!(
                "{} is a file of the workspace; you approve its current content",
                script.word
            )
        };
        lines.extend(scripts.iter().map(line));
        Some(Agreement {
            text,
            lines,
            origin,
            effect: Effect::StartServer {
                runs_script: !scripts.is_empty(),
            },
        })
    }

    /// Returns a line for each setting, with the layer of what the workspace says.
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
            let may_be_secret = matches!(fields, ["headers" | "environment", ..]);
            let field = fields.join(".");
            let value = without_credentials(&value.to_string());
            lines.push(match is_workspaces(layer) {
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

fn is_workspaces(layer: &Layer) -> bool {
    matches!(layer, Layer::Workspace { .. })
}

/// Finds the files of the workspace that the command names.
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

/// Returns the `PATH` that the server's program is looked up in.
fn path_of(server: &ServerConfig) -> Option<OsString> {
    let Transport::Stdio(Program { environment, .. }) = &server.transport else {
        return None;
    };
    environment
        .get("PATH")
        .map(OsString::from)
        .or_else(|| env::var_os("PATH"))
}
