use std::{ffi::OsString, process::Command};

/// Where there may be clipboards, on a desktop that is neither a Mac's nor Windows'.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Displays {
    /// What `WAYLAND_DISPLAY` names.
    pub wayland: Option<OsString>,
    /// What `DISPLAY` names.
    pub x11: Option<OsString>,
}

impl Displays {
    /// Sets for the tool alone what this process may not have.
    pub(super) fn pass(&self, command: &mut Command) {
        command.envs(
            self.wayland
                .iter()
                .map(|display| ("WAYLAND_DISPLAY", display)),
        );
        command.envs(self.x11.iter().map(|display| ("DISPLAY", display)));
    }
}
