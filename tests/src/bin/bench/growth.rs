//! What a node's periodic work costs the database among many executors, tenants and runs, of which few change: statements,
//! rows read and bytes answered by the server's own counters, so that other work on the machine does not matter.

use crate::database::Database;
use crate::numbers::{named, numbers};
use crate::options::{Growth, Kind};
use crate::progress;
use crate::server::Server;
use crate::stand::Bench;
use anyhow::{Context, Result};
use async_trait::async_trait;
use carillon::auth::KeyRing;
use carillon::cluster::{ClusterClock, Room, Snapshot};
use carillon::dispatch::{DispatchSettings, Presence, SendError, Transport};
use carillon::domain::{AppId, Executor, ExecutorId, Owner, TenantId};
use carillon::engine::{Engine, EngineSettings};
use carillon::housekeeping::{HousekeepingSettings, StatisticsSettings};
use carillon::outcome::{PAGE_ROWS, ReaperSettings};
use carillon::pregenerate::PregenerateSettings;
use carillon::queue::LoaderSettings;
use carillon::store::{DatabaseSettings, ExecutorEnd, NodeInfo, Signer, SqlStore};
use carillon_protocol::{
    self as protocol, Cancel, CancelAck, Dispatch, DispatchAck, Heartbeat, OutputPage, ProbeAck, ReadOutput, Register,
    RunKey,
};
use carillon_tests::now_ms;
use futures_util::future::try_join_all;
use serde_json::{Map, Value, json};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// As nodes and executors have it by default, twice, ms.
const OFFLINE_AFTER_MS: i64 = 20_000;

/// Then a node is settled; and then nothing has changed for so long that it looks at little.
const SETTLED_AFTER: Duration = Duration::from_secs(24);
const CALM_AFTER: Duration = Duration::from_secs(63);

/// How often each is done.
const ROUNDS: i64 = 10;

/// Handlers of an executor.
const HANDLERS: usize = 50;

/// Executors beat once within this time.
const BEAT_EVERY: Duration = Duration::from_secs(3);

/// A tenant and an app in which all executors and runs are.
const HOME: Owner = Owner { tenant_id: TenantId(1), app_id: AppId(1) };

/// Fills a database and measures what each round of work costs among that.
pub async fn measure(bench: &Bench, growth: &Growth) -> Result<Value> {
    let database = bench.server.create().await?;
    let settings = DatabaseSettings {
        url: database.url.clone(),
        max_connections: 8,
        connect_timeout: Duration::from_secs(10),
        statement_timeout: Duration::from_mins(1),
        migrate_at_start: false,
    };
    let store = SqlStore::connect(&settings).await?;
    store.migrate().await?;
    progress(&format!("{} tenants, {} executors, {} runs", growth.tenants, growth.executors, growth.runs));
    fill(&bench.server, &database, growth).await?;
    let clock = Arc::new(ClusterClock::synchronised(&store).await?);
    let (info, transport) = (NodeInfo { name: "bench".to_owned(), ..NodeInfo::default() }, Arc::new(Nobody));
    let engine = Engine::join(Arc::new(store.clone()), clock, transport, &info, engine_settings()).await?;
    let meter = Meter { server: &bench.server, database: &database, store: &store, idle: Counts::default() };
    let meter = Meter { idle: meter.cost(1, async || Ok(())).await?, ..meter };
    let mut costs = Map::new();
    let mut note = |name: &str, counts: Counts| drop(costs.insert(name.to_owned(), counts.to_json(bench.server.kind)));
    engine.look().await?;
    note(
        "look, nothing changed",
        meter.cost(ROUNDS, async || engine.look().await.map(|_| ()).map_err(Into::into)).await?,
    );
    let third = growth.executors / 3;
    let beaten = async || {
        let heard = format!("UPDATE executor SET heartbeat_at = {} WHERE id <= {third}", now_ms());
        database.execute(&heard).await?;
        Ok(())
    };
    let update = meter.cost(ROUNDS, beaten).await?;
    let looked = meter
        .cost(ROUNDS, async || {
            beaten().await?;
            engine.look().await.map(|_| ()).map_err(Into::into)
        })
        .await?;
    note("look, a third has beaten", looked.less(update));
    note("registration of a new executor", registrations(&meter, &engine).await?);
    note("heartbeats of three seconds", heartbeats(&meter, &engine, growth.executors).await?);
    let ring = KeyRing::default();
    ring.look(&store).await?;
    note("look at keys", meter.cost(ROUNDS, async || Ok(ring.look(&store).await.map(drop)?)).await?);
    let reap = async || engine.reaper.tick().await.map(|_| ()).map_err(Into::into);
    live_on(&engine, &database, growth, SETTLED_AFTER).await?;
    note("round of the reaper, after a change", meter.cost(3, reap).await?);
    live_on(&engine, &database, growth, CALM_AFTER).await?;
    note("round of the reaper", meter.cost(ROUNDS, reap).await?);
    engine.outbox_worker.tick().await?;
    let follow = async || engine.outbox_worker.tick().await.map(|_| ()).map_err(Into::into);
    note("round of the outbox", meter.cost(ROUNDS, follow).await?);
    store.close().await;
    bench.server.remove(database).await?;
    Ok(json!({
        "tenants": growth.tenants, "executors": growth.executors, "runs": growth.runs, "costs": costs,
    }))
}

async fn registrations(meter: &Meter<'_>, engine: &Engine<SqlStore>) -> Result<Counts> {
    let number = std::cell::Cell::new(0);
    meter
        .cost(ROUNDS, async || {
            number.set(number.get() + 1);
            let signer = Signer { owner: HOME, key_id: "key-1", signed_at: now_ms() };
            let register = Register {
                instance: format!("new-{}", number.get()),
                address: format!("http://new:{}", number.get()),
                own_address: true,
                host_name: "bench".to_owned(),
                pid: 1,
                version: String::new(),
                tags: Vec::new(),
                description: String::new(),
                capacity: 10,
                handlers: Vec::new(),
                acknowledged_at: 0,
            };
            engine.executors.register(&signer, &register, engine.executors_alive_since()).await?;
            Ok(())
        })
        .await
}

/// Every executor beats once within three seconds.
async fn heartbeats(meter: &Meter<'_>, engine: &Engine<SqlStore>, executors: u32) -> Result<Counts> {
    let beat = async |id: u32| {
        tokio::time::sleep(BEAT_EVERY * id / executors).await;
        let signer = Signer { owner: HOME, key_id: "key-1", signed_at: now_ms() };
        let beat = Heartbeat {
            executor_id: i64::from(id),
            instance: format!("i{id}"),
            snapshot_at: now_ms(),
            held: Vec::new(),
            running: Vec::new(),
            unacknowledged: Vec::new(),
            capacity: 10,
            draining: false,
            acknowledged_at: 0,
            made_us: 0,
        };
        engine.executors.heartbeat(&signer, beat, Room::default()).await?.context("it is known")?;
        anyhow::Ok(())
    };
    meter.cost(1, async || try_join_all((1..=executors).map(beat)).await.map(drop)).await
}

/// Every executor has said that it has its runs.
fn hear_all(engine: &Engine<SqlStore>, growth: &Growth) {
    let now = engine.clock.now_ms();
    for id in 1..=growth.executors {
        let runs: HashSet<RunKey> =
            (id..=growth.runs).step_by(growth.executors as usize).map(|run| RunKey(i64::from(run), 1)).collect();
        let snapshot = Snapshot {
            taken_at: now,
            received_at: now,
            times_set: 0,
            runs,
            cancelled: HashSet::new(),
            doubted_until: 0,
            room: Room::default(),
        };
        engine.registry.heard(ExecutorId(i64::from(id)), snapshot);
    }
}

/// Node and executors beat for so long, and the reaper turns round as it does.
async fn live_on(engine: &Engine<SqlStore>, database: &Database, growth: &Growth, span: Duration) -> Result<()> {
    progress(&format!("{} s without changes", span.as_secs()));
    let begun = Instant::now();
    while begun.elapsed() < span {
        database.execute(&format!("UPDATE executor SET heartbeat_at = {}", now_ms())).await?;
        engine.beat().await?;
        engine.look().await?;
        hear_all(engine, growth);
        engine.reaper.tick().await?;
        tokio::time::sleep(Duration::from_secs(3)).await;
    }
    Ok(())
}

fn engine_settings() -> EngineSettings {
    let (lead_ms, misfire_after_ms) = (3_000, 30_000);
    EngineSettings {
        offline_after_ms: OFFLINE_AFTER_MS,
        hold_past_after_ms: 0,
        queue_capacity: 50_000,
        pregenerate: PregenerateSettings { ahead_ms: 180_000, misfire_after_ms, lease_ttl_ms: 10_000 },
        loader: LoaderSettings { lead_ms, interval_ms: 5_000 },
        dispatch: DispatchSettings { lead_ms, accept_window_ms: 3_000, misfire_after_ms, waiting_ms: 200 },
        reaper: ReaperSettings {
            accept_window_ms: 3_000,
            offline_after_ms: OFFLINE_AFTER_MS,
            abandon_after_ms: OFFLINE_AFTER_MS,
            plain_lost_after_ms: 600_000,
            kept_going_ms: OFFLINE_AFTER_MS,
            misfire_after_ms: 30_000,
            page_rows: PAGE_ROWS,
        },
        housekeeping: HousekeepingSettings { retain_ms: 86_400_000, lease_ttl_ms: 70_000 },
        statistics: StatisticsSettings { logs_ms: 86_400_000, task_minutes_ms: 86_400_000, figures_ms: 86_400_000 },
    }
}

/// Tenants with an app and a key each; executors of the first that have just beaten; runs that they have had for an hour,
/// with parameters of 1,000 characters; and as many that are written ahead and whose end has consequences.
async fn fill(server: &Server, database: &Database, growth: &Growth) -> Result<()> {
    let now = now_ms();
    let of = |count: u32| numbers(server.kind, count);
    let text = |prefix: &str| named(server.kind, prefix);
    let handlers: Vec<String> = (0..HANDLERS).map(|number| format!("handler-{number}")).collect();
    let handlers = serde_json::to_string(&handlers)?;
    let params = "p".repeat(1_000);
    let columns = "id, tenant_id, app_id, task_id, revision, parent_id, shard_index, shard_total, bucket, fire_time, \
                   due_time, status, version, attempt, failures, node_id, executor_id, queued_at, dispatched_at, \
                   started_at, finished_at, reason, params";
    let executors = growth.executors;
    let statements = [
        format!("INSERT INTO tenant (id, name, created_at) SELECT n.n, {}, 1 FROM {}", text("t"), of(growth.tenants)),
        format!(
            "INSERT INTO app (id, tenant_id, name, created_at) SELECT n.n, n.n, 'app', 1 FROM {}",
            of(growth.tenants)
        ),
        format!(
            "INSERT INTO app_key (id, tenant_id, app_id, secret, created_at, revoked_at) \
             SELECT {}, n.n, n.n, 'a secret that is long enough', 1, 0 FROM {}",
            text("key-"),
            of(growth.tenants)
        ),
        format!("INSERT INTO audit_head (id, seq, hash) SELECT n.n, 1, '' FROM {}", of(growth.tenants)),
        format!(
            "INSERT INTO executor (id, tenant_id, app_id, instance, key_id, address, host_name, pid, version, description, \
             tags, handlers, capacity, held, running, draining, registered_at, described_at, heartbeat_at, gone_at) \
             SELECT n.n, 1, 1, {}, 'key-1', {}, 'host', 1, '1', '', '[]', '{handlers}', 10, 0, 0, 0, 1, 1, {now}, 0 FROM {}",
            text("i"),
            text("http://e:"),
            of(executors)
        ),
        format!(
            "INSERT INTO task_log ({columns}) SELECT n.n, 1, 1, n.n, 1, 0, 0, 1, 0, {now} - 3600000 - n.n, {now} - 3600000 - n.n, 2, 3, 1, \
             0, 1, 1 + (n.n - 1) % {executors}, 1, {now} - 3603000, 0, 0, '', '{params}' FROM {}",
            of(growth.runs)
        ),
        format!(
            "INSERT INTO task_log ({columns}) SELECT 1000000000 + n.n, 1, 1, n.n, 1, 0, 0, 1, 0, {now} + 3600000, \
             {now} + 3600000, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, '', '{params}' FROM {}",
            of(growth.runs)
        ),
        format!("INSERT INTO outbox (id, task_id) SELECT 1000000000 + n.n, n.n FROM {}", of(growth.runs)),
    ];
    for statement in statements {
        database.execute(&statement).await?;
    }
    match server.kind {
        Kind::Mariadb => database.execute("ANALYZE TABLE task_log, outbox, executor, app_key").await,
        Kind::Postgres => database.execute("ANALYZE").await,
        Kind::Sqlite => Ok(()),
    }
}

/// What the server has done.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    /// By the node's own count.
    statements: f64,
    /// Rows that the server's engine read, `MariaDB` only.
    rows_read: f64,
    /// Bytes that it answered, `MariaDB` only.
    bytes_sent: f64,
}

impl Counts {
    fn less(self, other: Self) -> Self {
        Self {
            statements: self.statements - other.statements,
            rows_read: self.rows_read - other.rows_read,
            bytes_sent: self.bytes_sent - other.bytes_sent,
        }
    }

    fn to_json(self, kind: Kind) -> Value {
        let rounded = |number: f64| (number * 10.0).round() / 10.0;
        let mut counts = json!({ "statements": rounded(self.statements) });
        if kind == Kind::Mariadb {
            counts["rows_read"] = rounded(self.rows_read).into();
            counts["bytes_sent"] = rounded(self.bytes_sent).into();
        }
        counts
    }
}

struct Meter<'a> {
    server: &'a Server,
    database: &'a Database,
    store: &'a SqlStore,
    /// What a measurement costs by itself.
    idle: Counts,
}

impl Meter<'_> {
    /// What `work` costs each time.
    async fn cost(&self, rounds: i64, work: impl AsyncFn() -> Result<()>) -> Result<Counts> {
        let before = self.read().await?;
        for _ in 0..rounds {
            work().await?;
        }
        let all = self.read().await?.less(before).less(self.idle);
        let each = |number: f64| number / rounds as f64;
        let Counts { statements, rows_read, bytes_sent } = all;
        Ok(Counts { statements: each(statements), rows_read: each(rows_read), bytes_sent: each(bytes_sent) })
    }

    async fn read(&self) -> Result<Counts> {
        let statements = self.store.statements_sent() as f64;
        let work = self.server.work(self.database).await?;
        let (rows_read, bytes_sent) = (work.of("rows_read"), work.of("bytes_sent"));
        Ok(Counts { statements, rows_read, bytes_sent })
    }
}

/// No one is asked anything here.
struct Nobody;

#[async_trait]
impl Transport for Nobody {
    async fn dispatch(&self, _: &Executor, _: &Dispatch, _: &[i64]) -> std::result::Result<DispatchAck, SendError> {
        Err(nobody())
    }

    async fn cancel(&self, _: &Executor, _: &Cancel, _: bool) -> std::result::Result<CancelAck, SendError> {
        Err(nobody())
    }

    async fn ask(&self, _: &Executor, _: &protocol::Probe) -> std::result::Result<ProbeAck, SendError> {
        Err(nobody())
    }

    async fn read_output(&self, _: &Executor, _: &ReadOutput) -> std::result::Result<OutputPage, SendError> {
        Err(nobody())
    }

    async fn probe(&self, _: &ExecutorEnd) -> Presence {
        Presence::Unknown
    }
}

fn nobody() -> SendError {
    SendError::NotDelivered("no one is there".to_owned())
}
