//! There is always a user left who can let others in.

use carillon_tests::people::Person;
use carillon_tests::{Api, Kind, World};
use reqwest::Method;
use serde_json::json;
use std::sync::Arc;
use tokio::sync::Barrier;

scenario!(the_last_platform_admin_stays: sqlite mariadb postgres);
scenario!(two_admins_remove_each_other: sqlite mariadb postgres);

/// Rounds of the race.
const ROUNDS: usize = 12;

const ADMINS: &str = "SELECT COUNT(*) FROM user_account u JOIN role_grant g ON g.user_id = u.id WHERE g.role_id = 1 AND \
     g.tenant_id = 0 AND u.disabled = 0";

/// The account that the first start made, without its grant: no one uses its password here.
async fn alone(world: &World, name: &str) -> (Person, i64) {
    let admin = world.api();
    let person = admin.make_person(name, None).await;
    let grant = admin.grant(&person, "platform admin", None).await;
    world.database.execute("UPDATE user_account SET disabled = 1 WHERE name = 'admin'").await;
    (person, grant)
}

async fn the_last_platform_admin_stays(kind: Kind) {
    let world = World::new(kind).await;
    world.node("a", &[]).await;
    let (ann, grant) = alone(&world, "ann").await;
    assert_eq!(world.database.number(ADMINS).await, 1);
    let path = format!("/users/{}", ann.id);
    // Neither by the configured token, which may everything, nor by herself.
    let (api, disable) = (world.api(), json!({ "disabled": true }));
    let answer = api.expect(409, Method::PATCH, &path, Some(&disable)).await;
    assert!(answer["detail"].as_str().unwrap().contains("platform admin"), "{answer}");
    api.expect(409, Method::DELETE, &path, None).await;
    for api in [&ann.api, &api] {
        api.expect(409, Method::DELETE, &format!("{path}/grants/{grant}"), None).await;
    }
    ann.api.get("/users").await;
    // A platform admin of a tenant, and one who is disabled, are none.
    let admin = world.api();
    admin.make_app("near", "orders").await;
    let bob = admin.make_person("bob", None).await;
    admin.grant(&bob, "platform admin", Some("near")).await;
    admin.expect(409, Method::DELETE, &path, None).await;
    let second = admin.grant(&bob, "platform admin", None).await;
    admin.patch(&format!("/users/{}", bob.id), json!({ "disabled": true })).await;
    admin.expect(409, Method::DELETE, &format!("{path}/grants/{grant}"), None).await;
    // With another one who can sign in, she may go.
    admin.patch(&format!("/users/{}", bob.id), json!({ "disabled": false })).await;
    admin.expect(204, Method::DELETE, &format!("{path}/grants/{grant}"), None).await;
    admin.expect(409, Method::DELETE, &format!("/users/{}/grants/{second}", bob.id), None).await;
    // Refused changes are in no audit.
    let entries = admin.get("/audit?action=delete_user").await;
    assert_eq!(entries["items"], json!([]));
    world.assert_quiet(&[]);
}

/// How they remove each other.
#[derive(Clone, Copy)]
enum How {
    Disable,
    Delete,
    Take,
}

async fn remove(api: Api, how: How, whom: i64, grant: i64, begin: Arc<Barrier>) -> u16 {
    let path = format!("/users/{whom}");
    // The line is open before it counts.
    api.get("/session").await;
    begin.wait().await;
    let (status, answer) = match how {
        How::Disable => api.send(Method::PATCH, &path, Some(&json!({ "disabled": true }))).await,
        How::Delete => api.send(Method::DELETE, &path, None).await,
        How::Take => api.send(Method::DELETE, &format!("{path}/grants/{grant}"), None).await,
    };
    assert!([200, 204, 409, 401, 403].contains(&status), "{status} {answer}");
    status
}

async fn two_admins_remove_each_other(kind: Kind) {
    let world = World::new(kind).await;
    world.nodes(&[]).await;
    let urls = world.node_urls();
    let (mut ann, mut grant_of_ann) = alone(&world, "admin-0").await;
    let admin = world.api();
    let mut both_tried = 0;
    for round in 1..=ROUNDS {
        // People are made past the login's throttle: one address signs in only so often.
        let bob = admin.make_person(&format!("admin-{round}"), None).await;
        let grant_of_bob = admin.grant(&bob, "platform admin", None).await;
        let how = [How::Disable, How::Delete, How::Take][round % 3];
        let here = Api::with_token(&urls[0], "").carrying(ann.api.token());
        let there = Api::with_token(&urls[urls.len() - 1], "").carrying(bob.api.token());
        let begin = Arc::new(Barrier::new(2));
        let (by_ann, by_bob) = tokio::join!(
            remove(here, how, bob.id, grant_of_bob, Arc::clone(&begin)),
            remove(there, how, ann.id, grant_of_ann, begin)
        );
        assert_eq!(world.database.number(ADMINS).await, 1, "round {round}: {by_ann} and {by_bob}");
        // Callers that come too late have no access any more: 401, 403. A 409 means let in, and then lost.
        both_tried += usize::from(by_ann == 409 || by_bob == 409);
        if by_bob < 300 {
            (ann, grant_of_ann) = (bob, grant_of_bob);
        }
    }
    assert!(both_tried > 0, "in none of {ROUNDS} rounds both got as far as the lock");
    world.assert_quiet(&[]);
}
