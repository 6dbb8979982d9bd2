//! Scripts of tasks: those of the simulator have none.

use super::ModelStore;
use async_trait::async_trait;
use carillon::domain::xxljob::Script;
use carillon::domain::{TaskId, TenantId};
use carillon::store::{Result, ScriptStore};
use std::collections::HashMap;

#[async_trait]
impl ScriptStore for ModelStore {
    async fn scripts(&self, _: &[(TaskId, i64, TenantId)]) -> Result<HashMap<(TaskId, i64), Script>> {
        self.call("read scripts", |_, _| Ok(HashMap::new())).await
    }
}
