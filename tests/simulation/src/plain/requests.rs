//! What a node asks of a plain process, and what it answers: HTTP 200 in any case, with a code in the body.

use super::Process;
use super::jobs::{Block, Job};
use carillon::domain::xxljob::wire::{BEAT_PATH, IDLE_BEAT_PATH, KILL_PATH, LOG_PATH, RUN_PATH, TOKEN_HEADER};
use carillon_protocol::exchange::Request;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Run {
    job_id: i32,
    executor_handler: String,
    executor_block_strategy: Block,
    executor_timeout: u64,
    log_id: i64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OfJob {
    job_id: i32,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OfLog {
    log_id: i64,
}

fn success() -> Value {
    json!({ "code": 200, "msg": "Success" })
}

fn refused(why: impl Into<String>) -> Value {
    json!({ "code": 500, "msg": why.into() })
}

impl Process {
    pub(super) async fn answer(self: &Arc<Self>, request: &Request) -> Value {
        // Who only looks whether somebody listens has no token.
        if request.path == BEAT_PATH {
            self.place.parts.ledger.heard(self.place.index, self.place.parts.time.now_ms());
        }
        if request.header(TOKEN_HEADER) != self.place.parts.key.secret() {
            return refused("The access token is wrong.");
        }
        match request.path.as_str() {
            RUN_PATH => self.run(read(request)).await,
            IDLE_BEAT_PATH if self.jobs.is_busy(read::<OfJob>(request).job_id) => {
                refused("job thread is running or has trigger queue.")
            }
            BEAT_PATH | IDLE_BEAT_PATH => success(),
            KILL_PATH => self.kill(&read(request)),
            LOG_PATH => self.log(&read(request)),
            other => refused(format!("invalid request, uri-mapping({other}) not found.")),
        }
    }

    async fn run(self: &Arc<Self>, run: Run) -> Value {
        let Run { job_id, executor_handler: handler, executor_block_strategy, executor_timeout, log_id } = run;
        if !self.handlers.contains(&handler) {
            return refused(format!("job handler [{handler}] not found."));
        }
        let key = self.place.key_of(log_id).await;
        let job = Job { number: log_id, key, handler, timeout_s: executor_timeout };
        let (process, name) = (self.clone(), self.name.clone());
        match self.jobs.take(job_id, job, executor_block_strategy, |thread| {
            process.spawn(async move |process| thread.work(&process).await);
        }) {
            Ok(()) => {
                if let Some(key) = key {
                    self.place.note(format!("log {} attempt {}: accepted by {name}", key.0, key.1));
                }
                success()
            }
            Err(why) => refused(why),
        }
    }

    fn kill(&self, OfJob { job_id }: &OfJob) -> Value {
        if self.jobs.stop(*job_id, "scheduling center kill job.") {
            return success();
        }
        json!({ "code": 200, "msg": "Success", "data": "job thread already killed." })
    }

    fn log(&self, OfLog { log_id }: &OfLog) -> Value {
        let text = if self.place.logs.lock().unwrap().contains(log_id) {
            "begun\n"
        } else {
            "readLog fail, logFile not exists"
        };
        json!({ "code": 200, "msg": "Success", "data": {
            "fromLineNum": 1, "toLineNum": 1, "logContent": text, "isEnd": false
        } })
    }
}

/// Nodes send no nonsense.
fn read<'a, T: Deserialize<'a>>(request: &'a Request) -> T {
    serde_json::from_slice(&request.body).expect("a body of that path")
}
