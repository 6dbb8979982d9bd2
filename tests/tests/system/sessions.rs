//! Signing in, and what becomes of sessions: fixation, forged requests, brute force, and the ends
//! that disabling, deleting and new passwords make.

use carillon_tests::people::{FIRST_PASSWORD, PASSWORD};
use carillon_tests::{Kind, World, http};
use reqwest::header::{CONTENT_TYPE, COOKIE, HeaderMap, RETRY_AFTER, SET_COOKIE};
use reqwest::{Method, Response, StatusCode};
use serde_json::{Value, json};
use std::collections::BTreeSet;

scenario!(a_session_is_always_a_new_one: sqlite mariadb postgres);
scenario!(forged_requests_change_nothing: sqlite);
scenario!(guessing_is_slowed_down_and_tells_nothing: sqlite mariadb postgres);
scenario!(sessions_end_with_what_they_stand_for: sqlite mariadb postgres);
scenario!(passwords_keep_to_the_rules: sqlite);

/// A login as a browser does it, with what it already has.
async fn sign_in(url: &str, name: &str, password: &str, cookie: Option<&str>) -> Response {
    let mut request =
        http::shared().post(format!("{url}/api/v1/login")).json(&json!({ "name": name, "password": password }));
    if let Some(cookie) = cookie {
        request = request.header(COOKIE, format!("carillon_session={cookie}"));
    }
    request.send().await.unwrap()
}

/// The whole `Set-Cookie`, and the token in it.
fn cookie_of(headers: &HeaderMap) -> (String, String) {
    let cookie = headers[SET_COOKIE].to_str().unwrap().to_owned();
    let token = cookie.split(';').next().unwrap().strip_prefix("carillon_session=").unwrap().to_owned();
    (cookie, token)
}

async fn get_with_cookie(url: &str, path: &str, token: &str) -> Response {
    let request = http::shared().get(format!("{url}/api/v1{path}"));
    request.header(COOKIE, format!("carillon_session={token}")).send().await.unwrap()
}

async fn a_session_is_always_a_new_one(kind: Kind) {
    let world = World::new(kind).await;
    let node = world.node("a", &[]).await;
    let admin = world.api();
    admin.make_person("ann", None).await;
    // What an attacker has put into the browser, well-formed or even the attacker's own session.
    let mallory = admin.make_person("mallory", None).await;
    let (_, his) = mallory.api.sign_in("mallory", PASSWORD).await;
    let planted = [format!("cs_{}", "ab".repeat(32)), his["token"].as_str().unwrap().to_owned()];
    let mut tokens = BTreeSet::new();
    for planted in &planted {
        let answer = sign_in(&node.url, "ann", PASSWORD, Some(planted)).await;
        assert_eq!(answer.status(), 200);
        let (cookie, token) = cookie_of(answer.headers());
        for part in ["HttpOnly", "SameSite=Lax", "Path=/"] {
            assert!(cookie.contains(part), "{cookie}");
        }
        assert!(token.len() >= 64 && token != *planted, "{token}");
        assert_eq!(get_with_cookie(&node.url, "/session", &token).await.status(), 200);
        tokens.insert(token);
    }
    assert_eq!(tokens.len(), 2, "each login has a session of its own");
    assert_eq!(get_with_cookie(&node.url, "/session", &planted[0]).await.status(), 401);
    let still: Value = get_with_cookie(&node.url, "/session", &planted[1]).await.json().await.unwrap();
    assert_eq!(still["name"], "mallory", "the planted session is still the attacker's");
    // The database holds nothing that opens the door.
    let sql = "SELECT id FROM session";
    let stored: Vec<String> = world.database.query(sql, |row| row.try_get_by_index(0)).await;
    for token in &tokens {
        assert!(stored.iter().all(|id| !token.contains(id.as_str()) && id.len() == 64), "{stored:?}");
        assert_eq!(get_with_cookie(&node.url, "/session", &stored[0]).await.status(), 401);
    }
}

async fn forged_requests_change_nothing(kind: Kind) {
    let world = World::new(kind).await;
    let node = world.node("a", &[]).await;
    let admin = world.api();
    let ann = admin.make_person("ann", None).await;
    admin.grant(&ann, "platform admin", None).await;
    let answer = sign_in(&node.url, "ann", PASSWORD, None).await;
    let (_, token) = cookie_of(answer.headers());
    let csrf = answer.json::<Value>().await.unwrap()["csrf"].as_str().unwrap().to_owned();
    let bob = answer_of(sign_in(&node.url, "ann", PASSWORD, None).await).await.1["csrf"].as_str().unwrap().to_owned();
    assert_eq!(get_with_cookie(&node.url, "/session", &token).await.json::<Value>().await.unwrap()["csrf"], csrf);

    let url = format!("{}/api/v1/tenants", node.url);
    let json_kind = ("content-type", "application/json");
    let body = |name: &str| json!({ "name": name }).to_string();
    let ask = |name: &'static str, headers: Vec<(&'static str, String)>| {
        let mut request =
            http::shared().post(&url).header(COOKIE, format!("carillon_session={token}")).body(body(name));
        for (name, value) in headers {
            request = request.header(name, value);
        }
        async move { request.send().await.unwrap().status() }
    };
    let is_json = || (json_kind.0, json_kind.1.to_owned());
    let right = || ("x-csrf-token", csrf.clone());
    let site = |site: &str| ("sec-fetch-site", site.to_owned());
    // Without the token, with a wrong one, with one of another session.
    assert_eq!(ask("forged", vec![is_json()]).await, 403);
    assert_eq!(ask("forged", vec![is_json(), ("x-csrf-token", String::new())]).await, 403);
    assert_eq!(ask("forged", vec![is_json(), ("x-csrf-token", "0".repeat(64))]).await, 403);
    assert_eq!(ask("forged", vec![is_json(), ("x-csrf-token", bob)]).await, 403);
    // From a page of another site, whatever it knows.
    assert_eq!(ask("forged", vec![is_json(), right(), site("cross-site")]).await, 403);
    assert_eq!(ask("forged", vec![is_json(), right(), site("same-site")]).await, 403);
    // As a form, as text, as nothing in particular: what a page can send without asking first.
    for kind in ["application/x-www-form-urlencoded", "text/plain", "multipart/form-data; boundary=x"] {
        assert_eq!(ask("forged", vec![("content-type", kind.to_owned()), right()]).await, 415, "{kind}");
    }
    assert_eq!(ask("forged", vec![right()]).await, 415);
    assert_eq!(admin.get("/tenants").await["items"], json!([]), "a forged request was done");
    assert_eq!(ask("meant", vec![is_json(), right()]).await, 201);
    assert_eq!(ask("meant-2", vec![is_json(), right(), site("same-origin")]).await, 201);
    // Looking needs no token, and the token as a bearer none: no browser sends that by itself.
    assert_eq!(get_with_cookie(&node.url, "/tenants", &token).await.status(), 200);
    admin.carrying(&token).expect(201, Method::POST, "/tenants", Some(&json!({ "name": "meant-3" }))).await;
    // An API token as a cookie is none.
    assert_eq!(get_with_cookie(&node.url, "/tenants", carillon_tests::node::TOKEN).await.status(), 401);
    signing_in_from_another_site(&node.url).await;
}

/// A page of another site does not sign its visitor in as another user.
async fn signing_in_from_another_site(url: &str) {
    let credentials = json!({ "name": "ann", "password": PASSWORD }).to_string();
    let login = || http::shared().post(format!("{url}/api/v1/login")).body(credentials.clone());
    let foreign = login().header(CONTENT_TYPE, "application/json").header("sec-fetch-site", "cross-site");
    for (request, status) in [(foreign, 403), (login().header(CONTENT_TYPE, "text/plain"), 415), (login(), 415)] {
        let answer = request.send().await.unwrap();
        assert_eq!(answer.status(), status);
        assert!(!answer.headers().contains_key(SET_COOKIE));
    }
}

async fn answer_of(response: Response) -> (StatusCode, Value) {
    (response.status(), response.json().await.unwrap_or_default())
}

async fn guessing_is_slowed_down_and_tells_nothing(kind: Kind) {
    let world = World::new(kind).await;
    let node = world.node("a", &[]).await;
    let admin = world.api();
    for name in ["ann", "disabled"] {
        let person = admin.make_person(name, None).await;
        if name == "disabled" {
            admin.patch(&format!("/users/{}", person.id), json!({ "disabled": true })).await;
        }
    }
    // Who there is, who there is not, who is disabled with the right password, and what is no name
    // at all look alike.
    let mut answers = BTreeSet::new();
    for (name, password) in [
        ("ann", "wrong password here"),
        ("nobody", "wrong password here"),
        ("disabled", PASSWORD),
        ("ann ", PASSWORD),
        ("ANN", PASSWORD),
        ("ann\0", PASSWORD),
        ("' OR 1=1 --", PASSWORD),
    ] {
        let (status, answer) = answer_of(sign_in(&node.url, name, password, None).await).await;
        answers.insert((status.as_u16(), answer.to_string()));
    }
    assert_eq!(answers.len(), 1, "{answers:?}");
    assert_eq!(answers.first().unwrap().0, 401);

    // Guessing at one account soon blocks that account, and no other.
    let mut tries = 0;
    let refused = loop {
        let answer = sign_in(&node.url, "ann", "wrong password here", None).await;
        tries += 1;
        match answer.status().as_u16() {
            401 => assert!(tries < 20, "the guessing is not stopped"),
            status => break assert_slowed_down(status, answer).await,
        }
    };
    assert!(refused > 0 && tries > 3, "after {tries} tries");
    assert_slowed_down_too(&node.url, "ann", PASSWORD).await;
    assert_eq!(sign_in(&node.url, "disabled", PASSWORD, None).await.status(), 401);
    // Blanks at the end make no other account.
    assert_eq!(sign_in(&node.url, "ann ", PASSWORD, None).await.status(), 401);
    // Many accounts are tried from one address: the address waits, also with the right password.
    for number in 0..40 {
        let answer = sign_in(&node.url, &format!("guess-{number}"), "wrong password here", None).await;
        if answer.status() == 429 {
            return assert_slowed_down_too(&node.url, "disabled", PASSWORD).await;
        }
        assert_eq!(answer.status(), 401);
    }
    panic!("one address may try as much as it likes");
}

async fn assert_slowed_down(status: u16, answer: Response) -> u64 {
    assert_eq!(status, 429);
    let wait = answer.headers()[RETRY_AFTER].to_str().unwrap().parse().unwrap();
    let problem: Value = answer.json().await.unwrap();
    assert_eq!(problem["status"], 429, "{problem}");
    wait
}

async fn assert_slowed_down_too(url: &str, name: &str, password: &str) {
    let answer = sign_in(url, name, password, None).await;
    let status = answer.status().as_u16();
    let wait = assert_slowed_down(status, answer).await;
    assert!((1..=60).contains(&wait), "{wait} s");
}

async fn sessions_end_with_what_they_stand_for(kind: Kind) {
    let world = World::new(kind).await;
    let node = world.node("a", &[]).await;
    let admin = world.api();

    // Disabled, and enabled again: the old session stays ended.
    let ann = admin.make_person("ann", None).await;
    admin.patch(&format!("/users/{}", ann.id), json!({ "disabled": true })).await;
    ann.api.expect(401, Method::GET, "/session", None).await;
    assert_eq!(sign_in(&node.url, "ann", PASSWORD, None).await.status(), 401);
    admin.patch(&format!("/users/{}", ann.id), json!({ "disabled": false })).await;
    ann.api.expect(401, Method::GET, "/session", None).await;
    let (ann_again, _) = admin.sign_in("ann", PASSWORD).await;

    // Deleted.
    admin.expect(204, Method::DELETE, &format!("/users/{}", ann.id), None).await;
    ann_again.expect(401, Method::GET, "/session", None).await;
    let left = format!("SELECT COUNT(*) FROM session WHERE user_id = {}", ann.id);
    assert_eq!(world.database.number(&left).await, 0);

    // A new password ends every session but the one that sets it.
    let bob = admin.make_person("bob", None).await;
    let (other, _) = admin.sign_in("bob", PASSWORD).await;
    let body = json!({ "current": PASSWORD, "new": "six green boats on ice" });
    bob.api.expect(204, Method::PUT, "/account/password", Some(&body)).await;
    other.expect(401, Method::GET, "/session", None).await;
    bob.api.get("/session").await;
    assert_eq!(sign_in(&node.url, "bob", PASSWORD, None).await.status(), 401);

    // A reset ends all of them, and shows the new one once.
    let reset = admin.expect(200, Method::POST, &format!("/users/{}/password", bob.id), None).await;
    bob.api.expect(401, Method::GET, "/session", None).await;
    let (bob, answer) = admin.sign_in("bob", reset["password"].as_str().unwrap()).await;
    assert_eq!(answer["must_change_password"], true);
    assert!(!admin.get("/users").await.to_string().contains(reset["password"].as_str().unwrap()));

    // One's own sessions are ended one by one, or by leaving; an admin ends all.
    bob.expect(403, Method::GET, "/account/sessions", None).await;
    let body = json!({ "current": reset["password"], "new": PASSWORD });
    bob.expect(204, Method::PUT, "/account/password", Some(&body)).await;
    let (second, _) = bob.sign_in("bob", PASSWORD).await;
    let sessions = bob.get("/account/sessions").await;
    let other = sessions["items"].as_array().unwrap().iter().find(|session| session["current"] == false).unwrap();
    let path = format!("/account/sessions/{}", other["id"].as_str().unwrap());
    let mallory = admin.make_person("mallory", None).await;
    mallory.api.expect(404, Method::DELETE, &path, None).await;
    second.get("/session").await;
    bob.expect(204, Method::DELETE, &path, None).await;
    second.expect(401, Method::GET, "/session", None).await;
    bob.expect(204, Method::POST, "/logout", None).await;
    bob.expect(401, Method::GET, "/session", None).await;
    admin.expect(204, Method::DELETE, &format!("/users/{}/sessions", mallory.id), None).await;
    mallory.api.expect(401, Method::GET, "/session", None).await;

    // Unused for too long, or too old: the database's clock decides, on every node.
    let (cid, _) = admin.make_person("cid", None).await.api.sign_in("cid", PASSWORD).await;
    cid.get("/session").await;
    world.database.execute("UPDATE session SET expires_at = 1").await;
    cid.expect(401, Method::GET, "/session", None).await;
    world.assert_quiet(&[]);
}

async fn passwords_keep_to_the_rules(kind: Kind) {
    let world = World::new(kind).await;
    world.node("a", &[]).await;
    let admin = world.api();
    let ann = admin.make_new_person("ann", None).await;
    for (current, new, field) in [
        (FIRST_PASSWORD, "short", "new"),
        (FIRST_PASSWORD, "password1234", "new"),
        (FIRST_PASSWORD, "it is ann who comes", "new"),
        (FIRST_PASSWORD, FIRST_PASSWORD, "new"),
        ("a wrong one, but long", PASSWORD, "current"),
    ] {
        let body = json!({ "current": current, "new": new });
        let refused = ann.api.refused(400, Method::PUT, "/account/password", &body).await;
        assert!(refused.iter().any(|(named, _)| named == field), "{new}: {refused:?}");
        let told = format!("{refused:?}");
        assert!(!told.contains(FIRST_PASSWORD) && !told.contains("long"), "{told}");
    }
    // A right one, but without a session: a found token cannot take over the account.
    let body = json!({ "current": FIRST_PASSWORD, "new": PASSWORD });
    admin.refused(403, Method::PUT, "/account/password", &body).await;
    ann.api.expect(204, Method::PUT, "/account/password", Some(&body)).await;
}
