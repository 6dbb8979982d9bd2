//! Attempts that executors say have ended, and that this node sees nothing of. A member of the database that lags behind shows a
//! row a little later than another: what is not there yet must not count as what is not there.

use crate::domain::{IdSource, LogId, Owner};
use crate::outcome::LAG_MAX_MS;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// Numbers that are remembered for each app; more are not waited for.
const REMEMBERED_MAX: usize = 256;

/// A number is forgotten after so long, ms: clients repeat what was not taken every 30 s, and are answered long before.
const REMEMBERED_FOR_MS: i64 = 10 * LAG_MAX_MS;

/// Whether the first attempt of `log`, of which nothing is here, may still appear, at `now_ms`: its row was written somewhere
/// when its log was made. Bursts borrow from the coming milliseconds.
pub fn first_may_come(log: LogId, now_ms: i64) -> bool {
    now_ms.saturating_sub(IdSource::made_at(log)).saturating_abs() < LAG_MAX_MS
}

/// Numbers of later attempts that nothing here answers to: they don't tell when they were given, so it counts since when they
/// are asked for.
#[derive(Default)]
pub struct UnseenNumbers(Mutex<HashMap<Owner, HashMap<i64, i64>>>);

impl UnseenNumbers {
    /// Whether the attempt with that number may still appear, at `now_ms`.
    pub fn may_come(&self, owner: Owner, number: i64, now_ms: i64) -> bool {
        let mut apps = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        apps.retain(|_, numbers| {
            numbers.retain(|_, since| now_ms.saturating_sub(*since) < REMEMBERED_FOR_MS);
            !numbers.is_empty()
        });
        let numbers = apps.entry(owner).or_default();
        if numbers.len() >= REMEMBERED_MAX && !numbers.contains_key(&number) {
            return false;
        }
        now_ms.saturating_sub(*numbers.entry(number).or_insert(now_ms)) < LAG_MAX_MS
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{AppId, TenantId};

    fn owner(app: i64) -> Owner {
        Owner { tenant_id: TenantId(1), app_id: AppId(app) }
    }

    #[test]
    fn a_run_that_was_made_just_now_may_come() {
        let now = 1_900_000_000_000;
        let made_at = |at| LogId(IdSource::first_at::<i64>(at));
        for (at, may) in [
            (now, true),
            (now + 5, true),
            (now - LAG_MAX_MS + 1, true),
            (now - LAG_MAX_MS, false),
            (now + LAG_MAX_MS, false),
        ] {
            assert_eq!(first_may_come(made_at(at), now), may, "{at}");
        }
    }

    #[test]
    fn a_number_is_waited_for_from_the_first_time_on() {
        let unseen = UnseenNumbers::default();
        assert!(unseen.may_come(owner(1), 7, 0));
        assert!(unseen.may_come(owner(1), 7, LAG_MAX_MS - 1));
        assert!(!unseen.may_come(owner(1), 7, LAG_MAX_MS), "no member lags so long");
        assert!(unseen.may_come(owner(1), 8, LAG_MAX_MS), "another");
    }

    #[test]
    fn one_app_has_its_share() {
        let unseen = UnseenNumbers::default();
        let waited_for = (0..1_000).filter(|number| unseen.may_come(owner(1), *number, 0)).count();
        assert_eq!(waited_for, REMEMBERED_MAX);
        assert!(unseen.may_come(owner(2), 1, 0), "another app's");
        assert!(unseen.may_come(owner(1), 2_000, REMEMBERED_FOR_MS), "the first are forgotten");
    }
}
