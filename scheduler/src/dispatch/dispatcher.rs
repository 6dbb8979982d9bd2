//! One batch of due runs → executors. A refusal or an unreachable executor means another one at
//! once; only when none is left does the failure strategy speak.
//!
//! The steps are in files of their own: runs that must no longer run (`judge`), runs that must wait for
//! others (`admit`), runs over their tenant's quota (`rate_limit`), the executor that takes a run (`choose`), the step
//! to DISPATCHED (here), the messages (`send`).

use super::outgoing::{Admitted, OutgoingRun, RoutedRun, UnroutedRun};
use super::{Canceller, EndedRuns, TaskCache, Transport};
use crate::cluster::{Clock, Membership, Registry, RuleBook};
use crate::domain::permit::Limit;
use crate::domain::routing::{CandidateLists, NoExecutor, Rings};
use crate::domain::{AppId, ExecutorId, IdSource, LogId, Reason, Run, Status, TenantId, Transition, failure};
use crate::metrics::METRICS;
use crate::queue::{Batch, RunQueue, UnderWay};
use crate::store::{
    ClusterStore, DispatchStore, OutcomeStore, PermitStore, PlanStore, RuleStore, RunDispatch, StoreError,
};
use dashmap::DashMap;
use futures_util::FutureExt;
use futures_util::future::{join, join_all};
use std::collections::{BTreeMap, HashMap};
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex};
use tokio::sync::Semaphore;

/// Distances of the dispatcher, ms.
#[derive(Debug, Clone, Copy)]
pub struct DispatchSettings {
    /// How long before its due time a run is dispatched.
    pub lead_ms: i64,
    /// How long after the step to DISPATCHED an executor may accept the dispatch.
    pub accept_window_ms: i64,
    /// A fire that was claimed later than this after its due time was missed.
    pub misfire_after_ms: i64,
    /// Between two looks at what waits for a permit.
    pub waiting_ms: i64,
}

/// What may go to a plain executor stays QUEUED until so long before it is due, ms: nothing holds it early for the node. Long
/// enough to choose, record and hand it to the sender; and shorter than what a stop allows for what is on its way.
pub const PLAIN_LEAD_MS: i64 = 200;

/// Executors tried for one run in one pass at most.
const ROUNDS_MAX: usize = 8;

/// A run that found no executor is tried again after this long, until it is due. ms.
const LOOK_AGAIN_MS: i64 = 250;

/// Runs of a node that wait for executors in memory at most: a quarter of the default queue.
const WAITING_MAX: usize = 12_500;

/// A run that waits for an executor and does not fit into memory is claimed again after this long. ms.
const PUT_OFF_MS: i64 = 10_000;

/// For so long after its due time it is no failure that all executors of a run are going. ms.
const GOING_MS: i64 = 15_000;

/// Batches that ask for permits at a time: what a node holds up more often than this only waits for itself.
const ASKING_MAX: usize = 4;

/// After the database failed, the batch is tried again after this long. ms.
const STORE_PAUSE_MS: i64 = 200;

/// A message that is sent now has arrived after this long. ms.
const ARRIVES_MS: i64 = 500;

/// Marks of unknown effect remembered at most.
const UNCONFIRMED_MAX: usize = 100_000;

/// What a step could not do because the database failed: its runs, which are tried again.
pub(super) type Failed = (Vec<Run>, StoreError);

/// The dispatcher of one node.
pub struct Dispatcher<S: ?Sized> {
    pub(super) store: Arc<S>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) membership: Arc<Membership>,
    pub(super) registry: Arc<Registry>,
    pub(super) rules: Arc<RuleBook>,
    pub(super) transport: Arc<dyn Transport>,
    pub(super) canceller: Arc<Canceller<S>>,
    pub(super) queue: Arc<RunQueue>,
    pub(super) ids: Arc<IdSource>,
    pub(super) tasks: Arc<TaskCache<S>>,
    pub(super) ended: Arc<EndedRuns>,
    pub(super) settings: DispatchSettings,
    /// Bounds the batches that ask for permits.
    asking: Semaphore,
    /// (log, version) whose mark ended in an error, and when it was first tried, ms.
    unconfirmed: DashMap<(LogId, i64), i64>,
    /// Hash rings of earlier batches.
    pub(super) rings: Mutex<Rings>,
    /// Candidates of earlier batches.
    pub(super) lists: Arc<CandidateLists>,
    /// Runs given to executors (by id) since the heartbeat (ms) beside the number.
    pub(super) given: Mutex<HashMap<ExecutorId, (i64, i64)>>,
}

/// The parts that a dispatcher works with.
pub struct DispatchParts<S: ?Sized> {
    /// The database.
    pub store: Arc<S>,
    /// Cluster time.
    pub clock: Arc<dyn Clock>,
    /// This node.
    pub membership: Arc<Membership>,
    /// Online executors.
    pub registry: Arc<Registry>,
    /// Bounds and windows.
    pub rules: Arc<RuleBook>,
    /// The way to executors.
    pub transport: Arc<dyn Transport>,
    /// Stops runs that others cover.
    pub canceller: Arc<Canceller<S>>,
    /// Where undecided runs wait.
    pub queue: Arc<RunQueue>,
    /// Names shards.
    pub ids: Arc<IdSource>,
    /// Definitions.
    pub tasks: Arc<TaskCache<S>>,
    /// Told of runs that end here.
    pub ended: Arc<EndedRuns>,
}

impl<S: ClusterStore + DispatchStore + PlanStore + PermitStore + OutcomeStore + RuleStore> Dispatcher<S> {
    /// Over the node's parts.
    pub fn new(parts: DispatchParts<S>, settings: DispatchSettings) -> Self {
        let DispatchParts { store, clock, membership, registry, rules, transport, canceller, queue, ids, tasks, ended } =
            parts;
        Self {
            store,
            clock,
            membership,
            registry,
            rules,
            transport,
            canceller,
            queue,
            ids,
            tasks,
            ended,
            settings,
            asking: Semaphore::new(ASKING_MAX),
            unconfirmed: DashMap::new(),
            rings: Mutex::default(),
            lists: Arc::default(),
            given: Mutex::default(),
        }
    }

    /// Dispatches a batch. When the database fails, what was not decided goes back into the
    /// queue: the rows are still this node's, and a step that did commit is recognised when it is
    /// repeated.
    pub async fn dispatch(&self, runs: Vec<Run>) {
        self.dispatch_batch(Batch::from(runs), ()).await;
    }

    /// The same with what the batch holds: the permit to work on the database until the runs are
    /// marked, and the count of each tenant's runs under way until that tenant's are sent. So an
    /// executor that does not answer keeps up only its own tenant.
    pub async fn dispatch_batch<P>(&self, batch: Batch, permit: P) {
        let Batch { runs, mut under_way } = batch;
        let runs = self.hold_back(runs, &mut under_way);
        let outgoing_runs = match self.judge(runs).await {
            Ok(outgoing_runs) => outgoing_runs,
            Err((runs, error)) => return self.postpone(runs, &error),
        };
        let (bounded, free) = self.split_bounded(outgoing_runs);
        let counted = under_way.part(bounded.iter().map(|outgoing| outgoing.run.id));
        join(self.dispatch_admitted(free, under_way, permit), self.dispatch_bounded(bounded, counted)).await;
    }

    /// Puts back what may go to a plain executor and is not due at once; answers the others.
    fn hold_back(&self, runs: Vec<Run>, under_way: &mut UnderWay) -> Vec<Run> {
        if !self.registry.has_plain() {
            return runs;
        }
        let from = self.clock.now_ms() + PLAIN_LEAD_MS;
        let mut fleets: HashMap<(TenantId, AppId), bool> = HashMap::new();
        let mut is_early = |run: &Run| {
            let app = (run.tenant_id, run.app_id);
            run.due_time > from && *fleets.entry(app).or_insert_with(|| self.registry.is_plain(app))
        };
        let (early, now): (Vec<Run>, Vec<Run>) = runs.into_iter().partition(|run| is_early(run));
        if !early.is_empty() {
            let held = under_way.part(early.iter().map(|run| run.id));
            let at = |run: Run| (run.due_time - PLAIN_LEAD_MS + self.settings.lead_ms, run);
            self.queue.push_at(early.into_iter().map(at));
            drop(held);
        }
        now
    }

    /// Runs that may only run so many at once: they ask for rows that other nodes may hold, so nothing waits for them that
    /// needs no such row, neither the rest of their batch nor the next batches.
    async fn dispatch_bounded(&self, bounded: Vec<OutgoingRun>, mut under_way: UnderWay) {
        if bounded.is_empty() {
            return;
        }
        // Fails only when the semaphore is closed, which never happens; the loader would find their rows again.
        let Ok(asking) = self.asking.acquire().await else { return };
        match self.admit(bounded).await {
            Ok(Admitted { ready, held_up, limits }) => {
                let held_back = under_way.part(held_up.iter().map(|outgoing| outgoing.run.id));
                // What has its permit does not wait for executors at which the others have runs stopped.
                let go = self.dispatch_admitted(ready, under_way, asking);
                join(go, self.hold_up(held_up, &limits, held_back)).await;
            }
            Err((runs, error)) => self.postpone(runs, &error),
        }
    }

    /// The rest of the way of runs that may run now.
    async fn dispatch_admitted<P>(&self, admitted: Vec<OutgoingRun>, mut under_way: UnderWay, permit: P) {
        let outgoing_runs = match self.take_rate_slots(admitted).await {
            Ok(outgoing_runs) => outgoing_runs,
            Err((runs, error)) => return self.postpone(runs, &error),
        };
        if outgoing_runs.is_empty() {
            return;
        }
        // Executors that must be probed first may not answer: probing happens without the permit.
        let (asked_first, direct): (Vec<_>, Vec<_>) = outgoing_runs.into_iter().partition(OutgoingRun::asks_first);
        let dispatched = match self.chosen_and_dispatched(direct).await {
            Ok(dispatched) => dispatched,
            Err((runs, error)) => {
                self.postpone(runs, &error);
                Vec::new()
            }
        };
        drop(permit);
        let mut by_tenant: BTreeMap<TenantId, (Vec<RoutedRun>, Vec<OutgoingRun>)> = BTreeMap::new();
        for routed in dispatched {
            by_tenant.entry(routed.outgoing.run.tenant_id).or_default().0.push(routed);
        }
        for outgoing in asked_first {
            by_tenant.entry(outgoing.run.tenant_id).or_default().1.push(outgoing);
        }
        let deliveries: Vec<_> = by_tenant
            .into_iter()
            .map(|(tenant, (dispatched, asked_first))| {
                let all = dispatched.iter().map(|routed| &routed.outgoing).chain(&asked_first);
                // Shards count as their parent.
                let under_way = under_way.part(all.flat_map(|outgoing| [outgoing.run.id, outgoing.run.parent_id]));
                async move {
                    let count = dispatched.len() + asked_first.len();
                    let both = join(self.deliver(dispatched), self.ask_and_deliver(asked_first));
                    // One tenant's fault leaves the others' messages alone.
                    if AssertUnwindSafe(both).catch_unwind().await.is_err() {
                        tracing::error!(
                            tenant = tenant.0,
                            runs = count,
                            "the dispatcher panicked while sending; the reaper decides"
                        );
                    }
                    drop(under_way);
                }
            })
            .collect();
        // What was not marked is on its way no longer.
        drop(under_way);
        join_all(deliveries).await;
    }

    async fn ask_and_deliver(&self, outgoing_runs: Vec<OutgoingRun>) {
        if outgoing_runs.is_empty() {
            return;
        }
        match self.chosen_and_dispatched(outgoing_runs).await {
            Ok(dispatched) => self.deliver(dispatched).await,
            Err((runs, error)) => self.postpone(runs, &error),
        }
    }

    /// Sends; what was refused or did not arrive goes to another executor at once.
    async fn deliver(&self, mut dispatched: Vec<RoutedRun>) {
        for round in 1.. {
            let refused = self.send_all(dispatched).await;
            if refused.is_empty() {
                return;
            }
            let outgoing_runs = self.still_current(refused).await;
            if outgoing_runs.is_empty() {
                return;
            }
            if round >= ROUNDS_MAX {
                return self.no_executor_took(outgoing_runs.into_iter().map(UnroutedRun::refused).collect()).await;
            }
            dispatched = match self.chosen_and_dispatched(outgoing_runs).await {
                Ok(dispatched) => dispatched,
                Err((runs, error)) => return self.postpone(runs, &error),
            };
        }
    }

    async fn chosen_and_dispatched(&self, outgoing_runs: Vec<OutgoingRun>) -> Result<Vec<RoutedRun>, Failed> {
        let routed = self.choose(outgoing_runs).await?;
        self.mark_dispatched(routed).await
    }

    pub(super) fn postpone(&self, runs: Vec<Run>, error: &StoreError) {
        tracing::warn!(%error, runs = runs.len(), "runs wait: the database failed while they were dispatched");
        let at = self.clock.now_ms() + self.settings.lead_ms + STORE_PAUSE_MS;
        self.queue.push_at(runs.into_iter().map(|run| (at, run)));
    }

    /// What was refused goes to another executor only if its definition is still the current one:
    /// an edit that came meanwhile has already named the run as one that it could not reach.
    async fn still_current(&self, outgoing_runs: Vec<OutgoingRun>) -> Vec<OutgoingRun> {
        let runs: Vec<Run> = outgoing_runs.iter().map(|outgoing| outgoing.run.clone()).collect();
        let Ok(tasks) = self.tasks.of(&runs).await else { return outgoing_runs };
        let (current, outdated): (Vec<_>, Vec<_>) = outgoing_runs
            .into_iter()
            .partition(|p| tasks.get(p.run.task_id).is_some_and(|task| task.revision == p.run.revision));
        if !outdated.is_empty() {
            tracing::info!(runs = outdated.len(), "refused runs of an old definition go no further");
            self.settle_outdated(outdated.into_iter().map(|outgoing| outgoing.run).collect()).await;
        }
        current
    }

    /// Marks DISPATCHED; what another changed meanwhile drops out.
    async fn mark_dispatched(&self, routed: Vec<RoutedRun>) -> Result<Vec<RoutedRun>, Failed> {
        let (mut ready, open): (Vec<_>, Vec<_>) = routed.into_iter().partition(|a| a.outgoing.dispatched_at.is_some());
        let now = self.clock.now_ms();
        let items: Vec<RunDispatch> = open
            .iter()
            .map(|RoutedRun { outgoing, executor }| RunDispatch {
                id: outgoing.run.id,
                version: outgoing.run.version,
                executor_id: executor.id,
                dispatched_at: self.marked_since((outgoing.run.id, outgoing.run.version), now),
                refused: outgoing.refused_attempt(),
            })
            .collect();
        match self.store.dispatch(self.membership.id(), &items).await {
            Ok(mine) => {
                METRICS.dispatch_conflicts.add(items.len().saturating_sub(mine.len()) as u64);
                for item in &items {
                    self.unconfirmed.remove(&(item.id, item.version));
                }
                let dispatched = open.into_iter().zip(&items).filter(|(_, item)| mine.contains(&item.id));
                ready.extend(dispatched.map(|(mut a, item)| {
                    a.outgoing.run.version += 1;
                    a.outgoing.run.attempt += 1;
                    a.outgoing.run.status = Status::Dispatched;
                    a.outgoing.run.executor_id = a.executor.id;
                    a.outgoing.dispatched_at = Some(item.dispatched_at);
                    a
                }));
                Ok(ready)
            }
            Err(error) => {
                if self.unconfirmed.len() > UNCONFIRMED_MAX {
                    self.unconfirmed.clear();
                }
                // Fresh shards are marked and must be sent now or wait for the reaper.
                drop(self.send_all(ready).await);
                Err((open.into_iter().map(|a| a.outgoing.run).collect(), error))
            }
        }
    }

    /// The acceptance window begins with the first try to mark: it may have been committed, and others count from there. When
    /// no message would be accepted by that any more, or the clock has been set back, it begins anew: a mark that was committed
    /// then is not this one, and is the reaper's.
    fn marked_since(&self, mark: (LogId, i64), now: i64) -> i64 {
        let mut since = self.unconfirmed.entry(mark).or_insert(now);
        if now < *since || now + ARRIVES_MS >= *since + self.settings.accept_window_ms {
            *since = now;
        }
        *since
    }

    /// What no executor took: it waits while there is time, then the failure strategy speaks. What
    /// waits for an executor of its app is tried again when one comes.
    pub(super) async fn no_executor_took(&self, unrouted: Vec<UnroutedRun>) {
        let now = self.clock.now_ms();
        // Just started, or back after an outage: executors have not had the time to be heard.
        let unheard = !self.membership.is_settled();
        let (mut waiting, mut changes) = (Vec::new(), Vec::new());
        let (mut permits, mut in_order) = (Vec::new(), Vec::new());
        let mut room = WAITING_MAX.saturating_sub(self.queue.blocked.waiting_for_executors());
        for unrouted in unrouted {
            let reason = unrouted.reason();
            let UnroutedRun { outgoing: OutgoingRun { run, task, has_permit, refused_by, .. }, why } = unrouted;
            if has_permit {
                if task.blocks_app() { &mut in_order } else { &mut permits }.push(run.id);
            }
            let until = failure::waits_for_executor_until(&task.spec, &run);
            if reason == Reason::NoExecutor && run.status == Status::Queued && now < until {
                let fleet = self.registry.fleet(run.tenant_id, run.app_id, now);
                if fleet.is_some_and(|fleet| self.lists.of(&fleet, task.handler(), &task.tags).is_ok()) {
                    // It has come since, and will not be announced again.
                    waiting.push((now + self.settings.lead_ms + LOOK_AGAIN_MS, run));
                    continue;
                }
                if room > 0 {
                    room -= 1;
                    self.queue.blocked.block(run, &task, Limit::Executor, now);
                    continue;
                }
                if now < IdSource::made_at(run.id).max(run.fire_time) + task.spec.no_executor_timeout_ms {
                    changes.push(put_off(run, &why, now));
                    continue;
                }
            }
            if run.status == Status::Queued && (now < run.due_time || unheard) {
                waiting.push((now + self.settings.lead_ms + LOOK_AGAIN_MS, run));
                continue;
            }
            // Executors that have died, or are about to end, are routed to until a heartbeat is missed.
            let are_going = !refused_by.is_empty() && refused_by.iter().all(|id| self.registry.is_avoided(*id, now));
            let patience = task.spec.no_executor_timeout_ms.min(GOING_MS);
            let change = if are_going && now < run.due_time + patience {
                Transition::of(&run, Status::Retry, reason)
            } else {
                Transition::after_failure(&task, &run, reason, now)
            };
            changes.push((run, Transition { message: why.to_string(), ..change }));
        }
        for (permits, in_order) in [(permits, false), (in_order, true)] {
            if let Err(error) = self.store.release(&permits, in_order).await {
                tracing::warn!(%error, runs = permits.len(), "permits not given back; they end with their runs");
            }
        }
        self.queue.push_at(waiting);
        self.change(changes).await;
    }

    /// Steps out of the queue. When the database fails, their runs come back into it and are
    /// judged again: nothing else would look at them.
    pub(super) async fn change(&self, steps: Vec<(Run, Transition)>) {
        let (runs, changes): (Vec<_>, Vec<_>) = steps.into_iter().unzip();
        if let Err(error) = self.store.change(&changes).await {
            return self.postpone(runs, &error);
        }
        let ended = changes.iter().filter(|change| change.to.is_terminal());
        self.ended.note(ended.map(|change| change.id));
    }
}

/// Leaves a run to the database for a while: more wait for executors than fit into memory.
fn put_off(run: Run, why: &NoExecutor, now: i64) -> (Run, Transition) {
    let to = if run.attempt > 0 || run.failures > 0 { Status::Retry } else { Status::Init };
    let (message, due_time) = (why.to_string(), now + PUT_OFF_MS);
    let change = Transition { due_time, message, ..Transition::of(&run, to, Reason::NoExecutor) };
    (run, change)
}
