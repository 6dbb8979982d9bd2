//! The inner loops of node and executor, each as often as is asked for, so that `scripts/instructions` can count what the processor
//! does. Only the difference of two counts is taken: what comes before and after a loop is in both.

use anyhow::{Context, Result, bail, ensure};
use carillon::domain::cron::CronSchedule;
use carillon::domain::schedule::{Schedule, Timing};
use carillon::domain::{AppId, ExecutorId, LogId, NodeId, Reason, Run, Status, TaskId, TenantId, Trigger};
use carillon::queue::RunQueue;
use carillon::store::{ClaimStore as _, DatabaseSettings, SqlStore};
use carillon_protocol::sign::{RequestParts, SignMethod, matches};
use carillon_protocol::{BlockStrategy, Dispatch, DispatchItem, Results, RunResult, RunStatus};
use serde::de::DeserializeOwned;
use std::hint::black_box;
use std::process::ExitCode;
use std::time::Duration;

/// Runs of one batch.
const BATCH: i64 = 500;

/// When everything happens, epoch ms.
const NOW: i64 = 1_767_225_600_000;

/// What a loop is given besides the number of its rounds: a `SQLite` file that `prepare` has made.
type Loop = fn(u32, &str) -> Result<()>;

/// Name of each loop, what one round of it is, and the loop.
const LOOPS: &[(&str, &str, Loop)] = &[
    ("next_cron", "the next fire of a cron expression in a zone with summer time", next_cron),
    ("queue", "500 runs of 20 tenants go into the queue, and leave it", queue),
    ("sign", "the body of a dispatch of 500 runs is signed", sign),
    ("verify", "the signature of 500 results is checked", verify),
    ("encode_dispatch", "a dispatch of 500 runs becomes a body", encode_dispatch),
    ("decode_dispatch", "a body becomes a dispatch of 500 runs", decode_dispatch),
    ("decode_results", "a body becomes 500 results", decode_results),
    ("claim", "a claim of 500 runs on SQLite, none of which is there", claim),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match work(&arguments.iter().map(String::as_str).collect::<Vec<_>>()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("carillon-instructions: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn work(arguments: &[&str]) -> Result<()> {
    match arguments {
        ["list"] => LOOPS.iter().for_each(|(name, what, _)| println!("{name}\t{what}")),
        ["prepare", file] => return block_on(prepare(file))?,
        [name, rounds, file] => {
            let rounds = rounds.parse().with_context(|| format!("{rounds} is no number of rounds"))?;
            let (.., run) =
                LOOPS.iter().find(|(known, ..)| known == name).with_context(|| format!("no loop is called {name}"))?;
            return run(rounds, file);
        }
        _ => bail!("list | prepare FILE | LOOP ROUNDS FILE"),
    }
    Ok(())
}

fn next_cron(rounds: u32, _: &str) -> Result<()> {
    let cron = CronSchedule::parse("0 0/15 9-17 ? * MON-FRI")?;
    let schedule =
        Schedule { timing: Timing::Cron(Box::new(cron)), zone: chrono_tz::Europe::Berlin, ..Schedule::none() };
    let mut at = NOW;
    for _ in 0..rounds {
        at = black_box(&schedule).next_after(black_box(at));
    }
    black_box(at);
    Ok(())
}

fn runs() -> Vec<Run> {
    let run = |number: i64| Run {
        id: LogId(number + 1),
        version: 1,
        tenant_id: TenantId(number % 20 + 1),
        app_id: AppId(1),
        task_id: TaskId(number + 1),
        revision: 1,
        parent_id: LogId::NONE,
        shard_index: 0,
        shard_total: 1,
        fire_time: NOW,
        due_time: NOW,
        attempt: 0,
        failures: 0,
        status: Status::Init,
        reason: Reason::None,
        params: None,
        trigger: Trigger::Schedule,
        seq: number,
        priority: 5,
        executor_id: ExecutorId::NONE,
        queued_at: 0,
        has_rate_slot: false,
    };
    (0..BATCH).map(run).collect()
}

fn queue(rounds: u32, _: &str) -> Result<()> {
    let (queue, runs) = (RunQueue::new(10_000), runs());
    for _ in 0..rounds {
        queue.push(runs.iter().cloned());
        assert_eq!(queue.take(NOW, BATCH as usize).runs.len(), BATCH as usize);
    }
    Ok(())
}

fn signature_of(body: &[u8]) -> String {
    let parts = RequestParts {
        method: "POST",
        path: "/dispatch",
        query: "",
        tenant: "retail",
        app: "orders",
        key: "ck_0123456789abcdef",
        timestamp: NOW,
        nonce: "0123456789abcdef0123456789abcdef",
    };
    parts.sign(SignMethod::HmacSha256, "a secret that no one guesses", body)
}

fn sign(rounds: u32, _: &str) -> Result<()> {
    let body = to_body(&dispatch())?;
    for _ in 0..rounds {
        black_box(signature_of(black_box(&body)));
    }
    Ok(())
}

fn verify(rounds: u32, _: &str) -> Result<()> {
    let body = to_body(&results())?;
    let given = signature_of(&body);
    for _ in 0..rounds {
        assert!(matches(&signature_of(black_box(&body)), &given));
    }
    Ok(())
}

fn dispatch() -> Dispatch {
    let item = |number: i64| DispatchItem {
        log: 127_000_000_000_000_000 + number,
        attempt: 1,
        task: 126_000_000_000_000_000 + number,
        task_name: format!("close-of-day-{number}"),
        handler: "closeOfDay".to_owned(),
        params: r#"{"region":"north"}"#.to_owned(),
        fire_time: NOW,
        due_time: NOW,
        accept_until: NOW + 5_000,
        shard_index: 0,
        shard_total: 1,
        timeout_ms: 60_000,
        block_strategy: BlockStrategy::Serial,
        wait_timeout_ms: 0,
        priority: 5,
        trace: String::new(),
    };
    Dispatch { executor_id: 7, cluster_time_us: NOW * 1_000, items: (0..BATCH).map(item).collect() }
}

fn results() -> Results {
    let result = |number: i64| RunResult {
        log: 127_000_000_000_000_000 + number,
        attempt: 1,
        status: RunStatus::Succeeded,
        message: String::new(),
        output: String::new(),
        started_at: NOW,
        finished_at: NOW + 12,
        due_time: NOW,
    };
    Results { executor_id: 7, results: (0..BATCH).map(result).collect() }
}

fn to_body<T: serde::Serialize>(message: &T) -> Result<Vec<u8>> {
    Ok(serde_json::to_vec(message)?)
}

fn encode_dispatch(rounds: u32, _: &str) -> Result<()> {
    let dispatch = dispatch();
    for _ in 0..rounds {
        black_box(to_body(black_box(&dispatch))?);
    }
    Ok(())
}

/// Reads a body of [`BATCH`] items.
fn decode<T: DeserializeOwned>(rounds: u32, body: &[u8], items: fn(&T) -> usize) -> Result<()> {
    for _ in 0..rounds {
        let read: T = serde_json::from_slice(black_box(body))?;
        assert_eq!(items(&read), BATCH as usize);
    }
    Ok(())
}

fn decode_dispatch(rounds: u32, _: &str) -> Result<()> {
    decode(rounds, &to_body(&dispatch())?, |read: &Dispatch| read.items.len())
}

fn decode_results(rounds: u32, _: &str) -> Result<()> {
    decode(rounds, &to_body(&results())?, |read: &Results| read.results.len())
}

fn block_on<T>(work: impl Future<Output = T>) -> Result<T> {
    Ok(tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(work))
}

async fn connect(file: &str) -> Result<SqlStore> {
    // Under the counter everything takes fifty times as long.
    let patience = Duration::from_mins(5);
    let settings = DatabaseSettings {
        url: format!("sqlite://{file}?mode=rwc"),
        max_connections: 1,
        connect_timeout: patience,
        statement_timeout: patience,
        migrate_at_start: false,
    };
    SqlStore::connect(&settings).await.with_context(|| format!("cannot open {file}"))
}

/// Makes a database, so that this is not done under the counter.
async fn prepare(file: &str) -> Result<()> {
    let store = connect(file).await?;
    store.migrate().await?;
    store.close().await;
    Ok(())
}

fn claim(rounds: u32, file: &str) -> Result<()> {
    block_on(async {
        let store = connect(file).await?;
        for _ in 0..rounds {
            let claimed = store.claim(NodeId(1), runs(), NOW).await?;
            ensure!(claimed.is_empty(), "{} runs were there to be claimed", claimed.len());
        }
        store.close().await;
        Ok(())
    })?
}
