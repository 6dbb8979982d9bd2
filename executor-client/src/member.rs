//! Membership: registration, heartbeats, and the consequences of losing contact.

use crate::node::{Failure, NodeReply, Nodes};
use crate::pending_results::PendingResults;
use crate::runs::Runs;
use crate::settings::Settings;
use crate::sync::{lock, until};
use crate::table::LIVE_MAX;
use bytes::Bytes;
use carillon_protocol::{
    ExecutorSettings, Heartbeat, HeartbeatAck, Register, Registered, RunKey, Unregister, Unregistered,
};
use serde::Serialize;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

const REGISTER_TIMEOUT: Duration = Duration::from_secs(5);
const HEARTBEAT_TIMEOUT: Duration = Duration::from_secs(3);
const UNREGISTER_TIMEOUT: Duration = Duration::from_secs(3);

/// How long the first registration waits for the results of earlier processes to be delivered.
const DELIVER_FIRST: Duration = Duration::from_secs(3);

/// First and longest pause between attempts to register.
const BACK_OFF: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(5));

/// Number of closely spaced heartbeats after a registration, so that the clock's estimate is
/// tight before the first run.
const SAMPLES: u32 = 4;
const SAMPLE_INTERVAL: Duration = Duration::from_millis(150);

/// Shortest heartbeat interval that a node can set, ms: no setting causes a busy loop.
const INTERVAL_MIN_MS: u64 = 20;

/// This executor as a member of the cluster.
pub(crate) struct Member {
    pub(crate) nodes: Arc<Nodes>,
    pub(crate) runs: Arc<Runs>,
    pub(crate) pending_results: Arc<PendingResults>,
    pub(crate) settings: Arc<Settings>,
    pub(crate) instance: String,
    /// 0 before the first registration.
    executor_id: AtomicI64,
    /// When a node last acknowledged a heartbeat of this process or, before the first, of the one before it; by the node's
    /// clock, ms, and 0 when none has.
    pub(crate) acknowledged_at: Arc<AtomicI64>,
    /// Held runs that a shutdown has dropped and that have not yet been returned to a node. Heartbeats
    /// still list them, or the nodes would consider them lost.
    pub(crate) giving_back: Mutex<Vec<RunKey>>,
    /// Handlers without a task, according to the last registration.
    left_out: Mutex<Vec<String>>,
    /// Notified when a node turns out to have forgotten this executor.
    pub(crate) register_again: Notify,
}

impl Member {
    pub(crate) fn new(
        nodes: Arc<Nodes>,
        runs: Arc<Runs>,
        pending_results: Arc<PendingResults>,
        settings: Arc<Settings>,
        instance: String,
        acknowledged_at: i64,
    ) -> Self {
        Self {
            nodes,
            runs,
            pending_results,
            settings,
            instance,
            executor_id: AtomicI64::new(0),
            acknowledged_at: Arc::new(AtomicI64::new(acknowledged_at)),
            giving_back: Mutex::new(Vec::new()),
            left_out: Mutex::new(Vec::new()),
            register_again: Notify::new(),
        }
    }

    /// The id of the last registration; `None` before the first.
    pub(crate) fn executor_id(&self) -> Option<i64> {
        match self.executor_id.load(Ordering::Acquire) {
            0 => None,
            id => Some(id),
        }
    }

    /// Registers and sends heartbeats forever.
    pub(crate) async fn run(&self) {
        self.deliver_first().await;
        loop {
            let settings = self.register_until_done().await;
            self.heartbeats(settings).await;
        }
    }

    /// Waits until the nodes have the results that earlier processes left in the journal: once this process is registered,
    /// the nodes know that the one before it at this address is gone, and what it ran and did not report runs again.
    async fn deliver_first(&self) {
        if !until(Instant::now() + DELIVER_FIRST, || self.runs.counts().unacknowledged == 0).await {
            let results = self.runs.counts().unacknowledged;
            tracing::warn!(results, "executor.results_of_earlier_processes_wait: registering all the same");
        }
    }

    /// Registers, retrying with growing pauses until a node accepts.
    async fn register_until_done(&self) -> ExecutorSettings {
        let mut pause = BACK_OFF.0;
        loop {
            match self.register().await {
                Ok(settings) => return settings,
                Err(failure) => {
                    tracing::warn!(
                        %failure,
                        retry_in_ms = pause.as_millis() as u64,
                        "executor.not_registered"
                    );
                }
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(BACK_OFF.1);
        }
    }

    async fn register(&self) -> Result<ExecutorSettings, Failure> {
        let settings = &self.settings;
        let advertised = crate::address::advertised(settings, self.nodes.current()).await;
        let message = Register {
            instance: self.instance.clone(),
            address: advertised.address,
            own_address: advertised.is_own,
            host_name: settings.host_name.clone(),
            pid: settings.pid,
            version: settings.version.clone(),
            tags: settings.tags.clone(),
            description: settings.description.clone(),
            capacity: settings.capacity as u32,
            handlers: settings.handlers.infos.clone(),
            acknowledged_at: self.acknowledged_at.load(Ordering::Relaxed),
        };
        let answer: NodeReply<Registered> = self.call("/executors/register", &message, REGISTER_TIMEOUT).await?;
        let registered = answer.data;
        let lease = &self.runs.lease;
        lease.configure(&registered.settings);
        if self.runs.counts().held == 0 {
            lease.confirm(answer.sent_us);
        } else {
            // Only the reply to a heartbeat tells whether held runs are still ours.
            lease.registered(answer.sent_us, answer.received_us);
        }
        let before = self.executor_id.swap(registered.executor_id, Ordering::AcqRel);
        if before != registered.executor_id {
            tracing::info!(
                executor_id = registered.executor_id,
                address = message.address,
                node = %self.nodes.current().base,
                "executor.registered"
            );
        }
        self.runs.timer.nudge();
        self.say_what_was_left_out(registered.left_out);
        Ok(registered.settings)
    }

    /// Registrations repeat; omitted handlers are logged only when they change.
    fn say_what_was_left_out(&self, handlers: Vec<String>) {
        let mut before = lock(&self.left_out);
        if *before == handlers {
            return;
        }
        if handlers.is_empty() {
            tracing::info!("executor.handlers_have_tasks");
        } else {
            tracing::warn!(
                handlers = handlers.join(", "),
                "executor.handlers_left_out: they have no tasks, because the tenant has reached its quota max_tasks"
            );
        }
        *before = handlers;
    }

    /// Sends heartbeats on a fixed grid until a node asks for a new registration.
    async fn heartbeats(&self, mut settings: ExecutorSettings) {
        for _ in 0..SAMPLES {
            if !self.beat(&mut Failing::default()).await {
                return;
            }
            tokio::time::sleep(SAMPLE_INTERVAL).await;
        }
        let began = Instant::now();
        let mut registered = began;
        let mut beats = 0u32;
        let mut failing = Failing::default();
        loop {
            let interval = interval(settings.heartbeat_interval_ms);
            // After a failure, retried before the next grid point: the lease is running out.
            let wait = if failing.since.is_some() {
                tokio::time::sleep(interval / 3)
            } else {
                while began + interval * beats <= Instant::now() {
                    beats += 1;
                }
                tokio::time::sleep_until(began + interval * beats)
            };
            tokio::select! {
                biased;
                () = wait => {}
                () = self.register_again.notified() => return,
            }
            if registered.elapsed() >= self::interval(settings.metadata_interval_ms) {
                registered = Instant::now();
                match self.register().await {
                    Ok(new) => settings = new,
                    Err(failure) => tracing::warn!(%failure, "executor.metadata_not_sent"),
                }
            }
            if !self.beat(&mut failing).await {
                return;
            }
        }
    }

    /// One heartbeat. `false` when the node asks for a new registration.
    async fn beat(&self, failing: &mut Failing) -> bool {
        let Some(executor_id) = self.executor_id() else {
            return false;
        };
        // Read first: runs accepted between the two lines are then newer than the snapshot.
        let snapshot_at = self.runs.clock.now_ms().unwrap_or(0);
        let mut sets = self.runs.snapshot();
        sets.held.extend_from_slice(&lock(&self.giving_back));
        // Only a journal from earlier processes can hold more than fits into a message.
        let room = LIVE_MAX.saturating_sub(sets.held.len() + sets.running.len());
        sets.unacknowledged.truncate(room);
        let message = Heartbeat {
            executor_id,
            instance: self.instance.clone(),
            snapshot_at,
            held: sets.held,
            running: sets.running,
            unacknowledged: sets.unacknowledged,
            capacity: self.settings.capacity as u32,
            draining: self.runs.is_draining(),
            acknowledged_at: self.acknowledged_at.load(Ordering::Relaxed),
            made_us: self.runs.clock.local_us(),
        };
        match self.send_heartbeat(&message).await {
            Ok(answer) => {
                failing.ended();
                self.acknowledged_at.store(answer.data.cluster_time_us / 1_000, Ordering::Relaxed);
                // Before the lease: an expired lease must not revive cancelled runs.
                self.carry_out_cancels(&answer.data.cancel);
                self.runs.lease.confirm(answer.sent_us);
            }
            Err(Failure::RegisterAgain) => {
                tracing::info!("executor.register_again");
                self.runs.lease.suspend();
                return false;
            }
            Err(failure) => failing.again(&failure),
        }
        self.runs.timer.nudge();
        true
    }

    /// A node that has lost its database keeps the lease alive with its own answer, whatever the others say later: where each
    /// takes its time, the lease would run out before the last of them has answered.
    async fn send_heartbeat(&self, message: &Heartbeat) -> Result<NodeReply<HeartbeatAck>, Failure> {
        let sustain = |failure: &Failure| {
            if let Failure::StoreUnavailable { sent_us, written_us } = failure {
                if let Some(made_us) = *written_us {
                    self.runs.lease.written(made_us.min(*sent_us));
                }
                self.runs.lease.sustain(*sent_us, self.runs.clock.local_us());
                self.runs.timer.nudge();
            }
        };
        self.nodes.call_telling("/executors/heartbeat", body(message)?, HEARTBEAT_TIMEOUT, sustain).await
    }

    fn carry_out_cancels(&self, keys: &[RunKey]) {
        if !keys.is_empty() {
            let outcomes = self.runs.cancel(keys, false);
            tracing::info!(runs = keys.len(), ?outcomes, "runs.cancelled_by_heartbeat");
        }
    }

    /// Tells a node which runs are given back, and of which results follow.
    pub(crate) async fn unregister(&self, held: &[RunKey], running: &[RunKey]) -> Result<u64, Failure> {
        let Some(executor_id) = self.executor_id() else {
            return Ok(0);
        };
        // Only a journal from earlier processes can hold more than fits into a message.
        let room = LIVE_MAX.saturating_sub(held.len()).min(running.len());
        let (held, running) = (held.to_vec(), running[..room].to_vec());
        let message = Unregister { executor_id, instance: self.instance.clone(), held, running };
        let answer: NodeReply<Unregistered> = self.call("/executors/unregister", &message, UNREGISTER_TIMEOUT).await?;
        Ok(answer.data.returned)
    }

    /// Stops running handlers once contact has been lost for too long.
    pub(crate) async fn watch_contact(&self) {
        const LOOK: Duration = Duration::from_millis(500);
        loop {
            let left_us = self.runs.lease.until_abandon_us(self.runs.clock.local_us());
            let wait = match u64::try_from(left_us) {
                Ok(us) if us > 0 => Duration::from_micros(us).min(LOOK),
                _ => {
                    if self.executor_id().is_some() && self.runs.counts().running > 0 {
                        let runs = self.runs.abandon_running();
                        if runs > 0 {
                            tracing::error!(runs, "runs.abandoned: no contact with any node");
                        }
                    }
                    LOOK
                }
            };
            tokio::time::sleep(wait).await;
        }
    }

    async fn call<M: Serialize, T: serde::de::DeserializeOwned>(
        &self,
        path: &str,
        message: &M,
        timeout: Duration,
    ) -> Result<NodeReply<T>, Failure> {
        self.nodes.call(path, body(message)?, timeout).await
    }
}

fn body(message: &impl Serialize) -> Result<Bytes, Failure> {
    serde_json::to_vec(message).map(Bytes::from).map_err(|e| Failure::Unreachable(format!("not sent: {e}")))
}

fn interval(ms: u64) -> Duration {
    Duration::from_millis(ms.max(INTERVAL_MIN_MS))
}

/// A series of failed heartbeats: its start and end are logged, not every failure.
#[derive(Default)]
struct Failing {
    since: Option<Instant>,
    count: u32,
}

impl Failing {
    fn again(&mut self, failure: &Failure) {
        if self.since.is_none() {
            self.since = Some(Instant::now());
        }
        self.count += 1;
        // The first failure, then at growing distances.
        if self.count.is_power_of_two() {
            tracing::warn!(%failure, count = self.count, "heartbeat.not_acknowledged");
        }
    }

    fn ended(&mut self) {
        if let Some(since) = self.since.take() {
            let failed_ms = since.elapsed().as_millis() as u64;
            tracing::info!(failed_ms, "heartbeat.acknowledged_again");
        }
        self.count = 0;
    }
}
