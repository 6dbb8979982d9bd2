//! Where requests come from when there are proxies in between.

use carillon_tests::people::PASSWORD;
use carillon_tests::{Kind, Node, World, http};
use reqwest::Method;
use serde_json::{Value, json};

scenario!(addresses_behind_a_trusted_proxy: sqlite);

async fn sign_in(node: &Node, name: &str, password: &str, told: &str) -> u16 {
    let request = http::shared().post(format!("{}/api/v1/login", node.url)).header("x-forwarded-for", told);
    request.json(&json!({ "name": name, "password": password })).send().await.unwrap().status().as_u16()
}

/// Addresses of this user's sessions.
async fn addresses(world: &World, name: &str) -> Vec<Value> {
    let (ann, _) = world.api().sign_in(name, PASSWORD).await;
    let sessions = ann.get("/account/sessions").await;
    let mut addresses: Vec<_> =
        sessions["items"].as_array().unwrap().iter().map(|session| session["address"].clone()).collect();
    addresses.sort_by_key(Value::to_string);
    addresses.dedup();
    addresses
}

async fn addresses_behind_a_trusted_proxy(kind: Kind) {
    let world = World::new(kind).await;
    let near = world.node("a", &[]).await;
    world.api().make_person("ann", None).await;
    // No proxy is trusted by default.
    assert_eq!(sign_in(&near, "ann", PASSWORD, "198.51.100.7").await, 200);
    assert_eq!(addresses(&world, "ann").await, ["127.0.0.1"]);

    let behind = world.node("b", &[("server.trusted_proxies", "127.0.0.0/8,10.0.0.0/8")]).await;
    // What the caller claims himself stands before what the proxies say.
    assert_eq!(sign_in(&behind, "ann", PASSWORD, "203.0.113.9, 198.51.100.7, 10.1.2.3").await, 200);
    assert_eq!(addresses(&world, "ann").await, ["127.0.0.1", "198.51.100.7"]);
    let audit = world.api().get("/audit?action=sign_in").await;
    assert!(audit["items"].as_array().unwrap().iter().any(|entry| entry["address"] == "198.51.100.7"), "{audit}");

    // Only the caller that guesses is slowed down, whatever it claims.
    let mut tries = 0;
    while sign_in(&behind, &format!("nobody{tries}"), "wrong", &format!("203.0.113.{tries}, 198.51.100.8")).await != 429
    {
        tries += 1;
        assert!(tries < 200, "one address may try as much as it likes");
    }
    assert_eq!(sign_in(&behind, "ann", PASSWORD, "198.51.100.9").await, 200);
    assert_eq!(world.api().send(Method::GET, "/session", None).await.0, 200);
}
