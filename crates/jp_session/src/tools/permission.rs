//! Decides whether a tool needs a prompt to run.
//!
//! A workspace may come from a stranger. So these settings of a workspace need the user's approval: that a tool runs
//! without a prompt, and that something other than the user answers its questions.

use std::path::Path;

use crate::{
    scripts::{CommandWords, Script, describe_content},
    session::Setup,
    text::quote_word,
    tools::settings::{ALL, Settings},
    trust::{Approvals, Decision, Effect, Origin, decide, decide_unapproved},
};
use jp_config::RunMode;
use jp_turn::{Answerer, Permission, Source, Tool};
use serde_json::Value;

/// The reasons for a tool's permission.
#[derive(Debug, Default)]
pub(crate) struct PermissionReasons {
    /// The text of the approval that the user gives with the first call that they allow, if it is missing.
    pub(crate) approval: Option<String>,
    /// The tool asks because that approval is missing.
    pub(crate) is_untrusted: bool,
    /// The tool would ask without `--yes`.
    pub(crate) is_raised: bool,
}

/// Gives a tool its permission.
pub(crate) fn settle(tool: &mut Tool, setup: Setup<'_>) -> PermissionReasons {
    let Setup { session, config } = setup;
    let name = tool.name.clone();
    let settings = Settings::new(&name, config);
    let wanted = configured_permission(tool, settings);
    // Builtin tools that only read run unattended by default, so the configuration gives them nothing new.
    let gains = wanted == Permission::Unattended && tool.permission != Permission::Unattended;
    let root = session.workspace.root();
    let runs_unattended = gains && needs_approval(tool, settings, root);
    let answers = list_untrusted_answers(tool, settings);
    let yes = Approvals::with_yes(session.options.yes);
    tool.permission = wanted;
    let mut reasons = PermissionReasons::default();
    let call = Effect::CallTool(wanted);
    if wanted == Permission::Ask && decide(Origin::Model, call, yes) == Decision::Allowed {
        tool.permission = Permission::Unattended;
        reasons.is_raised = true;
    }
    if !runs_unattended && answers.is_empty() {
        return reasons;
    }
    let text = approval_text(tool, runs_unattended, &answers, root);
    let remembered = Approvals::with_remembered(session.workspace.trust().contains(&text));
    // One approval covers both effects, so it needs the stricter rule of the two.
    let effect = match runs_unattended {
        true => Effect::RunUnattended {
            is_shaped_by_workspace: true,
        },
        false => Effect::AnswerQuestion,
    };
    if decide(Origin::Workspace, effect, remembered) == Decision::Allowed {
        return reasons;
    }
    if decide(Origin::Workspace, effect, yes) == Decision::Allowed {
        return PermissionReasons {
            is_raised: reasons.is_raised || runs_unattended,
            ..reasons
        };
    }
    // Without the approval, the tool asks before each call and the user answers its questions.
    if runs_unattended {
        tool.permission = Permission::Ask;
    }
    for (id, _) in answers {
        tool.questions.insert(id, Answerer::User);
    }
    PermissionReasons {
        approval: Some(text),
        is_untrusted: runs_unattended,
        ..reasons
    }
}

/// Returns the permission of `refresh_resource` to run a program again: that of a tool which asks by default.
pub(crate) fn program_permission(tool: &Tool, setup: Setup<'_>) -> Permission {
    let mut asking = Tool {
        permission: Permission::Ask,
        ..tool.clone()
    };
    settle(&mut asking, setup);
    asking.permission
}

/// Returns the configured permission. The settings of all tools don't apply to builtin tools that only read.
fn configured_permission(tool: &Tool, settings: Settings<'_>) -> Permission {
    let all = settings.all.and_then(|all| all.run);
    let is_denied_by_user = all == Some(RunMode::Deny)
        && !Settings::new(ALL, settings.config).is_of_workspace(&["run"]);
    match settings.own.and_then(|own| own.run) {
        Some(_) if is_denied_by_user && !settings.may_override_user("run") => Permission::Deny,
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
    let source = match settings.own.is_some_and(|own| own.run.is_some()) {
        true => settings,
        false => Settings::new(ALL, settings.config),
    };
    let origin = Origin::from(source.layer(&["run"]));
    // For other origins it makes no difference, and looking for scripts reads files.
    let is_shaped_by_workspace = origin.predates_workspace()
        && (settings.has_of_workspace(&PARTS) || !find_scripts(tool, root).is_empty());
    let effect = Effect::RunUnattended {
        is_shaped_by_workspace,
    };
    decide_unapproved(origin, effect) != Decision::Allowed
}

/// The settings of a tool that decide what runs.
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
    CommandWords { program, arguments }.scripts_in_path(root)
}

/// Returns the questions that the workspace answers instead of the user, with the answers.
fn list_untrusted_answers(tool: &Tool, settings: Settings<'_>) -> Vec<(String, String)> {
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

/// Returns the text of the approval: if any of it changes, jp asks the user again. jp stores checksums of such texts.
fn approval_text(
    tool: &Tool,
    runs_unattended: bool,
    answers: &[(String, String)],
    root: &Path,
) -> String {
    let mut text = format!("tool {}", tool.name);
    if runs_unattended {
        text += ", unattended";
    }
    if let Source::Local(command) = &tool.source {
        let words: Vec<_> = command.words.iter().map(|word| quote_word(word)).collect();
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
        text += &describe_content(&find_scripts(tool, root));
    }
    for (id, how) in answers {
        text += &format!("; {id} = {how}");
    }
    text
}
