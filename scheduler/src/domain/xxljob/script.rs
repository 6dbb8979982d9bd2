//! What an executor of xxl-job runs in place of a handler, if the task is a script.

use super::words::BEAN;
use crate::domain::choice::Enumerated;
use crate::domain::import::GLUE_BYTES_MAX;
use crate::domain::{FieldError, FieldRefusal};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Longest remark, characters, as there.
pub const REMARK_CHARS_MAX: usize = 128;

/// What the runs of a task are, in xxl-job's words. Its releases 2.2.0 to 3.4.2 know all of them, but for `GLUE_PYTHON2`, which is
/// of 3.2.0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum GlueType {
    /// A call of the task's handler: no script.
    #[default]
    Bean,
    /// A class of Groovy, which the executor loads into its own process.
    GlueGroovy,
    /// For `bash`.
    GlueShell,
    /// For `python3`; up to 3.1.1 for `python`.
    GluePython,
    /// For `python`; from 3.2.0 on.
    #[serde(rename = "GLUE_PYTHON2")]
    GluePython2,
    /// For `php`.
    GluePhp,
    /// For `node`.
    #[serde(rename = "GLUE_NODEJS")]
    GlueNodeJs,
    /// For `powershell`; from 3.4.2 on for `pwsh`.
    #[serde(rename = "GLUE_POWERSHELL")]
    GluePowerShell,
}

impl Enumerated for GlueType {
    const ALL: &'static [(Self, &'static str)] = &[
        (Self::Bean, "A call of the task's handler"),
        (Self::GlueGroovy, "A class of Groovy, in the executor's process"),
        (Self::GlueShell, "For `bash`"),
        (Self::GluePython, "For `python3`; up to 3.1.1 `python`"),
        (Self::GluePython2, "For `python`; from 3.2.0 on"),
        (Self::GluePhp, "For `php`"),
        (Self::GlueNodeJs, "For `node`"),
        (Self::GluePowerShell, "For `powershell`; from 3.4.2 on `pwsh`"),
    ];
}

impl GlueType {
    /// What that word says; blanks around it do not count, its case does.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.iter().map(|(kind, _)| *kind).find(|kind| kind.word() == word.trim())
    }

    /// Whether it is a script.
    #[must_use]
    pub fn is_script(self) -> bool {
        self != Self::Bean
    }
}

/// A script as an executor is sent it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script {
    /// What it is for; never [`GlueType::Bean`].
    pub glue_type: GlueType,
    /// The text.
    pub source: String,
    /// When it was written, epoch ms: executors keep a version by it.
    pub updated_at: i64,
}

/// What is wrong with a script that somebody wrote, field by field.
#[must_use]
pub fn check_script(glue_type: GlueType, source: &str, remark: &str) -> Vec<FieldError> {
    let mut wrong = Vec::new();
    if glue_type.is_script() && source.trim().is_empty() {
        let (other, value) = ("glue_type".to_owned(), glue_type.word());
        wrong.push(FieldError::new("source", FieldRefusal::RequiredFor { other, value }));
    }
    if !glue_type.is_script() && !source.is_empty() {
        let other = format!("glue_type: {BEAN}");
        wrong.push(FieldError::new("source", FieldRefusal::NotWith { other }));
    }
    if source.len() > GLUE_BYTES_MAX {
        wrong.push(FieldError::new("source", FieldRefusal::TooManyBytes { most: GLUE_BYTES_MAX as i64 }));
    }
    if remark.chars().count() > REMARK_CHARS_MAX {
        wrong.push(FieldError::new("remark", FieldRefusal::TooLong { most: REMARK_CHARS_MAX as i64 }));
    }
    for (field, text) in [("source", source), ("remark", remark)] {
        if text.contains('\0') {
            wrong.push(FieldError::new(field, FieldRefusal::Nul));
        }
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::refusal::Coded as _;
    use crate::domain::xxljob::GLUE_TYPES;

    #[test]
    fn its_words_are_those_of_executors() {
        let words: Vec<String> = GlueType::ALL.iter().map(|(kind, _)| kind.word()).collect();
        assert_eq!(words, GLUE_TYPES);
        for (kind, _) in GlueType::ALL {
            assert_eq!(GlueType::parse(&format!(" {} ", kind.word())), Some(*kind));
        }
        assert_eq!((GlueType::parse("glue_shell"), GlueType::parse("")), (None, None));
    }

    #[test]
    fn what_cannot_be_kept_is_refused() {
        let check = |glue_type, source: &str, remark: &str| -> Vec<(String, &'static str)> {
            check_script(glue_type, source, remark)
                .into_iter()
                .map(|one| (one.field.clone(), one.refusal.code()))
                .collect()
        };
        let shell = GlueType::GlueShell;
        let said = |field: &str, code| vec![(field.to_owned(), code)];
        assert_eq!(check(shell, &"x".repeat(GLUE_BYTES_MAX), &"x".repeat(REMARK_CHARS_MAX)), []);
        assert_eq!(check(GlueType::Bean, "", "by hand"), []);
        assert_eq!(check(shell, " \n", ""), said("source", "required_for"));
        assert_eq!(check(GlueType::Bean, "x", ""), said("source", "not_with"));
        // Bytes count, not characters.
        assert_eq!(check(shell, &"\u{4e2d}".repeat(GLUE_BYTES_MAX / 3 + 1), ""), said("source", "too_many_bytes"));
        assert_eq!(check(shell, "x", &"x".repeat(REMARK_CHARS_MAX + 1)), said("remark", "too_long"));
        assert_eq!(check(shell, "x\0", ""), said("source", "nul"));
        assert_eq!(check(shell, "x", "\0"), said("remark", "nul"));
    }
}
