//! API tokens: what they may, and when they no longer may.

use carillon_tests::api::id_of;
use carillon_tests::people::{PASSWORD, Person};
use carillon_tests::{Api, Kind, World, now_ms};
use reqwest::Method;
use serde_json::{Value, json};

scenario!(a_configured_token_is_text: sqlite);
scenario!(tokens_are_narrower_than_their_owner: sqlite mariadb postgres);
scenario!(tokens_take_over_no_account: sqlite);
scenario!(tokens_end: sqlite mariadb postgres);

/// A token of that person: its id, and a client that carries it.
async fn token(of: &Person, permissions: &[&str], tenant: Option<&str>) -> (i64, Api) {
    let body = json!({
        "name": "ci", "permissions": permissions, "tenant": tenant, "expires_at": now_ms() + 3_600_000,
    });
    let made = of.api.expect(201, Method::POST, "/account/tokens", Some(&body)).await;
    let secret = made["secret"].as_str().unwrap();
    assert!(secret.starts_with("carillon_") && secret.len() >= 64, "{made}");
    (id_of(&made["id"]).unwrap(), of.api.carrying(secret))
}

fn new_app(tenant: &str, name: &str) -> Value {
    json!({ "tenant": tenant, "name": name })
}

/// Neither its owner's, with whatever permissions, nor that of a user with more.
async fn tokens_take_over_no_account(kind: Kind) {
    let world = World::new(kind).await;
    world.node("a", &[]).await;
    let admin = world.api();
    let ann = admin.make_person("ann", None).await;
    admin.grant(&ann, "platform admin", None).await;
    let (kept, mighty) = token(&ann, &["users.read", "users.edit", "users.delete", "tokens.revoke"], None).await;
    let own = format!("/users/{}", ann.id);
    for api in [&mighty, &ann.api] {
        for (method, path, body) in [
            (Method::POST, format!("{own}/password"), None),
            (Method::PATCH, own.clone(), Some(json!({ "disabled": true }))),
            (Method::DELETE, format!("{own}/sessions"), None),
            (Method::DELETE, own.clone(), None),
        ] {
            let refused = api.expect(403, method.clone(), &path, body.as_ref()).await;
            assert_eq!(refused["code"], "own_account", "{method} {path}");
        }
    }
    ann.api.get("/session").await;

    admin.make_app("near", "orders").await;
    admin.make_role("tokens", Some("near"), &["tokens.read", "tokens.revoke", "users.read"]).await;
    let clerk = admin.make_person("clerk", Some("near")).await;
    admin.grant(&clerk, "tokens", Some("near")).await;
    let chief = admin.make_person("chief", Some("near")).await;
    admin.grant(&chief, "tenant admin", Some("near")).await;
    let (id, _) = token(&chief, &["tasks.read"], None).await;
    let refused = clerk.api.expect(403, Method::DELETE, &format!("/tokens/{id}"), None).await;
    assert_eq!(refused["code"], "user_above_caller", "{refused}");
    ann.api.expect(204, Method::DELETE, &format!("/tokens/{id}"), None).await;
    ann.api.expect(204, Method::DELETE, &format!("/account/tokens/{kept}"), None).await;
}

async fn tokens_are_narrower_than_their_owner(kind: Kind) {
    let world = World::new(kind).await;
    world.node("a", &[]).await;
    let admin = world.api();
    for tenant in ["near", "far"] {
        admin.make_app(tenant, "orders").await;
    }
    let ann = admin.make_person("ann", None).await;
    admin.grant(&ann, "platform admin", None).await;

    // Fewer permissions.
    let (_, reader) = token(&ann, &["apps.read"], None).await;
    assert_eq!(reader.get("/apps").await["items"].as_array().unwrap().len(), 2);
    reader.expect(403, Method::POST, "/apps", Some(&new_app("near", "a"))).await;
    reader.expect(403, Method::GET, "/nodes", None).await;

    // One tenant; what the platform alone grants is left behind.
    let (_, near) = token(&ann, &["apps.read", "apps.create", "nodes.read", "tenants.create"], Some("near")).await;
    let seen = near.get("/apps").await;
    assert_eq!(seen["items"].as_array().unwrap().len(), 1, "{seen}");
    near.expect(201, Method::POST, "/apps", Some(&new_app("near", "b"))).await;
    near.expect(404, Method::POST, "/apps", Some(&new_app("far", "b"))).await;
    near.expect(403, Method::GET, "/nodes", None).await;
    near.expect(403, Method::POST, "/tenants", Some(&json!({ "name": "third" }))).await;

    // All permissions of a token are not more than its owner has.
    let viewer = admin.make_person("viewer", None).await;
    let grant = admin.grant(&viewer, "viewer", Some("near")).await;
    let (_, greedy) = token(&viewer, &["apps.read", "apps.create", "users.create", "nodes.read"], None).await;
    assert_eq!(greedy.get("/apps").await["items"].as_array().unwrap().len(), 2);
    for (method, path) in [(Method::POST, "/apps"), (Method::POST, "/users"), (Method::GET, "/nodes")] {
        greedy.expect(403, method, path, Some(&json!({}))).await;
    }
    // What the owner loses, the token loses.
    admin.expect(204, Method::DELETE, &format!("/users/{}/grants/{grant}", viewer.id), None).await;
    greedy.expect(403, Method::GET, "/apps", None).await;

    // A token makes no tokens, changes no password, ends no session.
    let body = json!({ "name": "x", "permissions": ["apps.read"], "expires_at": now_ms() + 60_000 });
    reader.expect(403, Method::POST, "/account/tokens", Some(&body)).await;
    let body = json!({ "current": PASSWORD, "new": "six green boats on ice" });
    reader.expect(403, Method::PUT, "/account/password", Some(&body)).await;
    reader.expect(409, Method::POST, "/logout", None).await;
    // The owner of a tenant's token sees that it was used, and never the token again.
    let listed = ann.api.get("/account/tokens").await;
    assert!(listed["items"][0]["used_at"].is_i64(), "{listed}");
    assert!(!listed.to_string().contains("carillon_"), "{listed}");
    let stored: Vec<String> = world.database.query("SELECT hash FROM api_token", |row| row.try_get_by_index(0)).await;
    assert!(stored.iter().all(|hash| hash.len() == 64), "{stored:?}");
    world.assert_quiet(&[]);
}

async fn tokens_end(kind: Kind) {
    let world = World::new(kind).await;
    world.node("a", &[]).await;
    let admin = world.api();
    admin.make_app("near", "orders").await;
    let ann = admin.make_person("ann", Some("near")).await;
    admin.grant(&ann, "tenant admin", Some("near")).await;
    let fresh = || token(&ann, &["apps.read"], None);

    // Revoked by its owner, by an admin; not by another user.
    let (id, one) = fresh().await;
    one.get("/apps").await;
    let bob = admin.make_person("bob", Some("near")).await;
    bob.api.expect(404, Method::DELETE, &format!("/account/tokens/{id}"), None).await;
    one.get("/apps").await;
    ann.api.expect(204, Method::DELETE, &format!("/account/tokens/{id}"), None).await;
    one.expect(401, Method::GET, "/apps", None).await;
    let (id, two) = fresh().await;
    admin.expect(204, Method::DELETE, &format!("/tokens/{id}"), None).await;
    two.expect(401, Method::GET, "/apps", None).await;

    // Expired.
    let (id, three) = fresh().await;
    three.get("/apps").await;
    world.database.execute(&format!("UPDATE api_token SET expires_at = {} WHERE id = {id}", now_ms() - 1_000)).await;
    three.expect(401, Method::GET, "/apps", None).await;
    for wrong in [now_ms() - 1, now_ms() + 4_000 * 86_400_000, 0, i64::MIN, i64::MAX] {
        let body = json!({ "name": "x", "permissions": ["apps.read"], "expires_at": wrong });
        ann.api.refused(400, Method::POST, "/account/tokens", &body).await;
    }

    // Its owner's password was reset: the token is unusable until they have chosen a new one.
    let (_, four) = fresh().await;
    let reset = admin.expect(200, Method::POST, &format!("/users/{}/password", ann.id), None).await;
    let refused = four.expect(403, Method::GET, "/apps", None).await;
    assert_eq!(refused["code"], "password_change_required");
    let reset = reset["password"].as_str().unwrap();
    let (api, _) = admin.sign_in("ann", reset).await;
    let body = json!({ "current": reset, "new": "six green boats on ice" });
    api.expect(204, Method::PUT, "/account/password", Some(&body)).await;
    four.get("/apps").await;

    // Its owner is disabled, or deleted.
    admin.patch(&format!("/users/{}", ann.id), json!({ "disabled": true })).await;
    four.expect(401, Method::GET, "/apps", None).await;
    admin.patch(&format!("/users/{}", ann.id), json!({ "disabled": false })).await;
    four.get("/apps").await;
    admin.expect(204, Method::DELETE, &format!("/users/{}", ann.id), None).await;
    four.expect(401, Method::GET, "/apps", None).await;
    assert_eq!(world.database.number("SELECT COUNT(*) FROM api_token").await, 0);
    world.assert_quiet(&[]);
}

/// Secrets out of the environment are not taken for numbers.
async fn a_configured_token_is_text(kind: Kind) {
    let world = World::new(kind).await;
    for token in ["00000000001234567890123456789012345", "1e400000000000000000000000000000000"] {
        let node = world.node("a", &[("api.token", token)]).await;
        Api::with_token(&node.url, token).get("/session").await;
        assert_eq!(node.process.sigterm(30).await, Some(0), "{}", node.process.log_digest());
    }
}
