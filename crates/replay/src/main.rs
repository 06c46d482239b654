//! `replay`: reports what delivery saves on recorded conversations.

use std::{
    error::Error as _,
    io::{self, Write as _},
    path::PathBuf,
    process::ExitCode,
};

use clap::{Parser, ValueEnum};
use replay::{
    Error, find,
    report::{Report, replay},
};

/// Reports what delivery saves on recorded conversations.
#[derive(Parser)]
struct Arguments {
    /// Shape of the report.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Conversations of jp, SWE-agent trajectories, Claude Code transcripts, or directories of them.
    #[arg(required = true)]
    paths: Vec<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    /// A table.
    Text,
    /// JSON.
    Json,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let (report, errors) = replay_all(&arguments.paths);
    let written = write(&report, arguments.format, &errors);
    if errors.is_empty() && written.is_ok() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Replays all conversations below `paths`. A failure doesn't stop the others; it is returned.
fn replay_all(paths: &[PathBuf]) -> (Report, Vec<Error>) {
    let (mut report, mut errors) = (Report::default(), Vec::new());
    for path in paths {
        let found = match find::conversations(path) {
            Ok(found) => found,
            Err(error) => {
                errors.push(error);
                continue;
            }
        };
        report.skipped_files += found.skipped;
        errors.extend(found.errors);
        for recording in found.recordings {
            match replay(&recording) {
                Ok(row) => report.conversations.push(row),
                Err(error) => errors.push(error),
            }
        }
    }
    (report, errors)
}

/// Prints the report, then the errors.
fn write(report: &Report, format: Format, errors: &[Error]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match format {
        // A table without rows would only repeat the errors below.
        Format::Text if report.conversations.is_empty() => {}
        Format::Text => write!(out, "{report}")?,
        Format::Json => writeln!(out, "{:#}", report.to_json())?,
    }
    out.flush()?;
    let mut err = io::stderr().lock();
    errors
        .iter()
        .try_for_each(|error| writeln!(err, "{}", describe(error)))
}

/// Words the error with its causes and a hint.
fn describe(error: &Error) -> String {
    let mut text = format!("error: failed to {error}");
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(&format!(": {cause}"));
        source = cause.source();
    }
    format!("{text}\nhint: {}", error.next_step())
}
