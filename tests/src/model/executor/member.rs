//! Registration, heartbeat, and the lease that both renew.

use super::server::{self, Refusal};
use super::{Process, SimExecutor, work};
use carillon::cluster::Clock;
use carillon_protocol::{CancelOutcome, ExecutorSettings, HandlerInfo, Heartbeat, Register, RunKey, RunStatus};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Before the first contact, ms.
const NEVER: i64 = i64::MIN / 4;

/// Between two looks at whether contact was lost for too long.
const LOOK: Duration = Duration::from_millis(500);

/// What may start and what may go on; counts from the *sending* of what was acknowledged, on
/// the monotonic clock (true time), ms.
#[derive(Debug)]
pub(super) struct Lease {
    confirmed: i64,
    contact: i64,
    offline_after: i64,
    abandon_after: i64,
}

impl Default for Lease {
    fn default() -> Self {
        Self { confirmed: NEVER, contact: NEVER, offline_after: 0, abandon_after: 0 }
    }
}

impl Lease {
    fn configure(&mut self, settings: &ExecutorSettings) {
        self.offline_after = settings.offline_after_ms as i64;
        self.abandon_after = settings.abandon_after_ms as i64;
    }

    fn confirm(&mut self, sent: i64) {
        self.contact = self.contact.max(sent);
        self.confirmed = self.confirmed.max(sent);
    }

    /// A sign of life that says nothing about what is held prolongs a living lease only.
    fn sustain(&mut self, sent: i64, now: i64) {
        self.contact = self.contact.max(sent);
        if self.may_start(now) {
            self.confirmed = self.confirmed.max(sent);
        }
    }

    fn suspend(&mut self) {
        self.confirmed = NEVER;
    }

    pub(super) fn may_start(&self, now: i64) -> bool {
        now < self.confirmed + self.offline_after
    }

    fn must_abandon(&self, now: i64) -> bool {
        now >= self.contact + self.abandon_after
    }
}

/// Registers and beats for ever.
pub(super) async fn run(machine: Arc<SimExecutor>, process: Arc<Process>) {
    loop {
        let mut pause = 200;
        let settings = loop {
            match register(&machine, &process).await {
                Ok(settings) => break settings,
                Err(_) => tokio::time::sleep(Duration::from_millis(pause)).await,
            }
            pause = (pause * 2).min(5_000);
        };
        beats(&machine, &process, settings).await;
    }
}

async fn register(machine: &Arc<SimExecutor>, process: &Arc<Process>) -> Result<ExecutorSettings, Refusal> {
    let sent = machine.parts.time.now_ms();
    let handler = |name: &String| HandlerInfo { name: name.clone(), ..HandlerInfo::default() };
    let message = Register {
        instance: process.instance.clone(),
        address: machine.address.clone(),
        own_address: true,
        host_name: "simulated".to_owned(),
        pid: 1,
        version: "1".to_owned(),
        tags: Vec::new(),
        description: String::new(),
        capacity: 100,
        handlers: machine.parts.handlers.iter().map(handler).collect(),
    };
    let answer = server::call(machine, process, "register", |node| {
        let (message, signed_at) = (message.clone(), machine.parts.time.now_ms());
        async move { node.register(message, signed_at).await }
    })
    .await?;
    process.executor_id.store(answer.executor_id, Ordering::Relaxed);
    let nothing_held = process.table.lock().unwrap().snapshot().held.is_empty();
    let mut lease = process.lease.lock().unwrap();
    lease.configure(&answer.settings);
    if nothing_held {
        lease.confirm(sent);
    } else {
        lease.sustain(sent, machine.parts.time.now_ms());
    }
    drop(lease);
    machine.note(format!("{} registered as {}", process.instance, answer.executor_id));
    Ok(answer.settings)
}

/// Beats until a node asks for a new registration; sooner than the period after a failure.
async fn beats(machine: &Arc<SimExecutor>, process: &Arc<Process>, settings: ExecutorSettings) {
    let mut described = machine.parts.time.now_ms();
    loop {
        let answered = match beat(machine, process).await {
            Ok(()) => true,
            Err(Refusal::RegisterAgain) => return,
            Err(_) => false,
        };
        let pause = settings.heartbeat_interval_ms / if answered { 1 } else { 3 };
        tokio::time::sleep(Duration::from_millis(pause)).await;
        if machine.parts.time.now_ms() - described >= settings.metadata_interval_ms as i64 {
            described = machine.parts.time.now_ms();
            // The next one tells the same; what counts is the heartbeat.
            let _ = register(machine, process).await;
        }
    }
}

async fn beat(machine: &Arc<SimExecutor>, process: &Arc<Process>) -> Result<(), Refusal> {
    let sent = machine.parts.time.now_ms();
    let snapshot_at = machine.clock.now_ms();
    let sets = process.table.lock().unwrap().snapshot();
    let message = Heartbeat {
        executor_id: process.executor_id.load(Ordering::Relaxed),
        instance: process.instance.clone(),
        snapshot_at,
        held: sets.held,
        running: sets.running,
        unacknowledged: sets.unacknowledged,
        capacity: 100,
        draining: false,
        acknowledged_at: 0,
    };
    let answer = server::call(machine, process, "heartbeat", |node| {
        let (message, signed_at) = (message.clone(), machine.parts.time.now_ms());
        async move { node.heartbeat(message, signed_at).await }
    })
    .await;
    if let Ok(ack) = &answer {
        drop_runs(machine, process, &ack.cancel).await;
    }
    let mut lease = process.lease.lock().unwrap();
    match answer {
        Ok(_) => lease.confirm(sent),
        Err(Refusal::RegisterAgain) => lease.suspend(),
        Err(Refusal::StoreUnavailable) => lease.sustain(sent, machine.parts.time.now_ms()),
        Err(_) => {}
    }
    drop(lease);
    if let Err(refusal) = answer {
        machine.note(format!("heartbeat of {} not acknowledged: {refusal:?}", process.instance));
    }
    answer.map(drop)
}

/// What an acknowledgement takes away goes before the lease lives on.
async fn drop_runs(machine: &Arc<SimExecutor>, process: &Arc<Process>, runs: &[RunKey]) {
    for key in runs {
        let outcome = process.table.lock().unwrap().cancel(*key, false);
        machine.note(format!("log {} attempt {}: taken away, {outcome:?}", key.0, key.1));
        if outcome == CancelOutcome::Stopping {
            work::finish(machine, process, *key, RunStatus::Cancelled, machine.parts.time.now_ms()).await;
        }
    }
}

/// Stops running handlers once contact was lost for too long: the nodes count them as dead.
pub(super) async fn watch_contact(machine: Arc<SimExecutor>, process: Arc<Process>) {
    loop {
        tokio::time::sleep(LOOK).await;
        let now = machine.parts.time.now_ms();
        if !process.lease.lock().unwrap().must_abandon(now) {
            continue;
        }
        let running = process.table.lock().unwrap().running();
        for key in running {
            work::finish(&machine, &process, key, RunStatus::Abandoned, now).await;
        }
    }
}
