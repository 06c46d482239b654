//! Identities of processes. A process id alone is not enough, because systems reuse ids.

use std::fs;

use serde::{Deserialize, Serialize};

/// A process id with the time at which that process started.
///
/// Both together name one process for as long as the machine is up, so another jp can look for a
/// program that this one started. Serialized as `{"pid", "started"}` in the state of tools that
/// outlive a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    pub(crate) pid: i32,
    /// Ticks since the machine's start; `None` if the system has no `/proc`.
    started: Option<u64>,
}

impl Identity {
    /// Returns the identity of the process that has this id now.
    pub(crate) fn current(pid: u32) -> Self {
        Self {
            pid: pid.cast_signed(),
            started: ProcessStat::read(pid).and_then(|stat| stat.start()),
        }
    }

    /// Returns whether this system can tell a process from a later one with the same id.
    #[must_use]
    pub fn is_supported() -> bool {
        Self::current(std::process::id()).started.is_some()
    }

    /// Returns whether the process runs. A process with an unknown start may be any other: it
    /// counts as ended.
    pub(crate) fn is_alive(self) -> bool {
        let now = Self::current(self.pid.cast_unsigned());
        self.started.is_some() && now.started == self.started
    }
}

/// The fields of `/proc/PID/stat` that jp reads (proc_pid_stat(5)).
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProcessStat {
    pub(crate) pid: u32,
    pub(crate) parent: u32,
    pub(crate) group: i32,
    pub(crate) session: i32,
    /// True if the process has ended and only its status is left.
    is_zombie: bool,
    started: u64,
}

impl ProcessStat {
    /// Reads the fields of one process; `None` if there is no such process, or no `/proc`.
    pub(crate) fn read(pid: u32) -> Option<Self> {
        Self::parse(pid, &fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    /// Reads the fields of every process that is there.
    pub(crate) fn read_all() -> impl Iterator<Item = Self> {
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        entries.filter_map(|entry| Self::read(entry.file_name().to_str()?.parse().ok()?))
    }

    fn parse(pid: u32, text: &str) -> Option<Self> {
        // The second field, the name, may hold anything, spaces and parentheses too.
        let fields: Vec<_> = text.rsplit_once(')')?.1.split_whitespace().collect();
        Some(Self {
            pid,
            is_zombie: *fields.first()? == "Z",
            parent: fields.get(1)?.parse().ok()?,
            group: fields.get(2)?.parse().ok()?,
            session: fields.get(3)?.parse().ok()?,
            // Field 22 of the file.
            started: fields.get(19)?.parse().ok()?,
        })
    }

    fn start(self) -> Option<u64> {
        (!self.is_zombie).then_some(self.started)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_may_hold_spaces_parentheses_or_numbers() {
        let rest = "S 2 3 4 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 987 0";
        let stat = ProcessStat::parse(7, &format!("7 (a) R 1 (b)) {rest}")).unwrap();
        assert_eq!((stat.parent, stat.group, stat.session), (2, 3, 4));
        assert_eq!(stat.start(), Some(987));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn process_with_an_unknown_start_never_counts_as_running() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        while !crate::group::has_ended(&mut child).unwrap() {
            std::thread::sleep(crate::grace::TICK);
        }
        // It is not reaped, so the id is taken, but the start is gone.
        let identity = Identity::current(child.id());
        assert_eq!((identity.started, identity.is_alive()), (None, false));
        child.wait().unwrap();
    }
}
