//! `jp init`.

use crate::{
    args::Init,
    environment::Environment,
    error::{Code, Failure},
    output::Output,
};
use jp_storage::Workspace;
use serde_json::json;

const CONFIG: &str = "\
# Configuration of this workspace, shared with whoever has it; your own goes in ~/.config/jp/config.toml.
# `jp config show` lists every key with its value and where that comes from.

# [assistant.model]
# id = \"llamacpp/qwen3\"

# [conversation]
# attachments = [\"file:README.md\"]
";

/// What an interrupted jp may leave.
const IGNORED: &str = ".tmp-*\n";

pub(crate) fn run(
    init: &Init,
    environment: &Environment,
    output: &Output,
) -> Result<Code, Failure> {
    let directory = match &init.directory {
        Some(directory) => environment.surroundings.current_dir.join(directory),
        None => environment.surroundings.current_dir.clone(),
    };
    let made = Workspace::init(
        &directory,
        &[
            (".id", &format!("{}\n", new_id())),
            ("config.toml", CONFIG),
            (".gitignore", IGNORED),
        ],
    )?;
    let shown = environment.surroundings.display(&directory);
    if output.is_json() {
        let root = std::fs::canonicalize(&directory)
            .map_err(|error| Failure::from_system(&format!("read {shown}"), error))?;
        output.json(&json!({"root": root, "made": made}))?;
    } else if made {
        output.status(&format!("{shown} is a workspace now."));
        output.hint("`jp query --attach FILE \"your question\"` asks about a file.");
    } else {
        output.status(&format!(
            "{shown} is a workspace already; nothing was changed."
        ));
    }
    Ok(Code::Done)
}

/// Makes an id that two workspaces of one user won't share.
fn new_id() -> String {
    std::iter::repeat_with(fastrand::alphanumeric)
        .take(8)
        .map(|c| c.to_ascii_lowercase())
        .collect()
}
