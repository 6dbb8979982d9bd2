//! Finding a run by its id.

use crate::api::Api;
use crate::api::input::parse_id;
use crate::api::problem::Problem;
use crate::auth::Caller;
use crate::domain::{Permission, Refusal};
use crate::store::LogView;

/// The log of that id, where the caller holds the permission.
pub async fn find(api: &Api, caller: &Caller, needs: Permission, id: &str) -> Result<LogView, Problem> {
    let id = parse_id("id", id)?;
    let found = api.store.log(&caller.access_scope(needs), id).await?;
    found.ok_or_else(|| Refusal::not_found("task log", id).into())
}
