//! The next ten fires of imported jobs are those of Quartz, whose answers are in `tests/fixtures/quartz`.

use super::ZONE;
use carillon::domain::TaskId;
use carillon::domain::xxljob::{ForeignJob, spec_of};
use carillon_tests::foreign::{CRONS, Release, jobs};
use chrono::{NaiveDateTime, TimeZone as _};
use chrono_tz::Tz;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Where, and after which local time: before changes of the clock, where there are some.
const QUESTIONS: [(&str, &str); 3] = [
    ("Asia/Shanghai", "2026-01-01T00:00:00"),
    ("America/New_York", "2026-03-07T12:00:00"),
    ("Europe/Berlin", "2026-10-24T12:00:00"),
];

/// Where Quartz contradicts itself: in a month of 30 days that ends on a weekday, `31W` is its last day or none, as what was asked
/// before has it. Here it is none.
const DIFFERS: [&str; 1] = ["0 0 1 31W * ?"];

type Question = (String, String, String);

fn file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/quartz/fires.tsv")
}

/// Epoch seconds of the fires by expression, zone and local time.
fn answers() -> BTreeMap<Question, Vec<i64>> {
    let text = std::fs::read_to_string(file()).unwrap();
    let answer = |line: &str| {
        let [cron, zone, after, next]: [&str; 4] = line.split('\t').collect::<Vec<_>>().try_into().unwrap();
        let next = next.split(',').filter(|next| !next.is_empty()).map(|next| next.parse().unwrap()).collect();
        ((cron.to_owned(), zone.to_owned(), after.to_owned()), next)
    };
    text.lines().map(answer).collect()
}

fn questions() -> BTreeSet<Question> {
    let of = |cron: &&str| QUESTIONS.map(|(zone, after)| ((*cron).to_owned(), zone.to_owned(), after.to_owned()));
    CRONS.iter().flat_map(of).collect()
}

/// `UPDATE_QUARTZ=1` writes down what Quartz is to be asked; `README.md` beside it says how.
#[test]
fn every_expression_was_asked() {
    let known = answers();
    let missing: Vec<Question> = questions().into_iter().filter(|question| !known.contains_key(question)).collect();
    if std::env::var_os("UPDATE_QUARTZ").is_some() {
        let mut text = std::fs::read_to_string(file()).unwrap();
        for (cron, zone, after) in &missing {
            writeln!(text, "{cron}\t{zone}\t{after}\t").unwrap();
        }
        std::fs::write(file(), text).unwrap();
        return;
    }
    assert!(missing.is_empty(), "{missing:?}: see tests/fixtures/quartz/README.md");
}

/// The next ten fires after a local time, epoch seconds; fewer when it ends.
fn fires(job: &ForeignJob, zone: Tz, after: &str) -> Vec<i64> {
    let (spec, _) = spec_of(job, zone);
    let after: NaiveDateTime = after.parse().unwrap();
    let after = zone.from_local_datetime(&after).unwrap().timestamp_millis();
    let schedule = spec.to_schedule(after, TaskId(1)).unwrap();
    schedule.fires(after + 1, i64::MAX, 10).into_iter().map(|fire| fire / 1_000).collect()
}

#[test]
fn imported_jobs_fire_when_quartz_does() {
    let mut wrong = Vec::new();
    for ((cron, zone, after), expected) in answers() {
        let job = ForeignJob {
            schedule_type: Some("CRON".to_owned()),
            schedule_conf: Some(cron.clone()),
            executor_handler: "h".to_owned(),
            ..ForeignJob::default()
        };
        let fires = fires(&job, zone.parse().unwrap(), &after);
        if fires != expected && !DIFFERS.contains(&cron.as_str()) {
            wrong.push(format!("{cron} {zone} {after}: {fires:?}, Quartz: {expected:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_hundred_jobs_fire_when_quartz_does() {
    let answers = answers();
    let (zone, after) = QUESTIONS[0];
    assert_eq!(zone, ZONE.name());
    for release in Release::ALL {
        let mut count = 0;
        for job in jobs(7, release) {
            let cron = match (&job.job_cron, job.schedule_type.as_deref()) {
                (Some(cron), _) if !cron.is_empty() => cron.clone(),
                (None, Some("CRON")) => job.schedule_conf.clone().unwrap(),
                _ => continue,
            };
            if DIFFERS.contains(&cron.as_str()) {
                continue;
            }
            let expected = &answers[&(cron, zone.to_owned(), after.to_owned())];
            assert_eq!(fires(&job, ZONE, after), *expected, "{job:?}");
            count += 1;
        }
        assert!(count > 40, "{count} of a hundred have expressions");
    }
}
