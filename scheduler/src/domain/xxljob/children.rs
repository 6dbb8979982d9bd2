//! Which jobs follow which. There a job names its children, here a task names its parents.

use crate::domain::TaskId;
use crate::domain::import::{Effect, Uncarried};
use crate::domain::links::{cycle, knots};
use crate::domain::task::{PARENTS_MAX, ParentLink, ParentOutcome, ScheduleKind, TaskSpec};
use std::collections::{BTreeMap, BTreeSet};

const COLUMN: &str = "child_jobid";

/// A job as far as links go.
pub struct Linked<'a> {
    /// Name of its app.
    pub app: &'a str,
    /// Its `child_jobid`.
    pub children: &'a str,
    /// Its definition.
    pub spec: &'a mut TaskSpec,
    /// Whether it is to run by itself.
    pub starts: &'a mut bool,
    /// What is said of it.
    pub uncarried: &'a mut Vec<Uncarried>,
}

/// Gives the definitions their parents; `jobs` is by id. Links that cannot be are named at the parent.
pub fn link(jobs: &mut BTreeMap<i64, Linked<'_>>) {
    let known: BTreeSet<i64> = jobs.keys().copied().collect();
    let mut links: Vec<(i64, i64)> = Vec::new();
    for (parent, job) in &mut *jobs {
        let mut own = BTreeSet::new();
        for word in job.children.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            let child = word.parse::<i64>().ok();
            let why = match child {
                None => "it is no number of a job".to_owned(),
                Some(child) if child == *parent => "a task cannot follow itself".to_owned(),
                Some(child) if !known.contains(&child) => format!("job {child} is not in this import"),
                Some(_) => {
                    own.extend(child);
                    continue;
                }
            };
            job.uncarried.push(Uncarried::differs(COLUMN, word, why, "Name the parent at the task that is to follow."));
        }
        links.extend(own.into_iter().map(|child| (child, *parent)));
    }
    let kept = without_cycles(links, jobs);
    let mut parents: BTreeMap<i64, usize> = BTreeMap::new();
    for (child, parent) in kept {
        let Some((app, name)) = jobs.get(&parent).map(|job| (job.app.to_owned(), job.spec.name.clone())) else {
            continue;
        };
        let count = parents.entry(child).or_default();
        *count += 1;
        if *count > PARENTS_MAX {
            let why = format!("job {child} has {PARENTS_MAX} parents already, which is the most");
            tell(jobs, parent, child, why, "Let a task between them follow the others.");
            continue;
        }
        if let Some(job) = jobs.get_mut(&child) {
            let task = if app == job.app { name } else { format!("{app}/{name}") };
            job.spec.parents.push(ParentLink { task, on: ParentOutcome::Success });
        }
    }
    for job in jobs.values_mut().filter(|job| !job.spec.parents.is_empty()) {
        follow_though_stopped(job);
    }
}

fn tell(jobs: &mut BTreeMap<i64, Linked<'_>>, parent: i64, child: i64, why: String, remedy: &str) {
    if let Some(job) = jobs.get_mut(&parent) {
        job.uncarried.push(Uncarried::differs(COLUMN, child, why, remedy));
    }
}

/// A job there runs after its parents whether or not it is stopped: what is stopped is its schedule. Here a task runs after
/// them while it is started. So the schedule rests, and the task is started.
fn follow_though_stopped(job: &mut Linked<'_>) {
    if *job.starts || job.uncarried.iter().any(|one| one.effect == Effect::Stops) {
        return;
    }
    *job.starts = true;
    if job.spec.schedule != ScheduleKind::None {
        job.spec.schedule = ScheduleKind::None;
        job.spec.fire_at = 0;
        let why =
            "it was stopped, and ran after its parents all the same: it is started without its schedule, which is kept";
        job.uncarried.push(Uncarried::note("trigger_status", 0, why, "Set the schedule's kind to have it fire again."));
    }
}

/// The links (child, parent) less those that close a cycle with others that come before them.
fn without_cycles(links: Vec<(i64, i64)>, jobs: &mut BTreeMap<i64, Linked<'_>>) -> Vec<(i64, i64)> {
    let ids = |(child, parent): &(i64, i64)| (TaskId(*child), TaskId(*parent));
    let suspect: BTreeSet<(TaskId, TaskId)> = knots(&links.iter().map(ids).collect::<Vec<_>>()).into_iter().collect();
    let mut way = Vec::new();
    let mut kept = Vec::new();
    for link in links {
        if suspect.contains(&ids(&link)) {
            way.push(ids(&link));
            if let Some(circle) = cycle(&way, TaskId(link.0)) {
                way.pop();
                let circle: Vec<String> = circle.iter().rev().map(|id| id.0.to_string()).collect();
                let why = format!("tasks cannot follow themselves: {}", circle.join(" → "));
                tell(jobs, link.1, link.0, why, "Give the last of them a fixed delay, or another start.");
                continue;
            }
        }
        kept.push(link);
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Jobs of app `a` (from 100 on: `b`) with their children; the parents of each, whether it starts, and what is said.
    fn linked(given: &[(i64, &str)]) -> BTreeMap<i64, (Vec<String>, bool, Vec<String>)> {
        let mut parts: Vec<_> = given
            .iter()
            .map(|(id, _)| {
                let (name, cron) = (format!("t{id}"), "0 0 0 * * ?".to_owned());
                let spec = TaskSpec { name, schedule: ScheduleKind::Cron, cron, ..TaskSpec::default() };
                (spec, *id % 2 == 1, Vec::new())
            })
            .collect();
        let mut jobs = BTreeMap::new();
        for ((id, children), (spec, starts, uncarried)) in given.iter().zip(&mut parts) {
            let app = if *id < 100 { "a" } else { "b" };
            jobs.insert(*id, Linked { app, children, spec, starts, uncarried });
        }
        link(&mut jobs);
        let seen = jobs.iter().map(|(id, job)| {
            let parents = job.spec.parents.iter().map(|link| link.task.clone()).collect();
            let said = job.uncarried.iter().map(|one| format!("{}: {}", one.value, one.why)).collect();
            (*id, (parents, *job.starts, said))
        });
        seen.collect()
    }

    #[test]
    fn children_get_their_parents() {
        let seen = linked(&[(1, "3, 101,3"), (3, ""), (5, "3"), (101, "5")]);
        assert_eq!(seen[&3].0, ["t1", "t5"]);
        assert_eq!((&seen[&101].0[..], &seen[&5].0[..]), (&["a/t1".to_owned()][..], &["b/t101".to_owned()][..]));
        assert!(seen.values().all(|(_, starts, said)| *starts && said.is_empty()));
    }

    #[test]
    fn what_cannot_be_is_named_at_the_parent() {
        let seen = linked(&[(1, "x,1,9"), (3, "")]);
        let expected =
            ["x: it is no number of a job", "1: a task cannot follow itself", "9: job 9 is not in this import"];
        assert_eq!(seen[&1].2, expected);
        assert!(seen[&3].0.is_empty());
    }

    #[test]
    fn a_cycle_is_cut_once() {
        let seen = linked(&[(1, "3"), (3, "5"), (5, "1,7"), (7, "")]);
        assert_eq!(seen[&5].2, ["1: tasks cannot follow themselves: 1 → 3 → 5 → 1"]);
        assert_eq!((seen[&1].0.len(), &seen[&3].0[..]), (0, &["t1".to_owned()][..]));
        assert_eq!((&seen[&5].0[..], &seen[&7].0[..]), (&["t3".to_owned()][..], &["t5".to_owned()][..]));
    }

    #[test]
    fn a_stopped_child_runs_after_its_parents() {
        let seen = linked(&[(1, "2"), (2, ""), (4, "")]);
        assert!(seen[&2].1 && !seen[&4].1);
        assert_eq!(seen[&2].2.len(), 1, "that its schedule rests is said");
    }

    #[test]
    fn a_task_has_so_many_parents_at_most() {
        let mut given: Vec<(i64, &str)> = (1..=40).map(|id| (id * 2 + 1, "1")).collect();
        given.push((1, ""));
        let seen = linked(&given);
        assert_eq!(seen[&1].0.len(), PARENTS_MAX);
        assert_eq!(seen.values().filter(|(_, _, said)| !said.is_empty()).count(), 8);
    }
}
