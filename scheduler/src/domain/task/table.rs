//! The fields of a task's definition, each once: name, type, default, one sentence, what it may hold, an example (TOML,
//! other than the default), and when to set it. Made of this list: the definition itself and its checks (`spec.rs`,
//! `check.rs`), the columns (`store/task_columns.rs`), the API's document and through it the console's forms
//! (`api/task_schema.rs`), and the tables of `docs/policies.md` and `docs/tasks.md`.
//!
//! A new field is a line here, a column in `migrations/`, and the rule that reads it.

/// Passes the list to the macro `$with`: first the fields with columns in the table `task`, then the others.
macro_rules! task_fields {
    ($with:ident) => {
        $with! {
columns {
"What":
    name: String = String::new(),
        "Name of the task, unique within the app; without `/`, which separates app and task in `parents`.",
        Allowed::Name { least: 1 }, "\"nightly-report\"", "";
    handler: String = String::new(),
        "Handler that executors of the app run; several tasks may share one.",
        Allowed::Name { least: 1 }, "\"report\"", "";
    description: String = String::new(), "For people.", Allowed::Text(1_000), "\"for the board\"", "";
    #[serde(deserialize_with = "text_or_json")]
    params: String = String::new(),
        "Parameters of every run; JSON other than a string is stored as JSON text.",
        Allowed::Params(carillon_protocol::TEXT_BYTES_MAX), "'{\"depth\": 3}'", "";

"When":
    schedule: ScheduleKind = ScheduleKind::default(),
        "Kind of schedule; setting only `cron` makes it `cron`.",
        Allowed::one::<ScheduleKind>(), "\"cron\"", "`fixed_delay`: the pause between runs matters, not the rate";
    cron: String = String::new(),
        "Quartz expression (docs/cron.md).", Allowed::Text(190), "\"0 30 2 * * ?\"", "";
    time_zone: String = "UTC".to_owned(),
        "IANA zone of cron and calendar; the default is the setting `schedulers.time_zone`.",
        Allowed::Text(64), "\"Asia/Shanghai\"", "people of that region rely on the local time";
    interval_ms: i64 = 0,
        "For `fixed_rate` between two fires, for `fixed_delay` after the end of a run; at least 1,000 for both.",
        Allowed::ms(INTERVAL_MS_MAX, "none"), "60_000", "";
    #[serde(deserialize_with = "instant")]
    fire_at: i64 = 0,
        "When `once` fires; must be in the future when the task is started.", Allowed::Instant, "2026-12-24T18:00:00+08:00",
        "a single run at a later time";
    #[serde(deserialize_with = "instant")]
    valid_from: i64 = 0,
        "Nothing fires before this instant.", Allowed::Instant, "\"2026-01-01T00:00:00Z\"", "a campaign";
    #[serde(deserialize_with = "instant")]
    valid_until: i64 = 0,
        "Nothing fires at this instant or later; must be after `valid_from`.",
        Allowed::Instant, "\"2027-01-01T00:00:00Z\"", "a campaign";
    max_fires: i64 = 0,
        "Maximum number of fires of the schedule, counted from its start.",
        Allowed::count(0, i64::MAX, "no bound"), "10", "a trial";
    dst_gap: Gap = Gap::default(),
        "What happens to a local time that a clock change skips.", Allowed::one::<Gap>(), "\"skip\"", "";
    dst_overlap: Overlap = Overlap::default(),
        "What happens to a local time that a clock change repeats.", Allowed::one::<Overlap>(), "\"both\"", "";
    calendar: String = String::new(),
        "Name of a calendar of the tenant; empty means none. It must exist.",
        Allowed::Name { least: 0 }, "\"holidays\"", "holidays, nights";
    calendar_rule: CalendarRule = CalendarRule::default(),
        "What happens to a fire on a day that is not a working day.",
        Allowed::one::<CalendarRule>(), "\"next\"", "reports for the last working day";
    spread_ms: i64 = 0,
        "Delays all fires by one fixed offset below this, derived from the task's id; cron and fixed rate only.",
        Allowed::ms(WINDOW_MS_MAX, "none"), "30_000",
        "many tasks share an instant, and each should keep its own minute";
    jitter_ms: i64 = 0,
        "Delays each fire by a random time up to this.",
        Allowed::ms(WINDOW_MS_MAX, "none"), "500",
        "fires must not be predictable, or collide with something else";

"Missed and late":
    misfire_strategy: MisfireStrategy = MisfireStrategy::default(),
        "What happens to fires that were missed while no node ran, or claimed too late.",
        Allowed::one::<MisfireStrategy>(), "\"fire_all\"",
        "`skip`: only the current state matters. `fire_all`: each fire has work of its own";
    misfire_max: i32 = 10,
        "For `fire_all`: most missed fires to run; the latest ones do.", Allowed::count(1, 1_000, ""), "100", "";
    misfire_max_late_ms: i64 = 0,
        "For `fire_all`: fires that were missed longer ago do not run.",
        Allowed::ms(SPAN_MS_MAX, "no bound"), "3_600_000", "old data is worth nothing";
    expired_strategy: ExpiredStrategy = ExpiredStrategy::default(),
        "What happens to a run that is later than `expire_after_ms`.",
        Allowed::one::<ExpiredStrategy>(), "\"discard\"", "a late run does harm";
    expire_after_ms: i64 = 0,
        "A run that is later than this after its due time has expired.", Allowed::ms(SPAN_MS_MAX, "never"), "60_000", "";
    maintenance: Maintenance = Maintenance::default(),
        "What the tenant's maintenance windows do.",
        Allowed::one::<Maintenance>(), "\"ignore\"", "`ignore`: it must run during maintenance, or is the maintenance";
    pause_after_failures: i32 = 0,
        "Pauses the task after this many failed runs in a row.",
        Allowed::count(0, COUNT_MAX, "never"), "3", "repeating makes it worse";

"Where":
    routing: Routing = Routing::default(),
        "Which executor runs it (docs/concepts.md, \"Where a run goes\").",
        Allowed::one::<Routing>(), "\"sharding\"", "a table in docs/concepts.md";
    tags: Vec<String> = Vec::new(),
        "An executor must have all of these, compared exactly.", Allowed::Tags, "[\"gpu=yes\"]", "`gpu`, `eu`";
    tags_any: Vec<String> = Vec::new(),
        "An executor must have at least one of these, if any are set.",
        Allowed::Tags, "[\"zone=a\", \"zone=b\"]", "one of two data centres";
    tags_none: Vec<String> = Vec::new(),
        "An executor must have none of these.", Allowed::Tags, "[\"spot\"]", "not on spot machines";

"How many at once":
    block_strategy: BlockStrategy = BlockStrategy::default(),
        "What happens to a run that is due while an earlier one of the task is running.",
        Allowed::one::<BlockStrategy>(), "\"serial\"",
        "`serial`: each must run. `discard_later`: the next one comes anyway. `cover_early`: only the newest counts";
    block_scope: BlockScope = BlockScope::default(),
        "Where to look for that earlier run.",
        Allowed::one::<BlockScope>(), "\"app\"", "`app`: the app has, or may have, more than one executor";
    max_concurrent: i32 = 0,
        "Maximum number of runs of the task at once, in the whole app.",
        Allowed::count(0, COUNT_MAX, "no bound"), "2",
        "a licence, a slow neighbour; `app` scope with a block strategy counts as 1";
    priority: i32 = PRIORITY_DEFAULT,
        "Within the tenant; 9 is the most urgent.", Allowed::count(1, 9, ""), "9", "money before reports";

"When it fails":
    failure_strategy: FailureStrategy = FailureStrategy::default(),
        "What follows a failed attempt.",
        Allowed::one::<FailureStrategy>(), "\"discard\"", "`discard`: the next fire makes up for it";
    max_retries: i32 = 5,
        "Maximum number of retries; the first attempt does not count.", Allowed::count(0, 1_000, ""), "2", "";
    retry_interval_ms: i64 = 10_000,
        "Time from a failure to the next attempt.", Allowed::ms(SPAN_MS_MAX, ""), "1_000", "";
    retry_backoff: RetryBackoff = RetryBackoff::default(),
        "How that interval grows.",
        Allowed::one::<RetryBackoff>(), "\"exponential\"", "something else must recover first";
    retry_max_interval_ms: i64 = 600_000,
        "Largest interval when it grows.", Allowed::ms(SPAN_MS_MAX, ""), "60_000", "";
    retry_jitter_percent: i32 = 0,
        "Varies the interval by this percentage: 20 means 80 to 120 %.",
        Allowed::Whole { least: 0, most: 100, unit: Unit::Percent, zero: "none" }, "20", "many runs fail together";
    retry_on: Vec<FailureClass> = EVERY_FAILURE.to_vec(),
        "Failures that are retried.",
        Allowed::any::<FailureClass>(), "[\"lost\", \"not_sent\"]",
        "a started run must not be repeated: `[\"not_sent\"]`";
    retry_elsewhere: bool = false,
        "Whether the next attempt goes to another executor, if there is one.",
        Allowed::Flag, "true", "the machine may be the reason";
    timeout_ms: i64 = 0,
        "A run that takes longer is stopped.",
        Allowed::ms(SPAN_MS_MAX, "none"), "600_000", "always, if you know how long it can take";
    wait_timeout_ms: i64 = 0,
        "A run that waits longer, from its due time to its start, fails.",
        Allowed::ms(SPAN_MS_MAX, "none"), "30_000", "a permit, a slot or a turn may take too long";
    no_executor_timeout_ms: i64 = 600_000,
        "How long after its due time a run waits for an executor that may take it, before it fails.",
        Allowed::ms(SPAN_MS_MAX, "it does not wait"), "3_600_000", "less: a late run is useless; more: deployments take long";
    delivery: Delivery = Delivery::default(),
        "How to treat an unknown outcome.",
        Allowed::one::<Delivery>(), "\"at_most_once\"", "`at_most_once`: twice is worse than not at all";

"What follows":
    parent_rule: ParentRule = ParentRule::default(),
        "How many of the parents must have ended.", Allowed::one::<ParentRule>(), "\"any\"", "";
    parent_output: bool = false,
        "Whether the parents' output becomes the run's parameters.",
        Allowed::Flag, "true", "the child works on what the parent found";
}
elsewhere {
"What follows":
    parents: Vec<ParentLink> = Vec::new(),
        "Tasks whose end starts this one: `task`, or `app/task` for another app, and `on` which outcome (`success`).",
        Allowed::Parents, "[{ task = \"load\", on = \"always\" }]", "a chain; an alarm on `failure`";
}
        }
    };
}

pub(crate) use task_fields;
