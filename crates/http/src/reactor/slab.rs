//! Numbered places. A key holds the number and a generation, so that a late word for something that
//! is gone finds nothing.

/// Values by key; a key's highest bit is never set.
pub(super) struct Slab<T> {
    places: Vec<SlabSlot<T>>,
    free: Vec<u32>,
}

struct SlabSlot<T> {
    generation: u32,
    value: Option<T>,
}

/// One less than what marks keys of the epoll set that are neither connections nor ours.
const GENERATION_MAX: u32 = 0x7fff_fffe;

impl<T> Default for Slab<T> {
    fn default() -> Slab<T> {
        Slab {
            places: Vec::new(),
            free: Vec::new(),
        }
    }
}

impl<T> Slab<T> {
    /// Puts a value in; returns its key.
    pub(super) fn insert(&mut self, value: T) -> u64 {
        let index = self.free.pop().unwrap_or_else(|| {
            self.places.push(SlabSlot {
                generation: 0,
                value: None,
            });
            (self.places.len() - 1) as u32
        });
        let place = &mut self.places[index as usize];
        place.value = Some(value);
        u64::from(place.generation) << 32 | u64::from(index)
    }

    pub(super) fn get_mut(&mut self, key: u64) -> Option<&mut T> {
        let place = self.places.get_mut((key & 0xffff_ffff) as usize)?;
        if u64::from(place.generation) != key >> 32 {
            return None;
        }
        place.value.as_mut()
    }

    /// Every value there is.
    pub(super) fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.places
            .iter_mut()
            .filter_map(|place| place.value.as_mut())
    }

    /// Takes a value out; its key means nothing from now on.
    pub(super) fn remove(&mut self, key: u64) -> Option<T> {
        let place = self.places.get_mut((key & 0xffff_ffff) as usize)?;
        if u64::from(place.generation) != key >> 32 {
            return None;
        }
        let value = place.value.take()?;
        place.generation = if place.generation >= GENERATION_MAX {
            0
        } else {
            place.generation + 1
        };
        self.free.push((key & 0xffff_ffff) as u32);
        Some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_finds_its_value_and_nothing_after_it() {
        let mut slab = Slab::default();
        let first = slab.insert("first");
        let second = slab.insert("second");
        assert_eq!(slab.remove(first), Some("first"));
        assert_eq!(slab.remove(first), None);
        let third = slab.insert("third");
        assert_eq!(
            third & 0xffff_ffff,
            first & 0xffff_ffff,
            "the place is used again"
        );
        assert_eq!(slab.get_mut(first), None);
        assert_eq!(slab.get_mut(second), Some(&mut "second"));
        assert_eq!(slab.get_mut(third), Some(&mut "third"));
        assert_eq!(slab.get_mut(u64::MAX >> 1), None);
    }
}
