//! Figures of a run: how much came, how late, and how long nothing started.

use crate::checker::{Broken, is_lateness_judged};
use crate::history::{History, Row, status};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, HashMap};

/// Everything that is told besides the verdict.
pub fn of(history: &History, broken: &[Broken]) -> Value {
    let (calm, troubled) = lateness(history);
    let (silence_ms, silence_at_us) = longest_silence(history);
    json!({
        "faults": history.troubles.len(),
        "traps": traps(history),
        "tasks": history.tasks.len(),
        "fires": history.rows.iter().filter(|row| row.is_scheduled() && !row.is_shard()).count(),
        "rows": history.rows.len(),
        "starts": history.visits.len(),
        "attempts_repeated": history.attempts.len(),
        "ends": ends(&history.rows),
        "late_ms_calm": calm,
        "late_ms_near_faults": troubled,
        "others_have": history.others_between(history.mended_us, history.stopped_us),
        "lateness_is_judged": is_lateness_judged(history),
        "longest_silence_ms": silence_ms,
        "longest_silence_at_us": silence_at_us,
        "broken": counts(broken),
    })
}

/// By point: how many traps were set, how many of them were met, and by how many statements.
fn traps(history: &History) -> Value {
    let mut points: BTreeMap<&str, [usize; 3]> = BTreeMap::new();
    for trap in &history.traps {
        let [set, met, statements] = points.entry(&trap.point).or_default();
        *set += 1;
        *met += usize::from(trap.sprung > 0);
        *statements += trap.sprung;
    }
    let told = |[set, met, statements]: [usize; 3]| json!({ "set": set, "met": met, "statements": statements });
    points.into_iter().map(|(point, counts)| (point.to_owned(), told(counts))).collect::<Map<_, _>>().into()
}

fn counts(broken: &[Broken]) -> Map<String, Value> {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for one in broken {
        *counts.entry(one.what).or_default() += 1;
    }
    counts.into_iter().map(|(what, count)| (what.to_owned(), count.into())).collect()
}

fn ends(rows: &[Row]) -> Map<String, Value> {
    let mut ends: BTreeMap<String, u64> = BTreeMap::new();
    for row in rows {
        let word = match row.status {
            status::SUCCEEDED => "succeeded",
            status::FAILED => "failed",
            status::DISCARDED => "discarded",
            status::EXPIRED => "expired",
            status::CANCELLED => "cancelled",
            _ => "open",
        };
        let word = if row.reason.is_empty() { word.to_owned() } else { format!("{word}: {}", row.reason) };
        *ends.entry(word).or_default() += 1;
    }
    ends.into_iter().map(|(word, count)| (word, count.into())).collect()
}

/// Of first attempts of tasks that nothing but faults makes late: with no fault near, and with one.
fn lateness(history: &History) -> (Value, Value) {
    let plain: HashMap<i64, bool> = history.tasks.iter().map(|task| (task.id, task.is_plain)).collect();
    let (mut calm, mut troubled) = (Vec::new(), Vec::new());
    for visit in &history.visits {
        if visit.attempt != 1 || plain.get(&visit.task) != Some(&true) {
            continue;
        }
        let due_us = visit.due_time * 1_000;
        if history.is_near_trouble(due_us) { &mut troubled } else { &mut calm }.push(visit.start_us - due_us);
    }
    (percentiles(calm), percentiles(troubled))
}

fn percentiles(mut us: Vec<i64>) -> Value {
    us.sort_unstable();
    let ms = |share: f64| us.get(((us.len() as f64 * share) as usize).min(us.len().saturating_sub(1)));
    let [p50, p99, max] = [0.5, 0.99, 1.0].map(|share| ms(share).map(|us| (*us as f64 / 100.0).round() / 10.0));
    json!({ "starts": us.len(), "p50": p50, "p99": p99, "max": max })
}

/// The longest time in which no handler started, ms, and where it began.
fn longest_silence(history: &History) -> (i64, i64) {
    let is_inside = |us: &i64| *us < history.stopped_us;
    let mut starts: Vec<i64> = history.visits.iter().map(|visit| visit.start_us).filter(is_inside).collect();
    starts.push(history.stopped_us);
    starts.sort_unstable();
    let gap = starts.windows(2).max_by_key(|pair| pair[1] - pair[0]);
    gap.map_or((0, 0), |pair| ((pair[1] - pair[0]) / 1_000, pair[0]))
}

/// The one line.
pub fn verdict(engine: &str, seed: u64, seconds: u32, figures: &Value, folder: Option<&str>) -> String {
    let number = |at: &str| figures[at].to_string();
    let late = |at: &str| {
        let late = &figures[at];
        format!("{}/{}/{}", late["p50"], late["p99"], late["max"])
    };
    let broken = figures["broken"].as_object().cloned().unwrap_or_default();
    let told = if broken.is_empty() {
        "kept: nothing lost, doubled, early, stuck or overlapping".to_owned()
    } else {
        let told: Vec<String> = broken.iter().map(|(what, count)| format!("{count} {what}")).collect();
        format!("BROKEN: {}", told.join(", "))
    };
    format!(
        "{engine} seed {seed}, {seconds} s: {told}; {} faults, {} fires, {} starts; late p50/p99/max ms: {} calm, {} near \
         faults; longest silence {} ms{}{}",
        number("faults"),
        number("fires"),
        number("starts"),
        late("late_ms_calm"),
        late("late_ms_near_faults"),
        number("longest_silence_ms"),
        if figures["lateness_is_judged"] == false { "; the machine had other work: recovery not judged" } else { "" },
        folder.map(|folder| format!("; see {folder}")).unwrap_or_default()
    )
}
