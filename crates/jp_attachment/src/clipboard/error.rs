use jp_process::ProcessError;

/// An error of reading the clipboard.
#[derive(Debug, thiserror::Error)]
pub enum ClipboardError {
    /// There is neither a Wayland nor an X11 display.
    #[error("there is no display: neither WAYLAND_DISPLAY nor DISPLAY is set")]
    NoDisplay,
    /// No tool that can read it is installed.
    #[error(
        "no program to read it is installed (tried {tried}); install wl-clipboard, xclip or xsel"
    )]
    NoTool {
        /// The tools.
        tried: String,
    },
    /// The clipboard is empty.
    #[error("it is empty")]
    Empty,
    /// The tool could not read it.
    #[error("`{tool}` reports {message:?}")]
    Refused {
        /// The tool.
        tool: &'static str,
        /// Its error message, or its exit status.
        message: String,
    },
    /// The tool could not be run.
    #[error("`{tool}` can't be run")]
    Tool {
        /// The tool.
        tool: &'static str,
        /// The cause.
        source: ProcessError,
    },
}
