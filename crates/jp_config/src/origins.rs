use std::collections::BTreeMap;

use crate::{Key, Layer};

/// The layer that set each key.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Origins {
    layers: Vec<Layer>,
    /// The layer that last wrote each node, tables included.
    nodes: BTreeMap<Key, LayerIndex>,
    /// The older key of each node whose last layer used it.
    older: BTreeMap<Key, Key>,
}

/// The index of a layer in [`Origins::layers`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LayerIndex(usize);

impl Origins {
    /// Returns the layer that last wrote `key`, [`Layer::Default`] if none did.
    #[must_use]
    pub fn layer(&self, key: &Key) -> &Layer {
        self.nodes
            .get(key)
            .map_or(&Layer::Default, |index| self.at(*index))
    }

    /// Returns the name of `key` in the layer that last wrote it, which may be that of an older version.
    #[must_use]
    pub fn as_written<'k>(&'k self, key: &'k Key) -> &'k Key {
        self.older.get(key).unwrap_or(key)
    }

    /// Returns the layer that wrote `key` or its nearest written ancestor.
    pub(crate) fn covering_layer(&self, key: &Key) -> &Layer {
        self.covering_index(key)
            .map_or(&Layer::Default, |index| self.at(index))
    }

    /// Returns every layer that wrote `key` or a key below it, in the order of the layers.
    pub(crate) fn writers(&self, key: &Key) -> Vec<&Layer> {
        let mut indexes: Vec<_> = at_or_below(&self.nodes, key)
            .map(|(_, index)| *index)
            .collect();
        indexes.sort_unstable();
        indexes.dedup();
        indexes.into_iter().map(|index| self.at(index)).collect()
    }

    /// Returns the layers that wrote `key` or a key below it. If there are none, returns the layer of
    /// its nearest written ancestor.
    pub(crate) fn contributors(&self, key: &Key) -> Vec<&Layer> {
        let mut layers = self.writers(key);
        if layers.is_empty() {
            layers.extend(self.covering_index(key).map(|index| self.at(index)));
        }
        layers
    }

    /// Registers a layer; a registered one keeps its place.
    pub(crate) fn add(&mut self, layer: Layer) -> LayerIndex {
        let known = self.layers.iter().position(|known| *known == layer);
        LayerIndex(known.unwrap_or_else(|| {
            self.layers.push(layer);
            self.layers.len() - 1
        }))
    }

    pub(crate) fn mark(&mut self, key: Key, layer: LayerIndex) {
        self.older.remove(&key);
        self.nodes.insert(key, layer);
    }

    /// Records that `key` was last written as `older`.
    pub(crate) fn mark_older(&mut self, key: Key, older: Key) {
        self.older.insert(key, older);
    }

    pub(crate) fn forget(&mut self, key: &Key) {
        remove_at_or_below(&mut self.nodes, key);
    }

    /// Gives the first `length` elements of a list the list's origin if they have none.
    ///
    /// Otherwise an error about an earlier element would name the layer that appended later.
    pub(crate) fn pin_elements(&mut self, list: &Key, length: usize) {
        let Some(layer) = self.covering_index(list) else {
            return;
        };
        for index in 0..length {
            self.nodes
                .entry(list.child(index.to_string()))
                .or_insert(layer);
        }
    }

    fn covering_index(&self, key: &Key) -> Option<LayerIndex> {
        key.with_ancestors()
            .find_map(|key| self.nodes.get(&key).copied())
    }

    fn at(&self, index: LayerIndex) -> &Layer {
        &self.layers[index.0]
    }
}

/// Returns the entries of `map` for `key` and all keys below it. They are neighbours in its order.
fn at_or_below<'a, V>(
    map: &'a BTreeMap<Key, V>,
    key: &'a Key,
) -> impl Iterator<Item = (&'a Key, &'a V)> {
    map.range(key..)
        .take_while(|(node, _)| node.is_at_or_below(key))
}

/// Removes the entries of `map` for `key` and all keys below it.
pub(crate) fn remove_at_or_below<V>(map: &mut BTreeMap<Key, V>, key: &Key) {
    let nodes: Vec<Key> = at_or_below(map, key)
        .map(|(node, _)| node.clone())
        .collect();
    for node in nodes {
        map.remove(&node);
    }
}
