//! Keys of an app's executors. A secret appears in the response that creates the key, and nowhere else.

use super::input::{AfterQuery, Page, Query, bad_cursor, limit};
use super::operation::{Operation, delete, get, post};
use super::problem::Problem;
use super::targets::find_app;
use super::words::KeyState;
use super::{Api, body};
use crate::auth::{Caller, KeyRing, SECRET_CHARS_MIN};
use crate::domain::audit::Target;
use crate::domain::{Action, FieldError, FieldRefusal, Owner, Permission, Refusal};
use crate::store::{AppView, KeyCursor, KeyView, KeyWords, TOKEN};
use actix_web::{HttpResponse, web};
use carillon_protocol::sign::{Key, random_hex};
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;

/// How long keys stay valid after their replacement is created, unless the caller says otherwise, ms.
const OVERLAP_MS: i64 = 24 * 3_600_000;

/// Longest overlap, ms.
const OVERLAP_MS_MAX: i64 = 30 * 24 * 3_600_000;

/// Longest token, characters.
const TOKEN_CHARS_MAX: usize = 128;

/// Longest note, characters.
const NOTE_CHARS_MAX: usize = 160;

/// Operations of this resource.
pub fn operations() -> Vec<Operation> {
    use Permission as P;
    vec![
        get("/apps/{id}/keys", "list_keys", P::KeysRead, "Keys of an app's executors, without secrets")
            .query::<AfterQuery>()
            .answers_page::<KeyOutput>("A page of keys: valid ones first, then the others, each newest first")
            .to(list),
        post("/apps/{id}/keys", Action::CreateKey, P::KeysCreate, "Create an additional key")
            .says(
                "The secret is in this response and is never shown again. An app has at most ten valid keys. A key of the kind \
                 `token` opens the app's door for executors that speak xxl-job's protocol: they send the secret as their \
                 access token. Several apps of one tenant may have the same token.",
            )
            .body::<NewKey>()
            .answers::<CreatedKey>(201, "The key")
            .to(create),
        post("/apps/{id}/keys/rotate", Action::RotateKeys, P::KeysRotate, "Replace an app's keys with a new one")
            .says(
                "Every valid key expires after the overlap, or earlier if it already was to. Restart executors with \
                 the new key before then. The secret is in this response and is never shown again.",
            )
            .body::<Rotation>()
            .answers::<CreatedKey>(201, "The new key")
            .to(rotate),
        delete("/keys/{id}", Action::RevokeKey, P::KeysRevoke, "Revoke a key")
            .says(
                "The key ends at once on the node that receives the request, and within about a second on the others: \
                 requests of its executors are refused, and nothing is sent to them.",
            )
            .answers_nothing("Revoked")
            .to(revoke),
    ]
}

/// A key to create.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NewKey {
    /// What it is for.
    #[serde(default)]
    #[schema(max_length = 160)]
    note: String,
    /// What executors do with it.
    #[serde(default)]
    kind: KeyKind,
    /// Of a token only: the token that executors have already. Without it one is made.
    #[serde(default)]
    #[schema(min_length = 16, max_length = 128)]
    secret: Option<String>,
}

/// What executors do with a key.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum KeyKind {
    /// They sign messages with it.
    #[default]
    Signing,
    /// They send it as the access token of xxl-job's protocol.
    Token,
}

/// The key that replaces the others.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Rotation {
    /// What it is for.
    #[serde(default)]
    #[schema(max_length = 160)]
    note: String,
    /// How long the previous keys stay valid, ms; one day when absent, thirty days at most.
    #[serde(default = "overlap")]
    #[schema(minimum = 0, maximum = 2_592_000_000i64)]
    overlap_ms: i64,
}

fn overlap() -> i64 {
    OVERLAP_MS
}

/// A created key with its secret.
#[derive(Serialize, ToSchema)]
pub struct CreatedKey {
    /// Id, as executors send it.
    id: String,
    /// Secret, as executors sign with it; never shown again.
    secret: String,
}

impl From<Key> for CreatedKey {
    fn from(key: Key) -> Self {
        Self { id: key.id, secret: key.secret }
    }
}

/// A key, without its secret.
#[derive(Serialize, ToSchema)]
#[schema(as = Key)]
struct KeyOutput {
    /// Id, as executors send it.
    id: String,
    /// What executors do with it.
    kind: KeyKind,
    /// `valid`, `expired` or `revoked`.
    #[schema(value_type = KeyState)]
    state: &'static str,
    /// What it is for.
    note: String,
    /// Who created it.
    created_by: String,
    /// Epoch ms.
    created_at: i64,
    /// When it ends, epoch ms.
    expires_at: Option<i64>,
    /// When it was revoked, epoch ms.
    revoked_at: Option<i64>,
    /// Last use, epoch ms, accurate to about a minute.
    last_used_at: Option<i64>,
}

impl KeyOutput {
    fn of(key: KeyView, now: i64) -> Self {
        let instant = |at: i64| (at != 0).then_some(at);
        let state = match key.revoked_at {
            0 if key.is_valid(now) => "valid",
            0 => "expired",
            _ => "revoked",
        };
        Self {
            id: key.id,
            kind: if key.kind == TOKEN { KeyKind::Token } else { KeyKind::Signing },
            state,
            note: key.note,
            created_by: key.created_by,
            created_at: key.created_at,
            expires_at: instant(key.expires_at),
            revoked_at: instant(key.revoked_at),
            last_used_at: instant(key.last_used_at),
        }
    }
}

async fn list(
    api: web::Data<Api>,
    caller: Caller,
    app: web::Path<String>,
    query: Query<AfterQuery>,
) -> Result<HttpResponse, Problem> {
    let AfterQuery { after, limit: wanted } = query.0;
    let limit = limit(wanted)?;
    let after = after.map(|cursor| read_cursor(&cursor)).transpose()?;
    let app = find_app(&api, &caller, Permission::KeysRead, &app).await?;
    let now = api.engine.clock.now_ms();
    let keys = api.store.keys(owner(&app), now, after.as_ref(), limit).await?;
    let next = keys.last().filter(|_| keys.len() as u64 == limit).map(|key| cursor_text(&key.cursor(now)));
    let items = keys.into_iter().map(|key| KeyOutput::of(key, now)).collect();
    Ok(HttpResponse::Ok().json(Page { items, next }))
}

fn cursor_text(cursor: &KeyCursor) -> String {
    format!("{}-{}-{}", u8::from(cursor.is_valid), cursor.created_at, cursor.id)
}

fn read_cursor(text: &str) -> Result<KeyCursor, Problem> {
    let parts: Vec<&str> = text.splitn(3, '-').collect();
    match (&parts[..], parts.get(1).and_then(|at| at.parse().ok())) {
        ([valid @ ("0" | "1"), _, id], Some(created_at)) => {
            Ok(KeyCursor { is_valid: *valid == "1", created_at, id: (*id).to_owned() })
        }
        _ => Err(bad_cursor("after")),
    }
}

async fn create(
    api: web::Data<Api>,
    caller: Caller,
    app: web::Path<String>,
    payload: web::Payload,
) -> Result<HttpResponse, Problem> {
    let NewKey { note, kind, secret } = body::json(payload).await?;
    check_note(&note)?;
    let app = find_app(&api, &caller, Permission::KeysCreate, &app).await?;
    let mut key = new_key()?;
    if let Some(secret) = secret {
        check_token(kind, &secret)?;
        key.secret = secret;
    }
    let now = api.engine.clock.now_ms();
    let is_others = api.keys.tokens(&key.secret, now).iter().any(|other| other.owner.tenant_id != app.tenant_id);
    if kind == KeyKind::Token && is_others {
        return Err(Refusal::TokenTaken.into());
    }
    let said = json!({ "app": app.name, "note": note, "kind": kind }).to_string();
    let audit = api.note(&caller, Action::CreateKey, app.tenant_id, target(&key.id), (None, Some(said)));
    let words = KeyWords { is_token: kind == KeyKind::Token, note: &note, created_by: &caller.actor.name };
    api.store.noting(vec![audit]).create_key(owner(&app), &key, words, now).await?;
    known_here(&api).await;
    Ok(HttpResponse::Created().json(CreatedKey::from(key)))
}

async fn rotate(
    api: web::Data<Api>,
    caller: Caller,
    app: web::Path<String>,
    payload: web::Payload,
) -> Result<HttpResponse, Problem> {
    let Rotation { note, overlap_ms } = body::json(payload).await?;
    check_note(&note)?;
    if !(0..=OVERLAP_MS_MAX).contains(&overlap_ms) {
        return Err(FieldError::span("overlap_ms", 0, OVERLAP_MS_MAX).into());
    }
    let app = find_app(&api, &caller, Permission::KeysRotate, &app).await?;
    let key = new_key()?;
    let said = json!({ "app": app.name, "note": note, "overlap_ms": overlap_ms }).to_string();
    let audit = api.note(&caller, Action::RotateKeys, app.tenant_id, target(&key.id), (None, Some(said)));
    let words = KeyWords { is_token: false, note: &note, created_by: &caller.actor.name };
    let store = api.store.noting(vec![audit]);
    store.rotate_key(owner(&app), &key, words, overlap_ms, api.engine.clock.now_ms()).await?;
    known_here(&api).await;
    Ok(HttpResponse::Created().json(CreatedKey::from(key)))
}

async fn revoke(api: web::Data<Api>, caller: Caller, id: web::Path<String>) -> Result<HttpResponse, Problem> {
    let (owner, key) = api.store.key(&caller.access_scope(Permission::KeysRevoke), &id).await?;
    let said = json!({ "note": key.note, "created_by": key.created_by }).to_string();
    let audit = api.note(&caller, Action::RevokeKey, owner.tenant_id, target(&key.id), (Some(said), None));
    api.store.noting(vec![audit]).revoke_key(owner, &key.id, api.engine.clock.now_ms()).await?;
    known_here(&api).await;
    Ok(HttpResponse::NoContent().finish())
}

fn owner(app: &AppView) -> Owner {
    Owner { tenant_id: app.tenant_id, app_id: app.id }
}

fn target(id: &str) -> Target {
    Target { kind: "key", id: id.to_owned(), name: id.to_owned() }
}

fn check_note(note: &str) -> Result<(), FieldError> {
    if note.chars().count() <= NOTE_CHARS_MAX {
        return Ok(());
    }
    Err(FieldError::too_long("note", NOTE_CHARS_MAX))
}

/// A token is sent in a header, and nobody else may guess it.
fn check_token(kind: KeyKind, secret: &str) -> Result<(), FieldError> {
    if kind != KeyKind::Token {
        return Err(FieldError::new("secret", FieldRefusal::NotWith { other: "kind: signing".to_owned() }));
    }
    let is_header = secret.bytes().all(|byte| byte.is_ascii_graphic());
    if KeyRing::is_weak(secret) || secret.len() > TOKEN_CHARS_MAX || !is_header {
        let (least, most) = (SECRET_CHARS_MIN as i64, TOKEN_CHARS_MAX as i64);
        return Err(FieldError::new("secret", FieldRefusal::WeakToken { least, most }));
    }
    Ok(())
}

/// A key that cannot be guessed.
pub fn new_key() -> Result<Key, Problem> {
    Ok(Key {
        id: format!("ck_{}", random_hex::<8>().map_err(Problem::internal)?),
        secret: random_hex::<32>().map_err(Problem::internal)?,
    })
}

/// Applies the committed change on this node before the response; the other nodes read it within a second.
pub async fn known_here(api: &Api) {
    if let Err(error) = api.keys.refresh(&api.store).await {
        tracing::warn!(%error, "keys could not be read after a change; they will be read within a second");
    }
}
