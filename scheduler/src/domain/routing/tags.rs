//! The condition that a task puts on executors' tags. Tags are whole words, compared exactly: no
//! substrings, no folding of case, no trimming.

use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::fmt;

/// Which tags an executor must and must not have. Every part must hold; an empty part asks for
/// nothing. An unknown part is refused rather than ignored: it would misroute runs.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Tags {
    /// It has each of these.
    pub all: Vec<String>,
    /// It has at least one of these.
    pub any: Vec<String>,
    /// It has not one of these.
    pub none: Vec<String>,
}

impl Tags {
    /// The condition that an executor has each of `tags`.
    #[must_use]
    pub fn all_of(tags: &[String]) -> Self {
        Self { all: tags.to_vec(), ..Self::default() }
    }

    /// Whether an executor with these tags meets the condition.
    #[must_use]
    pub fn fits(&self, tags: &HashSet<String>) -> bool {
        self.all.iter().all(|tag| tags.contains(tag))
            && (self.any.is_empty() || self.any.iter().any(|tag| tags.contains(tag)))
            && !self.none.iter().any(|tag| tags.contains(tag))
    }

    /// Whether it asks for nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.all.is_empty() && self.any.is_empty() && self.none.is_empty()
    }
}

/// For people: `all of [gpu, eu], none of [spot]`.
impl fmt::Display for Tags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [("all of", &self.all), ("any of", &self.any), ("none of", &self.none)];
        let mut between = "";
        for (words, tags) in parts.into_iter().filter(|(_, tags)| !tags.is_empty()) {
            write!(f, "{between}{words} [{}]", tags.join(", "))?;
            between = ", ";
        }
        if between.is_empty() { f.write_str("no condition") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `all/any/none` against the executor's tags, each a list parted by blanks.
    #[track_caller]
    fn check(condition: [&str; 3], tags: &str, fits: bool) {
        let list = |text: &str| text.split_whitespace().map(ToOwned::to_owned).collect::<Vec<_>>();
        let [all, any, none] = condition.map(list);
        let tags: HashSet<String> = list(tags).into_iter().collect();
        assert_eq!(Tags { all, any, none }.fits(&tags), fits, "{condition:?} against {tags:?}");
    }

    #[test]
    fn each_part_must_hold() {
        check(["", "", ""], "", true);
        check(["", "", ""], "gpu", true);
        check(["gpu", "", ""], "gpu eu", true);
        check(["gpu eu", "", ""], "gpu eu", true);
        check(["gpu eu", "", ""], "gpu", false);
        check(["gpu", "", ""], "", false);
        check(["", "gpu eu", ""], "eu", true);
        check(["", "gpu eu", ""], "us", false);
        check(["", "gpu eu", ""], "", false);
        check(["", "", "spot"], "", true);
        check(["", "", "spot old"], "gpu", true);
        check(["", "", "spot old"], "gpu old", false);
        check(["gpu", "eu us", "spot"], "gpu us", true);
        check(["gpu", "eu us", "spot"], "gpu us spot", false);
        check(["gpu", "eu us", "spot"], "gpu", false);
        check(["gpu", "", "gpu"], "gpu", false);
        check(["gpu gpu", "", ""], "gpu", true);
    }

    #[test]
    fn tags_are_compared_whole_and_exactly() {
        check(["gpu", "", ""], "gpu-large", false);
        check(["gpu-large", "", ""], "gpu", false);
        check(["GPU", "", ""], "gpu", false);
        check(["", "gpu", ""], "gpu2", false);
        check(["", "", "gpu"], "gpu-large", true);
        let empty = Tags { all: vec![String::new()], ..Tags::default() };
        assert!(!empty.fits(&HashSet::from(["gpu".to_owned()])));
    }

    #[test]
    fn conditions_read_and_write() {
        let tags: Tags = serde_json::from_str(r#"{"all":["gpu","eu"],"none":["spot"]}"#).unwrap();
        assert_eq!(tags.to_string(), "all of [gpu, eu], none of [spot]");
        assert_eq!(Tags::default().to_string(), "no condition");
        assert!(Tags::default().is_empty() && !tags.is_empty());
        assert!(serde_json::from_str::<Tags>(r#"{"not":["spot"]}"#).is_err());
    }
}
