//! A small cluster in one process: two nodes, two executors, one database, one seed.

use crate::faults::{self, Fault, Planned};
use crate::node::{NodeParts, SimNode};
use crate::settings;
use crate::tasks::{self, Answered};
use carillon::auth::AddressRule;
use carillon::dispatch::TransportParts;
use carillon::domain::{AppId, Status, TaskId, TenantId};
use carillon::store::{Activity, NewTask};
use carillon_tests::model::executor::{MachineParts, NodeServer};
use carillon_tests::model::keys::AppKey;
use carillon_tests::model::random::SeededRandom;
use carillon_tests::model::store::LogRow;
use carillon_tests::model::store::admin::new_task;
use carillon_tests::model::{
    Dice, Endpoint, Gate, Ledger, ModelStore, Net, SimCarrier, SimClock, SimExecutor, SimTime, SimTransport, Trace,
};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The cluster finds itself before the first fault, ms.
const WARM_UP_MS: i64 = 6_000;

/// The last fault begins by then, ms.
const FAULTS_UNTIL_MS: i64 = 65_000;

/// Everything is mended by then, ms.
const MENDED_AT_MS: i64 = 85_000;

/// Then the tasks go on undisturbed for so long, ms.
const CALM_MS: i64 = 35_000;

/// Of tasks that run in turn, the next run starts within this time while any waits, ms.
const TURN_WITHIN_MS: i64 = 15_000;

/// And after they were stopped, everything has ended within this time, ms.
const SETTLED_WITHIN_MS: i64 = 150_000;

/// The tenant of all tasks.
pub const TENANT: i64 = 1;

/// Largest lag of a clock, µs.
const LAG_US: i64 = 20_000;

/// A cluster under simulation.
pub struct World {
    pub time: Arc<SimTime>,
    pub dice: Arc<Dice>,
    pub trace: Arc<Trace>,
    pub net: Arc<Net>,
    pub ledger: Arc<Ledger>,
    /// The database past every gate.
    pub store: ModelStore,
    pub nodes: Vec<Arc<SimNode>>,
    pub executors: Vec<Arc<SimExecutor>>,
    /// Ids of the tasks, in the order of their definitions.
    pub tasks: Vec<TaskId>,
    /// What edits, stops and starts answered.
    pub answers: Mutex<Vec<Answered>>,
    /// Rows that were not moved on.
    pub stuck: Mutex<Vec<LogRow>>,
}

impl World {
    /// Everything there, nothing running. Without a lead the seed chooses one.
    pub async fn new(seed: u64, lead_ms: Option<i64>) -> Arc<Self> {
        let time = SimTime::simulated();
        let dice = Arc::new(Dice::new(seed));
        let trace = Trace::new(time.clone());
        let net = Net::new(time.clone(), dice.clone());
        let ledger = Arc::new(Ledger::default());
        let store = ModelStore::new(time.clone(), trace.clone());
        store.create_tenant(TenantId(TENANT), "tenant", time.now_ms()).await.unwrap();
        let owner = store.create_app(AppId(2), "tenant", "app").await.unwrap();
        let key = AppKey { owner };
        let keys = key.ring().await;
        let machine = MachineParts {
            time: time.clone(),
            dice: dice.clone(),
            net: net.clone(),
            trace: trace.clone(),
            ledger: ledger.clone(),
            handlers: ["quick", "slow", "steady", "flaky"].map(str::to_owned).to_vec(),
        };
        let lag = |who: &str| dice.between(&format!("{who} lags"), 0, LAG_US);
        let executors: Vec<Arc<SimExecutor>> =
            (0..2).map(|index| SimExecutor::new(index, lag(&format!("executor {index}")), machine.clone())).collect();
        let lead_ms = lead_ms.unwrap_or_else(|| settings::lead_ms(&dice));
        trace.add(format!("FAULTS follow; the lead is {lead_ms} ms"));
        let node = |index: usize| {
            let gate = Gate::new(format!("node {index}"), time.clone(), dice.clone());
            let clock = Arc::new(SimClock::new(time.clone(), lag(&format!("node {index}"))));
            let (net, executors) = (net.clone(), executors.clone());
            let carrier = SimCarrier { node: index, gate: gate.clone(), net, executors };
            let parts = TransportParts {
                keys: keys.clone(),
                key_store: Arc::new(key.clone()),
                addresses: AddressRule::new(&[]),
                clock: clock.clone(),
                random: Arc::new(SeededRandom::new(&format!("node {index}"), dice.clone())),
            };
            SimNode::new(NodeParts {
                index,
                lead_ms,
                clock,
                store: Arc::new(store.through(gate.clone())),
                transport: Arc::new(SimTransport::over(carrier, parts)),
                gate,
                trace: trace.clone(),
                key: key.clone(),
            })
        };
        let nodes: Vec<Arc<SimNode>> = (0..2).map(node).collect();
        for executor in &executors {
            executor.connect(nodes.iter().map(|node| node.clone() as Arc<dyn NodeServer>).collect());
        }
        let mut tasks = Vec::new();
        for (id, spec) in (10..).map(TaskId).zip(tasks::specs()) {
            let task = new_task(id, owner, spec);
            store.create_task(&NewTask { activity: Activity::of(true), ..task }, time.now_ms()).await.unwrap();
            tasks.push(id);
        }
        let (answers, stuck) = (Mutex::default(), Mutex::default());
        Arc::new(Self { time, dice, trace, net, ledger, store, nodes, executors, tasks, answers, stuck })
    }

    /// The faults that the seed chooses.
    pub fn faults(&self) -> Vec<Planned> {
        faults::plan(&self.dice, WARM_UP_MS, FAULTS_UNTIL_MS, self.tasks.len())
    }

    /// A whole story: faults, calm, a stop of every task, and whatever follows.
    pub async fn run(self: &Arc<Self>, faults: Vec<Planned>) {
        self.nodes.iter().for_each(SimNode::start);
        self.executors.iter().for_each(SimExecutor::start);
        for planned in faults {
            let world = self.clone();
            tokio::spawn(async move { world.bring_about(planned).await });
        }
        self.pass(MENDED_AT_MS).await;
        self.mend();
        self.pass(CALM_MS).await;
        self.look_for_stuck_rows();
        for task in self.tasks.clone() {
            self.change(0, task, false).await;
        }
        self.settle().await;
    }

    async fn bring_about(self: Arc<Self>, Planned { at, fault }: Planned) {
        self.pass(at).await;
        self.trace.add(format!("FAULT {fault:?}"));
        let until = |down: i64| self.time.now_ms() + down;
        match fault {
            Fault::Crash { node, down } => {
                self.nodes[node].crash();
                self.pass(down).await;
                self.nodes[node].start();
            }
            Fault::Pause { node, down } => self.nodes[node].gate().freeze(until(down)),
            Fault::Loss { per_mille, down } => {
                self.net.lose(per_mille as u64);
                self.pass(down).await;
                self.net.lose(0);
            }
            Fault::Cut { node, executor, down } => {
                self.net.cut(Endpoint::Node(node), Endpoint::Executor(executor), until(down));
            }
            Fault::Island { executor, down } => {
                for node in 0..self.nodes.len() {
                    self.net.cut(Endpoint::Node(node), Endpoint::Executor(executor), until(down));
                }
            }
            Fault::Kill { executor, down } => {
                self.executors[executor].kill();
                self.pass(down).await;
                self.executors[executor].start();
            }
            Fault::StoreAway { node, down } => {
                let hit = self.nodes.iter().enumerate().filter(|(index, _)| node.is_none_or(|node| node == *index));
                hit.for_each(|(_, node)| node.gate().take_store_away(until(down)));
            }
            Fault::Doubt { node, per_mille, down } => {
                self.nodes[node].gate().doubt(per_mille as u64);
                self.pass(down).await;
                self.nodes[node].gate().doubt(0);
            }
            Fault::Edit { task } => self.change(task % 2, self.tasks[task], true).await,
            Fault::Restart { task, down } => {
                self.change(task % 2, self.tasks[task], false).await;
                self.pass(down).await;
                self.change(task % 2, self.tasks[task], true).await;
            }
        }
    }

    /// Changes a task, by another node when one does not answer, until it is done.
    async fn change(&self, first: usize, task: TaskId, started: bool) {
        for turn in first.. {
            let node = &self.nodes[turn % self.nodes.len()];
            if let Some(Ok(answered)) = tasks::change(node, task, started).await {
                let answered = Answered { at: self.time.now_ms(), ..answered };
                self.trace.add(format!(
                    "task {task} change to revision {} (started {started}) answered, naming {:?}",
                    answered.revision, answered.named
                ));
                self.answers.lock().unwrap().push(answered);
                return;
            }
            self.pass(1_000).await;
        }
    }

    fn mend(self: &Arc<Self>) {
        self.trace.add("MENDED");
        self.net.mend();
        for node in &self.nodes {
            node.gate().freeze(0);
            node.gate().take_store_away(0);
            node.gate().doubt(0);
            node.start();
        }
        self.executors.iter().for_each(SimExecutor::start);
    }

    /// A row that should have moved on in the calm: the stop that follows would hide it.
    fn look_for_stuck_rows(&self) {
        let since = self.time.now_ms() - CALM_MS + 5_000;
        let turns_since = self.time.now_ms() - TURN_WITHIN_MS;
        let starts = self.ledger.starts();
        let moving: BTreeSet<TaskId> = starts.iter().filter(|start| start.at > turns_since).map(|s| s.task).collect();
        let found = self.store.inspect(|state| {
            // While others of its task have their turn, a run may wait for its own.
            let waits = |task| moving.contains(&task) && state.tasks[&task].view.spec.needs_permit();
            let stuck =
                |row: &&LogRow| !row.run.status.is_terminal() && row.run.due_time < since && !waits(row.run.task_id);
            state.logs.values().filter(stuck).cloned().collect::<Vec<_>>()
        });
        self.stuck.lock().unwrap().extend(found);
    }

    async fn settle(&self) {
        let mut left_ms = SETTLED_WITHIN_MS;
        while left_ms > 0 && !self.has_settled() {
            self.pass(1_000).await;
            left_ms -= 1_000;
        }
        // Whatever might still start by mistake has its chance.
        self.pass(5_000).await;
        self.trace.add(format!("settled with {left_ms} ms to spare"));
    }

    fn has_settled(&self) -> bool {
        let ended = |status: Status| status.is_terminal();
        let rows = self
            .store
            .inspect(|state| state.outbox_entries.is_empty() && state.logs.values().all(|row| ended(row.run.status)));
        rows && self.executors.iter().all(|executor| !executor.has_results())
    }

    async fn pass(&self, ms: i64) {
        tokio::time::sleep(Duration::from_millis(ms as u64)).await;
    }
}
