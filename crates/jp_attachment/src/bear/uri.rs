use jp_resource::uri::percent_decode;

/// A note, or a search for notes.
///
/// A note is written `bear://get/ID`, `bear:ID` or, as the app itself links to it,
/// `bear://x-callback-url/open-note?id=ID`. A search is `bear://search/WORDS?tag=A&tag=B`.
/// Percent-encoding is decoded; a `+` is not a space.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BearUri {
    /// The note with this identifier.
    Note(String),
    /// All notes whose title or text contains `words` in any case. If there are `tags`, the note
    /// has one of them. Neither is a pattern.
    Search {
        /// The words; may be empty if there are tags.
        words: String,
        /// Tags without `#`.
        tags: Vec<String>,
    },
}

impl BearUri {
    /// Parses the text after `bear:`. The error is the reason.
    pub(crate) fn parse(rest: &str) -> Result<Self, String> {
        let Some(rest) = rest.strip_prefix("//") else {
            return Self::note(decode(rest)?);
        };
        let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
        // An attachment that a configuration writes as a table has the `/` encoded as well.
        let path = decode(path)?;
        let (action, argument) = path.split_once('/').unwrap_or((&path, ""));
        match action {
            "get" => Self::note(argument.to_owned()),
            "search" => Self::search(argument.to_owned(), parameters(query, "tag")?),
            "x-callback-url" if argument == "open-note" => Self::note(
                parameters(query, "id")?
                    .into_iter()
                    .next()
                    .unwrap_or_default(),
            ),
            _ => Err(FORMS.to_owned()),
        }
    }

    fn note(id: String) -> Result<Self, String> {
        if id.is_empty() {
            Err(FORMS.to_owned())
        } else {
            Ok(Self::Note(id))
        }
    }

    fn search(words: String, tags: Vec<String>) -> Result<Self, String> {
        if words.is_empty() && tags.is_empty() {
            return Err("a search needs words or a tag, `bear://search/WORDS?tag=TAG`".to_owned());
        }
        Ok(Self::Search { words, tags })
    }
}

/// The error for any other form.
pub(super) const FORMS: &str =
    "write a note as `bear://get/ID` and a search as `bear://search/WORDS?tag=TAG`";

/// Returns the values of the parameter `name` in a query.
///
/// Refuses other parameters of a search, because jp would ignore them. The app's own links may have
/// any.
fn parameters(query: &str, name: &str) -> Result<Vec<String>, String> {
    let mut values = Vec::new();
    for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
        match parameter.split_once('=') {
            Some((key, value)) if key == name => values.push(decode(value)?),
            _ if name == "id" => {}
            _ => {
                return Err(format!(
                    "{parameter:?} is not a parameter of a search; use `tag=TAG`"
                ));
            }
        }
    }
    values.retain(|value| !value.is_empty());
    Ok(values)
}

fn decode(text: &str) -> Result<String, String> {
    percent_decode(text).map_err(|_| format!("{text:?} does not decode to UTF-8"))
}
