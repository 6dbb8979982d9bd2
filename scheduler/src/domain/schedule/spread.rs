//! Spread and jitter: drawn by hash, so that they are the same on every node and after every restart.

/// What a schedule with this seed is shifted by, 0..`spread_ms` (0 if that is 0), in milliseconds.
pub(super) fn offset(seed: i64, spread_ms: i64) -> i64 {
    below(mix(seed.cast_unsigned()), spread_ms.max(0).cast_unsigned())
}

/// By how much a fire is delayed, 0..=`jitter_ms`, in milliseconds.
pub(super) fn jitter(seed: i64, fire_time: i64, jitter_ms: i64) -> i64 {
    if jitter_ms <= 0 {
        return 0;
    }
    // Mixed twice, so that seeds and fire times that are close to each other do not meet.
    let hash = mix(mix(seed.cast_unsigned()) ^ fire_time.cast_unsigned());
    below(hash, jitter_ms.cast_unsigned().saturating_add(1))
}

/// The place of `hash` in 0..`end`, evenly; 0 if that is empty.
fn below(hash: u64, end: u64) -> i64 {
    let place = (u128::from(hash) * u128::from(end)) >> 64;
    place as i64
}

/// The finaliser of `SplitMix64`: every bit of the result depends on every bit of `value`.
fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tasks must not move when the program is updated.
    #[test]
    fn the_draw_never_changes() {
        assert_eq!(mix(0), 0xe220_a839_7b1d_cdaf); // the first number of SplitMix64 from 0
        let offsets = [1, 2, 3, i64::MAX, -1].map(|seed| offset(seed, 3_600_000));
        assert_eq!(offsets, [2_039_621, 2_128_283, 408_421, 596_329, 3_218_194]);
        let delays = [0, 1_000, 60_000].map(|fire| jitter(7, fire, 30_000));
        assert_eq!(delays, [21_645, 11_036, 7_131]);
    }

    #[test]
    fn nothing_to_draw_from_is_nothing() {
        for none in [0, -1, i64::MIN] {
            assert_eq!((offset(5, none), jitter(5, 5, none)), (0, 0));
        }
        assert_eq!(offset(5, 1), 0);
        assert!(jitter(5, 5, i64::MAX) >= 0 && offset(5, i64::MAX) >= 0);
    }
}
