//! The programs that tests start.

use std::path::{Path, PathBuf};

/// An MCP server in Python with a mode for each thing that `jp mcp` shows.
pub const NOTES: &str = include_str!("programs/notes.py");
/// An MCP server in Python that answers as a JSON file says.
pub const SCRIPTED: &str = include_str!("programs/scripted.py");
/// The path of an MCP server in Python whose resources are what a JSON file says.
pub const NOTES_SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/programs/notes_server.py");
/// The directory of servers on the official Python packages.
pub const PEERS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/programs/peers");

/// Returns the path of an example of `package`.
///
/// `cargo test` and `cargo nextest run` build a package's examples with its tests, but not if `--test` names one of
/// them.
#[track_caller]
pub fn example(package: &str, name: &str) -> PathBuf {
    let program = built(&format!("examples/{name}"));
    assert!(
        program.is_file(),
        "not built; `cargo build -p {package} --example {name}` does it"
    );
    program
}

/// Returns the path of a binary of the package whose test this is; cargo builds those with the tests.
#[track_caller]
pub fn binary(name: &str) -> PathBuf {
    let program = built(name);
    assert!(program.is_file(), "{} is not built", program.display());
    program
}

/// Returns the path of what cargo built in this profile; tests themselves are in `deps` there.
fn built(path: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let profile = test.parent().and_then(Path::parent).unwrap();
    profile
        .join(path)
        .with_extension(std::env::consts::EXE_EXTENSION)
}

/// Returns a directory of `.local`, where scripts install what tests use; `None` if it isn't there.
pub fn installed(directory: &str) -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.local");
    let path = root.canonicalize().ok()?.join(directory);
    path.is_dir().then_some(path)
}
