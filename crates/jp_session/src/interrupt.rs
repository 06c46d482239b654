//! The interrupt of a command, such as Ctrl-C.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use tokio::sync::watch;

use crate::error::SessionError;

/// Knows whether the command was interrupted.
#[derive(Debug, Clone)]
pub struct Interrupt {
    flag: Arc<AtomicBool>,
    received: watch::Receiver<bool>,
}

/// Interrupts the command. The front end holds it.
#[derive(Debug)]
pub struct Trigger {
    flag: Arc<AtomicBool>,
    sender: watch::Sender<bool>,
}

impl Trigger {
    /// Interrupts the command. Waiting tasks see it before the flag is set.
    pub fn fire(&self) {
        // Fails if nothing waits any more. Code that sees the flag can rely on this.
        _ = self.sender.send(true);
        self.flag.store(true, Ordering::Release);
    }
}

impl Interrupt {
    /// Returns an interrupt and its trigger.
    pub fn new() -> (Self, Trigger) {
        let flag = Arc::new(AtomicBool::new(false));
        let (sender, received) = watch::channel(false);
        let trigger = Trigger {
            flag: Arc::clone(&flag),
            sender,
        };
        (Self { flag, received }, trigger)
    }

    /// Returns a flag that is set once the user interrupted.
    pub fn flag(&self) -> &AtomicBool {
        &self.flag
    }

    /// Returns the flag for a holder that outlives this.
    pub(crate) fn shared_flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.flag)
    }

    /// Fails once the user interrupted.
    ///
    /// # Errors
    ///
    /// With the kind `Interrupted`.
    pub fn check(&self) -> Result<(), SessionError> {
        if self.flag.load(Ordering::Relaxed) {
            Err(SessionError::interrupted())
        } else {
            Ok(())
        }
    }

    /// Waits until the user interrupts.
    pub async fn wait(&self) {
        let mut received = self.received.clone();
        if received.wait_for(|is_received| *is_received).await.is_err() {
            // Without a trigger nothing can interrupt any more.
            std::future::pending().await
        }
    }
}
