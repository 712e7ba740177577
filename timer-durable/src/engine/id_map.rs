//! A map by id.

use crate::TimeoutId;
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

/// Hashes an id, whose bits are well mixed already except for the time, or a hash of a key.
#[derive(Default)]
pub(super) struct IdHasher(u64);

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(5) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 ^= hash;
    }

    fn write_u128(&mut self, id: u128) {
        // Ids of one millisecond differ only in their lowest bits. Both halves of the product are
        // needed, since the map takes the place from the lowest bits of the hash and a check from
        // the highest ones.
        let mixed = ((id >> 64) as u64).rotate_left(32) ^ id as u64;
        let product = u128::from(mixed) * 0x9e37_79b9_7f4a_7c15;
        self.0 = (product >> 64) as u64 ^ product as u64;
    }
}

/// A map by id.
pub(super) type IdMap<V> = HashMap<TimeoutId, V, BuildHasherDefault<IdHasher>>;

/// A set of ids.
pub(super) type IdSet = HashSet<TimeoutId, BuildHasherDefault<IdHasher>>;

#[cfg(test)]
mod tests {
    use super::*;
    use std::hash::BuildHasher;

    #[test]
    fn ids_of_one_moment_have_different_hashes() {
        let hash = |_| BuildHasherDefault::<IdHasher>::default().hash_one(TimeoutId::new());
        let hashes: Vec<u64> = (0..1_024).map(hash).collect();
        for shift in [0, 57] {
            let mut places: Vec<u64> = hashes.iter().map(|hash| hash >> shift & 0x3ff).collect();
            places.sort_unstable();
            places.dedup();
            let most = if shift == 0 { 1_024 } else { 128 };
            assert!(places.len() > most / 2, "{} places of {most} from bit {shift}", places.len());
        }
    }
}
