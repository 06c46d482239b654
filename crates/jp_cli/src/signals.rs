//! Ctrl-C, and other wishes of the system that the command end.

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

/// Listens for signals; made when something begins that takes time.
///
/// From then on the first signal lets what is under way end in order. One that comes more than a second
/// later ends the process: by then every program that was started has been ended.
#[derive(Debug)]
pub(crate) struct SignalListener {
    /// Knows whether there was one.
    pub(crate) interrupt: Interrupt,
    /// Whether another program has the terminal.
    is_lent: Arc<AtomicBool>,
    /// Where the listener is told that it has it no more.
    returned: mpsc::UnboundedSender<Acknowledge>,
}

/// Ends what waits for it by being dropped.
type Acknowledge = std::sync::mpsc::Sender<()>;

/// How long what is under way has to end by itself.
const GRACE: Duration = Duration::from_secs(1);

impl SignalListener {
    /// Starts to listen. Without a thread for it signals end the process, as before.
    pub(crate) fn start() -> Self {
        let (interrupt, trigger) = Interrupt::new();
        let is_lent = Arc::new(AtomicBool::new(false));
        let (ready, is_ready) = std::sync::mpsc::channel();
        let lent = Arc::clone(&is_lent);
        let (returned, returns) = mpsc::unbounded_channel();
        let listen = async move {
            let mut signals = Signals::new();
            _ = ready.send(());
            first(&mut signals, &lent, returns).await;
            trigger.fire();
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

    /// Does some work that has the terminal to itself: until it ends, Ctrl-C is its own business.
    pub(crate) fn lend<T>(&self, work: impl FnOnce() -> T) -> T {
        self.is_lent.store(true, Ordering::Relaxed);
        let done = work();
        let (acknowledge, acknowledged) = std::sync::mpsc::channel();
        _ = self.returned.send(acknowledge);
        // Nothing is ever sent: this ends when the other side is dropped.
        _ = acknowledged.recv();
        done
    }
}

/// Waits for the first signal that is the command's own.
async fn first(
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
            // Signals that came while the terminal was lent have been seen after this.
            () = tokio::task::yield_now(), if returning.is_some() => {
                is_lent.store(false, Ordering::Relaxed);
                returning = None;
            }
            Some(acknowledge) = returns.recv() => returning = Some(acknowledge),
        }
    }
}

/// What the system says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Signal {
    /// Ctrl-C.
    Interrupt,
    /// Anything else that ends a command.
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
        let ignored = ignored();
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

/// Returns the signals that whoever started the command wants ignored, as `nohup` does; a bit each.
#[cfg(unix)]
fn ignored() -> u64 {
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
