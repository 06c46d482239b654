//! Conversion of HTML to Markdown.
//!
//! The converter writes while it reads, tag by tag, and builds no tree. So time and memory are
//! proportional to the page, however deep it is nested. It does not repair malformed HTML as a tree
//! builder does. It leaves out scripts, styles, drawings, form controls and navigation.

mod escape;
mod writer;

use std::{
    borrow::Cow,
    convert::Infallible,
    time::{Duration, Instant},
};

use html5gum::{HtmlString, StartTag, State, Token, Tokenizer};

use self::writer::{Inline, Writer};

/// The result of converting a page.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Conversion {
    /// Markdown, which is empty if the page shows no text.
    Done {
        /// The title of the page.
        title: Option<String>,
        /// The text of the page.
        markdown: String,
    },
    /// The conversion takes too long, its result is much longer than the page, or a skipped element
    /// has no end tag, so that the rest of the page would be lost.
    GivenUp,
}

/// The number of tokens between two checks of the time and the length: about 16 KB of a real page,
/// whose tokens have a few dozen bytes.
const TOKENS_PER_CHECK: usize = 512;
/// The number of bytes that the Markdown of a tiny page may have. A table or a list adds a few to
/// each line.
const MIN_ROOM: usize = 16 * 1024;
/// The longest title, in characters. It is one line in lists and in requests.
const MAX_TITLE: usize = 200;
/// Elements that are skipped with their content.
const SKIPPED: &[&str] = &[
    "script", "style", "template", "noscript", "nav", "svg", "iframe", "noembed", "noframes",
    "object", "canvas", "audio", "video", "select", "button", "textarea", "datalist",
];
/// Elements that start and end a paragraph.
const BLOCKS: &[&str] = &[
    "address",
    "article",
    "aside",
    "body",
    "caption",
    "center",
    "details",
    "div",
    "dl",
    "fieldset",
    "figcaption",
    "figure",
    "footer",
    "form",
    "header",
    "hgroup",
    "legend",
    "main",
    "p",
    "search",
    "section",
    "summary",
];

/// Converts a page, unless that takes longer than `budget`.
///
/// It also limits the length, because each line in a list repeats its indentation. The tokenizer
/// takes time in proportion to the page, so a check between tokens is enough.
pub(super) fn convert(html: &str, budget: Duration) -> Conversion {
    let started = Instant::now();
    let mut converter = Converter::default();
    let mut tokenizer = Tokenizer::new(html);
    let mut count = 0;
    while let Some(token) = tokenizer.next() {
        count += 1;
        if count % TOKENS_PER_CHECK == 0 {
            let is_too_long = converter.writer.len() > 2 * html.len() + MIN_ROOM;
            if is_too_long || started.elapsed() > budget {
                return Conversion::GivenUp;
            }
        }
        let token = token.unwrap_or_else(|never: Infallible| match never {});
        match token {
            Token::StartTag(tag) => {
                converter.start(&tag);
                if let Some(state) = raw_state(&tag.name) {
                    tokenizer.set_state(state);
                }
            }
            Token::EndTag(tag) => converter.end(&tag.name),
            // Browsers drop NUL in text (HTML, 13.2.6.4.7, "in body").
            Token::String(text) => converter.text(&as_text(&text).replace('\0', "")),
            Token::Comment(_) | Token::Doctype(_) | Token::Error(_) => {}
        }
    }
    converter.finish()
}

/// Returns the tokenizer's state for an element whose content is not HTML.
fn raw_state(name: &[u8]) -> Option<State> {
    match name {
        b"title" | b"textarea" => Some(State::RcData),
        b"style" | b"xmp" | b"iframe" | b"noembed" | b"noframes" => Some(State::RawText),
        b"script" => Some(State::ScriptData),
        _ => None,
    }
}

/// Returns a name, a value or a text of a page. The page is valid UTF-8, so this borrows.
fn as_text(string: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(string)
}

/// Converts tags and text into calls of the writer.
#[derive(Default)]
struct Converter {
    writer: Writer,
    /// The text since the last tag, which arrives in parts.
    text: String,
    title: Option<String>,
    /// The skipped element, and how many elements of its name are open.
    skipped: Option<(String, usize)>,
    capture: Option<Capture>,
}

/// An element whose text is written as a whole at its end.
struct Capture {
    kind: CaptureKind,
    text: String,
    language: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum CaptureKind {
    Title,
    Code,
    Preformatted,
}

impl Converter {
    fn text(&mut self, text: &str) {
        match (&self.skipped, &mut self.capture) {
            (Some(_), _) => {}
            (None, Some(captured)) => captured.text.push_str(text),
            (None, None) => self.text.push_str(text),
        }
    }

    fn write_text(&mut self) {
        self.writer.text(&self.text);
        self.text.clear();
    }

    fn start(&mut self, tag: &StartTag<()>) {
        self.write_text();
        let name = &*as_text(&tag.name);
        // Only foreign elements can close themselves.
        let is_empty = name == "svg" && tag.self_closing;
        if let Some((skipped, depth)) = &mut self.skipped {
            *depth += usize::from(skipped == name && !is_empty);
        } else if SKIPPED.contains(&name) {
            self.skipped = (!is_empty).then(|| (name.to_owned(), 1));
        } else if !self.start_captured(tag) {
            self.start_shown(tag);
        }
    }

    /// Handles a tag inside a captured element. Returns whether there is such an element.
    fn start_captured(&mut self, tag: &StartTag<()>) -> bool {
        let Some(captured) = &mut self.capture else {
            return false;
        };
        match (captured.kind, &*as_text(&tag.name)) {
            (CaptureKind::Preformatted, "code") if captured.language.is_none() => {
                captured.language = language(tag);
            }
            (CaptureKind::Preformatted, "br") => captured.text.push('\n'),
            // Inline code without an end tag ends at the next block.
            (CaptureKind::Code, name) if is_block(name) => {
                self.release();
                return false;
            }
            _ => {}
        }
        true
    }

    fn start_shown(&mut self, tag: &StartTag<()>) {
        match &*as_text(&tag.name) {
            "title" => self.start_capture(CaptureKind::Title, None),
            "pre" | "xmp" | "listing" => {
                self.start_capture(CaptureKind::Preformatted, language(tag))
            }
            "code" | "kbd" | "samp" | "tt" => self.start_capture(CaptureKind::Code, None),
            "b" | "strong" => self.writer.open(Inline::Strong),
            "i" | "em" | "cite" | "dfn" => self.writer.open(Inline::Emphasis),
            "s" | "del" | "strike" => self.writer.open(Inline::Strike),
            "a" => self
                .writer
                .open_link(&attribute(tag, "href").unwrap_or_default()),
            "img" => {
                let text = attribute(tag, "alt").unwrap_or_default();
                self.writer
                    .image(&text, &attribute(tag, "src").unwrap_or_default());
            }
            "br" => self.writer.line_break(),
            "hr" => self.writer.rule(),
            "ul" | "menu" => self.writer.start_list(None),
            "ol" => {
                let first = attribute(tag, "start").and_then(|start| start.trim().parse().ok());
                self.writer.start_list(Some(first.unwrap_or(1)));
            }
            "li" => self.writer.start_item(),
            "blockquote" => self.writer.start_quote(),
            "table" => self.writer.start_table(),
            "tr" => self.writer.end_row(),
            "td" | "th" => self.writer.start_cell(),
            "dt" => self.writer.block(),
            "dd" => self.writer.definition(),
            name => match heading_level(name) {
                Some(level) => self.writer.start_heading(level),
                None if BLOCKS.contains(&name) => self.writer.block(),
                None => {}
            },
        }
    }

    fn end(&mut self, name: &HtmlString) {
        let name = &*as_text(name);
        self.write_text();
        if let Some((skipped, depth)) = &mut self.skipped {
            *depth -= usize::from(skipped == name);
            if *depth == 0 {
                self.skipped = None;
            }
            return;
        }
        if let Some(captured) = &self.capture {
            let is_end = captured.kind.is_ended_by(name);
            if is_end || captured.kind == CaptureKind::Code && is_block(name) {
                self.release();
            }
            if is_end || self.capture.is_some() {
                return;
            }
        }
        self.end_shown(name);
    }

    fn end_shown(&mut self, name: &str) {
        match name {
            "b" | "strong" => self.writer.close(Inline::Strong),
            "i" | "em" | "cite" | "dfn" => self.writer.close(Inline::Emphasis),
            "s" | "del" | "strike" => self.writer.close(Inline::Strike),
            "a" => self.writer.close(Inline::Link),
            "ul" | "ol" | "menu" => self.writer.end_list(),
            "li" => self.writer.end_item(),
            "blockquote" => self.writer.end_quote(),
            "table" => self.writer.end_table(),
            "tr" => self.writer.end_row(),
            "td" | "th" => self.writer.end_cell(),
            _ if is_block(name) => self.writer.block(),
            _ => {}
        }
    }

    fn start_capture(&mut self, kind: CaptureKind, language: Option<String>) {
        if kind == CaptureKind::Preformatted {
            self.writer.block();
        }
        self.capture = Some(Capture {
            kind,
            text: String::new(),
            language,
        });
    }

    /// Writes the captured element.
    fn release(&mut self) {
        let Some(Capture {
            kind,
            text,
            language,
        }) = self.capture.take()
        else {
            return;
        };
        match kind {
            CaptureKind::Title if self.title.is_none() => {
                self.title = Some(clean_title(&text)).filter(|title| !title.is_empty());
            }
            CaptureKind::Title => {}
            CaptureKind::Code => self.writer.code(&text),
            CaptureKind::Preformatted => self.writer.code_block(&text, language.as_deref()),
        }
    }

    fn finish(mut self) -> Conversion {
        // Such an element would have swallowed the rest of the page.
        let title_has_no_end = self
            .capture
            .as_ref()
            .is_some_and(|captured| captured.kind == CaptureKind::Title);
        if self.skipped.is_some() || title_has_no_end {
            return Conversion::GivenUp;
        }
        self.write_text();
        self.release();
        Conversion::Done {
            title: self.title,
            markdown: self.writer.finish(),
        }
    }
}

impl CaptureKind {
    fn is_ended_by(self, name: &str) -> bool {
        match self {
            Self::Title => name == "title",
            Self::Code => matches!(name, "code" | "kbd" | "samp" | "tt"),
            Self::Preformatted => matches!(name, "pre" | "xmp" | "listing"),
        }
    }
}

/// Returns a title as one line without control characters.
fn clean_title(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut shown = text.chars().filter(|character| !character.is_control());
    let mut title: String = shown.by_ref().take(MAX_TITLE).collect();
    if shown.next().is_some() {
        title.push('…');
    }
    title
}

fn is_block(name: &str) -> bool {
    const OTHERS: &[&str] = &[
        "pre",
        "ul",
        "ol",
        "menu",
        "li",
        "blockquote",
        "table",
        "tr",
        "td",
        "th",
        "dt",
        "dd",
        "hr",
    ];
    BLOCKS.contains(&name) || OTHERS.contains(&name) || heading_level(name).is_some()
}

fn heading_level(name: &str) -> Option<usize> {
    let level = name.strip_prefix('h')?;
    ["1", "2", "3", "4", "5", "6"]
        .iter()
        .position(|known| *known == level)
        .map(|index| index + 1)
}

fn attribute<'a>(tag: &'a StartTag<()>, name: &str) -> Option<Cow<'a, str>> {
    tag.attributes
        .get(name.as_bytes())
        .map(|value| as_text(value))
}

/// Returns the language of a code block that a class names: `language-rust`, `lang-rust`.
fn language(tag: &StartTag<()>) -> Option<String> {
    let classes = attribute(tag, "class")?;
    classes
        .split_ascii_whitespace()
        .filter_map(|class| {
            class
                .strip_prefix("language-")
                .or_else(|| class.strip_prefix("lang-"))
        })
        .find(|language| is_language(language))
        .filter(|language| !language.is_empty())
        .map(str::to_owned)
}

/// Returns whether a text may follow the fence of a code block. The longest names of languages have
/// about 20 characters.
fn is_language(text: &str) -> bool {
    text.len() < 30
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"+-#._".contains(&byte))
}

#[cfg(test)]
mod tests;
