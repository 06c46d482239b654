//! `jp init`.

use crate::{
    args::Init,
    environment::Environment,
    error::{Code, SessionError},
    output::Output,
};
use jp_storage::Workspace;
use serde_json::json;

/// The configuration of a new workspace: only comments, with the keys that users need first.
const CONFIG: &str = "\
# Configuration of this workspace, shared with everyone who has a copy of it.
# Your own configuration is in ~/.config/jp/config.toml.
# `jp config show` lists every key with its value and origin.

# [assistant.model]
# id = \"llamacpp/qwen3\"

# [conversation]
# attachments = [\"file:README.md\"]
";

/// Temporary files that an interrupted jp may leave behind.
const IGNORED: &str = ".tmp-*\n";

pub(crate) fn run(
    init: &Init,
    environment: &Environment,
    output: &Output,
) -> Result<Code, SessionError> {
    let directory = match &init.directory {
        Some(directory) => environment.surroundings.current_dir.join(directory),
        None => environment.surroundings.current_dir.clone(),
    };
    // An existing workspace stays unchanged, so running the command again is safe.
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
        // A script may run in another directory, so it gets the absolute path.
        let root = std::fs::canonicalize(&directory)
            .map_err(|error| SessionError::from_system(&format!("read {shown}"), error))?;
        output.json(&json!({"root": root, "made": made}))?;
    } else if made {
        output.status(&format!("Created a workspace in {shown}."));
        output.hint("`jp query --attach FILE \"your question\"` asks about a file.");
    } else {
        output.status(&format!(
            "{shown} is already a workspace; nothing was changed."
        ));
    }
    Ok(Code::Done)
}

/// Generates an id of 8 letters and digits: 41 bits, so two workspaces of a user won't share one.
fn new_id() -> String {
    std::iter::repeat_with(fastrand::alphanumeric)
        .take(8)
        .map(|c| c.to_ascii_lowercase())
        .collect()
}
