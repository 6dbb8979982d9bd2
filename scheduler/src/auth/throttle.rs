//! Rate limits of callers. Kept in each node's memory: with several nodes a caller gets the rate of
//! each.

use std::borrow::Cow;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Keys remembered at most; new ones that come when there are more share one rate.
const KEYS_MAX: usize = 100_000;

/// Longest key, characters: a key is an address or a name, and long ones must not fill the memory.
const KEY_CHARS_MAX: usize = 128;

/// Interval between two rounds of forgetting keys that have their full rate again, when there are too many.
const CLEAN_INTERVAL: Duration = Duration::from_secs(10);

/// Bits of an IPv6 address that identify its network: within one, a host can take any address.
const NETWORK_BITS: u32 = 64;

/// A bound on how often something may be done.
#[derive(Debug, Clone, Copy)]
pub struct Rate {
    every: Duration,
    span: Duration,
}

impl Rate {
    /// `burst` at once, then one each `every`.
    pub fn new(burst: u32, every: Duration) -> Self {
        Self { every, span: every * burst.max(1) }
    }
}

/// How much of a rate is used: when all of it will be free again.
#[derive(Debug, Clone, Copy)]
pub struct Meter(Instant);

impl Meter {
    /// Nothing is used.
    pub fn new(now: Instant) -> Self {
        Self(now)
    }

    /// Lets one pass, or says for how long none will.
    pub fn admit(&mut self, rate: &Rate, now: Instant) -> Result<(), Duration> {
        self.would_admit(rate, now)?;
        self.0 = self.0.max(now) + rate.every;
        Ok(())
    }

    /// Says for how long none will pass, and counts nothing.
    fn would_admit(self, rate: &Rate, now: Instant) -> Result<(), Duration> {
        let over = (self.0.max(now) + rate.every).saturating_duration_since(now + rate.span);
        if over.is_zero() { Ok(()) } else { Err(over) }
    }
}

/// Keyed bounds on a rate.
#[derive(Debug)]
pub struct Throttle {
    rate: Rate,
    keys_max: usize,
    table: Mutex<Table>,
}

#[derive(Debug)]
struct Table {
    known: HashMap<String, Meter>,
    /// Of all that came when there was no room.
    others: Meter,
    cleaned_at: Instant,
}

impl Throttle {
    /// `burst` at once, then one each `every`.
    pub fn new(burst: u32, every: Duration) -> Self {
        let now = Instant::now();
        Self {
            rate: Rate::new(burst, every),
            keys_max: KEYS_MAX,
            table: Mutex::new(Table { known: HashMap::new(), others: Meter::new(now), cleaned_at: now }),
        }
    }

    /// Lets one pass, or says for how long none will.
    pub fn admit(&self, key: &str) -> Result<(), Duration> {
        let (key, now) = (cut(key), Instant::now());
        let mut table = self.table();
        if let Some(meter) = table.known.get_mut(key) {
            return meter.admit(&self.rate, now);
        }
        if table.known.len() >= self.keys_max && now.duration_since(table.cleaned_at) > CLEAN_INTERVAL {
            table.cleaned_at = now;
            table.known.retain(|_, meter| meter.0 > now);
        }
        if table.known.len() >= self.keys_max {
            return table.others.admit(&self.rate, now);
        }
        let mut meter = Meter::new(now);
        let admitted = meter.admit(&self.rate, now);
        table.known.insert(key.to_owned(), meter);
        admitted
    }

    /// The same for callers from that address.
    pub fn admit_address(&self, address: &str) -> Result<(), Duration> {
        self.admit(&network_of(address))
    }

    /// Says for how long none of that key will pass, and counts nothing.
    pub fn would_admit(&self, key: &str) -> Result<(), Duration> {
        let table = self.table();
        match table.known.get(cut(key)) {
            Some(meter) => meter.would_admit(&self.rate, Instant::now()),
            None if table.known.len() >= self.keys_max => table.others.would_admit(&self.rate, Instant::now()),
            None => Ok(()),
        }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn cut(key: &str) -> &str {
    key.char_indices().nth(KEY_CHARS_MAX).map_or(key, |(end, _)| &key[..end])
}

/// Who counts as one: an IPv4 address, the network of an IPv6 address.
pub fn network_of(address: &str) -> Cow<'_, str> {
    match address.parse() {
        Ok(IpAddr::V6(address)) => {
            let network = address.to_bits() >> (128 - NETWORK_BITS) << (128 - NETWORK_BITS);
            format!("{}/{NETWORK_BITS}", Ipv6Addr::from_bits(network)).into()
        }
        _ => address.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_has_a_burst_of_its_own() {
        let throttle = Throttle::new(3, Duration::from_hours(1));
        for _ in 0..3 {
            assert_eq!(throttle.would_admit("a"), Ok(()));
            assert_eq!(throttle.admit("a"), Ok(()));
        }
        assert!(throttle.would_admit("a").is_err_and(|wait| wait > Duration::from_mins(50)));
        assert!(throttle.admit("a").is_err_and(|wait| wait > Duration::from_mins(50)));
        assert_eq!(throttle.admit("b"), Ok(()));
    }

    #[test]
    fn a_rate_comes_back_with_time() {
        let rate = Rate::new(2, Duration::from_secs(10));
        let began = Instant::now();
        let after = |s| began + Duration::from_secs(s);
        let mut meter = Meter::new(began);
        assert_eq!(meter.admit(&rate, began), Ok(()));
        assert_eq!(meter.admit(&rate, began), Ok(()));
        assert_eq!(meter.admit(&rate, after(4)), Err(Duration::from_secs(6)));
        assert_eq!(meter.admit(&rate, after(10)), Ok(()));
        assert_eq!(meter.admit(&rate, after(10)), Err(Duration::from_secs(10)));
        // Never more than the burst, however long it was idle.
        for _ in 0..2 {
            assert_eq!(meter.admit(&rate, after(1_000)), Ok(()));
        }
        assert_eq!(meter.admit(&rate, after(1_000)), Err(Duration::from_secs(10)));
    }

    #[test]
    fn known_callers_keep_their_rate_when_the_table_is_full() {
        let throttle = Throttle { keys_max: 2, ..Throttle::new(3, Duration::from_hours(1)) };
        for key in ["a", "b"] {
            assert_eq!(throttle.admit(key), Ok(()));
        }
        for key in ["c", "d", "e"] {
            assert_eq!(throttle.admit(key), Ok(()), "{key}");
        }
        assert!(
            throttle.would_admit("f").is_err() && throttle.admit("f").is_err(),
            "those that come later share one rate"
        );
        for key in ["a", "b"] {
            assert_eq!(throttle.admit(key), Ok(()), "{key} was there before");
            assert_eq!(throttle.admit(key), Ok(()));
            assert!(throttle.admit(key).is_err());
        }
    }

    #[test]
    fn keys_that_are_long_are_cut() {
        let throttle = Throttle::new(1, Duration::from_hours(1));
        let long = "ü".repeat(KEY_CHARS_MAX);
        assert_eq!(throttle.admit(&long), Ok(()));
        assert!(throttle.admit(&format!("{long}, and more")).is_err());
    }

    #[test]
    fn an_ipv6_address_counts_by_its_network() {
        assert_eq!(network_of("198.51.100.7"), "198.51.100.7");
        assert_eq!(network_of("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::/64");
        assert_eq!(network_of(""), "");
        let throttle = Throttle::new(2, Duration::from_hours(1));
        assert_eq!(throttle.admit_address("2001:db8:1:2::1"), Ok(()));
        assert_eq!(throttle.admit_address("2001:db8:1:2:ffff::2"), Ok(()));
        assert!(throttle.admit_address("2001:db8:1:2::3").is_err());
        assert_eq!(throttle.admit_address("2001:db8:1:3::1"), Ok(()));
    }
}
