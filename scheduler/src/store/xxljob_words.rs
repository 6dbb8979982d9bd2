//! What is kept of a task beside its definition, because portals and scripts that know xxl-job's admin say it and read it.

use super::Result;
use super::job_words::JobWords;
use super::sql_store::Transaction;
use super::values::clean;
use crate::domain::{TaskId, TenantId};

/// Writes them in place of those that are there.
pub(super) async fn write_words(tx: &Transaction<'_>, words: &[JobWords]) -> Result<()> {
    let update =
        sql!("UPDATE xxljob_words SET author = {3}, alarm_email = {4} WHERE task_id = {1} AND tenant_id = {2}");
    let insert = sql!("INSERT INTO xxljob_words (task_id, tenant_id, author, alarm_email) VALUES ({1}, {2}, {3}, {4})");
    for JobWords { task_id, tenant_id, author, alarm_email } in words {
        let values = || [(*task_id).into(), (*tenant_id).into(), clean(author).into(), clean(alarm_email).into()];
        if tx.execute(&update, values()).await? == 0 {
            tx.execute(&insert, values()).await?;
        }
    }
    Ok(())
}

/// Forgets those of a task that is being deleted.
pub(super) async fn forget_words(tx: &Transaction<'_>, tenant_id: TenantId, task_id: TaskId) -> Result<()> {
    let delete = sql!("DELETE FROM xxljob_words WHERE task_id = {1} AND tenant_id = {2}");
    tx.execute(&delete, [task_id.into(), tenant_id.into()]).await.map(drop)
}
