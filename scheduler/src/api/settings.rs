//! The settings in effect on this node.

use super::Api;
use super::input::{AfterQuery, Page, Query, limit};
use super::operation::{Operation, get};
use super::problem::Problem;
use crate::domain::Permission;
use actix_web::{HttpResponse, web};
use serde::Serialize;
use utoipa::ToSchema;

/// Operations of this resource.
pub fn operations() -> Vec<Operation> {
    vec![
        get("/settings", "list_settings", Permission::SettingsRead, "The settings in effect on this node")
            .says("For secrets, only whether they are set.")
            .query::<AfterQuery>()
            .answers_page::<Setting>("The settings, by name")
            .to(list),
    ]
}

/// A setting.
#[derive(Serialize, ToSchema)]
struct Setting {
    /// `section.name`, as in conf/application.toml.
    name: String,
    /// Its value.
    value: String,
}

async fn list(api: web::Data<Api>, query: Query<AfterQuery>) -> Result<HttpResponse, Problem> {
    let AfterQuery { after, limit: wanted } = query.0;
    let limit = limit(wanted)?;
    let after = after.unwrap_or_default();
    let rest = api.settings.iter().filter(|(name, _)| *name > after).take(limit as usize);
    let items = rest.map(|(name, value)| Setting { name: name.clone(), value: value.clone() }).collect();
    Ok(HttpResponse::Ok().json(Page::new(items, limit, |setting: &Setting| setting.name.clone())))
}
