//! The table of opens.
//!
//! The number of a slot includes a generation, so that the number of a closed open never refers to
//! a later open. The table has several shards, each with its own lock, which is held for one
//! lookup, insertion or removal.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Number of shards: enough that the workers of a large machine rarely contend.
const SHARDS: usize = 16;
/// Number of bits of a slot number that select the shard.
const SHARD_BITS: u32 = SHARDS.trailing_zeros();
/// Number of bits of a slot number that select the position, including the shard.
const PLACE_BITS: u32 = 32;

/// Values by slot number.
#[derive(Debug)]
pub(crate) struct Table<T> {
    shards: [Mutex<Shard<T>>; SHARDS],
    turn: AtomicUsize,
}

#[derive(Debug)]
struct Shard<T> {
    places: Vec<Place<T>>,
    free: Vec<u32>,
}

#[derive(Debug)]
struct Place<T> {
    generation: u32,
    value: Option<Arc<T>>,
}

impl<T> Table<T> {
    /// An empty table.
    pub(crate) fn new() -> Self {
        let shard = |_| {
            Mutex::new(Shard {
                places: Vec::new(),
                free: Vec::new(),
            })
        };
        Self {
            shards: std::array::from_fn(shard),
            turn: AtomicUsize::new(0),
        }
    }

    /// Inserts a value and returns its number.
    pub(crate) fn insert(&self, value: Arc<T>) -> u64 {
        let shard = self.turn.fetch_add(1, Ordering::Relaxed) % SHARDS;
        let (index, generation) = self.lock(shard).insert(value);
        let place = u64::from(index) << SHARD_BITS | shard as u64;
        assert!(place >> PLACE_BITS == 0, "more opens than slot numbers");
        u64::from(generation) << PLACE_BITS | place
    }

    /// The value with this number; `None` after its removal.
    pub(crate) fn find(&self, slot: u64) -> Option<Arc<T>> {
        let (shard, index, generation) = parts(slot);
        let shard = self.lock(shard);
        let place = shard.places.get(index)?;
        if place.generation != generation {
            return None;
        }
        place.value.clone()
    }

    /// Removes a value and returns it; `None` if it is not in the table.
    pub(crate) fn remove(&self, slot: u64) -> Option<Arc<T>> {
        let (shard, index, generation) = parts(slot);
        self.lock(shard).remove(index, generation)
    }

    /// Number of values.
    pub(crate) fn len(&self) -> usize {
        let count = |shard: &Shard<T>| shard.places.iter().filter(|p| p.value.is_some()).count();
        (0..SHARDS).map(|shard| count(&self.lock(shard))).sum()
    }

    fn lock(&self, shard: usize) -> MutexGuard<'_, Shard<T>> {
        self.shards[shard]
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Shard<T> {
    fn insert(&mut self, value: Arc<T>) -> (u32, u32) {
        let index = self.free.pop().unwrap_or_else(|| {
            self.places.push(Place {
                generation: 0,
                value: None,
            });
            u32::try_from(self.places.len() - 1).expect("a shard holds fewer than 2^32 opens")
        });
        let place = &mut self.places[index as usize];
        assert!(place.value.is_none(), "a free place is empty");
        place.value = Some(value);
        (index, place.generation)
    }

    fn remove(&mut self, index: usize, generation: u32) -> Option<Arc<T>> {
        let place = self.places.get_mut(index)?;
        if place.generation != generation {
            return None;
        }
        let value = place.value.take()?;
        place.generation = place.generation.wrapping_add(1);
        // A position with exhausted generations is never used again, so that numbers stay unique.
        if place.generation != 0 {
            self.free.push(index as u32);
        }
        Some(value)
    }
}

/// Shard, position within it and generation of a slot number.
fn parts(slot: u64) -> (usize, usize, u32) {
    let place = slot & ((1 << PLACE_BITS) - 1);
    let shard = (place as usize) % SHARDS;
    (
        shard,
        (place >> SHARD_BITS) as usize,
        (slot >> PLACE_BITS) as u32,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stale_number_never_finds_anothers_value() {
        let table = Table::new();
        let first: Vec<u64> = (0..64).map(|n| table.insert(Arc::new(n))).collect();
        for slot in &first {
            assert!(table.remove(*slot).is_some());
        }
        let second: Vec<u64> = (100..164).map(|n| table.insert(Arc::new(n))).collect();
        for slot in &first {
            assert_eq!(table.find(*slot), None);
            assert_eq!(table.remove(*slot), None);
        }
        for (n, slot) in (100..164).zip(&second) {
            assert_eq!(table.find(*slot), Some(Arc::new(n)));
        }
        assert_eq!(table.len(), 64);
    }

    #[test]
    fn a_number_is_removed_once() {
        let table = Table::new();
        let slot = table.insert(Arc::new(()));
        assert!(table.remove(slot).is_some());
        assert!(table.remove(slot).is_none());
        assert_eq!(table.len(), 0);
    }

    #[test]
    fn a_place_with_no_generation_left_is_given_up() {
        let mut shard = Shard {
            places: Vec::new(),
            free: Vec::new(),
        };
        shard.insert(Arc::new(1));
        shard.places[0].generation = u32::MAX;
        assert!(shard.remove(0, u32::MAX).is_some());
        assert_eq!(shard.insert(Arc::new(2)), (1, 0));
    }

    #[test]
    fn a_made_up_number_finds_nothing() {
        let table: Table<()> = Table::new();
        assert_eq!(table.find(u64::MAX), None);
        assert_eq!(table.remove(0), None);
    }
}
