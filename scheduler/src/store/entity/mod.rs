//! Tables of what people manage, as sea-orm knows them: one file each, with the columns that are used.

pub mod api_token;
pub mod app;
pub mod app_key;
pub mod calendar;
pub mod calendar_version;
pub mod executor_rule;
pub mod executor_source;
pub mod handler;
pub mod maintenance_window;
pub mod role;
pub mod role_grant;
pub mod session;
pub mod setting;
pub mod sign_in_code;
pub mod task;
pub mod tenant;
pub mod user_account;

use crate::domain::AppId;
use crate::domain::access::PermissionSet;
use crate::domain::calendar::CalendarSpec;
use crate::domain::rules::WindowAction;
use sea_orm::{ColIdx, DbErr, QueryResult, TryGetError, TryGetable};
use serde::Deserialize as _;
use serde::de::value::StrDeserializer;

/// Reads a column of JSON text.
fn json<I: ColIdx, T: serde::de::DeserializeOwned>(row: &QueryResult, at: I) -> Result<T, TryGetError> {
    let text = String::try_get_by(row, at)?;
    serde_json::from_str(&text).map_err(|error| DbErr::Type(error.to_string()).into())
}

impl TryGetable for PermissionSet {
    /// Words of a newer version say nothing to this one.
    fn try_get_by<I: ColIdx>(row: &QueryResult, at: I) -> Result<Self, TryGetError> {
        let words: Vec<String> = json(row, at)?;
        Ok(Self::known(words.iter().map(String::as_str)))
    }
}

impl TryGetable for CalendarSpec {
    fn try_get_by<I: ColIdx>(row: &QueryResult, at: I) -> Result<Self, TryGetError> {
        json(row, at)
    }
}

impl TryGetable for WindowAction {
    /// A word of a later release postpones: nothing runs in the window, and nothing is lost. As an error it would keep the
    /// node from reading any rule.
    fn try_get_by<I: ColIdx>(row: &QueryResult, at: I) -> Result<Self, TryGetError> {
        let word = String::try_get_by(row, at)?;
        Ok(Self::deserialize(StrDeserializer::<serde_json::Error>::new(&word)).unwrap_or_else(|_| {
            tracing::error!(action = word, "a maintenance window has an action of a later release; here it postpones");
            Self::Postpone
        }))
    }
}

/// Ids in a column of JSON text.
pub struct Ids(pub Vec<AppId>);

impl TryGetable for Ids {
    fn try_get_by<I: ColIdx>(row: &QueryResult, at: I) -> Result<Self, TryGetError> {
        json(row, at).map(Self)
    }
}
