//! Who may take a run at all: worked out once for a handler and a condition on tags, and kept while the fleet has the same
//! shape.

use super::ring::{Ring, Rings};
use super::round::Rotation;
use super::weights::Weights;
use super::{Executors, Fleet, NoExecutor, Tags};
use crate::domain::executor::Executor;
use crate::domain::recent::Recent;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Places in lists that are kept at most, of all handlers and conditions together: about 20 MB.
const PLACES_MAX: usize = 1_000_000;

/// What a list weighs beside its places.
const LIST_WEIGHT: usize = 16;

/// Executors that may take a run, at least one, with what routings need worked out once.
#[derive(Debug)]
pub struct Candidates {
    /// In the order of (address, id).
    pub executors: Executors,
    pub(super) shape: Arc<Shape>,
}

/// What stays the same while only loads change.
#[derive(Debug)]
pub(super) struct Shape {
    /// The candidates' places in their fleet.
    places: Vec<u32>,
    pub weights: Weights,
    rotation: OnceLock<Rotation>,
    ring: OnceLock<Arc<Ring>>,
}

impl Candidates {
    /// These executors, in their order.
    pub(super) fn of(executors: Vec<Arc<Executor>>, places: Vec<u32>) -> Self {
        let weights = Weights::of(&executors);
        let shape = Shape { places, weights, rotation: OnceLock::new(), ring: OnceLock::new() };
        Self { executors: executors.into(), shape: Arc::new(shape) }
    }

    /// Those of `fleet` that may take a run of `handler` under `tags`.
    ///
    /// # Errors
    /// Why there is none.
    pub fn among(fleet: &Fleet, handler: &str, tags: &Tags) -> Result<Self, NoExecutor> {
        let online = fleet.executors();
        let fitting = (0_u32..).zip(online.iter()).filter(|(_, executor)| executor.fits(handler, tags));
        let (places, executors): (Vec<u32>, Vec<_>) = fitting.map(|(place, e)| (place, Arc::clone(e))).unzip();
        if executors.is_empty() {
            return Err(why(online, handler, tags));
        }
        Ok(Self::of(executors, places))
    }

    /// The same of a fleet of the same shape.
    fn again(&self, fleet: &Fleet) -> Self {
        let at = |place: &u32| fleet.executors().get(*place as usize).cloned();
        Self { executors: self.shape.places.iter().filter_map(at).collect(), shape: Arc::clone(&self.shape) }
    }

    pub(super) fn rotation(&self) -> &Rotation {
        self.shape.rotation.get_or_init(|| {
            let shares: Vec<i64> = self.executors.iter().map(|executor| executor.share()).collect();
            Rotation::of(&shares)
        })
    }

    pub(super) fn ring(&self, rings: &mut Rings) -> &Ring {
        self.shape.ring.get_or_init(|| rings.over(&self.executors))
    }
}

/// Candidates of earlier batches; only saves work.
#[derive(Debug)]
pub struct CandidateLists {
    kept: Mutex<Recent<u64, Arc<Kept>>>,
}

/// What was found for a handler and a condition, and in which fleet.
#[derive(Debug)]
struct Kept {
    handler: String,
    tags: Tags,
    fleet: Fleet,
    found: Result<Arc<Candidates>, NoExecutor>,
}

impl Default for CandidateLists {
    fn default() -> Self {
        Self { kept: Mutex::new(Recent::new(PLACES_MAX)) }
    }
}

impl CandidateLists {
    /// Those of `fleet` that may take a run of `handler` under `tags`.
    ///
    /// # Errors
    /// Why there is none.
    pub fn of(&self, fleet: &Fleet, handler: &str, tags: &Tags) -> Result<Arc<Candidates>, NoExecutor> {
        if fleet.shape() == Fleet::UNKEPT {
            return Candidates::among(fleet, handler, tags).map(Arc::new);
        }
        let mut hasher = DefaultHasher::new();
        (fleet.app(), handler, tags).hash(&mut hasher);
        let key = hasher.finish();
        let mut lists = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = lists.get(key).filter(|kept| {
            (kept.fleet.app(), kept.fleet.shape()) == (fleet.app(), fleet.shape())
                && kept.handler == handler
                && kept.tags == *tags
        });
        let found = match kept {
            Some(kept) if fleet.is(kept.fleet.executors()) => return kept.found.clone(),
            Some(kept) => kept.found.as_ref().map(|list| list.again(fleet)).map_err(Clone::clone),
            None => Candidates::among(fleet, handler, tags),
        };
        let found = found.map(Arc::new);
        let weight = LIST_WEIGHT + found.as_ref().map_or(0, |list| list.executors.len());
        let (handler, tags) = (handler.to_owned(), tags.clone());
        let kept = Kept { handler, tags, fleet: fleet.clone(), found: found.clone() };
        lists.insert(key, Arc::new(kept), weight);
        found
    }
}

/// The first filter that leaves no executor.
fn why(online: &[Arc<Executor>], handler: &str, tags: &Tags) -> NoExecutor {
    if online.is_empty() {
        return NoExecutor::NoneOnline;
    }
    let handler = handler.to_owned();
    let able: Vec<_> = online.iter().filter(|executor| executor.has(&handler)).collect();
    if able.is_empty() {
        return NoExecutor::NoHandler { handler, online: online.len() };
    }
    let closed: Vec<_> = able.iter().filter(|executor| tags.fits(&executor.tags)).collect();
    if closed.is_empty() {
        return NoExecutor::NoTags { handler, tags: tags.clone(), able: able.len() };
    }
    let disabled = closed.iter().filter(|executor| executor.disabled).count();
    let draining = closed.iter().filter(|executor| !executor.disabled && executor.draining).count();
    NoExecutor::AllClosed { handler, disabled, draining, weightless: closed.len() - disabled - draining }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{executor, fleet};
    use super::*;
    use crate::domain::{AppId, TenantId};

    const APP: (TenantId, AppId) = (TenantId(1), AppId(1));

    #[track_caller]
    fn check(online: &[Executor], handler: &str, tags: &[&str], expect: Result<&[i64], &str>) {
        let fleet = Fleet::new(APP, online.iter().cloned().map(Arc::new).collect(), 1);
        let tags = Tags { all: tags.iter().map(ToString::to_string).collect(), ..Tags::default() };
        let found = Candidates::among(&fleet, handler, &tags);
        let ids = found.map(|found| found.executors.iter().map(|executor| executor.id.0).collect::<Vec<_>>());
        assert_eq!(
            ids.map_err(|no_executor| no_executor.to_string()),
            expect.map(<[i64]>::to_vec).map_err(ToOwned::to_owned)
        );
    }

    #[test]
    fn candidates_stand_in_the_order_of_addresses_whatever_their_ids() {
        let online = [executor(1, "http://c:1"), executor(2, "http://a:1"), executor(3, "http://b:1")];
        check(&online, "h", &[], Ok(&[2, 3, 1]));
        let twice = [executor(9, "http://a:1"), executor(4, "http://a:1"), executor(9, "http://a:1")];
        check(&twice, "h", &[], Ok(&[4, 9]));
    }

    #[test]
    fn unsuitable_executors_are_left_out() {
        let base = || executor(1, "http://a:1");
        let gpu = Executor { tags: ["gpu".to_owned()].into(), ..executor(2, "http://b:1") };
        check(&[base(), gpu.clone()], "h", &["gpu"], Ok(&[2]));
        let others = [
            Executor { handlers: ["H".to_owned()].into(), ..base() },
            Executor { disabled: true, ..base() },
            Executor { draining: true, ..base() },
            Executor { weight: 0, ..base() },
            Executor { weight: -5, ..base() },
        ];
        for other in others {
            check(&[other, gpu.clone()], "h", &[], Ok(&[2]));
        }
    }

    #[test]
    fn the_reason_names_the_first_filter_that_leaves_no_executor() {
        let at = |id| executor(id, "http://a:1");
        check(&[], "h", &[], Err("no executor of the app is online"));
        check(&[at(1), at(2)], "other", &["gpu"], Err("2 online, but none has handler `other`"));
        check(&[at(1)], "", &["gpu"], Err("1 online, but none is a plain one: no other runs scripts"));
        let text = "1 online with handler `h`, but none has the tags: all of [gpu]";
        check(&[at(1), Executor { handlers: ["g".to_owned()].into(), ..at(2) }], "h", &["gpu"], Err(text));
        let closed = [
            Executor { disabled: true, draining: true, weight: 0, ..at(1) },
            Executor { draining: true, weight: 0, ..at(2) },
            Executor { weight: 0, ..at(3) },
        ];
        let text = "all executors that fit handler `h` are closed: 1 disabled manually, 1 draining, 1 with weight 0";
        check(&closed, "h", &[], Err(text));
        // What a closed one lacks is the better answer.
        check(&closed, "h", &["gpu"], Err("3 online with handler `h`, but none has the tags: all of [gpu]"));
    }

    #[test]
    fn what_is_kept_of_a_fleet_is_what_is_found_in_it() {
        let lists = CandidateLists::default();
        let loaded = |held: i32| {
            let executors = fleet(&[1, 0, 2]).iter().map(|e| Arc::new(Executor { held, ..(**e).clone() })).collect();
            Fleet::new(APP, executors, 7)
        };
        let held = |list: &Candidates| list.executors.iter().map(|e| (e.id.0, e.held)).collect::<Vec<_>>();
        let tags = Tags::default();
        let idle = loaded(0);
        let first = lists.of(&idle, "h", &tags).unwrap();
        assert_eq!(held(&first), [(1, 0), (3, 0)]);
        assert!(Arc::ptr_eq(&first, &lists.of(&idle, "h", &tags).unwrap()), "worked out once");
        let busy = lists.of(&loaded(5), "h", &tags).unwrap();
        assert_eq!(held(&busy), [(1, 5), (3, 5)], "loads are those of now");
        assert!(Arc::ptr_eq(&first.shape, &busy.shape), "the rest is as it was");
        assert!(lists.of(&idle, "other", &tags).is_err());
        assert!(lists.of(&idle, "h", &Tags::all_of(&["gpu".to_owned()])).is_err());
        let other_app = Fleet::new((TenantId(1), AppId(2)), fleet(&[1]), 7);
        assert_eq!(held(&lists.of(&other_app, "h", &tags).unwrap()), [(1, 0)]);
        let grown = Fleet::new(APP, fleet(&[1, 1, 2]), 8);
        assert_eq!(held(&lists.of(&grown, "h", &tags).unwrap()), [(1, 0), (2, 0), (3, 0)], "another shape");
        let unkept = Fleet::new(APP, fleet(&[1]), Fleet::UNKEPT);
        assert_eq!(held(&lists.of(&unkept, "h", &tags).unwrap()), [(1, 0)]);
        assert_eq!(held(&lists.of(&grown, "h", &tags).unwrap()).len(), 3);
    }
}
