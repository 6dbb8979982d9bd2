//! What people do while a simulation goes on: they start, cancel and skip runs, fill what has passed, bound what may go on at
//! once, and keep windows for maintenance. Chosen by the seed; done through a node, as its API does it.

mod bounds;

pub use bounds::KnownBound;

use crate::faults;
use crate::node::{Leaves, SimParts};
use crate::world::World;
use carillon::definitions::change_of;
use carillon::domain::calendar::CalendarSpec;
use carillon::domain::rules::{MaintenanceWindow, WindowAction};
use carillon::domain::statistics::DAY_MS;
use carillon::domain::task::{ScheduleKind, TaskSpec};
use carillon::domain::{BackfillId, LogId, Reason, TaskId, TenantId, WindowId};
use carillon::store::{
    Backfill, NewRun, OutcomeStore as _, Result, Skip, Skipped, StoreError, StoreErrorKind, TaskView,
};
use carillon_simulation::Dice;
use carillon_simulation::store::Bounded;
use std::fmt;
use std::sync::{Arc, Mutex};

/// How often a cancel is repeated when the run changes meanwhile, as the API has it.
const CANCEL_ROUNDS_MAX: usize = 10;

/// Something that people do; times in ms.
#[derive(Debug, Clone)]
pub enum Operation {
    /// Writes a run that no schedule names, due in so long.
    Run { task: usize, due_in: i64 },
    /// Cancels a run of the task that has not ended, the newest or the oldest of them.
    Cancel { task: usize, newest: bool },
    /// Cancels a coming fire, and (perhaps) lets it come after so long.
    Skip { task: usize, restored_after: Option<i64> },
    /// Fills a range that ended so long ago, so many runs at a time; cancels that after so long (perhaps).
    Backfill { task: usize, from: i64, until: i64, at_once: i32, cancelled_after: Option<i64> },
    /// Keeps a window that begins soon; takes it away early (perhaps).
    Window { begins_in: i64, lasts: i64, action: WindowAction, dropped_after: Option<i64> },
    /// Bounds the runs of the app that go on at once, for so long.
    BoundApp { most: i32, lasts: i64 },
    /// Bounds those of the tenant.
    BoundTenant { most: i32, lasts: i64 },
    /// Writes a version of a calendar, the first one for this task; the tasks that name it follow at once, or it is left at that.
    Calendar { task: usize, version: i64, follows: bool },
    /// Nobody has deleted what is far older than it should be: so many logs of the task.
    History { task: usize, logs: i64 },
}

impl Operation {
    /// For how long it holds runs of the tenant back, ms after its own time.
    pub fn holds_back(&self) -> Option<(i64, i64)> {
        match self {
            Self::Window { begins_in, lasts, .. } => Some((*begins_in, begins_in + lasts)),
            Self::BoundApp { lasts, .. } | Self::BoundTenant { lasts, .. } => Some((0, *lasts)),
            _ => None,
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let after = |ms: &Option<i64>| ms.map_or("never".to_owned(), |ms| format!("after {ms} ms"));
        match self {
            Self::Run { task, due_in } => write!(f, "task {task} is run by hand in {due_in} ms"),
            Self::Cancel { task, newest } => {
                write!(f, "the {} near run of task {task} is cancelled", if *newest { "newest" } else { "oldest" })
            }
            Self::Skip { task, restored_after } => {
                write!(f, "the next fire of task {task} is skipped, and restored {}", after(restored_after))
            }
            Self::Backfill { task, from, until, at_once, cancelled_after } => {
                let cancelled = after(cancelled_after);
                write!(f, "{from} to {until} ms ago of task {task} is filled, {at_once} at once, cancelled {cancelled}")
            }
            Self::Calendar { task, version, follows } => {
                let left = if *follows { "" } else { ", and left at that" };
                write!(f, "version {version} of a calendar, which task {task} names, is written{left}")
            }
            Self::Window { begins_in, lasts, action, dropped_after } => {
                let dropped = after(dropped_after);
                write!(f, "a window ({action:?}) begins in {begins_in} ms and lasts {lasts} ms, taken away {dropped}")
            }
            Self::BoundApp { most, lasts } => write!(f, "the app has {most} runs at once at most, for {lasts} ms"),
            Self::BoundTenant { most, lasts } => {
                write!(f, "the tenant has {most} runs at once at most, for {lasts} ms")
            }
            Self::History { task, logs } => write!(f, "task {task} has {logs} logs of long ago"),
        }
    }
}

impl fmt::Display for Intended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>9.3} s  {}", self.at as f64 / 1_000.0, self.operation)?;
        self.leaves.map_or(Ok(()), |leaves| write!(f, ", by one who first {leaves}"))
    }
}

/// An operation and when it is done, ms after the beginning.
#[derive(Debug, Clone)]
pub struct Intended {
    /// When.
    pub at: i64,
    /// What.
    pub operation: Operation,
    /// Whether the first call of it is left before the answer. Nobody makes that call again; what follows is done.
    pub leaves: Option<Leaves>,
}

/// What people do in one seed, with that many tasks.
pub fn plan(dice: &Dice, tasks: usize) -> Vec<Intended> {
    let count = dice.between("how many operations", 2, 8);
    // All is over before the world is calm.
    let one = |number: i64| Intended {
        at: dice.between(&format!("when is operation {number}"), 8_000, 60_000),
        operation: choose(dice, &format!("operation {number}"), tasks),
        leaves: dice
            .happens(&format!("operation {number}: is left"), 150)
            .then(|| faults::leaves(dice, &format!("operation {number}"))),
    };
    let mut planned: Vec<Intended> = (0..count).map(one).collect();
    if dice.happens("a calendar is kept", 200) {
        planned.extend(calendar_kept(dice, tasks));
    }
    planned.sort_by_key(|intended| intended.at);
    planned
}

/// Versions of a calendar, one after the other.
fn calendar_kept(dice: &Dice, tasks: usize) -> Vec<Intended> {
    let task = dice.between("whose calendar it is", 0, tasks as i64 - 1) as usize;
    let mut at = dice.between("when it is written", 8_000, 30_000);
    let one = |version: i64| {
        let follows = dice.happens(&format!("version {version} of the calendar is followed at once"), 600);
        let intended = Intended { at, operation: Operation::Calendar { task, version, follows }, leaves: None };
        at += dice.between(&format!("until version {}", version + 1), 500, 15_000);
        intended
    };
    (1..=dice.between("how many versions of the calendar", 1, 3)).map(one).collect()
}

fn choose(dice: &Dice, name: &str, tasks: usize) -> Operation {
    let pick = |what: &str, low: i64, high: i64| dice.between(&format!("{name}: {what}"), low, high);
    let perhaps = |what: &str, low: i64, high: i64| (pick(what, 0, 1) == 1).then(|| pick(what, low, high));
    let task = pick("task", 0, tasks as i64 - 1) as usize;
    let lasts = pick("lasts", 1_000, 15_000);
    match pick("kind", 0, 12) {
        0 | 1 => {
            Operation::Run { task, due_in: if pick("is delayed", 0, 1) == 1 { pick("delay", 1, 8_000) } else { 0 } }
        }
        2..=4 => Operation::Cancel { task, newest: pick("newest", 0, 1) == 1 },
        5 => Operation::Skip { task, restored_after: perhaps("restored", 1_000, 15_000) },
        6 | 7 => {
            let until = pick("until", 0, 120_000);
            let from = until + pick("from", 5_000, 60_000);
            let cancelled_after = perhaps("cancelled", 500, 10_000);
            Operation::Backfill { task, from, until, at_once: pick("at once", 1, 5) as i32, cancelled_after }
        }
        8 => {
            let action = if pick("action", 0, 1) == 1 { WindowAction::Skip } else { WindowAction::Postpone };
            let begins_in = pick("begins", 0, 5_000);
            Operation::Window { begins_in, lasts, action, dropped_after: perhaps("dropped", 500, 10_000) }
        }
        9 | 10 => Operation::BoundApp { most: pick("most", 1, 5) as i32, lasts: pick("is bound", 2_000, 25_000) },
        11 => Operation::History { task: 0, logs: pick("logs", 10, 300) },
        _ => Operation::BoundTenant { most: pick("most", 1, 5) as i32, lasts: pick("is bound", 2_000, 25_000) },
    }
}

/// What became of an operation.
#[derive(Debug, Clone)]
pub struct Done {
    /// What.
    pub what: Effect,
    /// When it was answered, true time, epoch ms. What undoes something counts from when it was asked for.
    pub at: i64,
}

/// What somebody asked for, or an operation did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Somebody asks for a run to be cancelled.
    Cancelling(LogId),
    /// Somebody asks for the fire of a task at that instant to be skipped; in which operation.
    Skipping(TaskId, i64, usize),
    /// A run is cancelled.
    Cancelled(LogId),
    /// The fire of a task at that instant is skipped.
    Skipped(TaskId, i64),
    /// A run that no schedule names is written.
    Ran(LogId),
    /// Perhaps it is skipped no more.
    Restored(TaskId, i64),
    /// It certainly is not.
    Back(TaskId, i64),
    /// A range is filled.
    Filled(BackfillId),
    /// A window is known.
    Window(MaintenanceWindow),
    /// Perhaps it is no more.
    Dropped(WindowId),
}

/// Does all of them at their times.
pub fn begin(world: &Arc<World>, intended: &[Intended]) {
    for (number, Intended { at, operation, leaves }) in intended.iter().cloned().enumerate() {
        let desk = Desk { world: world.clone(), number, leaves: Mutex::new(leaves) };
        tokio::spawn(async move {
            desk.world.pass(at).await;
            desk.world.trace.add(format!("OPERATION {number} {operation}"));
            desk.work(operation).await;
        });
    }
}

/// Where one of them is done.
struct Desk {
    world: Arc<World>,
    number: usize,
    /// Of the call that is next.
    leaves: Mutex<Option<Leaves>>,
}

type Parts = Arc<SimParts>;

impl Desk {
    async fn work(&self, operation: Operation) {
        let task_at = |place: usize| self.world.tasks()[place];
        match operation {
            Operation::Run { task, due_in } => {
                let task = task_at(task);
                let ran = self.ask(move |parts: Parts| async move { run(&parts, task, due_in).await }).await;
                if let Some(log) = ran.flatten() {
                    self.world.note(Effect::Ran(log));
                }
            }
            Operation::Cancel { task, newest } => {
                if let Some(log) = self.open_run(task_at(task), newest) {
                    self.world.note(Effect::Cancelling(log));
                    let is_cancelled = self.ask(move |parts: Parts| async move { cancel(&parts, log).await }).await;
                    if is_cancelled == Some(true) {
                        self.world.note(Effect::Cancelled(log));
                    }
                }
            }
            Operation::Skip { task, restored_after } => self.skip(task_at(task), restored_after).await,
            Operation::Backfill { task, from, until, at_once, cancelled_after } => {
                let now = self.world.time.database_ms();
                self.backfill(task_at(task), (now - from, now - until), at_once, cancelled_after).await;
            }
            Operation::Window { begins_in, lasts, action, dropped_after } => {
                let starts_at = self.world.time.database_ms() + begins_in;
                let id = WindowId(1 + self.number as i64);
                let (tenant_id, ends_at, note) = (self.tenant(), starts_at + lasts, "disks".to_owned());
                self.window(MaintenanceWindow { id, tenant_id, starts_at, ends_at, action, note }, dropped_after).await;
            }
            Operation::BoundApp { most, lasts } => {
                self.bound(Bounded::App(self.world.tenants[0].owner.app_id), most, lasts).await;
            }
            Operation::BoundTenant { most, lasts } => self.bound(Bounded::Tenant(self.tenant()), most, lasts).await,
            Operation::Calendar { task, version, follows } => {
                let (task, tenant) = (task_at(task), self.tenant());
                self.ask(move |parts: Parts| async move { calendar(&parts, tenant, task, version, follows).await })
                    .await;
            }
            Operation::History { task, logs } => {
                let at = self.world.time.database_ms() - 40 * DAY_MS;
                let written = self.world.store.write_history(task_at(task), logs, at);
                written.await.expect("there is nothing in its way");
            }
        }
    }

    fn tenant(&self) -> TenantId {
        self.world.tenants[0].owner.tenant_id
    }

    /// A run that has not ended and whose time has come or is near; of the others there is little to tell.
    fn open_run(&self, task: TaskId, newest: bool) -> Option<LogId> {
        let soon = self.world.time.database_ms() + 5_000;
        self.world.store.inspect(|state| {
            let of_task = state.logs.values().map(|row| &row.run).filter(|run| run.task_id == task);
            let open = of_task.filter(|run| !run.status.is_terminal() && run.parent_id == LogId::NONE);
            let mut near = open.filter(|run| run.due_time < soon).map(|run| run.id);
            if newest { near.next_back() } else { near.next() }
        })
    }

    async fn skip(&self, task: TaskId, restored_after: Option<i64>) {
        let (world, number) = (self.world.clone(), self.number);
        let asked = self.ask(move |parts: Parts| {
            let world = world.clone();
            async move { skip(&parts, task, |fire_time| world.note(Effect::Skipping(task, fire_time, number))).await }
        });
        let skipped = asked.await;
        let Some(fire_time) = skipped.flatten() else { return };
        self.world.note(Effect::Skipped(task, fire_time));
        if let Some(after) = restored_after {
            self.world.pass(after).await;
            self.world.note(Effect::Restored(task, fire_time));
            if self.ask(move |parts: Parts| async move { restore(&parts, task, fire_time).await }).await.is_some() {
                self.world.note(Effect::Back(task, fire_time));
            }
        }
    }

    async fn backfill(&self, task: TaskId, range: (i64, i64), at_once: i32, cancelled_after: Option<i64>) {
        let filled = self.ask(move |parts: Parts| async move { backfill(&parts, task, range, at_once).await }).await;
        let Some(id) = filled.flatten() else { return };
        self.world.note(Effect::Filled(id));
        if let Some(after) = cancelled_after {
            self.world.pass(after).await;
            let tenant = self.tenant();
            self.ask(move |parts: Parts| async move {
                let now = parts.engine.clock.now_ms();
                parts.engine.store.cancel_backfill(tenant, task, id, now).await
            })
            .await;
        }
    }

    async fn window(&self, window: MaintenanceWindow, dropped_after: Option<i64>) {
        let (id, tenant, kept) = (window.id, window.tenant_id, window.clone());
        let known = self.ask(move |parts: Parts| {
            let window = window.clone();
            async move { parts.engine.store.add_window(&window, parts.engine.clock.now_ms()).await }
        });
        if known.await.is_some() {
            self.world.note(Effect::Window(kept));
        }
        if let Some(after) = dropped_after {
            self.world.pass(after).await;
            self.world.note(Effect::Dropped(id));
            self.ask(move |parts: Parts| async move { drop_window(&parts, tenant, id).await }).await;
        }
    }

    /// Asks one node after the other until one answers. What is refused is not asked for again: `None`; nor is what is left.
    async fn ask<A, W>(&self, work: impl Fn(Parts) -> W + Send + Sync) -> Option<A>
    where
        A: Send + 'static,
        W: Future<Output = Result<A>> + Send + 'static,
    {
        for turn in self.number.. {
            let node = &self.world.nodes[turn % self.world.nodes.len()];
            let leaves = self.leaves.lock().unwrap().take();
            match node.serve_for(leaves, &work).await {
                Some(Ok(answer)) => return Some(answer),
                _ if leaves.is_some() => {
                    self.world.trace.add(format!("OPERATION {} was left", self.number));
                    return None;
                }
                Some(Err(error)) if !error.is_temporary() => {
                    self.world.trace.add(format!("OPERATION {} was refused: {error}", self.number));
                    return None;
                }
                _ => self.world.pass(700).await,
            }
        }
        None
    }
}

async fn view(parts: &SimParts, task: TaskId) -> Result<TaskView> {
    let gone = || StoreError::new(StoreErrorKind::NotFound, "find a task", "there is no such task");
    parts.definitions.find(task).await?.ok_or_else(gone)
}

fn fires_by_itself(task: &TaskView) -> bool {
    matches!(task.spec.schedule, ScheduleKind::Cron | ScheduleKind::FixedRate)
}

async fn run(parts: &SimParts, task: TaskId, due_in: i64) -> Result<Option<LogId>> {
    let engine = &parts.engine;
    let view = view(parts, task).await?;
    let now = engine.clock.now_ms();
    // What hangs on the ends of a schedule's runs is `turns.rs`'s to judge by those runs alone.
    if view.spec.schedule == ScheduleKind::FixedDelay {
        return Ok(None);
    }
    let log = engine.ids.next(now);
    engine.store.start_run(&view, &NewRun::manual(log, now + due_in)).await?;
    parts.wake.notify_one();
    Ok(Some(log))
}

/// As `api/logs/cancel.rs` does it. Whether it is cancelled.
async fn cancel(parts: &SimParts, log: LogId) -> Result<bool> {
    let engine = &parts.engine;
    for _ in 0..CANCEL_ROUNDS_MAX {
        let Some(found) = engine.store.runs(None, &[log]).await?.pop() else { break };
        if found.run.status.is_terminal() {
            break;
        }
        if engine.canceller.cancel_by(&engine.store, &found, Reason::CancelledManually, "enough").await? {
            parts.ended.notify(engine);
            return Ok(true);
        }
    }
    Ok(false)
}

/// As `api/calendars.rs` does it. No day is left out.
async fn calendar(parts: &SimParts, tenant: TenantId, task: TaskId, version: i64, follows: bool) -> Result<()> {
    const NAME: &str = "days";
    let engine = &parts.engine;
    let spec = CalendarSpec { description: format!("version {version}"), ..CalendarSpec::default() };
    let put = engine.store.put_calendar(
        engine.ids.next(engine.clock.now_ms()),
        tenant,
        NAME,
        &spec,
        version - 1,
        engine.clock.now_ms(),
    );
    let change = put.await?;
    if version == 1 {
        let before = view(parts, task).await?;
        let (activity, spec) = (before.activity.clone(), TaskSpec { calendar: NAME.to_owned(), ..before.spec.clone() });
        parts.definitions.apply(&[], &[change_of(before, spec, activity)]).await?;
    }
    if follows {
        parts.definitions.follow_calendar(&change).await?;
    }
    Ok(())
}

/// The first fire that is not written yet.
async fn skip(parts: &SimParts, task: TaskId, asks: impl Fn(i64)) -> Result<Option<i64>> {
    let engine = &parts.engine;
    let view = view(parts, task).await?;
    if !view.activity.started || !fires_by_itself(&view) {
        return Ok(None);
    }
    let now = engine.clock.now_ms();
    let fire_time = view.next_fire_at;
    asks(fire_time);
    let wish = Skip { id: engine.ids.next(now), fire_time, message: "stocktaking".to_owned() };
    let is_skipped = match engine.store.skip_fire(&view, &wish, now).await? {
        Skipped::Written => true,
        // It was written in between.
        Skipped::There(log) => cancel(parts, log).await?,
    };
    Ok(is_skipped.then_some(fire_time))
}

async fn restore(parts: &SimParts, task: TaskId, fire_time: i64) -> Result<()> {
    let engine = &parts.engine;
    let view = view(parts, task).await?;
    let schedule = view.spec.to_schedule(view.anchor_at, task).expect("it was checked");
    let is_named = schedule.next_after(fire_time - 1) == fire_time;
    engine.store.restore_fire(&view, fire_time, is_named, engine.clock.now_ms()).await?;
    parts.engine.pregenerator.write_task(task).await?;
    parts.wake.notify_one();
    Ok(())
}

async fn backfill(
    parts: &SimParts,
    task: TaskId,
    (range_from, range_until): (i64, i64),
    max_concurrent: i32,
) -> Result<Option<BackfillId>> {
    let engine = &parts.engine;
    let view = view(parts, task).await?;
    if !view.activity.started || !fires_by_itself(&view) {
        return Ok(None);
    }
    let now = engine.clock.now_ms();
    let id = engine.ids.next(now);
    let asked = Backfill {
        id,
        tenant_id: view.owner.tenant_id,
        task_id: task,
        range_from,
        range_until,
        next_at: range_from,
        max_concurrent,
        params: None,
        status: "open".to_owned(),
        written: 0,
        existing: 0,
        created_at: now,
        finished_at: 0,
    };
    engine.store.create_backfill(&asked, now).await?;
    Ok(Some(id))
}

/// As `api/maintenance.rs` does it.
async fn drop_window(parts: &SimParts, tenant: TenantId, id: WindowId) -> Result<()> {
    parts.engine.store.drop_window(tenant, id).await?;
    parts.engine.look().await?;
    parts.engine.follow_rules().await?;
    parts.wake.notify_one();
    Ok(())
}
