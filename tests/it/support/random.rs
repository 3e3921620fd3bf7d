//! Random choices that can be made again: each test prints its seed, and `SMP_TEST_SEED` sets it.

use std::env;
use std::time::{SystemTime, UNIX_EPOCH};

/// A generator (SplitMix64): the same choices for the same seed.
pub struct Random(u64);

impl Random {
    /// From this seed.
    pub fn new(seed: u64) -> Self {
        Random(seed)
    }

    /// The next number below `limit`, which is not 0.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % limit
    }

    /// The next index of something with `length` elements, at least one.
    pub fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).expect("an index")
    }
}

/// The seed for `test`: from the environment, else from the clock. Printed, so that a failure can be had again.
pub fn seed(test: &str) -> u64 {
    let seed = match env::var("SMP_TEST_SEED") {
        Ok(seed) => seed.parse().expect("SMP_TEST_SEED is a number"),
        Err(_) => SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_nanos() as u64),
    };
    println!("{test}: SMP_TEST_SEED={seed}");
    seed
}
