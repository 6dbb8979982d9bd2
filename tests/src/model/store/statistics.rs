//! Statistics: the model has none. The conformance suite holds those of the databases against the
//! rows themselves.

use super::ModelStore;
use async_trait::async_trait;
use carillon::domain::TaskId;
use carillon::domain::statistics::Grain;
use carillon::store::{Counted, Counting, Fence, Part, Result, StatisticsStore};

#[async_trait]
impl StatisticsStore for ModelStore {
    async fn list_minutes(&self, _fence: Fence, _since: i64, _until: i64) -> Result<bool> {
        Ok(true)
    }

    async fn to_count(&self, _now: i64, _limit: u64) -> Result<Vec<Counting>> {
        Ok(Vec::new())
    }

    async fn tasks_fired(&self, _minute: i64) -> Result<Vec<(TaskId, u64)>> {
        Ok(Vec::new())
    }

    async fn tasks_open(&self, _minute: i64) -> Result<Vec<(TaskId, u64)>> {
        Ok(Vec::new())
    }

    async fn open_runs(&self, _minute: i64) -> Result<u64> {
        Ok(0)
    }

    async fn count_tasks(&self, _fence: Fence, _minute: i64, _tasks: &[TaskId]) -> Result<bool> {
        Ok(true)
    }

    async fn sum_minute(&self, _fence: Fence, _minute: i64) -> Result<bool> {
        Ok(true)
    }

    async fn rows_of_hour(&self, _hour: i64) -> Result<u64> {
        Ok(0)
    }

    async fn sum_task_hours(&self, _fence: Fence, _hour: i64, _part: Part) -> Result<bool> {
        Ok(true)
    }

    async fn sum_tenant_hours(&self, _fence: Fence, _hour: i64) -> Result<bool> {
        Ok(true)
    }

    async fn counted(&self, _fence: Fence, _of: &Counting, _found: Counted, _now: i64) -> Result<bool> {
        Ok(true)
    }

    async fn purge_figures(&self, _grain: Grain, _before: i64, _limit: u64) -> Result<bool> {
        Ok(false)
    }
}
