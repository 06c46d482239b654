//! The decision for each configuration key and each kind of event.
//!
//! Read the two tables from left to right: the key or event, what it can cause, and whether jp allows that (`yes`), asks
//! the user (`ask`) or refuses (`no`) for each origin or approval. The functions before the tables list the effects.

use std::fmt::Write as _;

use super::*;
use jp_config::Layers;
use jp_conversation::{Event, EventKind};
use serde_json::{Map, Value, json};

/// The page that lists exactly the keys that exist. A test of jp_config compares them.
const SETTINGS: &str = include_str!("../../../../docs/settings.md");

/// The effect of a row in words, and as the rules see it.
type Row = (&'static str, Effect);

const SHAPE: Row = ("shape the conversation", Effect::ShapeConversation);
const CONFIGURE: Row = ("configure", Effect::Configure);
const START: Row = (
    "start the server",
    Effect::StartServer { runs_script: false },
);

/// Returns the configuration keys of the page, without whole tables.
fn keys() -> Vec<&'static str> {
    let entries = SETTINGS.lines().filter_map(|line| {
        let (key, _) = line.strip_prefix("- `")?.split_once("` (")?;
        key.contains('.').then_some(key)
    });
    entries.collect()
}

/// Returns the effects of a key, first the effect of setting it at all.
///
/// No arm covers other keys, so a new key fails the test until its effects are listed here.
fn effects_of_key(key: &str) -> Vec<Row> {
    let parts: Vec<&str> = key.split('.').collect();
    match &*parts {
        ["assistant", "model", "id"]
        | ["assistant", "system_prompt"]
        | [
            "conversation",
            "deduplication",
            "enabled" | "min_bytes" | "lookback_turns" | "ranges" | "diffs",
        ]
        | ["conversation", "superseded", "policy" | "min_tokens"]
        | ["conversation", "attachments"]
        | [
            "conversation",
            "attachments[]",
            "type" | "refresh" | "description",
        ]
        | ["conversation", "attachments[]", "params", "NAME"] => vec![SHAPE],
        ["conversation", "attachments[]", "path"] => {
            let mut rows = vec![SHAPE];
            rows.extend(resolving(Occasion::Attach));
            rows.extend(private_addresses());
            rows
        }
        [
            "conversation",
            "attachment",
            "max_bytes" | "max_total_bytes" | "max_files",
        ]
        | [
            "conversation",
            "attachment",
            "timeout_secs" | "secrets" | "external_key",
        ]
        | ["conversation", "read_only_paths"] => vec![CONFIGURE],
        ["conversation", "tools", "NAME", field @ ..] => effects_of_tool(key, field),
        ["providers", "aliases", "NAME"] => naming(),
        ["providers", "llm", "NAME", field @ ..] => effects_of_provider(key, field),
        ["providers", "mcp", "NAME", field @ ..] => effects_of_server(key, field),
        _ => panic!("what can `{key}` cause? add it to effects_of_key"),
    }
}

fn effects_of_tool(key: &str, field: &[&str]) -> Vec<Row> {
    let shaped = |is_shaped_by_workspace| Effect::RunUnattended {
        is_shaped_by_workspace,
    };
    let override_user = ("override your refusal", Effect::OverrideUsersRefusal);
    match field {
        ["enable"] => vec![("switch it on", Effect::SwitchToolOn), override_user],
        ["run"] => vec![
            CONFIGURE,
            ("run unattended", shaped(false)),
            ("the same, if the workspace shapes the tool", shaped(true)),
            override_user,
        ],
        ["questions", "ID", "target" | "answer"] => {
            vec![CONFIGURE, ("answer for you", Effect::AnswerQuestion)]
        }
        [
            "source" | "command" | "summary" | "description" | "timeout_secs" | "max_output_bytes",
        ]
        | ["deduplicate" | "stateful" | "actions" | "keep"]
        | ["parameters", "PARAMETER"]
        | ["options", "OPTION"] => vec![CONFIGURE],
        _ => panic!("what can `{key}` cause? add it to effects_of_tool"),
    }
}

fn effects_of_provider(key: &str, field: &[&str]) -> Vec<Row> {
    let own = Redirect {
        has_users_namesake: false,
        is_built_in: false,
        is_local: false,
        is_users: false,
        is_loopback: false,
        model: ModelChoice::Other,
    };
    let built_in = Redirect {
        is_built_in: true,
        ..own
    };
    let chosen = Redirect {
        model: ModelChoice::Workspace,
        ..built_in
    };
    let variable = |is_api_key, is_of_other| Effect::SendVariable {
        is_api_key,
        is_of_other,
    };
    match field {
        ["base_url"] => vec![
            CONFIGURE,
            ("locate a new provider", Effect::Redirect(own)),
            ("redirect a known provider", Effect::Redirect(built_in)),
            ("the same, with a model of it", Effect::Redirect(chosen)),
            ("send your key there", Effect::SendKey),
        ],
        ["api_key_env"] => vec![
            CONFIGURE,
            ("choose the usual key", Effect::ChooseKey { is_usual: true }),
            ("choose another key", Effect::ChooseKey { is_usual: false }),
            ("send an API key", variable(true, false)),
            ("send another provider's", variable(true, true)),
            ("send any variable", variable(false, false)),
        ],
        ["api_key_command"] => vec![CONFIGURE, ("run a command", Effect::RunKeyCommand)],
        ["idle_timeout_secs" | "max_response_bytes"]
        | [
            "models",
            "MODEL",
            "images" | "pdf" | "files" | "audio" | "binary_results",
        ]
        | [
            "models",
            "MODEL",
            "schema" | "tools" | "context_tokens" | "max_output_tokens",
        ] => {
            vec![CONFIGURE]
        }
        _ => panic!("what can `{key}` cause? add it to effects_of_provider"),
    }
}

fn effects_of_server(key: &str, field: &[&str]) -> Vec<Row> {
    let with_script = (
        "the same, with a workspace script",
        Effect::StartServer { runs_script: true },
    );
    match field {
        ["command" | "arguments"] => vec![START, with_script],
        ["type" | "variables" | "url" | "token_env" | "revision" | "tools" | "optional"]
        | ["startup_timeout_secs" | "timeout_secs"]
        | ["environment", "VARIABLE"]
        | ["headers", "HEADER"] => vec![START],
        _ => panic!("what can `{key}` cause? add it to effects_of_server"),
    }
}

fn naming() -> Vec<Row> {
    let name = |is_taken, has_slash| Effect::NameModel {
        is_taken,
        has_slash,
    };
    vec![
        ("name a model", name(false, false)),
        ("rename a model of a file", name(true, false)),
        ("name it PROVIDER/NAME", name(false, true)),
    ]
}

fn resolving(occasion: Occasion) -> Vec<Row> {
    let resolve = |reached| Effect::Resolve { reached, occasion };
    let verbs = match occasion {
        Occasion::Attach => [
            "attach a workspace file",
            "attach a page",
            "attach a file outside",
            "attach a command's output",
            "attach from your MCP server",
            "attach from another server",
        ],
        Occasion::Check => [
            "check a workspace file",
            "check a page",
            "check a file outside",
            "check a command's output",
            "check with your MCP server",
            "check with another server",
        ],
        Occasion::Refresh => [
            "refresh a workspace file",
            "refresh a page",
            "refresh a file outside",
            "refresh a command's output",
            "refresh from your MCP server",
            "refresh from another server",
        ],
    };
    let reached = [
        Reached::Workspace,
        Reached::Page,
        Reached::Outside,
        Reached::Command,
        Reached::UsersServer,
        Reached::OtherServer,
    ];
    verbs.into_iter().zip(reached.map(resolve)).collect()
}

fn private_addresses() -> Vec<Row> {
    let page = Effect::ResolveAsUser(Reached::Page);
    let file = Effect::ResolveAsUser(Reached::Workspace);
    vec![
        ("reach a private address", page),
        ("follow a link outside", file),
    ]
}

fn word(decision: Decision) -> &'static str {
    match decision {
        Decision::Allowed => "yes",
        Decision::Ask => "ask",
        Decision::Refused => "no",
    }
}

/// Returns the header of a table. A column of decisions has room for four letters.
fn header(subject: &str, columns: &str) -> String {
    format!("{subject:<51} {:<43} {columns}", "effect")
}

/// Returns a line of a table.
fn line(key: &str, what: &str, decisions: &[Decision]) -> String {
    let mut line = format!("{key:<51} {what:<43}");
    for decision in decisions {
        write!(line, " {:<4}", word(*decision)).unwrap();
    }
    line.trim_end().to_owned()
}

#[test]
fn each_configuration_key_has_a_decision_for_each_origin() {
    let origins = [
        Origin::Workspace,
        Origin::History,
        Origin::UsersFile,
        Origin::Environment,
        Origin::CommandLine,
    ];
    let keys = keys();
    assert!(keys.len() > 60, "{keys:?}");
    let mut table = vec![header("key", "work hist file env  cmd")];
    for key in keys {
        let mut shown = key;
        for (what, effect) in effects_of_key(key) {
            let decisions = origins.map(|origin| decide_unapproved(origin, effect));
            table.push(line(shown, what, &decisions));
            shown = "";
        }
    }
    // By origin: workspace, history, the user's file, environment, command line.
    insta::assert_snapshot!(table.join("\n"), @r"
    key                                                 effect                                      work hist file env  cmd
    assistant.model.id                                  shape the conversation                      yes  yes  yes  yes  yes
    assistant.system_prompt                             shape the conversation                      yes  yes  yes  yes  yes
    providers.aliases.NAME                              name a model                                yes  yes  yes  yes  yes
                                                        rename a model of a file                    yes  no   yes  yes  yes
                                                        name it PROVIDER/NAME                       no   no   no   no   no
    providers.llm.NAME.base_url                         configure                                   yes  no   yes  yes  yes
                                                        locate a new provider                       yes  no   yes  yes  yes
                                                        redirect a known provider                   no   no   yes  yes  yes
                                                        the same, with a model of it                yes  no   yes  yes  yes
                                                        send your key there                         no   no   yes  yes  yes
    providers.llm.NAME.api_key_env                      configure                                   yes  no   yes  yes  yes
                                                        choose the usual key                        yes  no   yes  yes  yes
                                                        choose another key                          no   no   yes  yes  yes
                                                        send an API key                             yes  no   yes  yes  yes
                                                        send another provider's                     no   no   yes  yes  yes
                                                        send any variable                           no   no   yes  yes  yes
    providers.llm.NAME.api_key_command                  configure                                   yes  no   yes  yes  yes
                                                        run a command                               no   no   yes  yes  yes
    providers.llm.NAME.idle_timeout_secs                configure                                   yes  no   yes  yes  yes
    providers.llm.NAME.max_response_bytes               configure                                   yes  no   yes  yes  yes
    providers.llm.NAME.models.MODEL.images              configure                                   yes  no   yes  yes  yes
    providers.llm.NAME.models.MODEL.pdf                 configure                                   yes  no   yes  yes  yes
    providers.llm.NAME.models.MODEL.files               configure                                   yes  no   yes  yes  yes
    providers.llm.NAME.models.MODEL.audio               configure                                   yes  no   yes  yes  yes
    providers.llm.NAME.models.MODEL.binary_results      configure                                   yes  no   yes  yes  yes
    providers.llm.NAME.models.MODEL.schema              configure                                   yes  no   yes  yes  yes
    providers.llm.NAME.models.MODEL.tools               configure                                   yes  no   yes  yes  yes
    providers.llm.NAME.models.MODEL.context_tokens      configure                                   yes  no   yes  yes  yes
    providers.llm.NAME.models.MODEL.max_output_tokens   configure                                   yes  no   yes  yes  yes
    conversation.attachments                            shape the conversation                      yes  yes  yes  yes  yes
    conversation.attachments[].type                     shape the conversation                      yes  yes  yes  yes  yes
    conversation.attachments[].path                     shape the conversation                      yes  yes  yes  yes  yes
                                                        attach a workspace file                     yes  yes  yes  yes  yes
                                                        attach a page                               yes  yes  yes  yes  yes
                                                        attach a file outside                       no   no   yes  yes  yes
                                                        attach a command's output                   ask  ask  yes  yes  yes
                                                        attach from your MCP server                 ask  ask  yes  yes  yes
                                                        attach from another server                  yes  yes  yes  yes  yes
                                                        reach a private address                     no   no   yes  yes  yes
                                                        follow a link outside                       no   no   yes  yes  yes
    conversation.attachments[].params.NAME              shape the conversation                      yes  yes  yes  yes  yes
    conversation.attachments[].refresh                  shape the conversation                      yes  yes  yes  yes  yes
    conversation.attachments[].description              shape the conversation                      yes  yes  yes  yes  yes
    conversation.attachment.max_bytes                   configure                                   yes  no   yes  yes  yes
    conversation.attachment.max_total_bytes             configure                                   yes  no   yes  yes  yes
    conversation.attachment.max_files                   configure                                   yes  no   yes  yes  yes
    conversation.attachment.timeout_secs                configure                                   yes  no   yes  yes  yes
    conversation.attachment.secrets                     configure                                   yes  no   yes  yes  yes
    conversation.attachment.external_key                configure                                   yes  no   yes  yes  yes
    conversation.deduplication.enabled                  shape the conversation                      yes  yes  yes  yes  yes
    conversation.deduplication.min_bytes                shape the conversation                      yes  yes  yes  yes  yes
    conversation.deduplication.lookback_turns           shape the conversation                      yes  yes  yes  yes  yes
    conversation.deduplication.ranges                   shape the conversation                      yes  yes  yes  yes  yes
    conversation.deduplication.diffs                    shape the conversation                      yes  yes  yes  yes  yes
    conversation.superseded.policy                      shape the conversation                      yes  yes  yes  yes  yes
    conversation.superseded.min_tokens                  shape the conversation                      yes  yes  yes  yes  yes
    conversation.tools.NAME.enable                      switch it on                                yes  no   yes  yes  yes
                                                        override your refusal                       no   yes  yes  yes  yes
    conversation.tools.NAME.run                         configure                                   yes  no   yes  yes  yes
                                                        run unattended                              ask  no   yes  yes  yes
                                                        the same, if the workspace shapes the tool  ask  no   ask  yes  yes
                                                        override your refusal                       no   yes  yes  yes  yes
    conversation.tools.NAME.source                      configure                                   yes  no   yes  yes  yes
    conversation.tools.NAME.command                     configure                                   yes  no   yes  yes  yes
    conversation.tools.NAME.summary                     configure                                   yes  no   yes  yes  yes
    conversation.tools.NAME.description                 configure                                   yes  no   yes  yes  yes
    conversation.tools.NAME.parameters.PARAMETER        configure                                   yes  no   yes  yes  yes
    conversation.tools.NAME.questions.ID.target         configure                                   yes  no   yes  yes  yes
                                                        answer for you                              ask  no   yes  yes  yes
    conversation.tools.NAME.questions.ID.answer         configure                                   yes  no   yes  yes  yes
                                                        answer for you                              ask  no   yes  yes  yes
    conversation.tools.NAME.options.OPTION              configure                                   yes  no   yes  yes  yes
    conversation.tools.NAME.timeout_secs                configure                                   yes  no   yes  yes  yes
    conversation.tools.NAME.max_output_bytes            configure                                   yes  no   yes  yes  yes
    conversation.tools.NAME.deduplicate                 configure                                   yes  no   yes  yes  yes
    conversation.tools.NAME.stateful                    configure                                   yes  no   yes  yes  yes
    conversation.tools.NAME.actions                     configure                                   yes  no   yes  yes  yes
    conversation.tools.NAME.keep                        configure                                   yes  no   yes  yes  yes
    conversation.read_only_paths                        configure                                   yes  no   yes  yes  yes
    providers.mcp.NAME.type                             start the server                            ask  no   yes  yes  yes
    providers.mcp.NAME.command                          start the server                            ask  no   yes  yes  yes
                                                        the same, with a workspace script           ask  no   ask  yes  yes
    providers.mcp.NAME.arguments                        start the server                            ask  no   yes  yes  yes
                                                        the same, with a workspace script           ask  no   ask  yes  yes
    providers.mcp.NAME.environment.VARIABLE             start the server                            ask  no   yes  yes  yes
    providers.mcp.NAME.variables                        start the server                            ask  no   yes  yes  yes
    providers.mcp.NAME.url                              start the server                            ask  no   yes  yes  yes
    providers.mcp.NAME.headers.HEADER                   start the server                            ask  no   yes  yes  yes
    providers.mcp.NAME.token_env                        start the server                            ask  no   yes  yes  yes
    providers.mcp.NAME.revision                         start the server                            ask  no   yes  yes  yes
    providers.mcp.NAME.startup_timeout_secs             start the server                            ask  no   yes  yes  yes
    providers.mcp.NAME.timeout_secs                     start the server                            ask  no   yes  yes  yes
    providers.mcp.NAME.tools                            start the server                            ask  no   yes  yes  yes
    providers.mcp.NAME.optional                         start the server                            ask  no   yes  yes  yes
    ");
}

#[test]
fn history_keeps_exactly_the_keys_that_it_may_set() {
    for key in keys() {
        let (_, effect) = effects_of_key(key)[0];
        let key = key.replace("[]", "");
        let value = match &*key {
            "conversation.tools.NAME.enable" => json!(true),
            _ => json!("word"),
        };
        let pointer = format!("/{}", key.replace('.', "/"));
        let nested = key
            .rsplit('.')
            .fold(value, |value, part| json!({ part: value }));
        let Value::Object(config) = nested else {
            panic!("{key}")
        };
        let kept = Value::Object(history::keep_allowed(&config, &|_| false));
        let mut aliases = Map::new();
        history::add_aliases(&config, &Layers::new(), &mut aliases);
        let is_kept = kept.pointer(&pointer).is_some() || aliases.contains_key("NAME");
        let is_allowed = decide_unapproved(Origin::History, effect) == Decision::Allowed;
        assert_eq!(is_kept, is_allowed, "{key}");
    }
}

/// Returns the effects of a history's event when the conversation continues.
///
/// The match names every kind, so a new one doesn't compile until its effects are listed here.
fn effects_of_event(kind: &EventKind) -> Vec<Row> {
    match kind {
        EventKind::ConfigDelta(_) => {
            let mut rows = vec![SHAPE, CONFIGURE, ("switch a tool on", Effect::SwitchToolOn)];
            rows.extend(naming());
            rows.extend(resolving(Occasion::Attach));
            rows.extend(private_addresses());
            rows
        }
        // It names the declarations of its snapshots, which jp checks and refreshes.
        EventKind::ChatRequest(_) => {
            let mut rows = resolving(Occasion::Check);
            rows.extend(resolving(Occasion::Refresh));
            rows
        }
        // jp sends them to the model, or they decide what it sends. No tool runs again.
        EventKind::TurnStart
        | EventKind::ChatResponse(_)
        | EventKind::ToolCallRequest(_)
        | EventKind::ToolCallResponse(_)
        | EventKind::InquiryRequest(_)
        | EventKind::InquiryResponse(_)
        | EventKind::Usage(_)
        | EventKind::Superseded(_)
        | EventKind::Notification(_)
        | EventKind::Compaction(_)
        | EventKind::Unknown(_) => Vec::new(),
    }
}

#[test]
fn each_kind_of_event_has_a_decision_for_each_approval() {
    let approvals = [
        Approvals::default(),
        Approvals::with_remembered(true),
        Approvals::with_yes(true),
    ];
    let kinds = [
        "turn_start",
        "chat_request",
        "chat_response",
        "tool_call_request",
        "tool_call_response",
        "inquiry_request",
        "inquiry_response",
        "config_delta",
        "usage",
        "superseded",
        "notification",
        "compaction",
        "a_kind_of_tomorrow",
    ];
    let mut table = vec![header("event", "none past --yes")];
    for kind in kinds {
        let event = json!({
            "timestamp": "2026-11-21T12:00:00Z", "type": kind, "content": "", "message": "",
            "id": "1", "name": "x", "question": {"id": "q", "text": "?", "schema": {}}, "answer": 1, "model": "a/b",
            "dropped": [], "uri": "a:b", "checksum": "0".repeat(64), "now": null,
        });
        let event = Event::from_json(&event.to_string());
        let rows = effects_of_event(&event.unwrap_or_else(|error| panic!("{kind}: {error}")).kind);
        if rows.is_empty() {
            table.push(format!("{kind:<51} nothing"));
        }
        let mut shown = kind;
        for (what, effect) in rows {
            let decisions = approvals.map(|approvals| decide(Origin::History, effect, approvals));
            table.push(line(shown, what, &decisions));
            shown = "";
        }
    }
    // By approval: none, one of this effect in the past, `--yes`.
    insta::assert_snapshot!(table.join("\n"), @r"
    event                                               effect                                      none past --yes
    turn_start                                          nothing
    chat_request                                        check a workspace file                      yes  yes  yes
                                                        check a page                                no   yes  no
                                                        check a file outside                        no   no   no
                                                        check a command's output                    no   yes  yes
                                                        check with your MCP server                  no   yes  yes
                                                        check with another server                   yes  yes  yes
                                                        refresh a workspace file                    yes  yes  yes
                                                        refresh a page                              ask  yes  ask
                                                        refresh a file outside                      no   no   no
                                                        refresh a command's output                  ask  yes  ask
                                                        refresh from your MCP server                ask  yes  ask
                                                        refresh from another server                 ask  yes  ask
    chat_response                                       nothing
    tool_call_request                                   nothing
    tool_call_response                                  nothing
    inquiry_request                                     nothing
    inquiry_response                                    nothing
    config_delta                                        shape the conversation                      yes  yes  yes
                                                        configure                                   no   no   no
                                                        switch a tool on                            no   yes  no
                                                        name a model                                yes  yes  yes
                                                        rename a model of a file                    no   no   no
                                                        name it PROVIDER/NAME                       no   no   no
                                                        attach a workspace file                     yes  yes  yes
                                                        attach a page                               yes  yes  yes
                                                        attach a file outside                       no   no   no
                                                        attach a command's output                   ask  yes  yes
                                                        attach from your MCP server                 ask  yes  yes
                                                        attach from another server                  yes  yes  yes
                                                        reach a private address                     no   yes  no
                                                        follow a link outside                       no   no   no
    usage                                               nothing
    superseded                                          nothing
    notification                                        nothing
    compaction                                          nothing
    a_kind_of_tomorrow                                  nothing
    ");
}

#[test]
fn answer_overrides_other_approvals() {
    let effect = Effect::StartServer { runs_script: false };
    for (answer, expected) in [(true, Decision::Allowed), (false, Decision::Refused)] {
        let approvals = Approvals {
            is_remembered: true,
            is_yes: true,
            answer: Some(answer),
        };
        assert_eq!(decide(Origin::Workspace, effect, approvals), expected);
    }
}

#[test]
fn permission_of_a_tool_decides_about_its_calls() {
    let yes = Approvals::with_yes(true);
    for (permission, unapproved, with_yes) in [
        (Permission::Unattended, Decision::Allowed, Decision::Allowed),
        (Permission::Ask, Decision::Ask, Decision::Allowed),
        (Permission::Deny, Decision::Refused, Decision::Refused),
    ] {
        let call = Effect::CallTool(permission);
        assert_eq!(decide_unapproved(Origin::Model, call), unapproved);
        assert_eq!(decide(Origin::Model, call, yes), with_yes);
    }
}

#[test]
fn script_of_the_workspace_needs_approval_only_in_the_users_file() {
    let start = Effect::StartServer { runs_script: true };
    for (origin, expected) in [
        (Origin::Workspace, Decision::Ask),
        (Origin::UsersFile, Decision::Ask),
        (Origin::Environment, Decision::Allowed),
        (Origin::CommandLine, Decision::Allowed),
    ] {
        assert_eq!(decide_unapproved(origin, start), expected, "{origin:?}");
    }
}

#[test]
fn table_is_as_trusted_as_its_least_trusted_layer() {
    let user = Layer::User { path: "u".into() };
    let workspace = Layer::Workspace { path: "w".into() };
    let flag = Layer::Flag {
        name: "--x".to_owned(),
    };
    let least = |layers: &[&Layer]| Origin::least_trusted(layers.iter().copied());
    assert_eq!(least(&[&flag, &user]), Origin::UsersFile);
    assert_eq!(least(&[&flag, &workspace, &user]), Origin::Workspace);
    assert_eq!(least(&[&workspace, &Layer::Conversation]), Origin::History);
    assert_eq!(least(&[]), Origin::Default);
}
