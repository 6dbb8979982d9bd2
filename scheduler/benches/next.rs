//! What does a `next_after` cost? `cargo bench -p carillon --bench next`
//!
//! For each zone a million calls over mixed expressions at mixed instants, without and with a calendar: the median and
//! the 99th percentile of the time per call, and how many allocations they made. Then single questions that take
//! longer than others, and what the first question in a zone costs. Plain `std::time`; a call is too short for the
//! clock, so calls are timed in batches of [`BATCH`] and a batch's share is taken for each of them.

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use carillon::domain::calendar::{Calendar, CalendarRule, CalendarSpec};
use carillon::domain::cron::CronSchedule;
use carillon::domain::schedule::{Schedule, Timing};
use chrono::TimeZone;
use chrono_tz::Tz;
use cron as cron_crate;

/// Calls for each zone.
const CALLS: usize = 1_000_000;

/// Calls between two looks at the clock.
const BATCH: usize = 20;

/// 2024-01-01, and how far on the questions reach, ms.
const START: i64 = 1_704_067_200_000;
const SPAN: i64 = 10 * 365 * 86_400_000;

/// As in real task tables: mostly repeating ones and daily times, some of every special kind.
const EXPRESSIONS: [&str; 20] = [
    "0 0 * * * ?",
    "*/5 * * * * ?",
    "0 */5 * * * ?",
    "0 0/15 9-17 ? * MON-FRI",
    "0 0 0 * * ?",
    "0 30 2 * * ?",
    "0 15 1,13 * * ?",
    "30 10 8 ? * 2-6",
    "0 0 9 ? * MON",
    "0 0 12 1 * ?",
    "0 0 12 L * ?",
    "0 0 18 LW * ?",
    "0 0 6 15W * ?",
    "0 0 10 ? * 6#3",
    "0 0 10 ? * 6L",
    "0 0 0 1 1 ?",
    "0 0 0 29 2 ?",
    "0 59 23 31 12 ? 2030-2040",
    "7,23,41 3/7 * * * ?",
    "0 0 0 L-3 3,6,9,12 ?",
];

const ZONES: [Tz; 16] = [
    Tz::UTC,
    Tz::Africa__Cairo,
    Tz::Africa__Casablanca,
    Tz::America__Havana,
    Tz::America__New_York,
    Tz::America__Sao_Paulo,
    Tz::America__St_Johns,
    Tz::Antarctica__Troll,
    Tz::Asia__Gaza,
    Tz::Asia__Kathmandu,
    Tz::Asia__Shanghai,
    Tz::Asia__Tehran,
    Tz::Australia__Lord_Howe,
    Tz::Europe__London,
    Tz::Pacific__Apia,
    Tz::Pacific__Chatham,
];

fn main() {
    println!("{CALLS} calls for each zone, {} expressions; ns per call: median / 99th percentile; allocations", {
        EXPRESSIONS.len()
    });
    let office = Some(office());
    let mut worst = [0.0_f64; 2];
    for zone in ZONES {
        let first = Instant::now();
        black_box(cron("0 0 0 * * ?", zone, None, CalendarRule::Skip).next_after(START));
        let first = first.elapsed();
        let plain = measure(&schedules(zone, None));
        let worked = measure(&schedules(zone, office.as_ref()));
        worst = [worst[0].max(plain.0), worst[1].max(worked.0)];
        println!(
            "{:<22} plain {:>5.0} / {:>5.0} ns, {} allocations; calendar {:>5.0} / {:>5.0} ns, {} allocations; \
             first question {first:?}",
            zone.name(),
            plain.0,
            plain.1,
            plain.2,
            worked.0,
            worked.1,
            worked.2,
        );
    }
    println!("worst median: plain {:.0} ns, calendar {:.0} ns", worst[0], worst[1]);
    the_crate_cron();
    println!();
    odd_ones();
}

/// Median and 99th percentile in ns per call, and all allocations.
fn measure(schedules: &[Schedule]) -> (f64, f64, u64) {
    let mut samples = vec![0_u64; CALLS / BATCH];
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let counted = allocation_counter::measure(|| {
        for sample in &mut samples {
            let mut asked = [(0, 0); BATCH];
            for question in &mut asked {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                *question = ((random >> 33) as usize % schedules.len(), START + (random >> 20) as i64 % SPAN);
            }
            let started = Instant::now();
            for (which, after) in asked {
                black_box(schedules[which].next_after(black_box(after)));
            }
            *sample = started.elapsed().as_nanos() as u64;
        }
    });
    samples.sort_unstable();
    let at = |part: f64| samples[((samples.len() - 1) as f64 * part) as usize] as f64 / BATCH as f64;
    (at(0.5), at(0.99), counted.count_total)
}

/// For comparison: the same for what the crate `cron` reads of the expressions; the best of some rounds, in which nothing
/// else disturbed.
fn the_crate_cron() {
    const QUESTIONS: i64 = 5_000;
    let zone = Tz::Europe__London;
    let questions: Vec<i64> = (0..QUESTIONS).map(|n| START + n * (SPAN / QUESTIONS) + 1).collect();
    let instants: Vec<_> = questions.iter().filter_map(|at| zone.timestamp_millis_opt(*at).single()).collect();
    let best = |ask: &mut dyn FnMut()| {
        let round = |_| {
            let started = Instant::now();
            ask();
            started.elapsed().as_nanos() / QUESTIONS as u128
        };
        (0..7).map(round).min().unwrap_or(0)
    };
    println!("{zone}, ns per call:");
    for expression in EXPRESSIONS {
        let Ok(theirs) = expression.parse::<cron_crate::Schedule>() else { continue };
        let ours = cron(expression, zone, None, CalendarRule::Skip);
        let their_best = best(&mut || {
            for at in &instants {
                black_box(theirs.after(at).next());
            }
        });
        let our_best = best(&mut || {
            for at in &questions {
                black_box(ours.next_after(*at));
            }
        });
        println!("  {expression:<28} carillon {our_best:>4}, the crate cron {their_best:>5}");
    }
}

fn odd_ones() {
    let leap = spec(&[], &["02-29"], &[], &[]);
    let one_day = spec(&["mon", "tue", "wed", "thu", "fri", "sat", "sun"], &[], &["2199-12-31"], &[]);
    let one_minute = spec(&[], &[], &[], &["00:01-00:00"]);
    let patches: Vec<String> = (0..64)
        .map(|n| n * 22)
        .map(|m| format!("{:02}:{:02}-{:02}:{:02}", m / 60, m % 60, (m + 15) / 60, (m + 15) % 60))
        .collect();
    let patches = spec(&["wed"], &[], &[], &patches.iter().map(String::as_str).collect::<Vec<_>>());
    let berlin = Tz::Europe__Berlin;
    let new_york = Tz::America__New_York;
    let (skip, next, previous) = (CalendarRule::Skip, CalendarRule::Next, CalendarRule::Previous);
    let rate = |interval_ms, calendar: &Arc<Calendar>| Schedule {
        timing: Timing::FixedRate { interval_ms },
        zone: berlin,
        anchor: START,
        calendar: Some(Arc::clone(calendar)),
        ..Schedule::none()
    };
    let questions = [
        ("0 0 0 29 2 ? 2101 (never)", cron("0 0 0 29 2 ? 2101", new_york, None, skip)),
        ("0 0 0 29 2 ? *", cron("0 0 0 29 2 ? *", new_york, None, skip)),
        ("0 0 0 31 2 ? * (never)", cron("0 0 0 31 2 ? *", new_york, None, skip)),
        ("0 0 0 30W 2 ? (never)", cron("0 0 0 30W 2 ?", new_york, None, skip)),
        ("0 0 0 ? 2 2#5 2199 (never)", cron("0 0 0 ? 2 2#5 2199", new_york, None, skip)),
        ("0 0 0 31 12 ? 2199", cron("0 0 0 31 12 ? 2199", new_york, None, skip)),
        ("29 Feb. excluded, 0 0 0 29 2 ? (never)", cron("0 0 0 29 2 ?", berlin, Some(&leap), skip)),
        ("one working day in 2199, daily, skip", cron("0 0 9 * * ?", berlin, Some(&one_day), skip)),
        ("one working day in 2199, daily, next", cron("0 0 9 * * ?", berlin, Some(&one_day), next)),
        ("one working day in 2199, daily, previous", cron("0 0 9 * * ?", berlin, Some(&one_day), previous)),
        ("one working day in 2199, 29 Feb., next (never)", cron("0 0 9 29 2 ?", berlin, Some(&one_day), next)),
        ("one minute a day, not that one (never)", cron("1 59 23 * * ?", berlin, Some(&one_minute), skip)),
        ("one minute a day, every second", cron("* * * * * ?", berlin, Some(&one_minute), skip)),
        ("64 ranges of hours, every 7 s", cron("*/7 * * * * ?", berlin, Some(&patches), skip)),
        ("64 ranges of hours, at their starts (never)", cron("0 0 0 ? * WED", berlin, Some(&patches), skip)),
        ("rate of a day, one minute a day (never)", rate(86_400_000, &one_minute)),
        ("rate of a day and a second, one minute a day", rate(86_401_000, &one_minute)),
        ("rate of a week, its day excluded (never)", rate(604_800_000, &spec(&["mon"], &[], &[], &[]))),
        ("rate of a minute, one working day in 2199", rate(60_000, &one_day)),
        ("rate of 22 min, in 64 ranges of hours", rate(22 * 60_000, &patches)),
        ("rate of 22 min and 1 ms, in 64 ranges of hours", rate(22 * 60_000 + 1, &patches)),
        ("rate of 1 h and 1 ms, one minute a day", rate(3_600_001, &one_minute)),
    ];
    for (name, schedule) in questions {
        black_box(schedule.next_after(START));
        let mut times: Vec<Duration> = (0..21)
            .map(|_| {
                let started = Instant::now();
                black_box(schedule.next_after(black_box(START)));
                started.elapsed()
            })
            .collect();
        times.sort_unstable();
        let started = Instant::now();
        black_box(schedule.preview(START, 10));
        let preview = started.elapsed();
        println!("{name:<50} median {:>12?}, most {:>12?}; preview of 10 {preview:>12?}", times[10], times[20]);
    }
}

fn cron(expression: &str, zone: Tz, calendar: Option<&Arc<Calendar>>, calendar_rule: CalendarRule) -> Schedule {
    #[allow(clippy::unwrap_used)] // a constant that is wrong must be seen
    let cron = CronSchedule::parse(expression).unwrap();
    Schedule {
        timing: Timing::Cron(Box::new(cron)),
        zone,
        calendar: calendar.cloned(),
        calendar_rule,
        ..Schedule::none()
    }
}

fn schedules(zone: Tz, calendar: Option<&Arc<Calendar>>) -> Vec<Schedule> {
    let rules = [CalendarRule::Skip, CalendarRule::Next, CalendarRule::Previous].into_iter().cycle();
    EXPRESSIONS.iter().zip(rules).map(|(expression, rule)| cron(expression, zone, calendar, rule)).collect()
}

/// Weekends, holidays of every year, two make-up days, nights.
fn office() -> Arc<Calendar> {
    spec(&["sat", "sun"], &["01-01", "05-01", "12-25", "12-26"], &["2026-10-10", "2027-02-20"], &["22:30-00:30"])
}

fn spec(weekdays: &[&str], days: &[&str], workdays: &[&str], hours: &[&str]) -> Arc<Calendar> {
    let list = |texts: &[&str]| texts.iter().map(ToString::to_string).collect();
    let spec = CalendarSpec {
        excluded_weekdays: list(weekdays),
        excluded_days: list(days),
        workdays: list(workdays),
        excluded_hours: list(hours),
        description: String::new(),
    };
    #[allow(clippy::unwrap_used)] // a constant that is wrong must be seen
    Arc::new(spec.compile("bench", 1).unwrap())
}
