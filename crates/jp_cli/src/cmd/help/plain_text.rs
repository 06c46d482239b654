//! Renders the Markdown of the users' pages as plain text for a terminal or a pipe.
//!
//! It knows the Markdown that `docs/` uses: headings, paragraphs, lists, tables, fenced code, links
//! and bold text.

use unicode_width::UnicodeWidthStr as _;

/// The width of the text in columns. Every terminal has as many, and longer lines are hard to read.
const WIDTH: usize = 80;

/// The minimum width of a wrapped table column: about four words.
const NARROWEST_COLUMN: usize = 24;

/// The space between the columns of a table.
const GAP: &str = "  ";

/// The indent of code, and of lines that continue the line above them.
const INDENT: &str = "    ";

/// A block of a page.
#[derive(Debug, PartialEq, Eq)]
enum Block {
    Heading {
        level: usize,
        text: String,
    },
    Code(Vec<String>),
    /// The rows with their cells, the header first.
    Table(Vec<Vec<String>>),
    Item {
        marker: String,
        text: String,
    },
    Paragraph(String),
}

/// Renders a page. `topic_of_file` names the help topic of a linked page.
pub(super) fn render(
    markdown: &str,
    topic_of_file: impl Fn(&str) -> Option<&'static str>,
) -> String {
    let mut rendered = String::new();
    let mut previous = None;
    for block in parse(markdown) {
        let is_item = matches!(block, Block::Item { .. });
        // An empty line separates blocks, but not the items of a list.
        if previous.is_some_and(|was_item| !(was_item && is_item)) {
            rendered.push('\n');
        }
        previous = Some(is_item);
        for line in render_block(&block, &topic_of_file) {
            rendered.push_str(line.trim_end());
            rendered.push('\n');
        }
    }
    rendered
}

fn parse(markdown: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    // Set if the next line of text continues the last block.
    let mut is_open = false;
    let mut is_code = false;
    for line in markdown.lines() {
        let is_fence = line.trim_start().starts_with("```");
        match blocks.last_mut() {
            _ if is_fence && !is_code => {
                blocks.push(Block::Code(Vec::new()));
                is_code = true;
            }
            _ if is_fence => (is_code, is_open) = (false, false),
            Some(Block::Code(lines)) if is_code => lines.push(line.to_owned()),
            _ if line.trim().is_empty() => is_open = false,
            Some(Block::Table(rows)) if is_open && line.starts_with('|') => {
                rows.extend(parse_row(line));
            }
            Some(Block::Item { text, .. } | Block::Paragraph(text))
                if is_open && !starts_block(line) =>
            {
                text.push(' ');
                text.push_str(line.trim());
            }
            _ => {
                blocks.push(parse_first_line(line));
                is_open = !matches!(blocks.last(), Some(Block::Heading { .. }));
            }
        }
    }
    blocks
}

/// Returns whether a line starts another block than the one before it.
fn starts_block(line: &str) -> bool {
    !matches!(parse_first_line(line), Block::Paragraph(_))
}

fn parse_first_line(line: &str) -> Block {
    let trimmed = line.trim_start();
    let level = line.bytes().take_while(|byte| *byte == b'#').count();
    if level > 0 && line[level..].starts_with(' ') {
        let text = line[level..].trim().to_owned();
        return Block::Heading { level, text };
    }
    if line.starts_with('|') {
        return Block::Table(parse_row(line).into_iter().collect());
    }
    match trimmed.split_once(' ') {
        Some((marker, text)) if is_marker(marker) => {
            let indent = &line[..line.len() - trimmed.len()];
            Block::Item {
                marker: format!("{indent}{marker} "),
                text: text.trim().to_owned(),
            }
        }
        _ => Block::Paragraph(trimmed.to_owned()),
    }
}

/// Returns whether a word begins an item of a list: `-`, `*` or `1.`.
fn is_marker(word: &str) -> bool {
    let number = word.strip_suffix('.').unwrap_or_default();
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    is_number || matches!(word, "-" | "*")
}

/// Splits a row of a table into its cells; returns nothing for the line below the header.
fn parse_row(line: &str) -> Option<Vec<String>> {
    /// Stands for an escaped `|` while the row is split. No page contains a NUL.
    const ESCAPED: &str = "\u{0}";
    let line = line.trim().replace(r"\|", ESCAPED);
    if line.bytes().all(|byte| b"|-: ".contains(&byte)) {
        return None;
    }
    let inner = line.trim_start_matches('|').trim_end_matches('|');
    let cells = inner.split('|');
    Some(
        cells
            .map(|cell| cell.trim().replace(ESCAPED, "|"))
            .collect(),
    )
}

fn render_block(
    block: &Block,
    topic_of_file: &impl Fn(&str) -> Option<&'static str>,
) -> Vec<String> {
    match block {
        Block::Heading { level, text } => {
            let text = render_inline(text, topic_of_file);
            let line = if *level == 1 { "=" } else { "-" };
            let line = line.repeat(text.width());
            vec![text, line]
        }
        Block::Code(lines) => lines.iter().map(|line| format!("{INDENT}{line}")).collect(),
        Block::Table(rows) => {
            let mut rows = rows.clone();
            for cell in rows.iter_mut().flatten() {
                *cell = render_inline(cell, topic_of_file);
            }
            render_table(&rows)
        }
        Block::Item { marker, text } => {
            let indent = " ".repeat(marker.width());
            wrap(&render_inline(text, topic_of_file), marker, &indent, WIDTH)
        }
        Block::Paragraph(text) => wrap(&render_inline(text, topic_of_file), "", "", WIDTH),
    }
}

/// Replaces links by their text, with the topic or the address that they lead to, and drops the
/// marks of bold text. Code keeps its backticks.
fn render_inline(text: &str, topic_of_file: &impl Fn(&str) -> Option<&'static str>) -> String {
    let mut rendered = String::new();
    let mut rest = text;
    while let Some(start) = rest.find(['`', '*', '[']) {
        rendered.push_str(&rest[..start]);
        rest = &rest[start..];
        let length = if let Some((code, length)) = parse_code(rest) {
            rendered.push_str(&format!("`{code}`"));
            length
        } else if rest.starts_with("**") {
            // Dropped: plain text has no bold.
            2
        } else if let Some((label, target, length)) = parse_link(rest) {
            rendered.push_str(&render_inline(label, topic_of_file));
            rendered.push_str(&render_target(target, topic_of_file));
            length
        } else {
            rendered.push_str(&rest[..1]);
            1
        };
        rest = &rest[length..];
    }
    rendered + rest
}

/// Parses the code at the start of a text: its content, and its length with the backticks, of which
/// there may be several on both sides.
fn parse_code(text: &str) -> Option<(&str, usize)> {
    let marks = text.bytes().take_while(|byte| *byte == b'`').count();
    let (marks, rest) = text.split_at(marks);
    let end = rest.find(marks).filter(|_| !marks.is_empty())?;
    Some((&rest[..end], end + 2 * marks.len()))
}

/// Parses the link at the start of a text: its label, its target and its length.
fn parse_link(text: &str) -> Option<(&str, &str, usize)> {
    let (label, from_target) = text.strip_prefix('[')?.split_once("](")?;
    let (target, after) = from_target.split_once(')')?;
    (!label.contains('[')).then_some((label, target, text.len() - after.len()))
}

fn render_target(target: &str, topic_of_file: &impl Fn(&str) -> Option<&'static str>) -> String {
    let file = target.split('#').next().unwrap_or_default();
    match topic_of_file(file) {
        Some(topic) => format!(" (`jp help {topic}`)"),
        None if target.contains("://") => format!(" ({target})"),
        None => String::new(),
    }
}

/// Lays a table out in columns that fit the width. If one gets too narrow, the cells of a row stand
/// below each other.
fn render_table(rows: &[Vec<String>]) -> Vec<String> {
    let Some(widths) = fit_columns(rows) else {
        return render_rows_as_lists(rows);
    };
    let line: Vec<_> = widths.iter().map(|width| "-".repeat(*width)).collect();
    let mut lines = Vec::new();
    for (index, row) in rows.iter().enumerate() {
        if index == 1 {
            lines.push(line.join(GAP));
        }
        lines.extend(render_row(row, &widths));
    }
    lines
}

/// Returns the widths of a table's columns. Narrows the widest column until the table fits; returns
/// `None` if that tears a word apart or leaves less than [`NARROWEST_COLUMN`].
fn fit_columns(rows: &[Vec<String>]) -> Option<Vec<usize>> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
    let mut widths: Vec<_> = (0..columns)
        .map(|column| widest(rows, column, |cell| cell.width()))
        .collect();
    let gaps = GAP.len() * columns.saturating_sub(1);
    while widths.iter().sum::<usize>() + gaps > WIDTH {
        let (column, width) = widths
            .iter_mut()
            .enumerate()
            .max_by_key(|(_, width)| **width)?;
        if *width <= NARROWEST_COLUMN.max(widest(rows, column, longest_word)) {
            return None;
        }
        *width -= 1;
    }
    Some(widths)
}

/// Returns the largest width of a column's cells, as `width` measures them.
fn widest(rows: &[Vec<String>], column: usize, width: fn(&str) -> usize) -> usize {
    let cells = rows.iter().filter_map(|row| row.get(column));
    cells.map(|cell| width(cell)).max().unwrap_or_default()
}

fn longest_word(text: &str) -> usize {
    let words = split_words(text).into_iter();
    words.map(|word| word.width()).max().unwrap_or_default()
}

/// Wraps each cell at the width of its column, and joins the lines of the cells.
fn render_row(row: &[String], widths: &[usize]) -> Vec<String> {
    let cells = row.iter().zip(widths);
    let cells: Vec<_> = cells
        .map(|(cell, width)| wrap(cell, "", "", *width))
        .collect();
    let height = cells.iter().map(Vec::len).max().unwrap_or_default();
    let lines = (0..height).map(|index| {
        let pieces = cells.iter().zip(widths).map(|(lines, width)| {
            let piece = lines.get(index).map_or("", String::as_str);
            let padding = width.saturating_sub(piece.width());
            format!("{piece}{}", " ".repeat(padding))
        });
        pieces.collect::<Vec<_>>().join(GAP)
    });
    lines.collect()
}

fn render_rows_as_lists(rows: &[Vec<String>]) -> Vec<String> {
    let Some((header, rows)) = rows.split_first() else {
        return Vec::new();
    };
    let mut lines = Vec::new();
    for row in rows {
        let Some((first, others)) = row.split_first() else {
            continue;
        };
        lines.extend(wrap(first, "", INDENT, WIDTH));
        for (name, cell) in header.iter().skip(1).zip(others) {
            let cell = match others.len() {
                1 => cell.clone(),
                _ if cell.is_empty() => continue,
                _ => format!("{name}: {cell}"),
            };
            lines.extend(wrap(&cell, INDENT, &format!("{INDENT}  "), WIDTH));
        }
    }
    lines
}

/// Wraps a text at `width`; the first line begins with `first`, each further one with `indent`.
/// A word that is longer than that stands alone on a line.
fn wrap(text: &str, first: &str, indent: &str, width: usize) -> Vec<String> {
    let mut lines = vec![first.to_owned()];
    let mut is_empty = true;
    for word in split_words(text) {
        let line = lines.last_mut().expect("there is always a line");
        let gap = usize::from(!is_empty);
        if !is_empty && line.width() + gap + word.width() > width {
            lines.push(format!("{indent}{word}"));
        } else {
            line.push_str(&" ".repeat(gap));
            line.push_str(word);
        }
        is_empty = false;
    }
    lines
}

/// Splits a text into words. Code between backticks counts as one word unless it is long.
fn split_words(text: &str) -> Vec<&str> {
    /// Longest code that stays on one line.
    const LONGEST: usize = WIDTH / 2;
    let mut words = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let end = end_of_word(rest, true);
        let end = match rest[..end].width() > LONGEST {
            true => end_of_word(rest, false),
            false => end,
        };
        words.push(&rest[..end]);
        rest = rest[end..].trim_start();
    }
    words
}

/// Returns the end of the first word: the first space, or the first one outside of code if `keeps_code`.
fn end_of_word(text: &str, keeps_code: bool) -> usize {
    let mut is_code = false;
    for (index, character) in text.char_indices() {
        match character {
            '`' => is_code = !is_code,
            ' ' if !(keeps_code && is_code) => return index,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(markdown: &str) -> String {
        render(markdown, |file| (file == "tools.md").then_some("tools"))
    }

    #[test]
    fn headings_paragraphs_and_code() {
        let page = "# A page\n\nTwo lines\nof **one** text.\n\n## More\n\n```sh\njp help  \n\n# not a heading\n```\nEnd.\n";
        assert_eq!(
            plain(page),
            "A page\n======\n\nTwo lines of one text.\n\nMore\n----\n\n    jp help\n\n    # not a heading\n\nEnd.\n"
        );
    }

    #[test]
    fn links_name_the_topic_or_the_address() {
        let page = "See [tools](tools.md#more), [above](#a), [rmcp](https://docs.rs/rmcp) and [x](../x.md).";
        assert_eq!(
            plain(page),
            "See tools (`jp help tools`), above, rmcp (https://docs.rs/rmcp) and x.\n"
        );
        assert_eq!(
            plain("`a[0](b)` **not `**` bold**"),
            "`a[0](b)` not `**` bold\n"
        );
        assert_eq!(plain("``a[]*`` and `[`b"), "`a[]*` and `[`b\n");
    }

    #[test]
    fn items_are_wrapped_below_their_text() {
        let item = "- one ".to_owned() + &"word ".repeat(20);
        let lines = plain(&format!(
            "Text:\n\n{item}\n  end\n- two\n  - three\n1. four"
        ));
        insta::assert_snapshot!(lines, @r"
        Text:

        - one word word word word word word word word word word word word word word word
          word word word word word end
        - two
          - three
        1. four
        ");
    }

    #[test]
    fn table_is_laid_out_in_columns() {
        let page = "| key | meaning |\n|---|---|\n| `a\\|b` | one |\n| `long_key` | two |\n";
        insta::assert_snapshot!(plain(page), @r"
        key         meaning
        ----------  -------
        `a|b`       one
        `long_key`  two
        ");
    }

    #[test]
    fn widest_column_of_a_table_is_wrapped() {
        let words = "word ".repeat(20);
        let page = format!("| key | meaning |\n|---|---|\n| `a` | {words} |\n| b | c |\n");
        insta::assert_snapshot!(plain(&page), @r"
        key  meaning
        ---  ---------------------------------------------------------------------------
        `a`  word word word word word word word word word word word word word word word
             word word word word word
        b    c
        ");
        let page = format!("| action | default |\n|---|---|\n| {words} | asks |\n");
        insta::assert_snapshot!(plain(&page), @r"
        action                                                                   default
        -----------------------------------------------------------------------  -------
        word word word word word word word word word word word word word word    asks
        word word word word word word
        ");
    }

    #[test]
    fn rows_of_a_wide_table_are_lists() {
        let wide = "w".repeat(50);
        let page = format!(
            "| key | type | default |\n|---|---|---|\n| `{wide}` | text | {wide} |\n| `b` | | 1 |\n"
        );
        insta::assert_snapshot!(plain(&page), @r"
        `wwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwww`
            type: text
            default: wwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwww
        `b`
            default: 1
        ");
    }

    #[test]
    fn code_stays_on_one_line() {
        let text = "word ".repeat(14) + "`jp query --new` end";
        let plain = plain(&text);
        assert!(plain.contains("\n`jp query --new` end\n"), "{plain}");
    }
}
