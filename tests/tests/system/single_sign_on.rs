//! Single sign-on: who is let in, what they may do as their groups change, and what is not trusted.

use crate::console;
use carillon_tests::identity_provider::{IdentityProvider, Lie, Somebody};
use carillon_tests::{Api, Kind, Node, World, port};
use carillon_tests::{folder, http};
use reqwest::header::{COOKIE, LOCATION, SET_COOKIE};
use reqwest::{Client, Method, Response, redirect};
use serde_json::{Value, json};
use std::collections::BTreeMap;

scenario!(groups_decide_the_permissions: sqlite mariadb postgres);
scenario!(untrusted_answers_sign_no_one_in: sqlite);
scenario!(an_answer_counts_in_the_browser_that_asked: sqlite);
scenario!(accounts_are_not_taken_over: sqlite);
scenario!(pages_are_led_back_to_sign_in: sqlite);
scenario!(several_nodes_and_first_logins_at_once: sqlite mariadb postgres);

const GRANTS: &str = r#"
[[auth.oidc.grants]]
group = "admins"
role = "platform admin"

[[auth.oidc.grants]]
group = "retail"
role = "operator"
tenant = "retail"

[[auth.oidc.grants]]
group = "orders"
role = "viewer"
tenant = "retail"
apps = ["orders"]

[[auth.oidc.grants]]
group = "auditors"
role = "auditor"
tenant = "retail"

[[auth.oidc.grants]]
group = "ghosts"
role = "operator"
tenant = "no such tenant"
"#;

/// A browser: keeps cookies, and follows nothing by itself.
pub struct Browser {
    client: Client,
    pub cookies: BTreeMap<String, String>,
    /// A header that it sends beside its cookies.
    says: (&'static str, &'static str),
}

impl Browser {
    pub fn new() -> Self {
        let client = http::client().redirect(redirect::Policy::none()).build().unwrap();
        Self { client, cookies: BTreeMap::new(), says: ("accept", "*/*") }
    }

    /// One whose person sees what it gets.
    pub fn saying(name: &'static str, value: &'static str) -> Self {
        Self { says: (name, value), ..Self::new() }
    }

    pub async fn get(&mut self, url: &str) -> Response {
        let cookies: Vec<String> = self.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let answer = self
            .client
            .get(url)
            .header(self.says.0, self.says.1)
            .header(COOKIE, cookies.join("; "))
            .send()
            .await
            .unwrap();
        for cookie in answer.headers().get_all(SET_COOKIE) {
            let cookie = cookie.to_str().unwrap();
            assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Lax"), "{cookie}");
            let (name, value) = cookie.split(';').next().unwrap().split_once('=').unwrap();
            if value.is_empty() {
                self.cookies.remove(name);
            } else {
                self.cookies.insert(name.to_owned(), value.to_owned());
            }
        }
        answer
    }

    /// Begins to sign in; the provider's address.
    async fn begin(&mut self, node: &Node) -> String {
        let answer = self
            .get(&format!(
                "{}/api/v1/login/oidc?return_to=%2Ftasks%3Fname%3Da%2520b%26day%3D%25E6%259C%2588%2B1",
                node.url
            ))
            .await;
        assert_eq!(answer.status(), 303);
        location(&answer)
    }

    /// Goes all the way.
    async fn sign_on(&mut self, node: &Node, provider: &IdentityProvider, who: &Somebody) -> Response {
        let there = self.begin(node).await;
        self.get(&provider.authorise(&there, who)).await
    }

    /// A client with this browser's session.
    pub fn api(&self, api: &Api) -> Api {
        api.carrying(&self.cookies["carillon_session"])
    }
}

pub fn location(answer: &Response) -> String {
    answer.headers()[LOCATION].to_str().unwrap().to_owned()
}

fn somebody(username: &str, groups: &[&str]) -> Somebody {
    let groups = groups.iter().map(|group| (*group).to_owned()).collect();
    Somebody { subject: format!("id of {username}"), username: username.to_owned(), groups }
}

/// A node with this provider.
async fn node_with(world: &World, name: &str, provider: &IdentityProvider) -> Node {
    let port = port::free();
    let config = provider.configuration(&format!("http://127.0.0.1:{port}"), GRANTS);
    let node = world.unready_node(name, port, &[("config", config.to_str().unwrap())]);
    node.ready().await;
    node
}

/// Refused, with a problem that says `words`; no session.
pub async fn refused(browser: &Browser, answer: Response, status: u16, words: &str) {
    assert_eq!(answer.status(), status);
    let problem: Value = answer.json().await.unwrap();
    assert!(problem["detail"].as_str().unwrap().contains(words), "{problem}");
    assert!(!browser.cookies.contains_key("carillon_session"), "{:?}", browser.cookies);
}

/// A user's grants: (role, from a group).
async fn grants_of(api: &Api, name: &str) -> Vec<(String, bool)> {
    let users = api.get(&format!("/users?name={name}")).await;
    let grants = users["items"][0]["grants"].as_array().unwrap();
    let mut grants: Vec<_> = grants
        .iter()
        .map(|grant| (grant["role"].as_str().unwrap().to_owned(), grant["from_group"].as_bool().unwrap()))
        .collect();
    grants.sort();
    grants
}

fn is(expected: &[(&str, bool)]) -> Vec<(String, bool)> {
    expected.iter().map(|(role, from_group)| ((*role).to_owned(), *from_group)).collect()
}

async fn groups_decide_the_permissions(kind: Kind) {
    let world = World::new(kind).await;
    let provider = IdentityProvider::start().await;
    let node = node_with(&world, "a", &provider).await;
    let admin = world.api();
    admin.make_app("retail", "orders").await;
    admin.make_app("retail", "stock").await;
    admin.make_role("auditor", Some("retail"), &["audit.read"]).await;
    let ways = admin.get("/login").await;
    assert_eq!(ways, json!({ "password": true, "single_sign_on": "The company", "clusters": [] }));

    // The first login makes the account, which belongs to the only tenant where it may do something.
    let mut ann = Browser::new();
    let answer = ann.sign_on(&node, &provider, &somebody("ann", &["retail", "unknown"])).await;
    assert_eq!((answer.status().as_u16(), location(&answer).as_str()), (303, "/tasks?name=a%20b&day=%E6%9C%88+1"));
    assert_eq!(ann.cookies.keys().collect::<Vec<_>>(), ["carillon_session"], "the other cookie has done its work");
    let me = ann.api(&admin).get("/session").await;
    assert_eq!((&me["name"], &me["display_name"]), (&json!("ann"), &json!("ann of the company")));
    assert_eq!(me["access"].as_array().unwrap().len(), 1);
    assert_eq!(me["access"][0]["tenant"], "retail");
    let user = admin.get("/users?name=ann").await["items"][0].clone();
    let subject = format!("{} id of ann", provider.issuer);
    assert_eq!((&user["has_password"], &user["subject"]), (&json!(false), &json!(subject)));
    let tenants = admin.get("/tenants").await;
    assert_eq!(user["tenant_id"], tenants["items"][0]["id"], "{tenants}");
    assert_eq!(grants_of(&admin, "ann").await, is(&[("operator", true)]));

    // Other groups, other grants, at the next login and at once in every session; what an admin
    // granted stays. A group of a tenant that is not there grants nothing.
    let body = json!({ "role": admin.role("viewer").await, "tenant": "retail" });
    let path = format!("/users/{}/grants", user["id"].as_str().unwrap());
    admin.expect(201, Method::POST, &path, Some(&body)).await;
    let first = ann.api(&admin);
    let mut again = Browser::new();
    let groups = ["auditors", "orders", "ghosts"];
    assert_eq!(again.sign_on(&node, &provider, &somebody("ann", &groups)).await.status(), 303);
    assert_eq!(grants_of(&admin, "ann").await, is(&[("auditor", true), ("viewer", false)]));
    assert_eq!(first.send(Method::GET, "/audit?tenant=retail", None).await.0, 200);
    assert_eq!(first.send(Method::POST, "/tenants/retail/maintenance", Some(&json!({}))).await.0, 403);

    // Without groups: what the admin granted.
    assert_eq!(Browser::new().sign_on(&node, &provider, &somebody("ann", &[])).await.status(), 303);
    assert_eq!(grants_of(&admin, "ann").await, is(&[("viewer", false)]));

    // Each change is in the audit, by the provider, and each login by the user.
    let entries = admin.get("/audit?limit=500").await;
    let of = |kind: &str| {
        let of_kind = entries["items"].as_array().unwrap().iter().filter(|entry| entry["actor_kind"] == kind);
        let about_ann = of_kind.filter(|entry| entry["target"] == "ann");
        let mut actions: Vec<_> = about_ann.map(|entry| entry["action"].as_str().unwrap().to_owned()).collect();
        actions.sort();
        actions
    };
    assert_eq!(of("oidc"), ["create_grant", "create_grant", "create_user", "delete_grant", "delete_grant"]);
    assert_eq!(of("user"), ["finish_single_sign_on"; 3]);

    // Apps narrow; two roles of one person; the last platform admin of a group is not the last one.
    let mut bob = Browser::new();
    assert_eq!(bob.sign_on(&node, &provider, &somebody("bob", &["orders", "admins"])).await.status(), 303);
    assert_eq!(grants_of(&admin, "bob").await, is(&[("platform admin", true), ("viewer", true)]));
    assert_eq!(admin.get("/users?name=bob").await["items"][0]["tenant_id"], Value::Null);
    assert_eq!(bob.sign_on(&node, &provider, &somebody("bob", &["orders"])).await.status(), 303);
    let apps = bob.api(&admin).get("/apps").await;
    assert_eq!(apps["items"].as_array().unwrap().len(), 1, "{apps}");
    assert_eq!(apps["items"][0]["name"], "orders");

    // The provider's keys change.
    provider.change_key();
    assert_eq!(bob.sign_on(&node, &provider, &somebody("bob", &["orders"])).await.status(), 303);
    // What names no such role or tenant is the only thing that the log complains of.
    world.assert_quiet(&["auth.oidc.grants names"]);
}

async fn untrusted_answers_sign_no_one_in(kind: Kind) {
    let world = World::new(kind).await;
    let provider = IdentityProvider::start().await;
    let node = node_with(&world, "a", &provider).await;
    let ann = somebody("ann", &["admins"]);
    for lie in [
        Lie::Nonce,
        Lie::Audience,
        Lie::Issuer,
        Lie::Expired,
        Lie::Key,
        Lie::Unsigned,
        Lie::Symmetric,
        Lie::AccessToken,
        Lie::NoToken,
        Lie::Flood,
    ] {
        provider.lie(lie);
        let mut browser = Browser::new();
        let answer = browser.sign_on(&node, &provider, &ann).await;
        assert_eq!(answer.status(), 503, "{lie:?}");
        refused(&browser, answer, 503, "the node's log says why").await;
    }
    provider.lie(Lie::None);
    // In no group that is granted anything, or named as no account can be.
    for (who, words) in [
        (somebody("ann", &["strangers"]), "none of your groups"),
        (somebody("ann", &[]), "none of your groups"),
        (somebody("ann", &["ghosts"]), "none of your groups"),
        (somebody("an n", &["admins"]), "cannot be an account's name"),
        (somebody("", &["admins"]), "cannot be an account's name"),
    ] {
        let mut browser = Browser::new();
        let answer = browser.sign_on(&node, &provider, &who).await;
        refused(&browser, answer, 403, words).await;
    }
    let users = world.api().get("/users").await;
    assert_eq!(users["items"].as_array().unwrap().len(), 1, "only admin: {users}");

    // The provider is away: no one gets in, and no one who is in is signed out.
    let mut inside = Browser::new();
    assert_eq!(inside.sign_on(&node, &provider, &ann).await.status(), 303);
    drop(provider);
    let mut browser = Browser::new();
    let answer = browser.get(&format!("{}/api/v1/login/oidc", node.url)).await;
    refused(&browser, answer, 503, "the node's log says why").await;
    inside.api(&world.api()).get("/session").await;
    world.assert_quiet(&["single sign-on failed", "auth.oidc.grants names"]);
    let log = node.process.log();
    assert!(!log.contains("usual=traps") && !log.contains("an access token"), "a secret is in the log");
}

async fn an_answer_counts_in_the_browser_that_asked(kind: Kind) {
    let world = World::new(kind).await;
    let provider = IdentityProvider::start().await;
    let node = node_with(&world, "a", &provider).await;
    let mallory = somebody("mallory", &["admins"]);
    // Login CSRF: mallory's answer in ann's browser, which has asked nothing, or something else.
    let mut his = Browser::new();
    let there = his.begin(&node).await;
    let back = provider.authorise(&there, &mallory);
    let mut hers = Browser::new();
    let answer = hers.get(&back).await;
    refused(&hers, answer, 403, "begin again").await;
    hers.begin(&node).await;
    let answer = hers.get(&back).await;
    refused(&hers, answer, 403, "begin again").await;
    // In the right browser it counts, once.
    assert_eq!(his.get(&back).await.status(), 303);
    his.cookies.clear();
    let answer = his.get(&back).await;
    refused(&his, answer, 403, "begin again").await;

    // Two questions, each with the code of the other: the verifier belongs to one of them.
    let (mut one, mut two) = (Browser::new(), Browser::new());
    let (first, second) = (one.begin(&node).await, two.begin(&node).await);
    let (first, second) = (provider.authorise(&first, &mallory), provider.authorise(&second, &mallory));
    let code = |url: &str| url.split("code=").nth(1).unwrap().split('&').next().unwrap().to_owned();
    let swapped = first.replace(&code(&first), &code(&second));
    let answer = one.get(&swapped).await;
    refused(&one, answer, 503, "the node's log says why").await;

    // What the provider refuses, another provider's word, and half an answer.
    for (query, status, words) in [
        ("error=access_denied&error_description=not%20today", 403, "access_denied not today"),
        ("code=x&iss=https%3A%2F%2Fevil.example", 403, "another provider"),
        ("iss=", 403, "another provider"),
        ("nothing=1", 400, "code"),
    ] {
        let mut browser = Browser::new();
        let there = browser.begin(&node).await;
        let state = there.split("state=").nth(1).unwrap().split('&').next().unwrap();
        let answer = browser.get(&format!("{}/api/v1/login/oidc/callback?{query}&state={state}", node.url)).await;
        refused(&browser, answer, status, words).await;
    }
    // The way back leads nowhere else.
    for elsewhere in ["//evil.example", "https://evil.example", "/%5Cevil.example", "evil"] {
        let answer = Browser::new().get(&format!("{}/api/v1/login/oidc?return_to={elsewhere}", node.url)).await;
        assert_eq!(answer.status(), 400, "{elsewhere}");
    }
    world.assert_quiet(&["single sign-on failed"]);

    // Where it is not set up.
    let plain = world.node("b", &[]).await;
    for path in ["/login/oidc", "/login/oidc/callback?code=x&state=y"] {
        assert_eq!(Browser::new().get(&format!("{}/api/v1{path}", plain.url)).await.status(), 404);
    }
}

async fn accounts_are_not_taken_over(kind: Kind) {
    let world = World::new(kind).await;
    let provider = IdentityProvider::start().await;
    let node = node_with(&world, "a", &provider).await;
    let admin = world.api();
    // `admin` signs in with a password; a user of that name at the provider is someone else.
    let mut browser = Browser::new();
    let answer = browser.sign_on(&node, &provider, &somebody("admin", &["admins"])).await;
    refused(&browser, answer, 403, "another account `admin`").await;

    let mut ann = Browser::new();
    assert_eq!(ann.sign_on(&node, &provider, &somebody("ann", &["admins"])).await.status(), 303);
    let id = admin.get("/users?name=ann").await["items"][0]["id"].as_str().unwrap().to_owned();
    // Another subject of the same name is another person.
    let other = Somebody { subject: "id of another".to_owned(), ..somebody("ann", &["admins"]) };
    let mut browser = Browser::new();
    let answer = browser.sign_on(&node, &provider, &other).await;
    refused(&browser, answer, 403, "another account `ann`").await;
    // The same subject under another name is the same person.
    let renamed = Somebody { username: "anna".to_owned(), ..somebody("ann", &["admins"]) };
    let mut anna = Browser::new();
    assert_eq!(anna.sign_on(&node, &provider, &renamed).await.status(), 303);
    assert_eq!(anna.api(&admin).get("/session").await["name"], "ann");

    // There is no password, and none is made.
    for password in ["", "five quiet bells at noon"] {
        let body = json!({ "name": "ann", "password": password });
        assert_eq!(admin.send(Method::POST, "/login", Some(&body)).await.0, 401);
    }
    admin.expect(409, Method::POST, &format!("/users/{id}/password"), None).await;

    // A user with a password is needed: the provider may be away.
    let admins = admin.get("/users?name=admin").await["items"][0]["id"].as_str().unwrap().to_owned();
    let answer = admin.expect(409, Method::DELETE, &format!("/users/{admins}"), None).await;
    assert!(answer["detail"].as_str().unwrap().contains("with a password"), "{answer}");

    // Disabled, the account is closed, whatever the provider says.
    admin.expect(200, Method::PATCH, &format!("/users/{id}"), Some(&json!({ "disabled": true }))).await;
    assert_eq!(ann.api(&admin).send(Method::GET, "/session", None).await.0, 401);
    let mut browser = Browser::new();
    let answer = browser.sign_on(&node, &provider, &somebody("ann", &["admins"])).await;
    refused(&browser, answer, 403, "disabled").await;
    world.assert_quiet(&[]);
}

/// A person sees a page that says what to do, not a problem document; what is behind it stays in the log.
async fn pages_are_led_back_to_sign_in(kind: Kind) {
    let world = World::new(kind).await;
    let provider = IdentityProvider::start().await;
    let node = node_with(&world, "a", &provider).await;
    if !console::is_there(&node).await {
        // No page there would say anything.
        let mut browser = Browser::saying("accept", "text/html");
        let answer = browser.get(&format!("{}/api/v1/login/oidc/callback?code=x&state=y", node.url)).await;
        return refused(&browser, answer, 403, "begin again").await;
    }
    let page = || Browser::saying("accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8");
    let led = |browser: &Browser, answer: &Response, word: &str| {
        assert_eq!((answer.status().as_u16(), location(answer)), (303, format!("/sign-in?error={word}")));
        assert!(!browser.cookies.contains_key("carillon_session"), "{:?}", browser.cookies);
    };
    let callback = format!("{}/api/v1/login/oidc/callback", node.url);

    for mut browser in [page(), Browser::saying("sec-fetch-mode", "navigate")] {
        let answer = browser.get(&format!("{callback}?code=x&state=y")).await;
        led(&browser, &answer, "expired");
    }
    let mut browser = page();
    let there = browser.begin(&node).await;
    let answer = browser.get(&format!("{callback}?code=x&state=another")).await;
    led(&browser, &answer, "state");
    let state = there.split("state=").nth(1).unwrap().split('&').next().unwrap();
    for (query, word) in [
        ("error=access_denied&error_description=not%20today", "refused"),
        ("code=x&iss=https%3A%2F%2Fevil.example", "provider"),
        ("nothing=1", "provider"),
        ("code=x&code=y", "provider"),
    ] {
        let answer = browser.get(&format!("{callback}?{query}&state={state}")).await;
        led(&browser, &answer, word);
    }
    let mut browser = page();
    let answer = browser.sign_on(&node, &provider, &somebody("ann", &["strangers"])).await;
    led(&browser, &answer, "not_allowed");
    provider.lie(Lie::Nonce);
    let mut browser = page();
    let answer = browser.sign_on(&node, &provider, &somebody("ann", &["admins"])).await;
    led(&browser, &answer, "provider");
    provider.lie(Lie::None);
    let log = node.process.log();
    for detail in ["not today", "another provider", "none of your groups", "begin again"] {
        assert!(log.contains(detail), "the log says nothing of: {detail}");
    }

    // Users who are let in go where they wanted to.
    let mut browser = page();
    let answer = browser.sign_on(&node, &provider, &somebody("ann", &["admins"])).await;
    assert_eq!((answer.status().as_u16(), location(&answer).as_str()), (303, "/tasks?name=a%20b&day=%E6%9C%88+1"));

    // The provider is away at the first step; too many tries.
    drop(provider);
    let mut browser = page();
    let answer = browser.get(&format!("{}/api/v1/login/oidc", node.url)).await;
    led(&browser, &answer, "provider");
    let mut tries = 0;
    while location(&browser.get(&format!("{callback}?code=x&state=y")).await) != "/sign-in?error=too_many" {
        tries += 1;
        assert!(tries < 500, "one address may try as much as it likes");
    }
    world.assert_quiet(&["single sign-on failed", "auth.oidc.grants names"]);
}

async fn several_nodes_and_first_logins_at_once(kind: Kind) {
    let world = World::new(kind).await;
    let provider = IdentityProvider::start().await;
    // Both are reached at one address, as behind a balancer: only the first is told to the provider.
    let one = node_with(&world, "a", &provider).await;
    let config = folder::fresh("oidc-b").join("carillon.toml");
    std::fs::copy(provider.configuration(&one.url, GRANTS), &config).unwrap();
    let two = world.unready_node("b", port::free(), &[("config", config.to_str().unwrap())]);
    two.ready().await;
    // A login that one node begins, the other finishes.
    let mut browser = Browser::new();
    let there = browser.begin(&one).await;
    let back = provider.authorise(&there, &somebody("ann", &["admins"])).replace(&one.url, &two.url);
    assert_eq!(browser.get(&back).await.status(), 303);

    let bob = somebody("bob", &["admins"]);
    let mut logins = Vec::new();
    for _ in 0..8 {
        let mut browser = Browser::new();
        let there = browser.begin(&one).await;
        let back = provider.authorise(&there, &bob);
        logins.push(tokio::spawn(async move { browser.get(&back).await.status().as_u16() }));
    }
    for login in logins {
        assert_eq!(login.await.unwrap(), 303);
    }
    assert_eq!(grants_of(&world.api(), "bob").await, is(&[("platform admin", true)]));
    world.assert_quiet(&[]);
}
