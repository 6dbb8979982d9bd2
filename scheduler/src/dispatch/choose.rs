//! Who takes each run of a batch.

use super::dispatcher::{Dispatcher, Failed};
use super::parcel::{Addressed, Parcel, Stranded};
use crate::domain::routing::{Answer, Choice, Chooser, Executors, Known, Probe, Request, Routing, Uses};
use crate::domain::{Executor, Reason, Run, Status};
use crate::store::{Change, HandStore, OutcomeStore, PermitStore, PlanStore, StoreErrorKind};
use futures_util::future::join_all;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::{Arc, PoisonError};

impl<S: HandStore + PlanStore + PermitStore + OutcomeStore + ?Sized> Dispatcher<S> {
    /// Chooses an executor for each; what finds none waits until it is due, then fails.
    pub(super) async fn choose(&self, parcels: Vec<Parcel>) -> Result<Vec<Addressed>, Failed> {
        let known = match self.known(&parcels).await {
            Ok(known) => known,
            Err(error) => return Err((parcels.into_iter().map(|parcel| parcel.run).collect(), error)),
        };
        let now = self.clock.now_ms();
        let apps: BTreeSet<(i64, i64)> = parcels.iter().map(|p| (p.task.tenant_id, p.task.app_id)).collect();
        let online: Vec<Arc<Executor>> =
            apps.into_iter().flat_map(|(tenant, app)| self.registry.of_app(tenant, app, now)).collect();
        let mut chooser = Chooser::new(online.iter().cloned(), known);
        let (mut addressed, mut stranded) = (Vec::with_capacity(parcels.len()), Vec::new());
        let (mut probed, mut broadcast) = (Vec::new(), Vec::new());
        for parcel in parcels {
            match chooser.choose(&request(&parcel)) {
                Choice::To(executor) if parcel.run.is_parent() => broadcast.push((parcel, Executors::from([executor]))),
                Choice::To(executor) => addressed.push(Addressed { parcel, executor }),
                Choice::Probe(probe) => probed.push((parcel, probe)),
                Choice::Shards(executors) => broadcast.push((parcel, executors)),
                Choice::Nobody(why) => stranded.push(Stranded { parcel, why }),
            }
        }
        self.ask_around(probed, &mut chooser, &mut addressed, &mut stranded).await;
        for (parcel, executors) in broadcast {
            addressed.extend(self.broadcast(parcel, &executors).await);
        }
        self.note(chooser, &online).await;
        self.nobody_took(stranded).await;
        Ok(addressed)
    }

    /// What routing remembers, as far as this batch asks for it.
    async fn known(&self, parcels: &[Parcel]) -> crate::store::Result<Known> {
        let by_uses = parcels.iter().filter(|parcel| parcel.task.spec.routing.goes_by_uses());
        let by_uses: BTreeSet<i64> = by_uses.map(|parcel| parcel.task.id).collect();
        let mut uses = Uses::default();
        if !by_uses.is_empty() {
            for (task, address, used) in self.store.uses(&by_uses.into_iter().collect::<Vec<_>>()).await? {
                uses.insert(task, address, used);
            }
        }
        let given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        let given = given.iter().map(|(id, (_, count))| (*id, *count)).collect();
        let rings = std::mem::take(&mut *self.rings.lock().unwrap_or_else(PoisonError::into_inner));
        Ok(Known { uses, given, rings })
    }

    /// Keeps what the batch taught.
    async fn note(&self, mut chooser: Chooser, online: &[Arc<Executor>]) {
        let changes = chooser.take_use_changes();
        let now = self.clock.now_ms();
        if let Err(error) = self.store.add_uses(&changes, &|| self.ids.next(now)).await {
            tracing::warn!(%error, "uses of executors not noted; the next batch goes by older ones");
        }
        let known = chooser.finish();
        *self.rings.lock().unwrap_or_else(PoisonError::into_inner) = known.rings;
        let mut given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        for executor in online {
            let before = given.get(&executor.id).copied();
            let total = known.given.get(&executor.id).copied().unwrap_or(0);
            // A newer heartbeat has counted what was given before it.
            let entry = match before {
                Some((beat, count)) if beat < executor.heartbeat_at => (executor.heartbeat_at, total - count),
                Some((beat, _)) => (beat, total),
                None => (executor.heartbeat_at, total),
            };
            given.insert(executor.id, entry);
        }
        if given.len() > 2 * online.len() + 1_000 {
            given.clear();
        }
    }

    /// Asks all candidates of all these runs at once, then settles each in order.
    async fn ask_around(
        &self,
        probed: Vec<(Parcel, Probe)>,
        chooser: &mut Chooser,
        addressed: &mut Vec<Addressed>,
        stranded: &mut Vec<Stranded>,
    ) {
        if probed.is_empty() {
            return;
        }
        let mut wanted: BTreeMap<i64, (Arc<Executor>, BTreeSet<i64>)> = BTreeMap::new();
        for (parcel, probe) in &probed {
            for executor in probe.executors.iter() {
                let entry = wanted.entry(executor.id).or_insert_with(|| (Arc::clone(executor), BTreeSet::new()));
                entry.1.insert(parcel.task.id);
            }
        }
        let asked = wanted.into_values().map(async |(executor, tasks)| {
            let id = executor.id;
            (id, self.ask(&executor, &tasks).await)
        });
        let mut answers: HashMap<i64, Option<HashSet<i64>>> = join_all(asked).await.into_iter().collect();
        for (parcel, probe) in probed {
            let task = parcel.task.id;
            let given: Vec<Answer> = probe
                .executors
                .iter()
                .map(|executor| match answers.get(&executor.id) {
                    Some(Some(busy)) if busy.contains(&task) => Answer::Busy,
                    Some(Some(_)) => Answer::Idle,
                    _ => Answer::Silent,
                })
                .collect();
            match probe.settle(&given) {
                Ok(executor) => {
                    chooser.gave(executor.id);
                    // Busy with this run from now on.
                    if let Some(Some(busy)) = answers.get_mut(&executor.id) {
                        busy.insert(task);
                    }
                    addressed.push(Addressed { parcel, executor });
                }
                Err(why) => stranded.push(Stranded { parcel, why }),
            }
        }
    }

    /// The tasks that an executor is busy with; `None` when it does not answer.
    async fn ask(&self, executor: &Executor, tasks: &BTreeSet<i64>) -> Option<HashSet<i64>> {
        let mut busy = HashSet::new();
        for batch in tasks.iter().copied().collect::<Vec<_>>().chunks(carillon_protocol::PROBE_TASKS_MAX) {
            let message = carillon_protocol::Probe { executor_id: executor.id, tasks: batch.to_vec() };
            match self.transport.ask(executor, &message).await {
                Ok(ack) => busy.extend(ack.busy),
                Err(error) => {
                    tracing::debug!(executor = executor.id, %error, "no answer to a probe");
                    return None;
                }
            }
        }
        Some(busy)
    }

    /// One shard for every executor that fits. They are handed over in the parent's transaction;
    /// the mark leaves them as they are.
    async fn broadcast(&self, parcel: Parcel, fitting: &Executors) -> Vec<Addressed> {
        let Parcel { run: parent, task, .. } = parcel;
        let now = self.clock.now_ms();
        let total = i32::try_from(fitting.len()).unwrap_or(i32::MAX);
        let shards: Vec<Run> = (0..total)
            .zip(fitting.iter())
            .map(|(index, executor)| parent.shard(self.ids.next(now), index, total, executor.id))
            .collect();
        match self.store.hand_over_shards(self.membership.id(), &parent, &shards, now).await {
            Ok(true) => {}
            Ok(false) => return Vec::new(),
            Err(error) if error.kind() == StoreErrorKind::Duplicate => {
                let change = Change {
                    message: "a run of an earlier definition holds this fire".to_owned(),
                    finished_at: now,
                    ..Change::of(&parent, Status::Cancelled, Reason::TaskEdited)
                };
                self.change(vec![(parent, change)]).await;
                return Vec::new();
            }
            Err(error) => {
                self.postpone(vec![parent], &error);
                return Vec::new();
            }
        }
        let address = |(run, executor): (Run, &Arc<Executor>)| Addressed {
            parcel: Parcel { marked_at: Some(now), ..Parcel::new(run, Arc::clone(&task)) },
            executor: Arc::clone(executor),
        };
        shards.into_iter().zip(fitting.iter()).map(address).collect()
    }
}

fn request(parcel: &Parcel) -> Request<'_> {
    let Parcel { run, task, refused_by, .. } = parcel;
    Request {
        tenant_id: task.tenant_id,
        app_id: task.app_id,
        task_id: task.id,
        handler: &task.spec.handler,
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
