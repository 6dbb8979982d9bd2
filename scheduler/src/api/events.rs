//! The change feed: hints about changes for open pages.

use super::Api;
use super::event_stream;
use super::guard;
use super::input::Query;
use super::needs::Needs;
use super::operation::{Operation, get};
use super::problem::Problem;
use super::refusal::RequestRefusal;
use crate::auth::Caller;
use crate::domain::change_feed::Subscription;
use crate::domain::{Refusal, TenantId};
use crate::live::{LiveEvent, NoStream, follow};
use actix_web::{HttpRequest, HttpResponse, web};
use futures_util::StreamExt as _;
use serde::Deserialize;
use serde_json::json;
use std::time::Duration;
use utoipa::IntoParams;

/// How long a client should wait when the node has no room for another stream.
const SLOT_WAIT: Duration = Duration::from_secs(15);

/// Operations of this resource.
pub fn operations() -> Vec<Operation> {
    vec![
        get("/events", "follow_events", Needs::Anybody, "Follow changes as they happen")
            .says(
                "Server-sent events for open pages. `hello` comes first, and then every 10 s: its data is `{\"node\", \
                 \"version\", \"cluster_time\"}` (epoch ms); every change after the first one is reported. `changed` \
                 is a hint to read again: its data is `{\"tenant\", \"kinds\"}`, where `tenant` is a name, or null for \
                 what belongs to no tenant or possibly to each, and `kinds` are some of `tasks`, `task_logs`, `apps`, \
                 `keys`, `executors`, `nodes`, `tenants`, `users`, `roles`, `tokens`, `calendars`, `quotas`, \
                 `maintenance`, `backfills`, `statistics` and `audit`: those that the caller may read there (a caller \
                 who may read one app of a tenant gets the hints of all its apps). A hint comes within about two \
                 seconds. Hints about runs come later where a node has listeners for more than 16 individual tenants \
                 (it checks 16 each second). There is at most one hint a second per kind and tenant; a client that \
                 reads slowly misses hints, and is told that anything may have changed. `end` is the last event; its \
                 `why` is `time_up` (after an hour), `access_changed` (the session or token has ended, or the caller's \
                 read access has changed) or `node_stops`: reconnect, or sign in. An open stream does not keep a \
                 session alive.",
            )
            .query::<EventsQuery>()
            .answers_events("The events")
            .to(stream),
    ]
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
struct EventsQuery {
    /// Only changes in this tenant (name), and of what belongs to none; all that the caller may see when absent.
    tenant: Option<String>,
}

async fn stream(
    api: web::Data<Api>,
    caller: Caller,
    query: Query<EventsQuery>,
    request: HttpRequest,
) -> Result<HttpResponse, Problem> {
    if caller.must_change {
        return Err(RequestRefusal::PasswordChangeRequired.into());
    }
    let only = match query.0.tenant {
        Some(name) => Some(tenant(&api, &caller, &name).await?),
        None => None,
    };
    let subscription = Subscription::of(&caller.access, only);
    let slot = api.streams.enter(caller.actor.id, &subscription).map_err(no_slot)?;
    let recheck = guard::recheck(&api, &request, caller)?;
    let (node, version) = (api.node_name.clone(), env!("CARGO_PKG_VERSION"));
    let events = follow(slot, subscription, recheck).map(move |events| {
        let cluster_time = api.engine.clock.now_ms();
        let hello = json!({ "node": node, "version": version, "cluster_time": cluster_time });
        events.iter().map(|event| written(event, &hello)).collect::<String>().into_bytes().into()
    });
    Ok(event_stream::answer(events))
}

/// The tenant of that name, if the caller holds anything there.
async fn tenant(api: &Api, caller: &Caller, name: &str) -> Result<TenantId, Problem> {
    let found = api.store.list_tenants(&caller.access.anywhere(), Some(name), "", 1).await?;
    let found = found.first().map(|tenant| tenant.id);
    found.ok_or_else(|| Refusal::not_found("tenant", name).into())
}

fn no_slot(why: NoStream) -> Problem {
    match why {
        NoStream::Stops => RequestRefusal::NodeStops { detail: why.to_string() }.into(),
        NoStream::User | NoStream::Node => {
            Problem::from(RequestRefusal::TooManyStreams { detail: why.to_string() }).retry_after(SLOT_WAIT)
        }
    }
}

/// An event as it is sent.
fn written(event: &LiveEvent, hello: &serde_json::Value) -> String {
    match event {
        LiveEvent::Hello => format!("event: hello\ndata: {hello}\n\n"),
        LiveEvent::Changed { tenant, kinds } => {
            let data = json!({ "tenant": tenant.as_deref(), "kinds": kinds.words() });
            format!("event: changed\ndata: {data}\n\n")
        }
        LiveEvent::End(why) => format!("event: end\ndata: {}\n\n", json!({ "why": why.as_str() })),
    }
}
