//! What must hold whatever the fleet looks like.

use super::fixture::executor;
use super::{Choice, Chooser, Known, Request, Routing, Tags, Use, Uses};
use crate::domain::choice::Enumerated as _;
use crate::domain::executor::Executor;
use crate::domain::{AppId, ExecutorId, LogId, TaskId, TenantId};
use proptest::prelude::*;
use std::collections::HashMap;
use std::sync::Arc;

const TAGS: [&str; 3] = ["gpu", "eu", "spot"];

fn any_tags() -> impl Strategy<Value = Vec<String>> {
    prop::sample::subsequence(TAGS.to_vec(), 0..=3).prop_map(|tags| tags.into_iter().map(str::to_owned).collect())
}

fn any_executor() -> impl Strategy<Value = Executor> {
    let switches = (
        prop::bool::weighted(0.1),
        prop::bool::weighted(0.1),
        prop::bool::weighted(0.9),
        prop::bool::weighted(0.2),
        0..=3_i32,
    );
    (0..12_i64, switches, any_tags(), (0..20_i32, 0..3_i32, 0..3_i32)).prop_map(|(port, switches, tags, load)| {
        let (draining, disabled, has_handler, plain, weight) = switches;
        let handler = if has_handler { "h" } else { "other" };
        Executor {
            draining,
            disabled,
            weight,
            tags: tags.into_iter().collect(),
            handlers: [handler.to_owned()].into(),
            plain,
            capacity: load.0,
            held: load.1,
            running: load.2,
            ..executor(0, &format!("http://e:{port}"))
        }
    })
}

/// Executors with ids of their own; addresses may coincide.
fn any_fleet() -> impl Strategy<Value = Vec<Arc<Executor>>> {
    prop::collection::vec(any_executor(), 0..8).prop_map(|fleet| {
        (1..).zip(fleet).map(|(id, executor)| Arc::new(Executor { id: ExecutorId(1_000 - id), ..executor })).collect()
    })
}

fn any_condition() -> impl Strategy<Value = Tags> {
    let few = || prop::sample::subsequence(TAGS.to_vec(), 0..=1);
    let texts = |tags: Vec<&str>| tags.into_iter().map(str::to_owned).collect();
    (few(), few(), few()).prop_map(move |(all, any, none)| Tags { all: texts(all), any: texts(any), none: texts(none) })
}

#[derive(Debug, Clone)]
struct Asked {
    task_id: i64,
    routing: Routing,
    run_id: i64,
    attempt: i32,
    refused_by: Vec<ExecutorId>,
    avoid: Option<ExecutorId>,
}

/// Few tasks, so that runs meet in the memos; the routing goes with the task.
fn any_asked() -> impl Strategy<Value = Asked> {
    let ids = prop::collection::vec((992..1_000_i64).prop_map(ExecutorId), 0..3);
    (
        0..Routing::ALL.len() as i64,
        any::<i64>(),
        0..3_i32,
        prop_oneof![Just(Vec::new()), ids],
        prop::option::of((992..1_000_i64).prop_map(ExecutorId)),
    )
        .prop_map(|(task_id, run_id, attempt, refused_by, avoid)| {
            let routing = Routing::ALL[usize::try_from(task_id).unwrap()].0;
            Asked { task_id, routing, run_id, attempt, refused_by, avoid }
        })
}

fn request<'a>(asked: &'a Asked, tags: &'a Tags, seq: i64) -> Request<'a> {
    Request {
        tenant_id: TenantId(1),
        app_id: AppId(1),
        task_id: TaskId(asked.task_id),
        handler: "h",
        tags,
        routing: asked.routing,
        run_id: LogId(asked.run_id),
        seq,
        attempt: asked.attempt,
        is_shard: false,
        refused_by: &asked.refused_by,
        avoid: asked.avoid,
    }
}

fn chosen(choice: &Choice) -> Vec<&Arc<Executor>> {
    match choice {
        Choice::To(executor) => vec![executor],
        Choice::Probe(probe) => probe.executors.iter().collect(),
        Choice::Shards(executors) => executors.iter().collect(),
        Choice::NoExecutor(_) => Vec::new(),
    }
}

fn stored(counts: &[(i64, i64, i64)]) -> Known {
    let mut uses = Uses::default();
    for (task_id, port, count) in counts {
        uses.insert(TaskId(*task_id), format!("http://e:{port}"), Use { count: *count, last: count % 97 });
    }
    Known { uses, ..Known::default() }
}

proptest! {
    /// Two nodes with the same knowledge, read in different orders, send a batch to the same
    /// executors and store the same.
    #[test]
    fn all_nodes_agree(
        (fleet, shuffled) in any_fleet().prop_flat_map(|fleet| (Just(fleet.clone()), Just(fleet).prop_shuffle())),
        batch in prop::collection::vec(any_asked(), 1..40),
        counts in prop::collection::vec((0..11_i64, 0..12_i64, 0..1_000_i64), 0..20),
        tags in any_condition(),
    ) {
        let mut one = Chooser::new(fleet, stored(&counts));
        let mut other = Chooser::new(shuffled, stored(&counts));
        for (seq, asked) in (0..).zip(&batch) {
            let request = request(asked, &tags, seq);
            let (one, other) = (one.choose(&request), other.choose(&request));
            prop_assert_eq!(chosen(&one), chosen(&other), "{:?}", asked);
        }
        prop_assert_eq!(one.take_use_changes(), other.take_use_changes());
    }

    /// Who is chosen is open, has handler and tags, has not refused, and is the avoided one only
    /// if no other is left; none is chosen only if none may be.
    #[test]
    fn every_choice_fits(
        fleet in any_fleet(),
        batch in prop::collection::vec(any_asked(), 1..40),
        tags in any_condition(),
    ) {
        let mut chooser = Chooser::new(fleet.iter().cloned(), Known::default());
        for (seq, asked) in (0..).zip(&batch) {
            let choice = chooser.choose(&request(asked, &tags, seq));
            let may = |executor: &Executor| {
                !executor.draining && !executor.disabled && executor.weight > 0 && executor.has("h")
                    && tags.fits(&executor.tags) && !asked.refused_by.contains(&executor.id)
            };
            let possible = fleet.iter().filter(|executor| may(executor)).count();
            let taken = chosen(&choice);
            prop_assert!(taken.iter().all(|executor| may(executor)), "{asked:?}: {choice:?}");
            prop_assert_eq!(taken.is_empty(), possible == 0);
            match &choice {
                Choice::To(executor) => prop_assert!(Some(executor.id) != asked.avoid || possible == 1),
                Choice::Probe(_) | Choice::Shards(_) => prop_assert_eq!(taken.len(), possible),
                Choice::NoExecutor(_) => {}
            }
        }
    }

    /// A batch in one go, or spread over nodes that store and read in between: the same.
    #[test]
    fn stored_uses_go_on_where_they_stopped(
        weights in prop::collection::vec(1..5_i32, 1..6),
        parts in prop::collection::vec(0..9_usize, 1..6),
        lru in any::<bool>(),
    ) {
        let routing = if lru { Routing::LeastRecentlyUsed } else { Routing::LeastFrequentlyUsed };
        let asked = Asked { task_id: 1, routing, run_id: 1, attempt: 0, refused_by: Vec::new(), avoid: None };
        let choose = |known: Known, runs: usize| {
            let mut chooser = Chooser::new(super::fixture::fleet(&weights), known);
            let tags = Tags::default();
            let ids: Vec<i64> =
                (0..runs).map(|_| chosen(&chooser.choose(&request(&asked, &tags, 0)))[0].id.0).collect();
            (ids, chooser.take_use_changes())
        };
        let (whole, _) = choose(Known::default(), parts.iter().sum());
        let mut database: HashMap<String, Use> = HashMap::new();
        let mut pieces = Vec::new();
        for runs in parts {
            let mut known = Known::default();
            for (address, stored) in &database {
                known.uses.insert(TaskId(1), address.clone(), *stored);
            }
            let (ids, changes) = choose(known, runs);
            pieces.extend(ids);
            for change in changes {
                let row = database.entry(change.address).or_default();
                row.count = row.count.max(change.floor) + change.added;
                row.last = row.last.max(change.last);
            }
        }
        prop_assert_eq!(whole, pieces);
    }

    /// With equal weights no executor is used twice more than another, and one that joins late
    /// gets its share of what follows and no more.
    #[test]
    fn least_frequent_spreads_evenly(count in 1..7_usize, before in 0..60_usize, after in 0..60_usize, weight in 1..=100) {
        let fleet = super::fixture::fleet(&vec![weight; count + 1]);
        let asked = Asked {
            task_id: 1, routing: Routing::LeastFrequentlyUsed, run_id: 1, attempt: 0, refused_by: Vec::new(), avoid: None,
        };
        let tags = Tags::default();
        let mut known = Known::default();
        let mut phase = |executors: &[Arc<Executor>], runs: usize| -> Vec<usize> {
            let mut chooser = Chooser::new(executors.iter().cloned(), std::mem::take(&mut known));
            let mut counts = vec![0; executors.len()];
            for _ in 0..runs {
                let choice = chooser.choose(&request(&asked, &tags, 0));
                counts[usize::try_from(chosen(&choice)[0].id.0).unwrap() - 1] += 1;
            }
            known = chooser.finish();
            counts
        };
        let counts = phase(&fleet[..count], before);
        prop_assert!(counts.iter().max().unwrap() - counts.iter().min().unwrap() <= 1, "{counts:?}");
        let later = phase(&fleet, after);
        prop_assert!(*later.last().unwrap() <= after / (count + 1) + 1, "{later:?}");
    }

    /// Over any period of runs, numbered in sequence, each has exactly its weight.
    #[test]
    fn round_gives_each_its_weight(weights in prop::collection::vec(1..=9_i32, 1..7), start in 0..1_000_000_i64) {
        let mut chooser = Chooser::new(super::fixture::fleet(&weights), Known::default());
        let asked =
            Asked { task_id: 1, routing: Routing::Round, run_id: 1, attempt: 0, refused_by: Vec::new(), avoid: None };
        let (tags, mut counts) = (Tags::default(), vec![0; weights.len()]);
        for seq in start..start + i64::from(weights.iter().sum::<i32>()) {
            let choice = chooser.choose(&request(&asked, &tags, seq));
            counts[usize::try_from(chosen(&choice)[0].id.0).unwrap() - 1] += 1;
        }
        prop_assert_eq!(counts, weights);
    }
}
