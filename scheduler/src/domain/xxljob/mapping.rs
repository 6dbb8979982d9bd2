//! A job of xxl-job as a task, and a task as such a job.
//!
//! Reading goes by what a value says beyond what is there: a value that says what the task shows already leaves the task as it
//! is. So a time-out of 1,500 ms, which is shown as 2 s, survives a script that sends the 2 s back.

use super::glue;
use super::job::ForeignJob;
use super::text::{interval_of, ms_of, seconds_of, utc_of};
use super::words::{BEAN, BLOCKS, MISFIRES, ROUTINGS, SCHEDULES, Words};
use crate::domain::calendar::CalendarRule;
use crate::domain::cron::{CronSchedule, Gap, Overlap};
use crate::domain::import::{Effect, Uncarried, task_name};
use crate::domain::routing::Routing;
use crate::domain::task::{
    BlockStrategy, FailureStrategy, MisfireStrategy, ParentRule, SPAN_MS_MAX, ScheduleKind, TaskSpec,
};
use chrono_tz::Tz;
use serde_json::{Map, Value, json};

/// Most retries of a task.
const RETRIES_MAX: i64 = 1_000;

/// Longest description of a task, characters.
const DESCRIPTION_CHARS_MAX: usize = 1_000;

/// What a task has besides its definition, as scripts for xxl-job know it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TaskExtra {
    /// Its number, from 1.
    pub number: i64,
    /// The number of its app, from 1.
    pub group: i64,
    /// Who is responsible for it.
    pub author: String,
    /// Where alarms went.
    pub alarm_email: String,
    /// `BEAN`, or the kind of script; empty is `BEAN`.
    pub glue_type: String,
    /// The script that runs.
    pub glue_source: String,
    /// What its author said of it.
    pub glue_remark: String,
    /// When it was saved, epoch ms.
    pub glue_updated_at: Option<i64>,
    /// Numbers of the tasks that follow its success.
    pub children: Vec<i64>,
    /// Whether it runs by itself.
    pub is_started: bool,
    /// When it was made, epoch ms.
    pub created_at: Option<i64>,
    /// When it was changed, epoch ms.
    pub updated_at: Option<i64>,
    /// Its last fire, epoch ms; 0 is none.
    pub last_fire_at: i64,
    /// Its next fire, epoch ms; 0 is none.
    pub next_fire_at: i64,
}

/// The task that does what `job` does, with its schedule in `zone`, and what of the job it does not hold. It passes
/// [`TaskSpec::check`]. Its name is that of the job made fit, and may be taken; who its parents are, other jobs say.
#[must_use]
pub fn spec_of(job: &ForeignJob, zone: Tz) -> (TaskSpec, Vec<Uncarried>) {
    let (mut spec, mut uncarried) = spec_onto(&as_there(zone), job);
    if !spec.cron.is_empty() {
        // As Quartz does it, so that nothing fires at another time than before.
        spec.dst_gap = Gap::Skip;
        spec.dst_overlap = Overlap::Second;
    }
    uncarried.extend(left_behind(job));
    (spec, uncarried)
}

/// `base` with what `job` says otherwise, and what cannot be had of it. It passes [`TaskSpec::check`] if `base` does.
#[must_use]
pub fn spec_onto(base: &TaskSpec, job: &ForeignJob) -> (TaskSpec, Vec<Uncarried>) {
    let shown = shown(base, &job.glue_type);
    let mut reading = Reading { job, shown, spec: base.clone(), uncarried: Vec::new() };
    reading.read_name();
    reading.read_schedule();
    reading.read_choices();
    reading.read_handler();
    reading.read_numbers();
    reading.take_back_what_is_refused();
    (reading.spec, reading.uncarried)
}

/// A task as the job that scripts see.
#[must_use]
pub fn job_of(spec: &TaskSpec, extra: &TaskExtra) -> ForeignJob {
    let children: Vec<String> = extra.children.iter().map(ToString::to_string).collect();
    ForeignJob {
        id: extra.number,
        job_group: extra.group,
        add_time: extra.created_at,
        update_time: extra.updated_at,
        author: extra.author.clone(),
        alarm_email: extra.alarm_email.clone(),
        glue_type: if extra.glue_type.is_empty() { BEAN.to_owned() } else { extra.glue_type.clone() },
        glue_source: extra.glue_source.clone(),
        glue_remark: extra.glue_remark.clone(),
        glue_updatetime: extra.glue_updated_at,
        child_jobid: children.join(","),
        trigger_status: i64::from(extra.is_started),
        trigger_last_time: extra.last_fire_at,
        trigger_next_time: extra.next_fire_at,
        ..shown(spec, &extra.glue_type)
    }
}

/// Whether the task is to run by itself once the other scheduler no longer does.
#[must_use]
pub fn starts(job: &ForeignJob, uncarried: &[Uncarried]) -> bool {
    job.trigger_status == 1 && uncarried.iter().all(|one| one.effect != Effect::Stops)
}

/// What a job does whose row says nothing else.
fn as_there(zone: Tz) -> TaskSpec {
    TaskSpec {
        time_zone: zone.name().to_owned(),
        misfire_strategy: MisfireStrategy::Skip,
        routing: Routing::First,
        block_strategy: BlockStrategy::Serial,
        max_retries: 0,
        parent_rule: ParentRule::Any,
        ..TaskSpec::default()
    }
}

/// The columns that a definition shows itself in.
fn shown(spec: &TaskSpec, glue_type: &str) -> ForeignJob {
    let (name, description) = (&spec.name, &spec.description);
    let conf = match spec.schedule {
        ScheduleKind::Cron => spec.cron.clone(),
        ScheduleKind::FixedRate | ScheduleKind::FixedDelay => seconds_of(spec.interval_ms),
        ScheduleKind::Once => utc_of(spec.fire_at),
        // What it had, and may have again.
        ScheduleKind::None if !spec.cron.is_empty() => spec.cron.clone(),
        ScheduleKind::None if spec.interval_ms > 0 => seconds_of(spec.interval_ms),
        ScheduleKind::None => String::new(),
    };
    let retries = match spec.failure_strategy {
        FailureStrategy::Retry => spec.max_retries.into(),
        FailureStrategy::Discard => 0,
    };
    ForeignJob {
        job_cron: Some(spec.cron.clone()),
        job_desc: if description.is_empty() { name.clone() } else { description.clone() },
        schedule_type: Some(SCHEDULES.write(spec.schedule).to_owned()),
        schedule_conf: Some(conf),
        misfire_strategy: Some(MISFIRES.write(spec.misfire_strategy).to_owned()),
        executor_route_strategy: ROUTINGS.write(spec.routing).to_owned(),
        // A script has no handler there, and is its kind's here.
        executor_handler: if spec.handler == glue_type { String::new() } else { spec.handler.clone() },
        executor_param: spec.params.clone(),
        executor_block_strategy: BLOCKS.write(spec.block_strategy).to_owned(),
        executor_timeout: spec.timeout_ms.saturating_add(999) / 1_000,
        executor_fail_retry_count: retries,
        ..ForeignJob::default()
    }
}

/// Columns that an import does not carry over.
fn left_behind(job: &ForeignJob) -> Vec<Uncarried> {
    let begins = "the history of a task begins with the import";
    let instant = |column, at: Option<i64>| {
        let at = at.filter(|at| *at > 0);
        at.map(|at| Uncarried::note(column, utc_of(at), begins, ""))
    };
    let mail = (!job.alarm_email.trim().is_empty()).then(|| {
        let why = "no mail is sent";
        Uncarried::differs(
            "alarm_email",
            &job.alarm_email,
            why,
            "Alarm on the metrics, or on failed runs through the API.",
        )
    });
    let times = [
        instant("add_time", job.add_time),
        instant("update_time", job.update_time),
        instant("trigger_last_time", Some(job.trigger_last_time)),
    ];
    mail.into_iter().chain(times.into_iter().flatten()).collect()
}

/// A definition on its way from a job.
struct Reading<'a> {
    job: &'a ForeignJob,
    /// What the definition before it shows.
    shown: ForeignJob,
    spec: TaskSpec,
    uncarried: Vec<Uncarried>,
}

/// PostgreSQL has no NUL in text.
fn without_nul(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

impl Reading<'_> {
    fn read_name(&mut self) {
        if !self.spec.name.is_empty() && self.job.job_desc == self.shown.job_desc {
            return;
        }
        let text = without_nul(&self.job.job_desc);
        if text.chars().count() > DESCRIPTION_CHARS_MAX {
            let why = format!("a description has {DESCRIPTION_CHARS_MAX} characters at most: the rest is left out");
            self.uncarried.push(Uncarried::differs("job_desc", &text, why, ""));
        }
        let text: String = text.chars().take(DESCRIPTION_CHARS_MAX).collect();
        self.spec.name = task_name(&text, &format!("job {}", self.job.id));
        self.spec.description = if self.spec.name == text { String::new() } else { text };
    }

    fn read_schedule(&mut self) {
        let (job, shown) = (self.job, &self.shown);
        let given = match (&job.schedule_type, &job.job_cron) {
            (Some(kind), _) => {
                let conf = job.schedule_conf.clone().unwrap_or_default();
                let is_shown =
                    Some(kind) == shown.schedule_type.as_ref() && Some(&conf) == shown.schedule_conf.as_ref();
                (!is_shown).then(|| (kind.clone(), conf))
            }
            (None, cron) if cron.is_none() || *cron == shown.job_cron => None,
            (None, cron) => {
                let cron = cron.clone().unwrap_or_default();
                let kind = if cron.trim().is_empty() {
                    SCHEDULES.write(ScheduleKind::None)
                } else {
                    SCHEDULES.write(ScheduleKind::Cron)
                };
                Some((kind.to_owned(), cron))
            }
        };
        let Some((word, conf)) = given else { return };
        let conf = conf.trim();
        let kind = SCHEDULES.read(&word).unwrap_or_else(|| {
            let why = format!("it is none of {}", SCHEDULES.list());
            self.uncarried.push(Uncarried::stops(
                "schedule_type",
                &word,
                why,
                "Give the task a schedule, and start it.",
            ));
            ScheduleKind::None
        });
        let spec = &mut self.spec;
        (spec.schedule, spec.cron, spec.interval_ms, spec.fire_at) = (kind, String::new(), 0, 0);
        if kind != ScheduleKind::Cron {
            spec.calendar_rule = CalendarRule::Skip;
        }
        if !matches!(kind, ScheduleKind::Cron | ScheduleKind::FixedRate) {
            spec.spread_ms = 0;
        }
        match kind {
            ScheduleKind::Cron => conf.clone_into(&mut spec.cron),
            ScheduleKind::FixedRate | ScheduleKind::FixedDelay => spec.interval_ms = interval_of(conf).unwrap_or(0),
            ScheduleKind::Once => spec.fire_at = ms_of(conf).unwrap_or(0),
            // What it had, and may have again.
            ScheduleKind::None if CronSchedule::parse(conf).is_ok() => conf.clone_into(&mut spec.cron),
            ScheduleKind::None if interval_of(conf).is_some() => spec.interval_ms = interval_of(conf).unwrap_or(0),
            ScheduleKind::None if conf.is_empty() => {}
            ScheduleKind::None => {
                let why = "a job without a schedule does not use it";
                self.uncarried.push(Uncarried::note(self.conf_column(), conf, why, ""));
            }
        }
    }

    /// The column that held the schedule.
    fn conf_column(&self) -> &'static str {
        if self.job.schedule_type.is_some() { "schedule_conf" } else { "job_cron" }
    }

    fn read_choices(&mut self) {
        let job = self.job;
        if let Some(word) = &job.misfire_strategy {
            self.spec.misfire_strategy = self.choice("misfire_strategy", word, &MISFIRES, self.spec.misfire_strategy);
        }
        self.spec.routing =
            self.choice("executor_route_strategy", &job.executor_route_strategy, &ROUTINGS, self.spec.routing);
        let block = self.spec.block_strategy;
        self.spec.block_strategy = self.choice("executor_block_strategy", &job.executor_block_strategy, &BLOCKS, block);
    }

    /// What a word means; of none, and of an unknown one, what it was `before`.
    fn choice<T: Copy + PartialEq>(&mut self, column: &str, word: &str, words: &Words<T>, before: T) -> T {
        if word.trim().is_empty() {
            return before;
        }
        words.read(word).unwrap_or_else(|| {
            let why = format!("it is none of {}: taken as {}", words.list(), words.write(before));
            self.uncarried.push(Uncarried::differs(column, word, why, "Look whether that is meant."));
            before
        })
    }

    fn read_handler(&mut self) {
        let job = self.job;
        if job.executor_param != self.shown.executor_param {
            self.spec.params = without_nul(&job.executor_param);
        }
        if job.executor_handler == self.shown.executor_handler && !self.spec.handler.is_empty() {
            return;
        }
        let handler = job.executor_handler.trim();
        let stands_for_script = handler.is_empty() && glue::is_script(&job.glue_type);
        let handler = if stands_for_script { job.glue_type.as_str() } else { handler };
        handler.clone_into(&mut self.spec.handler);
    }

    fn read_numbers(&mut self) {
        let (job, longest) = (self.job, SPAN_MS_MAX / 1_000);
        if job.executor_timeout != self.shown.executor_timeout {
            self.spec.timeout_ms = job.executor_timeout.clamp(0, longest) * 1_000;
            if job.executor_timeout > longest {
                let why = format!("a run may take {longest} s at most: taken as that");
                let remedy = "Set 0 for no bound.";
                self.uncarried.push(Uncarried::differs("executor_timeout", job.executor_timeout, why, remedy));
            }
        }
        let retries = job.executor_fail_retry_count;
        if retries != self.shown.executor_fail_retry_count {
            self.spec.failure_strategy = FailureStrategy::Retry;
            self.spec.max_retries = retries.clamp(0, RETRIES_MAX) as i32;
            if retries > RETRIES_MAX {
                let why = format!("{RETRIES_MAX} are allowed: taken as that");
                self.uncarried.push(Uncarried::differs("executor_fail_retry_count", retries, why, ""));
            }
        }
    }

    /// Nothing is left that a task may not hold: it would be refused as a whole.
    fn take_back_what_is_refused(&mut self) {
        for error in self.spec.check() {
            let job = self.job;
            let conf = job.schedule_conf.as_ref().or(job.job_cron.as_ref()).map_or("", String::as_str);
            let (column, value, remedy, fields) = match error.field.as_str() {
                "cron" => (self.conf_column(), conf, "Write what is meant, and start the task.", json!({ "cron": "" })),
                "interval_ms" => {
                    let none = json!({ "schedule": "none", "interval_ms": 0 });
                    (self.conf_column(), conf, "Enter an interval, and start the task.", none)
                }
                "fire_at" => {
                    let none = json!({ "schedule": "none", "fire_at": 0 });
                    (self.conf_column(), conf, "Enter when it runs, and start the task.", none)
                }
                "handler" => {
                    let spare = task_name(&self.spec.handler, "unknown");
                    let remedy = "Enter the name of a handler, and start the task.";
                    ("executor_handler", job.executor_handler.as_str(), remedy, json!({ "handler": spare }))
                }
                "params" => {
                    let remedy = "Keep it where the handler can read it, enter what is left, and start the task.";
                    ("executor_param", job.executor_param.as_str(), remedy, json!({ "params": "" }))
                }
                // Nothing of the job's: the definition that it was read onto is to blame.
                _ => continue,
            };
            self.uncarried.push(Uncarried::stops(column, value, error.message(), remedy));
            self.set(fields);
        }
    }

    fn set(&mut self, fields: Value) {
        let Value::Object(fields) = fields else { return };
        let fields: Map<String, Value> = fields;
        if let Ok(spec) = self.spec.patched(fields) {
            self.spec = spec;
        }
    }
}

#[cfg(test)]
mod tests;
