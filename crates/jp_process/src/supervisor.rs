//! A program that lives on, from its start to its end.

#[cfg(unix)]
use std::os::fd::OwnedFd;
use std::{
    io,
    process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio},
    thread,
    time::Instant,
};

#[cfg(unix)]
use rustix::process::{Pid, Signal};

#[cfg(unix)]
use crate::identity::ProcessStat;
use crate::{
    Identity, grace, group,
    strays::{Mark, Strays},
};

/// A running program with all that it starts.
///
/// Its end has stages, each with a bound in [`grace`]: its input is closed or it is asked to stop
/// in its own protocol, then SIGTERM, then SIGKILL for its group and for strays, processes that it
/// started and that left the group. [`end`](Self::end) goes through all of them and waits;
/// [`advance_end`](Self::advance_end) takes one step for callers that do something else meanwhile.
///
/// Dropping it kills the program at once, unless it was started to last.
#[derive(Debug)]
pub struct Supervisor {
    process: Process,
    reach: Reach,
    mark: Option<Mark>,
    /// Found when the end begins: later, children of a program that has ended have no parent to
    /// find them by.
    strays: Option<Strays>,
    stage: Stage,
    outlives_jp: bool,
}

/// The process that is supervised.
#[derive(Debug)]
enum Process {
    /// A child of this jp, which reaps it.
    Child(Child),
    /// A process that another jp started.
    Found(Identity),
}

/// The processes that a signal reaches.
#[derive(Debug)]
enum Reach {
    Group,
    /// Each job of a shell has a group of its own; the terminal names the one in the foreground.
    #[cfg(unix)]
    Session {
        terminal: OwnedFd,
    },
}

/// The stage of a program's end.
#[derive(Debug, Clone, Copy)]
enum Stage {
    Running,
    /// The program knows that it should end; SIGTERM follows.
    Leaving(Instant),
    /// SIGTERM was sent; SIGKILL follows.
    Terminated(Instant),
    /// The process is reaped: its id may be another's now.
    Reaped(Option<ExitStatus>),
}

/// The jp ends of a program's stdin, stdout and stderr.
pub type Pipes = (ChildStdin, ChildStdout, ChildStderr);

impl Supervisor {
    /// Starts a program in a process group of its own, with a variable in its environment by which
    /// strays are found.
    pub fn start(command: &mut Command) -> io::Result<Self> {
        let mark = Mark::set(command);
        let mut started = Self::start_unmarked(command)?;
        started.mark = Some(mark);
        Ok(started)
    }

    /// Starts a program without adding a variable to its environment: its output may depend on
    /// that.
    pub(crate) fn start_unmarked(command: &mut Command) -> io::Result<Self> {
        group::separate(command);
        Ok(Self::new(Process::Child(command.spawn()?), Reach::Group))
    }

    /// Starts a program that reads and writes pipes.
    pub fn start_piped(command: &mut Command) -> io::Result<(Self, Pipes)> {
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut started = Self::start(command)?;
        let pipes = started.child().and_then(take_pipes);
        Ok((started, pipes.expect("the command asks for all three")))
    }

    /// Starts a program that runs on when this is dropped, and when jp ends.
    ///
    /// It has no mark: no later jp would know its value.
    pub fn start_lasting(command: &mut Command) -> io::Result<Self> {
        let mut started = Self::start_unmarked(command)?;
        started.outlives_jp = true;
        Ok(started)
    }

    /// Finds a program that another jp started to last; `None` if it has ended.
    #[must_use]
    pub fn find(identity: Identity) -> Option<Self> {
        let mut found = Self::new(Process::Found(identity), Reach::Group);
        found.outlives_jp = true;
        identity.is_alive().then_some(found)
    }

    /// Supervises the leader of a session, a shell with a terminal of its own.
    #[cfg(unix)]
    #[must_use]
    pub fn lead_session(shell: Child, terminal: OwnedFd) -> Self {
        Self::new(Process::Child(shell), Reach::Session { terminal })
    }

    fn new(process: Process, reach: Reach) -> Self {
        Self {
            process,
            reach,
            mark: None,
            strays: None,
            stage: Stage::Running,
            outlives_jp: false,
        }
    }

    /// Returns the process, by which a later jp finds it.
    #[must_use]
    pub fn identity(&self) -> Identity {
        match &self.process {
            Process::Child(child) => Identity::current(child.id()),
            Process::Found(identity) => *identity,
        }
    }

    /// Returns the process as a child, if it is one.
    pub(crate) fn child(&mut self) -> Option<&mut Child> {
        match &mut self.process {
            Process::Child(child) => Some(child),
            Process::Found(_) => None,
        }
    }

    /// Returns whether the program has ended. What it started may still run.
    pub fn has_ended(&mut self) -> bool {
        match &mut self.process {
            _ if matches!(self.stage, Stage::Reaped(_)) => true,
            // If the system doesn't know the process, it has ended.
            Process::Child(child) => group::has_ended(child).unwrap_or(true),
            Process::Found(identity) => !identity.is_alive(),
        }
    }

    /// Returns whether the program is stopped, as programs are that want to read from a terminal
    /// and have none.
    pub(crate) fn is_stopped(&mut self) -> bool {
        self.child().is_some_and(group::is_stopped)
    }

    /// Ends the program, and waits for that; returns its status if it is a child of this jp.
    ///
    /// Close its input before, or tell it to end, or it is given [`grace::AFTER_INPUT`] for
    /// nothing.
    pub fn end(&mut self) -> Option<ExitStatus> {
        while !self.advance_end() {
            thread::sleep(grace::TICK);
        }
        self.kill()
    }

    /// Ends many programs in the time that one takes.
    pub fn end_all<'a>(programs: impl IntoIterator<Item = &'a mut Self>) {
        let mut programs: Vec<_> = programs.into_iter().collect();
        loop {
            programs.retain_mut(|program| !program.advance_end());
            if programs.is_empty() {
                return;
            }
            thread::sleep(grace::TICK);
        }
    }

    /// Begins the end: finds strays, and starts the time in which the program may end
    /// on request. Call it before you close the program's input.
    pub fn begin_end(&mut self) {
        if matches!(self.stage, Stage::Running) {
            self.find_strays();
            self.stage = Stage::Leaving(Instant::now());
        }
    }

    /// Asks the program to end by a signal: SIGTERM, or SIGHUP if it has a terminal.
    pub fn terminate(&mut self) {
        self.begin_end();
        if matches!(self.stage, Stage::Leaving(_)) {
            self.signal_terminate();
            self.stage = Stage::Terminated(Instant::now());
        }
    }

    /// Brings the end one step further; returns true once the program is reaped. Call it every
    /// [`grace::TICK`] or so.
    pub fn advance_end(&mut self) -> bool {
        let has_ended = self.has_ended();
        match self.stage {
            Stage::Running => self.begin_end(),
            Stage::Leaving(_) | Stage::Terminated(_) if has_ended => _ = self.kill(),
            Stage::Leaving(since) if since.elapsed() >= grace::AFTER_INPUT => self.terminate(),
            Stage::Terminated(since) if since.elapsed() >= grace::AFTER_SIGNAL => _ = self.kill(),
            // There is no SIGTERM, so nothing would come of waiting.
            Stage::Terminated(_) if cfg!(not(unix)) => _ = self.kill(),
            Stage::Leaving(_) | Stage::Terminated(_) | Stage::Reaped(_) => {}
        }
        matches!(self.stage, Stage::Reaped(_))
    }

    /// Kills the program with its group and strays, and returns how it ended if it is a child of
    /// this jp.
    pub fn kill(&mut self) -> Option<ExitStatus> {
        if let Stage::Reaped(status) = self.stage {
            return status;
        }
        self.find_strays();
        self.kill_group();
        let status = self.reap().ok();
        // After the group, which may be starting more.
        self.strays.take().into_iter().for_each(Strays::kill);
        status
    }

    /// Waits for the program to end. What it started runs on.
    pub(crate) fn reap(&mut self) -> io::Result<ExitStatus> {
        let status = match &mut self.process {
            Process::Child(child) => child.wait(),
            Process::Found(_) => Err(io::ErrorKind::Unsupported.into()),
        };
        self.stage = Stage::Reaped(status.as_ref().ok().copied());
        status
    }

    fn find_strays(&mut self) {
        if self.strays.is_some() {
            return;
        }
        self.strays = match &self.process {
            Process::Child(child) => Some(Strays::find(child.id(), self.mark.as_ref())),
            Process::Found(identity) => identity
                .is_alive()
                .then(|| Strays::find(identity.pid.cast_unsigned(), None)),
        };
    }

    #[cfg(unix)]
    fn signal_terminate(&self) {
        match self.reach {
            Reach::Group => self.signal(Signal::TERM),
            // Interactive shells ignore SIGTERM (bash(1), "SIGNALS").
            Reach::Session { .. } => self.signal(Signal::HUP),
        }
    }

    #[cfg(not(unix))]
    fn signal_terminate(&self) {}

    /// Kills the program's group, or all groups of its session.
    #[cfg(unix)]
    pub(crate) fn kill_group(&mut self) {
        self.signal(Signal::KILL);
    }

    #[cfg(not(unix))]
    pub(crate) fn kill_group(&mut self) {
        // Fails if it has ended.
        let _ = self.child().map(Child::kill);
    }

    #[cfg(unix)]
    fn signal(&self, signal: Signal) {
        let leader = match &self.process {
            Process::Child(child) => Some(Pid::from_child(child)),
            // Once it has ended, its id may be another group's.
            Process::Found(identity) => Pid::from_raw(identity.pid).filter(|_| identity.is_alive()),
        };
        let Some(leader) = leader else { return };
        for group in self.groups(leader) {
            group::signal(group, signal);
        }
    }

    /// Returns the process groups that signals go to.
    #[cfg(unix)]
    fn groups(&self, leader: Pid) -> Vec<Pid> {
        let Reach::Session { terminal } = &self.reach else {
            return vec![leader];
        };
        let session = leader.as_raw_pid();
        let members = ProcessStat::read_all().filter(|process| process.session == session);
        let mut groups: Vec<_> = members.map(|process| process.group).collect();
        // All that is known on a system without `/proc`.
        groups.extend(rustix::termios::tcgetpgrp(terminal).map(Pid::as_raw_pid));
        groups.push(session);
        groups.sort_unstable();
        groups.dedup();
        groups.into_iter().filter_map(Pid::from_raw).collect()
    }
}

fn take_pipes(child: &mut Child) -> Option<Pipes> {
    Some((
        child.stdin.take()?,
        child.stdout.take()?,
        child.stderr.take()?,
    ))
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        if !self.outlives_jp {
            self.kill();
        }
    }
}

#[cfg(all(test, unix))]
#[expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]
mod tests {
    use std::{
        io::{BufRead as _, BufReader},
        os::unix::process::ExitStatusExt as _,
        time::Duration,
    };

    use super::*;

    fn start(script: &str) -> (Supervisor, Pipes) {
        let mut shell = Command::new("sh");
        let (program, mut pipes) = Supervisor::start_piped(shell.args(["-c", script])).unwrap();
        // The script is past its traps once it has printed a line.
        BufReader::new(&mut pipes.1)
            .read_line(&mut String::new())
            .unwrap();
        (program, pipes)
    }

    /// Ends a program and returns its exit code, its signal and the time that it took.
    fn end(script: &str) -> (Option<i32>, Option<i32>, Duration) {
        let (mut program, pipes) = start(script);
        let started = Instant::now();
        program.begin_end();
        // Only the input: a shell that can't report the end of its children ends by SIGPIPE.
        drop(pipes.0);
        let status = program.end().unwrap();
        assert_eq!(
            program.end(),
            Some(status),
            "the second end changes nothing"
        );
        (status.code(), status.signal(), started.elapsed())
    }

    #[test]
    fn program_that_reads_its_input_ends_by_itself() {
        let (code, _, time) = end("trap 'exit 9' TERM; echo up; cat; exit 3");
        assert_eq!(code, Some(3));
        assert!(time < grace::AFTER_INPUT + grace::AFTER_SIGNAL, "{time:?}");
    }

    #[test]
    fn program_that_ignores_its_input_is_terminated() {
        let (code, _, time) = end("trap 'exit 9' TERM; echo up; while :; do sleep 0.01; done");
        assert_eq!(code, Some(9));
        assert!(time >= grace::AFTER_INPUT, "{time:?}");
    }

    #[test]
    fn program_that_ignores_sigterm_is_killed() {
        let (_, signal, time) = end("trap '' TERM; echo up; while :; do sleep 0.01; done");
        assert_eq!(signal, Some(9));
        assert!(time >= grace::AFTER_INPUT + grace::AFTER_SIGNAL, "{time:?}");
    }

    #[test]
    fn many_programs_end_in_the_time_of_one() {
        let script = "trap '' TERM; echo up; while :; do sleep 0.1; done";
        let (mut programs, pipes): (Vec<_>, Vec<_>) = (0..4).map(|_| start(script)).unzip();
        let started = Instant::now();
        Supervisor::end_all(&mut programs);
        drop(pipes);
        let time = started.elapsed();
        assert!(
            time < 2 * (grace::AFTER_INPUT + grace::AFTER_SIGNAL),
            "{time:?}"
        );
        assert!(programs.iter_mut().all(|program| program.has_ended()));
    }

    #[test]
    fn dropped_program_is_killed_unless_it_lasts() {
        let (program, _pipes) = start("echo up; exec sleep 1000");
        let identity = program.identity();
        drop(program);
        assert!(Supervisor::find(identity).is_none());
        if !Identity::is_supported() {
            return println!("skipped: processes are looked for in /proc");
        }
        let lasting = Supervisor::start_lasting(Command::new("sleep").arg("1000")).unwrap();
        let identity = lasting.identity();
        drop(lasting);
        Supervisor::find(identity).expect("it runs").kill();
    }
}
