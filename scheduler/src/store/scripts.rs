//! Scripts of tasks: the version that runs, and those before it.

use super::dialect::Kind;
use super::row::from_row;
use super::script_edits::{NewScript, ScriptEdit};
use super::sql_store::Transaction;
use super::values::{clean, to_json, to_word};
use super::{Result, SCRIPTS_AT_ONCE, ScriptStore, SqlStore};
use crate::domain::import::GLUE_VERSIONS_MAX;
use crate::domain::xxljob::{GlueType, Script};
use crate::domain::{TaskId, TenantId};
use async_trait::async_trait;
use std::collections::HashMap;

statements!(
    SCRIPTS = |d| format!(
        "SELECT s.task_id, s.version, s.glue_type, s.source, s.updated_at FROM {} task_script s ON s.task_id = v.n_task_id AND \
         s.version = v.n_version WHERE s.tenant_id = v.n_tenant_id",
        d.batch(1, &[("task_id", Kind::Big), ("version", Kind::Big), ("tenant_id", Kind::Big)])
    ),
);

const READ: &str = "read scripts";

/// A version of a script as people see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptVersion {
    /// Its number, from 1.
    pub version: i64,
    /// What it is for.
    pub glue_type: GlueType,
    /// What its author said of it.
    pub remark: String,
    /// Who wrote it.
    pub author: String,
    /// When, epoch ms.
    pub updated_at: i64,
}

from_row!(ScriptVersion { version, glue_type, remark, author, updated_at });

#[async_trait]
impl ScriptStore for SqlStore {
    async fn scripts(&self, wanted: &[(TaskId, i64, TenantId)]) -> Result<HashMap<(TaskId, i64), Script>> {
        let wanted = &wanted[..wanted.len().min(SCRIPTS_AT_ONCE)];
        let found: Vec<(TaskId, i64, GlueType, String, i64)> =
            self.query(READ, &SCRIPTS, [to_json(READ, wanted)?.into()]).await?;
        let script = |(task, version, glue_type, source, updated_at)| {
            ((task, version), Script { glue_type, source, updated_at })
        };
        Ok(found.into_iter().map(script).collect())
    }
}

impl SqlStore {
    /// The versions that are kept of a task's script, the newest first, without their texts.
    pub async fn script_versions(&self, tenant_id: TenantId, task_id: TaskId) -> Result<Vec<ScriptVersion>> {
        let read = sql!(
            "SELECT version, glue_type, remark, author, updated_at FROM task_script WHERE task_id = {1} AND tenant_id = {2} \
             ORDER BY version DESC LIMIT {3}"
        );
        self.query(READ, &read, [task_id.into(), tenant_id.into(), (GLUE_VERSIONS_MAX as u64).into()]).await
    }

    /// The text of a version.
    pub async fn script_source(&self, tenant_id: TenantId, task_id: TaskId, version: i64) -> Result<Option<String>> {
        let found = self.scripts(&[(task_id, version, tenant_id)]).await?;
        Ok(found.into_values().next().map(|script| script.source))
    }
}

/// Writes what becomes of scripts; the rows of their tasks are held by the change that they are part of.
pub(super) async fn write_scripts(tx: &Transaction<'_>, edits: &[ScriptEdit]) -> Result<()> {
    for ScriptEdit { task_id, tenant_id, new } in edits {
        let whose = || [(*task_id).into(), (*tenant_id).into()];
        let last = sql!(
            "SELECT version, updated_at FROM task_script WHERE task_id = {1} AND tenant_id = {2} ORDER BY version DESC LIMIT 1"
        );
        let last: Vec<(i64, i64)> = tx.query(&last, whose()).await?;
        let (mut version, mut at) = last.first().copied().unwrap_or_default();
        // More than are kept need not be written.
        for script in &new[new.len().saturating_sub(GLUE_VERSIONS_MAX)..] {
            (version, at) = (version + 1, script.updated_at.max(at + 1));
            insert(tx, (*task_id, *tenant_id, version, at), script).await?;
        }
        let runs = if new.is_empty() { 0 } else { version };
        let set = sql!("UPDATE task SET script = {3} WHERE id = {1} AND tenant_id = {2}");
        tx.execute(&set, [(*task_id).into(), (*tenant_id).into(), runs.into()]).await?;
        let prune = sql!("DELETE FROM task_script WHERE task_id = {1} AND tenant_id = {2} AND version <= {3}");
        let old = version - GLUE_VERSIONS_MAX as i64;
        tx.execute(&prune, [(*task_id).into(), (*tenant_id).into(), old.into()]).await?;
    }
    Ok(())
}

async fn insert(
    tx: &Transaction<'_>,
    (task_id, tenant_id, version, at): (TaskId, TenantId, i64, i64),
    script: &NewScript,
) -> Result<()> {
    let insert = sql!(
        "INSERT INTO task_script (task_id, version, tenant_id, glue_type, source, remark, author, updated_at) VALUES ({1}, {2}, \
         {3}, {4}, {5}, {6}, {7}, {8})"
    );
    let NewScript { glue_type, source, remark, author, .. } = script;
    let values = [
        task_id.into(),
        version.into(),
        tenant_id.into(),
        to_word(READ, glue_type)?.into(),
        clean(source).into(),
        clean(remark).into(),
        clean(author).into(),
        at.into(),
    ];
    tx.execute(&insert, values).await.map(drop)
}

/// Forgets those of a task that is being deleted.
pub(super) async fn forget_scripts(tx: &Transaction<'_>, tenant_id: TenantId, task_id: TaskId) -> Result<()> {
    let delete = sql!("DELETE FROM task_script WHERE task_id = {1} AND tenant_id = {2}");
    tx.execute(&delete, [task_id.into(), tenant_id.into()]).await.map(drop)
}
