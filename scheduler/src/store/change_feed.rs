//! What changed since the last look: a constant number of statements, each of which reads a
//! bounded number of rows by an index; the ends of all chains of the audit are one row of each tenant.

use super::dialect::Kind;

use super::row::from_row;
use super::sql::{DISPATCHED, HELD};
use super::statement::Sql;
use super::values::{list, to_json};
use super::{Result, SqlStore};
use crate::domain::change_feed::ChangeKinds;
use crate::domain::{Action, TenantId};
use sea_orm::Value;
use std::collections::HashMap;

/// Tenants whose newest logs one look reads.
pub const DIGEST_TENANTS: usize = 16;

/// Newest logs of each of them.
const DIGEST_ROWS: u64 = 100;

/// Newest logs of all tenants.
const DIGEST_ROWS_OF_ALL: u64 = 1_000;

/// Logs that executors have had the longest.
const DIGEST_ROWS_OUT: u64 = 2_000;

const ACTION: &str = "look for changes";

/// What tells some logs of a tenant from the same a moment ago: each step of a log changes it.
pub type Digest = [i64; 3];

/// Sums over the logs of a tenant.
struct DigestRow {
    tenant_id: TenantId,
    logs: i64,
    versions: i64,
    ids: i64,
}

from_row!(DigestRow { tenant_id, logs, versions, ids });

/// What an entry of the audit says of a tenant.
struct Audited {
    tenant_id: TenantId,
    action: String,
    target_kind: String,
}

from_row!(Audited { tenant_id, action, target_kind });

impl SqlStore {
    /// Where the chains of the audit end, by tenant: of these tenants (0 is the platform), or of all.
    pub async fn chain_ends(&self, of: Option<&[TenantId]>) -> Result<HashMap<TenantId, i64>> {
        const ALL: &str = "SELECT id, seq FROM audit_head";
        let found = match of {
            None => self.query(ACTION, sql!(ALL), []).await?,
            Some(tenants) => {
                let batch = self.backend.rows(1, &[("id", Kind::Big)]);
                let text = format!("SELECT h.id, h.seq FROM {batch} JOIN audit_head h ON h.id = v.n_id");
                let ids = list(ACTION, tenants.iter())?;
                self.query(ACTION, &Sql::new(self.backend, &text), [ids.into()]).await?
            }
        };
        Ok(found.into_iter().collect())
    }

    /// What has changed by what these chains (tenant, place) have said after that place.
    pub async fn audited_since(&self, chains: &[(TenantId, i64)]) -> Result<HashMap<TenantId, ChangeKinds>> {
        let batch = self.backend.rows(1, &[("id", Kind::Big), ("seq", Kind::Big)]);
        let text = format!(
            "SELECT DISTINCT e.tenant_id, e.action, e.target_kind FROM {batch} JOIN audit_entry e ON e.tenant_id = v.n_id \
             AND e.seq > v.n_seq"
        );
        let mut changed: HashMap<TenantId, ChangeKinds> = HashMap::new();
        if chains.is_empty() {
            return Ok(changed);
        }
        let chains = to_json(ACTION, chains)?;
        let found: Vec<Audited> = self.query(ACTION, &Sql::new(self.backend, &text), [chains.into()]).await?;
        for Audited { tenant_id, action, target_kind } in found {
            let all: &mut ChangeKinds = changed.entry(tenant_id).or_default();
            *all = all.either(Action::changes_of(&action, &target_kind));
        }
        Ok(changed)
    }

    /// Digests of the newest logs of these tenants, [`DIGEST_TENANTS`] at most, as of `now` (ms); what is
    /// to come is left out.
    pub async fn log_digests(&self, tenants: &[TenantId], now: i64) -> Result<HashMap<TenantId, Digest>> {
        let newest = |at: usize| {
            let time = DIGEST_TENANTS + 1;
            format!(
                "SELECT * FROM (SELECT tenant_id, id, version FROM task_log WHERE tenant_id = {{{at}}} AND \
                 fire_time <= {{{time}}} ORDER BY fire_time DESC, id DESC LIMIT {DIGEST_ROWS}) s{at}"
            )
        };
        // Always as many as may be, so that the text stays the same; -1 is no id.
        let all: Vec<String> = (1..=DIGEST_TENANTS).map(newest).collect();
        let asked = tenants.iter().copied().chain(std::iter::repeat(TenantId(-1))).take(DIGEST_TENANTS);
        let values: Vec<Value> = asked.map(Value::from).chain([now.into()]).collect();
        self.digests(&all.join(" UNION ALL "), values).await
    }

    /// Digests of the newest logs of all, as of `now` (ms), by tenant.
    pub async fn log_digests_of_all(&self, now: i64) -> Result<HashMap<TenantId, Digest>> {
        let newest = format!(
            "SELECT tenant_id, id, version FROM task_log WHERE fire_time <= {{1}} ORDER BY fire_time DESC, task_id DESC \
             LIMIT {DIGEST_ROWS_OF_ALL}"
        );
        self.digests(&newest, vec![now.into()]).await
    }

    /// Digests of what executors have, and were to start before `now` (ms), by tenant: however long ago
    /// a run began, its end changes this.
    pub async fn digests_out(&self, now: i64) -> Result<HashMap<TenantId, Digest>> {
        let out = format!(
            "SELECT l.tenant_id, l.id, 0 AS version FROM task_log l WHERE {} = {HELD} AND l.status = {DISPATCHED} AND \
             l.due_time <= {{1}} ORDER BY l.due_time LIMIT {DIGEST_ROWS_OUT}",
            self.backend.phase()
        );
        self.digests(&out, vec![now.into()]).await
    }

    async fn digests(&self, logs: &str, values: Vec<Value>) -> Result<HashMap<TenantId, Digest>> {
        // Sums of ids would pass 64 bits.
        let text = format!(
            "SELECT x.tenant_id, {} AS logs, {} AS versions, {} AS ids FROM ({logs}) x GROUP BY x.tenant_id",
            self.backend.big("COUNT(*)"),
            self.backend.big("SUM(x.version)"),
            self.backend.big("SUM(x.id % 1000000007)")
        );
        let statement = Sql::new(self.backend, &text).bind_all(values);
        let found: Vec<DigestRow> = self.query_raw(ACTION, statement).await?;
        Ok(found.into_iter().map(|row| (row.tenant_id, [row.logs, row.versions, row.ids])).collect())
    }

    /// Names of these tenants, as far as they are there.
    pub async fn tenant_names(&self, ids: &[TenantId]) -> Result<HashMap<TenantId, String>> {
        let batch = self.backend.rows(1, &[("id", Kind::Big)]);
        let text = format!("SELECT n.id, n.name FROM {batch} JOIN tenant n ON n.id = v.n_id");
        let ids = list(ACTION, ids.iter())?;
        Ok(self.query(ACTION, &Sql::new(self.backend, &text), [ids.into()]).await?.into_iter().collect())
    }
}
