//! Asks git whether it has a file's content.

use std::{path::Path, process::Command, time::Duration};

use jp_process::{Bounds, Captured, End};

use super::spot::Content;

/// Time limit for git, which reads all of a file.
const TIMEOUT: Duration = Duration::from_secs(30);
/// An object's id has 40 or 64 digits.
const MAX_BYTES: u64 = 1000;

/// The variables that make git use another repository than the file's (`git rev-parse
/// --local-env-vars`). jp may have inherited them from a git that runs jp as a hook.
const VARIABLES: [&str; 16] = [
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_CEILING_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_CONFIG",
    "GIT_CONFIG_COUNT",
    "GIT_CONFIG_PARAMETERS",
    "GIT_DIR",
    "GIT_GRAFT_FILE",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_NAMESPACE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_REPLACE_REF_BASE",
    "GIT_SHALLOW_FILE",
    "GIT_WORK_TREE",
];

/// The settings that a repository's configuration must not decide: it may come with a clone and
/// name programs.
const SETTINGS: [&str; 4] = [
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "protocol.allow=never",
    "safe.bareRepository=explicit",
];

/// Returns whether the repository of a file at an absolute path has an object of the file's
/// content; without git, or outside of a repository, it has none.
pub(super) fn has(path: &Path, content: &Content, is_moot: &dyn Fn() -> bool) -> bool {
    id(path, content, is_moot).is_some_and(|id| {
        let mut git = git(path);
        git.args(["cat-file", "-e", &id]);
        run(git, &[], is_moot).is_some()
    })
}

/// Computes the id of an object with this content. No filter runs, so the id is that of the raw
/// bytes.
fn id(path: &Path, content: &Content, is_moot: &dyn Fn() -> bool) -> Option<String> {
    let mut git = git(path);
    git.args(["hash-object", "--no-filters"]);
    let printed = match content {
        Content::Whole(bytes) => {
            git.arg("--stdin");
            run(git, bytes, is_moot)
        }
        Content::TooLarge { .. } => {
            git.arg("--").arg(path);
            run(git, &[], is_moot)
        }
    };
    printed
        .map(|printed| printed.trim().to_owned())
        .filter(|id| !id.is_empty())
}

/// Makes a git command in the file's directory that starts no other program and fetches no missing
/// objects.
fn git(path: &Path) -> Command {
    let mut git = Command::new("git");
    for variable in VARIABLES {
        git.env_remove(variable);
    }
    // Both are needed: older versions ignore the first, and a protocol's own setting in the
    // configuration overrides the general one.
    git.env("GIT_NO_LAZY_FETCH", "1")
        .env("GIT_ALLOW_PROTOCOL", "none")
        .env("GIT_TERMINAL_PROMPT", "0");
    git.args(["--no-pager", "--no-optional-locks", "--no-replace-objects"]);
    for setting in SETTINGS {
        git.args(["-c", setting]);
    }
    git.arg("-C").arg(path.parent().unwrap_or(path));
    git
}

/// Runs git to its end; returns what it printed, if it succeeded.
fn run(git: Command, input: &[u8], is_moot: &dyn Fn() -> bool) -> Option<String> {
    let bounds = Bounds {
        timeout: TIMEOUT,
        max_bytes: MAX_BYTES,
        is_moot,
    };
    let Captured { stdout, end, .. } = jp_process::capture(git, input, &bounds).ok()?;
    let printed = String::from_utf8(stdout.into_bytes()).ok()?;
    (end == End::Exited(0)).then_some(printed)
}
