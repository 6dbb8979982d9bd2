use super::*;
use crate::domain::plan::Plan;
use crate::domain::task::test::task_of;
use crate::domain::task::{MisfireStrategy, ScheduleKind, TaskSpec};
use crate::domain::{LogId, NodeId, TenantId};
use crate::domain::{Task, TaskId, Trigger};
use crate::queue::run;
use crate::store::{Beat, ClusterStore, Fence, LeaseName, Member, NodeHeartbeat, NodeInfo, NodeState, RunDispatch};
use crate::store::{FoundTasks, MissedQuestion, UnclaimedEnd, Writer};
use async_trait::async_trait;
use std::collections::{BTreeMap, HashSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicI64};

const NOW: i64 = 1_000_000;

/// Rows by id, and what was read and claimed.
#[derive(Default)]
struct Rows {
    runs: Mutex<BTreeMap<LogId, Run>>,
    /// Of each read: whether it left tenants out, and how many rows it answered.
    reads: Mutex<Vec<(bool, usize)>>,
    claims: Mutex<Vec<Vec<LogId>>>,
    /// How long a claim takes, ms.
    claim_ms: AtomicI64,
    /// How long all of them took so far, ms.
    passed_ms: Arc<AtomicI64>,
    /// What every run is of.
    task: Mutex<Option<Task>>,
    /// Nothing is given to this node.
    refuses: AtomicBool,
}

impl Rows {
    fn write(&self, runs: impl IntoIterator<Item = Run>) {
        let rows = runs.into_iter().map(|run| (run.id, Run { status: Status::Init, ..run }));
        self.runs.lock().unwrap().extend(rows);
    }

    fn earliest(&self, limit: u64, wanted: impl Fn(&Run) -> bool) -> Vec<Run> {
        let rows = self.runs.lock().unwrap();
        let mut found: Vec<&Run> = rows.values().filter(|run| wanted(run)).collect();
        found.sort_by_key(|run| (run.due_time, run.id));
        found.into_iter().take(limit as usize).cloned().collect()
    }

    /// After how many claimed batches this row was among them.
    fn claimed_after(&self, id: LogId) -> Option<usize> {
        self.claims.lock().unwrap().iter().position(|batch| batch.contains(&id))
    }
}

#[async_trait]
impl ClaimStore for Rows {
    async fn claimable(&self, share: Option<Share>, due: DueRange, limit: u64) -> Result<Vec<Run>> {
        let mine = |run: &Run| share.is_none_or(|share| run.id.0 % i64::from(share.total) == i64::from(share.index));
        let found = self.earliest(limit, |run| run.status == Status::Init && due.has(run.due_time) && mine(run));
        self.reads.lock().unwrap().push((false, found.len()));
        Ok(found)
    }

    async fn claimable_besides(&self, left_out: &LeftOut, due: DueRange, limit: u64) -> Result<Vec<Run>> {
        let passed = |run: &Run| left_out.tenants.contains(&run.tenant_id) && run.priority <= left_out.priority;
        let found = self.earliest(limit, |run| run.status == Status::Init && due.has(run.due_time) && !passed(run));
        self.reads.lock().unwrap().push((true, found.len()));
        Ok(found)
    }

    async fn claim(&self, _: NodeId, runs: Vec<Run>, _: i64) -> Result<Vec<Run>> {
        if self.refuses.load(Ordering::Relaxed) {
            return Ok(Vec::new());
        }
        let mut rows = self.runs.lock().unwrap();
        for run in &runs {
            rows.insert(run.id, Run { version: run.version + 1, status: Status::Queued, ..run.clone() });
        }
        self.claims.lock().unwrap().push(runs.iter().map(|run| run.id).collect());
        self.passed_ms.fetch_add(self.claim_ms.load(Ordering::Relaxed), Ordering::Relaxed);
        Ok(runs.iter().map(|run| rows[&run.id].clone()).collect())
    }

    async fn missed_at(&self, _: &[MissedQuestion], _: i64) -> Result<Vec<(TaskId, i64)>> {
        Ok(Vec::new())
    }

    async fn expire_unclaimed(&self, _: NodeId, ends: &[UnclaimedEnd], _: i64) -> Result<HashSet<LogId>> {
        let mut rows = self.runs.lock().unwrap();
        let mut moved = HashSet::new();
        for end in ends {
            if let Some(row) = rows.get_mut(&end.id).filter(|row| row.version == end.version) {
                (row.status, row.reason, row.version) = (Status::Expired, end.reason, end.version + 1);
                moved.insert(end.id);
            }
        }
        Ok(moved)
    }

    async fn queued_before(&self, _: NodeId, _: i64, due: DueRange, limit: u64) -> Result<Vec<Run>> {
        Ok(self.earliest(limit, |run| run.status == Status::Queued && due.has(run.due_time)))
    }

    async fn queued_of_others(&self, _: &[NodeId], _: DueRange, _: u64) -> Result<Vec<Run>> {
        Ok(Vec::new())
    }

    async fn held_after(&self, from: i64, until: i64, rows: u64) -> Result<Option<i64>> {
        let is_held = |run: &Run| {
            matches!(run.status, Status::Queued | Status::Dispatched) && (from..until).contains(&run.due_time)
        };
        Ok(self.earliest(u64::MAX, is_held).get(rows as usize).map(|run| run.due_time))
    }
}

#[async_trait]
impl PlanStore for Rows {
    async fn tasks_due(&self, _: i64, _: &[TenantId], _: u64) -> Result<Vec<Task>> {
        Ok(Vec::new())
    }
    async fn find_tasks(&self, ids: &[TaskId]) -> Result<FoundTasks> {
        let known = self.task.lock().unwrap().clone();
        let task = |id: &TaskId| Some(Task { id: *id, ..known.clone()? });
        Ok(FoundTasks { tasks: ids.iter().filter_map(task).collect(), unreadable: Vec::new() })
    }
    async fn skipped(&self, _: &[(TaskId, i64)], _: i64, _: u64) -> Result<Vec<(TaskId, i64)>> {
        Ok(Vec::new())
    }
    async fn write_ahead(&self, _: Writer, _: &[Plan], _: i64) -> Result<Option<HashSet<TaskId>>> {
        Ok(None)
    }
}

#[async_trait]
impl DispatchStore for Rows {
    async fn dispatch(&self, _: NodeId, _: &[RunDispatch]) -> Result<HashSet<LogId>> {
        Ok(HashSet::new())
    }
    async fn dispatch_shards(&self, _: NodeId, _: &Run, _: &[Run], _: i64) -> Result<bool> {
        Ok(false)
    }
    async fn note_stop(&self, _: &[(LogId, i64)], _: crate::domain::Reason) -> Result<HashSet<LogId>> {
        Ok(HashSet::new())
    }
    async fn settle_revoked(&self, _: &[Run], _: i64) -> Result<HashSet<LogId>> {
        Ok(HashSet::new())
    }
    async fn leave_running(&self, _: &[(LogId, i64)]) -> Result<()> {
        Ok(())
    }
    async fn change(&self, changes: &[Transition]) -> Result<HashSet<LogId>> {
        let mut rows = self.runs.lock().unwrap();
        let mut moved = HashSet::new();
        for change in changes {
            let row = rows.get_mut(&change.id).filter(|row| row.version == change.version);
            if let Some(row) = row {
                (row.status, row.reason, row.version) = (change.to, change.reason, change.version + 1);
                moved.insert(change.id);
            }
        }
        Ok(moved)
    }
}

#[async_trait]
impl ClusterStore for Rows {
    async fn now_us(&self) -> Result<i64> {
        Ok(NOW * 1_000)
    }
    async fn join(&self, _: &NodeInfo) -> Result<Member> {
        Ok(Member { id: NodeId(1), incarnation: String::new(), ids_after: 0, lived_until: 0 })
    }
    async fn heartbeat(&self, _: &Member, _: &NodeHeartbeat) -> Result<Beat> {
        Ok(Beat::Renewed)
    }
    async fn nodes(&self) -> Result<Vec<NodeState>> {
        Ok(Vec::new())
    }
    async fn leave(&self, _: &Member) -> Result<()> {
        Ok(())
    }
    async fn take_lease(&self, _: LeaseName, _: NodeId, _: Option<Fence>, _: i64) -> Result<Option<Fence>> {
        Ok(None)
    }
    async fn release_lease(&self, _: Fence) -> Result<()> {
        Ok(())
    }
}

/// Time that passes with claims only.
struct Passed(Arc<AtomicI64>);

impl Clock for Passed {
    fn now_us(&self) -> i64 {
        (NOW + self.0.load(Ordering::Relaxed)) * 1_000
    }

    fn local_us(&self) -> i64 {
        self.now_us()
    }
}

async fn loader(capacity: usize) -> (Arc<Rows>, Arc<RunQueue>, Loader<Rows>) {
    let (store, queue) = (Arc::new(Rows::default()), Arc::new(RunQueue::new(capacity)));
    let clock: Arc<dyn Clock> = Arc::new(Passed(store.passed_ms.clone()));
    let membership = Membership::join(store.clone(), clock.clone(), &NodeInfo::default(), 10_000).await.unwrap();
    let settings = LoaderSettings { lead_ms: 3_000, interval_ms: 5_000 };
    let parts = LoaderParts {
        store: store.clone(),
        clock: clock.clone(),
        membership: Arc::new(membership),
        rules: Arc::default(),
        queue: queue.clone(),
        watch: Arc::new(LoadWatch::new(180_000)),
    };
    let missed = MissedRuns::new(store.clone(), NodeId(1), clock, Arc::default(), 30_000);
    let loader = Loader::new(parts, missed, settings);
    (store, queue, loader)
}

fn burst(tenant_id: i64, ids: std::ops::Range<i64>, priority: i32) -> impl Iterator<Item = Run> {
    ids.map(move |id| Run { tenant_id: TenantId(tenant_id), priority, ..run(id, NOW) })
}

#[tokio::test]
async fn a_tenant_behind_the_bursts_of_others_waits_for_few_pages() {
    // One after the other in the order of claims, or all mixed.
    for (bursts, mixed, pages) in [(1, false, 1), (3, false, 3), (8, false, 8), (3, true, 1), (16, true, 1)] {
        let (store, queue, loader) = loader(20_000).await;
        let tenant = |id: i64| 1 + if mixed { id % bursts } else { id * bursts / 30_000 };
        store.write((0..30_000).map(|id| Run { tenant_id: TenantId(tenant(id)), ..run(id, NOW) }));
        let light = 1_000_000;
        store.write([Run { tenant_id: TenantId(99), due_time: NOW + 4_000, ..run(light, 0) }]);
        loader.load_urgent().await.unwrap();
        assert_eq!(store.claimed_after(LogId(light)), Some(pages), "behind {bursts} bursts, mixed: {mixed}");
        assert!(queue.room() > 0, "and there is room for the next one");
    }
}

#[tokio::test]
async fn a_run_that_becomes_urgent_during_a_burst_is_claimed() {
    let (store, _queue, loader) = loader(20_000).await;
    store.claim_ms.store(200, Ordering::Relaxed);
    // 30 pages, 6 s.
    store.write(burst(1, 0..15_000, 5));
    store.write([Run { tenant_id: TenantId(2), ..run(50_000, NOW + 5_500) }]);
    loader.load_urgent().await.unwrap();
    let after = store.claimed_after(LogId(50_000)).expect("it is claimed");
    assert!((5..10).contains(&after), "after {after} claims");
}

#[tokio::test]
async fn the_urgent_runs_of_the_bursting_tenant_itself_come_in_too() {
    let (store, _, loader) = loader(50_000).await;
    store.write(burst(1, 0..20_000, 0));
    store.write([Run { due_time: NOW + 1_000, ..run(200_000, 0) }]);
    loader.load_urgent().await.unwrap();
    assert_eq!(store.claimed_after(LogId(200_000)), Some(1));
}

#[tokio::test]
async fn a_burst_that_has_its_share_of_the_memory_costs_two_reads_a_round() {
    let (store, queue, loader) = loader(7_000).await;
    store.write(burst(1, 0..20_000, 5));
    loader.load_urgent().await.unwrap();
    assert_eq!(queue.len(), 6_000);
    store.reads.lock().unwrap().clear();
    store.write([Run { tenant_id: TenantId(2), ..run(200_000, NOW + 1) }]);
    loader.load_urgent().await.unwrap();
    assert_eq!(*store.reads.lock().unwrap(), [(false, 1_000), (true, 1)]);
    loader.load().await.unwrap();
    assert_eq!(store.reads.lock().unwrap().len(), 3, "the full load leaves it to the urgent one");
    assert_eq!(queue.len(), 6_001);
}

#[tokio::test]
async fn a_round_ends_also_when_more_tenants_burst_than_can_be_left_out() {
    let (store, queue, loader) = loader(20_000).await;
    store.write((0..40_000).map(|id| Run { tenant_id: TenantId(id % 40), ..run(id, NOW) }));
    loader.load_urgent().await.unwrap();
    let depth = queue.len();
    assert!(depth > 19_000 && queue.room() > 0, "{depth}");
    store.reads.lock().unwrap().clear();
    loader.load_urgent().await.unwrap();
    assert!(store.reads.lock().unwrap().len() <= 4, "{:?}", store.reads);
}

/// As a restored database does until the node has noticed.
#[tokio::test]
async fn a_round_ends_also_when_nothing_is_given_to_the_node() {
    for tenants in [1, 40] {
        let (store, queue, loader) = loader(20_000).await;
        store.refuses.store(true, Ordering::Relaxed);
        store.write((0..5_000).map(|id| Run { tenant_id: TenantId(id % tenants), ..run(id, NOW) }));
        loader.load_urgent().await.unwrap();
        loader.load().await.unwrap();
        assert!(store.reads.lock().unwrap().len() <= 20 && queue.is_empty(), "{:?}", store.reads);
    }
}

#[tokio::test]
async fn without_a_burst_nothing_more_is_read() {
    let (store, queue, loader) = loader(50_000).await;
    store.write((0..5_000).map(|id| Run { tenant_id: TenantId(id % 20), ..run(id, NOW + id) }));
    loader.load_urgent().await.unwrap();
    assert_eq!(queue.len(), 4_501);
    let reads = [1_000, 1_000, 1_000, 1_000, 501].map(|found| (false, found));
    assert_eq!(*store.reads.lock().unwrap(), reads);
}

#[tokio::test]
async fn a_lost_row_is_found_again_also_behind_late_ones() {
    let (store, queue, loader) = loader(50_000).await;
    let late = |id: i64| run(id, NOW - 10_000 + id);
    store.write((0..1).map(late));
    loader.load_urgent().await.unwrap();
    drop(queue.drain());
    loader.load().await.unwrap();
    assert_eq!(queue.len(), 1, "overdue, queued and not here");
    store.write((1..20).map(late));
    loader.load_urgent().await.unwrap();
    // The earliest ten are here and late; the lost one is the last.
    let kept: Vec<Run> = queue.drain().into_iter().filter(|run| run.id < LogId(19)).collect();
    queue.push(kept);
    for _ in 0..COMPARE_EVERY {
        assert_eq!(queue.len(), 19);
        loader.load().await.unwrap();
    }
    assert_eq!(queue.len(), 20);
}

#[tokio::test]
async fn what_is_under_way_does_not_come_in_again() {
    let (store, queue, loader) = loader(50_000).await;
    store.write([run(1, NOW - 10_000), run(2, NOW - 10_000)]);
    loader.load_urgent().await.unwrap();
    let batch = queue.take(NOW, 1);
    assert_eq!(batch.runs.len(), 1);
    for _ in 0..COMPARE_EVERY {
        loader.load().await.unwrap();
    }
    assert_eq!(queue.len(), 1, "the database still says that both are queued here");
    drop(batch);
    loader.load().await.unwrap();
    assert_eq!(queue.len(), 2, "its dispatcher lost it");
}

#[tokio::test]
async fn rows_of_an_earlier_process_come_in_under_another_version() {
    let (store, queue, loader) = loader(50_000).await;
    let before = Run { version: 7, ..run(1, NOW) };
    store.runs.lock().unwrap().insert(before.id, Run { status: Status::Queued, ..before });
    loader.load_urgent().await.unwrap();
    let [run] = queue.take(NOW, 10).runs.try_into().unwrap();
    assert_eq!(run.version, 9, "returned, and claimed: a copy that the process may still have loses");
}

#[tokio::test]
async fn what_waited_says_so_when_it_goes_back() {
    let (store, queue, loader) = loader(50_000).await;
    store.write([run(1, NOW), Run { reason: Reason::NoExecutor, ..run(2, NOW) }, run(3, NOW)]);
    loader.load_urgent().await.unwrap();
    let batch = queue.take(NOW, 1);
    let task = crate::domain::task::test::task_of(crate::domain::task::TaskSpec::default());
    queue.blocked.block(batch.runs[0].clone(), &task, crate::domain::permit::Limit::Task, NOW);
    loader.give_back().await.unwrap();
    let reasons: Vec<Reason> = store.runs.lock().unwrap().values().map(|run| run.reason).collect();
    assert_eq!(reasons, [Reason::TaskLimit, Reason::NoExecutor, Reason::None]);
}

/// Its tenant's turn may come late. Promise 7: a node that stops loses nothing.
#[tokio::test]
async fn what_was_claimed_in_time_is_not_missed_by_the_next_node() {
    let (store, _, loader) = loader(50_000).await;
    let claimed = |id, queued_at| Run { status: Status::Queued, queued_at, ..fire(id, 40_000) };
    let rows = [claimed(1, NOW - 41_000), claimed(2, NOW - 1_000)];
    store.runs.lock().unwrap().extend(rows.map(|run| (run.id, run)));
    loader.give_back().await.unwrap();
    let rows = store.runs.lock().unwrap();
    let missed = |run: &Run| (run.status, crate::domain::missed::is_missed(run, NOW, 30_000));
    let missed: Vec<_> = rows.values().map(missed).collect();
    assert_eq!(missed, [(Status::Init, false), (Status::Init, true)], "the other one was missed before it was claimed");
}

/// A process that dies leaves behind what it had claimed in time and held up. Nobody was there for long before this one, so what
/// had been missed by then is missed.
#[tokio::test]
async fn what_was_held_up_by_a_process_that_died_is_not_missed_by_the_next_one() {
    let (store, _, loader) = loader(50_000).await;
    let claimed = |id, late_ms, queued_at| Run { status: Status::Queued, queued_at, ..fire(id, late_ms) };
    let rows = [claimed(1, 25_000, NOW - 26_000), claimed(2, 40_000, NOW - 41_000), claimed(3, 40_000, NOW - 1_000)];
    store.runs.lock().unwrap().extend(rows.map(|run| (run.id, run)));
    loader.load().await.unwrap();
    let later = |run: &Run| crate::domain::missed::is_missed(run, NOW + 20_000, 30_000);
    let missed: Vec<_> = store.runs.lock().unwrap().values().map(later).collect();
    assert_eq!(missed, [false, true, true]);
}

/// A row of a schedule that was due so long ago, ms.
fn fire(id: i64, late_ms: i64) -> Run {
    Run { trigger: Trigger::Schedule, ..run(id, NOW - late_ms) }
}

#[tokio::test]
async fn missed_runs_end_without_being_claimed_and_what_is_due_comes_in_at_once() {
    let (store, queue, loader) = loader(50_000).await;
    let skip = TaskSpec { misfire_strategy: MisfireStrategy::Skip, ..TaskSpec::default() };
    *store.task.lock().unwrap() = Some(Task { revision: fire(0, 0).revision, ..task_of(skip) });
    store.write((0..2_500).map(|id| fire(id, 60_000)));
    store.write((10_000..10_100).map(|id| fire(id, 0)));
    // Not missed, however late: what was started by hand.
    store.write([Run { trigger: Trigger::Manual, ..run(20_000, NOW - 90_000) }]);
    loader.load_urgent().await.unwrap();
    assert_eq!(queue.len(), 101);
    let rows = store.runs.lock().unwrap();
    let ended = rows.values().filter(|run| (run.status, run.reason) == (Status::Expired, Reason::MisfireSkipped));
    assert_eq!(ended.count(), 2_500);
}

/// Fires without a row stood for an earlier one; when they have theirs, and one of them is missed a moment later, nothing stands
/// for that one.
#[tokio::test]
async fn the_latest_missed_run_is_not_left_out_for_what_stood_for_earlier_ones() {
    let (store, queue, loader) = loader(50_000).await;
    let cron = "* * * * * ?".to_owned();
    let once = TaskSpec {
        misfire_strategy: MisfireStrategy::FireOnce,
        schedule: ScheduleKind::Cron,
        cron,
        ..TaskSpec::default()
    };
    let task = |next_fire_at| Some(Task { revision: fire(0, 0).revision, next_fire_at, ..task_of(once.clone()) });
    *store.task.lock().unwrap() = task(NOW - 40_000);
    store.write([fire(1, 60_000)]);
    loader.load_urgent().await.unwrap();
    assert_eq!((store.runs.lock().unwrap()[&LogId(1)].status, queue.len()), (Status::Expired, 0));
    *store.task.lock().unwrap() = task(NOW);
    store.write([fire(2, 29_950)]);
    store.passed_ms.store(100, Ordering::Relaxed);
    loader.load_urgent().await.unwrap();
    assert_eq!((store.runs.lock().unwrap()[&LogId(2)].status, queue.len()), (Status::Queued, 1));
}

#[tokio::test]
async fn missed_runs_whose_policy_is_not_clear_are_claimed() {
    let (store, queue, loader) = loader(50_000).await;
    store.write((0..1_500).map(|id| fire(id, 60_000)));
    loader.load_urgent().await.unwrap();
    assert_eq!(queue.len(), 1_500, "their task is not known");
}
