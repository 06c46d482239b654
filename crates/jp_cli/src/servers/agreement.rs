//! What a person agrees to before a server is started that the workspace has a part in.

use jp_config::{Entry, Layer};
use jp_mcp::{ServerConfig, Transport};
use jp_resource::Checksum;

use super::{Reading, Servers};
use crate::{
    error::Failure,
    output::{Tone, visible, without_credentials},
    terminal::{Extent, Terminal, quote},
    workspace::Context,
};

/// All that a server is.
#[derive(Debug)]
pub(super) struct Agreement {
    /// What is remembered: where any of it changes, the person is asked again.
    text: String,
    /// The same for people, a line for each setting.
    lines: Vec<String>,
}

impl Servers {
    /// Returns whether a server may be started; asks the person where the workspace has a part in it and they have not been
    /// asked before. To be called by whoever has the terminal, before [`Self::connect`].
    pub(crate) fn agreed(&self, context: &Context<'_>, name: &str) -> Result<bool, Failure> {
        let Some(agreement) = self.open(context, name) else { return Ok(self.may_start(name)) };
        let is_agreed = self.asked(context, name, agreement)?;
        if is_agreed {
            context.remember_agreed([agreement.text.as_str()]);
        }
        self.said().insert(name.to_owned(), is_agreed);
        Ok(is_agreed)
    }

    /// Returns whether a server may be started without a question now: nobody is asked.
    pub(crate) fn is_agreed(&self, context: &Context<'_>, name: &str) -> bool {
        self.open(context, name).is_none() && self.may_start(name)
    }

    /// Returns whether the workspace has a part in what a server is.
    pub(crate) fn is_workspaces(&self, name: &str) -> bool {
        self.agreement(name).is_some()
    }

    /// Returns what the person has yet to be asked about, if anything; what they said before is said.
    fn open(&self, context: &Context<'_>, name: &str) -> Option<&Agreement> {
        let agreement = self.agreement(name)?;
        let mut said = self.said();
        if said.contains_key(name) {
            return None;
        }
        if context.global.yes || context.workspace.trust().contains(&agreement.text) {
            said.insert(name.to_owned(), true);
            return None;
        }
        Some(agreement)
    }

    fn asked(&self, context: &Context<'_>, name: &str, agreement: &Agreement) -> Result<bool, Failure> {
        let Some(terminal) = Terminal::open(context) else {
            context.output.warn(&format!(
                "the MCP server `{name}` is not started: the workspace configures it, and there is no terminal to ask you on"
            ));
            context.output.hint("`--yes` starts it.");
            return Ok(false);
        };
        terminal.tell(Tone::Plain, &format!("The workspace configures the MCP server `{name}`:"));
        for line in &agreement.lines {
            // One line stays one: none of it passes for another setting.
            quote(&terminal, &visible(line), Extent::Whole, |_| Tone::Plain);
        }
        terminal.confirm("Start it?")
    }

    pub(super) fn may_start(&self, name: &str) -> bool {
        self.agreement(name).is_none() || self.said().get(name) == Some(&true)
    }

    fn agreement(&self, name: &str) -> Option<&Agreement> {
        self.known.get(name)?.agreement.as_ref()
    }
}

impl Reading<'_> {
    /// Returns what the person has to agree to; nothing where the workspace has no part in it.
    pub(super) fn agreement(&self, context: &Context<'_>, server: &ServerConfig) -> Option<Agreement> {
        let key = format!("providers.mcp.{}", self.name);
        let layers = self.config.contributors(&key);
        if !layers.into_iter().any(is_workspaces) {
            return None;
        }
        let settings = serde_json::to_string(self.settings).unwrap_or_default();
        let mut text = format!("MCP server {}: {settings}", self.name);
        let mut lines = self.lines();
        for (word, checksum) in scripts(context, server) {
            text += &format!("; {word} as it is now ({checksum})");
            lines.push(format!("{word} is a file of the workspace; it is agreed to as it is now"));
        }
        Some(Agreement { text, lines })
    }

    /// Returns a line for each setting, with the layer of what the workspace says.
    fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for Entry { key, value, layer } in self.config.entries() {
            let parts: Vec<&str> = key.parts().collect();
            let ["providers", "mcp", name, fields @ ..] = &*parts else { continue };
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

fn is_workspaces(layer: &Layer) -> bool {
    matches!(layer, Layer::Workspace { .. })
}

/// Finds the files of the workspace that the command names, with what they hold.
fn scripts(context: &Context<'_>, server: &ServerConfig) -> Vec<(String, Checksum)> {
    let Transport::Stdio(program) = &server.transport else { return Vec::new() };
    let root = context.workspace.root();
    let words = std::iter::once(&program.program).chain(&program.arguments);
    let script = |word: &String| {
        let path = root.join(word).canonicalize().ok()?;
        let content = (path.starts_with(root) && path.is_file()).then(|| std::fs::read(path).ok())??;
        Some((word.clone(), Checksum::of(&content)))
    };
    words.filter_map(script).collect()
}
