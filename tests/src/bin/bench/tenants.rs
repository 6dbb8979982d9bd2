//! Tenants by the thousand, made inside the database: two requests to the API for each would take longer than the measurement.

use crate::database::Database;
use crate::numbers::{named, numbers};
use crate::options::Kind;
use anyhow::Result;
use carillon_protocol::sign::Key;
use carillon_tests::App;

/// Of every key that is made here.
const SECRET: &str = "a secret of the benchmark that is long enough";

/// Makes `count` tenants with an app and a key each; their ids, and those of the apps, follow those of the task
/// `template`.
pub async fn add(kind: Kind, database: &Database, template: i64, count: u32) -> Result<Vec<App>> {
    if count == 0 {
        return Ok(Vec::new());
    }
    let (from, template) = (numbers(kind, count), format!("task t WHERE t.id = {template}"));
    for statement in [
        format!(
            "INSERT INTO tenant (id, name, created_at) SELECT t.tenant_id + n.n, {}, 1 FROM {from}, {template}",
            named(kind, "bench-")
        ),
        format!(
            "INSERT INTO app (id, tenant_id, name, created_at) \
             SELECT t.app_id + n.n, t.tenant_id + n.n, 'bench', 1 FROM {from}, {template}"
        ),
        format!(
            "INSERT INTO app_key (id, tenant_id, app_id, secret, created_at, revoked_at) \
             SELECT {}, t.tenant_id + n.n, t.app_id + n.n, '{SECRET}', 1, 0 FROM {from}, {template}",
            named(kind, "bench-key-")
        ),
        // By it nodes see that there are new keys.
        format!("INSERT INTO audit_head (id, seq, hash) SELECT t.tenant_id + n.n, 1, '' FROM {from}, {template}"),
    ] {
        database.execute(&statement).await?;
    }
    let app = |number: u32| App {
        tenant: format!("bench-{number}"),
        name: "bench".to_owned(),
        key: Key { id: format!("bench-key-{number}"), secret: SECRET.to_owned() },
    };
    Ok((1..=count).map(app).collect())
}
