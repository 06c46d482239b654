//! Strays: processes that a program started and that left its process group.

use std::{
    hash::{BuildHasher as _, Hasher as _, RandomState},
    process::Command,
};

pub(crate) use platform::Strays;

/// A variable in a program's environment that its children inherit, whatever group they join.
#[derive(Debug)]
pub(crate) struct Mark(String);

impl Mark {
    const VARIABLE: &str = "JP_STARTED_BY";

    /// Marks the program that a command starts with a value that no other program has.
    pub(crate) fn set(command: &mut Command) -> Self {
        let value = format!("{:016x}", RandomState::new().build_hasher().finish());
        command.env(Self::VARIABLE, &value);
        Self(value)
    }
}

#[cfg(target_os = "linux")]
mod platform {
    use std::{
        collections::{BTreeMap, BTreeSet},
        fs,
        os::fd::OwnedFd,
    };

    use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

    use super::Mark;
    use crate::identity::ProcessStat;

    /// The processes that descend from a program, held by descriptors: an id could be another's
    /// by the time they are killed.
    #[derive(Debug)]
    pub(crate) struct Strays(Vec<OwnedFd>);

    impl Strays {
        /// Finds the processes that carry the mark, and the program's descendants. The descendants
        /// are found only while the program and those between it and them run.
        pub(crate) fn find(program: u32, mark: Option<&Mark>) -> Self {
            let children = children_by_parent();
            let mut found: BTreeSet<u32> = BTreeSet::new();
            if let Some(mark) = mark {
                let others = children.values().flatten().filter(|id| **id != program);
                found.extend(others.filter(|id| has_mark(**id, mark)));
            }
            let mut pending = vec![program];
            while let Some(parent) = pending.pop() {
                let started = children.get(&parent).into_iter().flatten();
                found.extend(started.clone());
                pending.extend(started);
            }
            Self(found.into_iter().filter_map(open).collect())
        }

        /// Kills the processes that still run.
        pub(crate) fn kill(self) {
            for process in self.0 {
                // Fails if it has ended.
                _ = pidfd_send_signal(process, Signal::KILL);
            }
        }
    }

    fn open(id: u32) -> Option<OwnedFd> {
        pidfd_open(Pid::from_raw(id.cast_signed())?, PidfdFlags::empty()).ok()
    }

    /// Returns whether a process was started with the mark in its environment
    /// (proc_pid_environ(5)).
    fn has_mark(id: u32, Mark(value): &Mark) -> bool {
        let environment = fs::read(format!("/proc/{id}/environ")).unwrap_or_default();
        let marked = format!("{}={value}", Mark::VARIABLE);
        environment
            .split(|byte| *byte == 0)
            .any(|variable| variable == marked.as_bytes())
    }

    fn children_by_parent() -> BTreeMap<u32, Vec<u32>> {
        let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for process in ProcessStat::read_all() {
            children
                .entry(process.parent)
                .or_default()
                .push(process.pid);
        }
        children
    }
}

#[cfg(not(target_os = "linux"))]
mod platform {
    use super::Mark;

    /// Empty: only Linux tells what a program started.
    #[derive(Debug)]
    pub(crate) struct Strays;

    impl Strays {
        pub(crate) fn find(_: u32, _: Option<&Mark>) -> Self {
            Self
        }

        pub(crate) fn kill(self) {}
    }
}
