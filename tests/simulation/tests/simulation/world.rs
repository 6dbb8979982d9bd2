//! A small cluster in one process: nodes, executors, tenants, one database, one seed.

use crate::faults::{self, Fault, Planned, SWITCH_OVER_MS};
use crate::node::{Leaves, NodeParts, SimNode, SimParts};
use crate::operations::{self, Done, Effect, Intended, KnownBound};
use crate::promises::READ_IN_TROUBLE_MS;
use crate::settings::{PLAIN_LOST_AFTER_MS, Shape};
use crate::tasks::{self, Answered};
use carillon::auth::{AddressRule, KeyRing};
use carillon::dispatch::TransportParts;
use carillon::domain::quota::Quotas;
use carillon::domain::{AppId, BackfillId, IdSource, LogId, NodeId, Owner, Run, Status, TaskId, TenantId};
use carillon::store::{Activity, NewTask};
use carillon_protocol::RunKey;
use carillon_simulation::executor::{MachineParts, NodeServer, Start};
use carillon_simulation::keys::{AppKey, AppKeys};
use carillon_simulation::random::SeededRandom;
use carillon_simulation::store::LogRow;
use carillon_simulation::store::admin::new_task;
use carillon_simulation::{
    Dice, Endpoint, Gate, Ledger, Machine, MachineTime, Net, Peers, PlainExecutor, SimCarrier, SimClock, SimExecutor,
    SimStore, SimTime, SimTransport, Trace,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

/// The cluster finds itself before the first fault, ms.
const WARM_UP_MS: i64 = 6_000;

/// The last fault begins by then, ms.
const FAULTS_UNTIL_MS: i64 = 65_000;

/// Everything is mended by then, ms.
pub const MENDED_AT_MS: i64 = 85_000;

/// Then the tasks go on undisturbed for so long, ms.
const CALM_MS: i64 = 55_000;

/// The same where executors are plain: what one of them has lost is found by asking it, which takes long, ms.
const CALM_WITH_PLAIN_MS: i64 = CALM_MS + PLAIN_LOST_AFTER_MS;

fn calm_ms(shape: &Shape) -> i64 {
    if shape.has_plain() { CALM_WITH_PLAIN_MS } else { CALM_MS }
}

/// A row that was due so long after the end of faults has moved on, ms.
const STUCK_AFTER_MS: i64 = 5_000;

/// Of tasks that run in turn, the next run starts within this time while any waits, ms.
const TURN_WITHIN_MS: i64 = 15_000;

/// And after they were stopped, everything has ended within this time, ms.
const SETTLED_WITHIN_MS: i64 = 150_000;

/// Largest lag of a clock behind what it can know, µs.
pub const LAG_US: i64 = 18_000;

/// Nodes load what is due within the lead and so long, ms.
pub const LOADED_AHEAD_MS: i64 = 10_000;

/// The task of the tenants but the first: number of the tenant after it.
const NEIGHBOUR_TASKS: i64 = 1_000;

/// The app of each tenant.
const APP: &str = "app";

/// Number of a node that is none: runs that people start are named by it.
const PEOPLE: i64 = 1_000;

/// What makes a simulation, besides the code.
#[derive(Debug, Clone)]
pub struct Setup {
    /// What all chance follows from.
    pub seed: u64,
    /// How much there is of everything.
    pub shape: Shape,
    /// Of the first tenant.
    pub quotas: Quotas,
    /// What goes wrong; what the seed chooses if it is not said.
    pub faults: Option<Vec<Planned>>,
    /// What people do; what the seed chooses if neither this nor the faults are said.
    pub operations: Option<Vec<Intended>>,
    /// Whether its database is what ships, on SQLite, instead of the model.
    pub over_sqlite: bool,
}

impl Setup {
    /// What the seed alone makes.
    pub fn of(seed: u64) -> Self {
        let (shape, quotas) = (Shape::of(seed), Quotas::default());
        Self { seed, shape, quotas, faults: None, operations: None, over_sqlite: false }
    }
}

/// A tenant with one app.
#[derive(Debug, Clone)]
pub struct Tenant {
    /// Whose tasks and executors they are.
    pub owner: Owner,
    /// Its name.
    pub name: String,
    /// Its executors.
    pub executors: Vec<usize>,
    /// Ids of its tasks.
    pub tasks: Vec<TaskId>,
}

impl Tenant {
    /// What its executors sign with, or the token of plain ones.
    fn key(&self, is_token: bool) -> AppKey {
        AppKey { owner: self.owner, tenant: self.name.clone(), app: APP.to_owned(), is_token }
    }

    /// Its door for plain executors is closed if it has none.
    fn keys(&self, shape: &Shape) -> Vec<AppKey> {
        let has_plain = self.executors.iter().any(|index| shape.is_plain(*index));
        [false, true].into_iter().filter(|is_token| !is_token || has_plain).map(|is_token| self.key(is_token)).collect()
    }
}

/// A cluster under simulation.
pub struct World {
    pub time: Arc<SimTime>,
    pub dice: Arc<Dice>,
    pub trace: Arc<Trace>,
    pub net: Arc<Net>,
    pub ledger: Arc<Ledger>,
    /// The database past every gate.
    pub store: SimStore,
    pub nodes: Vec<Arc<SimNode>>,
    pub executors: Vec<Machine>,
    /// How much there is of everything.
    pub shape: Shape,
    /// Who has tasks.
    pub tenants: Vec<Tenant>,
    /// What goes wrong.
    pub faults: Vec<Planned>,
    /// What people do.
    pub operations: Vec<Intended>,
    /// When it began, epoch ms.
    pub began: i64,
    /// What edits, stops and starts answered.
    pub answers: Mutex<Vec<Answered>>,
    /// What people did besides changing tasks, as it was answered.
    pub done: Mutex<Vec<Done>>,
    /// Since when every node knew which bound of runs at once.
    pub bounds: Mutex<Vec<KnownBound>>,
    /// Rows that were not moved on.
    pub stuck: Mutex<Vec<LogRow>>,
    /// What is left in the memory of nodes at the end.
    pub leftovers: Mutex<Vec<String>>,
    /// Names the runs that people start.
    ids: IdSource,
}

/// What the parts of a world share.
struct Ground {
    time: Arc<SimTime>,
    dice: Arc<Dice>,
    trace: Arc<Trace>,
    net: Arc<Net>,
    ledger: Arc<Ledger>,
    store: SimStore,
    shape: Shape,
}

impl Ground {
    fn lag(&self, who: &str) -> i64 {
        self.dice.between(&format!("{who} lags"), 0, LAG_US)
    }

    /// Half of the nodes' clocks do not lag: a lag would hide that one goes ahead.
    fn clock(&self, node: &str) -> SimClock {
        let lag_us = if self.dice.happens(&format!("{node} lags at all"), 500) { self.lag(node) } else { 0 };
        SimClock::new(self.time.clone(), MachineTime::of(node, &self.dice, self.time.clone(), 0), lag_us)
    }

    /// Everyone's executors, the first tenant's first.
    fn executors(&self, tenants: &[Tenant]) -> Vec<Machine> {
        let machine = |index: usize, tenant: &Tenant| MachineParts {
            time: self.time.clone(),
            dice: self.dice.clone(),
            net: self.net.clone(),
            trace: self.trace.clone(),
            ledger: self.ledger.clone(),
            handlers: ["quick", "slow", "steady", "flaky", "long"].map(str::to_owned).to_vec(),
            key: tenant.key(self.shape.is_plain(index)),
            is_older: self.shape.older_executor == Some(index),
        };
        let executor = |index: usize, of| {
            if self.shape.is_plain(index) {
                return Machine::Plain(PlainExecutor::new(index, machine(index, of), self.store.clone()));
            }
            Machine::Sdk(SimExecutor::new(index, self.lag(&format!("executor {index}")), machine(index, of)))
        };
        tenants.iter().flat_map(|of| of.executors.iter().map(move |index| executor(*index, of))).collect()
    }

    fn node(&self, index: usize, executors: &[Machine], (keys, ring): (&Arc<AppKeys>, &Arc<KeyRing>)) -> Arc<SimNode> {
        let gate = Gate::new(format!("node {index}"), self.time.clone(), self.dice.clone());
        let clock = Arc::new(self.clock(&format!("node {index}")));
        let peers = Peers { node: index, gate: gate.clone(), net: self.net.clone(), executors: executors.to_vec() };
        let parts = TransportParts {
            keys: ring.clone(),
            key_store: keys.clone(),
            addresses: AddressRule::new(&[]),
            clock: clock.clone(),
            random: Arc::new(SeededRandom::new(&format!("node {index}"), self.dice.clone())),
        };
        SimNode::new(NodeParts {
            index,
            shape: self.shape.clone(),
            clock,
            store: Arc::new(self.store.through(gate.clone())),
            transport: Arc::new(SimTransport::over(SimCarrier(peers.clone()), parts)),
            peers,
            ring: ring.clone(),
            gate,
            trace: self.trace.clone(),
            keys: keys.clone(),
        })
    }

    /// A tenant with its app and tasks. The first one has the tasks of all kinds.
    async fn tenant(&self, index: usize) -> Tenant {
        let (name, now) = (format!("tenant-{index}"), self.time.now_ms());
        let id = index as i64 + 1;
        self.store.create_tenant(TenantId(id), &name, now).await.unwrap();
        let owner = self.store.create_app(AppId(100 + id), TenantId(id), &name, APP).await.unwrap();
        let (first, specs) = match index {
            0 => (10, tasks::specs(&self.shape)),
            _ => (NEIGHBOUR_TASKS + id, vec![tasks::neighbour(self.shape.tenants)]),
        };
        let mut ids = Vec::new();
        for (id, spec) in (first..).map(TaskId).zip(specs) {
            let task = new_task(id, owner, spec);
            self.store.create_task(&NewTask { activity: Activity::of(true), ..task }, now).await.unwrap();
            ids.push(id);
        }
        let own = self.shape.own_executors;
        let executors = if index == 0 { (0..own).collect() } else { vec![own + index - 1] };
        Tenant { owner, name, executors, tasks: ids }
    }
}

impl World {
    /// Everything there, nothing running.
    pub async fn new(setup: &Setup) -> Arc<Self> {
        let Setup { seed, shape, quotas, faults, operations, over_sqlite } = setup.clone();
        let time = SimTime::simulated();
        let dice = Arc::new(Dice::new(seed));
        let trace = Trace::new(time.clone());
        let net = Net::new(time.clone(), dice.clone());
        let ledger = Arc::new(Ledger::default());
        let over = if over_sqlite { SimStore::over_sqlite } else { SimStore::model };
        let store = over(time.clone(), trace.clone());
        let ground = Ground { time, dice, trace, net, ledger, store, shape };
        let mut tenants = Vec::new();
        for index in 0..ground.shape.tenants {
            tenants.push(ground.tenant(index).await);
        }
        let keys = Arc::new(AppKeys(tenants.iter().flat_map(|tenant| tenant.keys(&ground.shape)).collect()));
        let executors = ground.executors(&tenants);
        let ring = keys.ring().await;
        let node = |index| ground.node(index, &executors, (&keys, &ring));
        let nodes: Vec<Arc<SimNode>> = (0..ground.shape.nodes).map(node).collect();
        for executor in &executors {
            executor.connect(nodes.iter().map(|node| Arc::downgrade(node) as Weak<dyn NodeServer>).collect());
        }
        let Ground { time, dice, trace, net, ledger, store, shape } = ground;
        let began = time.now_ms();
        store.set_quotas(tenants[0].owner.tenant_id, &quotas, began).await.unwrap();
        let chosen = || {
            let mut plan = faults::plan(&dice, &shape, WARM_UP_MS, FAULTS_UNTIL_MS, tenants[0].tasks.len());
            // One server of SQLite reads nothing that is old.
            plan.retain(|planned| !over_sqlite || !matches!(planned.fault, Fault::Behind { .. }));
            plan
        };
        // A story that names its faults is about these.
        let nothing_else = faults.is_some().then(Vec::new);
        let faults = faults.unwrap_or_else(chosen);
        let operations = operations.or(nothing_else).unwrap_or_else(|| operations::plan(&dice, tenants[0].tasks.len()));
        let (answers, done, bounds, stuck, leftovers) = Default::default();
        let ids = IdSource::after(NodeId(PEOPLE), 0);
        Arc::new(Self {
            time,
            dice,
            trace,
            net,
            ledger,
            store,
            nodes,
            executors,
            shape,
            tenants,
            faults,
            operations,
            began,
            answers,
            done,
            bounds,
            stuck,
            leftovers,
            ids,
        })
    }

    /// Tasks of the first tenant, in the order of their definitions.
    pub fn tasks(&self) -> &[TaskId] {
        &self.tenants[0].tasks
    }

    /// A whole story: faults, calm, a stop of every task, and whatever follows.
    pub async fn run(self: &Arc<Self>) {
        self.nodes.iter().for_each(SimNode::start);
        self.executors.iter().for_each(Machine::start);
        operations::begin(self, &self.operations);
        for planned in self.faults.clone() {
            let world = self.clone();
            tokio::spawn(async move { world.bring_about(planned).await });
        }
        self.pass(MENDED_AT_MS).await;
        self.mend();
        self.pass(calm_ms(&self.shape)).await;
        self.look_for_stuck_rows();
        self.look_for_what_stands_still();
        self.look_for_ghosts().await;
        for task in self.tenants.iter().flat_map(|tenant| tenant.tasks.clone()) {
            self.change(0, task, false).await;
        }
        self.settle().await;
        // Copies of runs that were cancelled leave the queue when they would have gone out. The clock may have been where they
        // were loaded, and set back since.
        self.pass(self.shape.lead_ms + LOADED_AHEAD_MS + self.behind_ms()).await;
        self.look_for_leftovers().await;
    }

    /// Takes down what people ask for, or were answered.
    pub fn note(&self, what: Effect) {
        self.done.lock().unwrap().push(Done { what, at: self.time.now_ms() });
    }

    async fn bring_about(self: Arc<Self>, Planned { at, fault }: Planned) {
        if let Fault::LostCommits { last } = fault {
            return self.lose_commits(at, last).await;
        }
        self.pass(at).await;
        self.trace.add(format!("FAULT {fault}"));
        let until = |down: i64| self.time.now_ms() + down;
        match fault {
            Fault::Crash { node, down } => {
                self.nodes[node].crash();
                self.pass(down).await;
                self.nodes[node].start();
            }
            Fault::CrashAtCommit { node, kinds, down } => self.crash_at_commit(node, kinds, down).await,
            Fault::Stop { node, down } => {
                self.nodes[node].stop().await;
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
            Fault::Befalls { executor, ref mishap, down } => self.befall(executor, mishap, down).await,
            Fault::Doubled { per_mille, down } => {
                self.net.double(per_mille as u64);
                self.pass(down).await;
                self.net.double(0);
            }
            Fault::Overtaken { per_mille, down } => {
                self.net.reorder(per_mille as u64);
                self.pass(down).await;
                self.net.reorder(0);
            }
            Fault::StoreAway { node, down } => {
                let hit = self.nodes.iter().enumerate().filter(|(index, _)| node.is_none_or(|node| node == *index));
                hit.for_each(|(_, node)| node.gate().take_store_away(until(down)));
            }
            Fault::ReadOnly { down } => self.nodes.iter().for_each(|node| node.gate().make_read_only(until(down))),
            Fault::Slow { .. }
            | Fault::Behind { .. }
            | Fault::Doubt { .. }
            | Fault::LateCommits { .. }
            | Fault::GivenUp { .. }
            | Fault::Deadlocks { .. } => self.trouble_statements(&fault).await,
            Fault::LostCommits { .. } => {}
            Fault::Wall { node, by } => self.nodes[node].clock().machine().set_wall(by * 1_000),
            Fault::Lag { node, lag_us } => self.nodes[node].clock().set_lag(lag_us),
            Fault::Drift { node, ppm, down } => self.drift(node, ppm, down).await,
            Fault::ClockSet { by, undone_after } => {
                self.time.set_database_clock(by);
                if let Some(after) = undone_after {
                    self.pass(after).await;
                    self.trace.add("the database's clock is set the other way");
                    self.time.set_database_clock(-by);
                }
            }
            Fault::Edit { task } => self.change(task, self.tasks()[task], true).await,
            Fault::HalfEdit { task, leaves } => self.half_change(task, true, leaves).await,
            Fault::HalfRestart { task, leaves, down } => {
                self.half_change(task, false, leaves).await;
                self.pass(down).await;
                self.half_change(task, true, leaves).await;
            }
            Fault::Restart { task, down } => {
                self.change(task, self.tasks()[task], false).await;
                self.pass(down).await;
                self.change(task, self.tasks()[task], true).await;
            }
            Fault::Burst { tenant, runs } => self.burst(tenant, runs).await,
        }
    }

    /// What is wrong with the statements of one node for a while.
    async fn trouble_statements(&self, fault: &Fault) {
        match *fault {
            Fault::Slow { node, up_to, down } => {
                self.for_a_while(node, down, |gate, on| gate.slow_down(if on { up_to } else { 0 })).await;
            }
            Fault::Behind { node, up_to, down } => {
                self.for_a_while(node, down, |gate, on| gate.fall_behind(if on { up_to } else { 0 })).await;
            }
            Fault::Doubt { node, per_mille, down } => self.with_chance(node, per_mille, down, Gate::doubt).await,
            Fault::LateCommits { node, per_mille, down } => {
                self.with_chance(node, per_mille, down, Gate::commit_late).await;
            }
            Fault::GivenUp { node, per_mille, down } => self.with_chance(node, per_mille, down, Gate::give_up).await,
            Fault::Deadlocks { node, per_mille, down } => {
                self.with_chance(node, per_mille, down, Gate::deadlock).await;
            }
            _ => {}
        }
    }

    async fn crash_at_commit(&self, node: usize, kinds: usize, down: i64) {
        let node = &self.nodes[node];
        let within = Duration::from_millis(faults::COMMITS_WITHIN_MS as u64);
        drop(tokio::time::timeout(within, node.gate().dies_at_commit(kinds)).await);
        node.crash();
        node.gate().live();
        self.pass(down).await;
        node.start();
    }

    async fn drift(&self, node: usize, ppm: i64, down: i64) {
        let clock = self.nodes[node].clock();
        clock.machine().drift(ppm);
        self.pass(down).await;
        clock.machine().end_slew();
    }

    async fn with_chance(&self, node: usize, per_mille: i64, down: i64, set: impl Fn(&Gate, u64)) {
        self.for_a_while(node, down, |gate, on| set(gate, if on { per_mille as u64 } else { 0 })).await;
    }

    async fn for_a_while(&self, node: usize, down: i64, set: impl Fn(&Gate, bool)) {
        set(self.nodes[node].gate(), true);
        self.pass(down).await;
        set(self.nodes[node].gate(), false);
    }

    /// The database is away until a standby has taken over that lacks the last commits.
    async fn lose_commits(&self, at: i64, last: i64) {
        self.pass(at - last).await;
        let before = self.store.save();
        self.pass(last).await;
        self.trace.add(format!("FAULT {}", Fault::LostCommits { last }));
        let until = self.time.now_ms() + SWITCH_OVER_MS;
        self.nodes.iter().for_each(|node| node.gate().take_store_away(until));
        self.store.lose_commits_since(before);
    }

    /// Runs of the tenant's first task, all at once.
    async fn burst(&self, tenant: usize, runs: usize) {
        let task = self.tenants[tenant].tasks[0];
        for _ in 0..runs {
            let now = self.time.database_ms();
            tasks::start_by_hand(&self.store, task, LogId(self.ids.next(now)), now).await;
        }
        self.nodes.iter().for_each(|node| node.wake());
    }

    /// Changes a task, by another node when one does not answer, until it is done.
    async fn change(&self, first: usize, task: TaskId, started: bool) {
        for turn in first.. {
            let node = &self.nodes[turn % self.nodes.len()];
            if let Some(Ok(answered)) = tasks::change(node, task, started, None).await {
                return self.note_answer(answered, started);
            }
            self.pass(1_000).await;
        }
    }

    /// The same, once, by one who goes away.
    async fn half_change(&self, place: usize, started: bool, leaves: Leaves) {
        let (node, task) = (&self.nodes[place % self.nodes.len()], self.tasks()[place]);
        match tasks::change(node, task, started, Some(leaves)).await {
            Some(Ok(answered)) => self.note_answer(answered, started),
            _ => self.trace.add(format!("who changes task {task} (started {started}) has left")),
        }
    }

    fn note_answer(&self, answered: Answered, started: bool) {
        let answered = Answered { at: self.time.now_ms(), ..answered };
        self.trace.add(format!(
            "task {} change to revision {} (started {started}) answered, naming {:?} as running, {:?} as out of reach",
            answered.task, answered.revision, answered.running, answered.unreachable
        ));
        self.answers.lock().unwrap().push(answered);
    }

    fn mend(self: &Arc<Self>) {
        self.trace.add("MENDED");
        self.net.mend();
        for node in &self.nodes {
            node.gate().mend();
            node.start();
        }
        self.executors.iter().for_each(Machine::start);
    }

    /// A row that should have moved on in the calm: the stop that follows would hide it.
    fn look_for_stuck_rows(&self) {
        let now = self.time.database_ms();
        let since = now - calm_ms(&self.shape) + STUCK_AFTER_MS;
        let turns_since = self.time.now_ms() - TURN_WITHIN_MS;
        let starts = self.ledger.starts();
        let ended: BTreeMap<RunKey, i64> = self.ledger.stops().into_iter().map(|stop| (stop.key, stop.at)).collect();
        let goes_on_since = |start: &Start| ended.get(&start.key).is_none_or(|at| *at > turns_since);
        let has_its_turn = |start: &&Start| start.at > turns_since || goes_on_since(start);
        let moving: BTreeSet<TaskId> = starts.iter().filter(has_its_turn).map(|start| start.task).collect();
        let going: BTreeSet<LogId> = starts
            .iter()
            .map(|start| start.key)
            .filter(|key| !ended.contains_key(key))
            .map(|key| LogId(key.0))
            .collect();
        let found = self.store.inspect(|state| {
            // While others of its task have their turn, a run may wait for its own; executors keep what was handed to them before
            // the clock was set back.
            let is_ahead = |run: &Run| run.status == Status::Dispatched && run.due_time > now + self.shape.lead_ms;
            let ahead = state.logs.values().map(|row| &row.run).filter(|run| is_ahead(run)).map(|run| run.task_id);
            let busy: BTreeSet<TaskId> = moving.iter().copied().chain(ahead).collect();
            let waits = |task| busy.contains(&task) && state.tasks[&task].view.spec.needs_permit();
            // What its handler works on does not stand still.
            let is_late = |run: &Run| !run.status.is_terminal() && run.due_time < since && !going.contains(&run.id);
            // A parent waits for the last of its shards, which may be tried again later.
            let open = |run: &&Run| !run.status.is_terminal() && !is_late(run);
            let parents: BTreeSet<LogId> =
                state.logs.values().map(|row| &row.run).filter(open).map(|run| run.parent_id).collect();
            // A plain executor says whether it is busy with a task, not with which runs of it.
            let plain: BTreeSet<&str> =
                self.executors.iter().filter(|one| one.is_plain()).map(Machine::address).collect();
            let with = |run: &Run| (run.status == Status::Dispatched).then_some((run.task_id, run.executor_id));
            let is_hidden = |run: &Run| {
                let of_plain = with(run).filter(|(_, id)| plain.contains(state.executor_address(*id).as_str()));
                let beside = |row: &LogRow| row.run.id != run.id && with(&row.run) == of_plain;
                of_plain.is_some() && state.logs.values().any(beside)
            };
            let is_stuck = |run: &Run| is_late(run) && !waits(run.task_id) && !parents.contains(&run.id);
            let stuck = |row: &&LogRow| is_stuck(&row.run) && !is_hidden(&row.run);
            state.logs.values().filter(stuck).cloned().collect::<Vec<_>>()
        });
        self.stuck.lock().unwrap().extend(found);
    }

    /// What people asked for and no node goes on with. The stop that follows ends backfills.
    fn look_for_what_stands_still(&self) {
        let since = self.time.now_ms() - TURN_WITHIN_MS;
        let found = self.store.inspect(|state| {
            let goes_on = |log: &LogId| {
                let row = state.logs.get(log).map(|row| &row.run);
                row.is_some_and(|run| {
                    let ended = state.ends.get(&(*log, run.attempt)).map_or(i64::MIN, |end| end.at);
                    !run.status.is_terminal() || ended > since
                })
            };
            let of = |id: BackfillId| state.backfill_runs.iter().filter(move |(_, of)| **of == id).map(|(log, _)| log);
            let open = state.backfills.values().filter(|backfill| backfill.status == "open");
            let mut found: Vec<String> = open
                .filter(|backfill| !of(backfill.id).any(goes_on))
                .map(|backfill| format!("nobody goes on with {backfill:?}"))
                .collect();
            if state.has_changing_calendars() {
                found.push("a task is not planned by the last version of its calendar".to_owned());
            }
            found
        });
        self.leftovers.lock().unwrap().extend(found);
    }

    /// Runs that a node lets wait for others although they have gone out: the stop that follows would hide them.
    async fn look_for_ghosts(&self) {
        let soon = self.time.database_ms() + self.shape.lead_ms;
        for (index, node) in self.nodes.iter().enumerate() {
            let waiting = node.serve(async |parts: Arc<SimParts>| parts.engine.queue.blocked.copies()).await;
            let has_gone = |(id, version, due_time): &(LogId, i64, i64)| {
                let out = [Status::Dispatched, Status::Succeeded, Status::Failed];
                self.store.inspect(|state| {
                    let row = state.logs.get(id).map(|row| &row.run);
                    let has_gone = |run: &&Run| run.version > *version && out.contains(&run.status);
                    // What is due long after now, by a clock that was set back, has not been tried since; nor is it seen that a
                    // run has gone while one that executors keep from before has the place of both.
                    let keeps = |other: &Run| other.status == Status::Dispatched && other.due_time > soon;
                    let kept = |task| state.logs.values().any(|row| row.run.task_id == task && keeps(&row.run));
                    row.filter(has_gone).is_some_and(|run| run.due_time.max(*due_time) < soon && !kept(run.task_id))
                })
            };
            let ghosts: Vec<_> = waiting.into_iter().flatten().filter(has_gone).collect();
            if !ghosts.is_empty() {
                let text = format!("node {index} lets runs wait that have gone out: {ghosts:?}");
                self.leftovers.lock().unwrap().push(text);
            }
        }
    }

    async fn settle(&self) {
        // What was written before the clock was set back lies in its future.
        let mut left_ms = SETTLED_WITHIN_MS + self.set_back_ms();
        while left_ms > 0 && !self.has_settled() {
            self.pass(1_000).await;
            left_ms -= 1_000;
        }
        // Whatever might still start by mistake has its chance.
        self.pass(5_000).await;
        self.trace.add(format!("settled with {left_ms} ms to spare"));
    }

    /// How far the database's clock was set back, all in all, ms.
    fn set_back_ms(&self) -> i64 {
        let ahead: Vec<i64> = std::iter::once(0).chain(self.time.steps().iter().map(|step| step.ahead_ms)).collect();
        ahead.windows(2).map(|pair| (pair[0] - pair[1]).max(0)).sum()
    }

    /// How far the database's clock is behind what nodes may have taken for its time before, ms.
    fn behind_ms(&self) -> i64 {
        let mut ahead_ms = 0;
        let said = self.time.steps().into_iter().map(|step| step.at + std::mem::replace(&mut ahead_ms, step.ahead_ms));
        said.max().map_or(0, |said| (said + READ_IN_TROUBLE_MS - self.time.database_ms()).max(0))
    }

    /// What nodes and executors still have in memory when there is nothing to do.
    async fn look_for_leftovers(&self) {
        for executor in &self.executors {
            let kept = executor.kept();
            if !kept.is_empty() {
                self.leftovers.lock().unwrap().push(format!("executor {} keeps {kept:?}", executor.index()));
            }
        }
        for (index, node) in self.nodes.iter().enumerate() {
            let found = node.serve(async |parts: Arc<SimParts>| {
                let engine = &parts.engine;
                let waiting = engine.queue.blocked.len();
                let (queued, under_way) = (engine.queue.len(), engine.queue.under_way().len());
                let executors = engine.registry.ids().len();
                // Nothing comes after this look.
                let kept: Vec<(LogId, i64)> =
                    engine.queue.drain().into_iter().map(|run| (run.id, run.due_time)).collect();
                ((queued, under_way, waiting, executors), kept)
            });
            let (found, kept) = found.await.unzip();
            let expected = Some((0, 0, 0, self.executors.len()));
            if found != expected {
                let text = format!(
                    "node {index} has (queued, under way, waiting, executors) {found:?}, not {expected:?}: {kept:?}"
                );
                self.leftovers.lock().unwrap().push(text);
            }
        }
    }

    fn has_settled(&self) -> bool {
        let ended = |status: Status| status.is_terminal();
        let rows = self
            .store
            .inspect(|state| state.outbox_entries.is_empty() && state.logs.values().all(|row| ended(row.run.status)));
        rows && self.executors.iter().all(|executor| !executor.has_results())
    }

    /// Lets so much time pass, ms.
    pub async fn pass(&self, ms: i64) {
        tokio::time::sleep(Duration::from_millis(ms as u64)).await;
    }
}
