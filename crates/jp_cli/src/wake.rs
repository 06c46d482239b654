//! Reports a failure of tokio to wake its own thread.
//!
//! tokio wakes a thread that waits for the network with a `write` to an eventfd or a pipe, and panics if that fails. A full
//! disk alone does not make it fail. A sandbox, a quota or a fault injector that answers every write with `ENOSPC` does.

use std::{io, panic, process};

use crate::{error::SessionError, output::Output};

/// A failure of tokio to wake its network thread.
#[derive(Debug, thiserror::Error)]
#[error("wake the network thread")]
pub(crate) struct WakeError(#[source] io::Error);

/// Installs a panic hook that ends the process with an error and exit code 1 after a failed wake-up.
///
/// Without the hook the exit code is 101. The hook ends the process at once: unwinding would drop the runtime, which wakes
/// its thread again, and a second panic aborts. Nothing on disk is lost, because jp writes each event completely before the
/// next step. Programs of tools continue to run in their own process groups.
pub(crate) fn report_failures(output: &Output) {
    let output = output.clone();
    let usual = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        let message = panic.payload().downcast_ref::<String>();
        match message.and_then(|message| read_panic(message)) {
            Some(error) => process::exit(output.fail(&SessionError::from_library(&error)) as i32),
            // Any other panic is a bug: the usual hook prints its place.
            None => usual(panic),
        }
    }));
}

/// Parses tokio's message, which ends with the `Debug` form of an `io::Error`.
fn read_panic(message: &str) -> Option<WakeError> {
    let cause = message.strip_prefix("failed to wake I/O driver: ")?;
    let code = cause
        .split_once("code: ")
        .and_then(|(_, rest)| rest.split_once(','));
    let error = match code.and_then(|(code, _)| code.parse().ok()) {
        Some(code) => io::Error::from_raw_os_error(code),
        None => io::Error::other(cause.to_owned()),
    };
    Some(WakeError(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(message: &str) -> Option<String> {
        read_panic(message).map(|error| SessionError::from_library(&error).to_string())
    }

    #[test]
    #[cfg(unix)]
    fn failed_wake_up_names_its_cause_and_what_to_do() {
        let full = io::Error::from_raw_os_error(28);
        let message = format!("failed to wake I/O driver: {full:?}");
        let expected = format!(
            "failed to wake the network thread: {full}\nhint: free some space on that disk and try again."
        );
        assert_eq!(report(&message).as_deref(), Some(expected.as_str()));
    }

    #[test]
    fn cause_without_a_number_is_shown_unchanged() {
        let report = report("failed to wake I/O driver: Custom { kind: Other }");
        assert!(
            report
                .unwrap()
                .ends_with("network thread: Custom { kind: Other }")
        );
    }

    #[test]
    fn other_panics_are_left_to_the_usual_hook() {
        assert!(read_panic("index out of bounds").is_none());
    }
}
