//! Apps: kinds of executors within a tenant.

use super::input::{Page, Query, etag, given, if_match, limit, parse_optional_id, refuse_stale};
use super::keys::{CreatedKey, known_here, new_key};
use super::operation::{Operation, delete, get, patch, post, put};
use super::problem::Problem;
use super::targets::find_app;
use super::tenants::{check_description, check_name};
use super::words::RequiredSignMethod;
use super::{Api, body};
use crate::auth::Caller;
use crate::domain::audit::Target;
use crate::domain::{Action, FieldError, FieldRefusal, Permission};
use crate::store::{AppFilter, AppView, KeyWords};
use actix_web::{HttpRequest, HttpResponse, web};
use carillon_protocol::sign::SignMethod;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// Largest bound on runs at once.
pub const CONCURRENT_MAX: i32 = 1_000_000;

/// Operations of this resource.
pub fn operations() -> Vec<Operation> {
    use Permission as P;
    vec![
        get("/apps", "list_apps", P::AppsRead, "Apps, by id")
            .query::<AppQuery>()
            .answers_page::<App>("A page of apps")
            .to(list),
        post("/apps", Action::CreateApp, P::AppsCreate, "Create an app, with its first key")
            .says("The key's secret is in this response and is never shown again.")
            .body::<NewApp>()
            .answers::<CreatedApp>(201, "The app and its key")
            .to(create),
        get("/apps/{id}", "show_app", P::AppsRead, "An app").answers::<App>(200, "The app").to(show),
        patch(
            "/apps/{id}",
            Action::EditApp,
            P::AppsEdit,
            "Set an app's description, concurrency limit and signature method",
        )
        .if_match()
        .changes::<AppPatch>()
        .answers::<App>(200, "The app")
        .to(edit),
        put("/apps/{id}/scripts", Action::AllowScripts, P::ScriptsAllow, "Allow an app's tasks to be scripts, or forbid it")
            .says(
                "Whoever may write a script has it run as the user that the executors run as. Where scripts are forbidden, none is \
                 written, and runs of tasks that are scripts fail with the reason `scripts_not_allowed`.",
            )
            .if_match()
            .body::<AllowedScripts>()
            .answers::<App>(200, "The app")
            .to(allow_scripts),
        delete("/apps/{id}", Action::DeleteApp, P::AppsDelete, "Delete an app that has no task, with its keys")
            .answers_nothing("Deleted")
            .to(remove),
    ]
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
struct AppQuery {
    /// Only in this tenant (name).
    tenant: Option<String>,
    /// Only of this name.
    name: Option<String>,
    /// `next` of the previous page.
    after: Option<String>,
    /// Page size, 1 to 500.
    #[param(minimum = 1, maximum = 500)]
    limit: Option<u64>,
}

/// An app to create.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NewApp {
    /// Name of its tenant.
    tenant: String,
    /// Its name; it cannot be changed. The rules are those of a tenant's name.
    #[schema(min_length = 1, max_length = 64, pattern = "^[A-Za-z0-9][A-Za-z0-9._-]*$")]
    name: String,
    /// Free text for people to read.
    #[serde(default)]
    #[schema(max_length = 1000)]
    description: String,
}

/// Editable fields of an app.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct AppPatch {
    /// Free text for people to read.
    #[serde(default, deserialize_with = "given")]
    #[schema(nullable = false, max_length = 1000)]
    description: Option<String>,
    /// Maximum number of runs at once over all its executors; 0 means no limit.
    #[serde(default, deserialize_with = "given")]
    #[schema(nullable = false, minimum = 0, maximum = 1_000_000)]
    max_concurrent: Option<i32>,
    /// How executors and nodes must sign: `HMAC-SHA256` or `MD5`; empty is whichever an executor chooses.
    #[serde(default, deserialize_with = "given")]
    #[schema(nullable = false, value_type = Option<RequiredSignMethod>)]
    sign_method: Option<String>,
}

/// Whether an app's tasks may be scripts.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct AllowedScripts {
    /// Whether they may.
    allowed: bool,
}

/// An app.
#[derive(Serialize, ToSchema)]
struct App {
    /// Id.
    id: String,
    /// Tenant's name.
    tenant: String,
    /// Name.
    name: String,
    /// Free text for people to read.
    description: String,
    /// Maximum number of runs at once; 0 means no limit.
    max_concurrent: i32,
    /// How executors and nodes must sign: `HMAC-SHA256` or `MD5`; empty is whichever an executor chooses.
    #[schema(value_type = RequiredSignMethod)]
    sign_method: String,
    /// Whether its tasks may be scripts.
    scripts: bool,
    /// Increases with every change.
    revision: i64,
    /// Epoch ms.
    created_at: i64,
}

/// An app that was created.
#[derive(Serialize, ToSchema)]
struct CreatedApp {
    #[serde(flatten)]
    app: App,
    key: CreatedKey,
}

impl From<AppView> for App {
    fn from(app: AppView) -> Self {
        Self {
            id: app.id.to_string(),
            tenant: app.tenant,
            name: app.name,
            description: app.description,
            max_concurrent: app.max_concurrent,
            sign_method: method_word(app.sign_method),
            scripts: app.scripts,
            revision: app.revision,
            created_at: app.created_at,
        }
    }
}

async fn list(api: web::Data<Api>, caller: Caller, query: Query<AppQuery>) -> Result<HttpResponse, Problem> {
    let AppQuery { tenant, name, after, limit: wanted } = query.0;
    let limit = limit(wanted)?;
    let after = parse_optional_id("after", after.as_ref())?.unwrap_or_default();
    let filter = AppFilter { tenant, name, id: None, after, limit };
    let apps = api.store.list_apps(&caller.access_scope(Permission::AppsRead), &filter).await?;
    let items = apps.into_iter().map(App::from).collect();
    Ok(HttpResponse::Ok().json(Page::new(items, limit, |app: &App| app.id.clone())))
}

async fn create(api: web::Data<Api>, caller: Caller, payload: web::Payload) -> Result<HttpResponse, Problem> {
    let NewApp { tenant, name, description } = body::json(payload).await?;
    check_name("name", &name)?;
    check_description(&description)?;
    let tenant = api.whole_tenant(&caller, Permission::AppsCreate, &tenant).await?;
    let key = new_key()?;
    let now = api.engine.clock.now_ms();
    let app = AppView {
        id: api.engine.ids.next(now),
        tenant_id: tenant.id,
        tenant: tenant.name,
        name,
        description,
        max_concurrent: 0,
        sign_method: None,
        scripts: false,
        revision: 1,
        created_at: now,
    };
    let words = KeyWords { is_token: false, note: "", created_by: &caller.actor.name };
    let note = api.note(&caller, Action::CreateApp, app.tenant_id, target(&app), (None, audited(&app)));
    api.store.noting(vec![note]).create_app(&app, &key, words).await?;
    known_here(&api).await;
    let key = CreatedKey::from(key);
    Ok(HttpResponse::Created().insert_header(etag(1)).json(CreatedApp { app: app.into(), key }))
}

async fn show(api: web::Data<Api>, caller: Caller, id: web::Path<String>) -> Result<HttpResponse, Problem> {
    let app = find_app(&api, &caller, Permission::AppsRead, &id).await?;
    Ok(HttpResponse::Ok().insert_header(etag(app.revision)).json(App::from(app)))
}

async fn edit(
    api: web::Data<Api>,
    caller: Caller,
    id: web::Path<String>,
    request: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, Problem> {
    let AppPatch { description, max_concurrent, sign_method } = body::json(payload).await?;
    check_description(description.as_deref().unwrap_or_default())?;
    if max_concurrent.is_some_and(|most| !(0..=CONCURRENT_MAX).contains(&most)) {
        return Err(
            FieldError::new("max_concurrent", FieldRefusal::BoundOutOfRange { most: CONCURRENT_MAX.into() }).into()
        );
    }
    let sign_method = sign_method.map(|word| read_method(&word)).transpose()?;
    let before = find_app(&api, &caller, Permission::AppsEdit, &id).await?;
    refuse_stale(if_match(&request)?, before.revision)?;
    let after = AppView {
        description: description.unwrap_or_else(|| before.description.clone()),
        max_concurrent: max_concurrent.unwrap_or(before.max_concurrent),
        sign_method: sign_method.unwrap_or(before.sign_method),
        revision: before.revision + 1,
        ..before.clone()
    };
    write(&api, &caller, Action::EditApp, (&before, after)).await
}

async fn allow_scripts(
    api: web::Data<Api>,
    caller: Caller,
    id: web::Path<String>,
    request: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, Problem> {
    let AllowedScripts { allowed } = body::json(payload).await?;
    let before = find_app(&api, &caller, Permission::ScriptsAllow, &id).await?;
    refuse_stale(if_match(&request)?, before.revision)?;
    let after = AppView { scripts: allowed, revision: before.revision + 1, ..before.clone() };
    write(&api, &caller, Action::AllowScripts, (&before, after)).await
}

async fn write(
    api: &Api,
    caller: &Caller,
    action: Action,
    (before, after): (&AppView, AppView),
) -> Result<HttpResponse, Problem> {
    let change = (audited(before), audited(&after));
    let note = api.note(caller, action, before.tenant_id, target(before), change);
    api.store.noting(vec![note]).edit_app(before, &after).await?;
    known_here(api).await;
    if let Err(error) = api.engine.rules.refresh(&api.store, api.engine.clock.now_ms()).await {
        tracing::warn!(%error, "rules could not be read after a change; they will be read within a second");
    }
    Ok(HttpResponse::Ok().insert_header(etag(after.revision)).json(App::from(after)))
}

async fn remove(api: web::Data<Api>, caller: Caller, id: web::Path<String>) -> Result<HttpResponse, Problem> {
    let app = find_app(&api, &caller, Permission::AppsDelete, &id).await?;
    let note = api.note(&caller, Action::DeleteApp, app.tenant_id, target(&app), (audited(&app), None));
    api.store.noting(vec![note]).delete_app(app.tenant_id, app.id).await?;
    known_here(&api).await;
    Ok(HttpResponse::NoContent().finish())
}

fn read_method(word: &str) -> Result<Option<SignMethod>, FieldError> {
    if word.is_empty() {
        return Ok(None);
    }
    let allowed = "HMAC-SHA256, MD5 or empty (each executor chooses)".to_owned();
    let refusal = FieldRefusal::WrongChoice { given: word.to_owned(), allowed };
    SignMethod::parse(word).map(Some).ok_or_else(|| FieldError::new("sign_method", refusal))
}

fn method_word(method: Option<SignMethod>) -> String {
    method.map_or("", SignMethod::as_str).to_owned()
}

fn target(app: &AppView) -> Target {
    Target { kind: "app", id: app.id.to_string(), name: format!("{}/{}", app.tenant, app.name) }
}

fn audited(app: &AppView) -> Option<String> {
    let AppView { name, description, max_concurrent, sign_method, scripts, .. } = app;
    let said = serde_json::json!({
        "name": name,
        "description": description,
        "max_concurrent": max_concurrent,
        "sign_method": method_word(*sign_method),
        "scripts": scripts,
    });
    serde_json::to_string(&said).ok()
}
