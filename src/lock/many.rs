//! Several keys at once.
//!
//! [`Keys`] is the only way to ask for more than one, and it is always sorted and without duplicates: two
//! attempts that want the same keys meet them in the same order, so that they cannot wait for each other, and a
//! transfer from a wallet to itself does not wait for itself.
//!
//! [`ask`](super::LockSystem::ask) is all or nothing. A system whose server takes one key at a time asks for them
//! in this order and gives back what it got before it answers that one was refused.

use std::{ops::Index, sync::Arc};

use super::key::Key;

/// One or more keys, sorted, each once. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keys(Arc<[Key]>);

/// Nothing was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("at least one key must be asked for")]
pub struct NoKeys;

impl Keys {
    /// Sorts the keys and drops duplicates.
    ///
    /// # Errors
    /// [`NoKeys`] when there is none.
    pub fn new(keys: impl IntoIterator<Item = Key>) -> Result<Self, NoKeys> {
        let mut keys: Vec<Key> = keys.into_iter().collect();
        keys.sort_unstable();
        keys.dedup();
        if keys.is_empty() {
            return Err(NoKeys);
        }
        Ok(Self(keys.into()))
    }

    /// The keys in order.
    pub fn iter(&self) -> std::slice::Iter<'_, Key> {
        self.0.iter()
    }

    /// The first of them.
    pub fn first(&self) -> &Key {
        &self.0[0]
    }

    /// How many they are; never 0.
    pub fn count(&self) -> usize {
        self.0.len()
    }
}

impl Index<usize> for Keys {
    type Output = Key;

    fn index(&self, place: usize) -> &Key {
        &self.0[place]
    }
}

impl From<Key> for Keys {
    fn from(key: Key) -> Self {
        Self([key].into())
    }
}

impl<'a> IntoIterator for &'a Keys {
    type Item = &'a Key;
    type IntoIter = std::slice::Iter<'a, Key>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_sorted_and_each_is_there_once() {
        let keys = ["b", "a", "b"].map(|text| Key::parse(text).unwrap());
        let keys = Keys::new(keys).unwrap();
        assert_eq!(keys.iter().map(Key::as_str).collect::<Vec<_>>(), ["a", "b"]);
    }

    #[test]
    fn no_keys_are_refused() {
        assert_eq!(Keys::new([]), Err(NoKeys));
    }
}
