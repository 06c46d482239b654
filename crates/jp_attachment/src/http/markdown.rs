//! HTML as Markdown.
//!
//! Written while the page is read, tag by tag, without building a tree: the work and the memory are in
//! proportion to the page, however deep it is nested. What a tree builder would repair is taken as it
//! comes. Left out are scripts, styles, drawings, forms' controls and navigation.

mod escape;
mod writer;

use std::{
    cell::RefCell,
    time::{Duration, Instant},
};

use html5ever::{
    LocalName,
    tokenizer::{
        BufferQueue, Tag, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts,
        states::RawKind,
    },
};

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

/// How much is read before the time is looked at.
const CHUNK: usize = 16 * 1024;
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
/// Time is looked at since the tokenizer compares each attribute of a tag to all others of it, and length
/// since each line in a list repeats its indentation.
pub(super) fn convert(html: &str, budget: Duration) -> Outcome {
    let started = Instant::now();
    let tokenizer = Tokenizer::new(Sink::default(), TokenizerOpts::default());
    let input = BufferQueue::default();
    for chunk in chunks(html) {
        let is_too_long = tokenizer.sink.0.borrow().writer.len() > 2 * html.len() + CHUNK;
        if is_too_long || started.elapsed() > budget {
            return Outcome::GivenUp;
        }
        input.push_back(chunk.into());
        // The sink never asks for a pause.
        _ = tokenizer.feed(&input);
    }
    tokenizer.end();
    tokenizer.sink.0.into_inner().finish()
}

fn chunks(mut text: &str) -> impl Iterator<Item = &str> {
    std::iter::from_fn(move || {
        let mut end = text.len().min(CHUNK);
        while !text.is_char_boundary(end) {
            end += 1;
        }
        let (chunk, rest) = text.split_at(end);
        text = rest;
        (!chunk.is_empty()).then_some(chunk)
    })
}

#[derive(Default)]
struct Sink(RefCell<Converter>);

impl TokenSink for Sink {
    type Handle = ();

    fn process_token(&self, token: Token, _line: u64) -> TokenSinkResult<()> {
        let mut converter = self.0.borrow_mut();
        match token {
            Token::TagToken(tag) if tag.kind == TagKind::StartTag => {
                converter.start(&tag);
                return raw_kind(&tag.name)
                    .map_or(TokenSinkResult::Continue, TokenSinkResult::RawData);
            }
            Token::TagToken(tag) => converter.end(&tag.name),
            Token::CharacterTokens(text) => converter.text(&text),
            _ => {}
        }
        TokenSinkResult::Continue
    }
}

/// Returns how an element is read whose content is not HTML.
fn raw_kind(name: &str) -> Option<RawKind> {
    match name {
        "title" | "textarea" => Some(RawKind::Rcdata),
        "style" | "xmp" | "iframe" | "noembed" | "noframes" => Some(RawKind::Rawtext),
        "script" => Some(RawKind::ScriptData),
        _ => None,
    }
}

/// Turns tags and text into what is written.
#[derive(Default)]
struct Converter {
    writer: Writer,
    /// Text since the last tag, which comes in parts.
    text: String,
    title: Option<String>,
    /// The element that is left out, and how many of its name are open.
    skipped: Option<(LocalName, usize)>,
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

    fn start(&mut self, tag: &Tag) {
        self.write_text();
        let name = &*tag.name;
        // Only foreign elements can close themselves.
        let is_empty = name == "svg" && tag.self_closing;
        if let Some((skipped, depth)) = &mut self.skipped {
            *depth += usize::from(*skipped == tag.name && !is_empty);
        } else if SKIPPED.contains(&name) {
            self.skipped = (!is_empty).then(|| (tag.name.clone(), 1));
        } else if !self.start_captured(tag) {
            self.start_shown(tag);
        }
    }

    /// Takes a tag inside a captured element; returns whether there is one.
    fn start_captured(&mut self, tag: &Tag) -> bool {
        let Some(captured) = &mut self.captured else {
            return false;
        };
        match (captured.kind, &*tag.name) {
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

    fn start_shown(&mut self, tag: &Tag) {
        match &*tag.name {
            "title" => self.capture(Capture::Title, None),
            "pre" | "xmp" | "listing" => self.capture(Capture::Preformatted, language(tag)),
            "code" | "kbd" | "samp" | "tt" => self.capture(Capture::Code, None),
            "b" | "strong" => self.writer.open(Inline::Strong),
            "i" | "em" | "cite" | "dfn" => self.writer.open(Inline::Emphasis),
            "s" | "del" | "strike" => self.writer.open(Inline::Strike),
            "a" => self
                .writer
                .open_link(attribute(tag, "href").unwrap_or_default()),
            "img" => {
                let text = attribute(tag, "alt").unwrap_or_default();
                self.writer
                    .image(text, attribute(tag, "src").unwrap_or_default());
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

    fn end(&mut self, name: &LocalName) {
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

fn attribute<'a>(tag: &'a Tag, name: &str) -> Option<&'a str> {
    tag.attrs
        .iter()
        .find(|attribute| &*attribute.name.local == name)
        .map(|attribute| &*attribute.value)
}

/// Returns the language that a class of highlighters names: `language-rust`, `lang-rust`.
fn language(tag: &Tag) -> Option<String> {
    let classes = attribute(tag, "class")?.split_ascii_whitespace();
    let named = |class: &str| {
        let language = class
            .strip_prefix("language-")
            .or_else(|| class.strip_prefix("lang-"))?;
        let is_name =
            |character: char| character.is_ascii_alphanumeric() || "+-#._".contains(character);
        (language.len() < 30 && language.chars().all(is_name)).then(|| language.to_owned())
    };
    classes
        .into_iter()
        .find_map(named)
        .filter(|language| !language.is_empty())
}

#[cfg(test)]
mod tests;
