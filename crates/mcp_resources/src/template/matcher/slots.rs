//! The values that a scan has found so far.

use std::sync::Arc;

use super::plan::Capture;
use super::steps::count;
use super::{MAX_ITEMS, Match, Variable};
use crate::template::encoding::decode;
use crate::template::{Modifier, Value};

pub(super) struct Slots {
    found: Vec<Option<FoundValue>>,
    /// The number of values; each item of a list counts.
    count: usize,
}

struct FoundValue {
    value: Value,
    raw: Value,
    /// The value has only this many characters of the variable's, from its start.
    prefix: Option<usize>,
}

impl Slots {
    pub(super) fn new(variables: usize) -> Self {
        Self {
            found: std::iter::repeat_with(|| None).take(variables).collect(),
            count: 0,
        }
    }

    /// Records a text; `None` if it is too long for its prefix, not UTF-8, or not what an earlier mention of the
    /// variable says.
    pub(super) fn put_text(&mut self, capture: &Capture, raw: &str) -> Option<()> {
        self.count()?;
        count(raw.len());
        let text = decode(raw)?;
        let prefix = match capture.modifier {
            Modifier::Prefix(length) if text.chars().nth(length).is_some() => return None,
            Modifier::Prefix(length) => Some(length),
            Modifier::None | Modifier::Explode => None,
        };
        self.put(
            capture,
            FoundValue {
                value: Value::Text(text),
                raw: Value::from(raw),
                prefix,
            },
        )
    }

    /// Records a whole list; `None` if an item is not of the variable's class.
    pub(super) fn put_list<'u>(
        &mut self,
        capture: &Capture,
        items: impl Iterator<Item = &'u str>,
    ) -> Option<()> {
        let mut value = Vec::new();
        let mut raw = Vec::new();
        for item in items {
            self.count()?;
            capture.class.holds_all(item).then_some(())?;
            count(item.len());
            value.push(decode(item)?);
            raw.push(item.to_owned());
        }
        self.put(
            capture,
            FoundValue {
                value: Value::List(value),
                raw: Value::List(raw),
                prefix: None,
            },
        )
    }

    /// Adds an item to a list whose items don't stand together.
    pub(super) fn put_item(&mut self, capture: &Capture, item: &str) -> Option<()> {
        self.count()?;
        count(item.len());
        match self.found[capture.variable].get_or_insert_with(FoundValue::empty_list) {
            FoundValue {
                value: Value::List(value),
                raw: Value::List(raw),
                ..
            } => {
                value.push(decode(item)?);
                raw.push(item.to_owned());
                Some(())
            }
            _ => None,
        }
    }

    pub(super) fn into_match(self, names: &[Arc<str>]) -> Match {
        let variables = names.iter().zip(self.found);
        let variables = variables.filter_map(|(name, found)| {
            found.map(|found| Variable {
                name: name.clone(),
                value: found.value,
                raw: found.raw,
            })
        });
        Match {
            variables: variables.collect(),
        }
    }

    fn put(&mut self, capture: &Capture, found: FoundValue) -> Option<()> {
        let slot = &mut self.found[capture.variable];
        match slot {
            Some(before) if !before.agrees(&found) => None,
            Some(before) if before.is_as_full(&found) => Some(()),
            _ => {
                *slot = Some(found);
                Some(())
            }
        }
    }

    fn count(&mut self) -> Option<()> {
        self.count += 1;
        (self.count <= MAX_ITEMS).then_some(())
    }
}

impl FoundValue {
    fn empty_list() -> Self {
        Self {
            value: Value::List(Vec::new()),
            raw: Value::List(Vec::new()),
            prefix: None,
        }
    }

    /// Returns whether both may be the same value.
    fn agrees(&self, other: &Self) -> bool {
        count(other.length());
        match (&self.value, &other.value) {
            (Value::Text(one), Value::Text(two)) => match (self.prefix, other.prefix) {
                (None, None) => one == two,
                (one_prefix, two_prefix) => {
                    let length = one_prefix
                        .into_iter()
                        .chain(two_prefix)
                        .min()
                        .unwrap_or(usize::MAX);
                    one.chars().take(length).eq(two.chars().take(length))
                }
            },
            (one, two) => one == two,
        }
    }

    /// Returns the length in bytes in the URI.
    fn length(&self) -> usize {
        match &self.raw {
            Value::Text(text) => text.len(),
            Value::List(items) => items.iter().map(String::len).sum(),
            Value::Map(_) => 0,
        }
    }

    fn is_as_full(&self, other: &Self) -> bool {
        self.prefix.unwrap_or(usize::MAX) >= other.prefix.unwrap_or(usize::MAX)
    }
}
