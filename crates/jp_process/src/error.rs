use std::{io, path::PathBuf, process::ExitStatus, time::Duration};

/// Why there is no output of a program.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// No directory of `PATH` has the program.
    #[error("there is no program {program:?} in PATH")]
    NotFound {
        /// The program.
        program: String,
    },
    /// Nothing is where the program should be.
    #[error("there is no program at {path:?}")]
    Missing {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// The program can't be started.
    #[error("{program:?} can't be started")]
    Start {
        /// The program.
        program: String,
        /// Why it failed.
        source: io::Error,
    },
    /// A signal ended the program.
    #[error("it was ended by a {status}")]
    Signal {
        /// Which one.
        status: ExitStatus,
    },
    /// The program was ended because it ran for too long.
    #[error("it ran for more than {} seconds and was ended", limit.as_secs_f64())]
    Timeout {
        /// How long it may run.
        limit: Duration,
    },
    /// The program stopped and was ended.
    #[error("it stopped, as programs do that want to read from the terminal: there is none for them here")]
    Stopped,
    /// The program was ended because it printed too much.
    #[error("it printed more than the {limit} bytes that it may")]
    TooLong {
        /// The most it may print.
        limit: u64,
    },
    /// The output or the status can't be had from the system.
    #[error("its output can't be read")]
    Output {
        /// Why it failed.
        source: io::Error,
    },
}
