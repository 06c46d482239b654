use std::{
    error::Error,
    io, iter,
    path::{Path, PathBuf},
    process::ExitStatus,
    time::Duration,
};

/// An error from running a program.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// No directory of `PATH` has the program.
    #[error("there is no program {program:?} in PATH")]
    NotFound {
        /// The program.
        program: String,
    },
    /// There is no file at the path of the program.
    #[error("there is no program at {path:?}")]
    Missing {
        /// The path of the program.
        path: PathBuf,
    },
    /// The program can't be started.
    #[error("{program:?} can't be started")]
    Start {
        /// The program.
        program: String,
        /// The error of the system.
        source: io::Error,
    },
    /// A signal ended the program.
    #[error("it was ended by a {status}")]
    Signal {
        /// The status, which names the signal.
        status: ExitStatus,
    },
    /// The program was ended because it ran for too long.
    #[error("it ran for more than {} seconds and was ended", limit.as_secs_f64())]
    Timeout {
        /// The maximum time.
        limit: Duration,
    },
    /// The program stopped and was ended.
    #[error("it tried to read from a terminal, but it has none")]
    Stopped,
    /// The program was ended because it printed too much.
    #[error("it printed more than the limit of {limit} bytes")]
    TooLong {
        /// The most it may print.
        limit: u64,
    },
    /// The output or the status can't be had from the system.
    #[error("its output can't be read")]
    Output {
        /// The error of the system.
        source: io::Error,
    },
}

impl ProcessError {
    /// Describes the error with its causes, for text that is stored and may be read on other
    /// machines.
    ///
    /// Programs are named by [`brief_program`].
    #[must_use]
    pub fn describe(&self, root: &Path) -> String {
        match self {
            Self::Missing { path } => {
                format!(
                    "there is no program {:?}",
                    brief_program(&path.to_string_lossy(), root)
                )
            }
            Self::Start { program, source } => {
                format!(
                    "{:?} can't be started: {source}",
                    brief_program(program, root)
                )
            }
            error => {
                let causes = iter::successors(Some(error as &dyn Error), |error| (*error).source());
                causes
                    .map(ToString::to_string)
                    .collect::<Vec<_>>()
                    .join(": ")
            }
        }
    }
}

/// Returns a program's name for text that may be read on other machines: its path from `root`, or
/// its file name if it is outside. A bare name and a relative path stay as they are.
#[must_use]
pub fn brief_program(program: &str, root: &Path) -> String {
    let path = Path::new(program);
    let brief = match path.strip_prefix(root) {
        Ok(path) => path,
        Err(_) if path.is_absolute() => path.file_name().map_or(path, Path::new),
        Err(_) => path,
    };
    brief.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(unix)]
    fn program_is_called_by_its_path_from_the_root_or_by_its_name() {
        let root = Path::new("/home/me/project");
        for (program, brief) in [
            ("/home/me/project/bin/run", "bin/run"),
            ("/home/me/bin/run", "run"),
            ("./bin/run", "./bin/run"),
            ("run", "run"),
        ] {
            assert_eq!(brief_program(program, root), brief);
        }
        let missing = ProcessError::Missing {
            path: "/home/me/bin/run".into(),
        };
        assert_eq!(missing.describe(root), "there is no program \"run\"");
        let source = io::ErrorKind::PermissionDenied.into();
        let refused = ProcessError::Start {
            program: "/home/me/project/run".into(),
            source,
        };
        assert_eq!(
            refused.describe(root),
            "\"run\" can't be started: permission denied"
        );
        let unread = ProcessError::Output {
            source: io::ErrorKind::BrokenPipe.into(),
        };
        assert_eq!(
            unread.describe(root),
            "its output can't be read: broken pipe"
        );
    }
}
