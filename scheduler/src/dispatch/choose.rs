//! Who takes each run of a batch.

use super::dispatcher::{Dispatcher, Failed, PLAIN_LEAD_MS};
use super::outgoing::{OutgoingRun, RoutedRun, UnroutedRun};
use crate::domain::routing::{Choice, Chooser, Executors, Known, Probe, ProbeAnswer, Request, Routing, Uses};
use crate::domain::{AppId, Executor, ExecutorId, Reason, Run, Status, TaskId, TenantId, Transition};
use crate::store::{ClusterStore, DispatchStore, OutcomeStore, PermitStore, PlanStore, RuleStore, StoreErrorKind};
use futures_util::future::join_all;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::slice;
use std::sync::{Arc, PoisonError};

/// Counts of executors that have gone are kept until there are so many more than executors.
const GIVEN_SPARE: usize = 1_000;

impl<S: ClusterStore + DispatchStore + PlanStore + PermitStore + OutcomeStore + RuleStore> Dispatcher<S> {
    /// Chooses an executor for each; what finds none waits until it is due, then fails.
    pub(super) async fn choose(&self, outgoing_runs: Vec<OutgoingRun>) -> Result<Vec<RoutedRun>, Failed> {
        let known = match self.known(&outgoing_runs).await {
            Ok(known) => known,
            Err(error) => return Err((outgoing_runs.into_iter().map(|outgoing| outgoing.run).collect(), error)),
        };
        let now = self.clock.now_ms();
        let apps: BTreeSet<(TenantId, AppId)> =
            outgoing_runs.iter().map(|p| (p.task.tenant_id, p.task.app_id)).collect();
        let fleets = apps.into_iter().filter_map(|(tenant, app)| self.registry.fleet(tenant, app, now));
        let mut chooser = Chooser::over(fleets, known);
        let (mut routed, mut unrouted) = (Vec::with_capacity(outgoing_runs.len()), Vec::new());
        let (mut probed, mut broadcast) = (Vec::new(), Vec::new());
        for outgoing in outgoing_runs {
            match chooser.choose(&request(&outgoing)) {
                Choice::To(executor) if outgoing.run.is_parent() => {
                    broadcast.push((outgoing, Executors::from([executor])));
                }
                Choice::To(executor) => routed.push(RoutedRun { outgoing, executor }),
                Choice::Probe(probe) => probed.push((outgoing, probe)),
                Choice::Shards(executors) => broadcast.push((outgoing, executors)),
                Choice::NoExecutor(why) => unrouted.push(UnroutedRun { outgoing, why }),
            }
        }
        self.ask_around(probed, &mut chooser, &mut routed, &mut unrouted).await;
        let is_early = |routed: &RoutedRun| self.is_too_early(&routed.outgoing.run, slice::from_ref(&routed.executor));
        let (early, mut routed): (Vec<_>, Vec<_>) = routed.into_iter().partition(is_early);
        unrouted.extend(early.into_iter().map(|early| UnroutedRun::refused(early.outgoing)));
        for (outgoing, executors) in broadcast {
            if self.is_too_early(&outgoing.run, &executors) {
                unrouted.push(UnroutedRun::refused(outgoing));
            } else {
                routed.extend(self.broadcast(outgoing, &executors).await);
            }
        }
        self.note(chooser).await;
        self.no_executor_took(unrouted).await;
        Ok(routed)
    }

    /// Whether a plain executor would get it before its time, as nobody knew when the batch began that it is one of the app's, or as
    /// another one has refused the run. It is looked at again.
    fn is_too_early(&self, run: &Run, executors: &[Arc<Executor>]) -> bool {
        executors.iter().any(|executor| executor.plain) && run.due_time > self.clock.now_ms() + PLAIN_LEAD_MS
    }

    /// What routing remembers, as far as this batch asks for it.
    async fn known(&self, outgoing_runs: &[OutgoingRun]) -> crate::store::Result<Known> {
        let by_uses = outgoing_runs.iter().filter(|outgoing| outgoing.task.spec.routing.goes_by_uses());
        let by_uses: BTreeSet<TaskId> = by_uses.map(|outgoing| outgoing.task.id).collect();
        let mut uses = Uses::default();
        if !by_uses.is_empty() {
            for (task, address, used) in self.store.uses(&by_uses.into_iter().collect::<Vec<_>>()).await? {
                uses.insert(task, address, used);
            }
        }
        let by_load = outgoing_runs.iter().any(|outgoing| outgoing.task.spec.routing.goes_by_load());
        let given = if by_load { self.given_since_heartbeats() } else { HashMap::new() };
        let rings = std::mem::take(&mut *self.rings.lock().unwrap_or_else(PoisonError::into_inner));
        Ok(Known { uses, given, newly_given: HashMap::new(), rings, lists: Arc::clone(&self.lists) })
    }

    fn given_since_heartbeats(&self) -> HashMap<ExecutorId, i64> {
        let given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        // Another heartbeat has counted what was given before it.
        let counts = |id, beat| self.registry.find(id).is_some_and(|executor| executor.heartbeat_at == beat);
        given.iter().filter(|(id, (beat, _))| counts(**id, *beat)).map(|(id, (_, count))| (*id, *count)).collect()
    }

    /// Keeps what the batch taught.
    async fn note(&self, mut chooser: Chooser) {
        let changes = chooser.take_use_changes();
        let now = self.clock.now_ms();
        if let Err(error) = self.store.add_uses(&changes, &|| self.ids.next(now)).await {
            tracing::warn!(%error, "uses of executors not noted; the next batch goes by older ones");
        }
        let known = chooser.finish();
        *self.rings.lock().unwrap_or_else(PoisonError::into_inner) = known.rings;
        let mut given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        for (id, count) in known.newly_given {
            let Some(executor) = self.registry.find(id) else { continue };
            let entry = given.entry(id).or_insert((executor.heartbeat_at, 0));
            if entry.0 != executor.heartbeat_at {
                *entry = (executor.heartbeat_at, 0);
            }
            entry.1 += count;
        }
        if given.len() > 2 * self.registry.len() + GIVEN_SPARE {
            given.retain(|id, _| self.registry.find(*id).is_some());
        }
    }

    /// Asks all candidates of all these runs at once, then settles each in order.
    async fn ask_around(
        &self,
        probed: Vec<(OutgoingRun, Probe)>,
        chooser: &mut Chooser,
        routed: &mut Vec<RoutedRun>,
        unrouted: &mut Vec<UnroutedRun>,
    ) {
        if probed.is_empty() {
            return;
        }
        let mut wanted: BTreeMap<ExecutorId, (Arc<Executor>, BTreeSet<TaskId>)> = BTreeMap::new();
        for (outgoing, probe) in &probed {
            for executor in probe.executors.iter() {
                let entry = wanted.entry(executor.id).or_insert_with(|| (Arc::clone(executor), BTreeSet::new()));
                entry.1.insert(outgoing.task.id);
            }
        }
        let asked = wanted.into_values().map(async |(executor, tasks)| {
            let id = executor.id;
            (id, self.ask(&executor, &tasks).await)
        });
        let mut answers: HashMap<ExecutorId, Option<HashSet<TaskId>>> = join_all(asked).await.into_iter().collect();
        for (outgoing, probe) in probed {
            let task = outgoing.task.id;
            let given: Vec<ProbeAnswer> = probe
                .executors
                .iter()
                .map(|executor| match answers.get(&executor.id) {
                    Some(Some(busy)) if busy.contains(&task) => ProbeAnswer::Busy,
                    Some(Some(_)) => ProbeAnswer::Idle,
                    _ => ProbeAnswer::Silent,
                })
                .collect();
            match probe.settle(&given) {
                Ok(executor) => {
                    chooser.gave(executor.id);
                    // Busy with this run from now on.
                    if let Some(Some(busy)) = answers.get_mut(&executor.id) {
                        busy.insert(task);
                    }
                    routed.push(RoutedRun { outgoing, executor });
                }
                Err(why) => unrouted.push(UnroutedRun { outgoing, why }),
            }
        }
    }

    /// The tasks that an executor is busy with; `None` when it does not answer.
    async fn ask(&self, executor: &Executor, tasks: &BTreeSet<TaskId>) -> Option<HashSet<TaskId>> {
        let mut busy = HashSet::new();
        for batch in tasks.iter().map(|task| task.0).collect::<Vec<_>>().chunks(carillon_protocol::PROBE_TASKS_MAX) {
            let message = carillon_protocol::Probe { executor_id: executor.id.0, tasks: batch.to_vec() };
            match self.transport.ask(executor, &message).await {
                Ok(ack) => busy.extend(ack.busy.into_iter().map(TaskId)),
                Err(error) => {
                    tracing::debug!(executor = executor.id.0, %error, "no answer to a probe");
                    return None;
                }
            }
        }
        Some(busy)
    }

    /// One shard for every executor that fits. They are dispatched in the parent's transaction;
    /// the mark leaves them as they are.
    async fn broadcast(&self, outgoing: OutgoingRun, fitting: &Executors) -> Vec<RoutedRun> {
        let OutgoingRun { run: parent, task, .. } = outgoing;
        let now = self.clock.now_ms();
        let total = i32::try_from(fitting.len()).unwrap_or(i32::MAX);
        let shards: Vec<Run> = (0..total)
            .zip(fitting.iter())
            .map(|(index, executor)| parent.shard(self.ids.next(now), index, total, executor.id))
            .collect();
        match self.store.dispatch_shards(self.membership.id(), &parent, &shards, now).await {
            Ok(true) => {}
            Ok(false) => return Vec::new(),
            Err(error) if error.kind() == StoreErrorKind::Duplicate => {
                let change = Transition {
                    message: "a run of an earlier definition holds this fire".to_owned(),
                    finished_at: now,
                    ..Transition::of(&parent, Status::Cancelled, Reason::TaskEdited)
                };
                self.change(vec![(parent, change)]).await;
                return Vec::new();
            }
            Err(error) => {
                self.postpone(vec![parent], &error);
                return Vec::new();
            }
        }
        let address = |(run, executor): (Run, &Arc<Executor>)| RoutedRun {
            outgoing: OutgoingRun { dispatched_at: Some(now), ..OutgoingRun::new(run, Arc::clone(&task)) },
            executor: Arc::clone(executor),
        };
        shards.into_iter().zip(fitting.iter()).map(address).collect()
    }
}

fn request(outgoing: &OutgoingRun) -> Request<'_> {
    let OutgoingRun { run, task, refused_by, .. } = outgoing;
    Request {
        tenant_id: task.tenant_id,
        app_id: task.app_id,
        task_id: task.id,
        handler: task.handler(),
        tags: &task.tags,
        // A row that was written as the parent of shards has them.
        routing: if run.is_parent() { Routing::Sharding } else { task.spec.routing },
        run_id: run.id,
        seq: run.seq,
        attempt: run.attempt,
        is_shard: !run.is_parent(),
        refused_by,
        avoid: (task.spec.retry_elsewhere && run.attempt > 0).then_some(run.executor_id),
    }
}
