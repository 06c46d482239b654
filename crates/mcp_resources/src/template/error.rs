//! Errors in templates, and in values for them.

use super::{MAX_TEMPLATE_LENGTH, MAX_VARIABLES};

/// The most characters of a template in an error: enough to find the place, on one line.
const EXCERPT: usize = 24;

/// A template that can't be used, and the place of the problem.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem}, at byte {offset}: {excerpt:?}")]
pub struct TemplateError {
    problem: Problem,
    offset: usize,
    excerpt: String,
}

/// A mistake in a template (RFC 6570 §2 and §3), or a reason why it can't be matched.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// More than [`MAX_TEMPLATE_LENGTH`] bytes.
    #[error("the template has {length} bytes, over the limit of {MAX_TEMPLATE_LENGTH}")]
    TooLong {
        /// Its bytes.
        length: usize,
    },
    /// More than [`MAX_VARIABLES`] mentions of variables.
    #[error("the template mentions more than {MAX_VARIABLES} variables")]
    TooManyVariables,
    /// A `{` without its `}`.
    #[error("\"{{\" has no closing \"}}\"")]
    Unclosed,
    /// A `}` without its `{`.
    #[error("\"}}\" has no opening \"{{\"")]
    Unopened,
    /// A character that a URI can't hold outside of expressions (§2.1).
    #[error("the character {0:?} must be percent-encoded")]
    LiteralCharacter(char),
    /// A `%` without two hexadecimal digits (§2.1 and §2.3).
    #[error("\"%\" needs two hexadecimal digits after it")]
    Percent,
    /// One of the operators `=`, `,`, `!`, `@` and `|` (§2.2).
    #[error("the operator {0:?} is reserved for later versions of URI templates")]
    ReservedOperator(char),
    /// A missing name (§2.3).
    #[error("the name of a variable is missing")]
    NameMissing,
    /// A character that a name can't have (§2.3).
    #[error("the character {0:?} can't be in the name of a variable")]
    NameCharacter(char),
    /// A dot at the end of a name, or before another one (§2.3).
    #[error("a dot in the name of a variable needs a letter, a digit or \"_\" after it")]
    NameDot,
    /// A prefix that is not a number from 1 to 9999 (§2.4.1).
    #[error("a prefix must be a number from 1 to 9999 without leading zeros")]
    Prefix,
    /// A character after a prefix or a `*` that is neither `,` nor `}` (§2.4).
    #[error("\",\" or \"}}\" must follow here, not {0:?}")]
    AfterModifier(char),
    /// Two variables with no text between them that says where one ends. The template can be expanded, but not
    /// matched.
    #[error(
        "the template doesn't show where {first:?} ends and {second:?} begins, so URIs can't be matched; put text between them"
    )]
    Neighbours {
        /// The variable on the left.
        first: String,
        /// The variable on the right.
        second: String,
    },
    /// A `{?…}` or `{&…}` that is not at the end or before a fragment. The template can be expanded, but not
    /// matched.
    #[error("a query can only be matched at the end of a template or directly before its fragment")]
    MisplacedQuery,
    /// A second `{#…}`. The template can be expanded, but not matched.
    #[error("a template with two fragments can't be matched")]
    MisplacedFragment,
}

impl TemplateError {
    pub(super) fn new(problem: Problem, template: &str, offset: usize) -> Self {
        let excerpt = template[offset..].chars().take(EXCERPT).collect();
        Self {
            problem,
            offset,
            excerpt,
        }
    }

    /// Returns the problem.
    pub fn problem(&self) -> &Problem {
        &self.problem
    }

    /// Returns the place of the problem in bytes from the start. It is always a boundary of characters.
    pub fn offset(&self) -> usize {
        self.offset
    }
}

/// An expansion that values make impossible.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ExpandError {
    /// A list or a map for a variable with a prefix, such as `{name:3}` (RFC 6570 §2.4.1).
    #[error(
        "the template asks for a prefix (\":{length}\") of {variable:?}, which is a list or a map; give it a text"
    )]
    PrefixOfComposite {
        /// The variable's name.
        variable: String,
        /// The prefix.
        length: usize,
    },
}
