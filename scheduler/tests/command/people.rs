//! Users, roles, tokens, and what one may not do.

use super::installation::{Installation, Ran, run};
use serde_json::json;

const PASSWORD: &str = "correct horse battery";

/// `carillon …` as the signed-in user.
fn signed_in(here: &Installation, args: &[&str]) -> Ran {
    run(here.stranger().args(args), "")
}

#[tokio::test]
async fn a_user_is_created_and_granted_a_role() {
    let here = Installation::new().await;
    let ann = here.json(&["users", "create", "ann", "--display-name", "Ann", "--tenant", "retail"]);
    let login = ["login", "--user", "ann", "--password-stdin"];
    let first = ann["password"].as_str().unwrap();
    assert_eq!(run(here.stranger().args(login), &format!("{first}\n{PASSWORD}\n")).code, 0);
    // Deny by default: what is missing is named.
    let ran = signed_in(&here, &["tasks", "list"]);
    assert!(ran.code == 4 && ran.err.contains("this needs the permission `tasks.read`"), "{}", ran.err);
    assert_eq!(ran.out, "");

    let role = ["roles", "create", "looker", "--permission", "tasks.read,apps.read", "--tenant", "retail"];
    let made = here.json(&role);
    assert_eq!(made["permissions"].as_array().unwrap().len(), 2);
    here.carillon(&["roles", "edit", "looker", "--permission", "tasks.read", "--description", "d"]);
    assert_eq!(here.json(&["roles", "show", "looker"])["permissions"], json!(["tasks.read"]));
    let grant = ["users", "grant", "ann", "looker", "--tenant", "retail", "--app", "orders"];
    let granted = here.json(&grant);
    let app = here.json(&["apps", "show", "retail/orders"]);
    assert_eq!(granted["grants"][0]["apps"], json!([app["id"]]));
    assert_eq!(signed_in(&here, &["tasks", "list"]).code, 0);
    let table = here.carillon(&["users", "list", "--name", "ann"]);
    assert!(table.lines().nth(1).unwrap().starts_with("ann   Ann         open   looker  "), "{table}");

    assert_eq!(here.fails(&["roles", "delete", "looker"]).code, 1);
    let id = granted["grants"][0]["id"].as_str().unwrap();
    assert_eq!(here.carillon(&["users", "revoke", "ann", id]), "`ann` no longer has it\n");
    assert_eq!(signed_in(&here, &["tasks", "list"]).code, 4);
    assert_eq!(here.carillon(&["roles", "delete", "looker"]), "role `looker` deleted\n");
    assert!(here.fails(&["users", "grant", "ann", "looker"]).err.contains("there is no role `looker`"));
    assert_eq!(here.fails(&["users", "grant", "ann", "viewer", "--app", "orders"]).code, 2);

    // Disabled, reset, gone.
    assert_eq!(here.json(&["users", "edit", "ann", "--disable"])["disabled"], true);
    assert!(signed_in(&here, &["whoami"]).err.contains("has ended; sign in again"));
    assert_eq!(here.json(&["users", "edit", "ann", "--enable", "--display-name", "A"])["disabled"], false);
    let reset = here.json(&["users", "reset-password", "ann"]);
    assert_eq!(run(here.stranger().args(login), &format!("{PASSWORD}\n")).code, 4);
    let next = format!("{}\n{PASSWORD} 2\n", reset["password"].as_str().unwrap());
    assert_eq!(run(here.stranger().args(login), &next).code, 0);
    assert_eq!(here.carillon(&["users", "delete", "ann"]), "user `ann` deleted\n");
    assert_eq!(signed_in(&here, &["whoami"]).code, 4);
    let roles = here.json(&["roles", "list"]);
    assert_eq!(roles.as_array().unwrap().len(), 4);
}

#[tokio::test]
async fn tokens_and_sessions() {
    let here = Installation::new().await;
    let login = ["login", "--user", "admin", "--password-stdin"];
    assert_eq!(run(here.stranger().args(login), &format!("{}\n{PASSWORD}\n", here.first_password())).code, 0);
    let out = |args: &[&str]| {
        let ran = signed_in(&here, &[args, &["--output", "json"]].concat());
        assert_eq!(ran.code, 0, "{args:?}: {}", ran.err);
        serde_json::from_str::<serde_json::Value>(&ran.out).unwrap_or_default()
    };
    let made = out(&["tokens", "create", "ci", "--permission", "tasks.read", "--tenant", "retail", "--expires", "+1d"]);
    let (id, secret) = (made["id"].as_str().unwrap(), made["secret"].as_str().unwrap());
    here.write("token", secret);
    let with_token = |args: &[&str]| signed_in(&here, &[args, &["--token-file", "token"]].concat());
    assert_eq!(with_token(&["tasks", "list"]).code, 0);
    assert_eq!(with_token(&["apps", "list"]).code, 4);
    assert_eq!(out(&["tokens", "list"])[0]["name"], "ci");
    assert_eq!(out(&["tokens", "list", "--user", "admin"])[0]["id"], id);
    assert_eq!(signed_in(&here, &["tokens", "revoke", id]).out, format!("token {id} revoked\n"));
    let ran = with_token(&["tasks", "list"]);
    assert!(ran.code == 4 && ran.err.contains("refuses the token of token;"), "{}", ran.err);
    let made = out(&["tokens", "create", "ci", "--permission", "tasks.read"]);
    here.carillon(&["tokens", "revoke", "--all", made["id"].as_str().unwrap()]);
    assert_eq!(here.json(&["tokens", "list", "--all"]), json!([]));
    // The configured token belongs to no user.
    assert_eq!(here.fails(&["tokens", "list"]).code, 4);

    assert_eq!(run(here.stranger().args(login), &format!("{PASSWORD}\n")).code, 0);
    let sessions = out(&["sessions", "list"]);
    assert_eq!((sessions.as_array().unwrap().len(), &sessions[0]["current"]), (2, &json!(true)));
    let other = sessions[1]["id"].as_str().unwrap();
    assert_eq!(signed_in(&here, &["sessions", "end", other]).out, format!("session {other} has ended\n"));
    assert_eq!(out(&["sessions", "list"]).as_array().unwrap().len(), 1);
}
