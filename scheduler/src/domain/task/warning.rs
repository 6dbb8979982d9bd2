//! What a definition may say, but hardly means.

use super::{ScheduleKind, TaskSpec};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Something that is allowed, but may not be intended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum TaskWarning {
    /// `params` begins like JSON, but cannot be read as JSON.
    ParamsNotJson,
    /// It is started, but has neither a schedule nor parents.
    NothingFiresIt,
}

impl TaskWarning {
    /// The sentence.
    #[must_use]
    pub fn message(self) -> &'static str {
        match self {
            Self::ParamsNotJson => "`params` looks like JSON but is not: the handler gets the text unchanged",
            Self::NothingFiresIt => {
                "`started` has no effect without a schedule or parents: the task only runs manually"
            }
        }
    }
}

impl TaskSpec {
    /// What is odd about it; `started` says whether it is to fire by itself.
    #[must_use]
    pub fn warnings(&self, started: bool) -> Vec<TaskWarning> {
        let params = self.params.trim_start();
        let looks_like_json = params.starts_with(['{', '[']);
        let is_broken = looks_like_json && serde_json::from_str::<serde::de::IgnoredAny>(params).is_err();
        let is_idle = started && self.schedule == ScheduleKind::None && self.parents.is_empty();
        let warnings = [(is_broken, TaskWarning::ParamsNotJson), (is_idle, TaskWarning::NothingFiresIt)];
        warnings.into_iter().filter(|(holds, _)| *holds).map(|(_, warning)| warning).collect()
    }
}
