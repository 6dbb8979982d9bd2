//! Each column of the table of jobs is changed, and what changes is what the list says.

use super::*;
use crate::domain::import::{ImportDocument, ImportTask};
use crate::domain::xxljob::{ForeignGroup, ForeignJob, ForeignXxlJob, ImportOptions, Releases, document};
use chrono_tz::Tz;
use std::collections::BTreeSet;

type Change = fn(&mut ForeignJob);

/// A value other than that of [`before`] for each column.
const CHANGES: &[(&str, Change)] = &[
    ("id", |job| job.id = 8),
    ("job_group", |job| job.job_group = 2),
    ("job_cron", |job| {
        (job.schedule_type, job.schedule_conf) = (None, None);
        job.job_cron = Some("0 0 1 * * ?".to_owned());
    }),
    ("job_desc", |job| job.job_desc = "a/b".to_owned()),
    ("add_time", |job| job.add_time = Some(1)),
    ("update_time", |job| job.update_time = Some(1)),
    ("author", |job| job.author = "ann".to_owned()),
    ("alarm_email", |job| job.alarm_email = "a@b".to_owned()),
    ("schedule_type", |job| {
        job.schedule_type = Some("FIX_RATE".to_owned());
        job.schedule_conf = Some("30".to_owned());
    }),
    ("schedule_conf", |job| job.schedule_conf = Some("0 0 1 * * ?".to_owned())),
    ("misfire_strategy", |job| job.misfire_strategy = Some("FIRE_ONCE_NOW".to_owned())),
    ("executor_route_strategy", |job| job.executor_route_strategy = "ROUND".to_owned()),
    ("executor_handler", |job| job.executor_handler = "other".to_owned()),
    ("executor_param", |job| job.executor_param = "{}".to_owned()),
    ("executor_block_strategy", |job| job.executor_block_strategy = "COVER_EARLY".to_owned()),
    ("executor_timeout", |job| job.executor_timeout = 3),
    ("executor_fail_retry_count", |job| job.executor_fail_retry_count = 3),
    ("glue_type", |job| job.glue_type = "GLUE_SHELL".to_owned()),
    ("glue_source", |job| job.glue_source = "echo".to_owned()),
    ("glue_remark", |job| job.glue_remark = "first".to_owned()),
    ("glue_updatetime", |job| job.glue_updatetime = Some(1)),
    ("child_jobid", |job| job.child_jobid = "9".to_owned()),
    ("trigger_status", |job| job.trigger_status = 1),
    ("trigger_last_time", |job| job.trigger_last_time = 1),
    ("trigger_next_time", |job| job.trigger_next_time = 1),
];

/// A field of the row that the list above forgets does not compile.
const _: fn(&ForeignJob) = |job| {
    let ForeignJob {
        id: _,
        job_group: _,
        job_cron: _,
        job_desc: _,
        add_time: _,
        update_time: _,
        author: _,
        alarm_email: _,
        schedule_type: _,
        schedule_conf: _,
        misfire_strategy: _,
        executor_route_strategy: _,
        executor_handler: _,
        executor_param: _,
        executor_block_strategy: _,
        executor_timeout: _,
        executor_fail_retry_count: _,
        glue_type: _,
        glue_source: _,
        glue_remark: _,
        glue_updatetime: _,
        child_jobid: _,
        trigger_status: _,
        trigger_last_time: _,
        trigger_next_time: _,
    } = job;
};

fn job(id: i64) -> ForeignJob {
    ForeignJob {
        id,
        job_group: 1,
        job_desc: format!("job {id}"),
        schedule_type: Some("NONE".to_owned()),
        schedule_conf: Some(String::new()),
        executor_handler: "h".to_owned(),
        glue_type: "BEAN".to_owned(),
        ..ForeignJob::default()
    }
}

/// A job in which a change of that column means something.
fn before(column: &str) -> ForeignJob {
    let mut job = job(7);
    match column {
        "glue_source" | "glue_remark" | "glue_updatetime" => job.glue_type = "GLUE_SHELL".to_owned(),
        "schedule_conf" => {
            job.schedule_type = Some("CRON".to_owned());
            job.schedule_conf = Some("0 0 0 * * ?".to_owned());
        }
        _ => {}
    }
    job
}

/// A document of one job, and of a second that may be its child.
fn document_of(first: ForeignJob) -> ImportDocument {
    let group = |id| ForeignGroup { id, app_name: format!("app-{id}"), ..ForeignGroup::default() };
    let read = ForeignXxlJob {
        releases: Releases::V2_3,
        groups: vec![group(1), group(2)],
        jobs: vec![first, job(9)],
        glue: Vec::new(),
        users: Vec::new(),
    };
    let options = ImportOptions {
        source: "old".to_owned(),
        tenant: "shop".to_owned(),
        zone: Tz::Asia__Shanghai,
        groups: Vec::new(),
        with_scripts: true,
    };
    document(&read, &options).unwrap()
}

/// The fields in which two tasks differ.
fn fields_of_task(before: &ImportTask, after: &ImportTask) -> BTreeSet<String> {
    let names: BTreeSet<&String> = before.task.keys().chain(after.task.keys()).collect();
    names.into_iter().filter(|name| before.task.get(*name) != after.task.get(*name)).cloned().collect()
}

/// What of the document is beside the task, by its name there.
fn kept(document: &ImportDocument, name: &str) -> String {
    let task = &document.tasks[0];
    match name {
        "origin" => format!("{} {:?}", task.origin, task.number),
        "app" => task.task["app"].to_string(),
        "author" => task.author.clone(),
        "glue" => format!("{:?}", task.glue),
        "starts" => task.starts.to_string(),
        _ => panic!("{name} is none of a task's"),
    }
}

fn of_jobs() -> impl Iterator<Item = &'static Column> {
    COLUMNS.iter().filter(|column| column.table == "xxl_job_info")
}

#[test]
fn fields() {
    for column in of_jobs() {
        let name = column.name;
        let mut changed = before(name);
        let before = document_of(changed.clone());
        let (_, change) = CHANGES.iter().find(|(of, _)| *of == name).unwrap_or_else(|| panic!("{name} is not changed"));
        change(&mut changed);
        let after = document_of(changed);
        match column.fate {
            Fate::Task(fields) => {
                let differ: BTreeSet<String> = std::iter::zip(&before.tasks, &after.tasks)
                    .flat_map(|(before, after)| fields_of_task(before, after))
                    .collect();
                // A kind of schedule comes with its value.
                let known = |field: &String| fields.contains(&field.as_str()) || field.starts_with("interval");
                assert!(!differ.is_empty() && differ.iter().all(known), "{name}: {differ:?}");
            }
            Fate::Kept(place) => assert_ne!(kept(&before, place), kept(&after, place), "{name}"),
            Fate::Left(effect) => {
                let task = &after.tasks[0];
                let named = task.uncarried.iter().find(|one| one.field == name);
                assert_eq!(named.map(|one| one.effect), Some(effect), "{name}");
                assert!(fields_of_task(&before.tasks[0], task).is_empty(), "{name}");
            }
            Fate::Unread => assert_eq!(before, after, "{name}"),
        }
    }
    assert_eq!(of_jobs().count(), CHANGES.len());
}

#[test]
fn every_column_is_named_once() {
    let mut seen = BTreeSet::new();
    for column in COLUMNS {
        assert!(seen.insert((column.table, column.name)), "{}.{} stands twice", column.table, column.name);
        assert!(TABLES.iter().any(|(table, says)| *table == column.table && says.is_empty()), "{}", column.table);
        assert!(column.says.ends_with('.'), "{}", column.name);
    }
}
