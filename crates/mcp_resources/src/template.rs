//! URI templates, RFC 6570, levels 1 to 4.
//!
//! - [`UriTemplate`] is a parsed template. [`UriTemplate::expand`] makes a URI from values.
//! - [`Matcher`] goes the other way, from a URI to the values. Its documentation has a table of URIs that
//!   match and that don't.
//! - [`TemplateSet`] finds the template that a URI belongs to among many.
//!
//! ```
//! use mcp_resources::template::{Matcher, UriTemplate, Value, Values};
//!
//! let template = UriTemplate::parse("notes://{folder}{?tags*}")?;
//! let values = Values::from([
//!     ("folder".to_owned(), Value::from("to do")),
//!     ("tags".to_owned(), Value::from(["a", "b"])),
//! ]);
//! let uri = template.expand(&values)?;
//! assert_eq!(uri, "notes://to%20do?tags=a&tags=b");
//! assert_eq!(Matcher::new(&template)?.matches(&uri).map(|found| found.into_values()), Some(values));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod encoding;
mod error;
mod expand;
mod matcher;
mod parse;
mod set;

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

pub use error::{ExpandError, Problem, TemplateError};
pub use matcher::{MAX_ITEMS, MAX_URI_LENGTH, Match, Matcher, Variable};
pub use set::{MAX_COMPARED, TemplateSet};

/// The longest template in bytes. Templates are written by hand; this is far more than any needs.
pub const MAX_TEMPLATE_LENGTH: usize = 8 * 1024;

/// The most variables in a template; repetitions count. The check if two templates overlap takes time for
/// each variable of both.
pub const MAX_VARIABLES: usize = 64;

/// A parsed URI template.
///
/// `Display` writes the template unchanged. Two templates are equal if their texts are.
#[derive(Debug, Clone)]
pub struct UriTemplate {
    source: String,
    parts: Vec<Part>,
}

/// The values of a template's variables by name. A variable without a value is undefined (RFC 6570 §2.3).
pub type Values = BTreeMap<String, Value>;

/// The value of one variable (RFC 6570 §2.3).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// A text, not encoded.
    Text(String),
    /// Texts in order. An empty list counts as no value.
    List(Vec<String>),
    /// Names with their texts, in order. An empty map counts as no value.
    Map(Vec<(String, String)>),
}

/// A part of a template.
#[derive(Debug, Clone)]
enum Part {
    Literal(Literal),
    Expression(Expression),
}

/// Text between expressions, encoded as a URI holds it (RFC 6570 §3.1).
#[derive(Debug, Clone)]
struct Literal {
    offset: usize,
    text: String,
}

/// A pair of braces and its content (RFC 6570 §2.2).
#[derive(Debug, Clone)]
struct Expression {
    offset: usize,
    operator: Operator,
    variables: Vec<VariableSpec>,
}

/// The first character within the braces (RFC 6570 §2.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Simple,
    Reserved,
    Fragment,
    Label,
    Path,
    Parameters,
    Query,
    Continuation,
}

/// One variable of an expression (RFC 6570 §2.3 and §2.4).
#[derive(Debug, Clone)]
struct VariableSpec {
    offset: usize,
    name: String,
    modifier: Modifier,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Modifier {
    None,
    /// At most this many characters of the value.
    Prefix(usize),
    Explode,
}

impl UriTemplate {
    /// Parses a template of any level (RFC 6570 §2).
    ///
    /// # Errors
    ///
    /// Refuses what the grammar does not allow, more than [`MAX_TEMPLATE_LENGTH`] bytes, and more than
    /// [`MAX_VARIABLES`] variables. The error has the place.
    ///
    /// ```
    /// use mcp_resources::template::UriTemplate;
    ///
    /// let error = UriTemplate::parse("file:///{=path}").unwrap_err();
    /// assert_eq!(error.offset(), 9);
    /// let message = "the operator '=' is reserved for later versions of URI templates, at byte 9: \"=path}\"";
    /// assert_eq!(error.to_string(), message);
    /// ```
    pub fn parse(template: &str) -> Result<Self, TemplateError> {
        let parts = parse::parse(template)?;
        Ok(Self {
            source: template.to_owned(),
            parts,
        })
    }

    /// Makes a URI from values (RFC 6570 §3).
    ///
    /// Values are not encoded yet. `{+name}` and `{#name}` keep the reserved characters and the
    /// percent-encoded triplets of a value; all other expressions encode them. A prefix, as in `{+name:3}`,
    /// counts the character that triplets encode as one.
    ///
    /// # Errors
    ///
    /// [`ExpandError`] if a variable with a prefix, such as `{name:3}`, has a list or a map (§2.4.1).
    pub fn expand(&self, values: &Values) -> Result<String, ExpandError> {
        expand::expand(&self.parts, values)
    }

    /// Returns the names of the variables in the order of their first mention, each once.
    ///
    /// ```
    /// # use mcp_resources::template::UriTemplate;
    /// assert_eq!(UriTemplate::parse("{/a:1,a}{?b*}")?.variables(), ["a", "b"]);
    /// # Ok::<(), mcp_resources::template::TemplateError>(())
    /// ```
    pub fn variables(&self) -> Vec<&str> {
        let mut names = Vec::new();
        for specification in self.specifications() {
            if !names.contains(&specification.name.as_str()) {
                names.push(specification.name.as_str());
            }
        }
        names
    }

    /// Returns the text of the template.
    pub fn as_str(&self) -> &str {
        &self.source
    }

    /// Returns whether the template starts with a scheme and a colon in its own text.
    pub(crate) fn has_scheme(&self) -> bool {
        matches!(self.parts.first(), Some(Part::Literal(literal)) if has_scheme(&literal.text))
    }

    fn specifications(&self) -> impl Iterator<Item = &VariableSpec> {
        self.parts.iter().flat_map(|part| match part {
            Part::Literal(_) => [].as_slice(),
            Part::Expression(expression) => &expression.variables,
        })
    }
}

/// Returns a URI in the form in which URIs are compared: ASCII, with only those characters encoded that need
/// it, capital hexadecimal digits and a scheme in lower case. `None` if it is too long or has a malformed
/// triplet.
pub(crate) fn normal_uri(uri: &str) -> Option<String> {
    Some(matcher::Uri::new(uri)?.with_lower_scheme().to_owned())
}

/// Returns whether a text starts with a scheme and a colon (RFC 3986 §3.1).
pub(crate) fn has_scheme(text: &str) -> bool {
    encoding::scheme_length(text).is_some()
}

impl fmt::Display for UriTemplate {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.source)
    }
}

impl FromStr for UriTemplate {
    type Err = TemplateError;

    fn from_str(template: &str) -> Result<Self, TemplateError> {
        Self::parse(template)
    }
}

impl PartialEq for UriTemplate {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source
    }
}

impl Eq for UriTemplate {}

impl Value {
    /// Returns the text, if the value is one.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::List(_) | Self::Map(_) => None,
        }
    }

    /// Returns the texts, if the value is a list.
    pub fn as_list(&self) -> Option<&[String]> {
        match self {
            Self::List(items) => Some(items),
            Self::Text(_) | Self::Map(_) => None,
        }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<Vec<String>> for Value {
    fn from(items: Vec<String>) -> Self {
        Self::List(items)
    }
}

impl<const N: usize> From<[&str; N]> for Value {
    fn from(items: [&str; N]) -> Self {
        Self::List(items.map(str::to_owned).to_vec())
    }
}

impl Operator {
    /// Returns what stands before the first value (RFC 6570 appendix A, like the next three).
    fn first(self) -> &'static str {
        match self {
            Self::Simple | Self::Reserved => "",
            Self::Fragment => "#",
            Self::Label => ".",
            Self::Path => "/",
            Self::Parameters => ";",
            Self::Query => "?",
            Self::Continuation => "&",
        }
    }

    /// Returns what stands between values.
    fn separator(self) -> &'static str {
        match self {
            Self::Simple | Self::Reserved | Self::Fragment => ",",
            Self::Label => ".",
            Self::Path => "/",
            Self::Parameters => ";",
            Self::Query | Self::Continuation => "&",
        }
    }

    /// Returns what follows the name of an empty value; `None` for operators that write no names.
    fn after_empty_name(self) -> Option<&'static str> {
        match self {
            Self::Parameters => Some(""),
            Self::Query | Self::Continuation => Some("="),
            Self::Simple | Self::Reserved | Self::Fragment | Self::Label | Self::Path => None,
        }
    }

    /// Returns whether reserved characters of a value stay.
    fn keeps_reserved(self) -> bool {
        matches!(self, Self::Reserved | Self::Fragment)
    }
}
