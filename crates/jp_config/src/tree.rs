//! The merged layers before they are typed.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::origins::{LayerIndex, remove_at_or_below};
use crate::{Key, Origins};

/// The merged layers, with the origins and original texts of their values.
#[derive(Debug, Clone)]
pub(crate) struct Tree {
    pub(crate) root: Value,
    pub(crate) origins: Origins,
    /// The original text of each value that was guessed from one, in case its key takes a string.
    pub(crate) texts: BTreeMap<Key, String>,
}

impl Default for Tree {
    fn default() -> Self {
        Self {
            root: Value::Object(Map::new()),
            origins: Origins::default(),
            texts: BTreeMap::new(),
        }
    }
}

impl Tree {
    /// Merges a layer into the tree. Tables are merged, other values replaced; `null` removes a value.
    pub(crate) fn merge(&mut self, layer: LayerIndex, value: Value) {
        let mut root = std::mem::take(&mut self.root);
        self.merge_at(&mut root, value, Key::root(), layer);
        self.root = root;
    }

    fn merge_at(&mut self, into: &mut Value, value: Value, key: Key, layer: LayerIndex) {
        match value {
            Value::Object(table) => {
                let into = self.as_table(into, &key);
                self.merge_table(into, table, &key, layer);
            }
            value => {
                self.forget(into, &key);
                *into = value;
            }
        }
        self.origins.mark(key, layer);
    }

    fn merge_table(
        &mut self,
        into: &mut Map<String, Value>,
        table: Map<String, Value>,
        key: &Key,
        layer: LayerIndex,
    ) {
        for (name, value) in table {
            let child = key.child(name.as_str());
            if !value.is_null() {
                self.merge_at(into.entry(name).or_insert(Value::Null), value, child, layer);
            } else if let Some(removed) = into.shift_remove(&name) {
                self.forget(&removed, &child);
            }
        }
    }

    /// Returns the table at `into`; replaces any other value with an empty table.
    fn as_table<'a>(&mut self, into: &'a mut Value, key: &Key) -> &'a mut Map<String, Value> {
        if !into.is_object() {
            self.forget(into, key);
            *into = Value::Object(Map::new());
        }
        into.as_object_mut()
            .expect("anything else was just replaced by a table")
    }

    /// Removes the origins and texts of the value at `key`, which is about to be removed.
    fn forget(&mut self, value: &Value, key: &Key) {
        if !value.is_null() {
            self.origins.forget(key);
            remove_at_or_below(&mut self.texts, key);
        }
    }

    /// Appends to the list at `key`; makes it if there is no value. Returns `None` if the value isn't
    /// a list.
    pub(crate) fn append(
        &mut self,
        layer: LayerIndex,
        key: &Key,
        addition: Addition,
    ) -> Option<()> {
        if at(&self.root, key).is_none() {
            self.merge(layer, nest(key, Value::Array(Vec::new())));
        }
        let list = at_mut(&mut self.root, key)?.as_array_mut()?;
        self.origins.pin_elements(key, list.len());
        self.origins.mark(key.clone(), layer);
        if let Some(text) = addition.text {
            self.texts.insert(key.child(list.len().to_string()), text);
        }
        list.extend(addition.values);
        Some(())
    }
}

/// Values to append to a list.
pub(crate) struct Addition {
    pub(crate) values: Vec<Value>,
    /// The original text of a single value that was guessed from one.
    pub(crate) text: Option<String>,
}

/// Wraps `value` into the tables that `key` names.
pub(crate) fn nest(key: &Key, value: Value) -> Value {
    key.parts().rev().fold(value, |value, part| {
        Value::Object(Map::from_iter([(part.to_owned(), value)]))
    })
}

/// Returns the value at `key`.
pub(crate) fn at<'a>(root: &'a Value, key: &Key) -> Option<&'a Value> {
    key.parts().try_fold(root, |value, part| match value {
        Value::Array(list) => list.get(part.parse::<usize>().ok()?),
        value => value.get(part),
    })
}

/// Returns the value at `key`, to be changed.
pub(crate) fn at_mut<'a>(root: &'a mut Value, key: &Key) -> Option<&'a mut Value> {
    key.parts().try_fold(root, |value, part| match value {
        Value::Array(list) => list.get_mut(part.parse::<usize>().ok()?),
        value => value.get_mut(part),
    })
}
