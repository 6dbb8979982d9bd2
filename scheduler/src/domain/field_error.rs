//! What is wrong with one field of something that was given: the form or the command shows it beside the field.

use std::fmt;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Why a field is refused. The message says what is wrong and what is allowed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error, ToSchema)]
pub struct FieldError {
    /// Name of the field as it was given, with the place in a list: `excluded_days[3]`.
    pub field: String,
    /// For people.
    pub message: String,
}

impl FieldError {
    /// `message` about `field`.
    pub fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { field: field.into(), message: message.into() }
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.message)
    }
}
