//! The modes of the hostile server.

/// The mistake that the server makes, if any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Good,
    Modern,
    Rubbish,
    OnlyRubbish,
    Dies,
    DiesAtStart,
    Silent,
    SilentCall,
    WrongId,
    ManyTools,
    ManyPages,
    CursorLoop,
    HugeBlob,
    HugeLine,
    ManyBlocks,
    BadBase64,
    SelfLink,
    LinkLoop,
    PathEscape,
    Escapes,
    RefNetwork,
    BadSchema,
    AsksForever,
    RoundsForever,
    Http401,
    Http403,
    Http404,
    Http500,
    HttpRedirect,
    HttpHtml,
    HttpHalf,
    HttpHang,
    HttpSessionLost,
}

impl Mode {
    /// True if it only supports 2026-07-28. All others only support 2025-11-25.
    pub(crate) fn is_modern(self) -> bool {
        matches!(self, Self::Modern | Self::RoundsForever)
    }

    /// True if it offers all tools, not only the two that every mode has.
    pub(crate) fn offers_everything(self) -> bool {
        matches!(self, Self::Good | Self::Modern | Self::HttpSessionLost)
    }
}

/// Over which transports a mode makes sense.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Over {
    Both,
    Stdio,
    Http,
}

impl Over {
    pub(crate) fn remark(self) -> &'static str {
        match self {
            Self::Both => "",
            Self::Stdio => " (stdio only)",
            Self::Http => " (HTTP only)",
        }
    }
}

/// A line of the table.
pub(crate) struct Entry {
    pub(crate) name: &'static str,
    pub(crate) mode: Mode,
    pub(crate) over: Over,
    /// One sentence about it.
    pub(crate) what: &'static str,
}

const fn entry(name: &'static str, mode: Mode, over: Over, what: &'static str) -> Entry {
    Entry {
        name,
        mode,
        over,
        what,
    }
}

/// Every mode.
#[rustfmt::skip]
pub(crate) const MODES: &[Entry] = &[
    entry("good", Mode::Good, Over::Both, "Does nothing wrong, in 2025-11-25, and has every tool."),
    entry("modern", Mode::Modern, Over::Both, "Does nothing wrong, in 2026-07-28, and has every tool."),
    entry("rubbish", Mode::Rubbish, Over::Stdio, "Prints a line of rubbish before each good message."),
    entry("only-rubbish", Mode::OnlyRubbish, Over::Stdio, "Prints 200 MB of rubbish and answers nothing."),
    entry("dies", Mode::Dies, Over::Both, "Prints half an answer to tools/call, says why on stderr and exits with status 3."),
    entry("dies-at-start", Mode::DiesAtStart, Over::Both, "Prints a stack trace to stderr and exits with status 1 at once."),
    entry("silent", Mode::Silent, Over::Both, "Never answers."),
    entry("silent-call", Mode::SilentCall, Over::Both, "Answers all but tools/call and resources/read."),
    entry("wrong-id", Mode::WrongId, Over::Both, "Answers tools/call under an id that nothing asked with."),
    entry("many-tools", Mode::ManyTools, Over::Both, "Has 10,000 tools, all in one page."),
    entry("many-pages", Mode::ManyPages, Over::Both, "Has pages of ten tools, or resources, without end."),
    entry("cursor-loop", Mode::CursorLoop, Over::Both, "Gives the same cursor with every page."),
    entry("huge-blob", Mode::HugeBlob, Over::Both, "Gives 100 MB for the resource note:one, and an image of that size for echo."),
    entry("huge-line", Mode::HugeLine, Over::Stdio, "Answers tools/call with 300 MB and no newline."),
    entry("many-blocks", Mode::ManyBlocks, Over::Both, "Answers echo with 100,000 blocks."),
    entry("bad-base64", Mode::BadBase64, Over::Both, "Sends blobs and an image that are no base64."),
    entry("self-link", Mode::SelfLink, Over::Both, "Answers echo with a link to note:self, which holds that link again."),
    entry("link-loop", Mode::LinkLoop, Over::Both, "Answers echo with the same link 1,000 times."),
    entry("path-escape", Mode::PathEscape, Over::Both, "Has resources whose URIs and names lead out of every directory."),
    entry("escapes", Mode::Escapes, Over::Both, "Puts terminal escapes, bidi overrides and newlines into all that a person sees."),
    entry("ref-network", Mode::RefNetwork, Over::Both, "Has a tool whose schema refers to http://127.0.0.1:$HOSTILE_REF/schema.json."),
    entry("bad-schema", Mode::BadSchema, Over::Both, "Has tools with schemas and names that can't be."),
    entry("asks-forever", Mode::AsksForever, Over::Both, "Asks 1,000 questions in each call."),
    entry("rounds-forever", Mode::RoundsForever, Over::Both, "Wants more input however often a call is retried, in 2026-07-28."),
    entry("http-401", Mode::Http401, Over::Http, "Answers 401 with a challenge."),
    entry("http-403", Mode::Http403, Over::Http, "Answers 403."),
    entry("http-404", Mode::Http404, Over::Http, "Answers 404."),
    entry("http-500", Mode::Http500, Over::Http, "Answers 500."),
    entry("http-redirect", Mode::HttpRedirect, Over::Http, "Redirects to another port, and writes what arrives there to PORT-FILE.redirected."),
    entry("http-html", Mode::HttpHtml, Over::Http, "Answers with a web page."),
    entry("http-half", Mode::HttpHalf, Over::Http, "Closes the connection in the middle of each answer."),
    entry("http-hang", Mode::HttpHang, Over::Http, "Takes connections and never answers."),
    entry("http-session-lost", Mode::HttpSessionLost, Over::Http, "Forgets its first session after the first tools/call."),
];
