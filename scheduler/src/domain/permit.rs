//! Who may run when only so many may at once: which of the waiting runs get a permit.

use super::reason::Reason;
use super::{AppId, LogId, TaskId, TenantId};
use std::collections::HashMap;

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
}

/// Runs that hold permits, by task, app and tenant; those that ask are not among them.
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

/// Grants permits in the order of `asks` as far as the bounds go; returns what holds up those that
/// get none, `None` for the others, in their order.
#[must_use]
pub fn grant(asks: &[PermitRequest], mut held: Held) -> Vec<Option<Limit>> {
    let mut first = std::mem::take(&mut held.waiting);
    for ask in asks.iter().filter(|ask| ask.in_order) {
        first.entry(ask.task_id).and_modify(|due| *due = ask.due_time.min(*due)).or_insert(ask.due_time);
    }
    let is_first =
        |ask: &PermitRequest| !ask.in_order || first.get(&ask.task_id).is_none_or(|due_time| ask.due_time <= *due_time);
    let verdict = |ask: &PermitRequest| {
        if !is_first(ask) {
            return Some(Limit::Task);
        }
        let counts = [
            (held.tasks.entry(ask.task_id).or_default(), ask.bounds.task, Limit::Task),
            (held.apps.entry(ask.app_id).or_default(), ask.bounds.app, Limit::App),
            (held.tenants.entry(ask.tenant_id).or_default(), ask.bounds.tenant, Limit::Tenant),
        ];
        let is_full = |(count, bound): (i64, Option<i32>)| bound.is_some_and(|bound| count >= i64::from(bound));
        if let Some((.., limit)) = counts.iter().find(|(count, bound, _)| is_full((**count, *bound))) {
            return Some(*limit);
        }
        for (count, ..) in counts {
            *count += 1;
        }
        None
    };
    asks.iter().map(verdict).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Places of those that get one.
    fn granted(asks: &[PermitRequest], held: Held) -> Vec<usize> {
        let verdicts = grant(asks, held).into_iter().enumerate();
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
        }
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
        assert_eq!(grant(&asks, held.clone()), [None, Some(Limit::Task)]);
        let asks = [ask(1, 1, of(None, Some(1), Some(2))), ask(2, 2, of(Some(1), Some(1), Some(2)))];
        assert_eq!(grant(&asks, held.clone()), [None, Some(Limit::App)]);
        assert_eq!(grant(&[ask(1, 1, of(None, None, Some(1)))], held), [Some(Limit::Tenant)]);
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
