//! `search_files`: lines that match a regular expression.

use std::{fmt::Write, io, ops::ControlFlow, path::Path};

use cap_std::fs::File;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{
    BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkFinish, SinkMatch,
};
use ignore::overrides::Override;
use jp_tool::ContentBlock;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{
    action::plan_action,
    declare::{declare, read_arguments},
    files::{Found, Spot, Walk, is_sensitive, open, shown},
    kind::Builtin,
    limit::{Limit, Limited},
    list_files, preview,
};
use crate::{Preview, Tool, Toolbox, plan::Plan};

/// How many lines that match are shown.
const MAX_MATCHES: usize = 200;
/// How much of one line is shown, in bytes.
const MAX_LINE: usize = 300;
/// How many lines around a match may be asked for.
const MAX_CONTEXT: usize = 20;
/// Length of the longest line that is looked at, in bytes.
const MAX_HEAP: usize = 64 * 1024 * 1024;

/// How much memory a regular expression may take, compiled and at work.
const MAX_REGEX_BYTES: usize = 10_000_000;

#[derive(Deserialize)]
struct Arguments {
    pattern: String,
    #[serde(default = "list_files::root")]
    path: String,
    glob: Option<String>,
    #[serde(default)]
    case_insensitive: bool,
    #[serde(default)]
    context: usize,
}

pub(super) fn tool() -> Tool {
    let parameters = json!({
        "type": "object",
        "properties": {
            "pattern": {"type": "string", "description": "A regular expression, matched line by line."},
            "path": {"type": "string", "description": "The directory or file, relative to the workspace root, which is the default."},
            "glob": {"type": "string", "description": "Searches the files that match alone, as in .gitignore: `*.rs`, `src/**`, `!*.lock`."},
            "case_insensitive": {"type": "boolean"},
            "context": {"type": "integer", "minimum": 0, "maximum": MAX_CONTEXT, "description": "How many lines to show around each match."},
        },
        "required": ["pattern"],
        "additionalProperties": false,
    });
    let description = "Finds lines that match a regular expression, as `path:line: text`; ignored and binary files are left out.";
    declare(Builtin::SearchFiles, description, parameters)
}

pub(super) fn plan<'a>(
    tool: &'a Tool,
    arguments: &Map<String, Value>,
    toolbox: &'a Toolbox,
) -> Result<Plan<'a>, String> {
    let arguments: Arguments = read_arguments(arguments)?;
    let matcher = RegexMatcherBuilder::new()
        .multi_line(true)
        // In this order: `$` is before a `\r` too, and a line ends with `\n` all the same.
        .crlf(true)
        .line_terminator(Some(b'\n'))
        .case_insensitive(arguments.case_insensitive)
        .size_limit(MAX_REGEX_BYTES)
        .dfa_size_limit(MAX_REGEX_BYTES)
        .build(&arguments.pattern)
        .map_err(|error| {
            format!("`pattern` is no regular expression that can be searched for: {error}")
        })?;
    let globs = list_files::globs(arguments.glob.as_deref())?;
    let spot = toolbox.files.readable(&arguments.path)?;
    let title = format!("search {} for {}", spot.shown(), arguments.pattern);
    let preview = Preview {
        title,
        detail: None,
    };
    let context = arguments.context.min(MAX_CONTEXT);
    Ok(plan_action(preview, false, move |line| {
        let limit = Limit::new(tool, line);
        let search = Search::new(&matcher, context, &limit);
        search
            .run(toolbox, &spot, &globs)
            .map(|text| vec![ContentBlock::text(text)])
    }))
}

/// A search under way.
struct Search<'a> {
    matcher: &'a RegexMatcher,
    searcher: Searcher,
    limit: &'a Limit<'a>,
    text: String,
    matches: usize,
    is_cut: bool,
    /// Files that were left out as their names tell secrets.
    secrets: usize,
    unreadable: usize,
}

impl<'a> Search<'a> {
    fn new(matcher: &'a RegexMatcher, context: usize, limit: &'a Limit<'a>) -> Self {
        let searcher = SearcherBuilder::new()
            .binary_detection(BinaryDetection::quit(0))
            .before_context(context)
            .after_context(context)
            .heap_limit(Some(MAX_HEAP))
            .build();
        let text = String::new();
        Self {
            matcher,
            searcher,
            limit,
            text,
            matches: 0,
            is_cut: false,
            secrets: 0,
            unreadable: 0,
        }
    }

    fn run(mut self, toolbox: &Toolbox, spot: &Spot, globs: &Override) -> Result<String, String> {
        let unreadable = match spot.found {
            Found::File => {
                let file = spot.open();
                self.file(&spot.path, move || file.map_err(io::Error::other));
                0
            }
            _ => {
                let limit = self.limit;
                let is_moot = move || limit.is_over();
                let walk = Walk {
                    files: &toolbox.files,
                    depth: usize::MAX,
                    is_moot: &is_moot,
                };
                walk.run(spot, &mut |entry| {
                    if entry.kind.is_file() && list_files::selects(globs, entry.path) {
                        self.file(entry.path, || open(entry.directory, entry.name));
                    }
                    if self.is_cut {
                        ControlFlow::Break(())
                    } else {
                        ControlFlow::Continue(())
                    }
                })?
            }
        };
        self.unreadable += unreadable;
        self.told()
    }

    /// Searches a file.
    fn file(&mut self, path: &Path, open: impl FnOnce() -> io::Result<File>) {
        if is_sensitive(path) {
            self.secrets += 1;
            return;
        }
        let mut found = FoundLines {
            path: preview::one_line(&shown(path)),
            left: MAX_MATCHES - self.matches,
            text: String::new(),
            matches: 0,
            is_cut: false,
            is_binary: false,
        };
        let searched = open().and_then(|file| {
            let source = Limited {
                source: file,
                limit: self.limit,
            };
            self.searcher
                .search_reader(self.matcher, source, &mut found)
        });
        match searched {
            Ok(()) if found.is_binary => {}
            Err(_) if !self.limit.is_over() => self.unreadable += 1,
            // Of a file that could not be searched to its end for want of time, what was found counts.
            Ok(()) | Err(_) => {
                self.text.push_str(&found.text);
                self.matches += found.matches;
                self.is_cut |= found.is_cut;
            }
        }
    }

    /// Says what was found and what was left out.
    fn told(self) -> Result<String, String> {
        let unfinished = self.limit.told()?;
        let mut text = self.text;
        if self.matches == 0 && unfinished.is_none() {
            text.push_str("No line matches.\n");
        }
        if self.is_cut {
            _ = writeln!(
                text,
                "Only the first {MAX_MATCHES} matches are shown; narrow the pattern, the path or the glob."
            );
        }
        if self.secrets > 0 {
            let count = self.secrets;
            _ = writeln!(
                text,
                "Files not searched, as their names say that they hold secrets: {count}."
            );
        }
        if self.unreadable > 0 {
            _ = writeln!(
                text,
                "Files and directories that could not be read: {}.",
                self.unreadable
            );
        }
        text.extend(unfinished.map(|unfinished| unfinished + "\n"));
        Ok(text)
    }
}

/// What is found in one file.
struct FoundLines {
    path: String,
    /// How many more matches may be shown.
    left: usize,
    text: String,
    matches: usize,
    is_cut: bool,
    is_binary: bool,
}

impl FoundLines {
    fn push(&mut self, number: Option<u64>, mark: char, bytes: &[u8]) {
        let line = String::from_utf8_lossy(bytes);
        let line = line.trim_end_matches(['\n', '\r']);
        let number = number.unwrap_or_default();
        let end = (0..=MAX_LINE.min(line.len()))
            .rev()
            .find(|end| line.is_char_boundary(*end));
        let shown = &line[..end.unwrap_or_default()];
        _ = write!(self.text, "{}{mark}{number}{mark} {shown}", self.path);
        self.text.push_str(if shown.len() < line.len() {
            "… [cut]\n"
        } else {
            "\n"
        });
    }
}

impl Sink for FoundLines {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        self.is_cut = self.matches == self.left;
        if !self.is_cut {
            self.matches += 1;
            self.push(found.line_number(), ':', found.bytes());
        }
        Ok(!self.is_cut)
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> io::Result<bool> {
        self.push(context.line_number(), '-', context.bytes());
        Ok(true)
    }

    fn context_break(&mut self, _: &Searcher) -> io::Result<bool> {
        self.text.push_str("--\n");
        Ok(true)
    }

    fn finish(&mut self, _: &Searcher, finish: &SinkFinish) -> io::Result<()> {
        self.is_binary = finish.binary_byte_offset().is_some();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::line::Line;

    #[test]
    fn search_that_runs_out_of_time_tells_what_it_found() {
        let root = tempfile::tempdir().unwrap();
        let open = |name: &str| {
            let path = root.path().join(name);
            std::fs::write(&path, "one\ntwo\n").unwrap();
            std::fs::File::open(path).map(File::from_std)
        };
        let (tool, line) = (tool(), Line::unheard(false));
        let (limit, matcher) = (
            Limit::new(&tool, &line),
            RegexMatcher::new_line_matcher("two").unwrap(),
        );
        let mut search = Search::new(&matcher, 0, &limit);
        search.file(Path::new("a"), || open("a"));
        limit.run_out();
        search.file(Path::new("b"), || open("b"));
        insta::assert_snapshot!(search.told().unwrap(), @"
        a:2: two
        Not finished: the call took more than 120 s. Ask for less; the person can allow more with `conversation.tools.search_files.timeout_secs`.
        ");
    }
}
