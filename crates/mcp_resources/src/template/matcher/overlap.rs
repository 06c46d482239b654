//! Tells whether two templates share a URI.

use super::plan::{Atom, Class, Fragment, Plan, Region};
use super::steps::count;
use crate::template::Modifier;

/// A part of the URIs of a template.
#[derive(Debug, Clone, Copy)]
enum Step {
    /// A byte of a literal; the number is that of the bytes left in it, this one included.
    Byte(usize),
    /// The byte and the next step, or neither.
    Optional,
    /// Any number of bytes of a class.
    Repeat(Class),
}

/// The parts of the URIs of a template, in order.
#[derive(Default)]
struct Steps {
    steps: Vec<Step>,
    /// The byte of each step; 0 for a step without one.
    bytes: Vec<u8>,
}

/// Returns whether a text may fit both templates. Names in queries and parameters are ignored, so two templates
/// that differ only in those count as overlapping.
///
/// It walks both templates at once, over all texts that fit both so far. Literals are compared as a whole, so
/// it stops only at the end of a literal: the cost is at most the length of each template for each variable of
/// the other.
pub(super) fn overlap(one: &Plan, other: &Plan) -> bool {
    let (one_prefix, other_prefix) = (one.prefix(), other.prefix());
    if !one_prefix.starts_with(other_prefix) && !other_prefix.starts_with(one_prefix) {
        return false;
    }
    let (one, other) = (Steps::new(one), Steps::new(other));
    if !one.end().ends_with(other.end()) && !other.end().ends_with(one.end()) {
        return false;
    }
    let mut seen = Seen::new(one.steps.len() + 1, other.steps.len() + 1);
    let mut open = vec![(0, 0)];
    while let Some((left, right)) = open.pop() {
        if (left, right) == (one.steps.len(), other.steps.len()) {
            return true;
        }
        if seen.insert(left, right) {
            count(1);
            open.extend(one.skip(left).map(|left| (left, right)));
            open.extend(other.skip(right).map(|right| (left, right)));
            open.extend(take_both(&one, left, &other, right));
        }
    }
    false
}

/// Returns where both templates continue after a text that both take.
fn take_both(one: &Steps, left: usize, other: &Steps, right: usize) -> Option<(usize, usize)> {
    use Step::{Byte, Optional, Repeat};
    let (after_left, after_right, fits) = match (*one.steps.get(left)?, *other.steps.get(right)?) {
        (Byte(length), Byte(other_length)) => {
            let length = length.min(other_length);
            count(length);
            let fits = one.bytes[left..left + length] == other.bytes[right..right + length];
            (left + length, right + length, fits)
        }
        (Byte(_) | Optional, Byte(_) | Optional) => {
            (left + 1, right + 1, one.bytes[left] == other.bytes[right])
        }
        (Byte(_) | Optional, Repeat(class)) => (left + 1, right, class.holds(one.bytes[left])),
        (Repeat(class), Byte(_) | Optional) => (left, right + 1, class.holds(other.bytes[right])),
        // All classes hold letters. That both take one leads nowhere new.
        (Repeat(_), Repeat(_)) => return None,
    };
    fits.then_some((after_left, after_right))
}

impl Steps {
    fn new(plan: &Plan) -> Self {
        let mut steps = Self::default();
        steps.region(&plan.body);
        if let Some(query) = &plan.query {
            steps.optional(query.byte, Class::Any);
        }
        match &plan.fragment {
            Some(Fragment { optional: true, .. }) => steps.optional(b'#', Class::Any),
            Some(fragment) => steps.region(&fragment.region),
            None => (),
        }
        steps
    }

    fn region(&mut self, region: &Region) {
        self.literal(&region.start);
        for field in &region.fields {
            field.atoms.iter().for_each(|atom| self.atom(atom));
            self.literal(&field.end);
        }
    }

    fn literal(&mut self, text: &str) {
        self.steps.extend((1..=text.len()).rev().map(Step::Byte));
        self.bytes.extend(text.bytes());
    }

    fn atom(&mut self, atom: &Atom) {
        match atom {
            Atom::Text(capture) if capture.modifier == Modifier::Explode => self.repeat(Class::Any),
            Atom::Text(capture) => self.repeat(capture.class),
            Atom::Segments { byte, captures } => {
                captures
                    .iter()
                    .for_each(|capture| self.optional(*byte, capture.class));
            }
            Atom::List { byte, .. } => self.optional(*byte, Class::Any),
            Atom::Parameters(_) => self.optional(b';', Class::Any),
        }
    }

    fn optional(&mut self, byte: u8, class: Class) {
        self.steps.push(Step::Optional);
        self.bytes.push(byte);
        self.repeat(class);
    }

    fn repeat(&mut self, class: Class) {
        self.steps.push(Step::Repeat(class));
        self.bytes.push(0);
    }

    /// Returns the literal at the end.
    fn end(&self) -> &[u8] {
        let literal = self
            .steps
            .iter()
            .rev()
            .take_while(|step| matches!(step, Step::Byte(_)))
            .count();
        &self.bytes[self.bytes.len() - literal..]
    }

    /// Returns where the template continues if the step here takes nothing.
    fn skip(&self, at: usize) -> Option<usize> {
        match self.steps.get(at)? {
            Step::Optional => Some(at + 2),
            Step::Repeat(_) => Some(at + 1),
            Step::Byte(_) => None,
        }
    }
}

/// A set of pairs of places, with a bit for each.
struct Seen {
    width: usize,
    bits: Vec<u64>,
}

impl Seen {
    fn new(height: usize, width: usize) -> Self {
        Self {
            width,
            bits: vec![0; (height * width).div_ceil(64)],
        }
    }

    /// Adds a pair, and returns whether it is new.
    fn insert(&mut self, left: usize, right: usize) -> bool {
        let index = left * self.width + right;
        let bit = 1 << (index % 64);
        let is_new = self.bits[index / 64] & bit == 0;
        self.bits[index / 64] |= bit;
        is_new
    }
}
