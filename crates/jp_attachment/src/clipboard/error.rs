use jp_process::ProcessError;

/// Why the clipboard can't be attached.
#[derive(Debug, thiserror::Error)]
pub enum ClipboardError {
    /// No desktop is known of.
    #[error("there is none here: neither WAYLAND_DISPLAY nor DISPLAY is set")]
    NoDisplay,
    /// None of the tools that could read it is installed.
    #[error("there is nothing to read it with ({tried}): install wl-clipboard, xclip or xsel")]
    NoTool {
        /// What was looked for.
        tried: String,
    },
    /// It holds nothing.
    #[error("it is empty")]
    Empty,
    /// The tool could not read it.
    #[error("`{tool}` says {said:?}")]
    Refused {
        /// The tool.
        tool: &'static str,
        /// What it printed, or its exit status.
        said: String,
    },
    /// The tool could not be run.
    #[error("`{tool}` can't be run")]
    Tool {
        /// The tool.
        tool: &'static str,
        /// Why it failed.
        source: ProcessError,
    },
}
