//! The benchmark's executors, all in one process: each has one handler, `bench`, that returns at once.
//!
//! What the handler sees is kept in memory and written when the executor has ended, so that the
//! measurement costs a run neither a lock that others want nor any input or output. Settings come
//! from the `CARILLON_*` variables, journals are in the folder where it is started; besides:
//!
//! - `BENCH_APPS=path`: a line for each executor: its tenant, its app, the id of its key and the secret, separated by tabs;
//! - `BENCH_RECORDS=path`: where the records go, [`Record::BYTES`] little-endian bytes each;
//! - `BENCH_ROOM=number`: runs for which each thread sets room aside, untouched until it is used.

use carillon_executor::{Executor, Output, RunError, TaskContext};
use futures_util::future::try_join_all;
use std::cell::OnceCell;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// From the start of one executor to that of the next: a thousand of them describe themselves once in 30 s, not all at once.
const APART: Duration = Duration::from_millis(30);

/// One start of the handler.
struct Record {
    log: i64,
    task: i64,
    /// Epoch ms.
    fire_time: i64,
    /// Start after the fire time by the cluster clock as the SDK estimates it, µs.
    late_us: i32,
    /// The same by the wall clock of this machine, which is the database's too in the benchmark:
    /// a second opinion that owes nothing to the product.
    late_wall_us: i32,
    attempt: i32,
}

impl Record {
    const BYTES: usize = 36;

    fn of(context: &TaskContext) -> Self {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as i64);
        let late = |at: i64| (at - context.fire_time() * 1_000).clamp(i32::MIN.into(), i32::MAX.into()) as i32;
        Self {
            log: context.log(),
            task: context.task(),
            fire_time: context.fire_time(),
            late_us: late(context.started_at_us()),
            late_wall_us: late(wall),
            attempt: context.attempt(),
        }
    }

    fn to_bytes(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        for (at, value) in [self.log, self.task, self.fire_time].into_iter().enumerate() {
            bytes[at * 8..][..8].copy_from_slice(&value.to_le_bytes());
        }
        for (at, value) in [self.late_us, self.late_wall_us, self.attempt].into_iter().enumerate() {
            bytes[24 + at * 4..][..4].copy_from_slice(&value.to_le_bytes());
        }
        bytes
    }
}

type Shard = Arc<Mutex<Vec<Record>>>;

thread_local! {
    /// This thread's records: no other thread takes the lock before the end.
    static MINE: OnceCell<Shard> = const { OnceCell::new() };
}

/// The records of all threads.
struct Records {
    room: usize,
    shards: Mutex<Vec<Shard>>,
}

impl Records {
    fn keep(&self, record: Record) {
        MINE.with(|mine| lock(mine.get_or_init(|| self.shard())).push(record));
    }

    fn shard(&self) -> Shard {
        let shard = Shard::new(Mutex::new(Vec::with_capacity(self.room)));
        lock(&self.shards).push(Arc::clone(&shard));
        shard
    }

    /// Under a name that no half-written file ever has.
    fn write(&self, path: &Path) -> std::io::Result<()> {
        let unfinished = path.with_extension("unfinished");
        let mut file = BufWriter::new(File::create(&unfinished)?);
        for shard in lock(&self.shards).iter() {
            for record in lock(shard).iter() {
                file.write_all(&record.to_bytes())?;
            }
        }
        file.into_inner()?.flush()?;
        std::fs::rename(unfinished, path)
    }
}

/// A push is whole or has not happened, so a panic elsewhere spoils nothing.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

type Failure = Box<dyn std::error::Error>;

fn path_of(variable: &str, meaning: &str) -> Result<PathBuf, String> {
    std::env::var_os(variable).map(PathBuf::from).ok_or_else(|| format!("{variable} is not set: {meaning}"))
}

/// One for each line of the list.
fn executors(records: &Arc<Records>) -> Result<Vec<Executor>, Failure> {
    let list = path_of("BENCH_APPS", "a path with a line for each executor")?;
    let lines = std::fs::read_to_string(&list).map_err(|error| format!("{}: {error}", list.display()))?;
    lines.lines().enumerate().map(|(number, line)| executor(line, number, records)).collect()
}

fn executor(line: &str, number: usize, records: &Arc<Records>) -> Result<Executor, Failure> {
    let [tenant, app, key, secret] = line.split('\t').collect::<Vec<_>>()[..] else {
        return Err("BENCH_APPS: a line is not tenant, app, key and secret, separated by tabs".into());
    };
    let kept = Arc::clone(records);
    let builder = Executor::builder()
        .description("benchmark")
        .version(env!("CARGO_PKG_VERSION"))
        .from_env()?
        .tenant(tenant)
        .app(app)
        .key(key, secret)
        // More of one app than may share one.
        .journal_dir(format!("journal/{number}"))
        .handler("bench", move |context: TaskContext| {
            let kept = Arc::clone(&kept);
            async move {
                kept.keep(Record::of(&context));
                Ok(Output::none())
            }
        });
    Ok(builder.build()?)
}

/// Starts after those before it.
async fn run(number: u32, executor: Executor) -> Result<(), RunError> {
    tokio::time::sleep(APART * number).await;
    executor.run().await
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let filter = tracing_subscriber::EnvFilter::try_from_default_env()
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("warn"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    let path = path_of("BENCH_RECORDS", "a path for the records")?;
    let room = match std::env::var("BENCH_ROOM") {
        Ok(text) => text.parse().map_err(|error| format!("BENCH_ROOM=`{text}`: {error}"))?,
        Err(_) => 0,
    };

    let records = Arc::new(Records { room, shards: Mutex::default() });
    let executors = executors(&records)?;
    let ended = try_join_all((0..).zip(executors).map(|(number, executor)| run(number, executor))).await;
    records.write(&path)?;
    ended?;
    Ok(())
}
