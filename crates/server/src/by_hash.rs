//! Tables whose keys are hashes already, which are not hashed once more.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A table of such keys: nobody outside may be able to choose them.
pub(crate) type ByHash<K, V> = HashMap<K, V, BuildHasherDefault<HashedHasher>>;

/// The hash of a key that is one.
#[derive(Default)]
pub(crate) struct HashedHasher(u64);

impl Hasher for HashedHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes
            .iter()
            .for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = self.0.rotate_left(8) ^ number;
    }
}
