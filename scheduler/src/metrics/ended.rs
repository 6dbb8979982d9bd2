//! Runs that have ended, by app, status and reason: what an alert on failed jobs asks for.

use crate::domain::{AppId, Reason, Status};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// The runs whose end this process has committed.
pub static RUNS_ENDED: RunsEnded = RunsEnded::new();

/// Apps that are counted by themselves, at most; the runs of further ones count for [`OTHER_APPS`].
const APPS_MAX: usize = 200;

/// Stands for all apps beyond [`APPS_MAX`]; no app has this id.
pub const OTHER_APPS: AppId = AppId::NONE;

/// How many ended, by how and why.
pub type Ends = BTreeMap<(Status, Reason), u64>;

/// Ends by the app's id. A batch takes the lock once.
#[derive(Debug)]
pub struct RunsEnded(Mutex<BTreeMap<AppId, Ends>>);

impl RunsEnded {
    const fn new() -> Self {
        Self(Mutex::new(BTreeMap::new()))
    }

    /// Counts ends: (app's id, status, reason, how many).
    pub fn add(&self, ends: impl Iterator<Item = (AppId, Status, Reason, u64)>) {
        let mut apps = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (app, status, reason, count) in ends {
            let is_known = apps.contains_key(&app) || apps.len() < APPS_MAX;
            let ends = apps.entry(if is_known { app } else { OTHER_APPS }).or_default();
            *ends.entry((status, reason)).or_default() += count;
        }
    }

    /// Everything counted so far.
    pub fn all(&self) -> BTreeMap<AppId, Ends> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn apps_beyond_the_bound_count_together() {
        let ended = RunsEnded::new();
        let apps = 1..=APPS_MAX as i64 + 3;
        ended.add(apps.map(|app| (AppId(app), Status::Failed, Reason::TimedOut, 2)));
        ended.add([(AppId(1), Status::Failed, Reason::TimedOut, 1)].into_iter());
        let all = ended.all();
        let of = |app| all[&app][&(Status::Failed, Reason::TimedOut)];
        assert_eq!((all.len(), of(AppId(1)), of(AppId(2)), of(OTHER_APPS)), (APPS_MAX + 1, 3, 2, 6));
    }
}
