/// The kind of source that an input names, by its URI scheme.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scheme {
    /// `file:`: a file, directory or glob.
    File,
    /// `external:`: a snapshot of a file outside the workspace.
    External,
    /// `http:`, `https:`.
    Http,
    /// `data:`.
    Data,
    /// `cmd:`: the output of a command.
    Command,
    /// `mcp+SERVER+URI`: a resource of an MCP server.
    Mcp,
    /// `bear:`: notes.
    Bear,
    /// `clip:`: the clipboard.
    Clipboard,
    /// `-`: standard input.
    Stdin,
    /// Any other.
    Unknown(String),
}

/// The sources that can be attached, for messages.
pub(crate) const ATTACHABLE: &str = "a path, a directory, a glob, a file:, http(s): or data: URL, cmd: with a command, mcp+SERVER+URI, bear:, clip: for the clipboard, or - for stdin";

/// The prefix of a resource of an MCP server.
const MCP: &str = "mcp+";

impl Scheme {
    /// Splits `input` into its scheme (RFC 3986 §3.1; case does not matter) and the rest.
    ///
    /// A single letter is a Windows drive, not a scheme. After `mcp+` follow the name of the server
    /// and the server's own URI, with another scheme.
    #[must_use]
    pub fn split(input: &str) -> Option<(Self, &str)> {
        if input == "-" {
            // Short for `stdin:`.
            return Some((Self::Stdin, ""));
        }
        if let Some((start, rest)) = input.split_at_checked(MCP.len())
            && start.eq_ignore_ascii_case(MCP)
        {
            return Some((Self::Mcp, rest));
        }
        let (name, rest) = input.split_once(':')?;
        let is_scheme = name.len() > 1
            && name.starts_with(|first: char| first.is_ascii_alphabetic())
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
        is_scheme.then(|| (Self::from_name(&name.to_ascii_lowercase()), rest))
    }

    fn from_name(name: &str) -> Self {
        match name {
            "file" => Self::File,
            "external" => Self::External,
            "http" | "https" => Self::Http,
            "data" => Self::Data,
            "cmd" => Self::Command,
            "bear" => Self::Bear,
            "clip" => Self::Clipboard,
            "stdin" => Self::Stdin,
            _ => Self::Unknown(name.to_owned()),
        }
    }

    /// Returns the scheme as the user writes it.
    pub(crate) fn display_name(&self) -> String {
        match self {
            Self::File => "file:".into(),
            Self::External => "external:".into(),
            Self::Http => "http:".into(),
            Self::Data => "data:".into(),
            Self::Command => "cmd:".into(),
            Self::Mcp => "mcp+SERVER+URI".into(),
            Self::Bear => "bear:".into(),
            Self::Clipboard => "clip:".into(),
            Self::Stdin => "-".into(),
            Self::Unknown(name) => format!("{name}:"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scheme_is_not_a_path() {
        let table = [
            ("file:a", Some((Scheme::File, "a"))),
            ("FILE:///a", Some((Scheme::File, "///a"))),
            ("https://a/b:c", Some((Scheme::Http, "//a/b:c"))),
            ("cmd:git diff", Some((Scheme::Command, "git diff"))),
            ("mcp+docs+file:///x", Some((Scheme::Mcp, "docs+file:///x"))),
            ("MCP+Docs+x", Some((Scheme::Mcp, "Docs+x"))),
            ("mcp:x", Some((Scheme::Unknown("mcp".into()), "x"))),
            ("-", Some((Scheme::Stdin, ""))),
            ("clip:", Some((Scheme::Clipboard, ""))),
            ("gopher:x", Some((Scheme::Unknown("gopher".into()), "x"))),
            (r"C:\x", None),
            ("src/a:b", None),
            ("1a:b", None),
            (":a", None),
            ("a", None),
            ("é:a", None),
        ];
        for (input, split) in table {
            assert_eq!(Scheme::split(input), split, "{input:?}");
        }
    }
}
