//! Who is signed in at one cluster signs in at another, where that one's settings allow it.

use crate::single_sign_on::{Browser, location, refused};
use carillon_tests::node::{Node, TOKEN};
use carillon_tests::people::{PASSWORD, Person};
use carillon_tests::{Api, Kind, World, folder, now_ms, port};
use reqwest::Method;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::Path;

scenario!(who_is_signed_in_there_signs_in_here: sqlite mariadb postgres);
scenario!(codes_are_for_one_use_by_whom_they_were_asked_by: sqlite mariadb);
scenario!(nobody_is_signed_in_whom_this_cluster_does_not_know: sqlite);
scenario!(what_the_settings_do_not_allow_is_refused: sqlite);

/// `near`, where people are signed in, and `far`, where they want to be; a database each.
struct Pair {
    near: World,
    far: World,
    near_node: Node,
    far_node: Node,
    /// Who has the account `ann` at both, with sessions there.
    ann: Person,
    ann_there: Person,
}

impl Pair {
    async fn new(kind: Kind) -> Self {
        let (near, far) = (World::new(kind).await, World::new(kind).await);
        let folder = folder::fresh("cluster-sign-in");
        let (near_port, far_port) = (port::free(), port::free());
        std::fs::write(folder.join("far-token"), TOKEN).unwrap();
        let config = config(&folder, "near", ("far", far_port, false));
        let near_node = start(&near, near_port, &config).await;
        let admin = near.api();
        // What the other cluster shows here may do this alone.
        let link = admin.make_person("link", None).await;
        admin.make_role("link", None, &["nodes.read", "statistics.read", "clusters.read"]).await;
        admin.grant(&link, "link", None).await;
        let token = json!({
            "name": "far", "permissions": ["nodes.read", "statistics.read", "clusters.read"], "expires_at": now_ms() + 3_600_000,
        });
        let token = link.api.expect(201, Method::POST, "/account/tokens", Some(&token)).await;
        std::fs::write(folder.join("near-token"), token["secret"].as_str().unwrap()).unwrap();
        let config = self::config(&folder, "far", ("near", near_port, true));
        let far_node = start(&far, far_port, &config).await;
        admin.make_role("portal", None, &["clusters.read"]).await;
        let ann = admin.make_person("ann", None).await;
        admin.grant(&ann, "portal", None).await;
        let ann_there = far.api().make_person("ann", None).await;
        Self { near, far, near_node, far_node, ann, ann_there }
    }

    /// From the other cluster to this one, and back: where the browser then is to go.
    async fn to_near_and_back(&self, there: &mut Browser, here: &mut Browser) -> String {
        let begun =
            there.get(&format!("{}/api/v1/login/cluster?from=near&return_to=%2Ftasks", self.far_node.url)).await;
        assert_eq!(begun.status(), 303);
        let to = location(&begun);
        assert!(to.starts_with(&format!("{}/api/v1/login/elsewhere?to=far&", self.near_node.url)), "{to}");
        let vouched = here.get(&to).await;
        assert_eq!(vouched.status(), 303);
        let back = location(&vouched);
        assert!(back.starts_with(&format!("{}/api/v1/login/cluster/callback?", self.far_node.url)), "{back}");
        back
    }
}

fn config(folder: &Path, own: &str, (other, port, signs_in): (&str, u16, bool)) -> String {
    let mut text = String::new();
    let file = folder.join(format!("{other}-token"));
    write!(
        text,
        "[[clusters]]\nname = \"{other}\"\nurl = \"http://127.0.0.1:{port}\"\ntoken_file = \"{}\"\nsigns_in = {signs_in}\n\
         [cluster]\nname = \"{own}\"\n",
        file.display()
    )
    .unwrap();
    let place = folder.join(format!("{own}.toml"));
    std::fs::write(&place, text).unwrap();
    place.to_str().unwrap().to_owned()
}

async fn start(world: &World, port: u16, config: &str) -> Node {
    let node = world.unready_node("a", port, &[("config", config)]);
    node.ready().await;
    node
}

/// Two hosts, and so two jars of cookies: a browser that has a session at `near`, and the same at `far`, without one.
fn browsers(session: &Api) -> (Browser, Browser) {
    let (mut here, there) = (Browser::new(), Browser::new());
    here.cookies.insert("carillon_session".to_owned(), session.token().to_owned());
    (here, there)
}

async fn audited(api: &Api, action: &str) -> Vec<Value> {
    api.get(&format!("/audit?action={action}")).await["items"].as_array().unwrap().clone()
}

async fn who_is_signed_in_there_signs_in_here(kind: Kind) {
    let pair = Pair::new(kind).await;
    assert_eq!(pair.far.api().get("/login").await["clusters"], json!(["near"]));
    assert_eq!(pair.near.api().get("/login").await["clusters"], json!([]));
    let (mut here, mut there) = browsers(&pair.ann.api);
    let back = pair.to_near_and_back(&mut there, &mut here).await;
    let answer = there.get(&back).await;
    assert_eq!((answer.status().as_u16(), location(&answer).as_str()), (303, "/tasks"));
    assert_eq!(there.cookies.keys().collect::<Vec<_>>(), ["carillon_session"], "the other cookie has done its work");
    let me = there.api(&pair.far.api()).get("/session").await;
    assert_eq!((&me["kind"], &me["name"]), (&json!("user"), &json!("ann")));
    assert_eq!(me["user_id"], json!(pair.ann_there.id.to_string()));
    // Both say so: who went where, who asked, who came from where.
    let near = pair.near.api();
    for (entries, actor, cluster) in [
        (audited(&near, "sign_in_elsewhere").await, "ann", "far"),
        (audited(&near, "redeem_sign_in").await, "link (far)", "far"),
        (audited(&pair.far.api(), "finish_cluster_sign_in").await, "ann", "near"),
    ] {
        assert_eq!(entries.len(), 1, "{entries:?}");
        let entry = &entries[0];
        assert_eq!((&entry["actor"], &entry["target"]), (&json!(actor), &json!("ann")), "{entry}");
        assert!(entry.to_string().contains(cluster), "{entry}");
    }
    // The session here is one like any other.
    let (_, kept) = there.api(&pair.far.api()).send(Method::GET, "/account/sessions", None).await;
    assert!(kept["items"].as_array().unwrap().len() >= 2, "{kept}");
    let code = back.split("code=").nth(1).unwrap().split('&').next().unwrap();
    for world in [&pair.near, &pair.far] {
        let logs = world.node_logs();
        assert!(!logs.contains(code) && !logs.contains(TOKEN), "no secret is in any line");
    }
}

async fn codes_are_for_one_use_by_whom_they_were_asked_by(kind: Kind) {
    let pair = Pair::new(kind).await;
    let (mut here, mut there) = browsers(&pair.ann.api);
    // Another browser than the one that asked, with whatever link: nobody is signed in as somebody else.
    let back = pair.to_near_and_back(&mut there, &mut here).await;
    let mut other = Browser::new();
    let answer = other.get(&back).await;
    refused(&other, answer, 403, "this browser did not start this sign-in").await;
    let _ = other.get(&format!("{}/api/v1/login/cluster?from=near", pair.far_node.url)).await;
    let answer = other.get(&back).await;
    refused(&other, answer, 403, "this browser did not start this sign-in").await;
    // The code is still good where it was asked for, once.
    let pending = there.cookies["carillon_cluster_sign_in"].clone();
    assert_eq!(there.get(&back).await.status(), 303);
    let mut again = Browser::new();
    again.cookies.insert("carillon_cluster_sign_in".to_owned(), pending);
    let answer = again.get(&back).await;
    refused(&again, answer, 503, "the node's log says why").await;
    // Who has the code alone, and may ask, gets nothing, and nobody does after them.
    let (mut here, mut there) = browsers(&pair.ann.api);
    let back = pair.to_near_and_back(&mut there, &mut here).await;
    let code = back.split("code=").nth(1).unwrap().split('&').next().unwrap().to_owned();
    let path = "/clusters/sign-ins";
    let near = pair.near.api();
    let guess = json!({ "code": code, "verifier": "guessed" });
    let answer = near.expect(403, Method::POST, path, Some(&guess)).await;
    assert!(answer["detail"].as_str().unwrap().contains("unknown, was used"), "{answer}");
    let answer = there.get(&back).await;
    refused(&there, answer, 503, "the node's log says why").await;
    // A person without the permission may not even ask.
    let nobody = near.make_person("nobody", None).await;
    nobody.api.expect(403, Method::POST, path, Some(&guess)).await;
    // One that is half a minute old is over.
    let (mut here, mut there) = browsers(&pair.ann.api);
    let back = pair.to_near_and_back(&mut there, &mut here).await;
    pair.near.database.execute("UPDATE sign_in_code SET expires_at = expires_at - 30000").await;
    let answer = there.get(&back).await;
    refused(&there, answer, 503, "the node's log says why").await;
    pair.to_near_and_back(&mut there, &mut here).await;
    assert_eq!(pair.near.database.number("SELECT COUNT(*) FROM sign_in_code").await, 1, "old ones are forgotten");
}

async fn nobody_is_signed_in_whom_this_cluster_does_not_know(kind: Kind) {
    let pair = Pair::new(kind).await;
    let (near, far) = (pair.near.api(), pair.far.api());
    // Nobody is signed in there; or by a token, who has no session; or may not see other clusters.
    let bob = near.make_person("bob", None).await;
    for session in [near.carrying("cs_0"), near.clone(), bob.api.clone()] {
        let (mut here, mut there) = browsers(&session);
        let back = pair.to_near_and_back(&mut there, &mut here).await;
        assert!(back.contains("error=refused") && !back.contains("code="), "{back}");
        let answer = there.get(&back).await;
        refused(&there, answer, 403, "sign in there first").await;
    }
    // Bob has no account here; then one that is disabled; then one of single sign-on.
    near.grant(&bob, "portal", None).await;
    let there = async |why: &str| {
        let (mut here, mut there) = browsers(&bob.api);
        let back = pair.to_near_and_back(&mut there, &mut here).await;
        let answer = there.get(&back).await;
        refused(&there, answer, 403, why).await;
    };
    there("you have no account here").await;
    let bob_there = far.make_person("bob", None).await;
    pair.far.database.execute(&format!("UPDATE user_account SET disabled = 1 WHERE id = {}", bob_there.id)).await;
    there("you have no account here, or it is disabled").await;
    let subject = "disabled = 0, subject = 'https://login.example.com 7'";
    pair.far.database.execute(&format!("UPDATE user_account SET {subject} WHERE id = {}", bob_there.id)).await;
    there("belongs to another user").await;
    assert!(audited(&far, "finish_cluster_sign_in").await.is_empty());
    // Who was disabled at the other cluster meanwhile is nobody there.
    let (mut here, mut there) = browsers(&pair.ann.api);
    let back = pair.to_near_and_back(&mut there, &mut here).await;
    pair.near.database.execute(&format!("UPDATE user_account SET disabled = 1 WHERE id = {}", pair.ann.id)).await;
    let answer = there.get(&back).await;
    refused(&there, answer, 503, "the node's log says why").await;
    // A cluster that is away signs nobody in, and holds nobody up.
    let ann = far.sign_in("ann", PASSWORD).await.0;
    let (mut here, mut there) = browsers(&ann);
    let begun = there.get(&format!("{}/api/v1/login/cluster?from=near", pair.far_node.url)).await;
    let kept = there.cookies["carillon_cluster_sign_in"].clone();
    let state = kept.split('~').next().unwrap();
    assert_eq!(begun.status(), 303);
    pair.near_node.process.kill9().await;
    let back = format!("{}/api/v1/login/cluster/callback?state={state}&code=cc_0", pair.far_node.url);
    let answer = there.get(&back).await;
    refused(&there, answer, 503, "the node's log says why").await;
    assert_eq!(here.get(&format!("{}/api/v1/session", pair.far_node.url)).await.status(), 200);
}

async fn what_the_settings_do_not_allow_is_refused(kind: Kind) {
    let pair = Pair::new(kind).await;
    let (mut here, _) = browsers(&pair.ann.api);
    let (near, far) = (&pair.near_node.url, &pair.far_node.url);
    let hash = "0".repeat(64);
    for (url, status, why) in [
        // `far` signs nobody in at `near`.
        (format!("{near}/api/v1/login/cluster?from=far"), 404, "clusters.signs_in"),
        (format!("{far}/api/v1/login/cluster?from=elsewhere"), 404, "clusters.signs_in"),
        (format!("{far}/api/v1/login/cluster?from=near&return_to=%2F%2Fevil.example"), 400, "return_to"),
        // People are sent to clusters of the settings alone.
        (format!("{near}/api/v1/login/elsewhere?to=evil&state=x&challenge={hash}"), 404, "clusters.signs_in"),
        (format!("{near}/api/v1/login/elsewhere?to=far&state=x&challenge=x"), 403, "challenge"),
        (format!("{near}/api/v1/login/elsewhere?to=far&state={}&challenge={hash}", "x".repeat(201)), 403, "state"),
    ] {
        let answer = here.get(&url).await;
        assert_eq!(answer.status().as_u16(), status, "{url}");
        let problem: Value = answer.json().await.unwrap();
        assert!(problem["detail"].as_str().unwrap().contains(why), "{url}: {problem}");
    }
    assert_eq!(pair.near.database.number("SELECT COUNT(*) FROM sign_in_code").await, 0);
    // A browser that shows a page goes on to the page that says it.
    let mut page = Browser::saying("sec-fetch-mode", "navigate");
    let answer = page.get(&format!("{near}/api/v1/login/cluster?from=far")).await;
    assert!(answer.status() == 404 || location(&answer) == "/sign-in?error=provider", "{answer:?}");
}
