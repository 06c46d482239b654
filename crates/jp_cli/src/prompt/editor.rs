//! The person's editor.

use std::{fs, io, path::Path, process::Command};

use crate::{console::Console, terminal::Terminal};

/// What is tried where the environment names no editor.
const USUAL: [&str; 2] = ["vi", "nano"];

/// Lets the person edit a JSON document; the error is a sentence that says why that came to nothing.
pub(super) fn edit(
    text: &str,
    terminal: &Terminal<'_>,
    console: &Console,
) -> Result<String, String> {
    let failed = |error: io::Error| format!("No file could be made for the editor: {error}.");
    let directory = tempfile::Builder::new()
        .prefix("jp-")
        .tempdir()
        .map_err(failed)?;
    let path = directory.path().join("edit.json");
    fs::write(&path, text).map_err(failed)?;
    match &console.editor {
        Some(line) => run_named(line, &path, terminal)?,
        None => run_usual(&path, terminal)?,
    }
    fs::read_to_string(&path)
        .map_err(|error| format!("What the editor saved could not be read: {error}."))
}

fn run_named(line: &str, path: &Path, terminal: &Terminal<'_>) -> Result<(), String> {
    let words = shlex::split(line).unwrap_or_default();
    let Some((program, arguments)) = words.split_first() else {
        return Err(format!(
            "`{line}`, which VISUAL or EDITOR holds, is no command line."
        ));
    };
    run(Command::new(program).args(arguments).arg(path), terminal).unwrap_or_else(|error| {
        Err(format!(
            "The editor `{line}` could not be started: {error}."
        ))
    })
}

fn run_usual(path: &Path, terminal: &Terminal<'_>) -> Result<(), String> {
    for program in USUAL {
        match run(Command::new(program).arg(path), terminal) {
            Ok(ended) => return ended,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                return Err(format!(
                    "The editor `{program}` could not be started: {error}."
                ));
            }
        }
    }
    Err("There is no editor: set VISUAL or EDITOR to the one you use.".to_owned())
}

/// Runs an editor to its end; the inner error says that it gave up.
fn run(command: &mut Command, terminal: &Terminal<'_>) -> io::Result<Result<(), String>> {
    let status = terminal.lend(command)?;
    Ok(if status.success() {
        Ok(())
    } else {
        Err(format!(
            "The editor ended with {status}: what it may have saved is not used."
        ))
    })
}
