//! Scans one field, whose start and end are known.
//!
//! Atoms before the wide one are taken from the left, those after it from the right. The wide one takes the rest.

use super::bytes::ByteSet;
use super::plan::{Atom, Capture, Class, Field, Pairs};
use super::slots::Slots;
use super::steps::count;
use super::tail::Tail;
use crate::template::Modifier;
use crate::template::encoding::count_characters;

pub(super) fn scan_field(field: &Field, text: &str, slots: &mut Slots) -> Option<()> {
    let narrow = field.wide.unwrap_or(field.atoms.len());
    let mut rest = text;
    for (atom, openings) in field.atoms[..narrow].iter().zip(&field.openings) {
        rest = take_left(atom, *openings, rest, slots)?;
    }
    match field.atoms.get(narrow..) {
        Some([wide, right @ ..]) => take_wide(wide, take_right(right, rest, slots)?, slots),
        _ => rest.is_empty().then_some(()),
    }
}

/// Takes an atom's part from the start of the text, and returns the rest.
fn take_left<'u>(
    atom: &Atom,
    openings: ByteSet,
    rest: &'u str,
    slots: &mut Slots,
) -> Option<&'u str> {
    match atom {
        Atom::Text(capture) => {
            // The commas of a list are not of its items' class; `put` looks at the items.
            let class = if capture.modifier == Modifier::Explode {
                Class::Any
            } else {
                capture.class
            };
            let (value, rest) = split_value(rest, class, openings)?;
            put(capture, value, slots)?;
            Some(rest)
        }
        Atom::Segments { byte, captures } => take_segments(*byte, captures, openings, rest, slots),
        Atom::Parameters(pairs) => take_parameters(pairs, openings.with(b';'), rest, slots),
        Atom::List { .. } => unreachable!("a list of segments is wide"),
    }
}

fn take_segments<'u>(
    byte: u8,
    captures: &[Capture],
    openings: ByteSet,
    mut rest: &'u str,
    slots: &mut Slots,
) -> Option<&'u str> {
    for (index, capture) in captures.iter().enumerate() {
        let Some(text) = rest.strip_prefix(char::from(byte)) else {
            break;
        };
        let is_last = index + 1 == captures.len();
        let openings = if is_last {
            openings
        } else {
            openings.with(byte)
        };
        let (value, after) = split_value(text, capture.class, openings)?;
        slots.put_text(capture, value)?;
        rest = after;
    }
    Some(rest)
}

/// Takes parameters up to one whose name is not known.
fn take_parameters<'u>(
    pairs: &Pairs,
    openings: ByteSet,
    mut rest: &'u str,
    slots: &mut Slots,
) -> Option<&'u str> {
    while let Some((name, text)) = rest
        .strip_prefix(';')
        .and_then(|text| split_name(text, pairs, openings))
    {
        let (value, after) = match text.strip_prefix('=') {
            Some(text) => split_value(text, Class::Simple, openings)?,
            None => ("", text),
        };
        put_pair(pairs, name, value, slots)?;
        rest = after;
    }
    Some(rest)
}

/// Splits off the name that the text starts with, if the name is known.
fn split_name<'u>(text: &'u str, pairs: &Pairs, openings: ByteSet) -> Option<(&'u str, &'u str)> {
    // No further than the longest name, so that unknown names cost little.
    let end = text
        .bytes()
        .take(pairs.longest() + 1)
        .position(|byte| openings.contains(byte) || !Class::Simple.holds(byte))
        .unwrap_or(text.len());
    count(end.min(pairs.longest()));
    Some(text.split_at(end)).filter(|(name, _)| pairs.knows(name))
}

/// Splits off the value that the text starts with: it ends before the first byte that may follow it. `None` if a
/// byte comes first that the class forbids.
fn split_value(text: &str, class: Class, openings: ByteSet) -> Option<(&str, &str)> {
    let end = text
        .bytes()
        .position(|byte| openings.contains(byte) || !class.holds(byte))
        .unwrap_or(text.len());
    count(end);
    let fits = text
        .as_bytes()
        .get(end)
        .is_none_or(|byte| openings.contains(*byte));
    fits.then(|| text.split_at(end))
}

/// Takes the parts of atoms from the end of the text, and returns what is before them.
fn take_right<'u>(atoms: &[Atom], text: &'u str, slots: &mut Slots) -> Option<&'u str> {
    let mut tail = Tail::new(text);
    for atom in atoms.iter().rev() {
        match atom {
            Atom::Segments { byte, captures } => {
                let values: Vec<&str> = captures
                    .iter()
                    .map_while(|_| tail.take_segment(*byte))
                    .collect();
                captures
                    .iter()
                    .zip(values.iter().rev())
                    .try_for_each(|(capture, value)| slots.put_text(capture, value))?;
            }
            Atom::Parameters(pairs) => {
                while let Some((name, value)) = tail.take_pair(|name| pairs.knows(name)) {
                    put_pair(pairs, name, value, slots)?;
                }
            }
            Atom::Text(_) | Atom::List { .. } => {
                unreachable!("one is the first of its field, one is wide")
            }
        }
    }
    Some(tail.rest())
}

fn take_wide(atom: &Atom, text: &str, slots: &mut Slots) -> Option<()> {
    match atom {
        Atom::Text(capture) => put(capture, text, slots),
        Atom::List { byte, capture } => put_segments(*byte, capture, text, slots),
        Atom::Segments { .. } | Atom::Parameters(_) => unreachable!("neither is wide"),
    }
}

pub(super) fn put_pair(pairs: &Pairs, name: &str, value: &str, slots: &mut Slots) -> Option<()> {
    count(value.len());
    let capture = pairs.capture(name, count_characters(value))?;
    capture.class.holds_all(value).then_some(())?;
    match capture.modifier {
        Modifier::Explode => slots.put_item(capture, value),
        Modifier::None | Modifier::Prefix(_) => slots.put_text(capture, value),
    }
}

/// Puts a text that is of the variable's class, or a list.
fn put(capture: &Capture, value: &str, slots: &mut Slots) -> Option<()> {
    match capture.modifier {
        Modifier::None | Modifier::Prefix(_) => slots.put_text(capture, value),
        Modifier::Explode if value.is_empty() && capture.is_alone => {
            slots.put_list(capture, std::iter::empty())
        }
        Modifier::Explode => slots.put_list(capture, value.split(',')),
    }
}

fn put_segments(byte: u8, capture: &Capture, segments: &str, slots: &mut Slots) -> Option<()> {
    if segments.is_empty() {
        return Some(());
    }
    let items = segments
        .strip_prefix(char::from(byte))?
        .split(char::from(byte));
    slots.put_list(capture, items)
}
