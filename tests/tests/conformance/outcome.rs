//! Results, and runs whose result does not come.

use crate::fixture::{World, dispatch_of, ids, success};
use carillon::cluster::Clock;
use carillon::dispatch::TaskCache;
use carillon::domain::{ExecutorId, IdSource, LogId, NodeId, Owner, Reason, Run, Status};
use carillon::outcome::ResultIngestion;
use carillon::store::{FROM_THE_FIRST, Store, Suspect, Suspects};
use carillon_protocol::{RunResult, RunStatus, Verdict};
use std::sync::Arc;

cases!(
    a_success_counts_only_with_the_current_attempt,
    another_scope_moves_and_reads_nothing,
    a_success_counts_once,
    of_a_success_and_a_loss_at_once_one_counts,
    suspects_are_those_of_executors_due_before_or_of_dead_nodes,
    suspects_are_looked_through_page_by_page,
    stale_results_are_recorded,
    a_result_has_no_time_that_cannot_be,
    results_of_many_executors_at_once_count_each_by_itself,
);

async fn a_success_counts_only_with_the_current_attempt(world: World) {
    let runs = world.runs(3).await;
    let first = world.dispatched(1, runs[..2].to_vec(), 7).await;
    world.store.dispatch(NodeId(1), &[dispatch_of(&first[0], ExecutorId(8), world.now)]).await.unwrap();
    // An old attempt, a future one, an unknown run; and one that counts.
    let results = [success(&first[0], 1), success(&first[0], 3), success(&runs[2], 0), success(&first[1], 1)];
    let all: Vec<&RunResult> = results.iter().collect();
    assert_eq!(world.store.succeed(world.owner, &all).await.unwrap(), 1);
    let states: Vec<Status> = world.states(runs[0].task_id).await.into_iter().map(|(status, _)| status).collect();
    assert_eq!(states, [Status::Dispatched, Status::Succeeded, Status::Init]);
    let row = world.row(&first[1]).await;
    assert_eq!((row.output.as_str(), row.started_at), ("done", first[1].due_time + 1));
    assert_eq!((row.dispatched.finished_at, row.dispatched.run.version), (first[1].due_time + 2, first[1].version + 1));
    assert_eq!(world.store.succeed(world.owner, &[&success(&first[0], 2)]).await.unwrap(), 1);
}

async fn another_scope_moves_and_reads_nothing(world: World) {
    let run = world.dispatched(1, world.runs(1).await, 7).await.remove(0);
    let other = world.admin.make_app([world.id(), world.id()], "other", "orders").await;
    let mixed = Owner { app_id: other.app_id, ..world.owner };
    for owner in [other, mixed, Owner { tenant_id: other.tenant_id, ..world.owner }] {
        assert_eq!(world.store.succeed(owner, &[&success(&run, 1)]).await.unwrap(), 0);
        assert!(world.store.runs(Some(owner), &[run.id]).await.unwrap().is_empty());
    }
    assert_eq!(world.row(&run).await.dispatched.run, run);
    for owner in [None, Some(world.owner)] {
        let read = world.store.runs(owner, &[run.id, LogId(run.id.0 + 1)]).await.unwrap();
        assert_eq!(read.len(), 1);
        assert_eq!((&read[0].run, read[0].run.executor_id, read[0].node_id), (&run, ExecutorId(7), NodeId(1)));
    }
}

async fn a_success_counts_once(world: World) {
    let run = world.dispatched(1, world.runs(1).await, 7).await.remove(0);
    let result = success(&run, 1);
    assert_eq!(world.store.succeed(world.owner, &[&result]).await.unwrap(), 1);
    let other = RunResult { output: "other".to_owned(), finished_at: 9, ..result.clone() };
    assert_eq!(world.store.succeed(world.owner, &[&other]).await.unwrap(), 0);
    assert_eq!(world.store.succeed(world.owner, &[]).await.unwrap(), 0);
    let row = world.row(&run).await;
    assert_eq!((row.output.as_str(), row.dispatched.finished_at), ("done", result.finished_at));
}

async fn of_a_success_and_a_loss_at_once_one_counts(world: World) {
    let runs = world.dispatched(1, world.runs(100).await, 7).await;
    let (store, owner) = (Arc::clone(&world.store), world.owner);
    let results: Vec<RunResult> = runs.iter().map(|run| success(run, 1)).collect();
    let succeeding = tokio::spawn(async move {
        let mut moved = 0;
        for batch in results.chunks(10) {
            moved += store.succeed(owner, &batch.iter().collect::<Vec<_>>()).await.unwrap();
        }
        moved
    });
    let rival = Arc::clone(&world.rival);
    let lost = |run: &Run| carillon::domain::Transition::of(run, Status::Retry, Reason::Undelivered);
    let changes: Vec<_> = runs.iter().rev().map(lost).collect();
    let losing = tokio::spawn(async move {
        let mut moved = 0;
        for batch in changes.chunks(10) {
            moved += rival.change(batch).await.unwrap().len() as u64;
        }
        moved
    });
    let (good, bad) = tokio::join!(succeeding, losing);
    let (good, bad) = (good.unwrap(), bad.unwrap());
    assert_eq!(good + bad, 100);
    let states = world.states(runs[0].task_id).await;
    assert_eq!(states.iter().filter(|(status, _)| *status == Status::Succeeded).count() as u64, good);
}

async fn suspects_are_those_of_executors_due_before_or_of_dead_nodes(world: World) {
    let runs = world.runs(6).await;
    let at_7 = world.dispatched(1, runs[..2].to_vec(), 7).await;
    let at_8 = world.dispatched(2, runs[2..4].to_vec(), 8).await;
    world.store.claim(NodeId(1), vec![runs[4].clone()], world.now).await.unwrap();
    let parent = world.queued_parent().await;
    world.store.dispatch_shards(NodeId(1), &parent, &world.shards_of(&parent, 1), world.now).await.unwrap();

    let after = FROM_THE_FIRST;
    let (due_before, until) = (i64::MAX, i64::MAX);
    let nobody = Suspects { executors: vec![], except: vec![], due_before, or_not_by: vec![], until, after, limit: 10 };
    let ask = async |which: Suspects| {
        let found = world.store.suspects(&which).await.unwrap();
        for suspect in &found {
            let [row] = world.store.runs(None, &[suspect.log]).await.unwrap().try_into().unwrap();
            let Suspect { version, attempt, due_time, executor_id, dispatched_at, .. } = *suspect;
            assert_eq!(version, row.run.version);
            assert_eq!((attempt, due_time, executor_id), (row.run.attempt, row.run.due_time, row.run.executor_id));
            assert_eq!(dispatched_at, row.dispatched_at);
        }
        found.into_iter().map(|suspect| suspect.log).collect::<Vec<_>>()
    };
    let of = |executors: &[ExecutorId]| Suspects { executors: executors.to_vec(), ..nobody.clone() };
    let both = [at_7[0].id, at_7[1].id, at_8[0].id, at_8[1].id];
    assert_eq!(ask(of(&[ExecutorId(7), ExecutorId(8)])).await, both, "by due time; no queued run, no parent");
    assert_eq!(ask(of(&[ExecutorId(8)])).await, both[2..]);
    assert_eq!(ask(Suspects { except: vec![ExecutorId(7), ExecutorId(100)], ..nobody.clone() }).await, both[2..]);
    assert_eq!(ask(Suspects { limit: 1, ..of(&[ExecutorId(7), ExecutorId(8)]) }).await, both[..1]);
    let due_before = at_7[1].due_time;
    assert_eq!(ask(Suspects { due_before, ..of(&[ExecutorId(7), ExecutorId(8)]) }).await, both[..1], "before, not at");
    let dead_too =
        Suspects { due_before, or_not_by: vec![NodeId(1), NodeId(3)], ..of(&[ExecutorId(7), ExecutorId(8)]) };
    assert_eq!(ask(dead_too.clone()).await, [both[0], both[2], both[3]]);
    assert_eq!(ask(Suspects { until: at_8[1].due_time, ..dead_too }).await, [both[0], both[2]], "in any case");

    // The parent is held, too, as is what is queued.
    let due = async |from, rows| world.store.held_after(from, i64::MAX, rows).await.unwrap();
    let mut times: Vec<i64> = at_7.iter().chain(&at_8).map(|run| run.due_time).collect();
    times.extend([parent.due_time, parent.due_time, runs[4].due_time]);
    times.sort_unstable();
    assert_eq!(due(i64::MIN, 0).await, Some(times[0]));
    assert_eq!(due(i64::MIN, 6).await, Some(times[6]));
    assert_eq!(due(i64::MIN, 7).await, None, "there are not so many");
    assert_eq!(due(times[0] + 1, 0).await, times.iter().find(|at| **at > times[0]).copied());
}

/// What is due at the instant of the last one on a page goes on behind it: nothing is left out, nothing comes twice.
async fn suspects_are_looked_through_page_by_page(world: World) {
    let mut all = Vec::new();
    for _ in 0..3 {
        all.extend(world.dispatched(1, world.runs(2).await, 7).await);
    }
    all.sort_by_key(|run| (run.due_time, run.id));
    assert!(all[0].due_time == all[2].due_time && all[3].due_time == all[5].due_time, "three of each instant");
    let (due_before, until) = (i64::MAX, i64::MAX);
    for (executors, except) in [(vec![ExecutorId(7)], vec![]), (vec![], vec![ExecutorId(8)])] {
        for limit in [1, 2, 4] {
            let (mut found, mut after) = (Vec::new(), FROM_THE_FIRST);
            while found.len() <= all.len() {
                let (executors, except, or_not_by) = (executors.clone(), except.clone(), Vec::new());
                let which = Suspects { executors, except, due_before, or_not_by, until, after, limit };
                let page = world.store.suspects(&which).await.unwrap();
                let Some(last) = page.last() else { break };
                after = (last.due_time, last.log);
                found.extend(page.iter().map(|suspect| suspect.log));
            }
            assert_eq!(found, ids(&all), "{limit} on a page, of {executors:?}");
        }
    }
}

async fn stale_results_are_recorded(world: World) {
    let run = world.dispatched(1, world.runs(1).await, 7).await.remove(0);
    let (one, two) = (success(&run, 8), success(&run, 9));
    let ids = [world.id(), world.id()];
    world.store.record_stale(ExecutorId(7), &[&one, &two], &ids, world.now).await.unwrap();
    assert_eq!(world.row(&run).await.dispatched.run, run, "recorded, not applied");
}

/// A clock that stands, ms.
struct Stopped(i64);

impl Clock for Stopped {
    fn now_us(&self) -> i64 {
        self.0 * 1_000
    }

    fn local_us(&self) -> i64 {
        self.0 * 1_000
    }
}

fn ingestion(world: &World, now: i64) -> ResultIngestion<dyn Store> {
    let (store, ids) = (Arc::clone(&world.store), Arc::new(IdSource::new(NodeId(1))));
    let tasks = Arc::new(TaskCache::new(Arc::clone(&store)));
    ResultIngestion::new(store, Arc::new(Stopped(now)), ids, tasks, Arc::default())
}

/// Whatever its executor says: figures, retention and what follows its end go by them.
async fn a_result_has_no_time_that_cannot_be(world: World) {
    let now = world.now + 30_000;
    let ingestion = ingestion(&world, now);
    for status in [RunStatus::Succeeded, RunStatus::Failed] {
        let said = [i64::MIN, -1, 0, 1, now + 3_600_000, i64::MAX];
        let runs = world.dispatched(1, world.runs(7).await, 7).await;
        let good = RunResult { status, ..success(&runs[6], 1) };
        let odd = runs.iter().zip(said).map(|(run, at)| {
            let (started_at, finished_at) = (at, at);
            RunResult { status, started_at, finished_at, ..success(run, 1) }
        });
        let results: Vec<RunResult> = odd.chain([good.clone()]).collect();
        let verdicts = ingestion.apply(world.owner, ExecutorId(7), &results).await.unwrap();
        assert_eq!(verdicts, [Verdict::Applied; 7]);
        for run in &runs[..6] {
            let row = world.row(run).await;
            assert_eq!((row.started_at, row.dispatched.finished_at), (0, now), "{status:?}");
        }
        let row = world.row(&runs[6]).await;
        assert_eq!((row.started_at, row.dispatched.finished_at), (good.started_at, good.finished_at));
    }
}

/// They share statements, but no fate.
async fn results_of_many_executors_at_once_count_each_by_itself(world: World) {
    let runs = world.dispatched(1, world.runs(30).await, 7).await;
    let ingestion = ingestion(&world, world.now + 30_000);
    let mut each: Vec<[RunResult; 1]> = runs.iter().map(|run| [success(run, 1)]).collect();
    // Of an attempt that is none, of a run that is none, of one that failed, and one that tells another end of the last run.
    each.push([success(&runs[0], 9)]);
    each.push([RunResult { log: 1, ..success(&runs[0], 1) }]);
    each[5][0].status = RunStatus::FailedForGood;
    each.push([RunResult { finished_at: each[29][0].finished_at + 5, ..success(&runs[29], 1) }]);
    let all = each.iter().map(|results| ingestion.apply(world.owner, ExecutorId(7), results));
    let verdicts: Vec<Verdict> =
        futures_util::future::join_all(all).await.into_iter().map(|verdicts| verdicts.unwrap()[0]).collect();
    assert_eq!(verdicts[..29], [Verdict::Applied; 29]);
    assert_eq!(verdicts[30..32], [Verdict::Again; 2]);
    let ends = [verdicts[29], verdicts[32]];
    assert!(ends == [Verdict::Applied, Verdict::Stale] || ends == [Verdict::Stale, Verdict::Applied], "{ends:?}");
    for (at, run) in runs.iter().enumerate() {
        let expected = if at == 5 { Status::Failed } else { Status::Succeeded };
        assert_eq!(world.row(run).await.dispatched.run.status, expected, "{at}");
    }
    let told = &each[if ends[0] == Verdict::Applied { 29 } else { 32 }][0];
    assert_eq!(world.row(&runs[29]).await.dispatched.finished_at, told.finished_at);
}
