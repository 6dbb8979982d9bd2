//! A definition in which nothing is as it is by default. Every field is written out: one that is
//! added does not compile until it is here, too.

use carillon::domain::cron::{Gap, Overlap};
use carillon::domain::task::{
    BlockScope, BlockStrategy, CalendarRule, Delivery, ExpiredStrategy, FailureClass, FailureStrategy, Maintenance,
    MisfireStrategy, ParentLink, ParentOutcome, ParentRule, RetryBackoff, Routing, ScheduleKind, TaskSpec,
};

/// The definition; it needs the calendar `holidays` and the tasks `first` and `other/second`.
pub fn every_field() -> TaskSpec {
    let spec = TaskSpec {
        name: "every field: \"quoted\", 'twice', # no comment".to_owned(),
        handler: "no".to_owned(),
        description: "Über die Nacht\n\n  indented, with a blank at the end \n\ttab \\ back\r\n".to_owned(),
        params: "{\n  \"text\": \"it's '''three'''\",\n  \"n\": 1\n}".to_owned(),
        schedule: ScheduleKind::Cron,
        cron: "0 0/5 9-17 ? * MON-FRI".to_owned(),
        time_zone: "America/New_York".to_owned(),
        interval_ms: 1_000,
        fire_at: 1_798_135_200_001,
        valid_from: 1_798_135_200_000,
        valid_until: 7_258_118_399_999,
        max_fires: i64::MAX,
        dst_gap: Gap::After,
        dst_overlap: Overlap::Both,
        calendar: "holidays".to_owned(),
        calendar_rule: CalendarRule::Next,
        spread_ms: 1,
        jitter_ms: 2,
        misfire_strategy: MisfireStrategy::FireAll,
        misfire_max: 11,
        misfire_max_late_ms: 3,
        expired_strategy: ExpiredStrategy::Discard,
        expire_after_ms: 4,
        maintenance: Maintenance::Ignore,
        pause_after_failures: 5,
        routing: Routing::Sharding,
        tags: vec!["gpu=yes".to_owned(), "on".to_owned()],
        tags_any: vec!["0x10".to_owned()],
        tags_none: vec!["null".to_owned(), "~".to_owned()],
        block_strategy: BlockStrategy::CoverEarly,
        block_scope: BlockScope::App,
        max_concurrent: 6,
        priority: 9,
        failure_strategy: FailureStrategy::Discard,
        max_retries: 0,
        retry_interval_ms: 7,
        retry_backoff: RetryBackoff::Exponential,
        retry_max_interval_ms: 8,
        retry_jitter_percent: 9,
        retry_on: vec![FailureClass::Failed, FailureClass::NotSent],
        retry_elsewhere: true,
        timeout_ms: 10,
        wait_timeout_ms: 11,
        delivery: Delivery::AtMostOnce,
        parents: vec![
            ParentLink { task: "other/second".to_owned(), on: ParentOutcome::Always },
            ParentLink { task: "first".to_owned(), on: ParentOutcome::Failure },
        ],
        parent_rule: ParentRule::Any,
        parent_output: true,
    };
    assert_eq!(spec.check(), []);
    let said = spec.sparse();
    let unsaid: Vec<_> = TaskSpec::field_names().iter().filter(|name| !said.contains_key(**name)).collect();
    assert!(unsaid.is_empty(), "{unsaid:?} are as by default");
    spec
}
