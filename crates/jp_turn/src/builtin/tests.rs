//! Calls of the builtin tools, from the plan to the result.

mod command;
mod escape;
mod read;
mod refresh;
mod seen;
mod write;

use std::{fs, path::PathBuf};

use jp_resource::Checksum;
use jp_tool::{ContentBlock, ToolResponse};
use serde_json::json;

use super::*;
use crate::{Permission, Preview, Schema, Surroundings};

/// A workspace, and a directory outside it.
struct Workspace {
    /// The parent of the workspace `project` and of everything outside.
    around: tempfile::TempDir,
    toolbox: Toolbox,
}

/// What a call would do, and what it did.
struct Called {
    preview: Preview,
    is_sensitive: bool,
    response: ToolResponse,
    root: String,
}

impl Workspace {
    fn new(files: &[(&str, &str)]) -> Self {
        Self::with_read_only(files, &[])
    }

    fn with_read_only(files: &[(&str, &str)], patterns: &[&str]) -> Self {
        let around = tempfile::tempdir().unwrap();
        let root = around.path().canonicalize().unwrap().join("project");
        fs::create_dir(&root).unwrap();
        let patterns: Vec<_> = patterns
            .iter()
            .map(|pattern| (*pattern).to_owned())
            .collect();
        let surroundings = Surroundings {
            root: root.clone(),
            secret_variables: vec!["CARGO_MANIFEST_DIR".to_owned()],
            ..Surroundings::default()
        };
        let tools = Builtin::ALL.map(Builtin::tool).into();
        let toolbox = Toolbox::new(tools, surroundings, Files::open(&root, &patterns).unwrap());
        let workspace = Self { around, toolbox };
        files
            .iter()
            .for_each(|(path, content)| workspace.write(path, content));
        workspace
    }

    fn path(&self, path: &str) -> PathBuf {
        self.toolbox.surroundings.root.join(path)
    }

    fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    fn text(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).unwrap()
    }

    /// Plans a call; the arguments fit the tool's schema.
    fn plan(&self, name: &str, arguments: &Value) -> Result<Plan<'_>, String> {
        let tool = self
            .toolbox
            .tools
            .iter()
            .find(|tool| tool.name == name)
            .unwrap();
        Schema::compile(&tool.parameters)
            .unwrap()
            .check_value(arguments)
            .unwrap();
        let arguments = arguments.as_object().unwrap();
        plan(
            Builtin::from_name(name).unwrap(),
            tool,
            arguments,
            &self.toolbox,
            &Line::unheard(false),
        )
    }

    /// Makes a call; the error is why it is not even offered to the user.
    fn call(&self, name: &str, arguments: &Value) -> Result<Called, String> {
        self.call_on(name, arguments, &Line::unheard(false))
    }

    fn call_on(&self, name: &str, arguments: &Value, line: &Line) -> Result<Called, String> {
        let Plan {
            preview,
            is_sensitive,
            mut act,
        } = self.plan(name, arguments)?;
        let response = act(&Map::new(), line);
        let root = self.toolbox.surroundings.root.display().to_string();
        Ok(Called {
            preview,
            is_sensitive,
            response,
            root,
        })
    }

    /// Makes a call and returns the text that the model receives.
    fn told(&self, name: &str, arguments: &Value) -> String {
        self.call(name, arguments)
            .map_or_else(|reason| reason, |called| called.text())
    }
}

impl Called {
    /// Writes the blocks down, a resource with its URI and MIME type.
    fn text(&self) -> String {
        let block = |block: &ContentBlock| match block {
            ContentBlock::Text { text, .. } => text.clone(),
            ContentBlock::Resource { resource, .. } => {
                let mime_type = resource.mime_type.as_deref().unwrap_or_default();
                format!("[{} {mime_type}]\n{:?}", resource.uri, resource.content)
            }
            block => format!("{block:?}"),
        };
        let blocks: Vec<_> = self.response.content.iter().map(block).collect();
        blocks.join("\n").replace(&self.root, "ROOT")
    }

    /// Returns what the blocks say of files.
    fn marks(&self) -> Vec<Value> {
        let mark = |block: &ContentBlock| match block {
            ContentBlock::Text { meta, .. } | ContentBlock::Resource { meta, .. } => meta
                .as_ref()
                .and_then(|meta| meta.get("computer.jp/file").cloned()),
            _ => None,
        };
        self.response.content.iter().filter_map(mark).collect()
    }
}

#[test]
fn only_readers_run_without_a_prompt() {
    for builtin in Builtin::ALL {
        let tool = builtin.tool();
        assert_eq!(Builtin::from_name(&tool.name), Some(builtin));
        assert_eq!(
            tool.permission == Permission::Unattended,
            builtin.is_reader(),
            "{}",
            tool.name
        );
        assert!(tool.permission != Permission::Deny && !tool.description.is_empty());
        assert_eq!(
            tool.parameters["additionalProperties"],
            json!(false),
            "{}",
            tool.name
        );
        Schema::compile(&tool.parameters).unwrap();
    }
    let readers: Vec<_> = Builtin::ALL
        .iter()
        .filter(|builtin| builtin.is_reader())
        .map(|builtin| builtin.name())
        .collect();
    assert_eq!(
        readers,
        [
            "read_file",
            "list_files",
            "search_files",
            "read_more",
            "refresh_resource"
        ]
    );
    assert_eq!(Builtin::from_name("format_disk"), None);
}
