//! Random steps of what registers, beats, leaves and holds leases, taken on the model and on a database: the same answers, and
//! the same is known of executors and nodes. Times are the database's own, so what is compared of them is whether there is one.

use super::{holds_for, missing};
use crate::executors::process;
use crate::fixture::World;
use carillon::domain::{AppId, ExecutorId, NodeId, Owner};
use carillon::store::{ExecutorHeartbeat, Fence, LeaseName, Member, NodeHeartbeat, NodeInfo, SignedHeartbeat, Signer};
use carillon_tests::Kind;
use proptest::prelude::*;

/// Sequences tried with each database.
const CASES: u32 = 24;

/// Lives longer than a story.
const TTL_MS: i64 = 600_000;

/// Processes that come and go at so many addresses.
const PROCESSES: usize = 5;
const ADDRESSES: usize = 2;

/// What they can do, from the first on.
const HANDLERS: [&str; 3] = ["pay", "ship", "count"];

/// A step; numbers choose among what there is when it is taken.
#[derive(Debug, Clone)]
enum Step {
    Register { process: usize, handlers: usize, replayed: bool },
    Beat { process: usize, impostor: bool, stranger: bool, replayed: bool, draining: bool },
    BeatTogether { replayed: bool, draining: bool },
    Retire { process: usize, left: bool, stranger: bool },
    Join { name: usize },
    NodeBeat { member: usize },
    Leave { member: usize },
    TakeLease { node: i64, held: bool },
    ReleaseLease { stale: bool },
    PurgeMembers,
}

fn step() -> impl Strategy<Value = Step> {
    let (process, rarely) = (0..PROCESSES, || prop::bool::weighted(0.2));
    prop_oneof![
        4 => (process.clone(), 0usize..4, rarely())
            .prop_map(|(process, handlers, replayed)| Step::Register { process, handlers, replayed }),
        4 => (process.clone(), rarely(), rarely(), rarely(), rarely()).prop_map(
            |(process, impostor, stranger, replayed, draining)| {
                Step::Beat { process, impostor, stranger, replayed, draining }
            }
        ),
        2 => (rarely(), rarely()).prop_map(|(replayed, draining)| Step::BeatTogether { replayed, draining }),
        2 => (process, any::<bool>(), rarely())
            .prop_map(|(process, left, stranger)| Step::Retire { process, left, stranger }),
        2 => (0usize..3).prop_map(|name| Step::Join { name }),
        2 => any::<usize>().prop_map(|member| Step::NodeBeat { member }),
        1 => any::<usize>().prop_map(|member| Step::Leave { member }),
        2 => (1i64..3, any::<bool>()).prop_map(|(node, held)| Step::TakeLease { node, held }),
        1 => any::<bool>().prop_map(|stale| Step::ReleaseLease { stale }),
        1 => Just(Step::PurgeMembers),
    ]
}

/// One of the two, with what it has answered: ids and incarnations are its own.
struct Side {
    world: World,
    /// Ids of the processes, by their place.
    executors: [Option<ExecutorId>; PROCESSES],
    members: Vec<Member>,
    fence: Option<Fence>,
    /// When the next message is signed, ms.
    signed_at: i64,
}

impl Side {
    fn of(world: World) -> Self {
        Self { world, executors: [None; PROCESSES], members: Vec::new(), fence: None, signed_at: 1_000 }
    }

    fn signer(&mut self, stranger: bool, replayed: bool) -> Signer<'static> {
        self.signed_at += i64::from(!replayed);
        let owner = self.world.owner;
        let app_id = AppId(owner.app_id.0 + i64::from(stranger));
        Signer { owner: Owner { app_id, ..owner }, key_id: "key", signed_at: self.signed_at }
    }

    fn heartbeat(&self, process: usize, draining: bool) -> ExecutorHeartbeat {
        let executor_id = self.executors[process].unwrap_or(ExecutorId(77));
        let instance = format!("process {process}");
        ExecutorHeartbeat { executor_id, instance, held: process, running: 2, draining, node_id: NodeId(1) }
    }

    /// What became of it.
    async fn take(&mut self, step: &Step) -> String {
        let (store, now) = (self.world.store.clone(), self.world.now);
        match *step {
            Step::Register { process: place, handlers, replayed } => {
                let address = format!("host-{}", place % ADDRESSES);
                let told = process(&format!("process {place}"), &address, &HANDLERS[..handlers]);
                let signer = self.signer(false, replayed);
                let done = store.register(&signer, &told, &|| self.world.id(), now).await;
                if let Ok(registration) = &done {
                    self.executors[place] = Some(registration.executor_id);
                }
                format!("{:?}", done.map(|done| done.left_out).map_err(|error| error.kind()))
            }
            Step::Beat { process, impostor, stranger, replayed, draining } => {
                let signer = self.signer(stranger, replayed);
                let mut beat = self.heartbeat(process, draining);
                if impostor {
                    beat.instance.push('!');
                }
                format!("{:?}", store.beat(&signer, &beat).await.map_err(|error| error.kind()))
            }
            Step::BeatTogether { replayed, draining } => {
                let Signer { owner, signed_at, .. } = self.signer(false, replayed);
                let known = (0..PROCESSES).filter(|process| self.executors[*process].is_some());
                let beats: Vec<SignedHeartbeat> = known
                    .map(|process| SignedHeartbeat { owner, signed_at, heartbeat: self.heartbeat(process, draining) })
                    .collect();
                format!("{:?}", store.beats(&beats).await.map_err(|error| error.kind()))
            }
            Step::Retire { process, left, stranger } => {
                let signer = self.signer(stranger, false);
                let id = self.executors[process].unwrap_or(ExecutorId(77));
                format!("{:?}", store.retire(&signer, id, left, now).await.map_err(|error| error.kind()))
            }
            Step::Join { name } => {
                let info = NodeInfo { name: format!("node {name}"), address: "here".to_owned(), ..NodeInfo::default() };
                let member = store.join(&info).await.unwrap();
                let answer = member.id.to_string();
                self.members.push(member);
                answer
            }
            Step::NodeBeat { member } => {
                let Some(member) = self.members.get(member % self.members.len().max(1)) else { return String::new() };
                format!("{:?}", store.heartbeat(member, &NodeHeartbeat::default()).await.unwrap())
            }
            Step::Leave { member } => {
                let Some(member) = self.members.get(member % self.members.len().max(1)) else { return String::new() };
                format!("{:?}", store.leave(member).await.map_err(|error| error.kind()))
            }
            Step::TakeLease { node, held } => {
                let held = self.fence.filter(|_| held);
                let fence = store.take_lease(LeaseName::Statistics, NodeId(node), held, TTL_MS).await.unwrap();
                self.fence = fence.or(self.fence);
                format!("{fence:?}")
            }
            Step::ReleaseLease { stale } => {
                let Some(fence) = self.fence else { return String::new() };
                let number = fence.number - i64::from(stale);
                format!("{:?}", store.release_lease(Fence { number, ..fence }).await.map_err(|error| error.kind()))
            }
            Step::PurgeMembers => format!("{:?}", store.purge_members(1, 100).await.map_err(|error| error.kind())),
        }
    }

    /// The place of the process that has this id.
    fn place(&self, id: ExecutorId) -> Option<usize> {
        self.executors.iter().position(|executor| *executor == Some(id))
    }

    /// What is known of executors and nodes.
    async fn picture(&self) -> Vec<String> {
        let store = &self.world.store;
        let known: Vec<ExecutorId> = self.executors.iter().flatten().copied().collect();
        let mut picture = Vec::new();
        for one in store.executors(0).await.unwrap() {
            let handlers = HANDLERS.map(|name| one.handlers.contains(name));
            let of = (&one.instance, &one.address, &one.tags, handlers, one.draining, one.disabled);
            let has = (one.weight, one.capacity, one.held, one.running, one.node_id, one.heartbeat_at > 0);
            picture.push(format!("executor {:?}: {of:?} {has:?}", self.place(one.id)));
        }
        for one in store.pulses(0).await.unwrap() {
            let of = (one.gone_at > 0, one.draining, one.disabled, one.held, one.running, one.node_id, one.capacity);
            picture.push(format!("pulse {:?}: {of:?}", self.place(one.id)));
        }
        for end in store.executor_ends(&known).await.unwrap() {
            let of = (end.instance, end.key_id, end.address, end.own_address, end.gone_at > 0);
            picture.push(format!("end {:?}: {of:?}", self.place(end.id)));
        }
        for node in store.nodes().await.unwrap() {
            let of = (node.id, node.name, node.address, node.left_at > 0, node.queue_depth, node.heartbeat_at > 0);
            picture.push(format!("node {of:?}"));
        }
        for name in HANDLERS {
            let tasks = self.world.admin.tasks_named("retail", name).await;
            picture.extend(tasks.into_iter().map(|task| format!("task {:?} {:?}", task.spec, task.activity)));
        }
        picture.sort();
        picture
    }
}

fn same_steps(kind: Kind) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    holds_for(CASES, 200, &prop::collection::vec(step(), 5..40), |steps| {
        runtime.block_on(async {
            let (mut model, mut sql) = (Side::of(World::model().await), Side::of(World::sql(kind).await));
            for (number, step) in steps.iter().enumerate() {
                let (one, two) = (model.take(step).await, sql.take(step).await);
                assert_eq!(one, two, "{step:?}, step {number}");
                let (model, sql) = (model.picture().await, sql.picture().await);
                assert!(
                    model == sql,
                    "after {step:?}, step {number}: only the model has\n{}\nonly the database has\n{}",
                    missing(&model, &sql),
                    missing(&sql, &model)
                );
            }
        });
    });
}

#[test]
fn the_model_and_sqlite_know_the_same_members() {
    same_steps(Kind::Sqlite);
}

#[test]
fn the_model_and_mariadb_know_the_same_members() {
    same_steps(Kind::MariaDb);
}

#[test]
fn the_model_and_postgres_know_the_same_members() {
    same_steps(Kind::Postgres);
}
