//! HTML as Markdown.
//!
//! Written while the page is read, tag by tag, without building a tree: the work and the memory are in
//! proportion to the page, however deep it is nested. What a tree builder would repair is taken as it
//! comes. Left out are scripts, styles, drawings, forms' controls and navigation.

mod escape;
mod writer;

use std::{
    borrow::Cow,
    convert::Infallible,
    time::{Duration, Instant},
};

use html5gum::{HtmlString, StartTag, State, Token, Tokenizer};

use self::writer::{Inline, Writer};

/// What became of a page.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It is Markdown, which is empty where the page shows no text.
    Done {
        /// What it calls itself.
        title: Option<String>,
        /// What it shows.
        markdown: String,
    },
    /// It takes longer than it may, becomes longer than the page by far, or an element that is left out has
    /// no end, so that what follows would be lost.
    GivenUp,
}

/// How many tokens are converted between two checks of the time and the length: about 16 KB of a
/// real page, whose tokens have a few dozen bytes.
const TOKENS_PER_CHECK: usize = 512;
/// How many bytes the Markdown of a tiny page may have. A table or a list adds a few to each line.
const MIN_ROOM: usize = 16 * 1024;
/// How many characters of a title are kept.
const MAX_TITLE: usize = 200;
/// Elements whose content is left out.
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
pub(super) fn convert(html: &str, budget: Duration) -> Outcome {
    let started = Instant::now();
    let mut converter = Converter::default();
    let mut tokenizer = Tokenizer::new(html);
    let mut count = 0;
    while let Some(token) = tokenizer.next() {
        count += 1;
        if count % TOKENS_PER_CHECK == 0 {
            let is_too_long = converter.writer.len() > 2 * html.len() + MIN_ROOM;
            if is_too_long || started.elapsed() > budget {
                return Outcome::GivenUp;
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

/// Turns tags and text into what is written.
#[derive(Default)]
struct Converter {
    writer: Writer,
    /// Text since the last tag, which comes in parts.
    text: String,
    title: Option<String>,
    /// The element that is left out, and how many of its name are open.
    skipped: Option<(String, usize)>,
    captured: Option<Captured>,
}

/// An element whose text is needed as a whole.
struct Captured {
    kind: Capture,
    text: String,
    language: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Capture {
    Title,
    Code,
    Preformatted,
}

impl Converter {
    fn text(&mut self, text: &str) {
        match (&self.skipped, &mut self.captured) {
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

    /// Takes a tag inside a captured element; returns whether there is one.
    fn start_captured(&mut self, tag: &StartTag<()>) -> bool {
        let Some(captured) = &mut self.captured else {
            return false;
        };
        match (captured.kind, &*as_text(&tag.name)) {
            (Capture::Preformatted, "code") if captured.language.is_none() => {
                captured.language = language(tag);
            }
            (Capture::Preformatted, "br") => captured.text.push('\n'),
            // Inline code that was not closed.
            (Capture::Code, name) if is_block(name) => {
                self.release();
                return false;
            }
            _ => {}
        }
        true
    }

    fn start_shown(&mut self, tag: &StartTag<()>) {
        match &*as_text(&tag.name) {
            "title" => self.capture(Capture::Title, None),
            "pre" | "xmp" | "listing" => self.capture(Capture::Preformatted, language(tag)),
            "code" | "kbd" | "samp" | "tt" => self.capture(Capture::Code, None),
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
        if let Some(captured) = &self.captured {
            let is_its = captured.kind.is_ended_by(name);
            if is_its || captured.kind == Capture::Code && is_block(name) {
                self.release();
            }
            if is_its || self.captured.is_some() {
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

    fn capture(&mut self, kind: Capture, language: Option<String>) {
        if kind == Capture::Preformatted {
            self.writer.block();
        }
        self.captured = Some(Captured {
            kind,
            text: String::new(),
            language,
        });
    }

    /// Writes what was captured.
    fn release(&mut self) {
        let Some(Captured {
            kind,
            text,
            language,
        }) = self.captured.take()
        else {
            return;
        };
        match kind {
            Capture::Title if self.title.is_none() => {
                self.title = Some(shown_title(&text)).filter(|title| !title.is_empty());
            }
            Capture::Title => {}
            Capture::Code => self.writer.code(&text),
            Capture::Preformatted => self.writer.code_block(&text, language.as_deref()),
        }
    }

    fn finish(mut self) -> Outcome {
        let title_has_no_end = self
            .captured
            .as_ref()
            .is_some_and(|captured| captured.kind == Capture::Title);
        if self.skipped.is_some() || title_has_no_end {
            return Outcome::GivenUp;
        }
        self.write_text();
        self.release();
        Outcome::Done {
            title: self.title,
            markdown: self.writer.finish(),
        }
    }
}

impl Capture {
    fn is_ended_by(self, name: &str) -> bool {
        match self {
            Self::Title => name == "title",
            Self::Code => matches!(name, "code" | "kbd" | "samp" | "tt"),
            Self::Preformatted => matches!(name, "pre" | "xmp" | "listing"),
        }
    }
}

/// Returns a title as a line of a screen takes it.
fn shown_title(text: &str) -> String {
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

/// Returns the language that a class of highlighters names: `language-rust`, `lang-rust`.
fn language(tag: &StartTag<()>) -> Option<String> {
    let classes = attribute(tag, "class")?;
    let named = |class: &str| {
        let language = class
            .strip_prefix("language-")
            .or_else(|| class.strip_prefix("lang-"))?;
        let is_name =
            |character: char| character.is_ascii_alphanumeric() || "+-#._".contains(character);
        (language.len() < 30 && language.chars().all(is_name)).then(|| language.to_owned())
    };
    classes
        .split_ascii_whitespace()
        .find_map(named)
        .filter(|language| !language.is_empty())
}

#[cfg(test)]
mod tests;
