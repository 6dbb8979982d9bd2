//! A task of horace cron-job as one of ours.

use super::row::ForeignTask;
use crate::domain::import::{Uncarried, task_name};
use crate::domain::routing::Routing;
use crate::domain::task::{ExpiredStrategy, FailureStrategy, MisfireStrategy, SPAN_MS_MAX, ScheduleKind, TaskSpec};
use chrono_tz::Tz;
use serde_json::json;

/// Most retries of a task.
const RETRIES_MAX: i64 = 1_000;

/// The tag that executors and tasks have there which name none.
const COMMON: &str = "common";

/// The task that does what `task` does, with its schedule in `zone`, and what of it is not carried over. It passes
/// [`TaskSpec::check`]; its name is that of the task made fit, and may be taken.
#[must_use]
pub fn spec_of(task: &ForeignTask, zone: Tz) -> (TaskSpec, Vec<Uncarried>) {
    let mut said = Vec::new();
    let expired_strategy = match task.expired_strategy {
        1 => ExpiredStrategy::Discard,
        2 => ExpiredStrategy::Execute,
        other => unknown("expired_strategy", other, "2 (a late run runs)", ExpiredStrategy::Execute, &mut said),
    };
    let is_discarded = expired_strategy == ExpiredStrategy::Discard;
    let expire_after_ms = span("expired_time", task.expired_time, &mut said);
    let cron = task.cron.trim();
    let spec = TaskSpec {
        name: task_name(&task.name, &format!("task {}", task.id)),
        handler: handler(task, &mut said),
        description: description(task),
        params: without_nul(&task.task_params),
        schedule: if cron.is_empty() { ScheduleKind::None } else { ScheduleKind::Cron },
        cron: cron.to_owned(),
        time_zone: zone.name().to_owned(),
        // After an outage: one run on behalf of those that were missed, or none.
        misfire_strategy: if is_discarded { MisfireStrategy::Skip } else { MisfireStrategy::FireOnce },
        expired_strategy,
        // 0 is "never" here, and "at once" there.
        expire_after_ms: if is_discarded { expire_after_ms.max(1) } else { expire_after_ms },
        routing: match task.router_strategy {
            1 => Routing::Random,
            2 => Routing::Sharding,
            other => unknown("router_strategy", other, "1 (a random executor)", Routing::Random, &mut said),
        },
        tags_any: tags(task, &mut said),
        failure_strategy: match task.failure_strategy {
            1 => FailureStrategy::Retry,
            2 => FailureStrategy::Discard,
            other => unknown("failure_strategy", other, "1 (another attempt)", FailureStrategy::Retry, &mut said),
        },
        max_retries: task.max_retry_count.clamp(0, RETRIES_MAX) as i32,
        retry_interval_ms: span("failure_retry_interval", task.failure_retry_interval, &mut said),
        timeout_ms: span("timeout", task.timeout, &mut said),
        ..TaskSpec::default()
    };
    if task.max_retry_count > RETRIES_MAX {
        let why = format!("{RETRIES_MAX} are allowed: taken as that");
        said.push(Uncarried::differs("max_retry_count", task.max_retry_count, why, ""));
    }
    (allowed(spec, task, &mut said), said)
}

fn without_nul(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

/// What a number of theirs that is unknown is taken as.
fn unknown<T>(column: &str, given: i64, taken: &str, as_what: T, said: &mut Vec<Uncarried>) -> T {
    let why = format!("it is unknown: taken as {taken}");
    said.push(Uncarried::differs(column, given, why, "Look whether that is meant."));
    as_what
}

/// A span of 0 to thirty days, ms.
fn span(column: &str, ms: i64, said: &mut Vec<Uncarried>) -> i64 {
    if ms > SPAN_MS_MAX {
        let why = format!("{SPAN_MS_MAX} ms (thirty days) are allowed: taken as that");
        said.push(Uncarried::differs(column, ms, why, ""));
    }
    ms.clamp(0, SPAN_MS_MAX)
}

/// What people have written of it, and who is responsible for it.
fn description(task: &ForeignTask) -> String {
    let (remark, owner) = (task.remark.trim(), task.owner.trim());
    let mut parts = Vec::new();
    if task_name(&task.name, "") != task.name.trim() {
        parts.push(task.name.trim().to_owned());
    }
    if !remark.is_empty() {
        parts.push(remark.to_owned());
    }
    if !owner.is_empty() {
        parts.push(format!("Owner: {owner}"));
    }
    without_nul(&parts.join("\n"))
}

/// The method; of one that is too long the end, from a name on.
fn handler(task: &ForeignTask, said: &mut Vec<Uncarried>) -> String {
    let method = task.method.trim();
    if method.is_empty() {
        said.push(Uncarried::stops("method", "", "a task needs a handler", "Enter its name, and start the task."));
        return "unknown".to_owned();
    }
    let mut rest = method;
    while rest.chars().count() > crate::domain::task::NAME_MAX {
        let Some((_, shorter)) = rest.split_once('.') else { break };
        rest = shorter;
    }
    let handler = task_name(rest, "unknown");
    if handler != method {
        let why = format!("a handler has 128 printable characters at most: it is `{handler}`");
        said.push(Uncarried::differs("method", method, why, "Register the handler under that name."));
    }
    handler
}

/// The tags of which an executor needs one. Executors that name no tag have the common one there, and none here.
fn tags(task: &ForeignTask, said: &mut Vec<Uncarried>) -> Vec<String> {
    let mut tags: Vec<String> = Vec::new();
    for tag in task.tag.split(',').map(|tag| task_name(tag, "")).filter(|tag| !tag.is_empty()) {
        if !tags.contains(&tag) {
            tags.push(tag);
        }
    }
    if tags.iter().all(|tag| tag == COMMON) {
        return Vec::new();
    }
    let why = if tags.iter().any(|tag| tag == COMMON) {
        "executors have to name the tag `common` as they do the others"
    } else {
        "while no executor has one of the tags, a run waits: there it went to one with the tag `common`"
    };
    said.push(Uncarried::differs("tag", &task.tag, why, "Give executors their tags."));
    tags
}

/// The definition without what is refused, which is named.
fn allowed(spec: TaskSpec, task: &ForeignTask, said: &mut Vec<Uncarried>) -> TaskSpec {
    let mut spec = spec;
    for error in spec.check() {
        let root = error.field.split('[').next().unwrap_or_default();
        let (column, value, fields) = match root {
            "cron" => ("cron", &task.cron, json!({ "cron": "" })),
            "params" => ("task_params", &task.task_params, json!({ "params": "" })),
            "tags_any" => ("tag", &task.tag, json!({ "tags_any": [] })),
            "description" => {
                let cut: String = spec.description.chars().take(1_000).collect();
                ("remark", &task.remark, json!({ "description": cut }))
            }
            _ => continue,
        };
        let remedy = "Write what is meant, and start the task.";
        said.push(match column {
            "remark" => Uncarried::note(column, value, error.message(), ""),
            _ => Uncarried::stops(column, value, error.message(), remedy),
        });
        if let serde_json::Value::Object(fields) = fields
            && let Ok(patched) = spec.patched(fields)
        {
            spec = patched;
        }
    }
    spec
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::import::Effect;
    use proptest::prelude::*;

    fn task() -> ForeignTask {
        ForeignTask {
            id: 7,
            name: "close orders".to_owned(),
            owner: "ann".to_owned(),
            cron: "0 0/5 * * * ?".to_owned(),
            run_state: 1,
            method: "shop.orders.Close.handle".to_owned(),
            router_strategy: 1,
            expired_strategy: 1,
            expired_time: 60_000,
            failure_strategy: 1,
            max_retry_count: 5,
            failure_retry_interval: 3_000,
            timeout: 600_000,
            task_params: "{\"a\":1}".to_owned(),
            remark: "nightly".to_owned(),
            ..ForeignTask::default()
        }
    }

    fn left(task: &ForeignTask) -> Vec<(String, Effect)> {
        spec_of(task, Tz::UTC).1.into_iter().map(|one| (one.field, one.effect)).collect()
    }

    #[test]
    fn a_task_becomes_one_that_does_the_same() {
        let expected = TaskSpec {
            name: "close orders".to_owned(),
            handler: "shop.orders.Close.handle".to_owned(),
            description: "nightly\nOwner: ann".to_owned(),
            params: "{\"a\":1}".to_owned(),
            schedule: ScheduleKind::Cron,
            cron: "0 0/5 * * * ?".to_owned(),
            time_zone: "Asia/Shanghai".to_owned(),
            misfire_strategy: MisfireStrategy::Skip,
            expired_strategy: ExpiredStrategy::Discard,
            expire_after_ms: 60_000,
            max_retries: 5,
            retry_interval_ms: 3_000,
            timeout_ms: 600_000,
            ..TaskSpec::default()
        };
        assert_eq!(spec_of(&task(), Tz::Asia__Shanghai), (expected, Vec::new()));
    }

    #[test]
    fn strategies_by_their_numbers() {
        let other = ForeignTask { router_strategy: 2, expired_strategy: 2, failure_strategy: 2, ..task() };
        let spec = spec_of(&other, Tz::UTC).0;
        assert_eq!((spec.routing, spec.failure_strategy), (Routing::Sharding, FailureStrategy::Discard));
        assert_eq!(
            (spec.expired_strategy, spec.misfire_strategy),
            (ExpiredStrategy::Execute, MisfireStrategy::FireOnce)
        );
        let unknown = ForeignTask { router_strategy: 3, expired_strategy: 0, failure_strategy: 9, ..task() };
        let fields: Vec<_> = left(&unknown).into_iter().map(|(field, _)| field).collect();
        assert_eq!(fields, ["expired_strategy", "router_strategy", "failure_strategy"]);
    }

    #[test]
    fn tags_are_alternatives_and_the_common_one_is_none() {
        let with = |tag: &str| spec_of(&ForeignTask { tag: tag.to_owned(), ..task() }, Tz::UTC).0.tags_any;
        assert_eq!(
            (with(""), with("common"), with("gpu, eu,gpu")),
            (vec![], vec![], vec!["gpu".to_owned(), "eu".to_owned()])
        );
        assert_eq!(with("common,gpu"), ["common", "gpu"]);
    }

    #[test]
    fn a_method_that_is_too_long_loses_its_packages() {
        let long = format!("{}.Close.handle", vec!["package"; 20].join("."));
        let spec = spec_of(&ForeignTask { method: long.clone(), ..task() }, Tz::UTC).0;
        assert!(spec.handler.len() <= 128 && long.ends_with(&spec.handler) && spec.handler.starts_with("package."));
        assert_eq!(left(&ForeignTask { method: long, ..task() }), [("method".to_owned(), Effect::Differs)]);
        assert_eq!(left(&ForeignTask { method: " ".to_owned(), ..task() }), [("method".to_owned(), Effect::Stops)]);
    }

    #[test]
    fn what_is_refused_is_named() {
        let wrong = ForeignTask { cron: "0 0 25 * * ?".to_owned(), timeout: i64::MAX, ..task() };
        assert_eq!(left(&wrong), [("timeout".to_owned(), Effect::Differs), ("cron".to_owned(), Effect::Stops)]);
        assert_eq!(spec_of(&wrong, Tz::UTC).0.schedule, ScheduleKind::None);
    }

    proptest! {
        #[test]
        fn whatever_a_task_holds_ours_is_allowed(
            texts in prop::collection::vec(".{0,40}|.{120,140}|(a,){40}|.{990,1010}", 7),
            numbers in prop::array::uniform8(any::<i64>()),
        ) {
            let [name, owner, cron, tag, method, task_params, remark]: [String; 7] = texts.try_into().unwrap();
            let [run_state, router_strategy, expired_strategy, expired_time, failure_strategy, max_retry_count, interval, timeout] =
                numbers;
            let task = ForeignTask {
                name, owner, cron, tag, run_state, method, router_strategy, expired_strategy, expired_time, failure_strategy,
                max_retry_count, failure_retry_interval: interval, timeout, task_params, remark, ..task()
            };
            let (spec, _) = spec_of(&task, Tz::UTC);
            prop_assert!(spec.check().is_empty(), "{:?}", spec.check());
        }
    }
}
