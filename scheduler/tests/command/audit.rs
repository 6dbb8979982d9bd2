//! `carillon audit`.

use super::installation::Installation;
use sea_orm::sqlx::{AssertSqlSafe, Connection, SqliteConnection, raw_sql};
use serde_json::{Value, json};

/// Does something to the audit behind the node's back.
async fn tamper(here: &Installation, sql: &str) {
    let url = format!("sqlite://{}", here.folder().join("data/carillon.db").display());
    let mut database = SqliteConnection::connect(&url).await.unwrap();
    raw_sql(AssertSqlSafe(sql)).execute(&mut database).await.unwrap();
    database.close().await.unwrap();
}

fn row(rows: &Value, chain: &str) -> Value {
    rows.as_array().unwrap().iter().find(|row| row["chain"] == chain).unwrap().clone()
}

#[tokio::test]
async fn who_did_what() {
    let here = Installation::new().await;
    here.carillon(&["tenants", "edit", "retail", "--description", "shops"]);
    let found = here.json(&["audit", "search", "--tenant", "retail", "--action", "edit_tenant"]);
    assert_eq!(found.as_array().unwrap().len(), 1);
    assert_eq!((&found[0]["target"], &found[0]["actor_kind"]), (&json!("retail"), &json!("setting")));
    let table = here.carillon(&["audit", "search", "--limit", "1"]);
    assert!(table.lines().nth(1).unwrap().contains("  edit_tenant  tenant retail  "), "{table}");
    assert_eq!(here.json(&["audit", "search", "--until", "-1h"]), json!([]));
    assert_eq!(here.json(&["audit", "search", "--tenant", "-", "--from", "-1h"]).as_array().unwrap().len(), 3);
}

#[tokio::test]
async fn a_whole_audit_holds() {
    let here = Installation::new().await;
    // More than a page.
    for number in 0..520 {
        here.patch("/tenants/retail", &json!({ "description": number.to_string() })).await;
    }
    let end = here.get("/audit/chain?tenant=retail&limit=1").await;
    let rows = here.json(&["audit", "verify", "--head", "heads.json"]);
    assert_eq!(rows.as_array().unwrap().len(), 2);
    let retail = row(&rows, "retail");
    assert_eq!(
        (&retail["holds"], &retail["seq"], &retail["hash"]),
        (&json!(true), &end["last_seq"], &end["last_hash"])
    );
    assert!(end["last_seq"].as_i64().unwrap() > 500);
    let table = here.carillon(&["audit", "verify", "--platform"]);
    assert!(table.lines().nth(1).unwrap().starts_with("-      yes    3 "), "{table}");
    assert_eq!(here.json(&["audit", "verify", "--tenant", "retail", "--head", "heads.json"])[0], retail);
    // The file keeps what was not asked for this time.
    let heads: Value =
        serde_json::from_str(&std::fs::read_to_string(here.folder().join("heads.json")).unwrap()).unwrap();
    assert_eq!(heads["heads"].as_object().unwrap().len(), 2);
    assert_eq!(here.fails(&["audit", "verify", "--tenant", "nobody"]).code, 1);
    assert_eq!(here.fails(&["audit", "verify", "--platform", "--all"]).code, 2);
}

#[tokio::test]
async fn whatever_is_changed_is_found() {
    for (sql, expected) in [
        ("UPDATE audit_entry SET actor = 'nobody' WHERE tenant_id = {T} AND seq = 3", "its content has been changed"),
        ("UPDATE audit_entry SET after_json = NULL WHERE tenant_id = {T} AND seq = 3", "its content has been changed"),
        ("UPDATE audit_entry SET hash = 'x' WHERE tenant_id = {T} AND seq = 2", "entry 2 ("),
        ("DELETE FROM audit_entry WHERE tenant_id = {T} AND seq = 2", "entry 2 was expected"),
        ("DELETE FROM audit_entry WHERE tenant_id = {T} AND seq = 3", "the node names entry 3"),
        ("UPDATE audit_head SET hash = 'x' WHERE id = {T}", "the node names entry 3 (x) as its end"),
    ] {
        let here = Installation::new().await;
        here.carillon(&["tenants", "edit", "retail", "--description", "x"]);
        let id = here.get("/tenants/retail").await["id"].as_str().unwrap().to_owned();
        tamper(&here, &sql.replace("{T}", &id)).await;
        let ran = here.fails(&["audit", "verify", "--output", "json"]);
        assert_eq!((ran.code, ran.err.contains("1 of 2 chains are broken")), (1, true), "{}", ran.err);
        let rows: Value = serde_json::from_str(&ran.out).unwrap();
        assert_eq!(row(&rows, "-")["holds"], true);
        let why = row(&rows, "retail")["why"].as_str().unwrap().to_owned();
        assert!(why.contains(expected), "{sql}: {why}");
    }
}

/// Its chain is verified as before, by the tenant's id; callers who know the id find that it is gone.
#[tokio::test]
async fn a_deleted_tenant_keeps_its_chain() {
    let here = Installation::new().await;
    here.carillon(&["tenants", "create", "gone"]);
    here.carillon(&["tenants", "edit", "gone", "--description", "x"]);
    let id = here.get("/tenants/gone").await["id"].as_str().unwrap().to_owned();
    let with_head = ["audit", "verify", "--head", "heads.json"];
    let before = row(&here.json(&with_head), "gone");
    assert_eq!((&before["tenant_id"], &before["holds"], &before["seq"]), (&json!(id), &json!(true), &json!(1)));
    here.carillon(&["tenants", "delete", "gone"]);
    assert_eq!(row(&here.json(&with_head), "gone"), before, "the file knows its name");
    assert_eq!(row(&here.json(&["audit", "verify"]), &id)["hash"], before["hash"]);
    let one = here.json(&["audit", "verify", "--tenant-id", &id, "--head", "heads.json"]);
    assert_eq!(one, json!([before]));
    let found = here.json(&["audit", "search", "--tenant-id", &id]);
    assert_eq!((found.as_array().unwrap().len(), &found[0]["action"]), (1, &json!("edit_tenant")));

    tamper(&here, &format!("UPDATE audit_entry SET actor = 'nobody' WHERE tenant_id = {id}")).await;
    assert!(here.fails(&["audit", "verify"]).out.contains("its content has been changed"));
    tamper(&here, &format!("DELETE FROM audit_entry WHERE tenant_id = {id}; DELETE FROM audit_head WHERE id = {id}"))
        .await;
    here.carillon(&["audit", "verify"]);
    for _ in 0..2 {
        let ran = here.fails(&with_head);
        let why = "it was verified up to entry 1 before, and no longer exists";
        assert!(ran.code == 1 && ran.out.contains("gone") && ran.out.contains(why), "{}", ran.out);
        assert!(ran.err.contains("1 of 3 chains are broken"), "{}", ran.err);
    }
    here.carillon(&["audit", "verify", "--platform", "--head", "heads.json"]);
}

/// Anyone who can write the database can make a chain that holds in itself; not one that agrees with a
/// head that was verified before.
#[tokio::test]
async fn verified_tokens_are_cached() {
    let here = Installation::new().await;
    here.carillon(&["tenants", "edit", "retail", "--description", "x"]);
    here.carillon(&["audit", "verify", "--head", "heads.json"]);
    let kept = std::fs::read_to_string(here.folder().join("heads.json")).unwrap();
    let cut = "UPDATE audit_head SET seq = 2, hash = (SELECT previous FROM audit_entry e WHERE e.tenant_id = {T} AND \
               e.seq = 3) WHERE id = {T}; DELETE FROM audit_entry WHERE tenant_id = {T} AND seq = 3";
    let id = here.get("/tenants/retail").await["id"].as_str().unwrap().to_owned();
    tamper(&here, &cut.replace("{T}", &id)).await;
    here.carillon(&["audit", "verify"]);
    let with_head = ["audit", "verify", "--tenant", "retail", "--head", "heads.json"];
    let ran = here.fails(&with_head);
    assert!(ran.code == 1 && ran.out.contains("was verified up to entry 3 before; it was cut"), "{}", ran.out);
    // It goes on, differently.
    here.carillon(&["tenants", "edit", "retail", "--description", "y"]);
    here.carillon(&["audit", "verify"]);
    let ran = here.fails(&with_head);
    assert!(ran.code == 1 && ran.out.contains("entry 3: it is not the one that was verified before"), "{}", ran.out);
    assert_eq!(std::fs::read_to_string(here.folder().join("heads.json")).unwrap(), kept);
    here.write("heads.json", "{}");
    let ran = here.fails(&with_head);
    assert!(ran.err.contains("the file of heads heads.json cannot be used (--head)"), "{}", ran.err);
}
