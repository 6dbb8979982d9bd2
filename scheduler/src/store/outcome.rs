//! Results, and runs whose result does not come.

use super::rows::{self, clean, to_json};
use super::{HandedRun, OutcomeStore, Result, Scope, SqlStore, Suspects};
use async_trait::async_trait;
use carillon_protocol::RunResult;

#[async_trait]
impl OutcomeStore for SqlStore {
    async fn succeed(&self, scope: Scope, results: &[&RunResult]) -> Result<u64> {
        const ACTION: &str = "record successes";
        if results.is_empty() {
            return Ok(0);
        }
        let rows: Vec<_> = results
            .iter()
            .map(|result| {
                let output = (!result.output.is_empty()).then(|| clean(&result.output));
                (result.log, result.attempt, result.started_at, result.finished_at, output)
            })
            .collect();
        let values = [to_json(ACTION, &rows)?.into(), scope.tenant_id.into(), scope.app_id.into()];
        self.execute(ACTION, &self.sql.succeed, values).await
    }

    async fn runs(&self, scope: Option<Scope>, ids: &[i64]) -> Result<Vec<HandedRun>> {
        const ACTION: &str = "read runs";
        let ids = to_json(ACTION, &ids.iter().map(|id| [id]).collect::<Vec<_>>())?;
        match scope {
            None => self.query(ACTION, &self.sql.runs, [ids.into()], rows::handed_run).await,
            Some(scope) => {
                let values = [ids.into(), scope.tenant_id.into(), scope.app_id.into()];
                self.query(ACTION, &self.sql.runs_scoped, values, rows::handed_run).await
            }
        }
    }

    async fn record_stale(&self, executor_id: i64, results: &[&RunResult], ids: &[i64], now: i64) -> Result<()> {
        const ACTION: &str = "record stale results";
        let rows: Vec<_> = results
            .iter()
            .zip(ids)
            .map(|(result, id)| {
                (
                    id,
                    result.log,
                    result.attempt,
                    result.status,
                    clean(&result.message),
                    result.started_at,
                    result.finished_at,
                )
            })
            .collect();
        let values = [to_json(ACTION, &rows)?.into(), executor_id.into(), now.into()];
        self.execute(ACTION, &self.sql.stale, values).await.map(drop)
    }

    async fn parents_of(&self, ids: &[i64]) -> Result<Vec<i64>> {
        const ACTION: &str = "find the parents of shards";
        let ids = to_json(ACTION, &ids.iter().map(|id| [id]).collect::<Vec<_>>())?;
        self.query(ACTION, &self.sql.parents_of, [ids.into()], |row| row.try_get_by_index(0)).await
    }

    async fn settle_parents(&self, parents: &[i64], now: i64) -> Result<u64> {
        const ACTION: &str = "settle sharded runs";
        if parents.is_empty() {
            return Ok(0);
        }
        let ids = to_json(ACTION, &parents.iter().map(|id| [id]).collect::<Vec<_>>())?;
        self.execute(ACTION, &self.sql.settle_parents, [ids.into(), now.into()]).await
    }

    async fn open_parents(&self, before: i64, limit: u64) -> Result<Vec<i64>> {
        let values = [before.into(), limit.into()];
        self.query("read open sharded runs", &self.sql.open_parents, values, |row| row.try_get_by_index(0)).await
    }

    async fn stopping(&self, limit: u64) -> Result<Vec<HandedRun>> {
        self.query("read runs that must stop", &self.sql.stopping, [limit.into()], rows::handed_run).await
    }

    async fn shards_to_stop(&self, limit: u64) -> Result<Vec<HandedRun>> {
        self.query("read shards that must stop", &self.sql.shards_to_stop, [limit.into()], rows::handed_run).await
    }

    async fn suspects(&self, which: &Suspects) -> Result<Vec<HandedRun>> {
        const ACTION: &str = "read runs that may be lost";
        let list = |ids: &[i64]| to_json(ACTION, &ids.iter().map(|id| [id]).collect::<Vec<_>>());
        let (sql, ids) = if which.executors.is_empty() {
            (&self.sql.suspects_except, list(&which.except)?)
        } else {
            (&self.sql.suspects_of, list(&which.executors)?)
        };
        let by_dead_nodes = i32::from(!which.or_not_by.is_empty());
        let values = [
            ids.into(),
            which.due_before.into(),
            by_dead_nodes.into(),
            list(&which.or_not_by)?.into(),
            which.limit.into(),
        ];
        self.query(ACTION, sql, values, rows::handed_run).await
    }
}
