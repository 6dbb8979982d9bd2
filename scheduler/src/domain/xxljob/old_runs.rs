//! Runs of an xxl-job that have ended, as an import takes them.

use super::ForeignLog;
use crate::domain::import::{ImportRun, RUN_MESSAGE_CHARS_MAX, RunEnd, origin};
use std::collections::HashMap;

/// What xxl-job says of what is well.
const WELL: i64 = 200;

/// What it says of a run that took too long.
const TOOK_TOO_LONG: i64 = 502;

/// A run of which nobody has said for so long how it ended has not ended well, ms.
const UNTOLD_MS: i64 = 86_400_000;

/// Reads runs one after the other, by their ids. Those of one job in one second, which is as exactly as times are kept there, are
/// some milliseconds apart, the same ones each time.
#[derive(Debug)]
pub struct OldRuns {
    source: String,
    now: i64,
    /// Second and number of the last one of each job.
    last: HashMap<i64, (i64, i64)>,
}

impl OldRuns {
    /// Of that source, read at `now` (epoch ms).
    #[must_use]
    pub fn new(source: &str, now: i64) -> Self {
        Self { source: source.to_owned(), now, last: HashMap::new() }
    }

    /// The run; `None` if it has not ended, or never began.
    pub fn read(&mut self, log: &ForeignLog) -> Option<ImportRun> {
        let second = log.trigger_time?;
        let number = match self.last.get(&log.job_id) {
            Some((of, number)) if *of == second => number + 1,
            _ => 0,
        };
        self.last.insert(log.job_id, (second, number));
        let end = self.end(log, second)?;
        let message = if end == RunEnd::NotSent { &log.trigger_msg } else { &log.handle_msg };
        let fire_time = second + number;
        Some(ImportRun {
            origin: origin(&self.source, log.job_id),
            fire_time,
            finished_at: log.handle_time.unwrap_or(fire_time).max(fire_time),
            end,
            message: plain(message),
        })
    }

    fn end(&self, log: &ForeignLog, fired_at: i64) -> Option<RunEnd> {
        match (log.trigger_code, log.handle_code) {
            (_, WELL) => Some(RunEnd::Succeeded),
            (_, TOOK_TOO_LONG) => Some(RunEnd::TimedOut),
            (WELL | 0, 0) => (self.now - fired_at > UNTOLD_MS).then_some(RunEnd::Unknown),
            (_, 0) => Some(RunEnd::NotSent),
            _ => Some(RunEnd::Failed),
        }
    }
}

/// Messages are written for a page: lines and emphasis are tags.
fn plain(message: &str) -> String {
    let mut text = String::with_capacity(message.len());
    let mut rest = message;
    while let Some((before, tag)) = rest.split_once('<') {
        text.push_str(before);
        match tag.split_once('>') {
            Some((name, after)) if is_tag(name) => {
                if name.starts_with("br") {
                    text.push('\n');
                }
                rest = after;
            }
            _ => {
                text.push('<');
                rest = tag;
            }
        }
    }
    text.push_str(rest);
    text.trim().chars().filter(|c| *c != '\0').take(RUN_MESSAGE_CHARS_MAX).collect()
}

fn is_tag(name: &str) -> bool {
    let word = name.trim_start_matches('/').split([' ', '/']).next().unwrap_or_default();
    ["br", "span", "p", "b"].contains(&word)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_767_225_600_000;

    fn log(trigger_code: i64, handle_code: i64) -> ForeignLog {
        let (trigger_time, handle_time) = (Some(SECOND), Some(SECOND + 3_000));
        ForeignLog { id: 1, job_id: 7, trigger_time, handle_time, trigger_code, handle_code, ..ForeignLog::default() }
    }

    #[test]
    fn each_end_is_one_of_ours() {
        let read = |now, codes: (i64, i64)| OldRuns::new("old", now).read(&log(codes.0, codes.1)).map(|run| run.end);
        for (codes, end) in [
            ((200, 200), RunEnd::Succeeded),
            ((200, 500), RunEnd::Failed),
            ((200, 502), RunEnd::TimedOut),
            ((500, 0), RunEnd::NotSent),
        ] {
            assert_eq!(read(SECOND, codes), Some(end), "{codes:?}");
        }
        assert_eq!(read(SECOND + UNTOLD_MS, (200, 0)), None, "it may go on");
        assert_eq!(read(SECOND + UNTOLD_MS + 1, (200, 0)), Some(RunEnd::Unknown));
        let unborn = ForeignLog { trigger_time: None, ..log(0, 0) };
        assert_eq!(OldRuns::new("old", SECOND).read(&unborn), None);
    }

    #[test]
    fn runs_of_one_second_differ() {
        let mut runs = OldRuns::new("old", SECOND);
        let mut at = |job_id, second| {
            let run = runs.read(&ForeignLog { job_id, trigger_time: Some(second), ..log(200, 200) });
            run.map(|run| (run.origin, run.fire_time - SECOND))
        };
        let of = |job: i64, ms| Some((format!("old#{job}"), ms));
        assert_eq!([at(7, SECOND), at(8, SECOND), at(7, SECOND)], [of(7, 0), of(8, 0), of(7, 1)]);
        assert_eq!([at(7, SECOND + 1_000), at(8, SECOND)], [of(7, 1_000), of(8, 1)]);
        let at_once = ForeignLog { job_id: 8, handle_time: Some(SECOND), ..log(200, 200) };
        let run = runs.read(&at_once).unwrap();
        assert_eq!((run.fire_time, run.finished_at), (SECOND + 2, SECOND + 2), "it does not end before it begins");
    }

    #[test]
    fn messages_are_text() {
        assert_eq!(plain("<br><span style=\"color:#00c0ef;\" >  well </span><br/>1 < 2 <x>"), "well \n1 < 2 <x>");
        assert_eq!(plain(&"x".repeat(5_000)).len(), RUN_MESSAGE_CHARS_MAX);
        assert_eq!(plain("a\0b <"), "ab <");
    }
}
