//! The settings that the node goes by.

use super::Api;
use super::input::Page;
use super::operation::{Operation, get};
use super::problem::Problem;
use crate::domain::Permission;
use actix_web::{HttpResponse, web};
use serde::Serialize;
use utoipa::ToSchema;

/// What can be done.
pub fn operations() -> Vec<Operation> {
    vec![
        get("/settings", "list_settings", Permission::SettingsRead, "The settings that this node goes by")
            .says("Of secrets only whether they are set.")
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

async fn list(api: web::Data<Api>) -> Result<HttpResponse, Problem> {
    let setting = |(name, value): &(String, String)| Setting { name: name.clone(), value: value.clone() };
    Ok(HttpResponse::Ok().json(Page::whole(api.settings.iter().map(setting).collect())))
}
