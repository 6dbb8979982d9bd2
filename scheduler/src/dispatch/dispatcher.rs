//! One batch of due runs → executors. A refusal or an unreachable executor means another one at
//! once; only when none is left does the failure strategy speak.

use super::parcel::{Addressed, Parcel, item, refused, takes_over, why};
use super::{SendError, TaskCache, Transport};
use crate::cluster::{Clock, Membership, Registry};
use crate::domain::failure::{self, Attempt};
use crate::domain::task::Routing;
use crate::domain::{Executor, IdSource, Reason, Run, Status, routing};
use crate::queue::{Batch, RunQueue};
use crate::store::{Change, HandOver, HandStore, PlanStore, Result, StoreError, StoreErrorKind};
use carillon_protocol::{Dispatch, DispatchAck, DispatchOutcome};
use dashmap::DashMap;
use futures_util::FutureExt;
use futures_util::future::join_all;
use std::collections::{BTreeMap, HashMap};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

/// Distances of the dispatcher, ms.
#[derive(Debug, Clone, Copy)]
pub struct DispatchSettings {
    /// How long before its due time a run is handed over.
    pub lead_ms: i64,
    /// How long after the mark an executor may accept the hand-over.
    pub accept_window_ms: i64,
}

/// Executors tried for one run in one pass at most.
const ROUNDS_MAX: usize = 8;

/// A run that found no executor is looked at again after this long, until it is due. ms.
const LOOK_AGAIN_MS: i64 = 250;

/// After the database failed, the batch is tried again after this long. ms.
const STORE_PAUSE_MS: i64 = 200;

/// An executor that could not be reached is left out of routing for this long. ms.
const AVOID_MS: i64 = 5_000;

/// Marks of unknown effect remembered at most.
const UNCONFIRMED_MAX: usize = 100_000;

/// Pause before a message whose fate is unknown is repeated to the same executor.
const RESEND_PAUSE: Duration = Duration::from_millis(200);

/// The dispatcher of one node.
pub struct Dispatcher<S: ?Sized> {
    store: Arc<S>,
    clock: Arc<dyn Clock>,
    membership: Arc<Membership>,
    registry: Arc<Registry>,
    transport: Arc<dyn Transport>,
    queue: Arc<RunQueue>,
    ids: Arc<IdSource>,
    tasks: Arc<TaskCache<S>>,
    settings: DispatchSettings,
    /// (log, version) whose mark ended in an error, and when it was first tried, ms.
    unconfirmed: DashMap<(i64, i64), i64>,
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
    /// The way to them.
    pub transport: Arc<dyn Transport>,
    /// Where undecided runs wait.
    pub queue: Arc<RunQueue>,
    /// Names shards.
    pub ids: Arc<IdSource>,
    /// Definitions.
    pub tasks: Arc<TaskCache<S>>,
}

impl<S: HandStore + PlanStore + ?Sized> Dispatcher<S> {
    /// Over the node's parts.
    pub fn new(parts: DispatchParts<S>, settings: DispatchSettings) -> Self {
        let DispatchParts { store, clock, membership, registry, transport, queue, ids, tasks } = parts;
        Self { store, clock, membership, registry, transport, queue, ids, tasks, settings, unconfirmed: DashMap::new() }
    }

    /// Hands a batch over. When the database fails, what was not decided goes back into the
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
        let parcels = match self.prepare(runs).await {
            Ok(parcels) => parcels,
            Err((runs, error)) => return self.postpone(runs, &error),
        };
        if parcels.is_empty() {
            return;
        }
        let addressed = self.address(parcels).await;
        let marked = match self.mark(addressed).await {
            Ok(marked) => marked,
            Err((runs, error)) => return self.postpone(runs, &error),
        };
        drop(permit);
        let mut by_tenant: BTreeMap<i64, Vec<Addressed>> = BTreeMap::new();
        for addressed in marked {
            by_tenant.entry(addressed.parcel.run.tenant_id).or_default().push(addressed);
        }
        let deliveries: Vec<_> = by_tenant
            .into_iter()
            .map(|(tenant, marked)| {
                let under_way = under_way.part(tenant, marked.len());
                async move {
                    let count = marked.len();
                    // One tenant's fault leaves the others' messages alone.
                    if AssertUnwindSafe(self.deliver(marked)).catch_unwind().await.is_err() {
                        tracing::error!(
                            tenant,
                            runs = count,
                            "the dispatcher panicked over sending; the reaper decides"
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

    /// Sends; what was refused or did not arrive goes to another executor at once.
    async fn deliver(&self, mut marked: Vec<Addressed>) {
        for round in 1.. {
            let refused = self.send_all(marked).await;
            if refused.is_empty() {
                return;
            }
            let parcels = self.still_current(refused).await;
            if parcels.is_empty() {
                return;
            }
            if round >= ROUNDS_MAX {
                return self.nobody_took(parcels).await;
            }
            let addressed = self.address(parcels).await;
            marked = match self.mark(addressed).await {
                Ok(marked) => marked,
                Err((runs, error)) => return self.postpone(runs, &error),
            };
        }
    }

    fn postpone(&self, runs: Vec<Run>, error: &StoreError) {
        tracing::warn!(%error, runs = runs.len(), "runs wait: the database failed while they were handed over");
        let at = self.clock.now_ms() + self.settings.lead_ms + STORE_PAUSE_MS;
        self.queue.push_at(runs.into_iter().map(|run| (at, run)));
    }

    /// Sorts out what is no longer to run.
    async fn prepare(&self, runs: Vec<Run>) -> std::result::Result<Vec<Parcel>, (Vec<Run>, StoreError)> {
        let tasks = match self.tasks.of(&runs).await {
            Ok(tasks) => tasks,
            Err(error) => return Err((runs, error)),
        };
        let now = self.clock.now_ms();
        let (mut parcels, mut ends) = (Vec::with_capacity(runs.len()), Vec::new());
        let mut reopened: HashMap<i64, i64> = HashMap::new();
        for run in runs {
            let end = match tasks.get(&run.task_id) {
                None => Change::of(&run, Status::Cancelled, Reason::TaskDeleted),
                // Edited since: the edit has cancelled the row and this is a copy, which loses at
                // the version; or an attempt of the old definition came back after the edit, and
                // is not repeated; its instant may be the new definition's.
                Some(task) if task.revision != run.revision => {
                    if takes_over(task, run.reason) {
                        reopened.entry(task.id).and_modify(|at| *at = run.fire_time.min(*at)).or_insert(run.fire_time);
                    }
                    Change::of(&run, Status::Cancelled, Reason::TaskEdited)
                }
                Some(task) if task.is_expired(&run, now) => Change {
                    message: format!("{} ms after its fire time", now - run.fire_time),
                    ..Change::of(&run, Status::Expired, Reason::Expired)
                },
                Some(task) => {
                    parcels.push(Parcel { run, task: Arc::clone(task), refused_by: Vec::new(), marked_at: None });
                    continue;
                }
            };
            ends.push((run, Change { finished_at: now, ..end }));
        }
        self.change(ends).await;
        for (task, from) in reopened {
            if let Some(task) = tasks.get(&task)
                && let Err(error) = self.store.reopen(task, from, now).await
            {
                tracing::warn!(%error, task = task.id, from, "a fire given up by an old definition is not taken over");
            }
        }
        Ok(parcels)
    }

    /// What was refused goes to another executor only if its definition is still the current one:
    /// an edit that came meanwhile has already named the run as one that it could not reach.
    async fn still_current(&self, parcels: Vec<Parcel>) -> Vec<Parcel> {
        let runs: Vec<Run> = parcels.iter().map(|parcel| parcel.run.clone()).collect();
        let Ok(tasks) = self.tasks.of(&runs).await else { return parcels };
        let now = self.clock.now_ms();
        let (current, outdated): (Vec<_>, Vec<_>) = parcels
            .into_iter()
            .partition(|p| tasks.get(&p.run.task_id).is_some_and(|task| task.revision == p.run.revision));
        let back = |parcel: Parcel| {
            let change = Change { finished_at: 0, ..Change::of(&parcel.run, Status::Retry, Reason::Undelivered) };
            (parcel.run, change)
        };
        if !outdated.is_empty() {
            tracing::info!(runs = outdated.len(), now, "refused runs of an old definition go no further");
            self.change(outdated.into_iter().map(back).collect()).await;
        }
        current
    }

    /// Chooses an executor for each; what finds none waits until it is due, then fails.
    async fn address(&self, parcels: Vec<Parcel>) -> Vec<Addressed> {
        let now = self.clock.now_ms();
        let mut addressed = Vec::with_capacity(parcels.len());
        let mut stranded = Vec::new();
        let mut online: HashMap<(i64, i64), Vec<Arc<Executor>>> = HashMap::new();
        // Neighbouring runs are mostly of the same task: its candidates are worked out once.
        let mut fitting: Option<(i64, Vec<Arc<Executor>>)> = None;
        for parcel in parcels {
            let key = (parcel.task.tenant_id, parcel.task.app_id);
            let online = online.entry(key).or_insert_with(|| self.registry.of_app(key.0, key.1, now));
            let fresh = parcel.refused_by.is_empty();
            if !fresh || fitting.as_ref().is_none_or(|(task, _)| *task != parcel.task.id) {
                let found =
                    routing::candidates(online, &parcel.task.spec.handler, &parcel.task.spec.tags, &parcel.refused_by);
                fitting = fresh.then(|| (parcel.task.id, found.clone()));
                self.choose(parcel, &found, &mut addressed, &mut stranded).await;
            } else if let Some((_, found)) = &fitting {
                self.choose(parcel, found, &mut addressed, &mut stranded).await;
            }
        }
        self.nobody_took(stranded).await;
        addressed
    }

    async fn choose(
        &self,
        parcel: Parcel,
        fitting: &[Arc<Executor>],
        addressed: &mut Vec<Addressed>,
        stranded: &mut Vec<Parcel>,
    ) {
        if parcel.run.is_parent() && !fitting.is_empty() {
            let parent = parcel.run.clone();
            match self.shard(parcel, fitting).await {
                Ok(shards) => addressed.extend(shards),
                Err(error) if error.kind() == StoreErrorKind::Duplicate => {
                    let change = Change {
                        message: "a run of an earlier definition holds this fire".to_owned(),
                        finished_at: self.clock.now_ms(),
                        ..Change::of(&parent, Status::Cancelled, Reason::TaskEdited)
                    };
                    self.change(vec![(parent, change)]).await;
                }
                Err(error) => self.postpone(vec![parent], &error),
            }
            return;
        }
        let seed = (parcel.run.id as u64) ^ ((parcel.run.attempt as u64) << 48);
        match routing::pick(fitting, seed) {
            Some(executor) => addressed.push(Addressed { parcel, executor }),
            None => stranded.push(parcel),
        }
    }

    /// One shard for every executor that fits. They are handed over in the parent's transaction;
    /// [`Dispatcher::mark`] leaves them as they are.
    async fn shard(&self, parcel: Parcel, fitting: &[Arc<Executor>]) -> Result<Vec<Addressed>> {
        let Parcel { run: parent, task, .. } = parcel;
        debug_assert_eq!(task.spec.routing, Routing::Sharding);
        let now = self.clock.now_ms();
        let total = i32::try_from(fitting.len()).unwrap_or(i32::MAX);
        let shards: Vec<(Run, i64)> = (0..total)
            .zip(fitting)
            .map(|(index, executor)| {
                let run = Run {
                    id: self.ids.next(now),
                    version: 1,
                    parent_id: parent.id,
                    shard_index: index,
                    shard_total: total,
                    attempt: 1,
                    failures: 0,
                    status: Status::Dispatched,
                    reason: Reason::None,
                    ..parent.clone()
                };
                (run, executor.id)
            })
            .collect();
        if !self.store.hand_over_shards(self.membership.id(), &parent, &shards, now).await? {
            return Ok(Vec::new());
        }
        let address = |((run, _), executor): ((Run, i64), &Arc<Executor>)| Addressed {
            parcel: Parcel { run, task: Arc::clone(&task), refused_by: Vec::new(), marked_at: Some(now) },
            executor: Arc::clone(executor),
        };
        Ok(shards.into_iter().zip(fitting).map(address).collect())
    }

    /// Marks DISPATCHED; what another changed meanwhile drops out.
    async fn mark(&self, addressed: Vec<Addressed>) -> std::result::Result<Vec<Addressed>, (Vec<Run>, StoreError)> {
        let (mut ready, open): (Vec<_>, Vec<_>) = addressed.into_iter().partition(|a| a.parcel.marked_at.is_some());
        let now = self.clock.now_ms();
        let items: Vec<HandOver> = open
            .iter()
            .map(|a| HandOver { id: a.parcel.run.id, version: a.parcel.run.version, executor_id: a.executor.id })
            .collect();
        // The acceptance window begins with the first try to mark: it may have been committed,
        // and others count from there.
        let tries: Vec<i64> = items.iter().map(|i| *self.unconfirmed.entry((i.id, i.version)).or_insert(now)).collect();
        match self.store.hand_over(self.membership.id(), &items, now).await {
            Ok(mine) => {
                for item in &items {
                    self.unconfirmed.remove(&(item.id, item.version));
                }
                let marked = open.into_iter().zip(tries).filter(|(a, _)| mine.contains(&a.parcel.run.id));
                ready.extend(marked.map(|(mut a, first_try)| {
                    a.parcel.run.version += 1;
                    a.parcel.run.attempt += 1;
                    a.parcel.run.status = Status::Dispatched;
                    a.parcel.marked_at = Some(first_try);
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
                Err((open.into_iter().map(|a| a.parcel.run).collect(), error))
            }
        }
    }

    /// Sends to all executors at once; answers what nobody has taken yet.
    async fn send_all(&self, marked: Vec<Addressed>) -> Vec<Parcel> {
        let mut by_executor: HashMap<i64, (Arc<Executor>, Vec<Parcel>)> = HashMap::new();
        for Addressed { parcel, executor } in marked {
            by_executor.entry(executor.id).or_insert_with(|| (executor, Vec::new())).1.push(parcel);
        }
        let mut messages = Vec::new();
        for (executor, mut parcels) in by_executor.into_values() {
            while !parcels.is_empty() {
                let rest = parcels.split_off(parcels.len().min(carillon_protocol::DISPATCH_ITEMS_MAX));
                messages.push(self.send(Arc::clone(&executor), parcels));
                parcels = rest;
            }
        }
        join_all(messages).await.into_iter().flatten().collect()
    }

    /// Sends one message; answers what must go to another executor.
    async fn send(&self, executor: Arc<Executor>, mut parcels: Vec<Parcel>) -> Vec<Parcel> {
        let window = self.settings.accept_window_ms;
        let accept_until = |parcel: &Parcel| parcel.marked_at.unwrap_or(0) + window;
        let mut may_have_arrived = false;
        loop {
            let now = self.clock.now_ms();
            let before = parcels.len();
            parcels.retain(|parcel| now < accept_until(parcel));
            if parcels.len() < before {
                // This process was paused, or the executor never answered: others may act on
                // these rows by now.
                let runs = before - parcels.len();
                tracing::warn!(executor = executor.id, runs, "hand-over not confirmed in time; the reaper decides");
            }
            if parcels.is_empty() {
                return parcels;
            }
            let message = Dispatch {
                executor_id: executor.id,
                cluster_time_us: self.clock.now_us(),
                items: parcels.iter().map(|parcel| item(parcel, accept_until(parcel))).collect(),
            };
            match self.transport.dispatch(&executor, &message).await {
                Ok(ack) => return self.sort_out(&executor, parcels, &ack).await,
                // Once it may have arrived, a later refusal says nothing about the first message.
                Err(error) if may_have_arrived || matches!(error, SendError::Unknown(_)) => {
                    may_have_arrived = true;
                    tracing::warn!(executor = executor.id, %error, "hand-over unconfirmed; repeating it");
                    self.registry.avoid(executor.id, self.clock.now_ms() + AVOID_MS);
                    tokio::time::sleep(RESEND_PAUSE).await;
                }
                Err(error) => {
                    tracing::warn!(executor = executor.id, address = executor.address, %error, "executor takes nothing; trying another");
                    self.registry.avoid(executor.id, self.clock.now_ms() + AVOID_MS);
                    return refused(parcels, executor.id);
                }
            }
        }
    }

    async fn sort_out(&self, executor: &Executor, parcels: Vec<Parcel>, ack: &DispatchAck) -> Vec<Parcel> {
        let mut others = Vec::new();
        let mut cancelled = Vec::new();
        for (parcel, outcome) in parcels.into_iter().zip(&ack.outcomes) {
            match outcome {
                DispatchOutcome::Accepted | DispatchOutcome::Duplicate => {}
                DispatchOutcome::Cancelled => {
                    cancelled.push(Change::of(&parcel.run, Status::Cancelled, Reason::TaskEdited));
                }
                refusal => {
                    if *refusal == DispatchOutcome::ShuttingDown {
                        self.registry.avoid(executor.id, self.clock.now_ms() + AVOID_MS);
                    }
                    tracing::debug!(log = parcel.run.id, executor = executor.id, ?refusal, "run refused");
                    others.push(parcel);
                }
            }
        }
        // Whoever cancelled makes the same step; this one counts when that one died.
        if let Err(error) = self.store.change(&cancelled).await {
            tracing::warn!(%error, runs = cancelled.len(), "cancelled runs not marked here");
        }
        refused(others, executor.id)
    }

    /// What no executor took: it waits while there is time, then the failure strategy speaks.
    async fn nobody_took(&self, parcels: Vec<Parcel>) {
        let now = self.clock.now_ms();
        // Just started, or back after an outage: executors have not had the time to be heard.
        let unheard = !self.membership.view().settled;
        let (mut waiting, mut changes) = (Vec::new(), Vec::new());
        for Parcel { run, task, refused_by, .. } in parcels {
            if run.status == Status::Queued && (now < run.due_time || unheard) {
                waiting.push((now + self.settings.lead_ms + LOOK_AGAIN_MS, run));
                continue;
            }
            let reason = if refused_by.is_empty() { Reason::NoExecutor } else { Reason::NotAccepted };
            let attempt = Attempt::of(&run);
            let next = failure::after(&task, attempt, reason, now);
            let change = Change {
                due_time: next.due_time,
                failures: next.failures,
                message: why(&task, &refused_by),
                finished_at: if next.status.is_terminal() { now } else { 0 },
                ..Change::of(&run, next.status, reason)
            };
            changes.push((run, change));
        }
        self.queue.push_at(waiting);
        self.change(changes).await;
    }

    /// Steps out of the queue. When the database fails, their runs come back into it and are
    /// judged again: nobody else would look at them.
    async fn change(&self, steps: Vec<(Run, Change)>) {
        let (runs, changes): (Vec<_>, Vec<_>) = steps.into_iter().unzip();
        if let Err(error) = self.store.change(&changes).await {
            self.postpone(runs, &error);
        }
    }
}
