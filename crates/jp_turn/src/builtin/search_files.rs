//! `search_files`: finds lines that match a regular expression.

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
    files::{Found, Spot, Walk, display_path, is_sensitive, open},
    kind::Builtin,
    limit::{Limit, Limited},
    list_files, preview,
};
use crate::{Preview, Tool, Toolbox, plan::Plan};

/// The maximum number of matching lines in a result: about 20,000 tokens at worst. A model that
/// gets more should narrow its search.
const MAX_MATCHES: usize = 200;
/// The maximum bytes of one line in a result: minified files have very long lines.
const MAX_LINE: usize = 300;
/// The maximum number of lines around a match.
const MAX_CONTEXT: usize = 20;
/// The length of the longest line that is searched, in bytes.
const MAX_HEAP: usize = 64 * 1024 * 1024;

/// The maximum memory of a compiled regular expression and of its automaton, in bytes. The default
/// of ripgrep is ten times as much, but the pattern comes from a model.
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
            "path": {"type": "string", "description": "The directory or file, relative to the workspace root. Default: the root."},
            "glob": {"type": "string", "description": "Searches only the files that match, in the syntax of .gitignore: `*.rs`, `src/**`, `!*.lock`."},
            "case_insensitive": {"type": "boolean"},
            "context": {"type": "integer", "minimum": 0, "maximum": MAX_CONTEXT, "description": "How many lines to show around each match."},
        },
        "required": ["pattern"],
        "additionalProperties": false,
    });
    let description = "Searches files for lines that match a regular expression. Returns each line as `path:line: text`. Skips ignored and binary files.";
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
        // The order matters: `crlf` lets `$` match before `\r`, and would set the line terminator
        // to `\r\n`.
        .crlf(true)
        .line_terminator(Some(b'\n'))
        .case_insensitive(arguments.case_insensitive)
        .size_limit(MAX_REGEX_BYTES)
        .dfa_size_limit(MAX_REGEX_BYTES)
        .build(&arguments.pattern)
        .map_err(|error| format!("`pattern` can't be used as a regular expression: {error}"))?;
    let globs = list_files::compile_globs(arguments.glob.as_deref())?;
    let spot = toolbox.files.find_readable(&arguments.path)?;
    let title = format!("search {} for {}", spot.display(), arguments.pattern);
    let preview = Preview::from_title(title);
    let context = arguments.context.min(MAX_CONTEXT);
    Ok(plan_action(preview, false, move |line| {
        let limit = Limit::new(tool, line);
        let search = Search::new(&matcher, context, &limit);
        search
            .run(toolbox, &spot, &globs)
            .map(|text| vec![ContentBlock::text(text)])
    }))
}

/// A search in progress.
struct Search<'a> {
    matcher: &'a RegexMatcher,
    searcher: Searcher,
    limit: &'a Limit<'a>,
    text: String,
    matches: usize,
    is_cut: bool,
    /// The number of files that were skipped because their names suggest secrets.
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
                self.search_file(&spot.path, move || file.map_err(io::Error::other));
                0
            }
            _ => {
                let limit = self.limit;
                let walk = Walk {
                    files: &toolbox.files,
                    depth: usize::MAX,
                    is_moot: &|| limit.is_over(),
                };
                walk.run(spot, &mut |entry| {
                    if entry.kind.is_file() && list_files::selects(globs, entry.path) {
                        self.search_file(entry.path, || open(entry.directory, entry.name));
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
        self.report()
    }

    /// Searches a file.
    fn search_file(&mut self, path: &Path, open: impl FnOnce() -> io::Result<File>) {
        if is_sensitive(path) {
            self.secrets += 1;
            return;
        }
        let mut found = FoundLines {
            path: preview::one_line(&display_path(path)),
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
            // If the time ended while the file was searched, keep the matches so far.
            Ok(()) | Err(_) => {
                self.text.push_str(&found.text);
                self.matches += found.matches;
                self.is_cut |= found.is_cut;
            }
        }
    }

    /// Writes the matches, and what was left out.
    fn report(self) -> Result<String, String> {
        let unfinished = self.limit.describe_stop()?;
        let mut text = self.text;
        if self.matches == 0 && unfinished.is_none() {
            text.push_str("No line matches.\n");
        }
        if self.is_cut {
            _ = writeln!(
                text,
                "Only the first {MAX_MATCHES} matches are shown. Narrow `pattern`, `path` or `glob`."
            );
        }
        if self.secrets > 0 {
            let count = self.secrets;
            _ = writeln!(
                text,
                "Files not searched because their names suggest secrets: {count}."
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

/// The matches in one file.
struct FoundLines {
    path: String,
    /// The number of matches that may still be shown.
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
    fn search_that_runs_out_of_time_returns_its_matches() {
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
        search.search_file(Path::new("a"), || open("a"));
        limit.run_out();
        search.search_file(Path::new("b"), || open("b"));
        insta::assert_snapshot!(search.report().unwrap(), @"
        a:2: two
        Not finished: the call took more than 120 s. Ask for less. The user can raise the limit with `conversation.tools.search_files.timeout_secs`.
        ");
    }
}
