//! Scripts.

use super::job::{ForeignGlue, ForeignJob};
use super::words::{BEAN, GLUE_TYPES};
use crate::domain::import::{GLUE_BYTES_MAX, GLUE_VERSIONS_MAX, GlueVersion, ImportGlue, Uncarried};

/// Whether a kind of job is a script.
pub fn is_script(glue_type: &str) -> bool {
    !glue_type.is_empty() && glue_type != BEAN
}

/// What is to be said of a job's script, which is brought along only where that is asked for.
pub fn uncarried(job: &ForeignJob, with_scripts: bool) -> Vec<Uncarried> {
    let (kind, source) = (job.glue_type.as_str(), &job.glue_source);
    let mut said = Vec::new();
    if !is_script(kind) {
        if !source.is_empty() {
            let why = "a job of the kind BEAN does not run a script";
            said.push(Uncarried::note("glue_source", source, why, ""));
        }
        return said;
    }
    let remedy = "Make a handler of it, and start the task.";
    if !GLUE_TYPES.contains(&kind) {
        said.push(Uncarried::stops("glue_type", kind, format!("it is none of {}", GLUE_TYPES.join(", ")), remedy));
    } else if !with_scripts {
        let why = "scripts are brought along only with --with-scripts: its text is in the document of the import";
        said.push(Uncarried::stops("glue_type", kind, why, remedy));
    } else if source.trim().is_empty() {
        said.push(Uncarried::stops("glue_source", source, "the script is empty", remedy));
    }
    if source.len() > GLUE_BYTES_MAX {
        let why = format!("it has more than {GLUE_BYTES_MAX} bytes, which no script may have");
        let remedy = "Shorten it, or make a handler of it, and start the task.";
        said.push(Uncarried::stops("glue_source", source, why, remedy));
    }
    said
}

/// The script of a job with its earlier versions, which are given by id; none of a job that is no script. What does not fit is
/// named in `uncarried`.
pub fn of(job: &ForeignJob, history: &[&ForeignGlue], uncarried: &mut Vec<Uncarried>) -> Option<ImportGlue> {
    if !is_script(&job.glue_type) {
        return None;
    }
    let mut versions = Vec::new();
    for row in history {
        if row.glue_source.len() > GLUE_BYTES_MAX {
            let why = format!("version {} of the script has more than {GLUE_BYTES_MAX} bytes", row.id);
            uncarried.push(Uncarried::note("xxl_job_logglue.glue_source", &row.glue_source, why, ""));
        } else {
            let (source, remark) = (row.glue_source.clone(), row.glue_remark.clone());
            versions.push(GlueVersion { source, remark, at: row.add_time.unwrap_or(0) });
        }
    }
    // Saving writes the same text to both tables.
    let is_last = versions.last().is_some_and(|last| last.source == job.glue_source);
    if !is_last && job.glue_source.len() <= GLUE_BYTES_MAX {
        let (source, remark) = (job.glue_source.clone(), job.glue_remark.clone());
        versions.push(GlueVersion { source, remark, at: job.glue_updatetime.unwrap_or(0) });
    }
    let surplus = versions.len().saturating_sub(GLUE_VERSIONS_MAX);
    versions.drain(..surplus);
    Some(ImportGlue { glue_type: job.glue_type.clone(), versions })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::import::Effect;

    fn script(source: &str) -> ForeignJob {
        let (glue_type, glue_source) = ("GLUE_SHELL".to_owned(), source.to_owned());
        ForeignJob { id: 7, glue_type, glue_source, glue_updatetime: Some(9), ..ForeignJob::default() }
    }

    fn version(id: i64, source: &str) -> ForeignGlue {
        ForeignGlue { id, job_id: 7, glue_source: source.to_owned(), add_time: Some(id), ..ForeignGlue::default() }
    }

    fn sources(job: &ForeignJob, history: &[ForeignGlue]) -> (Vec<String>, Vec<Uncarried>) {
        let mut uncarried = Vec::new();
        let glue = of(job, &history.iter().collect::<Vec<_>>(), &mut uncarried).unwrap();
        (glue.versions.into_iter().map(|version| version.source).collect(), uncarried)
    }

    #[test]
    fn the_version_that_runs_is_the_last() {
        let history = [version(1, "a"), version(2, "b")];
        assert_eq!(sources(&script("b"), &history).0, ["a", "b"]);
        assert_eq!(sources(&script("c"), &history).0, ["a", "b", "c"]);
        // An older one that was taken back is the newest again.
        assert_eq!(sources(&script("a"), &history).0, ["a", "b", "a"]);
        assert_eq!(of(&ForeignJob { glue_type: BEAN.to_owned(), ..script("a") }, &[], &mut Vec::new()), None);
    }

    #[test]
    fn the_newest_thirty_are_kept() {
        let history: Vec<_> = (1..=40).map(|id| version(id, &id.to_string())).collect();
        let (sources, _) = sources(&script("now"), &history);
        assert_eq!((sources.len(), sources[0].as_str(), sources[29].as_str()), (30, "12", "now"));
    }

    #[test]
    fn what_is_too_large_is_named() {
        let large = "x".repeat(GLUE_BYTES_MAX + 1);
        let (kept, uncarried) = sources(&script("now"), &[version(1, &large)]);
        assert_eq!((kept, uncarried.len()), (vec!["now".to_owned()], 1));
        let said = super::uncarried(&script(&large), true);
        assert!(
            said.iter().any(|one| one.field == "glue_source" && one.why.starts_with("it has more than 60000 bytes"))
        );
    }

    #[test]
    fn a_script_comes_along_where_that_is_asked_for() {
        let said = |job: &ForeignJob, with_scripts| -> Vec<(String, Effect)> {
            uncarried(job, with_scripts).into_iter().map(|one| (one.field, one.effect)).collect()
        };
        let stops = |field: &str| vec![(field.to_owned(), Effect::Stops)];
        assert_eq!(said(&script("echo"), true), []);
        assert_eq!(said(&script("echo"), false), stops("glue_type"));
        assert_eq!(said(&script(" "), true), stops("glue_source"));
        let unknown = ForeignJob { glue_type: "GLUE_PERL".to_owned(), ..script("echo") };
        assert_eq!(said(&unknown, true), stops("glue_type"));
    }
}
