//! Numbers that look random and are always the same.

/// `SplitMix64`'s finaliser (Steele, Lea, Flood 2014): neighbouring seeds land far apart.
#[must_use]
pub fn stable_random(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
