//! There are no named pipes that would do here: nothing is ever kept.

use std::{
    convert::Infallible,
    io,
    path::Path,
    process::{Command, ExitStatus},
    time::Duration,
};

use crate::stateful::{
    handles::{Left, Pending},
    process::Reply,
};

/// What there is none of.
#[derive(Debug)]
pub(in crate::stateful) struct Kept {
    none: Infallible,
    pub(in crate::stateful) is_owed: bool,
}

impl Kept {
    pub(in crate::stateful) fn start(_: Command, _: &Path) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(in crate::stateful) fn all(_: &Path) -> Vec<Left> {
        Vec::new()
    }

    pub(in crate::stateful) fn save(&self, _: Option<&Pending>) {
        match self.none {}
    }

    pub(in crate::stateful) fn send(&mut self, _: Vec<u8>) {
        match self.none {}
    }

    pub(in crate::stateful) fn receive(&mut self, _: Duration, _: &dyn Fn() -> bool) -> Reply {
        match self.none {}
    }

    pub(in crate::stateful) fn receive_ready(&mut self) -> Option<Reply> {
        match self.none {}
    }

    pub(in crate::stateful) fn errors(&self) -> String {
        match self.none {}
    }

    pub(in crate::stateful) fn end(&mut self) -> Option<ExitStatus> {
        match self.none {}
    }
}
