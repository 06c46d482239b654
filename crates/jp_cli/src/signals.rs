//! Ctrl-C and the other signals that end a command.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use jp_session::Interrupt;
use tokio::sync::mpsc;

use crate::error::Code;

/// Listens for signals. A command starts it before its first slow step.
///
/// The first signal sets the interrupt, so that the command can end in order. A further signal more than a second later
/// ends the process: by then jp has ended every program that it started.
#[derive(Debug)]
pub(crate) struct SignalListener {
    /// Set by the first signal.
    pub(crate) interrupt: Interrupt,
    /// Set while another program has the terminal.
    is_lent: Arc<AtomicBool>,
    /// Tells the listener that the program has returned the terminal.
    returned: mpsc::UnboundedSender<Acknowledge>,
}

/// The listener drops it to acknowledge the return.
type Acknowledge = std::sync::mpsc::Sender<()>;

/// The time that a command has to end in order. It is longer than jp waits for a program that it ends.
const GRACE: Duration = Duration::from_secs(1);

impl SignalListener {
    /// Starts to listen. If the thread can't start, signals end the process at once, as without a listener.
    pub(crate) fn start() -> Self {
        let (interrupt, trigger) = Interrupt::new();
        let is_lent = Arc::new(AtomicBool::new(false));
        let (ready, is_ready) = std::sync::mpsc::channel();
        let lent = Arc::clone(&is_lent);
        let (returned, returns) = mpsc::unbounded_channel();
        let listen = async move {
            let mut signals = Signals::new();
            // `start` returns once the handlers are installed, so no signal is lost between the two.
            _ = ready.send(());
            wait_for_signal(&mut signals, &lent, returns).await;
            trigger.fire();
            // A second Ctrl-C right after the first is impatience. It must not cut off the orderly end.
            tokio::time::sleep(GRACE).await;
            signals.receive().await;
            std::process::exit(Code::Interrupted as i32);
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        if let Ok(runtime) = runtime {
            _ = thread::Builder::new()
                .name("signals".into())
                .spawn(move || runtime.block_on(listen));
            _ = is_ready.recv();
        }
        Self {
            interrupt,
            is_lent,
            returned,
        }
    }

    /// Runs `work`, which has the terminal until it ends. Ctrl-C does not interrupt jp meanwhile.
    pub(crate) fn lend<T>(&self, work: impl FnOnce() -> T) -> T {
        self.is_lent.store(true, Ordering::Relaxed);
        let done = work();
        let (acknowledge, acknowledged) = std::sync::mpsc::channel();
        _ = self.returned.send(acknowledge);
        // The listener sends nothing: `recv` ends when it drops its side.
        _ = acknowledged.recv();
        done
    }
}

/// Waits for the first signal that is meant for jp.
async fn wait_for_signal(
    signals: &mut Signals,
    is_lent: &AtomicBool,
    mut returns: mpsc::UnboundedReceiver<Acknowledge>,
) {
    let mut returning = None;
    loop {
        tokio::select! {
            biased;
            signal = signals.receive() => {
                if signal == Signal::End || !is_lent.load(Ordering::Relaxed) {
                    return;
                }
            }
            // `biased` handles pending signals first. After one yield, those of the lent time are gone.
            () = tokio::task::yield_now(), if returning.is_some() => {
                is_lent.store(false, Ordering::Relaxed);
                returning = None;
            }
            Some(acknowledge) = returns.recv() => returning = Some(acknowledge),
        }
    }
}

/// A signal that ends a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Signal {
    /// Ctrl-C.
    Interrupt,
    /// SIGTERM or SIGHUP. They reach jp even while a program has the terminal.
    End,
}

#[cfg(unix)]
struct Signals([Option<tokio::signal::unix::Signal>; 3]);

#[cfg(unix)]
impl Signals {
    fn new() -> Self {
        use tokio::signal::unix::{SignalKind, signal};
        let kinds = [
            SignalKind::interrupt(),
            SignalKind::terminate(),
            SignalKind::hangup(),
        ];
        let ignored = read_ignored_signals();
        let listen = |kind: SignalKind| match ignored >> (kind.as_raw_value() - 1) & 1 {
            0 => signal(kind).ok(),
            _ => None,
        };
        Self(kinds.map(listen))
    }

    async fn receive(&mut self) -> Signal {
        async fn one(signal: &mut Option<tokio::signal::unix::Signal>) {
            match signal {
                Some(signal) => _ = signal.recv().await,
                None => std::future::pending().await,
            }
        }
        let [interrupt, terminate, hangup] = &mut self.0;
        tokio::select! {
            () = one(interrupt) => Signal::Interrupt,
            () = one(terminate) => Signal::End,
            () = one(hangup) => Signal::End,
        }
    }
}

/// Returns the signals that jp inherits as ignored, for example from `nohup`. Signal N is bit N - 1.
#[cfg(unix)]
fn read_ignored_signals() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0)
}

#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn new() -> Self {
        Self
    }

    async fn receive(&mut self) -> Signal {
        _ = tokio::signal::ctrl_c().await;
        Signal::Interrupt
    }
}
