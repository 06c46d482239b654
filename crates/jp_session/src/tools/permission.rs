//! Whether a tool runs unasked, and whose word that takes.
//!
//! A workspace can come from anywhere, so what it lets a tool do beyond asking counts only once the person agreed to
//! it: that a tool runs unattended, that a command of the workspace's does, and who answers its questions but the
//! person.

use std::{env, path::Path};

use crate::{
    scripts::{CommandWords, Script, SearchPath, as_they_are},
    session::Setup,
    text::quoted,
    tools::settings::{ALL, Settings},
    trust::{Approvals, Decision, Effect, Origin, decide, decide_unapproved},
};
use jp_config::RunMode;
use jp_turn::{Answerer, Permission, Source, Tool};
use serde_json::Value;

/// The reason for a tool's permission.
#[derive(Debug, Default)]
pub(crate) struct Settled {
    /// What the person agrees to with the first call that they allow, if they have not yet.
    pub(crate) agreement: Option<String>,
    /// Whether the tool asks because of that.
    pub(crate) is_untrusted: bool,
    /// Whether it would ask without `--yes`.
    pub(crate) is_raised: bool,
}

/// Gives a tool its permission.
pub(crate) fn settle(tool: &mut Tool, setup: Setup<'_>) -> Settled {
    let Setup { session, config } = setup;
    let name = tool.name.clone();
    let settings = Settings::of(&name, config);
    let wanted = wanted(tool, settings);
    let gains = wanted == Permission::Unattended && tool.permission != Permission::Unattended;
    let root = session.workspace.root();
    let runs_unattended = gains && needs_approval(tool, settings, root);
    let answers = answers(tool, settings);
    let yes = Approvals {
        is_yes: session.options.yes,
        ..Approvals::default()
    };
    tool.permission = wanted;
    let mut settled = Settled::default();
    let call = Effect::CallTool(wanted);
    if wanted == Permission::Ask && decide(Origin::Model, call, yes) == Decision::Allowed {
        tool.permission = Permission::Unattended;
        settled.is_raised = true;
    }
    if !runs_unattended && answers.is_empty() {
        return settled;
    }
    let text = text(tool, runs_unattended, &answers, root);
    let remembered = Approvals {
        is_remembered: session.workspace.trust().contains(&text),
        ..Approvals::default()
    };
    // One approval covers both, under the stricter rule of what the workspace alone says.
    let effect = match runs_unattended {
        true => Effect::RunUnattended {
            is_shaped_by_workspace: true,
        },
        false => Effect::AnswerQuestion,
    };
    if decide(Origin::Workspace, effect, remembered) == Decision::Allowed {
        return settled;
    }
    if decide(Origin::Workspace, effect, yes) == Decision::Allowed {
        return Settled {
            is_raised: settled.is_raised || runs_unattended,
            ..settled
        };
    }
    if runs_unattended {
        tool.permission = Permission::Ask;
    }
    for (id, _) in answers {
        tool.questions.insert(id, Answerer::User);
    }
    Settled {
        agreement: Some(text),
        is_untrusted: runs_unattended,
        ..settled
    }
}

/// Returns the permission to run a program again for its output, which passes that of a tool as one that asks does.
pub(crate) fn of_programs(tool: &Tool, setup: Setup<'_>) -> Permission {
    let mut asking = Tool {
        permission: Permission::Ask,
        ..tool.clone()
    };
    settle(&mut asking, setup);
    asking.permission
}

/// Returns what the configuration says; jp's own readers run unattended unless something is said of them by name.
fn wanted(tool: &Tool, settings: Settings<'_>) -> Permission {
    let all = settings.all.and_then(|all| all.run);
    let is_denied_by_person =
        all == Some(RunMode::Deny) && !Settings::of(ALL, settings.config).is_workspaces(&["run"]);
    match settings.own.and_then(|own| own.run) {
        Some(_) if is_denied_by_person && !settings.may_override_user("run") => Permission::Deny,
        Some(run) => permission(run),
        None if tool.permission == Permission::Unattended => Permission::Unattended,
        None => all.map_or(tool.permission, permission),
    }
}

fn permission(run: RunMode) -> Permission {
    match run {
        RunMode::Ask => Permission::Ask,
        RunMode::Unattended => Permission::Unattended,
        RunMode::Deny => Permission::Deny,
    }
}

/// Returns whether running unattended needs the user's approval.
fn needs_approval(tool: &Tool, settings: Settings<'_>, root: &Path) -> bool {
    let is_own = settings.own.is_some_and(|own| own.run.is_some());
    let said = if is_own {
        settings
    } else {
        Settings::of(ALL, settings.config)
    };
    let origin = Origin::from(said.layer(&["run"]));
    // For other origins it makes no difference, and looking for scripts reads files.
    let is_shaped_by_workspace = origin.predates_workspace()
        && (settings.has_of_workspace(&PARTS) || !find_scripts(tool, root).is_empty());
    let effect = Effect::RunUnattended {
        is_shaped_by_workspace,
    };
    decide_unapproved(origin, effect) != Decision::Allowed
}

/// What of a tool decides about what runs.
const PARTS: [&str; 9] = [
    "enable",
    "run",
    "source",
    "command",
    "parameters",
    "questions",
    "options",
    "stateful",
    "keep",
];

/// Returns the files of the workspace that a tool's command names.
fn find_scripts(tool: &Tool, root: &Path) -> Vec<Script> {
    let Source::Local(command) = &tool.source else {
        return Vec::new();
    };
    let Some((program, arguments)) = command.words.split_first() else {
        return Vec::new();
    };
    CommandWords { program, arguments }
        .scripts(root, env::var_os("PATH").as_deref().map(SearchPath::Any))
}

/// Returns the questions that the workspace has answered in the person's place, and how.
fn answers(tool: &Tool, settings: Settings<'_>) -> Vec<(String, String)> {
    let answered = tool.questions.iter().filter_map(|(id, answerer)| {
        let (field, how) = match answerer {
            Answerer::Fixed(answer) => ("answer", answer.to_string()),
            Answerer::Assistant => ("target", "whatever the model says".to_owned()),
            Answerer::User => return None,
        };
        let origin = Origin::from(settings.layer(&["questions", id, field]));
        let decision = decide_unapproved(origin, Effect::AnswerQuestion);
        (decision != Decision::Allowed).then(|| (id.clone(), how))
    });
    answered.collect()
}

/// Says all that is agreed to: where any of it changes, the person is asked again.
fn text(tool: &Tool, runs_unattended: bool, answers: &[(String, String)], root: &Path) -> String {
    let mut text = format!("tool {}", tool.name);
    if runs_unattended {
        text += ", unattended";
    }
    if let Source::Local(command) = &tool.source {
        let words: Vec<_> = command.words.iter().map(|word| quoted(word)).collect();
        text += &format!(": {}", words.join(" "));
    }
    if let Source::Server(of) = &tool.source {
        text += &format!(": {} of the MCP server {}", of.tool, of.server);
    }
    if !tool.options.is_empty() {
        text += &format!("; options = {}", Value::Object(tool.options.clone()));
    }
    if let Some(stateful) = &tool.stateful {
        let stays = if stateful.keep {
            ", and outlives the turn"
        } else {
            ""
        };
        text += &format!("; it stays{stays}");
    }
    if runs_unattended {
        text += &as_they_are(&find_scripts(tool, root));
    }
    for (id, how) in answers {
        text += &format!("; {id} = {how}");
    }
    text
}
