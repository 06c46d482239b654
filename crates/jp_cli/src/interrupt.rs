//! Ctrl-C, and other wishes of the system that the command end.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use tokio::sync::watch;

use crate::error::{Code, Failure};

/// Knows whether the command was interrupted; made when something begins that takes time.
///
/// From then on the first signal lets what is under way end in order. One that comes more than a second
/// later ends the process: by then every program that was started has been ended.
#[derive(Debug)]
pub(crate) struct Interrupt {
    flag: Arc<AtomicBool>,
    received: watch::Receiver<bool>,
}

/// How long what is under way has to end by itself.
const GRACE: Duration = Duration::from_secs(1);

impl Interrupt {
    /// Starts to listen. Without a thread for it signals end the process, as before.
    pub(crate) fn listen() -> Self {
        let flag = Arc::new(AtomicBool::new(false));
        let (sender, received) = watch::channel(false);
        let (ready, is_ready) = std::sync::mpsc::channel();
        let flagged = Arc::clone(&flag);
        let listen = async move {
            let mut signals = Signals::new();
            _ = ready.send(());
            signals.receive().await;
            flagged.store(true, Ordering::Relaxed);
            // Fails where nobody waits any more.
            _ = sender.send(true);
            tokio::time::sleep(GRACE).await;
            signals.receive().await;
            std::process::exit(Code::Interrupted as i32);
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        if let Ok(runtime) = runtime {
            _ = thread::Builder::new().name("signals".into()).spawn(move || runtime.block_on(listen));
            _ = is_ready.recv();
        }
        Self { flag, received }
    }

    /// Returns a flag that is set once a signal came.
    pub(crate) fn flag(&self) -> &AtomicBool {
        &self.flag
    }

    /// Fails once a signal came.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        if self.flag.load(Ordering::Relaxed) { Err(Failure::interrupted()) } else { Ok(()) }
    }

    /// Waits for a signal.
    pub(crate) async fn wait(&self) {
        let mut received = self.received.clone();
        if received.wait_for(|is_received| *is_received).await.is_err() {
            std::future::pending().await
        }
    }
}

#[cfg(unix)]
struct Signals([Option<tokio::signal::unix::Signal>; 3]);

#[cfg(unix)]
impl Signals {
    fn new() -> Self {
        use tokio::signal::unix::{SignalKind, signal};
        let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
        let ignored = ignored();
        let listen = |kind: SignalKind| match ignored >> (kind.as_raw_value() - 1) & 1 {
            0 => signal(kind).ok(),
            _ => None,
        };
        Self(kinds.map(listen))
    }

    async fn receive(&mut self) {
        async fn one(signal: &mut Option<tokio::signal::unix::Signal>) {
            match signal {
                Some(signal) => _ = signal.recv().await,
                None => std::future::pending().await,
            }
        }
        let [interrupt, terminate, hangup] = &mut self.0;
        tokio::select! {
            () = one(interrupt) => {}
            () = one(terminate) => {}
            () = one(hangup) => {}
        }
    }
}

/// Returns the signals that whoever started the command wants ignored, as `nohup` does; a bit each.
#[cfg(unix)]
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn new() -> Self {
        Self
    }

    async fn receive(&mut self) {
        _ = tokio::signal::ctrl_c().await;
    }
}
