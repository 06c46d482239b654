//! A program together with what it starts, as far as the platform can tell.

use std::{
    hash::{BuildHasher as _, Hasher as _, RandomState},
    io,
    process::{Child, Command},
};

#[cfg(unix)]
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

/// Makes what is started a group of its own: a signal of the terminal does not reach it, and it can be
/// ended as a whole.
#[cfg(unix)]
pub fn separate(command: &mut Command) {
    std::os::unix::process::CommandExt::process_group(command, 0);
}

#[cfg(not(unix))]
pub fn separate(_: &mut Command) {}

/// Returns whether the program has ended. It is not reaped, so its id still names the group.
#[cfg(unix)]
pub fn has_ended(child: &mut Child) -> io::Result<bool> {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    match waitid(WaitId::Pid(Pid::from_child(child)), options) {
        Err(rustix::io::Errno::INTR) => Ok(false),
        found => Ok(found?.is_some()),
    }
}

#[cfg(not(unix))]
pub fn has_ended(child: &mut Child) -> io::Result<bool> {
    Ok(child.try_wait()?.is_some())
}

/// Returns whether the program is stopped: it wanted to read from the terminal, which its group may not.
#[cfg(unix)]
pub fn is_stopped(child: &mut Child) -> bool {
    let options = WaitIdOptions::STOPPED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    matches!(
        waitid(WaitId::Pid(Pid::from_child(child)), options),
        Ok(Some(_))
    )
}

#[cfg(not(unix))]
pub fn is_stopped(_: &mut Child) -> bool {
    false
}

/// Asks the program, and all of its group, to end. It must not have been reaped.
#[cfg(unix)]
pub fn terminate(child: &mut Child) {
    // Fails where there is nothing left to ask.
    let _ = kill_process_group(Pid::from_child(child), Signal::TERM);
}

#[cfg(not(unix))]
pub fn terminate(_: &mut Child) {}

/// Ends the program, and all of its group. It must not have been reaped.
#[cfg(unix)]
pub fn kill(child: &mut Child) {
    let _ = kill_process_group(Pid::from_child(child), Signal::KILL);
}

#[cfg(not(unix))]
pub fn kill(child: &mut Child) {
    let _ = child.kill();
}

pub use strays::Strays;

/// Tells what a program starts from all else: a variable of its environment, which is passed on.
#[derive(Debug)]
pub struct Mark(String);

impl Mark {
    const VARIABLE: &str = "JP_STARTED_BY";

    /// Marks what is started, with a value that nothing else has.
    #[must_use]
    pub fn put_on(command: &mut Command) -> Self {
        let value = format!("{:016x}", RandomState::new().build_hasher().finish());
        command.env(Self::VARIABLE, &value);
        Self(value)
    }
}

/// What a program started, in whatever group and session it is by now.
#[cfg(target_os = "linux")]
mod strays {
    use std::{
        collections::{BTreeMap, BTreeSet},
        fs,
        os::fd::OwnedFd,
        process::Child,
    };

    use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

    use super::Mark;

    /// Processes that a program started, with all that those started.
    #[derive(Debug)]
    pub struct Strays(Vec<OwnedFd>);

    impl Strays {
        /// Finds them: what has the mark, and what its parents lead to. The latter can be found only before the program
        /// is ended.
        #[must_use]
        pub fn of(child: &Child, mark: Option<&Mark>) -> Self {
            let children = children();
            let mut found: BTreeSet<u32> = BTreeSet::new();
            if let Some(mark) = mark {
                let others = children.values().flatten().filter(|id| **id != child.id());
                found.extend(others.filter(|id| has_mark(**id, mark)));
            }
            let mut pending = vec![child.id()];
            while let Some(parent) = pending.pop() {
                let started = children.get(&parent).into_iter().flatten();
                found.extend(started.clone());
                pending.extend(started);
            }
            let open = |id: &u32| {
                pidfd_open(
                    Pid::from_raw(i32::try_from(*id).ok()?)?,
                    PidfdFlags::empty(),
                )
                .ok()
            };
            Self(found.iter().filter_map(open).collect())
        }

        /// Ends those that are still there.
        pub fn kill(self) {
            // Fails where one has ended.
            self.0
                .iter()
                .for_each(|process| _ = pidfd_send_signal(process, Signal::KILL));
        }
    }

    /// Returns whether a process was started with a mark in its environment (proc_pid_environ(5)).
    fn has_mark(id: u32, Mark(value): &Mark) -> bool {
        let environment = fs::read(format!("/proc/{id}/environ")).unwrap_or_default();
        let marked = format!("{}={value}", Mark::VARIABLE);
        environment
            .split(|byte| *byte == 0)
            .any(|variable| variable == marked.as_bytes())
    }

    /// Returns the children of each process (proc_pid_stat(5)).
    fn children() -> BTreeMap<u32, Vec<u32>> {
        let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
            let Some(id) = entry
                .file_name()
                .to_str()
                .and_then(|name| name.parse().ok())
            else {
                continue;
            };
            if let Some(parent) = parent(&entry.path().join("stat")) {
                children.entry(parent).or_default().push(id);
            }
        }
        children
    }

    fn parent(stat: &std::path::Path) -> Option<u32> {
        let text = fs::read_to_string(stat).ok()?;
        // The name before it may hold anything, parentheses too.
        let (_, rest) = text.rsplit_once(')')?;
        rest.split_whitespace().nth(1)?.parse().ok()
    }
}

#[cfg(not(target_os = "linux"))]
mod strays {
    use std::process::Child;

    use super::Mark;

    /// Nothing tells here what a program started.
    #[derive(Debug)]
    pub struct Strays;

    impl Strays {
        /// Finds nothing.
        #[must_use]
        pub fn of(_: &Child, _: Option<&Mark>) -> Self {
            Self
        }

        /// Ends nothing.
        pub fn kill(self) {}
    }
}
