//! Keys of an app's executors. A secret is in the answer that makes the key, and nowhere else.

use super::problem::Problem;
use super::tasks::parse_id;
use super::{Api, body};
use crate::domain::FieldError;
use crate::store::{KeyView, KeyWords};
use actix_web::{HttpResponse, web};
use carillon_protocol::sign::{Key, SignMethod, random_hex};
use serde::Deserialize;
use serde_json::{Value, json};

/// How long keys stay valid beside the one that replaces them, unless the caller says otherwise, ms.
const OVERLAP_MS: i64 = 24 * 3_600_000;

/// The longest that can be asked for, ms.
const OVERLAP_MS_MAX: i64 = 30 * 24 * 3_600_000;

/// Longest note, characters.
const NOTE_CHARS_MAX: usize = 160;

/// Routes.
pub fn routes(config: &mut web::ServiceConfig) {
    config
        .service(web::resource("/apps/{id}/keys").get(list_keys).post(create_key))
        .route("/apps/{id}/keys/rotate", web::post().to(rotate_key))
        .route("/apps/{id}/sign-method", web::put().to(demand_sign_method))
        .route("/keys/{id}", web::delete().to(revoke_key));
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewKey {
    #[serde(default)]
    note: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Rotation {
    #[serde(default)]
    note: String,
    #[serde(default = "overlap")]
    overlap_ms: i64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Demand {
    /// Absent or null: whichever an executor chooses.
    #[serde(default)]
    sign_method: Option<String>,
}

fn overlap() -> i64 {
    OVERLAP_MS
}

async fn list_keys(api: web::Data<Api>, app: web::Path<String>) -> Result<HttpResponse, Problem> {
    let scope = api.store.scope_of_app(parse_id("id", &app)?).await?;
    let now = api.engine.clock.now_ms();
    let keys = api.store.keys(scope).await?;
    let items: Vec<Value> = keys.iter().map(|key| output(key, now)).collect();
    Ok(HttpResponse::Ok().json(json!({ "items": items })))
}

async fn create_key(
    api: web::Data<Api>,
    app: web::Path<String>,
    payload: web::Payload,
) -> Result<HttpResponse, Problem> {
    let NewKey { note } = body::json(payload).await?;
    check_note(&note)?;
    let scope = api.store.scope_of_app(parse_id("id", &app)?).await?;
    let key = new_key()?;
    let words = KeyWords { note: &note, created_by: "" };
    api.store.create_key(scope, &key, words, api.engine.clock.now_ms()).await?;
    shown_once(&api, &key).await
}

async fn rotate_key(
    api: web::Data<Api>,
    app: web::Path<String>,
    payload: web::Payload,
) -> Result<HttpResponse, Problem> {
    let Rotation { note, overlap_ms } = body::json(payload).await?;
    check_note(&note)?;
    if !(0..=OVERLAP_MS_MAX).contains(&overlap_ms) {
        return Err(FieldError::new("overlap_ms", "0 to 2592000000 (30 days) are allowed").into());
    }
    let scope = api.store.scope_of_app(parse_id("id", &app)?).await?;
    let key = new_key()?;
    let words = KeyWords { note: &note, created_by: "" };
    api.store.rotate_key(scope, &key, words, overlap_ms, api.engine.clock.now_ms()).await?;
    shown_once(&api, &key).await
}

async fn revoke_key(api: web::Data<Api>, id: web::Path<String>) -> Result<HttpResponse, Problem> {
    let (scope, key) = api.store.key(&id).await?;
    api.store.revoke_key(scope, &key.id, api.engine.clock.now_ms()).await?;
    known_here(&api).await;
    Ok(HttpResponse::NoContent().finish())
}

async fn demand_sign_method(
    api: web::Data<Api>,
    app: web::Path<String>,
    payload: web::Payload,
) -> Result<HttpResponse, Problem> {
    let Demand { sign_method } = body::json(payload).await?;
    let method = match sign_method.as_deref().filter(|name| !name.is_empty()) {
        None => None,
        Some(name) => Some(SignMethod::parse(name).ok_or_else(|| {
            FieldError::new("sign_method", "HMAC-SHA256, MD5 and null (whichever an executor chooses) are allowed")
        })?),
    };
    let scope = api.store.scope_of_app(parse_id("id", &app)?).await?;
    api.store.demand_sign_method(scope, method).await?;
    known_here(&api).await;
    Ok(HttpResponse::Ok().json(json!({ "sign_method": method.map(SignMethod::as_str) })))
}

fn check_note(note: &str) -> Result<(), FieldError> {
    if note.chars().count() <= NOTE_CHARS_MAX {
        return Ok(());
    }
    Err(FieldError::new("note", "at most 160 characters are allowed"))
}

/// A key that nobody can guess.
pub fn new_key() -> Result<Key, Problem> {
    let random = |error: getrandom::Error| Problem::invalid(format!("no random bytes for a key: {error}"));
    Ok(Key { id: format!("ck_{}", random_hex::<8>().map_err(random)?), secret: random_hex::<32>().map_err(random)? })
}

async fn shown_once(api: &Api, key: &Key) -> Result<HttpResponse, Problem> {
    known_here(api).await;
    Ok(HttpResponse::Created().json(json!({ "id": key.id, "secret": key.secret })))
}

/// What was committed counts at this node before the answer; the others read it within a second.
pub async fn known_here(api: &Api) {
    if let Err(error) = api.keys.refresh(&api.store).await {
        tracing::warn!(%error, "keys not read after a change; they are within a second");
    }
}

fn output(key: &KeyView, now: i64) -> Value {
    let instant = |at: i64| (at != 0).then_some(at);
    let state = if key.revoked_at != 0 {
        "revoked"
    } else if key.expires_at != 0 && key.expires_at <= now {
        "expired"
    } else {
        "valid"
    };
    json!({
        "id": key.id,
        "state": state,
        "note": key.note,
        "created_by": key.created_by,
        "created_at": key.created_at,
        "expires_at": instant(key.expires_at),
        "revoked_at": instant(key.revoked_at),
        "last_used_at": instant(key.last_used_at),
    })
}
