//! Times without any node, and what becomes of the runs that were due then if the database was restored.

use super::operation::{Operation, get, post};
use super::problem::Problem;
use super::{Api, body};
use crate::auth::Caller;
use crate::domain::access::PLATFORM;
use crate::domain::audit::Target;
use crate::domain::silence::{PastDecision, Silence};
use crate::domain::{Action, Permission};
use actix_web::{HttpResponse, web};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Operations of this resource.
pub fn operations() -> Vec<Operation> {
    vec![
        get("/cluster/silences", "list_silences", Permission::NodesRead, "Times without any node, newest first")
            .says("At most 1,000, of the last 30 days. One that is `held` waits for a decision.")
            .answers::<Silences>(200, "The silences")
            .to(list),
        post(
            "/cluster/resume",
            Action::ResumeCluster,
            Permission::ClusterResume,
            "Decide what becomes of runs that may have run before the database was restored",
        )
        .says("Skipping cancels them, and the backfills that were open then.")
        .body::<Resume>()
        .answers_nothing("Decided")
        .to(resume),
    ]
}

/// What is to become of the past.
#[derive(Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Resume {
    /// `skip` cancels the runs that are held, `run` runs them as their tasks' policies for missed and lost runs say.
    past: PastDecision,
}

/// A time for which the database has no heartbeat of any node.
#[derive(Serialize, ToSchema)]
#[schema(as = Silence)]
struct SilenceView {
    /// The last heartbeat before it, epoch ms.
    from: i64,
    /// The first one after it, epoch ms.
    until: i64,
    /// What was due until then (epoch ms) may have run, because somebody lived through it; null when nobody did.
    lived_until: Option<i64>,
    /// Who did.
    found_by: Option<String>,
    /// What was decided.
    decision: Option<PastDecision>,
    /// Whether runs wait for a decision.
    held: bool,
}

/// Times without any node.
#[derive(Serialize, ToSchema)]
struct Silences {
    items: Vec<SilenceView>,
}

impl From<Silence> for SilenceView {
    fn from(silence: Silence) -> Self {
        let held = silence.is_open();
        let Silence { from, until, lived_until, found_by, decision } = silence;
        let is_lived = lived_until > 0;
        Self {
            from,
            until,
            lived_until: is_lived.then_some(lived_until),
            found_by: is_lived.then_some(found_by),
            decision,
            held,
        }
    }
}

async fn list(api: web::Data<Api>) -> Result<HttpResponse, Problem> {
    let items = api.store.silences().await?.into_iter().map(SilenceView::from).collect();
    Ok(HttpResponse::Ok().json(Silences { items }))
}

async fn resume(api: web::Data<Api>, caller: Caller, payload: web::Payload) -> Result<HttpResponse, Problem> {
    let input: Resume = body::json(payload).await?;
    let target = Target { kind: "cluster", id: String::new(), name: String::new() };
    let note = api.note(&caller, Action::ResumeCluster, PLATFORM, target, (None, serde_json::to_string(&input).ok()));
    api.store.noting(vec![note]).decide_past(input.past, api.engine.clock.now_ms()).await?;
    api.engine.look().await?;
    api.wake.notify_one();
    Ok(HttpResponse::NoContent().finish())
}
