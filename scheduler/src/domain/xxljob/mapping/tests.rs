use super::super::words::GLUE_TYPES;
use super::*;
use crate::domain::task::Routing;
use proptest::prelude::*;

fn job() -> ForeignJob {
    ForeignJob {
        id: 7,
        job_group: 2,
        job_desc: "nightly report".to_owned(),
        schedule_type: Some("CRON".to_owned()),
        schedule_conf: Some("0 30 2 * * ?".to_owned()),
        misfire_strategy: Some("DO_NOTHING".to_owned()),
        executor_route_strategy: "ROUND".to_owned(),
        executor_handler: "report".to_owned(),
        executor_param: "depth=3".to_owned(),
        executor_block_strategy: "DISCARD_LATER".to_owned(),
        executor_timeout: 90,
        executor_fail_retry_count: 2,
        glue_type: BEAN.to_owned(),
        trigger_status: 1,
        ..ForeignJob::default()
    }
}

fn spec(job: &ForeignJob) -> TaskSpec {
    spec_of(job, Tz::Asia__Shanghai).0
}

/// Columns and effects of what is not carried over.
fn left(job: &ForeignJob) -> Vec<(String, Effect)> {
    spec_of(job, Tz::UTC).1.into_iter().map(|one| (one.field, one.effect)).collect()
}

#[test]
fn a_job_becomes_a_task_that_does_the_same() {
    let expected = TaskSpec {
        name: "nightly report".to_owned(),
        handler: "report".to_owned(),
        params: "depth=3".to_owned(),
        schedule: ScheduleKind::Cron,
        cron: "0 30 2 * * ?".to_owned(),
        time_zone: "Asia/Shanghai".to_owned(),
        dst_gap: Gap::Skip,
        dst_overlap: Overlap::Second,
        misfire_strategy: MisfireStrategy::Skip,
        routing: Routing::Round,
        block_strategy: BlockStrategy::DiscardLater,
        max_retries: 2,
        timeout_ms: 90_000,
        parent_rule: ParentRule::Any,
        ..TaskSpec::default()
    };
    assert_eq!(spec_of(&job(), Tz::Asia__Shanghai), (expected, Vec::new()));
}

#[test]
fn an_old_job_has_a_cron_expression_and_nothing_else() {
    let old = ForeignJob { schedule_type: None, schedule_conf: None, misfire_strategy: None, ..job() };
    let with = |cron: &str| ForeignJob { job_cron: Some(cron.to_owned()), ..old.clone() };
    assert_eq!(spec(&with("0 30 2 * * ?")), spec(&job()));
    assert_eq!(spec(&with(" ")).schedule, ScheduleKind::None);
    assert_eq!(left(&with("0 0 0 1-5W * ?")), [("job_cron".to_owned(), Effect::Stops)]);
}

#[test]
fn schedules_of_every_kind() {
    let with = |kind: &str, conf: &str| {
        let job = ForeignJob { schedule_type: Some(kind.to_owned()), schedule_conf: Some(conf.to_owned()), ..job() };
        let spec = spec(&job);
        let stops: Vec<_> =
            left(&job).into_iter().filter(|(_, effect)| *effect == Effect::Stops).map(|(of, _)| of).collect();
        (spec.schedule, spec.cron, spec.interval_ms, spec.fire_at, stops)
    };
    let conf = || vec!["schedule_conf".to_owned()];
    assert_eq!(with("FIX_RATE", "30"), (ScheduleKind::FixedRate, String::new(), 30_000, 0, Vec::new()));
    assert_eq!(with("FIX_RATE", "0"), (ScheduleKind::None, String::new(), 0, 0, conf()));
    assert_eq!(with("FIX_RATE", "40000000"), (ScheduleKind::None, String::new(), 0, 0, conf()));
    assert_eq!(with("FIX_RATE", "soon"), (ScheduleKind::None, String::new(), 0, 0, conf()));
    assert_eq!(with("CRON", "0 0 0 31 2 ?"), (ScheduleKind::None, String::new(), 0, 0, conf()));
    assert_eq!(with("CRON", "*/5 * * * *"), (ScheduleKind::None, String::new(), 0, 0, conf()));
    // What a job without a schedule had rests.
    assert_eq!(with("NONE", "0 0 1 * * ?"), (ScheduleKind::None, "0 0 1 * * ?".to_owned(), 0, 0, Vec::new()));
    assert_eq!(with("NONE", "30"), (ScheduleKind::None, String::new(), 30_000, 0, Vec::new()));
    assert_eq!(with("NONE", "later"), (ScheduleKind::None, String::new(), 0, 0, Vec::new()));
    let once = (ScheduleKind::Once, String::new(), 0, 1_798_135_200_000, Vec::new());
    assert_eq!(with("ONCE", "2026-12-24T18:00:00Z"), once);
    let unknown = (ScheduleKind::None, String::new(), 0, 0, vec!["schedule_type".to_owned()]);
    assert_eq!(with("LUNAR", "30").4, unknown.4);
}

#[test]
fn a_script_goes_by_its_kind() {
    let script = ForeignJob { glue_type: "GLUE_SHELL".to_owned(), executor_handler: String::new(), ..job() };
    assert_eq!(spec(&script).handler, "GLUE_SHELL");
    assert_eq!(left(&script), []);
    let extra = TaskExtra { glue_type: "GLUE_SHELL".to_owned(), ..TaskExtra::default() };
    assert_eq!(job_of(&spec(&script), &extra).executor_handler, "");
}

#[test]
fn what_does_not_fit_is_named_and_what_must_not_run_is_not_started() {
    let of = |change: fn(&mut ForeignJob)| {
        let mut job = job();
        change(&mut job);
        let (spec, uncarried) = spec_of(&job, Tz::UTC);
        assert_eq!(spec.check(), [], "{spec:?}");
        let said: Vec<_> = uncarried.iter().map(|one| one.field.as_str().to_owned()).collect();
        (said.join(" "), starts(&job, &uncarried))
    };
    let said = |of: &str, starts| (of.to_owned(), starts);
    assert_eq!(of(|job| job.executor_param = "x".repeat(16_385)), said("executor_param", false));
    assert_eq!(of(|job| job.executor_handler = "x".repeat(129)), said("executor_handler", false));
    assert_eq!(of(|job| job.executor_handler = String::new()), said("executor_handler", false));
    assert_eq!(of(|job| job.executor_timeout = 2_592_001), said("executor_timeout", true));
    assert_eq!(of(|job| job.executor_fail_retry_count = 1_001), said("executor_fail_retry_count", true));
    assert_eq!(of(|job| job.executor_route_strategy = "NEAREST".to_owned()), said("executor_route_strategy", true));
    assert_eq!(of(|job| job.misfire_strategy = Some("X".to_owned())), said("misfire_strategy", true));
    assert_eq!(of(|job| job.job_desc = "x".repeat(1_001)), said("job_desc", true));
    assert_eq!(of(|job| job.alarm_email = "a@b".to_owned()), said("alarm_email", true));
    assert_eq!(of(|job| job.trigger_status = 0), said("", false));
}

#[test]
fn an_unsaid_word_is_what_xxl_job_makes_of_it() {
    let spec = spec(&ForeignJob { glue_type: BEAN.to_owned(), ..ForeignJob::default() });
    assert_eq!((spec.routing, spec.block_strategy), (Routing::First, BlockStrategy::Serial));
    assert_eq!((spec.misfire_strategy, spec.max_retries), (MisfireStrategy::Skip, 0));
}

#[test]
fn an_edit_leaves_alone_what_it_does_not_change() {
    let before = TaskSpec {
        name: "tidy".to_owned(),
        handler: "clean".to_owned(),
        schedule: ScheduleKind::FixedDelay,
        interval_ms: 1_500,
        routing: Routing::LeastLoaded,
        timeout_ms: 1_500,
        failure_strategy: FailureStrategy::Discard,
        tags: vec!["gpu".to_owned()],
        priority: 9,
        ..TaskSpec::default()
    };
    let shown = job_of(&before, &TaskExtra::default());
    let edited = ForeignJob { executor_param: "now".to_owned(), ..shown };
    let expected = TaskSpec { params: "now".to_owned(), ..before.clone() };
    assert_eq!(spec_onto(&before, &edited), (expected, Vec::new()));
    // A form of 2.2.0 knows only the expression, and leaves it empty.
    let old = ForeignJob { schedule_type: None, schedule_conf: None, misfire_strategy: None, ..edited };
    assert_eq!(spec_onto(&before, &old).0.schedule, ScheduleKind::FixedDelay);
    let renamed = ForeignJob { job_desc: "a/b".to_owned(), ..old };
    let spec = spec_onto(&before, &renamed).0;
    assert_eq!((spec.name.as_str(), spec.description.as_str(), spec.handler.as_str()), ("a-b", "a/b", "clean"));
}

fn words(words: &'static [&'static str]) -> impl Strategy<Value = String> {
    prop::sample::select(words).prop_map(str::to_owned)
}

prop_compose! {
    /// A job as xxl-job itself may hold it.
    fn plain_job()(
        (desc, handler, param) in ("[a-z/ 测é]{1,60}x", "[a-zA-Z.]{1,128}", ".{0,200}"),
        (kind, conf) in prop_oneof![
            Just(("NONE", String::new())),
            words(&["0 0 0 * * ?", "0/5 * * * * ? *", "0 15 10 ? * 6L"]).prop_map(|cron| ("CRON", cron)),
            (1..=31_622_400i64).prop_map(|seconds| ("FIX_RATE", seconds.to_string())),
        ],
        misfire in words(&["DO_NOTHING", "FIRE_ONCE_NOW"]),
        route in prop::sample::select(ROUTINGS.known.iter().map(|(word, _)| *word).collect::<Vec<_>>()),
        block in words(&["SERIAL_EXECUTION", "DISCARD_LATER", "COVER_EARLY"]),
        (timeout, retries, status) in (0..=2_592_000i64, 0..=1_000i64, 0..=1i64),
        script in prop::sample::select(&GLUE_TYPES[..]),
    ) -> ForeignJob {
        ForeignJob {
            id: 7,
            job_group: 2,
            job_desc: desc.trim().to_owned(),
            schedule_type: Some(kind.to_owned()),
            schedule_conf: Some(conf),
            misfire_strategy: Some(misfire),
            executor_route_strategy: route.to_owned(),
            executor_handler: if script == BEAN { handler } else { String::new() },
            executor_param: param.replace('\0', ""),
            executor_block_strategy: block,
            executor_timeout: timeout,
            executor_fail_retry_count: retries,
            glue_type: script.to_owned(),
            trigger_status: status,
            ..ForeignJob::default()
        }
    }
}

prop_compose! {
    /// A job as a database may hold it, whatever wrote it.
    fn any_job()(
        texts in prop::collection::vec(".{0,40}|.{120,140}", 8),
        (kind, misfire) in (prop::option::of(".{0,9}|CRON|FIX_RATE|ONCE|NONE"), prop::option::of("X|DO_NOTHING")),
        numbers in prop::array::uniform6(any::<i64>()),
        cron in prop::option::of(".{0,20}|0 0 0 \\* \\* \\?"),
    ) -> ForeignJob {
        let [desc, conf, route, handler, param, block, glue, mail]: [String; 8] = texts.try_into().unwrap();
        let [id, timeout, retries, status, last, added] = numbers;
        ForeignJob {
            id,
            job_cron: cron,
            job_desc: desc,
            schedule_conf: kind.is_some().then_some(conf),
            schedule_type: kind,
            misfire_strategy: misfire,
            executor_route_strategy: route,
            executor_handler: handler,
            executor_param: param,
            executor_block_strategy: block,
            executor_timeout: timeout,
            executor_fail_retry_count: retries,
            glue_type: glue,
            alarm_email: mail,
            trigger_status: status,
            trigger_last_time: last,
            add_time: Some(added),
            ..ForeignJob::default()
        }
    }
}

proptest! {
    #[test]
    fn a_job_comes_back_as_it_was(job in plain_job()) {
        let (spec, uncarried) = spec_of(&job, Tz::UTC);
        prop_assert!(uncarried.is_empty(), "{:?}", uncarried);
        let extra = TaskExtra {
            number: job.id,
            group: job.job_group,
            glue_type: job.glue_type.clone(),
            is_started: job.trigger_status == 1,
            ..TaskExtra::default()
        };
        let back = ForeignJob { job_cron: None, ..job_of(&spec, &extra) };
        prop_assert_eq!(&back, &job);
        // What comes back from a script is no edit.
        prop_assert_eq!(spec_onto(&spec, &back), (spec.clone(), Vec::new()));
    }

    #[test]
    fn whatever_a_job_holds_its_task_is_allowed(job in any_job()) {
        let (spec, uncarried) = spec_of(&job, Tz::America__New_York);
        prop_assert!(spec.check().is_empty(), "{:?}", spec.check());
        prop_assert!(!spec.description.contains('\0') && !spec.params.contains('\0'));
        let stops = uncarried.iter().any(|one| one.effect == Effect::Stops);
        prop_assert_eq!(starts(&job, &uncarried), job.trigger_status == 1 && !stops);
        let extra = TaskExtra { glue_type: job.glue_type.clone(), ..TaskExtra::default() };
        prop_assert_eq!(spec_onto(&spec, &job_of(&spec, &extra)), (spec.clone(), Vec::new()));
    }
}
