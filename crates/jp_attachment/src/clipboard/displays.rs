use std::{ffi::OsString, process::Command};

/// The displays of a desktop other than macOS and Windows; each has a clipboard.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Displays {
    /// The value of `WAYLAND_DISPLAY`.
    pub wayland: Option<OsString>,
    /// The value of `DISPLAY`.
    pub x11: Option<OsString>,
}

impl Displays {
    /// Sets the variables for the tool, because this process may have removed them from its
    /// environment.
    pub(super) fn pass(&self, command: &mut Command) {
        command.envs(
            self.wayland
                .iter()
                .map(|display| ("WAYLAND_DISPLAY", display)),
        );
        command.envs(self.x11.iter().map(|display| ("DISPLAY", display)));
    }
}
