//! Who may run when only so many may at once: which of the waiting runs get a permit.

use super::reason::Reason;
use super::{AppId, LogId, TaskId, TenantId, Urgency};
use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

/// What is due for longer than this and has no permit yet stands in line, whichever node it waits with, ms.
pub const IN_LINE_AFTER_MS: i64 = 2_000;

/// Places in line for a permit of one task, app or tenant.
const LINE_MAX: usize = 32;

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
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
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
    /// Whose permit a run waits for whose row names these, as [`PermitRequest::waits_for`] has them noted. (A node of an
    /// earlier release fills all columns; it means the task.)
    #[must_use]
    pub fn noted(app: AppId, tenant: TenantId) -> Self {
        match (app.0, tenant.0) {
            (1.., 0) => Self::App,
            (0, 1..) => Self::Tenant,
            _ => Self::Task,
        }
    }

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
    /// The higher, the more urgent.
    pub priority: i32,
    /// When it is due, ms.
    pub due_time: i64,
    /// Whether it has waited for so long that less urgent runs on other nodes let it go first: [`IN_LINE_AFTER_MS`].
    pub stands_in_line: bool,
    /// Whether it must not pass an earlier run of its task that waits, on whatever node.
    pub in_order: bool,
    /// Whether it is not due for a while: its permit would count and nothing run.
    pub is_early: bool,
}

impl PermitRequest {
    /// Its place among those that want the same permit.
    #[must_use]
    pub fn urgency(&self) -> Urgency {
        (Reverse(self.priority), (self.due_time, self.id))
    }

    /// What a row says of whose permits the run waits for: its task, its app, its tenant; 0 is for none. What must not be
    /// passed by later runs of its task always names that.
    #[must_use]
    pub fn waits_for(&self, limit: Limit) -> (TaskId, AppId, TenantId) {
        let task = if self.in_order || limit == Limit::Task { self.task_id } else { TaskId(0) };
        match limit {
            Limit::Task | Limit::Executor => (task, AppId(0), TenantId(0)),
            Limit::App => (task, self.app_id, TenantId(0)),
            Limit::Tenant => (task, AppId(0), self.tenant_id),
        }
    }

    fn scopes(&self) -> [(Limit, i64); 3] {
        [(Limit::Task, self.task_id.0), (Limit::App, self.app_id.0), (Limit::Tenant, self.tenant_id.0)]
    }

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
    /// Who stands in line for a permit of a task, an app or a tenant.
    pub lines: HashMap<(Limit, i64), Vec<Urgency>>,
}

impl Held {
    /// How many of those in this line go first.
    fn before(&self, scope: (Limit, i64), urgency: Urgency) -> usize {
        self.lines.get(&scope).map_or(0, |line| line.iter().filter(|other| **other < urgency).count())
    }
}

/// What the database has of a run that asks, and is QUEUED with the asked version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// No permit for this version.
    New,
    /// It waits, and its row says so, and for whose permit.
    Waits(Limit),
    /// It has a permit, which counts already: this is a repetition, or another copy of the run.
    Has,
}

impl Standing {
    /// By the version of the permit that is there, 0 for none, and whose it is.
    #[must_use]
    pub fn of(ask: &PermitRequest, permit_version: i64, (app, tenant): (AppId, TenantId)) -> Self {
        match permit_version {
            version if version == ask.version => Self::Has,
            version if version == -ask.version => Self::Waits(Limit::noted(app, tenant)),
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

/// A change of the permit of a run that asked: it gets one, or its row says for whose it waits.
pub type PermitChange<'a> = (&'a PermitRequest, Option<Limit>);

/// Grants permits in the order of `asks` as far as the bounds go. `standing` knows the runs whose row is QUEUED with
/// the asked version. Answers what became of them, and whose permit changes.
///
/// What has waited for long has a place in line that all nodes see: a permit that becomes free is not given to a less urgent
/// run on the node that happens to ask first.
#[must_use]
pub fn grant<'a>(
    asks: &'a [PermitRequest],
    standing: &dyn Fn(&PermitRequest) -> Option<Standing>,
    mut held: Held,
) -> (Granted, Vec<PermitChange<'a>>) {
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
    let asking: HashSet<LogId> = current.iter().map(|(ask, _)| ask.id).collect();
    held.lines.values_mut().for_each(|line| line.retain(|(_, (_, id))| !asking.contains(id)));
    let mut changes = Vec::with_capacity(current.len());
    for (ask, standing) in current {
        let passes = ask.in_order && first.get(&ask.task_id).is_some_and(|due_time| ask.due_time > *due_time);
        let Some(limit) = (if passes { Some(Limit::Task) } else { take(ask, &mut held) }) else {
            changes.push((ask, None));
            continue;
        };
        granted.held_up.insert(ask.id, limit);
        let noted = if let Standing::Waits(limit) = standing { Some(limit) } else { None };
        let waits_for = note(ask, limit, noted, &mut held);
        if waits_for.is_some() && waits_for != noted {
            changes.push((ask, waits_for));
        }
    }
    (granted, changes)
}

/// What the row of a run should say of whose permit it waits for, if anything.
fn note(ask: &PermitRequest, limit: Limit, noted: Option<Limit>, held: &mut Held) -> Option<Limit> {
    let scope = ask.scopes().into_iter().find(|(of, _)| *of == limit)?;
    let stands_in_line = noted == Some(limit) || (ask.stands_in_line && held.before(scope, ask.urgency()) < LINE_MAX);
    if stands_in_line {
        held.lines.entry(scope).or_default().push(ask.urgency());
        return Some(limit);
    }
    // A place in another line would keep others from what it cannot use.
    (ask.in_order || noted.is_some()).then_some(Limit::Task)
}

/// Counts a permit for this run in each of its scopes, or answers which is full.
fn take(ask: &PermitRequest, held: &mut Held) -> Option<Limit> {
    let [task, app, tenant] = ask.scopes();
    // In order, `waiting` says who goes first.
    let in_task = if ask.in_order { 0 } else { held.before(task, ask.urgency()) };
    let (in_app, in_tenant) = (held.before(app, ask.urgency()), held.before(tenant, ask.urgency()));
    let counts = [
        (held.tasks.entry(ask.task_id).or_default(), in_task, ask.bounds.task, Limit::Task),
        (held.apps.entry(ask.app_id).or_default(), in_app, ask.bounds.app, Limit::App),
        (held.tenants.entry(ask.tenant_id).or_default(), in_tenant, ask.bounds.tenant, Limit::Tenant),
    ];
    let is_full = |count: i64, before: usize, bound: Option<i32>| {
        bound.is_some_and(|bound| count + before as i64 >= ask.most(bound))
    };
    if let Some((.., limit)) = counts.iter().find(|(count, before, bound, _)| is_full(**count, *before, *bound)) {
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
            priority: 0,
            due_time: id * 10,
            stands_in_line: false,
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
        for (standing, noted) in [(Standing::New, 1), (Standing::Waits(Limit::Task), 0)] {
            let (granted, changes) = grant(&asks, &|_| Some(standing), Held::default());
            assert_eq!((granted.held_up.len(), changes.len()), (2, noted), "{standing:?}");
        }
    }

    const APP: (Limit, i64) = (Limit::App, 1);

    fn of_app(id: i64, task_id: i64) -> PermitRequest {
        ask(id, task_id, Bounds { app: Some(2), ..Bounds::default() })
    }

    /// One permit of the app's two is free.
    fn one_free(line: &[i64]) -> Held {
        let urgency = |id: &i64| of_app(*id, 9).urgency();
        Held {
            apps: HashMap::from([(AppId(1), 1)]),
            lines: HashMap::from([(APP, line.iter().map(urgency).collect())]),
            ..Held::default()
        }
    }

    #[test]
    fn what_stands_in_line_on_another_node_goes_first() {
        assert_eq!(granted(&[of_app(5, 1)], one_free(&[])), [0]);
        assert_eq!(limits(&[of_app(5, 1)], one_free(&[4])), [Some(Limit::App)]);
        assert_eq!(granted(&[of_app(5, 1)], one_free(&[6])), [0], "it is more urgent than what stands there");
        let urgent = PermitRequest { priority: 1, ..of_app(5, 1) };
        assert_eq!(granted(&[urgent], one_free(&[4])), [0], "by its priority");
        assert_eq!(granted(&[of_app(4, 2), of_app(5, 1)], one_free(&[4])), [0], "it is among those that ask");
        assert_eq!(granted(&[ask(5, 1, Bounds::default())], one_free(&[4])), [0], "its app has no bound");
        let free = Held { lines: one_free(&[4]).lines, ..Held::default() };
        assert_eq!(granted(&[of_app(5, 1), of_app(6, 1)], free), [0], "one of two is kept for it");
    }

    #[test]
    fn who_has_waited_long_gets_a_place_in_line() {
        let full = || Held { apps: HashMap::from([(AppId(1), 2)]), ..Held::default() };
        let long = |id, task| PermitRequest { stands_in_line: true, ..of_app(id, task) };
        let noted = |asks: &[PermitRequest], standing: Standing, held: Held| {
            let (_, changes) = grant(asks, &|_| Some(standing), held);
            changes.iter().map(|(ask, limit)| (ask.id.0, *limit)).collect::<Vec<_>>()
        };
        assert_eq!(noted(&[of_app(1, 1), long(2, 1)], Standing::New, full()), [(2, Some(Limit::App))]);
        assert_eq!(noted(&[long(2, 1)], Standing::Waits(Limit::App), full()), [], "it has it");
        assert_eq!(noted(&[of_app(2, 1)], Standing::Waits(Limit::App), full()), [], "and keeps it");
        let tasks = || Held { tasks: HashMap::from([(TaskId(1), 1)]), ..Held::default() };
        let other = PermitRequest { bounds: Bounds { task: Some(1), app: Some(2), tenant: None }, ..of_app(2, 1) };
        assert_eq!(
            noted(&[other], Standing::Waits(Limit::App), tasks()),
            [(2, Some(Limit::Task))],
            "what waits for its task keeps nothing of its app"
        );
        let many: Vec<PermitRequest> = (1..100).map(|id| long(id, id)).collect();
        assert_eq!(noted(&many, Standing::New, full()).len(), LINE_MAX, "a line has an end");
        let urgent = PermitRequest { priority: 1, ..long(200, 1) };
        let line = |ids: std::ops::Range<i64>| Held { lines: one_free(&ids.collect::<Vec<_>>()).lines, ..full() };
        assert_eq!(noted(&[long(200, 1)], Standing::New, line(1..50)), []);
        assert_eq!(noted(&[urgent], Standing::New, line(1..50)), [(200, Some(Limit::App))], "of those that go first");
        assert_eq!(noted(&[long(2, 1)], Standing::Waits(Limit::App), Held::default()), [(2, None)], "it gets a permit");
    }

    #[test]
    fn in_order_a_place_in_line_is_one_in_its_task_too() {
        let run = PermitRequest { in_order: true, ..of_app(1, 7) };
        assert_eq!(run.waits_for(Limit::App), (TaskId(7), AppId(1), TenantId(0)));
        assert_eq!(of_app(1, 7).waits_for(Limit::App), (TaskId(0), AppId(1), TenantId(0)));
        assert_eq!(of_app(1, 7).waits_for(Limit::Tenant), (TaskId(0), AppId(0), TenantId(1)));
        assert_eq!(of_app(1, 7).waits_for(Limit::Task), (TaskId(7), AppId(0), TenantId(0)));
        for limit in [Limit::Task, Limit::App, Limit::Tenant] {
            let (_, app, tenant) = run.waits_for(limit);
            assert_eq!(Standing::of(&run, -1, (app, tenant)), Standing::Waits(limit));
        }
        let earlier_release = Standing::of(&run, -1, (AppId(1), TenantId(1)));
        assert_eq!(earlier_release, Standing::Waits(Limit::Task));
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
