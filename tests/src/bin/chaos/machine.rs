//! How much of this machine other work takes: while that is much, it is not the product that makes runs late.

use crate::signals;
use crate::story::Story;
use carillon_tests::now_us;
use serde_json::json;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;

/// Between two looks.
const LOOK: Duration = Duration::from_secs(1);

/// Of the kernel's count of processor time, in a second.
const TICKS: f64 = 100.0;

/// Processes that only get what nobody else wants (`SCHED_IDLE`).
const IDLE: u64 = 5;

/// Places of what is read, in `/proc/…/stat` behind the name.
const USER: usize = 11;
const SYSTEM: usize = 12;
const POLICY: usize = 38;

/// Looks each second until it is dropped.
pub struct Watch {
    /// When, epoch µs, and the share of the machine that others had since the look before.
    seen: Arc<Mutex<Vec<(i64, f64)>>>,
    looking: JoinHandle<()>,
}

impl Watch {
    /// From now on.
    pub fn begin(story: &Story) -> Self {
        let seen = Arc::<Mutex<Vec<(i64, f64)>>>::default();
        let (into, story) = (Arc::clone(&seen), story.clone());
        let looking = tokio::spawn(async move {
            let processors = std::thread::available_parallelism().map_or(1.0, |count| count.get() as f64);
            let (mut before, mut at) = (ticks_of_others(), Instant::now());
            loop {
                tokio::time::sleep(LOOK).await;
                let (now, passed) = (ticks_of_others(), at.elapsed().as_secs_f64());
                let since = |(pid, ticks): (&u32, &u64)| ticks.saturating_sub(before.get(pid).copied().unwrap_or(0));
                let share = now.iter().map(since).sum::<u64>() as f64 / TICKS / processors / passed;
                story.tell("others have", json!(share));
                into.lock().unwrap().push((now_us(), share));
                (before, at) = (now, Instant::now());
            }
        });
        Self { seen, looking }
    }

    /// What was seen so far.
    pub fn seen(&self) -> Vec<(i64, f64)> {
        self.seen.lock().unwrap().clone()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.looking.abort();
    }
}

/// The processor time of each process that is not this one's, and competes with it.
fn ticks_of_others() -> HashMap<u32, u64> {
    let own: HashSet<u32> = signals::family(std::process::id()).into_iter().collect();
    let of = |pid: u32| {
        // It may have ended meanwhile.
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
        (number(POLICY)? != IDLE).then_some((pid, number(USER)? + number(SYSTEM)?))
    };
    signals::processes().into_iter().filter(|pid| !own.contains(pid)).filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_and_its_children_are_no_others() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let others = ticks_of_others();
        let has = |pid: u32| others.contains_key(&pid);
        let (own, childs) = (has(std::process::id()), has(child.id()));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!own && !childs);
    }
}
