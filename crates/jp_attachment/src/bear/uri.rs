use jp_resource::uri::percent_decode;

/// Notes that are asked for.
///
/// Written `bear://get/ID`, `bear:ID`, as the app's own link to a note,
/// `bear://x-callback-url/open-note?id=ID`, or `bear://search/WORDS?tag=A&tag=B`; percent-encoding is
/// decoded, a `+` is itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BearUri {
    /// The note with this identifier.
    Note(String),
    /// Each note whose title or text holds `words`, in any case, and that has one of `tags`, if there are
    /// any. Neither is a pattern.
    Search {
        /// What a note holds; may be empty where there are tags.
        words: String,
        /// Tags without `#`.
        tags: Vec<String>,
    },
}

impl BearUri {
    /// Reads what follows `bear:`. Says what is wrong where it can't.
    pub(crate) fn parse(rest: &str) -> Result<Self, String> {
        let Some(rest) = rest.strip_prefix("//") else {
            return Self::note(decoded(rest)?);
        };
        let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
        // A configuration's table encodes the `/` as well.
        let path = decoded(path)?;
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

pub(super) const FORMS: &str =
    "a note is `bear://get/ID`, several are `bear://search/WORDS?tag=TAG`";

/// Returns the values that a query gives a parameter. Refuses any other: it would change nothing.
fn parameters(query: &str, name: &str) -> Result<Vec<String>, String> {
    let mut values = Vec::new();
    for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
        match parameter.split_once('=') {
            Some((key, value)) if key == name => values.push(decoded(value)?),
            _ if name == "id" => {}
            _ => {
                return Err(format!(
                    "{parameter:?} is not a parameter of it; `tag=TAG` is"
                ));
            }
        }
    }
    values.retain(|value| !value.is_empty());
    Ok(values)
}

fn decoded(text: &str) -> Result<String, String> {
    percent_decode(text).map_err(|_| format!("{text:?} does not decode to UTF-8"))
}
