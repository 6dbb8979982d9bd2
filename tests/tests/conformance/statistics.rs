//! Statistics, held against the rows of the task log: the databases only, since the model has none.

use crate::fixture;
use crate::plans::Plans;
use carillon::cluster::{Clock, Membership};
use carillon::domain::access::TenantScope;
use carillon::domain::plan::{Fire, Plan};
use carillon::domain::statistics::{DAY_MS, Figures, Grain, HOUR_MS, Histogram, MINUTE_MS, Step, count_again_after_ms};
use carillon::domain::{AccessScope, AppId, NodeId, Reason, TaskId, TenantId, Trigger};
use carillon::housekeeping::{Aggregator, StatisticsSettings};
use carillon::store::{
    ClusterStore, Fence, FiguresFilter, LeaseName, NodeInfo, Result, STATISTICS_LEASE_MS, SqlStore, StatisticsStore,
    StoreErrorKind, Writer,
};
use carillon_simulation::Dice;
use carillon_tests::{Database, Kind, LogRow, Status, now_ms};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

/// `desks!(name, …)` makes a test of each function for each database.
macro_rules! desks {
    ($($case:ident),+ $(,)?) => {
        $(mod $case {
            desks!(@one $case sqlite Sqlite);
            desks!(@one $case mariadb MariaDb);
            desks!(@one $case postgres Postgres);
        })+
    };
    (@one $case:ident $name:ident $kind:ident) => {
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $name() {
            let desk = super::Desk::new(carillon_tests::Kind::$kind).await;
            let plans = desk.plans.clone();
            super::$case(desk).await;
            plans.check(super::NO_HOME).await;
        }
    };
}

desks!(
    figures_say_what_the_rows_say,
    late_results_change_the_minute_of_their_fire,
    runs_of_past_instants_are_counted,
    times_that_cannot_be_stop_no_count,
    a_node_without_the_lease_writes_nothing,
    a_minute_left_half_counted_is_counted_by_the_next,
    counting_again_takes_nothing_away,
    old_figures_go_by_the_day,
    a_clock_that_has_jumped_ahead_costs_no_figures,
    figures_of_others_are_not_shown,
);

/// Time as a case sets it, ms.
struct SetClock {
    cluster: AtomicI64,
    /// The machine's own.
    here: AtomicI64,
}

impl Clock for SetClock {
    fn now_us(&self) -> i64 {
        self.cluster.load(Ordering::Relaxed) * 1_000
    }

    fn here_us(&self) -> i64 {
        self.here.load(Ordering::Relaxed) * 1_000
    }

    fn local_us(&self) -> i64 {
        self.now_us()
    }
}

/// A fresh database and who counts on it.
struct Desk {
    database: Database,
    store: Arc<SqlStore>,
    plans: Plans,
    clock: Arc<SetClock>,
    aggregator: Aggregator<SqlStore>,
    /// The start of an hour some hours ago, ms.
    hour: i64,
    dice: Dice,
}

const TASKS: i64 = 40;

/// No id of a desk stands for one of the large tables.
const NO_HOME: [i64; 2] = [-1, -1];

impl Desk {
    async fn new(kind: Kind) -> Self {
        let database = Database::fresh(kind).await;
        let (store, plans) = fixture::connect_watched(&database).await;
        let store = Arc::new(store);
        let now = now_ms();
        let clock = Arc::new(SetClock { cluster: AtomicI64::new(now), here: AtomicI64::new(now) });
        let aggregator = aggregator(&store, &clock, "a").await;
        for task in 1..=TASKS {
            database.execute(&task_row(task)).await;
        }
        let hour = now - now % HOUR_MS - 5 * HOUR_MS;
        // What is inserted goes a little beyond the hour, and should be of one day.
        let hour = if hour % DAY_MS == 23 * HOUR_MS { hour - HOUR_MS } else { hour };
        Self { database, store, plans, clock, aggregator, hour, dice: Dice::new(7) }
    }

    fn set(&self, now: i64) {
        self.set_cluster(now);
        self.clock.here.store(now, Ordering::Relaxed);
    }

    /// The database's clock is set, and the machine's is not.
    fn set_cluster(&self, now: i64) {
        self.clock.cluster.store(now, Ordering::Relaxed);
    }

    /// Counts until nothing is due any more.
    async fn count_at(&self, now: i64) {
        self.set(now);
        while self.aggregator.tick().await.unwrap() > 0 {}
    }

    /// Runs of all tasks at instants of `minutes` minutes from the hour on, of every state.
    async fn insert_runs(&self, minutes: i64, each: i64) {
        let mut rows = Vec::new();
        for at in 0..minutes * each {
            let fire = self.hour + at * MINUTE_MS / each;
            rows.extend((1..=TASKS).filter(|task| at % task == 0).map(|task| self.row(task, fire)));
        }
        for (at, chunk) in rows.chunks(1_000).enumerate() {
            let values: Vec<String> = chunk
                .iter()
                .enumerate()
                .map(|(i, row)| row.replace("{id}", &(at * 1_000 + i + 1).to_string()))
                .collect();
            self.database.execute(&insert(&values)).await;
        }
    }

    fn row(&self, task: i64, fire: i64) -> String {
        let status = [0, 1, 2, 3, 10, 10, 10, 10, 11, 12, 13, 14][self.dice.between("status", 0, 11) as usize];
        let due = fire + self.dice.between("due", 0, 1) * 30_000;
        let late = [0, 1, 2, 3, 40, 499, 500, 501, 70_000][self.dice.between("late", 0, 8) as usize] - 1;
        let took = [0, 1, 7, 1_000, 1_001, 9_000_000, 90_000_000][self.dice.between("took", 0, 6) as usize];
        let started = if matches!(status, 0 | 1 | 13) { 0 } else { due + late };
        let finished = if status >= 10 { due + late + took } else { 0 };
        // A sharded task now and then: its shards count as nothing of their own.
        let (parent, shard) = if task == 13 && self.dice.happens("shard", 500) { (99, 1 + fire % 7) } else { (0, 0) };
        let failures = self.dice.between("failures", 0, 2);
        run(task, parent, shard, fire, due, status, failures, started, finished)
    }

    async fn points(&self, filter: &FiguresFilter) -> BTreeMap<i64, Figures> {
        self.store.figures(&AccessScope::All, filter).await.unwrap().into_iter().collect()
    }

    /// What the rows say, point by point.
    async fn expected(&self, filter: &FiguresFilter) -> BTreeMap<i64, Figures> {
        let rows = self.database.logs(&format!("fire_time >= {} AND fire_time < {}", filter.from, filter.until)).await;
        let mut points: BTreeMap<i64, Figures> = BTreeMap::new();
        let wanted = |row: &&LogRow| {
            row.parent == 0
                && filter.task_id.is_none_or(|task| row.task == task.0)
                && filter.tenant_id.is_none_or(|tenant| tenant_of(row.task) == tenant.0)
        };
        for row in rows.iter().filter(wanted) {
            let at = row.fire_time - (row.fire_time - filter.from) % filter.step.ms();
            points.entry(at).or_default().merge(&figures_of(row));
        }
        points
    }

    /// Every kind of chart says what the rows say.
    async fn assert_agrees(&self) {
        for (step, from) in [
            (Step::Minute, self.hour),
            (Step::FiveMinutes, self.hour + MINUTE_MS),
            (Step::Hour, self.hour),
            (Step::Day, self.hour - 3 * HOUR_MS),
        ] {
            let until = self.hour + 3 * HOUR_MS;
            let all = FiguresFilter { tenant_id: None, task_id: None, from, until, step };
            let tenant = FiguresFilter { tenant_id: Some(TenantId(2)), ..all.clone() };
            let task = FiguresFilter { task_id: Some(TaskId(3)), ..tenant.clone() };
            let sharded = FiguresFilter { task_id: Some(TaskId(13)), ..all.clone() };
            for filter in [all, tenant, task, sharded] {
                assert_eq!(self.points(&filter).await, self.expected(&filter).await, "{filter:?}");
            }
        }
    }

    async fn lease_of(&self, node: &str) -> Fence {
        let node = NodeInfo { name: node.to_owned(), ..NodeInfo::default() };
        let node = self.store.join(&node).await.unwrap().id;
        let taken = self.store.take_lease(LeaseName::Statistics, node, None, STATISTICS_LEASE_MS).await;
        taken.unwrap().expect("the lease is free")
    }

    async fn rows_of(&self, grain: Grain) -> i64 {
        self.database.number(&format!("SELECT COUNT(*) FROM statistic WHERE grain = {}", grain as i32)).await
    }
}

async fn aggregator(store: &Arc<SqlStore>, clock: &Arc<SetClock>, name: &str) -> Aggregator<SqlStore> {
    let info = NodeInfo { name: name.to_owned(), ..NodeInfo::default() };
    let membership = Membership::join(store.clone(), clock.clone(), &info, 10_000).await.unwrap();
    let settings = StatisticsSettings { logs_ms: 5 * DAY_MS, task_minutes_ms: 7 * DAY_MS, figures_ms: 90 * DAY_MS };
    Aggregator::new(store.clone(), clock.clone(), Arc::new(membership), settings)
}

/// A task with nothing but its owner.
fn task_row(task: i64) -> String {
    format!(
        "INSERT INTO task (id, tenant_id, app_id, name, handler, description, cron, time_zone, params, routing, tags, \
         failure_strategy, max_retries, retry_interval_ms, expired_strategy, expire_after_ms, misfire_strategy, \
         timeout_ms, delivery, started, revision, next_fire_at, written_until, created_at, updated_at) VALUES \
         ({task}, {}, 1, 'task {task}', '', '', '', '', '', '', '[]', '', 0, 0, '', 0, '', 0, '', 0, 1, 0, 0, 0, 0)",
        tenant_of(task)
    )
}

fn tenant_of(task: i64) -> i64 {
    1 + task % 2
}

#[allow(clippy::too_many_arguments)] // the columns that matter
fn run(
    task: i64,
    parent: i64,
    shard: i64,
    fire: i64,
    due: i64,
    status: i64,
    failures: i64,
    started: i64,
    finished: i64,
) -> String {
    format!(
        "({{id}}, {}, 1, {task}, 1, {parent}, {shard}, 1, 0, {fire}, {due}, {status}, 3, 1, {failures}, 1, 1, 0, 0, \
         {started}, {finished}, '')",
        tenant_of(task)
    )
}

fn insert(values: &[String]) -> String {
    format!(
        "INSERT INTO task_log (id, tenant_id, app_id, task_id, revision, parent_id, shard_index, shard_total, bucket, \
         fire_time, due_time, status, version, attempt, failures, node_id, executor_id, queued_at, dispatched_at, \
         started_at, finished_at, reason) VALUES {}",
        values.join(", ")
    )
}

fn figures_of(row: &LogRow) -> Figures {
    let is = |status| u64::from(row.status == status);
    let (mut lateness, mut duration) = (Histogram::default(), Histogram::default());
    if row.started_at > 0 {
        lateness.record(row.started_at - row.due_time);
        if row.finished_at > 0 {
            duration.record(row.finished_at - row.started_at);
        }
    }
    Figures {
        fires: 1,
        succeeded: is(Status::Succeeded),
        failed: is(Status::Failed),
        discarded: is(Status::Discarded),
        expired: is(Status::Expired),
        cancelled: is(Status::Cancelled),
        open: u64::from(!row.status.is_terminal()),
        failures: row.failures as u64,
        lateness,
        duration,
    }
}

async fn figures_say_what_the_rows_say(desk: Desk) {
    desk.insert_runs(95, 6).await;
    let until = desk.hour + 95 * MINUTE_MS;
    desk.count_at(until + 30_000).await;
    desk.assert_agrees().await;
    assert_eq!(desk.store.statistics_until().await.unwrap(), until);
    desk.count_at(until + 10 * MINUTE_MS).await;
    desk.assert_agrees().await;
    assert_eq!(desk.rows_of(Grain::TenantHour).await, 3, "the first hour is added up, for two tenants and for all");
    desk.count_at(desk.hour + 3 * HOUR_MS).await;
    desk.assert_agrees().await;
    assert_eq!(desk.rows_of(Grain::TenantHour).await, 6);
    assert!(desk.rows_of(Grain::TaskHour).await > TASKS);
}

async fn late_results_change_the_minute_of_their_fire(desk: Desk) {
    desk.insert_runs(62, 4).await;
    let counted_at = desk.hour + 2 * HOUR_MS;
    desk.count_at(counted_at).await;
    desk.assert_agrees().await;
    let ends =
        "UPDATE task_log SET status = 10, started_at = due_time + 7, finished_at = due_time + 99 WHERE status < 10";
    desk.database.execute(&format!("{ends} AND task_id < 20")).await;
    let first =
        FiguresFilter { tenant_id: None, task_id: None, from: desk.hour, until: counted_at, step: Step::Minute };
    let before = desk.points(&first).await;
    desk.count_at(counted_at + count_again_after_ms(0) - 1).await;
    assert_eq!(desk.points(&first).await, before, "not yet");
    // The hour, which was added up before, follows a little later.
    desk.count_at(counted_at + count_again_after_ms(0)).await;
    desk.count_at(counted_at + 10 * MINUTE_MS).await;
    desk.assert_agrees().await;
    desk.database.execute(ends).await;
    desk.count_at(counted_at + HOUR_MS).await;
    desk.count_at(counted_at + 2 * HOUR_MS).await;
    desk.assert_agrees().await;
    let left = desk.database.number("SELECT COUNT(*) FROM statistic_work").await;
    assert_eq!(left, 0, "all has ended, and nothing is to be counted again");
}

async fn times_that_cannot_be_stop_no_count(desk: Desk) {
    desk.insert_runs(2, 6).await;
    let until = desk.hour + 2 * MINUTE_MS;
    desk.database
        .execute(&format!("UPDATE task_log SET status = 10, started_at = {}, finished_at = {}", i64::MIN, i64::MAX))
        .await;
    desk.count_at(until + 30_000).await;
    assert_eq!(desk.store.statistics_until().await.unwrap(), until);
    let all = FiguresFilter { tenant_id: None, task_id: None, from: desk.hour, until, step: Step::Minute };
    let points = desk.points(&all).await;
    assert_eq!(points.len(), 2);
    for figures in points.values() {
        assert!(figures.fires > 0 && figures.succeeded == figures.fires);
        assert_eq!((figures.lateness, figures.duration), Default::default(), "not known");
    }
}

async fn runs_of_past_instants_are_counted(desk: Desk) {
    let world = crate::fixture::World::over_database(&desk.database).await;
    let task = world.started(&crate::fixture::World::every_second("missed")).await;
    let counted_at = desk.hour + 2 * HOUR_MS;
    desk.insert_runs(3, 2).await;
    desk.count_at(counted_at).await;
    let at = desk.hour + 70_000;
    let fire = |fire_time| Fire {
        id: world.id(),
        fire_time,
        due_time: counted_at,
        status: carillon::domain::Status::Init,
        reason: Reason::None,
        trigger: Trigger::Misfire,
        seq: 0,
        message: String::new(),
    };
    let plan = Plan { fires: vec![fire(at), fire(at + 60_000)], ..world.plan(&task, []) };
    world.store.write_ahead(Writer::Node(NodeId(1)), &[plan], counted_at).await.unwrap();
    desk.count_at(counted_at + 40_000).await;
    let filter = FiguresFilter {
        tenant_id: None,
        task_id: Some(task.id),
        from: desk.hour,
        until: counted_at,
        step: Step::Minute,
    };
    let points = desk.points(&filter).await;
    let open: Vec<_> = points.iter().map(|(at, figures)| ((at - desk.hour) / MINUTE_MS, figures.open)).collect();
    assert_eq!(open, [(1, 1), (2, 1)]);
}

async fn a_node_without_the_lease_writes_nothing(desk: Desk) {
    desk.insert_runs(1, 6).await;
    let old = desk.lease_of("x").await;
    desk.store.release_lease(old).await.unwrap();
    let new = desk.lease_of("y").await;
    let store = &desk.store;
    assert!(!store.list_minutes(old, desk.hour, desk.hour + MINUTE_MS).await.unwrap());
    assert!(!store.count_tasks(old, desk.hour, &[TaskId(1), TaskId(2)]).await.unwrap());
    assert_eq!(desk.rows_of(Grain::TaskMinute).await, 0);
    assert!(store.count_tasks(new, desk.hour, &[TaskId(1), TaskId(2)]).await.unwrap());
    assert_eq!(desk.rows_of(Grain::TaskMinute).await, 2);
    assert!(!store.sum_minute(old, desk.hour).await.unwrap());
    assert_eq!(desk.rows_of(Grain::TenantMinute).await, 0);
    desk.count_at(desk.hour + HOUR_MS).await;
    assert_eq!(desk.rows_of(Grain::TenantMinute).await, 0, "another node holds the lease");
}

async fn a_minute_left_half_counted_is_counted_by_the_next(desk: Desk) {
    desk.insert_runs(3, 6).await;
    let fence = desk.lease_of("x").await;
    let until = desk.hour + 3 * MINUTE_MS;
    assert!(desk.store.list_minutes(fence, desk.hour, until).await.unwrap());
    assert!(desk.store.count_tasks(fence, desk.hour, &[TaskId(1), TaskId(2), TaskId(3)]).await.unwrap());
    assert!(desk.store.sum_minute(fence, desk.hour).await.unwrap());
    desk.store.release_lease(fence).await.unwrap();
    desk.database.execute("UPDATE task_log SET status = 10, finished_at = due_time + 5 WHERE status < 10").await;
    desk.count_at(desk.hour + HOUR_MS).await;
    desk.assert_agrees().await;
}

async fn counting_again_takes_nothing_away(desk: Desk) {
    desk.insert_runs(2, 6).await;
    desk.database.execute("UPDATE task_log SET status = 10, finished_at = due_time + 5 WHERE status < 10").await;
    let counted_at = desk.hour + 2 * HOUR_MS;
    desk.count_at(counted_at).await;
    let all = FiguresFilter { tenant_id: None, task_id: None, from: desk.hour, until: counted_at, step: Step::Minute };
    let before = desk.points(&all).await;
    desk.database.execute("DELETE FROM task_log WHERE id % 3 = 0").await;
    desk.database.execute("UPDATE statistic_state SET listed_until = 0").await;
    desk.count_at(counted_at + 1).await;
    assert_eq!(desk.points(&all).await, before);
}

async fn old_figures_go_by_the_day(desk: Desk) {
    desk.insert_runs(62, 2).await;
    desk.database.execute("UPDATE task_log SET status = 10, finished_at = due_time + 5 WHERE status < 10").await;
    desk.count_at(desk.hour + 3 * HOUR_MS).await;
    desk.count_at(desk.hour + 4 * HOUR_MS).await;
    let minutes = desk.rows_of(Grain::TaskMinute).await;
    let before = desk.hour + 10 * MINUTE_MS;
    let young = format!("SELECT COUNT(*) FROM statistic WHERE grain = 1 AND start >= {before}");
    let young = desk.database.number(&young).await;
    assert!(desk.store.purge_figures(Grain::TaskMinute, before, 20).await.unwrap());
    assert_eq!(desk.rows_of(Grain::TaskMinute).await, minutes - 20);
    while desk.store.purge_figures(Grain::TaskMinute, before, 20).await.unwrap() {}
    assert_eq!(desk.rows_of(Grain::TaskMinute).await, young);
    let day = desk.hour - desk.hour.rem_euclid(DAY_MS);
    // Until the day is over for all of it, all of it stays.
    desk.count_at(day + 8 * DAY_MS - 1).await;
    assert_eq!(desk.rows_of(Grain::TaskMinute).await, young);
    desk.count_at(day + 8 * DAY_MS + HOUR_MS).await;
    assert_eq!(desk.rows_of(Grain::TaskMinute).await, 0);
    assert!(desk.rows_of(Grain::TenantMinute).await > 0 && desk.rows_of(Grain::TaskHour).await > 0);
    desk.count_at(day + 92 * DAY_MS).await;
    assert_eq!(desk.database.number("SELECT COUNT(*) FROM statistic").await, 0);
}

async fn a_clock_that_has_jumped_ahead_costs_no_figures(desk: Desk) {
    desk.insert_runs(62, 2).await;
    desk.database.execute("UPDATE task_log SET status = 10, finished_at = due_time + 5 WHERE status < 10").await;
    desk.count_at(desk.hour + HOUR_MS).await;
    let figures = desk.database.number("SELECT COUNT(*) FROM statistic").await;
    assert!(figures > 0);
    desk.set_cluster(desk.hour + 200 * DAY_MS);
    while desk.aggregator.tick().await.unwrap() > 0 {}
    assert_eq!(desk.database.number("SELECT COUNT(*) FROM statistic").await, figures, "nothing is deleted");
    // Nor are minutes given up as too old that have not been counted yet.
    desk.count_at(desk.hour + 3 * HOUR_MS).await;
    desk.assert_agrees().await;
}

async fn figures_of_others_are_not_shown(desk: Desk) {
    desk.insert_runs(2, 6).await;
    desk.count_at(desk.hour + HOUR_MS).await;
    let place = |tenant_id, apps: &[i64]| TenantScope { tenant_id, apps: apps.iter().copied().map(AppId).collect() };
    let of = async |places: Vec<TenantScope>, tenant_id, task_id| {
        let (from, until, step) = (desk.hour, desk.hour + HOUR_MS, Step::Minute);
        let filter = FiguresFilter { tenant_id, task_id, from, until, step };
        desk.store.figures(&AccessScope::Of(places), &filter).await
    };
    let is_hidden = |figures: Result<Vec<_>>| figures.is_err_and(|error| error.kind() == StoreErrorKind::NotFound);
    // Task 3 is tenant 2's, of its app 1.
    assert!(!of(vec![place(TenantId(2), &[])], None, Some(TaskId(3))).await.unwrap().is_empty());
    assert!(!of(vec![place(TenantId(2), &[1])], None, Some(TaskId(3))).await.unwrap().is_empty());
    assert!(is_hidden(of(vec![place(TenantId(2), &[7])], None, Some(TaskId(3))).await));
    assert!(is_hidden(of(vec![place(TenantId(1), &[])], None, Some(TaskId(3))).await));
    assert!(is_hidden(
        of(vec![place(TenantId(1), &[]), place(TenantId(2), &[])], Some(TenantId(1)), Some(TaskId(3))).await
    ));
    assert!(of(vec![], None, None).await.unwrap().is_empty());
    assert!(of(vec![place(TenantId(1), &[])], Some(TenantId(2)), None).await.unwrap().is_empty());
    assert!(of(vec![place(TenantId(2), &[1])], Some(TenantId(2)), None).await.unwrap().is_empty(), "of some apps only");
    let first = of(vec![place(TenantId(1), &[]), place(TenantId(2), &[1])], None, None).await.unwrap();
    assert_eq!(first, of(vec![place(TenantId(1), &[])], Some(TenantId(1)), None).await.unwrap());
    let both = of(vec![place(TenantId(1), &[]), place(TenantId(2), &[])], None, None).await.unwrap();
    let all = FiguresFilter {
        tenant_id: None,
        task_id: None,
        from: desk.hour,
        until: desk.hour + HOUR_MS,
        step: Step::Minute,
    };
    assert_ne!(first, both);
    assert_eq!(both, desk.store.figures(&AccessScope::All, &all).await.unwrap());
}
