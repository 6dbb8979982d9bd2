//! What the scripted executor does by itself: beating, starting what is due, reporting.

use super::{BEAT, State, empty_heartbeat, result};
use crate::api::App;
use crate::clock::{now_ms, now_us};
use crate::report::Start;
use crate::wire::Request;
use carillon_protocol::{DispatchItem, Heartbeat, HeartbeatAck, Results, ResultsAck, RunKey, RunResult, RunStatus};
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub(super) struct Engine {
    pub(super) app: Arc<Mutex<App>>,
    pub(super) node_url: String,
    pub(super) instance: String,
    pub(super) state: Arc<Mutex<State>>,
}

impl Engine {
    fn app(&self) -> App {
        self.app.lock().unwrap().clone()
    }
}

/// Starts what is due and, when the script says so, ends it well and reports it.
pub(super) async fn run(engine: Engine) {
    loop {
        tokio::time::sleep(Duration::from_millis(10)).await;
        let ended = {
            let mut state = engine.state.lock().unwrap();
            start_due(&mut state, now_ms());
            if state.script.auto_results {
                end_all(&mut state);
            }
            state.outbox.values().cloned().collect::<Vec<_>>()
        };
        if !ended.is_empty() {
            send(&engine, ended).await;
        }
    }
}

fn start_due(state: &mut State, now: i64) {
    let due: Vec<RunKey> = state.held.iter().filter(|(_, item)| item.due_time <= now).map(|(key, _)| *key).collect();
    for key in due {
        if let Some(item) = state.held.remove(&key) {
            state.starts.push(start_of(&item));
            state.running.insert(key, item);
        }
    }
}

fn start_of(item: &DispatchItem) -> Start {
    Start {
        log: item.log,
        attempt: item.attempt,
        task: item.task,
        handler: item.handler.clone(),
        fire_time: item.fire_time,
        due_time: item.due_time,
        shard_index: item.shard_index,
        shard_total: item.shard_total,
        started_at_us: now_us(),
        executor: "fake".into(),
    }
}

fn end_all(state: &mut State) {
    for (key, _) in std::mem::take(&mut state.running) {
        state.outbox.insert(key, result(key, RunStatus::Succeeded));
    }
}

async fn send(engine: &Engine, results: Vec<RunResult>) {
    let executor_id = engine.state.lock().unwrap().executor_id;
    let message = Results { executor_id, results };
    let request = Request::new(&engine.app(), &engine.node_url, "/openapi/results", &message);
    // No answer, or a refusal: they stay and are sent again.
    let Some(answer) = request.try_send().await else { return };
    let Some(ack) = answer.reply::<ResultsAck>().data else { return };
    let mut state = engine.state.lock().unwrap();
    for (sent, _) in message.results.iter().zip(ack.verdicts) {
        state.outbox.remove(&RunKey(sent.log, sent.attempt));
    }
}

/// Beats for ever, as long as the script says so.
pub(super) async fn beat(engine: Engine) {
    loop {
        tokio::time::sleep(BEAT).await;
        if engine.state.lock().unwrap().script.beats {
            heartbeat(&engine).await;
        }
    }
}

/// One heartbeat; what the answer cancels is dropped.
pub(super) async fn heartbeat(engine: &Engine) -> Option<HeartbeatAck> {
    let message = {
        let state = engine.state.lock().unwrap();
        Heartbeat {
            held: state.held.keys().copied().collect(),
            running: state.running.keys().copied().collect(),
            unacknowledged: state.outbox.keys().copied().collect(),
            ..empty_heartbeat(state.executor_id, &engine.instance)
        }
    };
    let request = Request::new(&engine.app(), &engine.node_url, "/openapi/executors/heartbeat", &message);
    let ack = request.try_send().await?.reply::<HeartbeatAck>().data?;
    let mut state = engine.state.lock().unwrap();
    let cancelled = if state.script.obeys { ack.cancel.as_slice() } else { &[] };
    for key in cancelled {
        state.cancels.push(*key);
        state.held.remove(key);
    }
    Some(ack)
}
