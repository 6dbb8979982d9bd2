//! Tenants and apps.

use super::keys::{known_here, new_key};
use super::problem::Problem;
use super::{Api, body};
use crate::store::{KeyWords, TenantView};
use actix_web::{HttpResponse, web};
use carillon_protocol::sign::SignMethod;
use serde::Deserialize;
use serde_json::json;

/// Routes.
pub fn routes(config: &mut web::ServiceConfig) {
    config
        .service(web::resource("/tenants").get(list_tenants).post(create_tenant))
        .service(web::resource("/apps").get(list_apps).post(create_app));
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewTenant {
    name: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewApp {
    tenant: String,
    name: String,
}

async fn list_tenants(api: web::Data<Api>) -> Result<HttpResponse, Problem> {
    let tenants = api.store.tenants().await?;
    let output = |tenant: &TenantView| json!({ "id": tenant.id.to_string(), "name": tenant.name, "max_concurrent": tenant.max_concurrent });
    let items: Vec<_> = tenants.iter().map(output).collect();
    Ok(HttpResponse::Ok().json(json!({ "items": items })))
}

async fn create_tenant(api: web::Data<Api>, payload: web::Payload) -> Result<HttpResponse, Problem> {
    let NewTenant { name } = body::json(payload).await?;
    check_name("name", &name)?;
    let now = api.engine.clock.now_ms();
    let id = api.engine.ids.next(now);
    api.store.create_tenant(id, &name, now).await?;
    Ok(HttpResponse::Created().json(json!({ "id": id.to_string(), "name": name })))
}

async fn list_apps(api: web::Data<Api>) -> Result<HttpResponse, Problem> {
    let apps = api.store.apps().await?;
    let items: Vec<_> = apps
        .iter()
        .map(|app| {
            json!({
                "id": app.id.to_string(),
                "tenant": app.tenant,
                "name": app.name,
                "max_concurrent": app.max_concurrent,
                "keys": app.keys,
                "sign_method": app.sign_method.map(SignMethod::as_str),
            })
        })
        .collect();
    Ok(HttpResponse::Ok().json(json!({ "items": items })))
}

/// Creates an app with its first key; the secret is shown here and never again.
async fn create_app(api: web::Data<Api>, payload: web::Payload) -> Result<HttpResponse, Problem> {
    let NewApp { tenant, name } = body::json(payload).await?;
    check_name("name", &name)?;
    let key = new_key()?;
    let now = api.engine.clock.now_ms();
    let id = api.engine.ids.next(now);
    let words = KeyWords { note: "", created_by: "" };
    api.store.create_app(id, &tenant, &name, &key, words, now).await?;
    known_here(&api).await;
    Ok(HttpResponse::Created().json(json!({
        "id": id.to_string(),
        "tenant": tenant,
        "name": name,
        "key": { "id": key.id, "secret": key.secret },
    })))
}

/// Names of tenants and apps stand in headers and signatures: plain ASCII words.
fn check_name(field: &str, name: &str) -> Result<(), Problem> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if (1..=64).contains(&name.len()) && name.chars().all(plain) {
        return Ok(());
    }
    Err(Problem::invalid(format!("{field}: 1 to 64 characters out of a-z A-Z 0-9 - _ . are allowed")))
}
