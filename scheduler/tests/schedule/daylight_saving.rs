//! Real changes of the clock in three dozen zones, under every policy, against what Python's zoneinfo says;
//! `data/dst-table.py` tells how the table was made.

use std::collections::{BTreeMap, BTreeSet};

use carillon::domain::cron::{DstPolicy, Gap, Overlap};
use carillon::domain::schedule::Schedule;
use serde::Deserialize;
use serde_json::json;

use super::{cron, fires};

const TABLE: &str = include_str!("../data/dst-table.jsonl");

#[derive(Deserialize)]
struct Row {
    zone: String,
    /// When the offset changes, epoch seconds.
    change: i64,
    /// Fires within so many hours of the change are listed.
    hours: i64,
    cron: String,
    /// Policy (`gap_skip`, `overlap_both`) to fires, in seconds from the change.
    #[serde(flatten)]
    wanted: BTreeMap<String, Vec<i64>>,
}

#[test]
fn every_policy_at_real_changes_of_the_clock() {
    let (mut zones, mut checked) = (BTreeSet::new(), 0);
    for line in TABLE.lines() {
        let row: Row = serde_json::from_str(line).unwrap();
        let zone = row.zone.parse().unwrap();
        for (policy, wanted) in &row.wanted {
            let (field, value) = policy.split_once('_').unwrap();
            let dst: DstPolicy = serde_json::from_value(json!({ field: value })).unwrap();
            let schedule = Schedule { dst, ..cron(&row.cron, zone) };
            let (first, end) = (row.change - row.hours * 3_600, row.change + row.hours * 3_600);
            let got: Vec<i64> = fires(&schedule, first * 1_000 - 1, 1_000)
                .into_iter()
                .take_while(|at| *at < end * 1_000)
                .map(|at| at / 1_000 - row.change)
                .collect();
            assert_eq!(&got, wanted, "{} {} {policy} at {}", row.zone, row.cron, row.change);
            checked += 1;
        }
        zones.insert(row.zone);
    }
    assert!(zones.len() >= 30 && checked > 700, "{} zones, {checked} answers", zones.len());
}

/// The second pass counts even if the next local time that matches is days away.
#[test]
fn the_second_pass_of_a_weekly_time_is_not_passed_over() {
    let zone = chrono_tz::Tz::America__New_York;
    for expression in ["0 30 1 ? * SUN", "0 30 1 1 * ?", "0 30 1 ? 11 1#1 2026"] {
        for overlap in [Overlap::Second, Overlap::Both] {
            let schedule = Schedule { dst: DstPolicy { gap: Gap::Auto, overlap }, ..cron(expression, zone) };
            let next = super::shown(&schedule, "2026-11-01T01:45:00-04:00", 1);
            assert_eq!(next, ["2026-11-01T01:30:00-05:00"], "{expression}");
        }
    }
}

/// The table says it in seconds; here one of each kind for people.
#[test]
fn what_the_policies_mean() {
    let howe = |dst| {
        let schedule = Schedule { dst, ..cron("0 15 2 * * ?", chrono_tz::Tz::Australia__Lord_Howe) };
        super::shown(&schedule, "2026-10-03T00:00:00+10:30", 2)
    };
    let policy = |gap| DstPolicy { gap, overlap: Overlap::Auto };
    assert_eq!(howe(policy(Gap::Skip)), ["2026-10-03T02:15:00+10:30", "2026-10-05T02:15:00+11:00"]);
    assert_eq!(howe(policy(Gap::After)), ["2026-10-03T02:15:00+10:30", "2026-10-04T02:30:00+11:00"]);
}
