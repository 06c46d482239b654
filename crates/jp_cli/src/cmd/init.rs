//! `jp init`.

use jp_storage::Workspace;
use serde_json::json;

use crate::{
    args::Init,
    environment::Environment,
    error::{Code, Failure},
    output::Output,
};

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
        Some(directory) => environment.current_dir.join(directory),
        None => environment.current_dir.clone(),
    };
    let made = Workspace::init(
        &directory,
        &[
            (".id", &format!("{}\n", new_id())),
            ("config.toml", CONFIG),
            (".gitignore", IGNORED),
        ],
    )?;
    let shown = environment.display(&directory);
    if output.is_json() {
        let root = std::fs::canonicalize(&directory)?;
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
