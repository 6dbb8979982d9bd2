//! The next 24 hours by the minute, over all tasks that the caller may see.

use super::Api;
use super::forecasts::FireForecast;
use super::input::Query;
use super::operation::{Operation, get};
use super::problem::Problem;
use crate::auth::Caller;
use crate::domain::Permission;
use actix_web::{HttpResponse, web};
use serde::Deserialize;
use utoipa::IntoParams;

/// Operations of this resource.
pub fn operations() -> Vec<Operation> {
    vec![
        get(
            "/fires/forecast",
            "forecast_fires",
            Permission::TasksRead,
            "Number of fires in each minute of the next 24 hours",
        )
        .says(
            "Counted from the schedules of started tasks, with calendars, validity and `max_fires` applied. Fires that \
             were cancelled in advance count; manual runs, children, retries and backfills do not. At most 20,000 \
             tasks are counted. The response may be 30 s old.",
        )
        .query::<ForecastQuery>()
        .answers::<FireForecast>(200, "The forecast")
        .to(read),
    ]
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
struct ForecastQuery {
    /// Only in this tenant (name).
    tenant: Option<String>,
}

async fn read(api: web::Data<Api>, caller: Caller, query: Query<ForecastQuery>) -> Result<HttpResponse, Problem> {
    const NEEDS: Permission = Permission::TasksRead;
    let tenant_id = match &query.0.tenant {
        Some(tenant) => Some(api.tenant(&caller, NEEDS, tenant).await?.id),
        None => None,
    };
    let asked = (caller.access_scope(NEEDS), tenant_id);
    let answer = api.forecasts.answer(&api.store, asked, api.engine.clock.now_ms()).await?;
    Ok(HttpResponse::Ok().json(&*answer))
}
