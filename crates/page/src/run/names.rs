//! Names of a run's variables, and their places: one buffer and one table, so that a name costs no
//! allocation of its own and runs share nothing that they would have to count.

use std::hash::BuildHasher;
use std::ops::Range;

use foldhash::fast::RandomState;

/// Places at the start; as many names as half of them have room.
const PLACES_MIN: usize = 64;

/// Names in the order in which they came.
pub(super) struct NameTable {
    text: String,
    names: Vec<Range<u32>>,
    /// A power of two; 0 is free, else the index of a name and one.
    places: Vec<u32>,
    hasher: RandomState,
}

impl NameTable {
    pub(super) fn new() -> Self {
        Self {
            text: String::with_capacity(PLACES_MIN * 8),
            names: Vec::with_capacity(PLACES_MIN / 2),
            places: vec![0; PLACES_MIN],
            hasher: RandomState::default(),
        }
    }

    /// Forgets all names behind the first `count`, and keeps the memory.
    pub(super) fn truncate(&mut self, count: usize) {
        let end = self
            .names
            .get(count)
            .map_or(self.text.len(), |name| name.start as usize);
        self.text.truncate(end);
        self.names.truncate(count);
        self.places.fill(0);
        for index in 0..self.names.len() {
            let at = self.place(self.name(index));
            self.places[at] = u32::try_from(index + 1).unwrap_or_default();
        }
    }

    pub(super) fn byte_count(&self) -> usize {
        self.text.len()
    }

    pub(super) fn len(&self) -> usize {
        self.names.len()
    }

    pub(super) fn name(&self, index: usize) -> &str {
        let range = &self.names[index];
        &self.text[range.start as usize..range.end as usize]
    }

    pub(super) fn find(&self, name: &str) -> Option<usize> {
        match self.places[self.place(name)] {
            0 => None,
            taken => Some(taken as usize - 1),
        }
    }

    /// Where the name is, or would be.
    fn place(&self, name: &str) -> usize {
        let mask = self.places.len() - 1;
        let mut at = self.hasher.hash_one(name) as usize & mask;
        loop {
            let taken = self.places[at];
            if taken == 0 || self.name(taken as usize - 1) == name {
                return at;
            }
            at = (at + 1) & mask;
        }
    }

    /// Adds a name that is not there; `None` if the names would be longer than 4 GiB.
    pub(super) fn add(&mut self, name: &str) -> Option<usize> {
        if (self.names.len() + 1) * 2 > self.places.len() {
            self.places = vec![0; self.places.len() * 2];
            self.truncate(self.names.len());
        }
        let at = self.place(name);
        let start = u32::try_from(self.text.len()).ok()?;
        let end = u32::try_from(self.text.len() + name.len()).ok()?;
        let index = self.names.len();
        self.places[at] = u32::try_from(index + 1).ok()?;
        self.text.push_str(name);
        self.names.push(start..end);
        Some(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_found_where_it_was_put() {
        let mut table = NameTable::new();
        let names: Vec<String> = (0..1_000).map(|number| format!("name{number}")).collect();
        for (index, name) in names.iter().enumerate() {
            assert_eq!(table.find(name), None);
            assert_eq!(table.add(name), Some(index));
        }
        for (index, name) in names.iter().enumerate() {
            assert_eq!(
                (table.find(name), table.name(index)),
                (Some(index), &**name)
            );
        }
        assert_eq!((table.len(), table.find("other")), (1_000, None));
        table.truncate(2);
        assert_eq!((table.find("name1"), table.find("name2")), (Some(1), None));
        assert_eq!((table.add("other"), table.name(2)), (Some(2), "other"));
    }
}
