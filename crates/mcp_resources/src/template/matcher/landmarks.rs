//! Landmarks: literals whose place in every URI of a template is known.

use super::plan::{Class, Field, Plan};
use crate::template::Modifier;
use crate::template::encoding::is_reserved;

/// The place of a literal in the rest of a URI, without the literals found before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::template) enum Place {
    /// At the start.
    Start,
    /// At the first reserved character. Before it is the value of a simple variable.
    FirstReserved,
    /// At the end.
    End,
    /// Up to the last reserved character. After it is the value of a simple variable.
    LastReserved,
}

pub(in crate::template) type Landmark<'p> = (Place, &'p str);

/// Returns the landmarks in the order in which they are found: first from the start, then from the end.
pub(super) fn landmarks(plan: &Plan) -> Vec<Landmark<'_>> {
    let mut landmarks = vec![(Place::Start, plan.prefix())];
    if plan.scheme > 0 {
        let known = add_from_start(plan, &mut landmarks);
        if plan.query.is_none() && plan.fragment.is_none() {
            add_from_end(plan, known, &mut landmarks);
        }
    }
    landmarks.retain(|(_, literal)| !literal.is_empty());
    landmarks
}

/// Adds the landmarks that are found from the start, and returns how many fields they end.
fn add_from_start<'p>(plan: &'p Plan, landmarks: &mut Vec<Landmark<'p>>) -> usize {
    let known =
        plan.body.fields.iter().take_while(|field| {
            is_simple(field) && field.end.bytes().next().is_some_and(is_reserved)
        });
    let before = landmarks.len();
    landmarks.extend(known.map(|field| (Place::FirstReserved, field.end.as_str())));
    landmarks.len() - before
}

/// Adds the landmarks that are found from the end, behind the `known` fields.
fn add_from_end<'p>(plan: &'p Plan, known: usize, landmarks: &mut Vec<Landmark<'p>>) {
    let region = &plan.body;
    let Some(last) = region.fields[known..].last() else {
        return;
    };
    landmarks.push((Place::End, &last.end));
    let right = region.fields.get(region.pivot..).unwrap_or_default();
    for fields in right.windows(2).rev() {
        let literal = fields[0].end.as_str();
        if !is_simple(&fields[1]) || !literal.bytes().last().is_some_and(is_reserved) {
            return;
        }
        landmarks.push((Place::LastReserved, literal));
    }
}

/// Returns whether a field ends at the first reserved character.
fn is_simple(field: &Field) -> bool {
    field
        .lone_text()
        .is_some_and(|text| text.class == Class::Simple && text.modifier != Modifier::Explode)
}
