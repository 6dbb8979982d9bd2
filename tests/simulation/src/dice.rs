//! Chance that can be repeated: a draw is a function of the seed, of what it is for and of how
//! often that was asked before.

use std::collections::BTreeMap;
use std::sync::Mutex;

/// The source of all chance in one simulation.
#[derive(Debug)]
pub struct Dice {
    seed: u64,
    asked: Mutex<BTreeMap<u64, u64>>,
}

impl Dice {
    /// Dice of one seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { seed, asked: Mutex::default() }
    }

    /// The next draw for this purpose.
    pub fn draw(&self, purpose: &str) -> u64 {
        let key = hash(purpose);
        let mut asked = self.asked.lock().unwrap();
        let times = asked.entry(key).or_insert(0);
        *times += 1;
        mix(mix(self.seed ^ key).wrapping_add(*times))
    }

    /// A number in `low..=high`.
    pub fn between(&self, purpose: &str, low: i64, high: i64) -> i64 {
        let span = u64::try_from(high - low + 1).expect("low <= high");
        low + i64::try_from(self.draw(purpose) % span).expect("smaller than the span")
    }

    /// Whether something of this likelihood (per mille) happens.
    pub fn happens(&self, purpose: &str, per_mille: u64) -> bool {
        self.draw(purpose) % 1_000 < per_mille
    }
}

/// FNV-1a: stable over processes, unlike the standard library's hashes.
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// `SplitMix64` (Steele, Lea, Flood 2014).
fn mix(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
