//! Where an app's executors are found that do not register themselves.

use super::input::{etag, if_match, refuse_stale};
use super::operation::{Operation, get, put};
use super::problem::Problem;
use super::targets::find_app;
use super::{Api, body};
use crate::auth::Caller;
use crate::discovery::fit;
use crate::domain::audit::Target;
use crate::domain::discovery::DiscoverySpec;
use crate::domain::{Action, FieldError, FieldRefusal, Owner, Permission};
use crate::store::{AppView, ExecutorSource};
use actix_web::{HttpRequest, HttpResponse, web};
use serde::Serialize;
use utoipa::ToSchema;

/// Operations of this resource.
pub fn operations() -> Vec<Operation> {
    use Permission as P;
    vec![
        get("/apps/{id}/discovery", "show_discovery", P::AppsRead, "Where an app's executors of xxl-job are found")
            .answers::<Discovery>(200, "Where they are found, beside those that register themselves")
            .to(show),
        put(
            "/apps/{id}/discovery",
            Action::PutDiscovery,
            P::DiscoveryEdit,
            "Say where an app's executors of xxl-job are found",
        )
        .says(
            "Beside those that register themselves. Every field is required. The app needs a key of the kind `token`, which is sent to \
             them; without one nobody is found. Nodes ask Nacos every 500 ms (setting `nacos.servers`): while it does not answer, \
             executors stay as they were.",
        )
        .if_match()
        .body::<DiscoverySpec>()
        .answers::<Discovery>(200, "Where they are found")
        .to(replace),
    ]
}

/// Whether Nacos tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum NacosState {
    /// No service is named.
    None,
    /// It has not been asked since the service was named.
    Pending,
    /// It answers.
    Current,
    /// It does not answer; executors stay as they were.
    Away,
}

/// Where an app's executors are found.
#[derive(Serialize, ToSchema)]
struct Discovery {
    #[serde(flatten)]
    spec: DiscoverySpec,
    /// Whether Nacos tells.
    nacos_state: NacosState,
    /// Since when it is so, epoch ms.
    nacos_since: Option<i64>,
    /// Why it does not tell; empty if it does.
    nacos_problem: String,
    /// Increases with every change; 0 before the first.
    revision: i64,
    /// When it was changed, epoch ms.
    updated_at: Option<i64>,
}

impl From<ExecutorSource> for Discovery {
    fn from(source: ExecutorSource) -> Self {
        let ExecutorSource { spec, problem, since, revision, updated_at, .. } = source;
        let nacos_state = match &spec.nacos {
            None => NacosState::None,
            Some(_) if since == 0 => NacosState::Pending,
            Some(_) if problem.is_empty() => NacosState::Current,
            Some(_) => NacosState::Away,
        };
        let instant = |at: i64| (at != 0).then_some(at);
        Self {
            nacos_state,
            nacos_since: instant(since),
            nacos_problem: problem,
            revision,
            updated_at: instant(updated_at),
            spec,
        }
    }
}

async fn show(api: web::Data<Api>, caller: Caller, id: web::Path<String>) -> Result<HttpResponse, Problem> {
    let app = find_app(&api, &caller, Permission::AppsRead, &id).await?;
    let source = known(&api, &app).await?;
    Ok(HttpResponse::Ok().insert_header(etag(source.revision)).json(Discovery::from(source)))
}

async fn replace(
    api: web::Data<Api>,
    caller: Caller,
    id: web::Path<String>,
    request: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, Problem> {
    let given: DiscoverySpec = body::whole(payload).await?;
    let spec = checked(&api, given)?;
    let app = find_app(&api, &caller, Permission::DiscoveryEdit, &id).await?;
    let before = known(&api, &app).await?;
    refuse_stale(if_match(&request)?, before.revision)?;
    let change = (audited(&before.spec), audited(&spec));
    let note = api.note(&caller, Action::PutDiscovery, app.tenant_id, target(&app), change);
    let now = api.engine.clock.now_ms();
    api.store.noting(vec![note]).put_source(before.owner, &spec, before.revision, now).await?;
    api.discovery.changed();
    api.discovery.wake().notify_one();
    let (problem, since, revision) = (String::new(), 0, before.revision + 1);
    let after = ExecutorSource { spec, problem, since, revision, updated_at: now, ..before };
    Ok(HttpResponse::Ok().insert_header(etag(revision)).json(Discovery::from(after)))
}

/// As it is stored; nothing is named before anyone has said something.
async fn known(api: &Api, app: &AppView) -> Result<ExecutorSource, Problem> {
    let owner = Owner { tenant_id: app.tenant_id, app_id: app.id };
    let (spec, problem) = (DiscoverySpec::default(), String::new());
    let nothing = ExecutorSource { owner, spec, problem, since: 0, revision: 0, updated_at: 0 };
    Ok(api.store.source(owner).await?.unwrap_or(nothing))
}

/// With addresses as they are announced, each once.
fn checked(api: &Api, given: DiscoverySpec) -> Result<DiscoverySpec, Problem> {
    let mut mistakes = given.mistakes();
    let mut addresses = Vec::with_capacity(given.addresses.len());
    for (at, address) in given.addresses.iter().enumerate() {
        match fit(address, &api.addresses) {
            Ok(address) if addresses.contains(&address) => {}
            Ok(address) => addresses.push(address),
            Err(detail) => {
                mistakes.push(FieldError::new(format!("addresses[{at}]"), FieldRefusal::Unreadable { detail }));
            }
        }
    }
    if mistakes.is_empty() { Ok(DiscoverySpec { addresses, ..given }) } else { Err(Problem::fields(mistakes)) }
}

fn target(app: &AppView) -> Target {
    Target { kind: "app", id: app.id.to_string(), name: format!("{}/{}", app.tenant, app.name) }
}

fn audited(spec: &DiscoverySpec) -> Option<String> {
    serde_json::to_string(spec).ok()
}
