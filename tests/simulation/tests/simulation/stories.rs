//! Single stories: a few chosen faults and the promise that they put to the test. Each of them
//! was first found by a random seed.

use crate::faults::{Fault, Planned};
use crate::promises::{self, Broken};
use crate::report::report;
use crate::settings::{LEAD_MS, Shape};
use crate::world::{Setup, World};
use carillon::domain::quota::Quotas;
use carillon::domain::task::ScheduleKind;
use carillon::domain::{LogId, Reason, Run, Status, TaskId};
use carillon_simulation::executor::Start;
use std::sync::Arc;

/// As the seeds with a long lead have it.
pub const TWELVE_SECONDS: i64 = 12_000;

/// Longer than the offline time-out, as promise 10 wants it.
const LONG_LEAD_MS: i64 = 20_000;

/// Shorter than the acceptance window: dispatches are still on their way when runs are due.
const SHORT_LEAD_MS: i64 = 500;

/// Place of the serial task.
const SERIAL: usize = 7;

/// Place of the task that is never repeated, and takes long.
const ONCE_AND_SLOW: usize = 5;

/// Place of the task with a fixed delay.
const AFTER_A_DELAY: usize = 11;

/// Seeds that tell each story: chance decides who is hit.
pub const SEEDS: u64 = 8;

/// A fault at that time, ms.
pub fn at(at: i64, fault: Fault) -> Planned {
    Planned { at, fault }
}

/// One world of the default shape.
pub fn simulate(seed: u64, lead_ms: i64, faults: &[Planned]) -> Arc<World> {
    let shape = Shape { lead_ms, ..Shape::default() };
    let (quotas, faults) = (Quotas::default(), Some(faults.to_vec()));
    crate::simulate(&Setup { shape, quotas, faults, ..Setup::of(seed) })
}

/// Every promise was kept.
pub fn assert_kept(seed: u64, world: &World) {
    let broken = promises::check(world);
    assert!(broken.is_empty(), "seed {seed}\n{}", report(world, &broken));
}

/// Tells a story under several seeds and looks at the promises whose names begin so.
fn keeps(promise: &str, lead_ms: i64, faults: &[Planned]) {
    for seed in 0..SEEDS {
        let world = simulate(seed, lead_ms, faults);
        let broken: Vec<Broken> =
            promises::check(&world).into_iter().filter(|broken| broken.promise.starts_with(promise)).collect();
        assert!(broken.is_empty(), "seed {seed}\n{}", report(&world, &broken));
    }
}

#[test]
fn a_calm_world_starts_everything_in_time_and_once() {
    let world: Arc<World> = simulate(1, LEAD_MS, &[]);
    let broken: Vec<Broken> =
        promises::check(&world).into_iter().filter(|broken| !broken.promise.starts_with("P6 a named")).collect();
    assert!(broken.is_empty(), "{}", report(&world, &broken));
    let starts = world.ledger.starts();
    assert!(starts.len() > 200, "{}", starts.len());
    // The first fires are written when the nodes have found each other.
    let began = starts.iter().map(|start| start.at).min().unwrap();
    // Some wait for others of their task, and a child's time is there when it is written.
    let waits = |task: TaskId| {
        world.store.inspect(|state| {
            let spec = &state.tasks[&task].view.spec;
            spec.needs_permit() || spec.schedule == ScheduleKind::None
        })
    };
    let is_late = |start: &&Start| start.fire_time > began + 5_000 && start.at > start.due_time + 25;
    let late: Vec<&Start> = starts.iter().filter(is_late).filter(|start| !waits(start.task)).collect();
    assert!(late.is_empty(), "{late:?}");
}

#[test]
fn in_a_calm_world_serial_runs_keep_their_order() {
    let world = simulate(1, LEAD_MS, &[]);
    let serial = world.tasks()[SERIAL];
    let fires: Vec<i64> = world.ledger.starts().iter().filter(|s| s.task == serial).map(|s| s.fire_time).collect();
    assert!(fires.len() > 20 && fires.is_sorted(), "{fires:?}");
}

/// Both loaders of a node look at the same rows at the same time: each run still goes into one
/// batch of its dispatcher, once. ("Counts as done" is for repetitions after an error, and there
/// are none here.)
#[test]
fn a_calm_node_dispatches_nothing_twice() {
    let world = simulate(1, LEAD_MS, &[]);
    let twice = world.trace.about("dispatch by node number", 5);
    assert!(twice.is_empty(), "{twice:#?}");
}

/// A run that was going on when its task was stopped may end; if it fails, the stopped
/// definition must not start it again.
#[test]
fn a_run_that_fails_after_a_stop_is_not_repeated() {
    keeps("P6", LEAD_MS, &[]);
}

/// What expires while the database is away ends once it is back.
#[test]
fn expiry_while_the_database_is_away_traps_no_run() {
    keeps("P2", LEAD_MS, &[at(30_000, Fault::StoreAway { node: None, down: 14_000 })]);
}

/// An edit takes back what executors hold long before it is due, and that goes on under the new definition: each attempt has
/// ended for a reason.
#[test]
fn an_edit_long_before_a_fire_gives_nothing_up() {
    let edit = |at, task| Planned { at, fault: Fault::Edit { task } };
    keeps("P2", TWELVE_SECONDS, &[edit(21_079, 6), edit(43_307, 0), edit(57_971, 6)]);
}

/// Both loaders of a node claim; what one of them is unsure of, the other's success must not
/// make forgotten.
#[test]
fn a_claim_of_unknown_effect_is_taken_over() {
    let doubt = |node| Fault::Doubt { node, per_mille: 250, down: 25_000 };
    keeps("P2", LEAD_MS, &[at(20_000, doubt(0)), at(45_000, doubt(1))]);
}

/// An executor that was silent so long that its runs were given to another comes back while
/// they are not due yet.
#[test]
fn an_executor_that_comes_back_starts_nothing_that_was_given_away() {
    keeps("P4", LONG_LEAD_MS, &[at(30_000, Fault::Island { executor: 0, down: 12_000 })]);
}

/// A dispatch that may have arrived, repeated to a process that has died since: "nobody
/// listens" is said of the repetition, not of the first message.
#[test]
fn a_dispatch_that_may_have_arrived_is_not_called_undelivered() {
    let loss = |per_mille| Fault::Loss { per_mille, down: 4_000 };
    let kill = |executor| Fault::Kill { executor, down: 5_000 };
    let plan = [
        at(20_000, loss(500)),
        at(22_500, kill(0)),
        at(35_000, loss(500)),
        at(37_500, kill(1)),
        at(50_000, loss(500)),
        at(52_500, kill(0)),
    ];
    keeps("P4", SHORT_LEAD_MS, &plan);
}

/// A run refused by one executor and marked for another, where the second mark is carried out
/// and reported as failed.
#[test]
fn a_second_mark_of_unknown_effect_starts_nothing_twice() {
    let plan = [
        at(20_000, Fault::Doubt { node: 0, per_mille: 200, down: 25_000 }),
        at(20_000, Fault::Doubt { node: 1, per_mille: 200, down: 25_000 }),
        at(21_000, Fault::Kill { executor: 0, down: 20_000 }),
    ];
    keeps("P4", LEAD_MS, &plan);
}

/// Executors go on while the database is away; one that dies right after may have run what it
/// held, whatever its last committed heartbeat says.
#[test]
fn runs_started_while_the_database_was_away_are_not_reported_unstarted() {
    let plan = [
        at(30_000, Fault::StoreAway { node: None, down: 17_000 }),
        at(45_000, Fault::Kill { executor: 1, down: 20_000 }),
    ];
    keeps("P4", LONG_LEAD_MS, &plan);
}

/// A run that could not be revoked by an edit and never started: its fire belongs to the new
/// definition.
#[test]
fn a_fire_out_of_reach_of_an_edit_is_not_lost() {
    let plan = [at(30_000, Fault::Kill { executor: 0, down: 25_000 }), at(31_500, Fault::Edit { task: 0 })];
    keeps("P1", LONG_LEAD_MS, &plan);
}

/// The node that serves an edit dies in the middle of it: what executors dropped belongs to the new definition, and what
/// they were not asked for is asked for by another node.
#[test]
fn an_edit_whose_node_dies_loses_no_fire() {
    let edit = |from: i64| {
        let crash = Fault::Crash { node: 0, down: 20_000 };
        [at(from, Fault::Edit { task: 0 }), at(from + from / 10_000, crash)]
    };
    let plan: Vec<Planned> = (1..5).map(|round| round * 25_000).flat_map(edit).collect();
    keeps("P1", LONG_LEAD_MS, &plan);
}

/// A node dies, and again and again just after it has joined: alive by its number all the time, it never loads what it had
/// claimed.
#[test]
fn what_a_node_had_that_dies_again_and_again_goes_to_others() {
    let crashes = (0..15).map(|time| at(30_000 + 2_040 * time, Fault::Crash { node: 0, down: 2_000 }));
    keeps("P10", LONG_LEAD_MS, &crashes.collect::<Vec<_>>());
}

/// A node dies with runs in its queue, and they come back to the others later than what is missed may be.
#[test]
fn what_a_dead_node_held_up_was_not_missed() {
    let shape = Shape { misfire_after_ms: 5_000, ..Shape::default() };
    for seed in 0..SEEDS {
        let faults = Some(vec![at(30_000, Fault::Crash { node: 0, down: 30_000 })]);
        let world =
            crate::simulate(&Setup { shape: shape.clone(), faults, operations: Some(Vec::new()), ..Setup::of(seed) });
        let missed = left_out_as_missed(&world);
        assert!(missed.is_empty(), "seed {seed}: {missed:#?}");
        assert!(!world.trace.about("-> Init GivenBack", 1).is_empty(), "seed {seed}: nothing was held up");
    }
}

/// The clock is set back while the database is away: what is missed by the time before is only late.
#[test]
fn nothing_is_missed_by_the_time_before_an_outage() {
    let plan = [
        at(20_000, Fault::StoreAway { node: None, down: 45_000 }),
        at(40_000, Fault::ClockSet { by: -20_000, undone_after: None }),
    ];
    for seed in 0..SEEDS {
        let missed = left_out_as_missed(&simulate(seed, LEAD_MS, &plan));
        assert!(missed.is_empty(), "seed {seed}: {missed:#?}");
    }
}

/// After a long outage fires without a row stand for earlier ones. When they are written, one of them is missed a moment later, and
/// no other stands for it.
#[test]
fn the_latest_missed_fire_runs_though_it_is_missed_only_after_the_others() {
    let shape = Shape { nodes: 3, tenants: 5, ahead_ms: 20_000, ..Shape::default() };
    for seed in [3_673, 3, 15, 16, 27, 29] {
        for down in [62_100, 62_300, 62_458, 62_800, 63_000] {
            let plan = [
                at(12_659, Fault::StoreAway { node: None, down }),
                at(41_610, Fault::CrashAtCommit { node: 2, kinds: 2, down: 640 }),
                at(60_472, Fault::Crash { node: 1, down: 4_341 }),
            ];
            let (shape, faults) = (shape.clone(), Some(plan.to_vec()));
            let world = crate::simulate(&Setup { shape, faults, operations: Some(Vec::new()), ..Setup::of(seed) });
            assert_kept(seed, &world);
        }
    }
}

fn left_out_as_missed(world: &World) -> Vec<Run> {
    let is_left_out = |run: &&Run| run.status == Status::Expired && run.reason == Reason::MisfireSkipped;
    world.store.inspect(|state| state.logs.values().map(|row| &row.run).filter(is_left_out).cloned().collect())
}

/// What a stop revoked from an executor that nobody reaches is found never to have started only after the task was started
/// again: it ends all the same.
#[test]
fn what_a_stop_revoked_stays_so_after_the_next_start() {
    let plan = [
        at(38_768, Fault::Island { executor: 0, down: 31_419 }),
        at(41_351, Fault::Pause { node: 0, down: 29_689 }),
        at(42_332, Fault::Restart { task: ONCE_AND_SLOW, down: 8_266 }),
    ];
    keeps("P2 a stopped task", TWELVE_SECONDS, &plan);
}

/// A run of the old definition that is given up while the new one's chain goes on: a watermark
/// that it moved would hide the end of the run that the chain hangs on.
#[test]
fn a_delay_goes_on_when_a_run_of_its_old_definition_is_given_up() {
    let edit = |from| {
        let kill = |executor, from| at(from, Fault::Kill { executor, down: 8_000 });
        [kill(0, from), at(from + 300, Fault::Edit { task: AFTER_A_DELAY }), kill(1, from + 18_000)]
    };
    let plan: Vec<Planned> = [10_000, 30_000, 50_000].into_iter().flat_map(edit).collect();
    keeps("P12 a delay", LEAD_MS, &plan);
}

/// The end of a run is told only after its task was stopped and started again: the chain of the new start does not begin twice.
#[test]
fn a_delay_begins_once_when_an_end_is_told_late() {
    let stopped = |from| {
        [
            at(from, Fault::Restart { task: AFTER_A_DELAY, down: 6_000 }),
            at(from + 300, Fault::Loss { per_mille: 800, down: 9_000 }),
        ]
    };
    let plan: Vec<Planned> = [12_000, 32_000, 52_000].into_iter().flat_map(stopped).collect();
    keeps("P12 a delay", LEAD_MS, &plan);
}

/// An executor is silent for so long that its runs are given away, comes back, and the first acknowledgements, which would
/// tell it so, are lost.
#[test]
fn what_was_given_away_is_told_until_it_is_heard() {
    let lossy = |from| at(from, Fault::Loss { per_mille: 600, down: 14_000 });
    keeps("P4", LONG_LEAD_MS, &[lossy(20_000), lossy(40_000), lossy(60_000)]);
}

/// A node that stands still between marking shards and sending them: the acceptance window runs
/// from the mark, as it does for every other run.
#[test]
fn shards_marked_before_a_pause_are_not_accepted_after_it() {
    let pause = |node| Fault::Pause { node, down: 15_000 };
    for offset in [14, 16, 18, 20] {
        keeps("P4", LEAD_MS, &[at(27_000 + offset, pause(0)), at(52_000 + offset, pause(1))]);
    }
}

/// The registration of a process that has died since, handled late by a node that stood still,
/// must not drive out the process that listens at the address now.
#[test]
fn a_late_registration_replaces_no_executor() {
    let plan = [
        at(30_100, Fault::Pause { node: 0, down: 20_000 }),
        at(31_500, Fault::Kill { executor: 0, down: 1_000 }),
        at(31_500, Fault::Kill { executor: 1, down: 1_000 }),
    ];
    keeps("P4 what is called dead", LEAD_MS, &plan);
}

/// A rolling deploy that leaves the app without executors for a while.
#[test]
fn an_app_without_executors_waits() {
    let away = |executor, from| at(from, Fault::Kill { executor, down: 25_000 });
    let plan = [away(0, 20_000), away(1, 21_000)];
    for seed in 0..SEEDS {
        let world = simulate(seed, LEAD_MS, &plan);
        let broken: Vec<Broken> =
            promises::check(&world).into_iter().filter(|broken| broken.promise.starts_with("P2")).collect();
        assert!(broken.is_empty(), "{}", report(&world, &broken));
        assert!(!world.trace.about("NoExecutor", 1).is_empty(), "seed {seed}: nothing waited");
    }
}

/// Far less than the tasks fire.
const FEW: Quotas = Quotas { max_tasks: 0, max_fires_per_minute: 100, max_concurrent: 0, retain_days: 0 };

/// Whatever happens to nodes, executors and the database: what is over a quota waits.
#[test]
fn a_quota_of_fires_delays_and_loses_nothing() {
    for seed in 0..2 * SEEDS {
        let world = crate::simulate(&Setup {
            quotas: FEW,
            shape: Shape::default(),
            operations: Some(Vec::new()),
            ..Setup::of(seed)
        });
        let broken: Vec<Broken> =
            promises::check(&world).into_iter().filter(|broken| broken.promise.starts_with('P')).collect();
        assert!(broken.is_empty(), "{}", report(&world, &broken));
        assert!(!world.trace.about("-> Init OverQuota", 1).is_empty(), "seed {seed}: nothing was delayed");
        let missed = world.trace.about("OverQuota -> Expired MisfireSkipped", 3);
        assert!(missed.is_empty(), "seed {seed}: what was delayed counts as missed: {missed:#?}");
    }
}

#[test]
fn in_a_calm_world_no_minute_has_more_fires_than_the_quota() {
    let setup = Setup { quotas: FEW, shape: Shape::default(), faults: Some(Vec::new()), ..Setup::of(1) };
    let world = crate::simulate(&setup);
    let dispatch_marks: Vec<i64> = world.store.inspect(|state| {
        let first = state.dispatch_marks.iter().filter(|((_, attempt), _)| *attempt == 1);
        let fires = first.filter(|((log, _), _)| state.logs[log].run.parent_id == LogId::NONE);
        fires.map(|(_, hand)| hand.at).collect()
    });
    // Some are dispatched early, others when they are due.
    let within =
        |begin: i64| dispatch_marks.iter().filter(|at| (begin..begin + 60_000 - LEAD_MS - 100).contains(*at)).count();
    let most = dispatch_marks.iter().map(|at| within(*at)).max().unwrap_or(0);
    assert!((80..=100).contains(&most), "{most} in a minute");
}

/// Tells the story of one seed and looks at everything.
pub fn holds(seed: u64, lead_ms: i64, faults: &[Planned]) {
    assert_kept(seed, &simulate(seed, lead_ms, faults));
}

/// A process dies before any node has heard of it. Its registration lies with a node that stands still, and is handled when
/// its successor has long registered with another: it must not drive that one out.
#[test]
fn the_registration_of_a_process_that_nobody_knew_replaces_no_newer_one() {
    let plan = [
        at(31_511, Fault::Kill { executor: 0, down: 18_751 }),
        at(50_129, Fault::Pause { node: 0, down: 22_161 }),
        at(50_546, Fault::Kill { executor: 0, down: 1_492 }),
    ];
    for seed in [1_568, 1, 2, 3] {
        holds(seed, TWELVE_SECONDS, &plan);
    }
}

/// An executor comes back from a silence with a heartbeat that it wrote before it accepted a run, and the run was given to
/// another in between: the next list shows the run, and is confirmed, too.
#[test]
fn a_list_that_is_older_than_the_end_of_a_silence_vouches_for_nothing() {
    let island = |from| at(from, Fault::Island { executor: 0, down: 9_402 });
    for seed in [1_626, 1, 2, 3, 4, 5] {
        for from in [62_500, 62_619, 62_750, 63_000] {
            holds(seed, TWELVE_SECONDS, &[island(20_000), island(from)]);
        }
    }
}

/// The standby lacks an edit that nodes have seen: what fires goes by the definition that is there.
#[test]
fn an_edit_that_is_lost_with_the_last_commits_traps_no_run() {
    for seed in 0..SEEDS {
        let edits = (0..4).map(|task| at(24_479, Fault::Edit { task }));
        let plan: Vec<Planned> = edits.chain([at(28_675, Fault::LostCommits { last: 4_652 })]).collect();
        holds(seed, LEAD_MS, &plan);
    }
}

/// What lost its executor's row with the last commits of the database is not due before its fire.
#[test]
fn what_all_trace_is_lost_of_starts_no_earlier() {
    let plan = [at(10_618, Fault::Kill { executor: 0, down: 1_535 }), at(15_672, Fault::LostCommits { last: 4_641 })];
    for seed in [43, 1, 2] {
        holds(seed, TWELVE_SECONDS, &plan);
    }
}

/// A run has an earlier one of its task stopped, whose executor does not answer: what has got its permit with it goes out
/// meanwhile.
#[test]
fn nothing_waits_for_the_answer_of_an_executor_that_others_stop_runs_at() {
    let silent = |executor, from| at(from, Fault::Island { executor, down: 6_000 });
    keeps(
        "P11 a permit is used",
        LEAD_MS,
        &[silent(0, 19_500), silent(1, 34_500), silent(0, 49_500), silent(1, 64_500)],
    );
}

/// The node that takes a result reads its row as it was a moment ago: the executor sends the result again until it is committed.
#[test]
fn a_result_whose_row_is_read_too_old_is_sent_again() {
    let behind = |node| at(12_000, Fault::Behind { node, up_to: 1_500, down: 60_000 });
    for seed in 0..SEEDS / 2 {
        let world = simulate(seed, SHORT_LEAD_MS, &[behind(0), behind(1)]);
        assert_kept(seed, &world);
        assert!(!world.trace.about("answered Again", 1).is_empty(), "seed {seed}: nothing was read too old");
    }
}

/// What could not be marked while the database was away goes out when it is back. It is not marked as of the first try, whose
/// message nobody would accept any more, and left to the reaper.
#[test]
fn what_was_tried_while_the_database_was_away_goes_out_when_it_is_back() {
    for seed in 0..SEEDS {
        let world = simulate(seed, LEAD_MS, &[at(30_000, Fault::StoreAway { node: None, down: 8_000 })]);
        let undelivered = world.trace.about("-> Retry Undelivered", 3);
        assert!(undelivered.is_empty(), "seed {seed}: {undelivered:#?}");
    }
}

/// The database is away, or can only be read, for longer than an executor's lease. What the executor holds, and is due when the
/// lease would be over, starts: nodes let it go on.
#[test]
fn what_is_held_starts_while_the_database_is_away_for_longer_than_a_lease() {
    for (seed, from) in (0..SEEDS).zip([30_400, 31_200, 32_000].into_iter().cycle()) {
        for fault in [Fault::StoreAway { node: None, down: 15_000 }, Fault::ReadOnly { down: 15_000 }] {
            holds(seed, TWELVE_SECONDS, &[at(from, fault)]);
        }
    }
}

/// After an outage of about a minute an executor is heard before the node that hears it renews its own heartbeat, and another node
/// joins just then. That is no restored database.
#[test]
fn who_is_heard_just_after_a_long_outage_witnesses_no_restore() {
    for seed in 0..SEEDS {
        let plan = [
            at(6_381, Fault::StoreAway { node: None, down: 59_729 }),
            at(62_000 + 500 * seed as i64, Fault::Crash { node: 1, down: 1_000 }),
        ];
        holds(seed, LEAD_MS, &plan);
    }
}

/// A database that lost its last commits gives a serial run a version once more, with another due time. The node that has both copies
/// goes by the one that it read last: by the other the run would wait for itself, and keep all later ones of its task from starting.
#[test]
fn a_version_that_is_given_twice_holds_up_no_serial_task() {
    let plan =
        [at(10_591, Fault::StoreAway { node: None, down: 43_578 }), at(55_181, Fault::LostCommits { last: 4_591 })];
    for seed in [999, 0, 1, 2, 3] {
        let shape = Shape { nodes: 1, own_executors: 3, ahead_ms: 20_000, long_runs: true, ..Shape::default() };
        let world = crate::simulate(&Setup { shape, faults: Some(plan.to_vec()), ..Setup::of(seed) });
        assert_kept(seed, &world);
    }
}

/// After an outage of more than a minute a task is stopped by a node of which the database has not heard since: it writes nothing until
/// it has, and what the task owes is not given up for that.
#[test]
fn what_a_task_owes_is_written_before_a_change_also_after_a_long_outage() {
    let plan = [
        at(7_104, Fault::StoreAway { node: None, down: 63_625 }),
        at(14_184, Fault::Restart { task: 12, down: 8_834 }),
    ];
    for seed in [3_179, 0, 1, 2, 3, 4, 5, 6] {
        holds(seed, LEAD_MS, &plan);
    }
}
