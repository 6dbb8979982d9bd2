//! What is kept of a task beside its definition, because portals and scripts that know xxl-job's admin say it and read it.

use super::Result;
use super::dialect::Kind;
use super::job_words::JobWords;
use super::sql_store::Transaction;
use super::values::{clean, to_json};
use crate::domain::{TaskId, TenantId};

const WORDS: &[(&str, Kind)] =
    &[("task_id", Kind::Big), ("tenant_id", Kind::Big), ("author", Kind::Text), ("alarm_email", Kind::Text)];

statements!(
    WORDS_END = |d| {
        d.delete_from("xxljob_words", &d.rows(1, WORDS), "l.task_id = v.n_task_id AND l.tenant_id = v.n_tenant_id")
    },
    WORDS_ADD = |d| format!(
        "INSERT INTO xxljob_words (task_id, tenant_id, author, alarm_email) SELECT v.n_task_id, v.n_tenant_id, \
         v.n_author, v.n_alarm_email FROM {}",
        d.rows(1, WORDS)
    ),
);

/// Writes them in place of those that are there.
pub(super) async fn write_words(tx: &Transaction<'_>, words: &[JobWords]) -> Result<()> {
    if words.is_empty() {
        return Ok(());
    }
    let row = |of: &JobWords| (of.task_id, of.tenant_id, clean(&of.author), clean(&of.alarm_email));
    let rows = to_json("note words of tasks", &words.iter().map(row).collect::<Vec<_>>())?;
    for statement in [&WORDS_END, &WORDS_ADD] {
        tx.execute(statement, [rows.clone().into()]).await?;
    }
    Ok(())
}

/// Forgets those of a task that is being deleted.
pub(super) async fn forget_words(tx: &Transaction<'_>, tenant_id: TenantId, task_id: TaskId) -> Result<()> {
    let delete = sql!("DELETE FROM xxljob_words WHERE task_id = {1} AND tenant_id = {2}");
    tx.execute(&delete, [task_id.into(), tenant_id.into()]).await.map(drop)
}
