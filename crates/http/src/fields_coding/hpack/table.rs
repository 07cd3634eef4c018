//! The dynamic table: entries in the order they came, the oldest thrown out for new ones
//! (RFC 7541 sections 2.3.2 and 4).

use std::collections::VecDeque;

use crate::fields_coding::ENTRY_BYTES;
use crate::fields_coding::hpack::TABLE_BYTES;

/// Entries and their texts, with something of the owner's beside each.
#[derive(Debug)]
pub(super) struct HpackDynamicTable<T> {
    /// Texts of all entries in their order, and before them those of some that were thrown out.
    texts: Vec<u8>,
    /// Newest first.
    entries: VecDeque<HpackDynamicEntry<T>>,
    /// What the entries count for together.
    size: usize,
    size_max: usize,
    /// How many entries were ever added.
    added: u32,
}

#[derive(Clone, Copy, Debug)]
struct HpackDynamicEntry<T> {
    start: u16,
    name_len: u16,
    value_len: u16,
    extra: T,
}

/// Texts are numbered with 16 bits.
const _: () = assert!(TABLE_BYTES * 2 <= u16::MAX as usize);

impl<T: Copy> HpackDynamicTable<T> {
    pub(super) fn new() -> HpackDynamicTable<T> {
        HpackDynamicTable {
            texts: Vec::new(),
            entries: VecDeque::new(),
            size: 0,
            size_max: TABLE_BYTES,
            added: 0,
        }
    }

    /// The entry of this index, 0 the newest.
    pub(super) fn entry(&self, index: usize) -> Option<(&[u8], &[u8], T)> {
        let entry = self.entries.get(index)?;
        let start = entry.start as usize;
        let middle = start + entry.name_len as usize;
        let name = self.texts.get(start..middle)?;
        let value = self.texts.get(middle..middle + entry.value_len as usize)?;
        Some((name, value, entry.extra))
    }

    /// Adds an entry. One that is larger than the table empties it, and that is all.
    //= rfc7541#4.4
    pub(super) fn add(&mut self, name: &[u8], value: &[u8], extra: T) -> bool {
        let text_len = name.len() + value.len();
        let size = text_len + ENTRY_BYTES;
        self.shrink_to(self.size_max.saturating_sub(size));
        if size > self.size_max {
            return false;
        }
        if self.texts.len() + text_len > TABLE_BYTES {
            self.close_up();
        }
        self.entries.push_front(HpackDynamicEntry {
            start: self.texts.len() as u16,
            name_len: name.len() as u16,
            value_len: value.len() as u16,
            extra,
        });
        self.texts.extend_from_slice(name);
        self.texts.extend_from_slice(value);
        self.size += size;
        self.added = self.added.wrapping_add(1);
        debug_assert!(self.size <= self.size_max);
        true
    }

    /// Throws out the oldest entries until those left count for at most `size`.
    fn shrink_to(&mut self, size: usize) {
        while self.size > size {
            let Some(entry) = self.entries.pop_back() else {
                return;
            };
            self.size -= entry.name_len as usize + entry.value_len as usize + ENTRY_BYTES;
        }
    }

    /// Forgets the texts of entries that were thrown out.
    fn close_up(&mut self) {
        let gone = match self.entries.back() {
            Some(oldest) => oldest.start,
            None => self.texts.len() as u16,
        };
        self.texts.drain(..gone as usize);
        for entry in &mut self.entries {
            entry.start -= gone;
        }
    }

    /// Sets how large the table may be; `size` is at most [`TABLE_BYTES`].
    //= rfc7541#4.3
    pub(super) fn set_size_max(&mut self, size: usize) {
        self.size_max = size.min(TABLE_BYTES);
        self.shrink_to(self.size_max);
    }

    pub(super) fn size_max(&self) -> usize {
        self.size_max
    }

    /// A number for the entry that is added next; see [`HpackDynamicTable::index_of`].
    pub(super) fn next_number(&self) -> u32 {
        self.added
    }

    /// The index of the entry that got this number, if it is still there.
    pub(super) fn index_of(&self, number: u32) -> Option<usize> {
        let age = self.added.wrapping_sub(number).wrapping_sub(1) as usize;
        (age < self.entries.len()).then_some(age)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(table: &HpackDynamicTable<()>) -> Vec<String> {
        (0..table.entries.len())
            .filter_map(|index| table.entry(index))
            .map(|(name, value, ())| String::from_utf8([name, value].concat()).unwrap())
            .collect()
    }

    #[test]
    fn oldest_entries_make_room() {
        let mut table = HpackDynamicTable::new();
        table.set_size_max(3 * (ENTRY_BYTES + 2));
        for name in [b"a", b"b", b"c"] {
            assert!(table.add(name, b"1", ()));
        }
        let number = table.next_number();
        assert!(table.add(b"d", b"1", ()));
        assert_eq!(names(&table), ["d1", "c1", "b1"]);
        assert_eq!(table.index_of(number), Some(0));
        assert_eq!(table.index_of(0), None);
        assert_eq!(table.index_of(1), Some(2));
        table.set_size_max(ENTRY_BYTES + 2);
        assert_eq!(names(&table), ["d1"]);
        assert_eq!(table.index_of(1), None);
    }

    //= rfc7541#4.4
    #[test]
    fn entry_larger_than_the_table_empties_it() {
        let mut table = HpackDynamicTable::new();
        table.set_size_max(100);
        assert!(table.add(b"a", b"1", ()));
        assert!(!table.add(b"b", &[b'x'; 68], ()));
        assert_eq!(names(&table), [""; 0]);
        assert!(table.add(b"b", &[b'x'; 67], ()));
        assert_eq!(table.entries.len(), 1);
    }

    #[test]
    fn texts_take_no_more_memory_than_the_table_may_have() {
        let mut table = HpackDynamicTable::new();
        for round in 0..10_000usize {
            let value = vec![b'v'; round % 500];
            assert!(table.add(b"name", &value, ()));
            assert!(table.texts.len() <= TABLE_BYTES);
            assert_eq!(table.entry(0), Some((&b"name"[..], &value[..], ())));
        }
        let last = table.entry(table.entries.len() - 1).unwrap();
        assert_eq!(last.0, b"name");
    }
}
