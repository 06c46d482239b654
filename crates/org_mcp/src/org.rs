//! Finds the headlines of an Org text, their places and their IDs.
//!
//! A headline is a line that starts with stars and a space, whatever stands around it (Org syntax,
//! "Headings"). So the text is cut at these lines, and the parser gets each of them and each property drawer
//! alone. A headline costs the same at any depth, and the text below it is not parsed at all.

#[cfg(test)]
mod tests;

use std::cell::OnceCell;
use std::ops::Range;

use orgize::ParseConfig;
use orgize::ast::Headline as Parsed;

/// The longest headline in bytes, without its stars, that is parsed whole. Of a longer one only the two ends
/// are, because the parser's time for markup grows faster than the text.
const MAX_LINE: usize = 2 * 1024;

/// The longest drawer in bytes that is parsed. A longer one is ignored. Drawers hold a few lines.
const MAX_DRAWER: usize = 16 * 1024;

/// The size in bytes at which an outline is broken off. The server refuses such an outline, because it is
/// larger than the limit of a read.
const MAX_OUTLINE: usize = 10 * 1024 * 1024;

/// The starts of lines that name keywords for headlines.
const KEYWORD_LINES: [&str; 3] = ["#+TODO:", "#+SEQ_TODO:", "#+TYP_TODO:"];

/// The starts of lines that may stand between a headline and its drawer.
const PLANNING: [&str; 3] = ["CLOSED:", "DEADLINE:", "SCHEDULED:"];

/// The headlines of a text.
#[derive(Debug)]
pub(crate) struct Outline<'t> {
    text: &'t str,
    config: ParseConfig,
    /// The ID of the whole text.
    id: Option<String>,
    /// In the order of the text.
    headlines: Vec<Headline>,
}

#[derive(Debug)]
struct Headline {
    level: usize,
    /// Parsed on first use, because parsing takes most of the time.
    title: OnceCell<String>,
    id: Option<String>,
    parent: Option<usize>,
    /// From its line up to the next headline of the same level or above.
    range: Range<usize>,
}

impl<'t> Outline<'t> {
    /// Finds the headlines.
    pub(crate) fn new(text: &'t str) -> Self {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let starts: Vec<usize> = find_starts(text).collect();
        let preamble = &text[..starts.first().copied().unwrap_or(text.len())];
        let id = parse_id(without_comments(preamble));
        let mut outline = Self {
            text,
            config: configure(text),
            id,
            headlines: Vec::new(),
        };
        let mut open: Vec<usize> = Vec::new();
        for (index, &start) in starts.iter().enumerate() {
            let end = starts.get(index + 1).copied().unwrap_or(text.len());
            let mut headline = Headline::new(&text[start..end]);
            while let Some(above) =
                open.pop_if(|above| outline.headlines[*above].level >= headline.level)
            {
                outline.headlines[above].range.end = start;
            }
            headline.parent = open.last().copied();
            headline.range = start..text.len();
            outline.headlines.push(headline);
            open.push(index);
        }
        outline
    }

    /// Returns the first headline with this path (see [`Outline::paths`]), and everything below it.
    pub(crate) fn at(&self, path: &str) -> Option<&'t str> {
        let last = path.rsplit('/').next().unwrap_or_default();
        let last = last.replace("%2F", "/").replace("%25", "%");
        // Only headlines whose line has the title are parsed.
        let index = (0..self.headlines.len())
            .filter(|index| self.line(&self.headlines[*index]).contains(&last))
            .find(|index| self.has_path(*index, path))?;
        Some(&self.text[self.headlines[index].range.clone()])
    }

    /// Returns the first headline with this ID and everything below it, or the whole text if it has the ID.
    pub(crate) fn with_id(&self, id: &str) -> Option<&'t str> {
        if self.id.as_deref() == Some(id) {
            return Some(self.text);
        }
        let headline = self
            .headlines
            .iter()
            .find(|headline| headline.id.as_deref() == Some(id))?;
        Some(&self.text[headline.range.clone()])
    }

    /// Iterates over all IDs.
    pub(crate) fn ids(&self) -> impl Iterator<Item = &str> {
        let of_headlines = self
            .headlines
            .iter()
            .filter_map(|headline| headline.id.as_deref());
        self.id.as_deref().into_iter().chain(of_headlines)
    }

    /// Iterates over the paths of the headlines: the titles above a headline and its own, joined with `/`
    /// (see [`segment`]).
    pub(crate) fn paths(&self) -> impl Iterator<Item = String> {
        let mut path = String::new();
        // The level of each headline in the path, and the length of the path before it.
        let mut open: Vec<(usize, usize)> = Vec::new();
        self.headlines.iter().map(move |headline| {
            while let Some((_, length)) = open.pop_if(|(level, _)| *level >= headline.level) {
                path.truncate(length);
            }
            let separator = if open.is_empty() { "" } else { "/" };
            open.push((headline.level, path.len()));
            path.push_str(separator);
            path.push_str(&segment(self.title(headline)));
            path.clone()
        })
    }

    /// Writes `[{"title","level","path","id"?,"children":[…]}]`. It doesn't recurse, because levels have no
    /// limit.
    pub(crate) fn to_json(&self) -> String {
        let mut json = "[".to_owned();
        let mut open: Vec<usize> = Vec::new();
        for (headline, path) in self.headlines.iter().zip(self.paths()) {
            while open.pop_if(|level| *level >= headline.level).is_some() {
                json.push_str("]}");
            }
            open.push(headline.level);
            if json.ends_with('}') {
                json.push(',');
            }
            json.push_str(&headline.to_json(self.title(headline), &path));
            if json.len() > MAX_OUTLINE {
                break;
            }
        }
        json.push_str(&"]}".repeat(open.len()));
        json + "]"
    }

    /// Compares a path from the end, because most headlines differ there.
    fn has_path(&self, index: usize, path: &str) -> bool {
        let mut rest = Some(path);
        let mut headlines = self.above(index).peekable();
        while let Some(headline) = headlines.next() {
            rest = rest.and_then(|rest| rest.strip_suffix(&segment(self.title(headline))));
            if headlines.peek().is_some() {
                rest = rest.and_then(|rest| rest.strip_suffix('/'));
            }
            if rest.is_none() {
                return false;
            }
        }
        rest == Some("")
    }

    fn title<'h>(&self, headline: &'h Headline) -> &'h str {
        headline
            .title
            .get_or_init(|| parse_title(self.line(headline), &self.config))
    }

    fn line(&self, headline: &Headline) -> &'t str {
        self.text[headline.range.clone()]
            .lines()
            .next()
            .unwrap_or_default()
    }

    /// Iterates over a headline and those above it, the nearest first.
    fn above(&self, index: usize) -> impl Iterator<Item = &Headline> {
        std::iter::successors(Some(index), |index| self.headlines[*index].parent)
            .map(|index| &self.headlines[index])
    }
}

impl Headline {
    /// Reads the headline that a section starts with. Its parent and its range are set later.
    fn new(section: &str) -> Self {
        let (line, rest) = section.split_once('\n').unwrap_or((section, ""));
        let id = parse_id(without_planning(rest));
        Self {
            level: level(line).unwrap_or_default(),
            title: OnceCell::new(),
            id,
            parent: None,
            range: 0..0,
        }
    }

    /// Writes the beginning of the object, up to its children.
    fn to_json(&self, title: &str, path: &str) -> String {
        let (title, path) = (serde_json::json!(title), serde_json::json!(path));
        let id = self
            .id
            .as_ref()
            .map(|id| format!(r#""id":{},"#, serde_json::json!(id)))
            .unwrap_or_default();
        format!(
            r#"{{"title":{title},"level":{},"path":{path},{id}"children":["#,
            self.level
        )
    }
}

/// Writes a title as one part of a path: `/` is `%2F` and `%` is `%25`.
pub(crate) fn segment(title: &str) -> String {
    title.replace('%', "%25").replace('/', "%2F")
}

/// Returns the number of stars that a line starts with, if it is a headline.
fn level(line: &str) -> Option<usize> {
    let level = line.len() - line.trim_start_matches('*').len();
    (level > 0 && line[level..].starts_with(' ')).then_some(level)
}

/// Iterates over the places where headlines start.
fn find_starts(text: &str) -> impl Iterator<Item = usize> {
    let mut next = 0;
    text.split_inclusive('\n').filter_map(move |line| {
        let start = next;
        next += line.len();
        level(line).map(|_| start)
    })
}

/// Configures a parser with the keywords that a text names, or the default ones.
fn configure(text: &str) -> ParseConfig {
    let lines = text
        .lines()
        .map(str::trim_start)
        .filter(|line| line.starts_with("#+"));
    let values = lines.filter_map(|line| {
        let name = KEYWORD_LINES.iter().find(|name| starts_with(line, name))?;
        Some(&line[name.len()..])
    });
    let keywords = values
        .flat_map(str::split_whitespace)
        .filter(|word| *word != "|");
    let keywords: Vec<String> = keywords
        .map(|word| word.split('(').next().unwrap_or(word).to_owned())
        .collect();
    let mut config = ParseConfig {
        dual_keywords: Vec::new(),
        parsed_keywords: Vec::new(),
        affiliated_keywords: Vec::new(),
        ..ParseConfig::default()
    };
    if !keywords.is_empty() {
        config.todo_keywords = (keywords, Vec::new());
    }
    config
}

/// Returns the title of a headline without keyword, priority, `COMMENT` and tags.
fn parse_title(line: &str, config: &ParseConfig) -> String {
    let title = parse_headline(line.trim_start_matches('*').trim(), config);
    let title = without_number(&title);
    match title.strip_prefix("COMMENT") {
        Some(rest) if rest.is_empty() || rest.starts_with(char::is_whitespace) => {
            rest.trim().to_owned()
        }
        _ => title.trim().to_owned(),
    }
}

/// Parses a headline without its stars. A long one is cut into three, of which the first has what stands before
/// the title, and the last has the tags.
fn parse_headline(text: &str, config: &ParseConfig) -> String {
    if text.len() <= MAX_LINE {
        return parse_short_headline(text, config);
    }
    let (first, rest) = text.split_at(boundary(text, MAX_LINE / 2));
    let (middle, last) = rest.split_at(boundary(rest, rest.len() - MAX_LINE / 2));
    // A dash at the cut keeps either part from ending or starting with what looks like tags or a keyword.
    let first = parse_short_headline(&format!("{first}-"), config);
    let last = parse_short_headline(&format!("-{last}"), config);
    let first = first.strip_suffix('-').unwrap_or(&first);
    let last = last.strip_prefix('-').unwrap_or(&last);
    [first, middle, last].concat()
}

fn parse_short_headline(text: &str, config: &ParseConfig) -> String {
    let parsed = config
        .clone()
        .parse(format!("* {text}"))
        .first_node::<Parsed>();
    parsed
        .map(|headline| headline.title_raw())
        .unwrap_or_default()
}

/// Returns the last boundary of characters at or before a place.
fn boundary(text: &str, place: usize) -> usize {
    (0..=place)
        .rev()
        .find(|place| text.is_char_boundary(*place))
        .unwrap_or_default()
}

/// Removes a priority of two digits, 10 to 64 (Org manual, "Priorities"), which the parser doesn't know.
fn without_number(title: &str) -> &str {
    match title
        .strip_prefix("[#")
        .and_then(|rest| rest.split_once(']'))
    {
        Some((number, rest)) if is_priority(number) => rest.trim_start(),
        _ => title,
    }
}

fn is_priority(number: &str) -> bool {
    number.len() == 2
        && number
            .parse::<u8>()
            .is_ok_and(|number| (10..=64).contains(&number))
}

/// Returns the ID in the property drawer that a text starts with.
fn parse_id(text: &str) -> Option<String> {
    let properties = ParseConfig::default()
        .parse(split_drawer(text)?)
        .document()
        .properties()?;
    let (_, id) = properties
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case("ID"))?;
    Some(id.trim().to_owned()).filter(|id| !id.is_empty())
}

/// Returns the property drawer that a text starts with, and nothing after it.
fn split_drawer(text: &str) -> Option<&str> {
    let mut end = 0;
    for (number, line) in text.split_inclusive('\n').enumerate() {
        end += line.len();
        let line = line.trim();
        let is_of_drawer = if number == 0 {
            line.eq_ignore_ascii_case(":PROPERTIES:")
        } else {
            line.starts_with(':')
        };
        if !is_of_drawer || end > MAX_DRAWER {
            return None;
        }
        if line.eq_ignore_ascii_case(":END:") {
            return Some(&text[..end]);
        }
    }
    None
}

fn without_planning(text: &str) -> &str {
    let line = text.trim_start();
    match PLANNING.iter().any(|keyword| line.starts_with(keyword)) {
        true => text.split_once('\n').map_or("", |(_, rest)| rest),
        false => text,
    }
}

/// Removes the empty lines and the comments that may stand before the drawer of a text.
fn without_comments(text: &str) -> &str {
    let before: usize = text
        .split_inclusive('\n')
        .take_while(|line| matches!(line.trim(), "" | "#") || line.trim_start().starts_with("# "))
        .map(str::len)
        .sum();
    &text[before..]
}

fn starts_with(line: &str, name: &str) -> bool {
    line.get(..name.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(name))
}
