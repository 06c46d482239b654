//! Scans a URI field by field, from both ends towards the pivot.
//!
//! Nothing is tried twice. The literal after a field, or the one before it, is looked for once and keeps its
//! place, and the text on its other side belongs to the field. So no byte is looked at more than a few times.

use super::field::{put_pair, scan_field};
use super::plan::{Fragment, Pairs, Plan, Query, Region};
use super::slots::Slots;
use super::steps::count;

pub(super) fn scan(plan: &Plan, uri: &str) -> Option<Slots> {
    let mut slots = Slots::new(plan.names.len());
    let (rest, fragment) = split_fragment(plan.fragment.as_ref(), uri)?;
    let (body, query) = split_query(plan.query.as_ref(), rest);
    // The query is first: an unknown name there is found soon, and a list there has to be whole before it is
    // compared with other mentions.
    if let Some((query, text)) = plan.query.as_ref().zip(query) {
        scan_query(&query.pairs, text, &mut slots)?;
    }
    scan_region(&plan.body, body, &mut slots)?;
    if let Some((plan, text)) = plan.fragment.as_ref().zip(fragment) {
        scan_region(&plan.region, text, &mut slots)?;
    }
    Some(slots)
}

fn split_fragment<'u>(plan: Option<&Fragment>, uri: &'u str) -> Option<(&'u str, Option<&'u str>)> {
    let Some(plan) = plan else {
        return Some((uri, None));
    };
    match position(uri, b'#', plan.number_signs) {
        Some(at) => Some((&uri[..at], Some(&uri[at..]))),
        None => plan.optional.then_some((uri, None)),
    }
}

/// Splits off the query, without the `?` or `&` that it starts with.
fn split_query<'u>(plan: Option<&Query>, uri: &'u str) -> (&'u str, Option<&'u str>) {
    let Some(plan) = plan else { return (uri, None) };
    match position(uri, plan.byte, plan.before) {
        Some(at) => (&uri[..at], Some(&uri[at + 1..])),
        None => (uri, None),
    }
}

/// Returns the place of a byte after so many others like it.
fn position(text: &str, byte: u8, before: usize) -> Option<usize> {
    count(text.len());
    let found = text.bytes().enumerate().filter(|(_, found)| *found == byte);
    found.map(|(at, _)| at).nth(before)
}

fn scan_query(pairs: &Pairs, text: &str, slots: &mut Slots) -> Option<()> {
    text.split('&').try_for_each(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        put_pair(pairs, name, value, slots)
    })
}

/// Finds the fields before the pivot from the left and those after it from the right.
fn scan_region(region: &Region, text: &str, slots: &mut Slots) -> Option<()> {
    let rest = text.strip_prefix(region.start.as_str())?;
    let Some(last) = region.fields.last() else {
        return rest.is_empty().then_some(());
    };
    // The last literal stands at the end, wherever else the same text may stand.
    let mut rest = split_at_end(rest, &last.end)?;
    let (left, right) = region.fields.split_at(region.pivot);
    for field in left {
        let (text, after) = split_at_first(rest, &field.end)?;
        scan_field(field, text, slots)?;
        rest = after;
    }
    for fields in right.windows(2).rev() {
        let (before, text) = split_at_last(rest, &fields[0].end)?;
        scan_field(&fields[1], text, slots)?;
        rest = before;
    }
    scan_field(&right[0], rest, slots)
}

fn split_at_end<'u>(text: &'u str, literal: &str) -> Option<&'u str> {
    text.strip_suffix(literal)
        .filter(|before| !is_in_triplet(text, before.len()))
}

fn split_at_first<'u>(text: &'u str, literal: &str) -> Option<(&'u str, &'u str)> {
    let mut from = 0;
    loop {
        let found = text[from..].find(literal);
        count(found.map_or(text.len() - from, |at| at + literal.len()));
        let at = from + found?;
        if !is_in_triplet(text, at) {
            return Some((&text[..at], &text[at + literal.len()..]));
        }
        from = at + 1;
    }
}

fn split_at_last<'u>(text: &'u str, literal: &str) -> Option<(&'u str, &'u str)> {
    let mut to = text.len();
    loop {
        let found = text[..to].rfind(literal);
        count(found.map_or(to, |at| to - at));
        let at = found?;
        if !is_in_triplet(text, at) {
            return Some((&text[..at], &text[at + literal.len()..]));
        }
        to = at + literal.len() - 1;
    }
}

/// Returns whether a place is behind the `%` of a triplet or its first digit, where no text of a template can begin.
fn is_in_triplet(normal: &str, at: usize) -> bool {
    normal.as_bytes()[at.saturating_sub(2)..at].contains(&b'%')
}
