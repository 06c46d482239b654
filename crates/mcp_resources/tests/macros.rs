//! Tools of rmcp's macros beside resources, in this crate and in one that a user starts.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::path::{Path, PathBuf};
use std::process::Command;

use mcp_resources::rmcp::handler::server::wrapper::Parameters;
use mcp_resources::rmcp::{self, ServerHandler, schemars, tool, tool_handler, tool_router};
use mcp_resources::{Registry, Resource, Server};
use serde_json::json;
use testing::mcp::ERAS;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Person {
    name: String,
}

struct Greeter;

#[tool_router]
impl Greeter {
    #[tool(description = "Greets a person")]
    fn greet(&self, Parameters(person): Parameters<Person>) -> String {
        format!("Hello, {}!", person.name)
    }
}

#[tool_handler]
impl ServerHandler for Greeter {}

#[tokio::test]
async fn tools_of_the_macros_work_beside_resources() {
    let registry = Registry::new();
    registry
        .register_resource(Resource::new("x:a", "a", || "text"))
        .unwrap();
    for era in ERAS {
        let server = Server::new("test", "1", registry.clone()).with_handler(Greeter);
        let mut client = support::serve(server, era).await;
        let listed = client.result("tools/list", json!({})).await;
        assert_eq!(listed["tools"][0]["name"], "greet", "{era:?}");
        let called = json!({ "name": "greet", "arguments": { "name": "Ada" } });
        let called = client.result("tools/call", called).await;
        assert_eq!(called["content"][0]["text"], "Hello, Ada!", "{era:?}");
        let read = client.read_uri("x:a").await;
        assert_eq!(read["contents"][0]["text"], "text", "{era:?}");
    }
}

/// Returns the code after a line that begins a block.
fn shown(page: &str, begin: &str) -> String {
    let block = page
        .split_once(begin)
        .and_then(|(_, rest)| rest.split_once("```"));
    block
        .map(|(block, _)| block.to_owned())
        .unwrap_or_else(|| panic!("there is no {begin}"))
}

/// Checks a program in a package of its own, outside of any workspace; what it builds is kept for the next time.
fn check_package(name: &str, dependencies: &str, program: &str) {
    let library = Path::new(env!("CARGO_MANIFEST_DIR"));
    let lock = library.join("../../Cargo.lock");
    // A package of the library alone has none.
    if !lock.exists() {
        return;
    }
    let package = tempfile::tempdir().unwrap();
    let path = format!("mcp_resources = {{ path = {library:?}");
    let dependencies = dependencies.replace("mcp_resources = { version = \"0.1\"", &path);
    let dependencies = dependencies.replace("mcp_resources = \"0.1\"", &format!("{path} }}"));
    let manifest = format!(
        "[package]\nname = \"{name}\"\nedition = \"2024\"\n\n{dependencies}\n[workspace]\n"
    );
    std::fs::write(package.path().join("Cargo.toml"), manifest).unwrap();
    std::fs::create_dir(package.path().join("src")).unwrap();
    std::fs::write(package.path().join("src/main.rs"), program).unwrap();
    // The versions of this workspace: those are there without a network.
    std::fs::copy(lock, package.path().join("Cargo.lock")).unwrap();
    let built = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("packages");
    let output = Command::new(env!("CARGO"))
        .args(["check", "--quiet", "--offline"])
        .current_dir(package.path())
        .env("CARGO_TARGET_DIR", built)
        .env("CARGO_PROFILE_DEV_DEBUG", "0")
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{name}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn documented_handler_compiles_in_a_new_package() {
    let readme = include_str!("../README.md");
    let (_, section) = readme.split_once("\n## Tools and prompts\n").unwrap();
    let (dependencies, program) = (
        shown(section, "```toml\n"),
        shown(section, "```rust,no_run\n"),
    );
    check_package("beside", &dependencies, &program);

    let feature = "mcp_resources = { version = \"0.1\", features = [\"macros\"] }";
    let dependencies = dependencies
        .replace("mcp_resources = \"0.1\"", feature)
        .replace("rmcp = \"3\"\n", "");
    let program = program.replace("use rmcp::", "use mcp_resources::rmcp::");
    check_package(
        "within",
        &dependencies,
        &format!("use mcp_resources::rmcp;\n{program}"),
    );
}
