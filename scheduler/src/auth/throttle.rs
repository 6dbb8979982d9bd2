//! How often somebody may ask. Kept in each node's memory: several nodes let a caller ask as
//! many times more.

use governor::clock::{Clock, DefaultClock};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use std::num::NonZeroU32;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Keys remembered at most; those that come when there are more share one rate.
const KEYS_MAX: usize = 100_000;

/// Between two rounds of forgetting keys that may ask at full rate again, when there are too many.
const CLEAN_INTERVAL: Duration = Duration::from_secs(10);

/// Keyed bounds on a rate.
pub struct Throttle {
    limiter: DefaultKeyedRateLimiter<String>,
    clock: DefaultClock,
    cleaned_at: Mutex<Instant>,
}

impl Throttle {
    /// `burst` at once, then one each `every`.
    pub fn new(burst: u32, every: Duration) -> Self {
        let burst = NonZeroU32::new(burst).unwrap_or(NonZeroU32::MIN);
        let quota = Quota::with_period(every).unwrap_or(Quota::per_second(NonZeroU32::MIN)).allow_burst(burst);
        Self {
            limiter: RateLimiter::keyed(quota),
            clock: DefaultClock::default(),
            cleaned_at: Mutex::new(Instant::now()),
        }
    }

    /// Lets one pass, or says for how long none will.
    pub fn admit(&self, key: &str) -> Result<(), Duration> {
        // A key is an address or a name: long ones are cut, so that nobody fills the memory with them.
        let key: String = if self.is_full() { String::new() } else { key.chars().take(64).collect() };
        self.limiter.check_key(&key).map_err(|until| until.wait_time_from(self.clock.now()))
    }
}

impl Throttle {
    fn is_full(&self) -> bool {
        if self.limiter.len() < KEYS_MAX {
            return false;
        }
        let mut cleaned_at = self.cleaned_at.lock().unwrap_or_else(PoisonError::into_inner);
        if cleaned_at.elapsed() > CLEAN_INTERVAL {
            *cleaned_at = Instant::now();
            self.limiter.retain_recent();
        }
        self.limiter.len() >= KEYS_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_has_a_burst_of_its_own() {
        let throttle = Throttle::new(3, Duration::from_hours(1));
        for _ in 0..3 {
            assert_eq!(throttle.admit("a"), Ok(()));
        }
        assert!(throttle.admit("a").is_err_and(|wait| wait > Duration::from_mins(50)));
        assert_eq!(throttle.admit("b"), Ok(()));
    }
}
