//! Who may run when only so many may at once: which of the waiting runs get a permit.

use super::reason::Reason;
use super::{AppId, LogId, TaskId, TenantId};
use std::collections::{HashMap, HashSet};

/// Bounds on runs at once that hold for a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Bounds {
    /// Of its task; a block strategy across the app is 1.
    pub task: Option<i32>,
    /// Of its app.
    pub app: Option<i32>,
    /// Of its tenant.
    pub tenant: Option<i32>,
}

/// Whose bound holds a run up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// Its task's, or an earlier run of the task that it must not pass.
    Task,
    /// Its app's.
    App,
    /// Its tenant's.
    Tenant,
    /// No executor of its app takes it.
    Executor,
}

impl Limit {
    /// What the run's row says while it waits.
    #[must_use]
    pub fn reason(self) -> Reason {
        match self {
            Self::Task => Reason::TaskLimit,
            Self::App => Reason::AppLimit,
            Self::Tenant => Reason::TenantLimit,
            Self::Executor => Reason::NoExecutor,
        }
    }
}

/// A run that asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PermitRequest {
    /// Task log id.
    pub id: LogId,
    /// Version of its row; a permit holds for this version while the run waits.
    pub version: i64,
    /// Owner.
    pub tenant_id: TenantId,
    /// Kind of executor.
    pub app_id: AppId,
    /// Task.
    pub task_id: TaskId,
    /// What it must keep to.
    pub bounds: Bounds,
    /// When it is due, ms.
    pub due_time: i64,
    /// Whether it must not pass an earlier run of its task that waits, on whatever node.
    pub in_order: bool,
    /// Whether it is not due for a while: its permit would count and nothing run.
    pub is_early: bool,
}

impl PermitRequest {
    /// How many may count when it gets one. What is early leaves half of the permits to runs that can start with them:
    /// else those that wait never get one where runs follow each other faster than the dispatch lead.
    fn most(&self, bound: i32) -> i64 {
        let bound = i64::from(bound);
        if self.is_early { (bound + 1) / 2 } else { bound }
    }
}

/// Permits that count, by task, app and tenant.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Held {
    /// By task.
    pub tasks: HashMap<TaskId, i64>,
    /// By app.
    pub apps: HashMap<AppId, i64>,
    /// By tenant.
    pub tenants: HashMap<TenantId, i64>,
    /// When the first run that waits for a permit is due, ms, by task.
    pub waiting: HashMap<TaskId, i64>,
}

/// What the database has of a run that asks, and is QUEUED with the asked version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// No permit for this version.
    New,
    /// It waits in order.
    Waits,
    /// It has a permit, which counts already: this is a repetition, or another copy of the run.
    Has,
}

impl Standing {
    /// By the version of the permit that is there, 0 for none.
    #[must_use]
    pub fn of(ask: &PermitRequest, permit_version: i64) -> Self {
        match permit_version {
            version if version == ask.version => Self::Has,
            version if version == -ask.version => Self::Waits,
            _ => Self::New,
        }
    }
}

/// Who got no permit; all others did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Granted {
    /// What holds them up.
    pub held_up: HashMap<LogId, Limit>,
    /// Their rows have moved on: the copies that asked are to be dropped.
    pub outdated: HashSet<LogId>,
}

/// Grants permits in the order of `asks` as far as the bounds go. `standing` knows the runs whose row is QUEUED with
/// the asked version. Answers what became of them, and whose permit changes: granted, or noted as waiting.
#[must_use]
pub fn grant<'a>(
    asks: &'a [PermitRequest],
    standing: &dyn Fn(&PermitRequest) -> Option<Standing>,
    mut held: Held,
) -> (Granted, Vec<(&'a PermitRequest, bool)>) {
    let mut granted = Granted::default();
    let mut first = std::mem::take(&mut held.waiting);
    let mut current = Vec::with_capacity(asks.len());
    for ask in asks {
        match standing(ask) {
            None => drop(granted.outdated.insert(ask.id)),
            Some(Standing::Has) => {}
            Some(standing) => {
                if ask.in_order {
                    first.entry(ask.task_id).and_modify(|due| *due = ask.due_time.min(*due)).or_insert(ask.due_time);
                }
                current.push((ask, standing));
            }
        }
    }
    let mut changes = Vec::with_capacity(current.len());
    for (ask, standing) in current {
        let passes = ask.in_order && first.get(&ask.task_id).is_some_and(|due_time| ask.due_time > *due_time);
        let limit = if passes { Some(Limit::Task) } else { take(ask, &mut held) };
        if let Some(limit) = limit {
            granted.held_up.insert(ask.id, limit);
        }
        if limit.is_none() || (ask.in_order && standing != Standing::Waits) {
            changes.push((ask, limit.is_none()));
        }
    }
    (granted, changes)
}

/// Counts a permit for this run in each of its scopes, or answers which is full.
fn take(ask: &PermitRequest, held: &mut Held) -> Option<Limit> {
    let counts = [
        (held.tasks.entry(ask.task_id).or_default(), ask.bounds.task, Limit::Task),
        (held.apps.entry(ask.app_id).or_default(), ask.bounds.app, Limit::App),
        (held.tenants.entry(ask.tenant_id).or_default(), ask.bounds.tenant, Limit::Tenant),
    ];
    let is_full = |(count, bound): (i64, Option<i32>)| bound.is_some_and(|bound| count >= ask.most(bound));
    if let Some((.., limit)) = counts.iter().find(|(count, bound, _)| is_full((**count, *bound))) {
        return Some(*limit);
    }
    for (count, ..) in counts {
        *count += 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn limits(asks: &[PermitRequest], held: Held) -> Vec<Option<Limit>> {
        let (granted, _) = grant(asks, &|_| Some(Standing::New), held);
        asks.iter().map(|ask| granted.held_up.get(&ask.id).copied()).collect()
    }

    /// Places of those that get one.
    fn granted(asks: &[PermitRequest], held: Held) -> Vec<usize> {
        let verdicts = limits(asks, held).into_iter().enumerate();
        verdicts.filter(|(_, limit)| limit.is_none()).map(|(place, _)| place).collect()
    }

    fn ask(id: i64, task_id: i64, bounds: Bounds) -> PermitRequest {
        let task_id = TaskId(task_id);
        PermitRequest {
            id: LogId(id),
            version: 1,
            tenant_id: TenantId(1),
            app_id: AppId(1),
            task_id,
            bounds,
            due_time: id * 10,
            in_order: false,
            is_early: false,
        }
    }

    #[test]
    fn what_is_early_leaves_half_to_what_is_due() {
        let early = |id, task: i32| {
            let bounds = Bounds { task: Some(task), ..Bounds::default() };
            PermitRequest { is_early: true, ..ask(id, i64::from(task), bounds) }
        };
        let due = |id, task| PermitRequest { is_early: false, ..early(id, task) };
        assert_eq!(granted(&[early(1, 2), early(2, 2), due(3, 2), due(4, 2)], Held::default()), [0, 2]);
        assert_eq!(granted(&[early(1, 3), early(2, 3), early(3, 3), due(4, 3)], Held::default()), [0, 1, 3]);
        assert_eq!(granted(&[early(1, 1), due(2, 1)], Held::default()), [0], "the only one is not halved");
        assert_eq!(granted(&[early(1, 0)], Held::default()), [0usize; 0]);
    }

    #[test]
    fn in_serial_tasks_no_run_overtakes_a_waiting_one() {
        let one = Bounds { task: Some(1), ..Bounds::default() };
        let ordered = |id, task_id| PermitRequest { in_order: true, ..ask(id, task_id, one) };
        assert_eq!(granted(&[ordered(2, 1), ordered(1, 1), ordered(3, 2)], Held::default()), [1, 2]);
        let waiting = |due_time| Held { waiting: HashMap::from([(TaskId(1), due_time)]), ..Held::default() };
        assert_eq!(granted(&[ordered(2, 1), ask(3, 1, Bounds::default())], waiting(19)), [1]);
        assert_eq!(granted(&[ordered(2, 1)], waiting(20)), [0]);
    }

    #[test]
    fn each_bound_holds() {
        let one = Bounds { task: Some(1), ..Bounds::default() };
        let free = Bounds::default();
        assert_eq!(
            granted(&[ask(1, 1, one), ask(2, 1, one), ask(3, 2, one), ask(4, 3, free)], Held::default()),
            [0, 2, 3]
        );
        let held = Held { tasks: HashMap::from([(TaskId(2), 1)]), ..Held::default() };
        assert_eq!(granted(&[ask(1, 1, one), ask(3, 2, one)], held), [0]);
        let app = Bounds { app: Some(3), ..Bounds::default() };
        let held = Held { apps: HashMap::from([(AppId(1), 2)]), ..Held::default() };
        assert_eq!(granted(&[ask(1, 1, app), ask(2, 2, app)], held), [0]);
        let both = Bounds { task: Some(5), tenant: Some(1), ..Bounds::default() };
        assert_eq!(granted(&[ask(1, 1, both), ask(2, 2, both)], Held::default()), [0]);
    }

    #[test]
    fn a_refusal_names_the_limit_that_was_reached() {
        let of = |task, app, tenant| Bounds { task, app, tenant };
        let held = Held { tenants: HashMap::from([(TenantId(1), 1)]), ..Held::default() };
        let asks = [ask(1, 1, of(Some(1), Some(1), Some(2))), ask(2, 1, of(Some(1), Some(1), None))];
        assert_eq!(limits(&asks, held.clone()), [None, Some(Limit::Task)]);
        let asks = [ask(1, 1, of(None, Some(1), Some(2))), ask(2, 2, of(Some(1), Some(1), Some(2)))];
        assert_eq!(limits(&asks, held.clone()), [None, Some(Limit::App)]);
        assert_eq!(limits(&[ask(1, 1, of(None, None, Some(1)))], held), [Some(Limit::Tenant)]);
    }

    #[test]
    fn copies_that_were_left_behind_get_nothing_and_take_nothing() {
        let one = Bounds { task: Some(1), ..Bounds::default() };
        let asks = [ask(1, 1, one), ask(2, 1, one), ask(3, 1, one)];
        let standing = |ask: &PermitRequest| [None, Some(Standing::Has), Some(Standing::New)][ask.id.0 as usize - 1];
        let held = Held { tasks: HashMap::from([(TaskId(1), 1)]), ..Held::default() };
        let (granted, changes) = grant(&asks, &standing, held);
        assert_eq!(granted.outdated, HashSet::from([LogId(1)]));
        assert_eq!(granted.held_up, HashMap::from([(LogId(3), Limit::Task)]), "the second's permit counts");
        assert!(changes.is_empty());
    }

    #[test]
    fn waiting_in_order_is_noted_once() {
        let one = Bounds { task: Some(0), ..Bounds::default() };
        let asks = [PermitRequest { in_order: true, ..ask(1, 1, one) }, ask(2, 2, one)];
        for (standing, noted) in [(Standing::New, 1), (Standing::Waits, 0)] {
            let (granted, changes) = grant(&asks, &|_| Some(standing), Held::default());
            assert_eq!((granted.held_up.len(), changes.len()), (2, noted), "{standing:?}");
        }
    }

    proptest! {
        #[test]
        fn no_bound_is_exceeded_and_none_blocks_without_one(
            asks in prop::collection::vec((1i64..5, prop::option::of(1i32..4), prop::option::of(1i32..6)), 0..40),
            before in 0i64..4,
        ) {
            let asks: Vec<PermitRequest> = asks
                .iter()
                .enumerate()
                .map(|(id, (task, of_task, of_app))| {
                    ask(id as i64, *task, Bounds { task: *of_task, app: *of_app, tenant: None })
                })
                .collect();
            let held = Held { apps: HashMap::from([(AppId(1), before)]), ..Held::default() };
            let granted = granted(&asks, held);
            let (mut tasks, mut app) = (HashMap::<i64, i64>::new(), before);
            for (place, ask) in asks.iter().enumerate() {
                let of_task = tasks.entry(ask.task_id.0).or_default();
                let fits = ask.bounds.task.is_none_or(|bound| *of_task < i64::from(bound))
                    && ask.bounds.app.is_none_or(|bound| app < i64::from(bound));
                prop_assert_eq!(fits, granted.contains(&place));
                if fits {
                    *of_task += 1;
                    app += 1;
                }
            }
        }
    }
}
