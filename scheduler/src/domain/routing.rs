//! Which executor takes a run. Tags match exactly and all of them; an empty match is a reason,
//! not a silent drop.

use super::executor::Executor;
use super::spread::spread;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// How executors are chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Routing {
    /// One of those that fit, at random.
    #[default]
    Random,
    /// All that fit, each with its page and the total.
    Sharding,
}

/// The executors among `online` that fit, in the order of their ids (so that every node counts
/// shards alike), without those in `excluded`.
#[must_use]
pub fn candidates(online: &[Arc<Executor>], handler: &str, tags: &[String], excluded: &[i64]) -> Vec<Arc<Executor>> {
    let mut fitting: Vec<_> = online
        .iter()
        .filter(|executor| executor.fits(handler, tags) && !excluded.contains(&executor.id))
        .cloned()
        .collect();
    fitting.sort_by_key(|executor| executor.id);
    fitting
}

/// One of `fitting`, chosen by `seed` (any well-spread number, such as the run's id).
#[must_use]
pub fn pick(fitting: &[Arc<Executor>], seed: u64) -> Option<Arc<Executor>> {
    let count = u64::try_from(fitting.len()).ok().filter(|count| *count > 0)?;
    let index = usize::try_from(spread(seed) % count).ok()?;
    fitting.get(index).cloned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn executor(id: i64, tags: &[&str], handlers: &[&str]) -> Arc<Executor> {
        Arc::new(Executor {
            id,
            tenant_id: 1,
            app_id: 1,
            instance: String::new(),
            key_id: String::new(),
            address: String::new(),
            tags: tags.iter().map(ToString::to_string).collect(),
            handlers: handlers.iter().map(ToString::to_string).collect(),
            heartbeat_at: 0,
            draining: false,
            described_at: 0,
        })
    }

    #[test]
    fn tags_match_exactly_never_as_substrings() {
        let online = [executor(2, &["gpu-large"], &["h"]), executor(1, &["gpu", "eu"], &["h"])];
        let ids = |tags: &[&str]| -> Vec<i64> {
            let tags: Vec<String> = tags.iter().map(ToString::to_string).collect();
            candidates(&online, "h", &tags, &[]).iter().map(|e| e.id).collect()
        };
        assert_eq!(ids(&["gpu"]), [1]);
        assert_eq!(ids(&["gpu", "eu"]), [1]);
        assert_eq!(ids(&[]), [1, 2]);
        assert_eq!(ids(&["GPU"]), Vec::<i64>::new());
        assert!(candidates(&online, "other", &[], &[]).is_empty());
    }

    #[test]
    fn random_reaches_everyone_about_equally() {
        let fitting: Vec<_> = (0..4).map(|id| executor(id, &[], &["h"])).collect();
        let mut counts = [0; 4];
        for seed in 0..4_000 {
            counts[usize::try_from(pick(&fitting, seed).unwrap().id).unwrap()] += 1;
        }
        assert!(counts.iter().all(|count| (800..1_200).contains(count)), "{counts:?}");
        assert!(pick(&[], 1).is_none());
    }
}
