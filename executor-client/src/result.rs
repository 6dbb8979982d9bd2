//! The result of a handler.

use crate::TaskError;
use carillon_protocol::TEXT_BYTES_MAX;
use serde::Serialize;

/// What a handler returns on success: a text shown with the run. It is cut at 16 KiB.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Output(String);

impl Output {
    /// No output.
    pub fn none() -> Self {
        Self::default()
    }

    /// A text.
    pub fn text(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// A value as JSON.
    ///
    /// # Errors
    /// When the value cannot be written as JSON.
    pub fn json<T: Serialize + ?Sized>(value: &T) -> Result<Self, TaskError> {
        Ok(Self(serde_json::to_string(value)?))
    }

    pub(crate) fn into_text(self) -> String {
        self.0
    }
}

impl From<()> for Output {
    fn from((): ()) -> Self {
        Self::none()
    }
}

/// Cuts `text` to what a result may carry, at a character border.
pub(crate) fn cut(mut text: String) -> String {
    const MARK: &str = "…";
    if text.len() > TEXT_BYTES_MAX {
        text.truncate(text.floor_char_boundary(TEXT_BYTES_MAX - MARK.len()));
        text.push_str(MARK);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_at_a_character() {
        let cut = cut("é".repeat(TEXT_BYTES_MAX));
        assert!(cut.len() <= TEXT_BYTES_MAX);
        assert!(cut.ends_with('…'));
        assert_eq!(super::cut("short".to_owned()), "short");
    }
}
