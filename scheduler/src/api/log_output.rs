//! Log output of runs: page by page, or followed as server-sent events. It is read from the executors
//! on request; the node stores none of it.

use super::Api;
use super::event_stream;
use super::guard::recheck;
use super::input::Query;
use super::logs::find;
use super::operation::{Operation, get};
use super::problem::Problem;
use super::refusal::RequestRefusal;
use super::words::LogOutputState;
use crate::auth::Caller;
use crate::dispatch::{NoTailSlot, Reading, RunSource, TailClient, TailEvent, Wanted, follow};
use crate::domain::{AccessScope, FieldError, LogId, Permission};
use crate::store::SqlStore;
use actix_web::web::Bytes;
use actix_web::{HttpRequest, HttpResponse, web};
use carillon_protocol::OUTPUT_PAGE_BYTES;
use futures_util::StreamExt as _;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use utoipa::{IntoParams, ToSchema};

/// How long a client should wait when the node follows as many outputs as it may.
const SLOT_WAIT: Duration = Duration::from_secs(5);

/// The header with the id of the client's last event.
const LAST_EVENT: &str = "Last-Event-ID";

/// Operations of this resource.
pub fn operations() -> Vec<Operation> {
    use Permission as P;
    vec![
        get("/task-logs/{id}/output", "read_log_output", P::TaskLogsOutput, "A page of a run's log output")
            .says(
                "Read from the executor that ran it, by byte offset. `state` explains an empty page: output is lost \
                 with its executor. More follows until `final`. Executors of xxl-job keep lines: there, an offset is 0 or \
                 the `next` of a page.",
            )
            .query::<PageQuery>()
            .answers::<LogOutput>(200, "A page, which may be empty")
            .to(page),
        get("/task-logs/{id}/output/stream", "follow_log_output", P::TaskLogsOutput, "Follow a run's log output")
            .says(
                "Server-sent events: each `message` is a page as `read_log_output` returns it, and its id is where \
                 the next page begins. The last event is `end`; its `why` is `complete` when nothing more will come. \
                 Otherwise reconnect with the id of the last event (a browser does so by itself; close the source on \
                 `end` with `complete`). `access_changed`: the session or token has ended, or the caller's access has changed. \
                 A stream lasts five minutes at most.",
            )
            .query::<StreamQuery>()
            .header(
                LAST_EVENT,
                "The id of the last event received: `attempt-offset`; it takes precedence over the query",
            )
            .answers_events("The events")
            .to(stream),
    ]
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
struct PageQuery {
    /// Which attempt, from 1; the latest when absent.
    #[param(minimum = 1)]
    attempt: Option<i32>,
    /// First byte; 0 when absent, then `next` of the previous page. An offset inside a character
    /// means the next character, one past the end means the end.
    #[param(minimum = 0)]
    offset: Option<u64>,
    /// Most bytes in the page; the maximum when absent.
    #[param(minimum = 4, maximum = 262_144)]
    bytes: Option<u32>,
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
struct StreamQuery {
    /// Which attempt, from 1; the latest when absent.
    #[param(minimum = 1)]
    attempt: Option<i32>,
    /// First byte; 0 when absent.
    #[param(minimum = 0)]
    offset: Option<u64>,
}

/// A page of what a run has logged.
#[derive(Serialize, ToSchema)]
struct LogOutput {
    /// The attempt that was read.
    attempt: i32,
    /// State of the output; docs/api.md explains the words.
    #[schema(value_type = LogOutputState)]
    state: &'static str,
    /// Whether nothing more will come.
    #[serde(rename = "final")]
    is_final: bool,
    /// The text, cut only between characters.
    text: String,
    /// The `offset` of the next page.
    next: u64,
    /// Whether there already is more after `next`.
    more: bool,
    /// Whether the run logged more than its executor keeps of one run.
    cut: bool,
    /// Address of the executor, if known.
    executor: Option<String>,
    /// Last heartbeat of an executor that is gone, epoch ms.
    executor_heard_at: Option<i64>,
    /// Why there is no text, in words.
    detail: String,
}

impl From<Reading> for LogOutput {
    fn from(reading: Reading) -> Self {
        Self {
            attempt: reading.attempt,
            state: reading.status.as_str(),
            is_final: reading.is_final,
            text: reading.text,
            next: reading.next,
            more: reading.more,
            cut: reading.is_cut,
            executor: reading.address,
            executor_heard_at: reading.heard_at,
            detail: reading.detail,
        }
    }
}

async fn page(
    api: web::Data<Api>,
    caller: Caller,
    id: web::Path<String>,
    query: Query<PageQuery>,
) -> Result<HttpResponse, Problem> {
    let PageQuery { attempt, offset, bytes } = query.0;
    let limit = bytes.unwrap_or(*OUTPUT_PAGE_BYTES.end());
    if !OUTPUT_PAGE_BYTES.contains(&limit) {
        let (least, most) = OUTPUT_PAGE_BYTES.into_inner();
        return Err(FieldError::range("bytes", i64::from(least), i64::from(most)).into());
    }
    let wanted = Wanted { attempt: checked(attempt)?, from: offset.unwrap_or(0), limit };
    let log = find(&api, &caller, Permission::TaskLogsOutput, &id).await?;
    let reading = api.engine.output.read(&log.dispatched.run, wanted).await?;
    Ok(HttpResponse::Ok().json(LogOutput::from(reading)))
}

async fn stream(
    api: web::Data<Api>,
    caller: Caller,
    id: web::Path<String>,
    query: Query<StreamQuery>,
    request: HttpRequest,
) -> Result<HttpResponse, Problem> {
    let StreamQuery { attempt, offset } = query.0;
    let start = match request.headers().get(LAST_EVENT) {
        Some(value) => resumed(value.to_str().unwrap_or_default())?,
        None => (checked(attempt)?, offset.unwrap_or(0)),
    };
    let log = find(&api, &caller, Permission::TaskLogsOutput, &id).await?;
    let by = TailClient { user_id: caller.actor.id, tenant_id: log.dispatched.run.tenant_id };
    let slot = api.tails.enter(by).map_err(no_slot)?;
    let source = source(&api.store, caller.access_scope(Permission::TaskLogsOutput), log.dispatched.run.id);
    let may_read = recheck(&api, &request, caller)?;
    let events = follow(api.engine.output.clone(), slot, log.dispatched.run, source, may_read, start);
    Ok(event_stream::answer(events.map(event)))
}

fn no_slot(why: NoTailSlot) -> Problem {
    match why {
        NoTailSlot::Stops => RequestRefusal::NodeStops { detail: why.to_string() }.into(),
        NoTailSlot::User | NoTailSlot::Tenant | NoTailSlot::Node => {
            Problem::from(RequestRefusal::TooManyStreams { detail: why.to_string() }).retry_after(SLOT_WAIT)
        }
    }
}

/// Reads the row of a run again, within the caller's access scope.
fn source(store: &SqlStore, access_scope: AccessScope, id: LogId) -> RunSource {
    let store = store.clone();
    Box::new(move || {
        let (store, access_scope) = (store.clone(), access_scope.clone());
        Box::pin(async move { Ok(store.log(&access_scope, id).await?.map(|log| log.dispatched.run)) })
    })
}

fn checked(attempt: Option<i32>) -> Result<Option<i32>, Problem> {
    match attempt {
        Some(..1) => Err(FieldError::range("attempt", 1, i32::MAX.into()).into()),
        attempt => Ok(attempt),
    }
}

/// Where the client's last event ended.
fn resumed(last: &str) -> Result<(Option<i32>, u64), Problem> {
    let parts = last.split_once('-').and_then(|(attempt, next)| Some((attempt.parse().ok()?, next.parse().ok()?)));
    let (attempt, next) = parts.ok_or_else(|| RequestRefusal::WrongEventId { header: LAST_EVENT.to_owned() })?;
    Ok((checked(Some(attempt))?, next))
}

/// An event as it is sent. The JSON has no line breaks, so log text cannot forge events.
fn event(event: TailEvent) -> Bytes {
    Bytes::from(match event {
        TailEvent::Page(reading) => {
            let id = format!("{}-{}", reading.attempt, reading.next);
            let data = serde_json::json!(LogOutput::from(reading));
            format!("id: {id}\ndata: {data}\n\n")
        }
        TailEvent::Quiet => ": nothing new\n\n".to_owned(),
        TailEvent::End(end) => format!("event: end\ndata: {}\n\n", serde_json::json!({ "why": end.as_str() })),
    })
}
