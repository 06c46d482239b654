use std::collections::BTreeMap;

use crate::{Key, Layer};

/// Which layer set which key.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Origins {
    layers: Vec<Layer>,
    /// The layer that last wrote each node, tables included.
    nodes: BTreeMap<Key, LayerIndex>,
    /// The older key of each node that was last written by that.
    older: BTreeMap<Key, Key>,
}

/// A layer by its place in [`Origins::layers`].
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

    /// Returns the key under which `key` was last written: older versions had another name for some.
    #[must_use]
    pub fn as_written<'k>(&'k self, key: &'k Key) -> &'k Key {
        self.older.get(key).unwrap_or(key)
    }

    /// Returns the layer that wrote `key`, or what it is part of.
    pub(crate) fn covering(&self, key: &Key) -> &Layer {
        self.covering_index(key)
            .map_or(&Layer::Default, |index| self.at(index))
    }

    /// Returns every layer that wrote `key` or something below it, in the order they were added.
    pub(crate) fn writing(&self, key: &Key) -> Vec<&Layer> {
        let mut indexes: Vec<_> = at_or_below(&self.nodes, key)
            .map(|(_, index)| *index)
            .collect();
        indexes.sort_unstable();
        indexes.dedup();
        indexes.into_iter().map(|index| self.at(index)).collect()
    }

    /// Returns every layer that has a part in `key`, in the order they were added.
    pub(crate) fn contributing(&self, key: &Key) -> Vec<&Layer> {
        let mut layers = self.writing(key);
        if layers.is_empty() {
            layers.extend(self.covering_index(key).map(|index| self.at(index)));
        }
        layers
    }

    /// Makes a layer known; one that is known already keeps its place.
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

    /// Records for each of the first `length` elements of a list, where it has no origin of its own,
    /// the list's.
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

/// Returns what `map` holds for `key` and all below it, which its order keeps together.
fn at_or_below<'a, V>(
    map: &'a BTreeMap<Key, V>,
    key: &'a Key,
) -> impl Iterator<Item = (&'a Key, &'a V)> {
    map.range(key..)
        .take_while(|(node, _)| node.is_at_or_below(key))
}

/// Removes what `map` holds for `key` and all below it.
pub(crate) fn remove_at_or_below<V>(map: &mut BTreeMap<Key, V>, key: &Key) {
    let nodes: Vec<Key> = at_or_below(map, key)
        .map(|(node, _)| node.clone())
        .collect();
    for node in nodes {
        map.remove(&node);
    }
}
