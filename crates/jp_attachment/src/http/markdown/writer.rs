use jp_resource::mime::fence_for;

use super::escape::{encode_target, escape, escape_start};

/// The deepest nesting of lists, items and quotes. Each level makes every line longer, so deeper
/// levels are written without their markers.
const MAX_DEPTH: usize = 16;
/// The most inline elements that are open at once. Text of a malicious page would otherwise cost
/// time in proportion to them.
const MAX_INLINES: usize = 32;

/// Formatting within a paragraph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Inline {
    Strong,
    Emphasis,
    Strike,
    Link,
}

/// Writes Markdown line by line.
///
/// White space, line breaks and the start of formatting are held back until text follows.
#[derive(Default)]
pub(super) struct Writer {
    out: String,
    containers: Vec<Container>,
    /// The number of open containers that are too deep for `containers`.
    too_deep: usize,
    inlines: Vec<Open>,
    /// The number of newlines before the next text, at most 2.
    breaks: usize,
    has_space: bool,
    heading: Option<usize>,
    table: Table,
}

/// A block that contains others: it gives each line a prefix, or numbers its items.
enum Container {
    List { next: Option<u64> },
    Item { marker: String, is_written: bool },
    Quote { is_written: bool },
}

struct Open {
    kind: Inline,
    /// The target of a link; empty for other elements.
    target: String,
    is_written: bool,
    /// Whether it is not written, because it is within another of its kind or is a link without a
    /// target.
    is_silent: bool,
}

/// The outermost table.
#[derive(Default)]
struct Table {
    /// The number of nested open tables.
    depth: usize,
    has_header: bool,
    /// The number of finished cells in the row.
    columns: usize,
    is_in_cell: bool,
    is_cell_empty: bool,
}

impl Writer {
    /// Returns the length so far, in bytes.
    pub(super) fn len(&self) -> usize {
        self.out.len()
    }

    /// Writes text and collapses its white space.
    pub(super) fn text(&mut self, text: &str) {
        for (index, word) in text.split(is_space).enumerate() {
            self.has_space |= index > 0;
            if word.is_empty() {
                continue;
            }
            let starts_line = self.flush();
            let escaped = escape(word, self.table.is_in_cell);
            if starts_line {
                self.out.push_str(&escape_start(&escaped));
            } else {
                self.out.push_str(&escaped);
            }
        }
    }

    /// Ends the paragraph.
    pub(super) fn block(&mut self) {
        self.end_line(2);
    }

    /// Ends the line, within a paragraph.
    pub(super) fn line_break(&mut self) {
        if self.table.is_in_cell || self.heading.is_some() {
            self.has_space = true;
        } else {
            self.request_break(2.min(self.breaks + 1));
        }
    }

    pub(super) fn rule(&mut self) {
        self.block();
        if !self.table.is_in_cell {
            self.flush();
            self.out.push_str("---");
            self.block();
        }
    }

    pub(super) fn start_heading(&mut self, level: usize) {
        self.block();
        self.heading = Some(level).filter(|_| !self.table.is_in_cell);
    }

    pub(super) fn definition(&mut self) {
        self.end_line(1);
        self.flush();
        self.out.push_str(": ");
        self.has_space = false;
    }

    pub(super) fn open(&mut self, kind: Inline) {
        let is_silent = self.inlines.iter().any(|open| open.kind == kind);
        self.push_inline(Open {
            kind,
            target: String::new(),
            is_written: false,
            is_silent,
        });
    }

    /// Opens a link. A link within the page, or to a script, is written as its text.
    pub(super) fn open_link(&mut self, target: &str) {
        self.close(Inline::Link);
        let target = encode_target(target);
        let is_silent = target.is_none();
        let target = target.unwrap_or_default();
        self.push_inline(Open {
            kind: Inline::Link,
            target,
            is_written: false,
            is_silent,
        });
    }

    fn push_inline(&mut self, open: Open) {
        if self.inlines.len() < MAX_INLINES {
            self.inlines.push(open);
        }
    }

    /// Closes the last element of a kind, and all elements that were opened in it.
    pub(super) fn close(&mut self, kind: Inline) {
        let Some(index) = self.inlines.iter().rposition(|open| open.kind == kind) else {
            return;
        };
        for open in self.inlines.split_off(index).iter().rev() {
            self.write_end(open);
        }
    }

    pub(super) fn image(&mut self, text: &str, source: &str) {
        let text = text.split_ascii_whitespace().collect::<Vec<_>>().join(" ");
        if text.is_empty() {
            return;
        }
        self.flush();
        let text = escape(&text, self.table.is_in_cell)
            .replace('[', "\\[")
            .replace(']', "\\]");
        match encode_target(source) {
            Some(source) => self.out.push_str(&format!("![{text}]({source})")),
            None => self.out.push_str(&text),
        }
    }

    /// Writes inline code.
    pub(super) fn code(&mut self, text: &str) {
        self.has_space |= text.starts_with(is_space);
        let mut code = text
            .split(is_space)
            .filter(|word| !word.is_empty())
            .collect::<Vec<_>>()
            .join(" ");
        if !code.is_empty() {
            if self.table.is_in_cell {
                code = code.replace('|', "\\|");
            }
            self.flush();
            let longest = code
                .split(|character| character != '`')
                .map(str::len)
                .max()
                .unwrap_or(0);
            // CommonMark §6.1: the delimiter is longer than any run of backticks in the code.
            let fence = "`".repeat(longest + 1);
            let pad = if code.starts_with('`') || code.ends_with('`') {
                " "
            } else {
                ""
            };
            self.out
                .push_str(&format!("{fence}{pad}{code}{pad}{fence}"));
        }
        self.has_space |= text.ends_with(is_space);
    }

    /// Writes a code block; in a table it is inline code, because a cell has only one line.
    pub(super) fn code_block(&mut self, text: &str, language: Option<&str>) {
        if self.table.is_in_cell {
            self.has_space = true;
            self.code(text);
            self.has_space = true;
            return;
        }
        let text = text.strip_prefix('\n').unwrap_or(text).trim_end();
        self.block();
        if text.is_empty() {
            return;
        }
        self.flush();
        let fence = fence_for(text);
        let language = language.unwrap_or_default();
        self.out.push_str(&format!("{fence}{language}"));
        let prefix = self.prefix();
        for line in text.lines().chain([&*fence]) {
            self.out.push('\n');
            self.out.push_str(if line.is_empty() {
                prefix.trim_end()
            } else {
                &prefix
            });
            self.out.push_str(line);
        }
        self.block();
    }

    pub(super) fn start_list(&mut self, first: Option<u64>) {
        self.end_line(self.list_break());
        self.push(Container::List { next: first });
    }

    pub(super) fn end_list(&mut self) {
        self.pop(|container| matches!(container, Container::List { .. }));
        self.end_line(self.list_break());
    }

    pub(super) fn start_item(&mut self) {
        self.end_line(1);
        if self.table.is_in_cell || self.too_deep > 0 {
            return;
        }
        // An item ends the one before it in the same list, because `</li>` is optional (HTML
        // §13.1.2.4).
        let list = self
            .containers
            .iter()
            .rposition(|container| matches!(container, Container::List { .. }));
        match list {
            Some(list) => self.containers.truncate(list + 1),
            None if matches!(self.containers.last(), Some(Container::Item { .. })) => {
                self.containers.pop();
            }
            None => {}
        }
        let marker = match self.containers.last_mut() {
            Some(Container::List { next: Some(next) }) => {
                let marker = format!("{next}. ");
                *next = next.saturating_add(1);
                marker
            }
            _ => "- ".to_owned(),
        };
        // Not with `push`: the list counts for the depth, its items don't.
        self.containers.push(Container::Item {
            marker,
            is_written: false,
        });
    }

    pub(super) fn end_item(&mut self) {
        self.end_line(1);
        // `</li>` closes only an item of the innermost list.
        let inner = self
            .containers
            .iter()
            .rposition(|container| !matches!(container, Container::Quote { .. }));
        if let Some(index) = inner.filter(|_| !self.table.is_in_cell && self.too_deep == 0)
            && matches!(self.containers[index], Container::Item { .. })
        {
            self.containers.truncate(index);
        }
    }

    pub(super) fn start_quote(&mut self) {
        self.block();
        self.push(Container::Quote { is_written: false });
    }

    pub(super) fn end_quote(&mut self) {
        self.pop(|container| matches!(container, Container::Quote { .. }));
        self.block();
    }

    pub(super) fn start_table(&mut self) {
        self.block();
        self.table.depth += 1;
    }

    pub(super) fn end_table(&mut self) {
        if self.table.depth == 1 {
            self.end_row();
            self.table = Table::default();
        } else {
            self.table.depth = self.table.depth.saturating_sub(1);
        }
        self.block();
    }

    /// Starts a cell, and with the first one a row. Cells of a nested table become text of the
    /// outer cell.
    pub(super) fn start_cell(&mut self) {
        if self.table.depth != 1 {
            return self.block();
        }
        self.end_cell();
        if self.table.columns == 0 {
            self.end_line(1);
            self.flush();
            self.out.push('|');
        }
        self.out.push(' ');
        self.table.is_in_cell = true;
        self.table.is_cell_empty = true;
        self.has_space = false;
    }

    pub(super) fn end_cell(&mut self) {
        if self.table.depth == 1 && self.table.is_in_cell {
            self.suspend_inlines();
            self.table.is_in_cell = false;
            self.table.columns += 1;
            self.out.push_str(" |");
            self.has_space = false;
        } else {
            self.has_space = true;
        }
    }

    pub(super) fn end_row(&mut self) {
        if self.table.depth != 1 {
            return self.block();
        }
        if self.table.is_in_cell {
            self.end_cell();
        }
        let columns = std::mem::take(&mut self.table.columns);
        if columns > 0 && !self.table.has_header {
            self.table.has_header = true;
            let line = format!("\n{}|{}", self.prefix(), " --- |".repeat(columns));
            self.out.push_str(&line);
        }
        self.end_line(1);
    }

    pub(super) fn finish(mut self) -> String {
        // Tables without an end tag end here.
        self.table.depth = self.table.depth.min(1);
        self.end_table();
        self.out.truncate(self.out.trim_end().len());
        self.out
    }

    /// Writes the held back breaks, space and formatting. Returns whether this starts a line.
    fn flush(&mut self) -> bool {
        let mut starts_line = false;
        if self.table.is_in_cell {
            if self.has_space && !self.table.is_cell_empty {
                self.out.push(' ');
            }
            self.table.is_cell_empty = false;
        } else if self.breaks > 0 || self.out.is_empty() {
            self.start_line();
            starts_line = true;
        } else if self.has_space {
            self.out.push(' ');
        }
        self.has_space = false;
        for open in self.inlines.iter_mut().filter(|open| !open.is_written) {
            open.is_written = true;
            self.out.push_str(open.start());
        }
        starts_line
    }

    fn start_line(&mut self) {
        if !self.out.is_empty() {
            self.out.push('\n');
            if self.breaks > 1 {
                let prefix = self.prefix();
                self.out.push_str(prefix.trim_end());
                self.out.push('\n');
            }
        }
        self.breaks = 0;
        for container in &mut self.containers {
            self.out.push_str(&container.start());
        }
        if let Some(level) = self.heading {
            self.out.push_str(&"#".repeat(level));
            self.out.push(' ');
        }
    }

    /// Returns the prefix of a line that is not the first of its containers.
    fn prefix(&self) -> String {
        self.containers.iter().map(Container::prefix).collect()
    }

    /// Ends the line, its formatting and a heading. In a cell this is a space.
    fn end_line(&mut self, breaks: usize) {
        if self.table.is_in_cell {
            self.has_space = true;
            return;
        }
        self.suspend_inlines();
        self.heading = None;
        self.request_break(breaks);
    }

    fn request_break(&mut self, breaks: usize) {
        if !self.out.is_empty() {
            self.breaks = self.breaks.max(breaks);
        }
        self.has_space = false;
    }

    /// Ends the formatting, which the next paragraph starts again. A link is not repeated.
    fn suspend_inlines(&mut self) {
        // Ends are written from the inside out.
        for open in std::mem::take(&mut self.inlines).into_iter().rev() {
            self.write_end(&open);
            if open.kind != Inline::Link || !open.is_written {
                self.inlines.push(Open {
                    is_written: false,
                    ..open
                });
            }
        }
        self.inlines.reverse();
    }

    fn write_end(&mut self, open: &Open) {
        if open.is_written && !open.is_silent {
            match open.kind {
                Inline::Link => self.out.push_str(&format!("]({})", open.target)),
                _ => self.out.push_str(open.start()),
            }
        }
    }

    fn push(&mut self, container: Container) {
        if self.table.is_in_cell {
            return;
        }
        if self.containers.len() < MAX_DEPTH {
            self.containers.push(container);
        } else {
            self.too_deep += 1;
        }
    }

    fn pop(&mut self, is_kind: impl Fn(&Container) -> bool) {
        if self.table.is_in_cell {
            return;
        }
        if self.too_deep > 0 {
            self.too_deep -= 1;
        } else if let Some(index) = self.containers.iter().rposition(is_kind) {
            self.containers.truncate(index);
        }
    }

    /// Returns the number of newlines around a list: an inner list needs no blank line.
    fn list_break(&self) -> usize {
        let is_nested = self
            .containers
            .iter()
            .any(|container| matches!(container, Container::Item { .. }));
        if is_nested { 1 } else { 2 }
    }
}

impl Container {
    /// Returns the prefix of the next line and marks the container as written.
    fn start(&mut self) -> String {
        match self {
            Self::Item {
                marker,
                is_written: is_written @ false,
            } => {
                *is_written = true;
                marker.clone()
            }
            Self::Quote { is_written } => {
                *is_written = true;
                self.prefix()
            }
            _ => self.prefix(),
        }
    }

    fn prefix(&self) -> String {
        match self {
            Self::Item {
                marker,
                is_written: true,
            } => " ".repeat(marker.len()),
            Self::Quote { is_written: true } => "> ".to_owned(),
            _ => String::new(),
        }
    }
}

impl Open {
    fn start(&self) -> &'static str {
        match self.kind {
            _ if self.is_silent => "",
            Inline::Strong => "**",
            Inline::Emphasis => "*",
            Inline::Strike => "~~",
            Inline::Link => "[",
        }
    }
}

fn is_space(character: char) -> bool {
    character.is_ascii_whitespace()
}
