//! Finds the values that a URI was made with.

mod bytes;
mod field;
mod landmarks;
mod overlap;
mod plan;
mod planner;
mod scan;
mod slots;
pub(super) mod steps;
mod tail;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::sync::Arc;

use super::encoding::{normalize, scheme_length};
use super::{TemplateError, UriTemplate, Value, Values};
pub(super) use landmarks::{Landmark, Place};
use plan::{Fragment, Plan, Region};

/// The longest URI in bytes, in its encoded form. A longer one matches nothing.
pub const MAX_URI_LENGTH: usize = 128 * 1024;

/// The most values in a URI; each item of a list counts. A URI with more matches nothing.
pub const MAX_ITEMS: usize = 1024;

/// Finds the values that a URI was made with. It is the inverse of [`UriTemplate::expand`].
///
/// | template | URI | match |
/// |---|---|---|
/// | **Values** | | |
/// | `x:{v}` | `x:a%20b` | `{"v":"a b"}` decoded; [`Match::raw`] has `a%20b` |
/// | `x:{v}` | `x:` | `{"v":""}` |
/// | `x:{v}` | `x:a/b` | none: a simple variable stops at reserved characters |
/// | `x:{v}` | `x:a%2Fb` | `{"v":"a/b"}` |
/// | `x:{v}` | `x:a%2` | none: a malformed triplet |
/// | `x:{v}` | `x:%FF` | none: not UTF-8 |
/// | `x:{v}` | `x:é` | `{"v":"é"}` |
/// | `x:{v}` | `x:a b` | `{"v":"a b"}` a character that needs encoding is accepted |
/// | `x:{v}` | `x:a+b` | none: `+` is reserved, a space is `%20` |
/// | `x:{+v}` | `x:a/b?c#d` | `{"v":"a/b?c#d"}` |
/// | `x:{+v}` | `x:a%2Fb` | `{"v":"a/b"}` |
/// | `x:{v:3}` | `x:äöü` | `{"v":"äöü"}` |
/// | `x:{v:3}` | `x:abcd` | none: longer than its prefix |
/// | `x:{a,b}` | `x:1,2` | `{"a":"1","b":"2"}` |
/// | `x:{a,b}` | `x:1` | none: the comma is missing |
/// | **Literals** | | |
/// | `org://{v}/x` | `ORG://a/x` | `{"v":"a"}` a scheme has no case |
/// | `org://{v}/x` | `org://a/X` | none: the rest has |
/// | `x:a%2fb{v}` | `x:a%2Fb1` | `{"v":"1"}` |
/// | `x:é/{v}` | `x:%c3%a9/1` | `{"v":"1"}` |
/// | `x:%C3%A9/{v}` | `x:é/1` | `{"v":"1"}` |
/// | `x:a.b/{v}` | `x:%61%2Eb/1` | `{"v":"1"}` encoded without need |
/// | `x:{a}{.e}` | `x:1%2Etxt` | `{"a":"1","e":"txt"}` as before |
/// | `x:{a}2{b}` | `x:%2F2%2f` | `{"a":"/","b":"/"}` no text begins within a triplet |
/// | `x:{a}F` | `x:1%2F` | none: as before |
/// | `x:{+a}2{b}` | `x:12%2F` | `{"a":"1","b":"/"}` as before |
/// | `x:y` | `x:y` | `{}` |
/// | `x:y` | `x:y/` | none |
/// | **Where values end** | | |
/// | `x:{a}-{b}` | `x:1-2-3` | `{"a":"1","b":"2-3"}` at the first place from the left |
/// | `x:{a}.json` | `x:1.json.json` | `{"a":"1.json"}` text at the end is found first |
/// | `x:{+p}/{b}` | `x:1/2/3` | `{"p":"1/2","b":"3"}` after a wide variable, from the right |
/// | `x:{a}/{+p}/{b}` | `x:1/2/3/4` | `{"a":"1","p":"2/3","b":"4"}` |
/// | `x:{+a}:{+b}` | `x:1:2:3` | `{"a":"1","b":"2:3"}` the last wide one takes the rest |
/// | `x:{+p}-{b}{.e}` | `x:1-2.3-4.5` | `{"p":"1-2.3","b":"4","e":"5"}` |
/// | `x:{v}/{v}` | `x:1/1` | `{"v":"1"}` |
/// | `x:{v}/{v}` | `x:1/2` | none: one variable, two values |
/// | `x:{v}/{v}` | `x:%61/a` | `{"v":"a"}` |
/// | `x:{v:1}/{v}` | `x:a/ab` | `{"v":"ab"}` |
/// | `x:{v:1}/{v}` | `x:b/ab` | none |
/// | **Optional values** | | |
/// | `x:a{/b,c}` | `x:a` | `{}` |
/// | `x:a{/b,c}` | `x:a/1` | `{"b":"1"}` |
/// | `x:a{/b,c}` | `x:a/1/2` | `{"b":"1","c":"2"}` |
/// | `x:a{/b}/c` | `x:a/c` | `{}` the template's own text comes before an optional value |
/// | `x:a{/b}/c` | `x:a/` | none |
/// | `x:{/a}/b/{c}` | `x:/b/c` | `{"c":"c"}` |
/// | `x:{/a}/b/{c}` | `x:/b/b/c` | `{"a":"b","c":"c"}` at the last place from the right |
/// | `x:{/a}/{+b}` | `x:/1/2` | `{"b":"1/2"}` but before a wide variable at the first |
/// | `x:{a}{/b}{/c}` | `x:1/3` | `{"a":"1","b":"3"}` the first of neighbours |
/// | `x:{+w}{/b,c}` | `x:1/2` | `{"w":"1","b":"2"}` |
/// | `x:{+w}{/b,c}` | `x:1/2/3/4` | `{"w":"1/2","b":"3","c":"4"}` as many as there may be |
/// | `x:{+w}{.e}` | `x:a.b` | `{"w":"a","e":"b"}` |
/// | `x:{a}{.e}` | `x:1.tar.gz` | `{"a":"1","e":"tar.gz"}` |
/// | `x:{a}{.e}` | `x:1` | `{"a":"1"}` |
/// | `x:a{;b,c}` | `x:a;c=1;b` | `{"b":"","c":"1"}` |
/// | `x:a{;b,c}` | `x:a;d=1` | none: an unknown name |
/// | `x:{;a}{;b}` | `x:;a=1;b=2` | `{"a":"1","b":"2"}` |
/// | `x:{;a}{/b}{;c}` | `x:;c=1` | `{"c":"1"}` |
/// | `x:{+w}{;p}` | `x:1;q=2;p=3` | `{"w":"1;q=2","p":"3"}` up to an unknown name |
/// | `x:{+w}{;p}` | `x:1;p=9;p=2` | none: one variable, two values |
/// | `x:a{#f}` | `x:a#1/2` | `{"f":"1/2"}` |
/// | `x:a{#f}` | `x:a` | `{}` |
/// | **Queries** | | |
/// | `x:a{?b,c}` | `x:a?c=2&b=1` | `{"b":"1","c":"2"}` in any order |
/// | `x:a{?b,c}` | `x:a?c=2` | `{"c":"2"}` |
/// | `x:a{?b,c}` | `x:a` | `{}` |
/// | `x:a{?b,c}` | `x:a?b=` | `{"b":""}` |
/// | `x:a{?b}` | `x:a?b=1/2?3` | `{"b":"1/2?3"}` what a query may hold |
/// | `x:a{?b}` | `x:a?b=1&b=1` | `{"b":"1"}` |
/// | `x:a{?b}` | `x:a?b=1&b=2` | none |
/// | `x:{?v:1,v}` | `x:?v=a&v=abc` | `{"v":"abc"}` |
/// | `x:{?v:1,v}` | `x:?v=b&v=abc` | none |
/// | `x:a{?b}` | `x:a?d=1` | none: an unknown name |
/// | `x:a{?b}{&c}` | `x:a?c=2` | `{"c":"2"}` |
/// | `x:a{?b}{&c}` | `x:a&c=2` | none: a query starts with `?` |
/// | `x:a?z=1{&b}` | `x:a?z=1&b=2` | `{"b":"2"}` |
/// | `x:a{?b}{&c}{#f}` | `x:a?c=2#3` | `{"c":"2","f":"3"}` |
/// | **Lists** | | |
/// | `x:{l*}` | `x:1,2%2C` | `{"l":["1","2,"]}` |
/// | `x:{l*}` | `x:` | `{"l":[]}` |
/// | `x:{l*,b}` | `x:,1` | `{"l":[""],"b":"1"}` an empty list would leave no comma |
/// | `x:a{#l*}` | `x:a#` | `{"l":[""]}` and no `#` |
/// | `x:{l}` | `x:1,2` | none: where a list without `*` ends is unknown |
/// | `x:a{/l*}` | `x:a/1/2` | `{"l":["1","2"]}` |
/// | `x:a{/l*}/z` | `x:a/1/2/z` | `{"l":["1","2"]}` |
/// | `x:a{/l*}` | `x:a` | `{}` |
/// | `x:a{.l*}` | `x:a.1.2` | `{"l":["1","2"]}` |
/// | `x:a{;l*}` | `x:a;l=1;l=2` | `{"l":["1","2"]}` |
/// | `x:{l*}{?l*}` | `x:1,2?l=1&l=2` | `{"l":["1","2"]}` |
/// | `x:{l*}{?l*}` | `x:1,2?l=1&l=3` | none: one variable, two values |
/// | `x:a{?l*,b}` | `x:a?l=1&b=3&l=2` | `{"l":["1","2"],"b":"3"}` |
///
/// [`Matcher::lenient`] lets simple variables hold more. Variables of `{/…}`, `{.…}`, `{;…}` and queries stay
/// strict. Before a `{#…}`, the first `#` that is not the template's own ends a variable:
///
/// | template | URI | lenient match |
/// |---|---|---|
/// | `org://{f}/headline/{p}` | `org://a/b.org/headline/1/2#3` | `{"f":"a/b.org","p":"1/2#3"}` |
/// | `org://{f}/headline/{p}` | `org://a/headline/1?2` | none: `/` and `#` alone |
/// | `x:a{/b}` | `x:a/1` | `{"b":"1"}` |
/// | `x:a{/b}` | `x:a/1/2` | none |
/// | `x:a{/b}` | `x:a/1#2` | none |
/// | `x:{f}{#g}` | `x:a/b#c#d` | `{"f":"a/b","g":"c#d"}` |
/// | `x:{f}{?q}{#g}` | `x:a#b?q=1` | `{"f":"a","g":"b?q=1"}` |
/// | `x:{f}#n{#g}` | `x:a#n#b` | `{"f":"a","g":"b"}` |
///
/// # The inverse
///
/// `matches(expand(values))` returns the same values if all of this holds:
/// - simple and `{+…}` variables are defined, and those of a `{#…}` that has several, or a text behind it; texts meet variables without `*`, lists that are not empty those with
///   one (for `{l*}`, not the list of one empty text);
/// - a variable with `*` that another follows in its simple, `{+…}` or `{#…}` expression has one value, without a comma;
/// - a variable with `*` in a `{;…}` is mentioned once, one in a `{?…}` or `{&…}` in no other of these three;
/// - a text is no longer than the longest prefix of its variable, if all its mentions have one;
/// - what stands between two of the template's texts holds the text after it first at its end, also where the two
///   run into one another; behind the last wide variable (or, without one, the last optional value before a text) it
///   holds the text before it last at its start;
/// - where a `{.…}` stands, no value up to the next text on either side holds a `.`; where a `{/…}` or a `{;…}` does,
///   no value of a `{+…}` there holds a `/` or a `;`;
/// - a value of `{+…}` holds no `?` before a `{?…}`, no `&` before a lone `{&…}`, no `#` before a `{#…}`;
/// - values of `{+…}` and `{#…}` hold no triplets, which come out decoded;
/// - of the variables of all `{/…}`, or all `{.…}`, with no text between them only last ones are undefined; of those
///   of a `{?…}`, one is defined where one of its `{&…}` is.
///
/// Maps don't come back. An exploded one has lost the variable's name, another one its end.
///
/// # Cost
///
/// The time is proportional to the lengths of the URI and the template, whatever they hold and however many
/// variables there are. Each text is looked for once, and nothing is tried twice.
#[derive(Debug, Clone)]
pub struct Matcher {
    template: UriTemplate,
    plan: Plan,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Strictness {
    Strict,
    Lenient,
}

/// The values that a URI was made with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Match {
    variables: Vec<Variable>,
}

/// One variable of a [`Match`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Variable {
    /// Its name in the template.
    pub name: Arc<str>,
    /// Its value, decoded: a text, or a list for an exploded variable.
    pub value: Value,
    /// The value in encoded form: ASCII, with capital hexadecimal digits. Unreserved characters are not
    /// encoded (RFC 3986 §2.3).
    pub raw: Value,
}

impl Matcher {
    /// Prepares a template for matching.
    ///
    /// # Errors
    ///
    /// Refuses templates that can be expanded but not matched: two variables with no text between them, as in
    /// `{a}{b}`, a query before the end, and two fragments.
    ///
    /// ```
    /// use mcp_resources::template::{Matcher, UriTemplate};
    ///
    /// let error = Matcher::new(&UriTemplate::parse("x:{a}{b}")?).unwrap_err();
    /// assert_eq!(error.offset(), 6);
    /// # Ok::<(), mcp_resources::template::TemplateError>(())
    /// ```
    pub fn new(template: &UriTemplate) -> Result<Self, TemplateError> {
        Self::with(template, Strictness::Strict)
    }

    /// Prepares a template whose simple variables may hold `/` and `#` unencoded, as in URIs that people type.
    ///
    /// # Errors
    ///
    /// As [`Matcher::new`].
    pub fn lenient(template: &UriTemplate) -> Result<Self, TemplateError> {
        Self::with(template, Strictness::Lenient)
    }

    fn with(template: &UriTemplate, strictness: Strictness) -> Result<Self, TemplateError> {
        Ok(Self {
            plan: planner::plan(template, strictness)?,
            template: template.clone(),
        })
    }

    /// Returns the values that this URI was made with, or `None` if the template can't have made it.
    pub fn matches(&self, uri: &str) -> Option<Match> {
        self.matches_normal(&Uri::new(uri)?)
    }

    /// Returns the template.
    pub fn template(&self) -> &UriTemplate {
        &self.template
    }

    /// Returns whether a URI may match both templates.
    ///
    /// `false` is always right. `true` is certain only for templates without `{?…}`, `{&…}`, `{;…}`, `*` and
    /// triplets.
    ///
    /// ```
    /// use mcp_resources::template::{Matcher, UriTemplate};
    ///
    /// let matcher = |template| Matcher::new(&UriTemplate::parse(template)?);
    /// let outline = matcher("org://{file}/outline")?;
    /// assert!(outline.overlaps(&matcher("org://id/{id}")?)); // org://id/outline
    /// assert!(!outline.overlaps(&matcher("org://{file}/headline/{+path}")?));
    /// # Ok::<(), mcp_resources::template::TemplateError>(())
    /// ```
    pub fn overlaps(&self, other: &Self) -> bool {
        overlap::overlap(&self.plan, &other.plan)
    }

    pub(super) fn matches_normal(&self, uri: &Uri<'_>) -> Option<Match> {
        let text = if self.plan.scheme > 0 {
            uri.with_lower_scheme()
        } else {
            &uri.normal
        };
        Some(scan::scan(&self.plan, text)?.into_match(&self.plan.names))
    }

    /// Returns the literals whose place in every matching URI is known.
    pub(super) fn landmarks(&self) -> Vec<Landmark<'_>> {
        landmarks::landmarks(&self.plan)
    }

    /// Iterates over the literals that every matching URI has, the scheme in lower case. A template that doesn't
    /// start with a scheme has none, because its first literal may match capitals of the URI's scheme.
    pub(super) fn literals(&self) -> impl Iterator<Item = &str> {
        let fragment = self
            .plan
            .fragment
            .iter()
            .filter(|fragment| !fragment.optional);
        let regions =
            std::iter::once(&self.plan.body).chain(fragment.map(|fragment| &fragment.region));
        regions
            .filter(|_| self.plan.scheme > 0)
            .flat_map(Region::literals)
    }

    /// Returns the names that a query of a matching URI can have; `None` if the place of the query is unknown.
    pub(super) fn query_names(&self) -> Option<QueryNames<'_>> {
        // A query ends at the URI's first `#`. Text of the template with a `#` may stand before the query.
        let is_fragment_first = self
            .plan
            .fragment
            .as_ref()
            .is_none_or(|fragment| fragment.number_signs == 0);
        let query = self.plan.query.as_ref().filter(|_| is_fragment_first)?;
        let names = query.pairs.names().collect();
        let (byte, before, fragment) = (query.byte, query.before, self.plan.fragment.as_ref());
        let without = WithoutQuery {
            byte,
            before,
            body: &self.plan.body,
            fragment,
        };
        Some(QueryNames {
            byte,
            before,
            names,
            without,
        })
    }

    /// Returns the bytes of the template's own text. The more it has, the more specific it is.
    pub(super) fn literal_length(&self) -> usize {
        self.plan.literal_length
    }
}

/// The query of a template. It starts at the byte `byte` after `before` others like it, unless a `#` comes
/// first.
#[derive(Debug, Clone)]
pub(super) struct QueryNames<'p> {
    pub(super) byte: u8,
    pub(super) before: usize,
    pub(super) names: Vec<&'p str>,
    pub(super) without: WithoutQuery<'p>,
}

/// The requirements for a URI without a query. They are equal for templates that differ only in the names of
/// the query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct WithoutQuery<'p> {
    byte: u8,
    before: usize,
    body: &'p Region,
    fragment: Option<&'p Fragment>,
}

/// A URI in the form in which it is compared.
pub(super) struct Uri<'u> {
    normal: Cow<'u, str>,
    /// The same with its scheme in lower case, if the scheme has capitals.
    lower: Option<String>,
}

impl<'u> Uri<'u> {
    /// Normalises a URI; `None` if it is too long or has a malformed triplet.
    pub(super) fn new(uri: &'u str) -> Option<Self> {
        if uri.len() > MAX_URI_LENGTH {
            return None;
        }
        let normal = normalize(uri)?;
        if normal.len() > MAX_URI_LENGTH {
            return None;
        }
        let scheme = scheme_length(uri).unwrap_or(0);
        let has_capitals = uri[..scheme].bytes().any(|byte| byte.is_ascii_uppercase());
        let lower = has_capitals.then(|| uri[..scheme].to_ascii_lowercase() + &normal[scheme..]);
        Some(Self { normal, lower })
    }

    /// Returns the URI with its scheme in lower case.
    pub(super) fn with_lower_scheme(&self) -> &str {
        self.lower.as_deref().unwrap_or(&self.normal)
    }
}

impl Match {
    /// Returns the value of a variable, if the URI has one.
    pub fn value(&self, name: &str) -> Option<&Value> {
        self.variable(name).map(|variable| &variable.value)
    }

    /// Returns the value of a variable without `*`.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.value(name).and_then(Value::as_text)
    }

    /// Returns the value of a variable with `*`.
    pub fn list(&self, name: &str) -> Option<&[String]> {
        self.value(name).and_then(Value::as_list)
    }

    /// Returns the value of a variable in encoded form (see [`Variable::raw`]).
    pub fn raw(&self, name: &str) -> Option<&Value> {
        self.variable(name).map(|variable| &variable.raw)
    }

    /// Returns the variables that have values, in the order of the template.
    pub fn variables(&self) -> &[Variable] {
        &self.variables
    }

    /// Returns the values in the form that [`UriTemplate::expand`] takes.
    pub fn into_values(self) -> Values {
        self.variables
            .into_iter()
            .map(|variable| (variable.name.to_string(), variable.value))
            .collect()
    }

    fn variable(&self, name: &str) -> Option<&Variable> {
        self.variables
            .iter()
            .find(|variable| *variable.name == *name)
    }
}
