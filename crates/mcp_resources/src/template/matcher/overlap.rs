//! Whether two templates share a URI.

use super::plan::{Atom, Class, Fragment, Plan};
use crate::template::Modifier;

/// What a URI may go on with.
#[derive(Debug, Clone, Copy)]
enum Step {
    Byte(u8),
    /// The byte and the next step, or neither.
    Optional(u8),
    /// Any number of bytes of a class.
    Repeat(Class),
}

/// Walks both templates at once over all texts that fit both so far. What names a query or parameters have is not
/// looked at, so a pair that differs in these alone counts as overlapping.
pub(super) fn overlap(one: &Plan, other: &Plan) -> bool {
    let (one_prefix, other_prefix) = (one.prefix(), other.prefix());
    if !one_prefix.starts_with(other_prefix) && !other_prefix.starts_with(one_prefix) {
        return false;
    }
    let (one, other) = (steps(one), steps(other));
    let width = other.len() + 1;
    let mut seen = vec![false; (one.len() + 1) * width];
    let mut open = vec![(0, 0)];
    while let Some((left, right)) = open.pop() {
        if (left, right) == (one.len(), other.len()) {
            return true;
        }
        if !std::mem::replace(&mut seen[left * width + right], true) {
            open.extend(skipped(&one, left).map(|left| (left, right)));
            open.extend(skipped(&other, right).map(|right| (left, right)));
            open.extend(taken(&one, left, &other, right));
        }
    }
    false
}

/// Where a template goes on if the step here takes nothing.
fn skipped(steps: &[Step], at: usize) -> impl Iterator<Item = usize> + use<> {
    let next = match steps.get(at) {
        Some(Step::Optional(_)) => Some(at + 2),
        Some(Step::Repeat(_)) => Some(at + 1),
        Some(Step::Byte(_)) | None => None,
    };
    next.into_iter()
}

/// Where both go on after a byte that both take.
fn taken(one: &[Step], left: usize, other: &[Step], right: usize) -> Option<(usize, usize)> {
    let (after_left, first) = take(*one.get(left)?, left);
    let (after_right, second) = take(*other.get(right)?, right);
    let common = match (first, second) {
        (Taken::Byte(byte), Taken::Byte(same)) => byte == same,
        (Taken::Byte(byte), Taken::Class(class)) | (Taken::Class(class), Taken::Byte(byte)) => {
            class.holds(byte)
        }
        // All hold letters.
        (Taken::Class(_), Taken::Class(_)) => true,
    };
    common.then_some((after_left, after_right))
}

enum Taken {
    Byte(u8),
    Class(Class),
}

fn take(step: Step, at: usize) -> (usize, Taken) {
    match step {
        Step::Byte(byte) | Step::Optional(byte) => (at + 1, Taken::Byte(byte)),
        Step::Repeat(class) => (at, Taken::Class(class)),
    }
}

fn steps(plan: &Plan) -> Vec<Step> {
    let mut steps = Vec::new();
    plan.body.atoms.iter().for_each(|atom| push(&mut steps, atom));
    if let Some(query) = &plan.query {
        steps.extend([Step::Optional(query.byte), Step::Repeat(Class::Any)]);
    }
    match &plan.fragment {
        Some(Fragment { optional: true, .. }) => {
            steps.extend([Step::Optional(b'#'), Step::Repeat(Class::Any)]);
        }
        Some(fragment) => fragment.region.atoms.iter().for_each(|atom| push(&mut steps, atom)),
        None => (),
    }
    steps
}

fn push(steps: &mut Vec<Step>, atom: &Atom) {
    match atom {
        Atom::Literal(text) => steps.extend(text.bytes().map(Step::Byte)),
        Atom::Text(capture) if capture.modifier == Modifier::Explode => steps.push(Step::Repeat(Class::Any)),
        Atom::Text(capture) => steps.push(Step::Repeat(capture.class)),
        Atom::Segment { byte, capture } => {
            steps.extend([Step::Optional(*byte), Step::Repeat(capture.class)]);
        }
        Atom::Segments { byte, .. } => steps.extend([Step::Optional(*byte), Step::Repeat(Class::Any)]),
        Atom::Parameters(_) => steps.extend([Step::Optional(b';'), Step::Repeat(Class::Any)]),
    }
}
