//! What can be wrong with a template, and with values for it.

use super::{MAX_TEMPLATE_LENGTH, MAX_VARIABLES};

/// How much of a template an error shows, in characters.
const EXCERPT: usize = 24;

/// A template that can't be used, with the place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem}, at byte {offset}: {excerpt:?}")]
pub struct TemplateError {
    problem: Problem,
    offset: usize,
    excerpt: String,
}

/// What is wrong with a template (RFC 6570 §2 and §3), or with matching by it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// More than [`MAX_TEMPLATE_LENGTH`] bytes.
    #[error("the template is {length} bytes long, {MAX_TEMPLATE_LENGTH} are allowed")]
    TooLong {
        /// Its bytes.
        length: usize,
    },
    /// More than [`MAX_VARIABLES`] mentions of variables.
    #[error("the template mentions more than {MAX_VARIABLES} variables")]
    TooManyVariables,
    /// A `{` without its `}`.
    #[error("\"{{\" has no \"}}\" that closes it")]
    Unclosed,
    /// A `}` without its `{`.
    #[error("\"}}\" closes nothing")]
    Unopened,
    /// A character that a URI can't hold outside of expressions (§2.1).
    #[error("the character {0:?} has to be percent-encoded")]
    LiteralCharacter(char),
    /// A `%` without two hexadecimal digits (§2.1 and §2.3).
    #[error("\"%\" needs two hexadecimal digits after it")]
    Percent,
    /// One of the operators `=`, `,`, `!`, `@` and `|` (§2.2).
    #[error("the operator {0:?} is reserved for later versions of URI templates")]
    ReservedOperator(char),
    /// Nothing where a name should be (§2.3).
    #[error("the name of a variable is missing")]
    NameMissing,
    /// A character that no name holds (§2.3).
    #[error("the character {0:?} can't be in the name of a variable")]
    NameCharacter(char),
    /// A dot at the end of a name, or before another one (§2.3).
    #[error("a dot in the name of a variable needs a letter, a digit or \"_\" after it")]
    NameDot,
    /// A prefix that is not a number from 1 to 9999 (§2.4.1).
    #[error("a prefix has to be a number from 1 to 9999 without leading zeros")]
    Prefix,
    /// Something after a prefix or a `*` that is neither `,` nor `}` (§2.4).
    #[error("\",\" or \"}}\" has to follow here, not {0:?}")]
    AfterModifier(char),
    /// Two variables with nothing between them that says where one ends: the template expands and can't be matched.
    #[error(
        "nothing says where {first:?} ends and {second:?} begins, so no URI can be matched; put text between them"
    )]
    Neighbours {
        /// The variable on the left.
        first: String,
        /// The variable on the right.
        second: String,
    },
    /// A `{?…}` or `{&…}` before something else than its continuation or a fragment: the template expands and can't
    /// be matched.
    #[error("a query can be matched at the end of a template or before its fragment alone")]
    MisplacedQuery,
    /// A second `{#…}`: the template expands and can't be matched.
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

    /// Says what is wrong.
    pub fn problem(&self) -> &Problem {
        &self.problem
    }

    /// Says where, in bytes from the template's start; always at a character's start or at the very end.
    pub fn offset(&self) -> usize {
        self.offset
    }
}

/// Values that a template can't be expanded with.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ExpandError {
    /// A prefix as in `{name:3}` for a list or a map (RFC 6570 §2.4.1).
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
