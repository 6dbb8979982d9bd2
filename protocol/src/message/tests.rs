use super::*;

#[test]
fn a_dispatch_of_an_older_node_means_what_it_always_meant() {
    let item = r#"{"log": 1, "attempt": 1, "task": 2, "task_name": "t", "handler": "h", "fire_time": 5,
        "due_time": 5, "accept_until": 9, "shard_index": 0, "shard_total": 1, "timeout_ms": 0}"#;
    let item: DispatchItem = serde_json::from_str(item).unwrap();
    assert_eq!((item.block_strategy, item.wait_timeout_ms), (BlockStrategy::Concurrent, 0));
    assert_eq!(item.priority, crate::PRIORITY_DEFAULT);
    let handler: HandlerInfo = serde_json::from_str(r#"{"name": "h"}"#).unwrap();
    assert!(handler.policies.is_empty());
}

#[test]
fn an_answer_of_an_older_node_leaves_nothing_out() {
    let settings = r#"{"heartbeat_interval_ms": 1, "metadata_interval_ms": 2, "offline_after_ms": 3,
        "abandon_after_ms": 4}"#;
    let answer = format!(r#"{{"executor_id": 1, "cluster_time_us": 5, "settings": {settings}}}"#);
    let mut answer: Registered = serde_json::from_str(&answer).unwrap();
    assert!(answer.left_out.is_empty());
    assert!(!serde_json::to_string(&answer).unwrap().contains("left_out"));
    answer.left_out.push("tick".to_owned());
    assert!(serde_json::to_string(&answer).unwrap().contains(r#""left_out":["tick"]"#));
}

#[test]
fn what_is_new_has_its_name_on_the_wire() {
    let strategies = [BlockStrategy::Serial, BlockStrategy::DiscardLater, BlockStrategy::CoverEarly];
    assert_eq!(serde_json::to_string(&strategies).unwrap(), r#"["serial","discard_later","cover_early"]"#);
    let statuses = [RunStatus::Blocked, RunStatus::Covered, RunStatus::WaitTimedOut];
    assert_eq!(serde_json::to_string(&statuses).unwrap(), r#"["blocked","covered","wait_timed_out"]"#);
    let states = [OutputState::Waiting, OutputState::Running, OutputState::Ended, OutputState::Unknown];
    assert_eq!(serde_json::to_string(&states).unwrap(), r#"["waiting","running","ended","unknown"]"#);
    let read: ReadOutput = serde_json::from_str(r#"{"log": 1, "attempt": 2}"#).unwrap();
    assert_eq!((&read.instance, read.from, read.limit), (&None, 0, 256 * 1024));
    // To an executor of an older release it is what it always was.
    assert!(!serde_json::to_string(&read).unwrap().contains("instance"));
    let read: ReadOutput = serde_json::from_str(r#"{"log": 1, "attempt": 2, "instance": "ab"}"#).unwrap();
    assert_eq!(read.instance.as_deref(), Some("ab"));
    assert_eq!(serde_json::to_string(&AskHealth {}).unwrap(), "{}");
}

#[test]
fn a_word_of_a_later_release_spoils_no_other() {
    let ack: DispatchAck = serde_json::from_str(r#"{"outcomes": ["accepted", "deferred"]}"#).unwrap();
    assert_eq!(ack.outcomes, [DispatchOutcome::Accepted, DispatchOutcome::Other]);
    let ack: CancelAck = serde_json::from_str(r#"{"outcomes": ["frozen", "dropped"]}"#).unwrap();
    assert_eq!(ack.outcomes, [CancelOutcome::Other, CancelOutcome::Dropped]);
    let ack: ResultsAck = serde_json::from_str(r#"{"verdicts": ["applied", "doubted"]}"#).unwrap();
    assert_eq!(ack.verdicts, [Verdict::Applied, Verdict::Other]);
    let statuses: Vec<RunStatus> = serde_json::from_str(r#"["suspended", "failed"]"#).unwrap();
    assert_eq!(statuses, [RunStatus::Other, RunStatus::Failed]);
    let strategies: Vec<BlockStrategy> = serde_json::from_str(r#"["merge", "serial"]"#).unwrap();
    assert_eq!(strategies, [BlockStrategy::Other, BlockStrategy::Serial]);
}
