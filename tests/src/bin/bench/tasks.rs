//! Tasks by the ten thousand, copied inside the database: a request to the API for each would
//! take longer than the measurement.

use crate::options::Kind;
use crate::server::Server;
use crate::stand::Stand;
use anyhow::Result;
use chrono::{DateTime, Timelike};

/// Tasks in one statement: as deep as every database recurses by default.
const BATCH: u32 = 900;

/// When a task fires.
#[derive(Debug, Clone, Copy)]
pub enum Firing {
    /// Every second from this instant on, epoch ms.
    EverySecondFrom(i64),
    /// Once a day; first at this instant or, for later batches, some minutes after it.
    DailyFrom(i64),
    /// Once a day, all of them at this instant, epoch ms.
    DailyAt(i64),
}

/// Starts `count` tasks; their ids follow the stand's template's.
pub async fn create(server: &Server, stand: &Stand, count: u32, firing: Firing) -> Result<()> {
    copy_of(server, stand, stand.template, count, firing).await
}

/// The same of any template.
pub async fn copy_of(server: &Server, stand: &Stand, template: i64, count: u32, firing: Firing) -> Result<()> {
    copy_from(server, stand, template, 0, count, firing).await
}

/// The same with names that begin otherwise.
pub async fn copy_named(
    server: &Server,
    stand: &Stand,
    template: i64,
    name: &str,
    count: u32,
    firing: Firing,
) -> Result<()> {
    copy_all(server, stand, Copies { template, name, there: 0, count, tenants: 1 }, firing).await
}

/// The same of a template that has `there` copies already.
pub async fn copy_from(
    server: &Server,
    stand: &Stand,
    template: i64,
    there: u32,
    count: u32,
    firing: Firing,
) -> Result<()> {
    copy_all(server, stand, Copies { template, name: "bench", there, count, tenants: 1 }, firing).await
}

/// The same of the stand's template, dealt out to `tenants` in turn.
pub async fn deal_out(
    server: &Server,
    stand: &Stand,
    tenants: u32,
    (there, count): (u32, u32),
    firing: Firing,
) -> Result<()> {
    copy_all(server, stand, Copies { template: stand.template, name: "bench", there, count, tenants }, firing).await
}

/// What is copied.
#[derive(Clone, Copy)]
struct Copies<'a> {
    template: i64,
    /// How their names begin.
    name: &'a str,
    /// Copies that are there already.
    there: u32,
    count: u32,
    /// Tenants that they are dealt out to in turn; the first is the template's, the ids of others and of their apps follow.
    tenants: u32,
}

async fn copy_all(server: &Server, stand: &Stand, copies: Copies<'_>, firing: Firing) -> Result<()> {
    for done in (0..copies.count).step_by(BATCH as usize) {
        let (cron, next) = match firing {
            Firing::EverySecondFrom(first) => ("* * * * * ?".to_owned(), first),
            Firing::DailyFrom(first) => daily(first + i64::from(done / BATCH) * 60_000),
            Firing::DailyAt(at) => daily(at),
        };
        let rows = BATCH.min(copies.count - done);
        stand.database.execute(&copy(server.kind, copies, done, rows, &cron, next)).await?;
    }
    Ok(())
}

/// The next fire at this instant, in whole seconds, and on each day at the same time.
fn daily(at: i64) -> (String, i64) {
    let time = DateTime::from_timestamp_millis(at).unwrap_or_default();
    let cron = format!("{} {} {} * * ?", time.second(), time.minute(), time.hour());
    (cron, at / 1_000 * 1_000)
}

fn copy(kind: Kind, copies: Copies<'_>, done: u32, rows: u32, cron: &str, next: i64) -> String {
    let Copies { template, name, there, tenants, .. } = copies;
    let name = match kind {
        Kind::Mariadb => format!("CONCAT('{name}-', n.i)"),
        Kind::Postgres | Kind::Sqlite => format!("'{name}-' || n.i"),
    };
    format!(
        "INSERT INTO task (id, tenant_id, app_id, name, handler, description, cron, time_zone, params, routing, tags, \
         failure_strategy, max_retries, retry_interval_ms, expired_strategy, expire_after_ms, misfire_strategy, \
         timeout_ms, delivery, started, revision, next_fire_at, written_until, created_at, updated_at) \
         WITH RECURSIVE n(i) AS (SELECT {first} UNION ALL SELECT i + 1 FROM n WHERE i < {last}) \
         SELECT t.id + n.i, t.tenant_id + n.i % {tenants}, t.app_id + n.i % {tenants}, {name}, t.handler, t.description, '{cron}', t.time_zone, t.params, \
         t.routing, t.tags, t.failure_strategy, t.max_retries, t.retry_interval_ms, t.expired_strategy, \
         t.expire_after_ms, t.misfire_strategy, t.timeout_ms, t.delivery, 1, t.revision, {next}, 0, t.created_at, \
         t.updated_at FROM n JOIN task t ON t.id = {template}",
        first = there + done + 1,
        last = there + done + rows,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_are_dealt_out_to_tenants_by_their_number() {
        let copies = Copies { template: 7, name: "bench", there: 10, count: 5, tenants: 3 };
        let sql = copy(Kind::Sqlite, copies, 0, 5, "* * * * * ?", 1_000);
        assert!(sql.contains("SELECT 11 UNION ALL SELECT i + 1 FROM n WHERE i < 15"), "{sql}");
        assert!(sql.contains("t.tenant_id + n.i % 3, t.app_id + n.i % 3"), "{sql}");
    }
}
