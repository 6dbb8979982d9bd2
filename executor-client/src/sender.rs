//! Sends results until a node has committed them.

use crate::member::Member;
use crate::node::{Failure, NodeReply};
use crate::pending_results::Batch;
use bytes::Bytes;
use carillon_protocol::{RESULT_ITEMS_MAX, ResultsAck, Verdict};
use std::time::Duration;

/// Result requests in flight at once.
pub(crate) const SENDERS: usize = 2;

const RESULTS_TIMEOUT: Duration = Duration::from_secs(15);

/// First and longest pause after a batch that no node accepted.
const BACK_OFF: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(3));

/// Pause before results are repeated that a node does not see yet.
const AGAIN: Duration = Duration::from_millis(500);

/// Longest wait between checks for pending results.
const IDLE: Duration = Duration::from_millis(500);

/// Sends forever, one request at a time.
pub(crate) async fn send_results(member: &Member) {
    let pending_results = &member.pending_results;
    let mut pause = BACK_OFF.0;
    let mut items_max = RESULT_ITEMS_MAX;
    loop {
        // Before looking, so that what is added in between is not missed.
        let ready = pending_results.ready.notified();
        let batch = pending_results.take(items_max);
        if batch.is_empty() {
            // The time limit covers what is put back.
            let _ = tokio::time::timeout(IDLE, ready).await;
            continue;
        }
        let failure = match send(member, &batch).await {
            Ok(again) => {
                pause = BACK_OFF.0;
                items_max = (items_max * 2).min(RESULT_ITEMS_MAX);
                if !again.is_empty() {
                    pending_results.put_back(&again, false);
                    tokio::time::sleep(AGAIN).await;
                }
                continue;
            }
            Err(failure) => failure,
        };
        tracing::warn!(
            %failure,
            results = batch.len(),
            retry_in_ms = pause.as_millis() as u64,
            "results.not_acknowledged"
        );
        let refused = matches!(&failure, Failure::Refused { code, .. } if !code.is_temporary());
        if failure == Failure::RegisterAgain {
            member.runs.lease.suspend();
            member.register_again.notify_one();
        }
        // A batch that is refused for what it says is halved until the culprit stands alone,
        // and that one then waits behind the others.
        let alone = batch.len() == 1;
        pending_results.put_back(&batch, !(refused && alone));
        tokio::time::sleep(pause).await;
        if refused {
            items_max = (batch.len() / 2).max(1);
        }
        if alone || !refused {
            pause = (pause * 2).min(BACK_OFF.1);
        }
    }
}

/// Returns those that are to be sent again.
async fn send(member: &Member, batch: &Batch) -> Result<Batch, Failure> {
    // Those of an earlier process are sent before this one has an id.
    let executor_id = member.executor_id().unwrap_or(0);
    let answer: NodeReply<ResultsAck> =
        member.nodes.call("/results", body(executor_id, batch), RESULTS_TIMEOUT).await?;
    let verdicts = answer.data.verdicts;
    if verdicts.len() != batch.len() {
        return Err(Failure::Unreachable(format!("{} verdicts for {} results", verdicts.len(), batch.len())));
    }
    let mut keys = Vec::with_capacity(batch.len());
    let mut again = Batch::new();
    for ((key, json), verdict) in batch.iter().zip(verdicts) {
        keys.push(*key);
        match verdict {
            Verdict::Applied => {}
            Verdict::Again | Verdict::Other => {
                tracing::debug!(log = key.0, attempt = key.1, "result.not_seen_yet");
                keys.pop();
                again.push((*key, json.clone()));
            }
            Verdict::Stale => {
                tracing::info!(log = key.0, attempt = key.1, "result.stale");
            }
            Verdict::Unknown => {
                tracing::warn!(log = key.0, attempt = key.1, "result.unknown_run");
            }
        }
    }
    member.pending_results.acknowledged(&keys);
    member.runs.acknowledged(&keys);
    Ok(again)
}

/// `Results` around JSON that was written once, for the journal.
fn body(executor_id: i64, batch: &Batch) -> Bytes {
    let size: usize = batch.iter().map(|(_, json)| json.len() + 1).sum();
    let mut body = Vec::with_capacity(size + 64);
    body.extend_from_slice(format!("{{\"executor_id\":{executor_id},\"results\":[").as_bytes());
    for (index, (_, json)) in batch.iter().enumerate() {
        if index > 0 {
            body.push(b',');
        }
        body.extend_from_slice(json);
    }
    body.extend_from_slice(b"]}");
    Bytes::from(body)
}

#[cfg(test)]
mod tests {
    use super::*;
    use carillon_protocol::{Results, RunKey, RunResult, RunStatus};

    #[test]
    fn the_body_reads_back_as_the_message() {
        let result = RunResult {
            log: 7,
            attempt: 2,
            status: RunStatus::Failed,
            message: "\"quoted\"".into(),
            output: String::new(),
            started_at: 1,
            finished_at: 2,
            due_time: 1,
        };
        let json = Bytes::from(serde_json::to_vec(&result).unwrap());
        let batch = vec![(RunKey(7, 2), json.clone()), (RunKey(7, 2), json)];
        let read: Results = serde_json::from_slice(&body(9, &batch)).unwrap();
        assert_eq!(read.executor_id, 9);
        assert_eq!(read.results, [result.clone(), result]);
    }
}
