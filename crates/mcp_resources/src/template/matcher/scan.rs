//! The scan of a URI, from both ends towards the pivot.
//!
//! Nothing is tried twice: each step takes its part of the URI for good, or there is no match. A step looks for a
//! literal or a byte in what is left, so the whole costs at most the URI's length for each variable.

use super::plan::{Atom, Capture, Class, Fragment, Pairs, Plan, Query, Region};
use super::slots::Slots;
use crate::template::Modifier;

pub(super) fn scan(plan: &Plan, uri: &str) -> Option<Slots> {
    let mut slots = Slots::new(plan.names.len());
    let (rest, fragment) = split_fragment(plan.fragment.as_ref(), uri)?;
    let (body, query) = split_query(plan.query.as_ref(), rest);
    scan_region(&plan.body, body, &mut slots)?;
    if let Some((query, text)) = plan.query.as_ref().zip(query) {
        scan_query(&query.pairs, text, &mut slots)?;
    }
    if let Some((plan, text)) = plan.fragment.as_ref().zip(fragment) {
        scan_region(&plan.region, text, &mut slots)?;
    }
    Some(slots)
}

fn split_fragment<'u>(plan: Option<&Fragment>, uri: &'u str) -> Option<(&'u str, Option<&'u str>)> {
    let Some(plan) = plan else { return Some((uri, None)) };
    match position(uri, b'#', plan.number_signs) {
        Some(at) => Some((&uri[..at], Some(&uri[at..]))),
        None => plan.optional.then_some((uri, None)),
    }
}

/// The query without the `?` or `&` that it starts with.
fn split_query<'u>(plan: Option<&Query>, uri: &'u str) -> (&'u str, Option<&'u str>) {
    let Some(plan) = plan else { return (uri, None) };
    match position(uri, plan.byte, plan.before) {
        Some(at) => (&uri[..at], Some(&uri[at + 1..])),
        None => (uri, None),
    }
}

/// Where a byte stands after so many others like it.
fn position(text: &str, byte: u8, before: usize) -> Option<usize> {
    let found = text.bytes().enumerate().filter(|(_, found)| *found == byte);
    found.map(|(at, _)| at).nth(before)
}

fn scan_query(pairs: &Pairs, text: &str, slots: &mut Slots) -> Option<()> {
    text.split('&').try_for_each(|pair| scan_pair(pairs, pair, slots))
}

fn scan_pair(pairs: &Pairs, pair: &str, slots: &mut Slots) -> Option<()> {
    let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
    let capture = pairs.capture(name).filter(|capture| capture.class.holds_all(value))?;
    match capture.modifier {
        Modifier::Explode => slots.put_item(capture, value),
        Modifier::None | Modifier::Prefix(_) => slots.put_text(capture, value),
    }
}

fn scan_region(region: &Region, text: &str, slots: &mut Slots) -> Option<()> {
    let (atoms, rest) = without_end(&region.atoms, text)?;
    let Some(pivot) = region.pivot else { return rest.is_empty().then_some(()) };
    let mut rest = rest;
    for index in 0..pivot {
        rest = take_left(&atoms[index], &atoms[index + 1..], rest, slots)?;
    }
    for index in (pivot + 1..atoms.len()).rev() {
        rest = take_right(&atoms[index], &atoms[index - 1], rest, slots)?;
    }
    take_all(&atoms[pivot], rest, slots)
}

/// Takes the literal at the end, if there is one: its place is sure, wherever else the same text may stand.
fn without_end<'a, 'u>(atoms: &'a [Atom], text: &'u str) -> Option<(&'a [Atom], &'u str)> {
    match atoms.split_last() {
        Some((Atom::Literal(end), atoms)) => Some((atoms, text.strip_suffix(end.as_str())?)),
        _ => Some((atoms, text)),
    }
}

/// Takes an atom's part from the start of the text and gives the rest.
fn take_left<'u>(atom: &Atom, following: &[Atom], rest: &'u str, slots: &mut Slots) -> Option<&'u str> {
    match atom {
        Atom::Literal(text) => rest.strip_prefix(text.as_str()),
        Atom::Text(capture) => {
            // The commas of a list are not of its items' class; `put` looks at the items.
            let class = if capture.modifier == Modifier::Explode { Class::Any } else { capture.class };
            let (value, rest) = rest.split_at(value_end(rest, class, None, following)?);
            put(capture, value, slots)?;
            Some(rest)
        }
        Atom::Segment { byte, capture } => match after_byte(rest, *byte, following) {
            Some(text) => {
                let (value, rest) = text.split_at(value_end(text, capture.class, None, following)?);
                slots.put_text(capture, value)?;
                Some(rest)
            }
            None => Some(rest),
        },
        Atom::Segments { byte, capture } => {
            let (segments, rest) = rest.split_at(value_end(rest, Class::Any, None, following)?);
            put_segments(*byte, capture, segments, slots)?;
            Some(rest)
        }
        Atom::Parameters(pairs) => take_parameters(pairs, following, rest, slots),
    }
}

/// What follows the byte that an optional value starts with; nothing if the template's own text stands there.
fn after_byte<'u>(rest: &'u str, byte: u8, following: &[Atom]) -> Option<&'u str> {
    let literal = following.first().and_then(Atom::as_literal);
    let is_literal = literal.is_some_and(|text| rest.starts_with(text));
    rest.strip_prefix(char::from(byte)).filter(|_| !is_literal)
}

fn take_parameters<'u>(
    pairs: &Pairs,
    following: &[Atom],
    mut rest: &'u str,
    slots: &mut Slots,
) -> Option<&'u str> {
    while let Some(text) = after_byte(rest, b';', following) {
        let (pair, after) = text.split_at(value_end(text, Class::Parameter, Some(b';'), following)?);
        scan_pair(pairs, pair, slots)?;
        rest = after;
    }
    Some(rest)
}

/// Where a value ends that is scanned from the left: at the first place where the next literal or an optional
/// atom before it may start. Nothing if the literal is missing or the class forbids what stands before.
fn value_end(rest: &str, class: Class, own: Option<u8>, following: &[Atom]) -> Option<usize> {
    let optional = following.iter().map_while(Atom::opening);
    let openings: Vec<u8> = optional.chain(own).collect();
    let literal = following.iter().find_map(Atom::as_literal);
    let limit = literal.map_or(Some(rest.len()), |text| rest.find(text))?;
    let opens = |byte: u8| openings.contains(&byte) || !class.holds(byte);
    let end = rest[..limit].bytes().position(opens).unwrap_or(limit);
    (end == limit || openings.contains(&rest.as_bytes()[end])).then_some(end)
}

/// Takes an atom's part from the end of the text and gives what is before.
fn take_right<'u>(atom: &Atom, before: &Atom, rest: &'u str, slots: &mut Slots) -> Option<&'u str> {
    match atom {
        Atom::Literal(text) => rest.strip_suffix(text.as_str()),
        Atom::Text(capture) => {
            let literal = before.as_literal()?;
            let (rest, value) = rest.split_at(rest.rfind(literal)? + literal.len());
            put(capture, value, slots)?;
            Some(rest)
        }
        Atom::Segment { byte, capture } => match before_byte(rest, *byte, before) {
            Some((rest, value)) if capture.class.holds_all(value) => {
                slots.put_text(capture, value)?;
                Some(rest)
            }
            _ => Some(rest),
        },
        Atom::Parameters(pairs) => take_parameters_right(pairs, before, rest, slots),
        Atom::Segments { .. } => unreachable!("the pivot is the last atom that may hold separators"),
    }
}

fn before_byte<'u>(rest: &'u str, byte: u8, before: &Atom) -> Option<(&'u str, &'u str)> {
    let is_literal = before.as_literal().is_some_and(|text| rest.ends_with(text));
    rest.rsplit_once(char::from(byte)).filter(|_| !is_literal)
}

fn take_parameters_right<'u>(
    pairs: &Pairs,
    before: &Atom,
    mut rest: &'u str,
    slots: &mut Slots,
) -> Option<&'u str> {
    while let Some((text, pair)) = before_byte(rest, b';', before) {
        let name = pair.split_once('=').map_or(pair, |(name, _)| name);
        if pairs.capture(name).is_none() {
            break;
        }
        scan_pair(pairs, pair, slots)?;
        rest = text;
    }
    Some(rest)
}

/// The pivot takes what is left.
fn take_all(atom: &Atom, rest: &str, slots: &mut Slots) -> Option<()> {
    match atom {
        Atom::Literal(_) => unreachable!("the pivot is a variable"),
        Atom::Text(capture) => put(capture, rest, slots),
        Atom::Segment { .. } | Atom::Segments { .. } if rest.is_empty() => Some(()),
        Atom::Segment { byte, capture } => {
            let value = rest.strip_prefix(char::from(*byte))?;
            capture.class.holds_all(value).then_some(())?;
            slots.put_text(capture, value)
        }
        Atom::Segments { byte, capture } => put_segments(*byte, capture, rest, slots),
        Atom::Parameters(pairs) => take_parameters(pairs, &[], rest, slots)?.is_empty().then_some(()),
    }
}

fn put(capture: &Capture, value: &str, slots: &mut Slots) -> Option<()> {
    if capture.modifier != Modifier::Explode {
        capture.class.holds_all(value).then_some(())?;
        return slots.put_text(capture, value);
    }
    if value.is_empty() {
        return slots.put_list(capture, std::iter::empty());
    }
    value.split(',').all(|item| capture.class.holds_all(item)).then_some(())?;
    slots.put_list(capture, value.split(','))
}

fn put_segments(byte: u8, capture: &Capture, segments: &str, slots: &mut Slots) -> Option<()> {
    if segments.is_empty() {
        return Some(());
    }
    let items = || segments.split(char::from(byte)).skip(1);
    let fits = segments.starts_with(char::from(byte)) && items().all(|item| capture.class.holds_all(item));
    fits.then_some(())?;
    slots.put_list(capture, items())
}
