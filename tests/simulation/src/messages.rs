//! What requests and answers are about: for traces, and so that chance goes by what is sent, whatever its nonce and its
//! order.

use carillon_protocol::exchange::{Answer, Request};
use carillon_protocol::sign::{RequestParts, header};
use carillon_protocol::{
    CancelAck, Code, DispatchAck, NODE_BASE_PATH, Reply, Results, ResultsAck, RunKey, RunStatus, Verdict,
};
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use std::fmt::Debug;

#[derive(Deserialize)]
struct Run {
    log: i64,
    attempt: i32,
}

#[derive(Deserialize)]
struct Items {
    #[serde(alias = "results")]
    items: Vec<Run>,
}

#[derive(Deserialize)]
struct Runs {
    runs: Vec<RunKey>,
}

/// What xxl-job's messages are about.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Numbers {
    log_id: Option<i64>,
    job_id: Option<i64>,
}

#[derive(Deserialize)]
struct TaskIds {
    tasks: Vec<i64>,
}

/// What a request's signature covers beside its body, as sent.
pub fn signed_parts(request: &Request) -> RequestParts<'_, &str> {
    RequestParts {
        method: Request::METHOD,
        path: &request.path,
        query: "",
        tenant: request.header(header::TENANT),
        app: request.header(header::APP),
        key: request.header(header::KEY),
        timestamp: request.header(header::TIMESTAMP),
        nonce: request.header(header::NONCE),
    }
}

/// A request in short.
pub fn summary(request: &Request) -> String {
    let path = request.path.strip_prefix(NODE_BASE_PATH).unwrap_or(&request.path);
    match path {
        "/dispatch" | "/results" | "/cancel" => format!("{path} {:?}", keys(request)),
        "/probe" => format!("{path} {:?}", parse::<TaskIds>(&request.body).map(|probe| probe.tasks)),
        "/run" | "/log" => format!("{path} {:?}", parse::<Numbers>(&request.body).and_then(|of| of.log_id)),
        "/kill" | "/idleBeat" => format!("{path} {:?}", parse::<Numbers>(&request.body).and_then(|of| of.job_id)),
        "/xxl-job-admin/api/callback" => {
            let items = parse::<Vec<Numbers>>(&request.body).unwrap_or_default();
            format!("{path} {:?}", items.iter().map(|of| of.log_id).collect::<Vec<_>>())
        }
        _ => path.to_owned(),
    }
}

/// The runs that a request names, in order.
fn keys(request: &Request) -> Vec<RunKey> {
    let items =
        parse::<Items>(&request.body).map(|of| of.items.iter().map(|run| RunKey(run.log, run.attempt)).collect());
    let mut keys: Vec<RunKey> = items.or_else(|| parse::<Runs>(&request.body).map(|of| of.runs)).unwrap_or_default();
    keys.sort_unstable();
    keys
}

/// Whether it brings results to a node.
pub fn has_results(request: &Request) -> bool {
    request.path.ends_with("/results")
}

/// Whether it says that an executor is alive.
pub fn is_heartbeat(request: &Request) -> bool {
    request.path.ends_with("/heartbeat")
}

/// Whether a process registers with it.
pub fn is_registration(request: &Request) -> bool {
    request.path.ends_with("/executors/register")
}

/// Whether what was asked for is done.
pub fn is_accepted(answer: &Answer) -> bool {
    parse::<Reply<IgnoredAny>>(&answer.body).is_some_and(|reply| reply.code == Code::Ok)
}

/// What a node said of each result.
pub fn verdicts(request: &Request, answer: &Answer) -> Vec<(RunKey, RunStatus, Verdict)> {
    if !has_results(request) {
        return Vec::new();
    }
    let (Some(sent), Some(ack)) = (parse::<Results>(&request.body), data::<ResultsAck>(answer)) else {
        return Vec::new();
    };
    let keys = sent.results.iter().map(|result| (RunKey(result.log, result.attempt), result.status));
    keys.zip(ack.verdicts).map(|((key, status), verdict)| (key, status, verdict)).collect()
}

/// What an executor said of each run, one line each.
pub fn outcomes(request: &Request, answer: &Answer) -> Vec<String> {
    fn lines<O: Debug>(keys: impl Iterator<Item = RunKey>, what: &str, outcomes: &[O]) -> Vec<String> {
        let line = |(RunKey(log, attempt), outcome)| format!("log {log} attempt {attempt}: {what}{outcome:?}");
        keys.zip(outcomes).map(line).collect()
    }
    match request.path.as_str() {
        "/dispatch" => match (parse::<Items>(&request.body), data::<DispatchAck>(answer)) {
            (Some(sent), Some(ack)) => {
                lines(sent.items.iter().map(|run| RunKey(run.log, run.attempt)), "", &ack.outcomes)
            }
            _ => vec![format!("{} answered {}", summary(request), answer.status)],
        },
        "/cancel" => match (parse::<Runs>(&request.body), data::<CancelAck>(answer)) {
            (Some(sent), Some(ack)) => lines(sent.runs.into_iter(), "cancel met ", &ack.outcomes),
            _ => vec![format!("{} answered {}", summary(request), answer.status)],
        },
        _ => Vec::new(),
    }
}

fn parse<T: DeserializeOwned>(body: &[u8]) -> Option<T> {
    serde_json::from_slice(body).ok()
}

/// The data of a success.
fn data<T: DeserializeOwned>(answer: &Answer) -> Option<T> {
    parse::<Reply<T>>(&answer.body).filter(|reply| reply.code == Code::Ok)?.data
}
