//! The tasks of a run: about two hundred, of all kinds, with some 150 fires in a second.

use crate::history::{Bound, Misfire, Schedule, Task, Yields};
use serde_json::{Value, json};

/// Tasks that are stopped, started and edited meanwhile.
pub const EDITED: usize = 8;

/// Of missed fires so many are made up for, where all are (`misfire_max`).
const MISFIRE_MAX: usize = 10;

/// A task that is to be made.
#[derive(Debug, Clone)]
pub struct Draft {
    /// What the API gets, besides tenant, app and name.
    pub body: Value,
    /// What the checker knows of it; its id comes when it is made.
    pub task: Task,
    /// Names of the tasks before it.
    pub parents: Vec<String>,
}

/// All of them, those that others follow first.
pub fn drafts() -> Vec<Draft> {
    let mut drafts = Drafts::default();
    drafts.plain();
    drafts.late();
    drafts.bounded();
    drafts.failing();
    drafts.long();
    drafts.following();
    drafts.edited();
    drafts.0
}

#[derive(Default)]
struct Drafts(Vec<Draft>);

impl Drafts {
    /// `count` alike; two of three in the first tenant.
    fn add(&mut self, name: &str, count: usize, schedule: Schedule, work: (u64, i32), fields: &Value) {
        self.add_with(name, count, schedule, work, fields, |_| ());
    }

    fn add_with(
        &mut self,
        name: &str,
        count: usize,
        schedule: Schedule,
        (ms, succeed_at): (u64, i32),
        fields: &Value,
        adjust: impl Fn(&mut Task),
    ) {
        for number in 0..count {
            let (misfire, word) = [
                (Misfire::FireOnce, "fire_once"),
                (Misfire::Skip, "skip"),
                (Misfire::FireAll(MISFIRE_MAX), "fire_all"),
            ][number % 3];
            let mut body = json!({
                "params": { "ms": ms, "succeed_at": succeed_at }, "handler": "chaos", "started": true,
                "retry_interval_ms": 1_000, "misfire_strategy": word,
            });
            let when = match schedule {
                Schedule::Cron(1_000) => json!({ "cron": "* * * * * ?" }),
                Schedule::Cron(every) => json!({ "cron": format!("0/{} * * * * ?", every / 1_000) }),
                Schedule::Rate(every) => json!({ "schedule": "fixed_rate", "interval_ms": every }),
                Schedule::Delay(every) => json!({ "schedule": "fixed_delay", "interval_ms": every }),
                Schedule::After(..) | Schedule::AfterAll(..) => json!({}),
            };
            for more in [&when, fields] {
                merge(&mut body, more);
            }
            let int = |field: &str, default| body[field].as_i64().unwrap_or(default);
            let mut task = Task {
                id: 0,
                name: format!("{name}-{number}"),
                tenant: usize::from(number % 3 == 2),
                schedule,
                is_at_most_once: body["delivery"] == "at_most_once",
                bound: bound_of(&body),
                is_sharded: body["routing"] == "sharding",
                succeed_at,
                attempts_max: int("max_retries", 5) as i32 + 1,
                timeout_ms: int("timeout_ms", 0),
                expire_after_ms: int("expire_after_ms", 0),
                misfire,
                yields: match body["block_strategy"].as_str() {
                    Some("discard_later") => Some(Yields::Later),
                    Some("cover_early") => Some(Yields::Earlier),
                    _ => None,
                },
                is_edited: false,
                is_plain: false,
            };
            adjust(&mut task);
            self.0.push(Draft { body, task, parents: Vec::new() });
        }
    }

    /// Nothing makes these wait.
    fn plain(&mut self) {
        let plain = |task: &mut Task| task.is_plain = true;
        let every = |s: i64| Schedule::Cron(s * 1_000);
        let once = json!({ "delivery": "at_most_once", "retry_on": ["not_sent"] });
        self.add_with("second", 45, every(1), (5, 1), &json!({}), plain);
        self.add_with("second-once", 20, every(1), (5, 1), &once, plain);
        self.add_with("two", 20, every(2), (20, 1), &json!({ "routing": "round" }), plain);
        self.add_with("two-once", 10, every(2), (300, 1), &once, plain);
        self.add_with("five", 10, every(5), (1_500, 1), &json!({ "priority": 9 }), plain);
        self.add_with("five-once", 5, every(5), (2_500, 1), &once, plain);
        self.add_with("rate", 10, Schedule::Rate(3_000), (10, 1), &json!({ "routing": "least_loaded" }), plain);
        self.add_with(
            "elsewhere",
            5,
            every(2),
            (10, 1),
            &json!({ "retry_elsewhere": true, "routing": "first" }),
            plain,
        );
    }

    /// What is too late does not run.
    fn late(&mut self) {
        let expiring = json!({ "expired_strategy": "discard", "expire_after_ms": 5_000 });
        self.add("expiring", 5, Schedule::Cron(2_000), (5, 1), &expiring);
    }

    /// Only so many at once.
    fn bounded(&mut self) {
        let every = |s: i64| Schedule::Cron(s * 1_000);
        let app = |strategy: &str| json!({ "block_strategy": strategy, "block_scope": "app" });
        self.add("serial-app", 8, every(1), (200, 1), &app("serial"));
        self.add("serial-app-slow", 4, every(3), (2_000, 1), &app("serial"));
        let mut once = app("serial");
        merge(&mut once, &json!({ "delivery": "at_most_once", "retry_on": ["not_sent"] }));
        self.add("serial-app-once", 4, every(2), (500, 1), &once);
        self.add("serial-executor", 6, every(1), (300, 1), &json!({ "block_strategy": "serial" }));
        self.add("discard", 3, every(1), (1_300, 1), &app("discard_later"));
        self.add("cover", 3, every(2), (2_500, 1), &app("cover_early"));
        self.add("two-at-once", 4, every(1), (1_200, 1), &json!({ "max_concurrent": 2 }));
        self.add("three-at-once", 2, every(1), (2_000, 1), &json!({ "max_concurrent": 3 }));
    }

    /// Their handlers fail, or take too long.
    fn failing(&mut self) {
        let every = |s: i64| Schedule::Cron(s * 1_000);
        self.add("flaky", 8, every(2), (10, 2), &json!({}));
        self.add("flaky-once", 4, every(3), (10, 2), &json!({ "delivery": "at_most_once" }));
        self.add("hopeless", 3, every(5), (10, 0), &json!({ "max_retries": 1 }));
        self.add("discarding", 3, every(3), (10, 0), &json!({ "failure_strategy": "discard" }));
        let slow = json!({ "timeout_ms": 500, "max_retries": 1 });
        self.add("too-slow", 3, every(5), (30_000, 1), &slow);
        let serial = json!({ "block_strategy": "serial", "block_scope": "app", "retry_interval_ms": 200 });
        self.add("flaky-serial", 3, every(2), (300, 2), &serial);
    }

    /// An executor that is cut off for long gives them up. Those that must not run twice at once come one after the other: no
    /// backlog grows while one is made up for.
    fn long(&mut self) {
        let mut once = json!({ "delivery": "at_most_once", "retry_on": ["not_sent"] });
        self.add("long", 3, Schedule::Cron(10_000), (25_000, 1), &json!({}));
        self.add("long-once", 2, Schedule::Cron(10_000), (30_000, 1), &once);
        let serial = json!({ "block_strategy": "serial", "block_scope": "app" });
        self.add("long-serial", 3, Schedule::Delay(2_000), (20_000, 1), &serial);
        merge(&mut once, &serial);
        self.add("long-serial-once", 3, Schedule::Delay(2_000), (30_000, 1), &once);
    }

    /// Runs that come after others, and runs of several parts.
    fn following(&mut self) {
        self.add("delay", 6, Schedule::Delay(1_000), (200, 1), &json!({}));
        self.add("delay-once", 3, Schedule::Delay(2_000), (50, 1), &json!({ "delivery": "at_most_once" }));
        self.add("delay-flaky", 2, Schedule::Delay(1_500), (50, 2), &json!({}));
        self.add("sharded", 4, Schedule::Cron(4_000), (30, 1), &json!({ "routing": "sharding" }));
        self.child("child", &["two-0"]);
        self.child("child-of-once", &["two-once-1"]);
        self.child("child-of-flaky", &["flaky-2"]);
        self.child("child-of-delay", &["delay-0"]);
        self.child("child-of-shards", &["sharded-0"]);
        self.child("child-of-two", &["two-3", "two-4"]);
        self.child("grandchild", &["child-0"]);
        let last = self.0.len();
        self.add("child-of-all", 1, Schedule::AfterAll(0, 0), (10, 1), &json!({ "parent_rule": "all" }));
        self.0[last].parents = vec!["two-6".to_owned(), "five-0".to_owned()];
    }

    fn child(&mut self, name: &str, parents: &[&str]) {
        let last = self.0.len();
        self.add(name, 1, Schedule::After(0, None), (10, 1), &json!({ "parent_rule": "any" }));
        let tenants: Vec<usize> = parents
            .iter()
            .filter_map(|parent| Some(self.0.iter().find(|d| d.task.name == *parent)?.task.tenant))
            .collect();
        self.0[last].task.tenant = tenants[0];
        self.0[last].parents = parents.iter().map(|parent| (*parent).to_owned()).collect();
    }

    fn edited(&mut self) {
        let edited = |task: &mut Task| task.is_edited = true;
        self.add_with("edited", EDITED, Schedule::Cron(1_000), (20, 1), &json!({}), edited);
    }
}

/// How many at once a task with these fields allows.
fn bound_of(body: &Value) -> Option<Bound> {
    let in_process = body["block_scope"] != "app";
    match (body["max_concurrent"].as_u64(), body["block_strategy"].as_str()) {
        (Some(most), _) => Some(Bound { most: most as usize, in_process: false }),
        (_, Some(_)) => Some(Bound { most: 1, in_process }),
        _ => None,
    }
}

fn merge(into: &mut Value, fields: &Value) {
    if let (Some(into), Some(fields)) = (into.as_object_mut(), fields.as_object()) {
        into.extend(fields.iter().map(|(name, value)| (name.clone(), value.clone())));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn about_two_hundred_tasks_fire_less_than_190_times_a_second() {
        let drafts = drafts();
        assert!((190..260).contains(&drafts.len()), "{} tasks", drafts.len());
        let rate = |draft: &Draft| match draft.task.schedule {
            Schedule::Cron(ms) | Schedule::Rate(ms) | Schedule::Delay(ms) => 1_000.0 / ms as f64,
            Schedule::After(..) | Schedule::AfterAll(..) => 0.5,
        };
        let rate: f64 = drafts.iter().map(rate).sum();
        assert!((120.0..190.0).contains(&rate), "{rate} fires a second");
    }

    #[test]
    fn parents_come_first_and_belong_to_the_tenant_of_their_children() {
        let drafts = drafts();
        for (place, draft) in drafts.iter().enumerate() {
            for parent in &draft.parents {
                let found = drafts[..place].iter().find(|other| other.task.name == *parent);
                assert_eq!(
                    found.map(|parent| parent.task.tenant),
                    Some(draft.task.tenant),
                    "{} after {parent}",
                    draft.task.name
                );
            }
        }
    }
}
