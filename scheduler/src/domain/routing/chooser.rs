//! Chooses executors for the runs of one batch.

use super::field::Field;
use super::known::Known;
use super::strategy::{Takes, Turn};
use super::{Executors, Fleet, NoExecutor, Probe, Routing, Tags, UseChange};
use crate::domain::executor::Executor;
use crate::domain::{AppId, ExecutorId, LogId, TaskId, TenantId};
use std::collections::HashMap;
use std::sync::Arc;

/// What is asked about one run.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// Tenant.
    pub tenant_id: TenantId,
    /// App.
    pub app_id: AppId,
    /// Task. Handler, tags and routing are its own: within one batch a task has one definition.
    pub task_id: TaskId,
    /// Handler.
    pub handler: &'a str,
    /// Condition on tags.
    pub tags: &'a Tags,
    /// How to choose.
    pub routing: Routing,
    /// The run's log.
    pub run_id: LogId,
    /// The run's number within its task, growing by one from run to run.
    pub seq: i64,
    /// Dispatches so far.
    pub attempt: i32,
    /// Whether the run is one shard of a broadcast: it goes to any one, at random.
    pub is_shard: bool,
    /// Executors that must not get it.
    pub refused_by: &'a [ExecutorId],
    /// An executor that should not get it while there is another ("retry elsewhere"). Ignored when
    /// all get it; asked last where executors are probed.
    pub avoid: Option<ExecutorId>,
}

impl Request<'_> {
    fn turn(&self) -> Turn {
        Turn {
            task_id: self.task_id,
            // An attempt more is a turn further, so that a repeated run moves on.
            number: self.seq.wrapping_add(i64::from(self.attempt)),
            seed: (self.run_id.0 as u64) ^ ((self.attempt as u64) << 48),
        }
    }

    /// Those of `executors` that this run must do without, in their order, or why that leaves none.
    fn left_out(&self, executors: &Executors, one_is_chosen: bool) -> Result<Vec<ExecutorId>, NoExecutor> {
        if self.refused_by.is_empty() && self.avoid.is_none() {
            return Ok(Vec::new());
        }
        let among = |ids: &dyn Fn(ExecutorId) -> bool| -> Vec<ExecutorId> {
            executors.iter().map(|executor| executor.id).filter(|id| ids(*id)).collect()
        };
        let refused = among(&|id| self.refused_by.contains(&id));
        if refused.len() == executors.len() {
            return Err(NoExecutor::AllRefused { handler: self.handler.to_owned(), refused: refused.len() });
        }
        let both = among(&|id| self.refused_by.contains(&id) || self.avoid == Some(id));
        Ok(if one_is_chosen && both.len() < executors.len() { both } else { refused })
    }
}

/// Where a run goes.
#[derive(Debug, Clone)]
pub enum Choice {
    /// To this one.
    To(Arc<Executor>),
    /// To the first of these that answers as it should; the caller asks, and reports who got it
    /// with [`Chooser::gave`].
    Probe(Probe),
    /// To all of these, one shard each, in this order.
    Shards(Executors),
    /// To no executor.
    NoExecutor(NoExecutor),
}

/// Chooses for one batch: what holds for several runs is worked out once, and each choice sees
/// those before it.
pub struct Chooser {
    online: HashMap<(TenantId, AppId), Fleet>,
    known: Known,
    /// Candidates by task, or why it has none.
    whole: HashMap<TaskId, Result<Field, NoExecutor>>,
    /// Candidates by task and whom the run must do without.
    narrowed: HashMap<(TaskId, Vec<ExecutorId>), Field>,
}

impl Chooser {
    /// Over the executors that are online, one fleet for each app.
    #[must_use]
    pub fn over(fleets: impl IntoIterator<Item = Fleet>, known: Known) -> Self {
        let online = fleets.into_iter().map(|fleet| (fleet.app(), fleet)).collect();
        Self { online, known, whole: HashMap::new(), narrowed: HashMap::new() }
    }

    /// Over executors of any apps, in any order.
    #[cfg(test)]
    pub fn new(online: impl IntoIterator<Item = Arc<Executor>>, known: Known) -> Self {
        let mut by_app: HashMap<_, Vec<_>> = HashMap::new();
        for executor in online {
            by_app.entry((executor.tenant_id, executor.app_id)).or_default().push(executor);
        }
        Self::over(by_app.into_iter().map(|(app, executors)| Fleet::new(app, executors, Fleet::UNKEPT)), known)
    }

    /// Where this run goes. What it chooses counts as given and as used, whether or not the
    /// dispatch succeeds: an executor that refuses must not be the least used for ever.
    pub fn choose(&mut self, request: &Request<'_>) -> Choice {
        let Self { online, known, whole, narrowed } = self;
        let field = whole.entry(request.task_id).or_insert_with(|| {
            let fleet = online.get(&(request.tenant_id, request.app_id)).ok_or(NoExecutor::NoneOnline)?;
            known.lists.of(fleet, request.handler, request.tags).map(Field::new)
        });
        let field = match field {
            Ok(field) => field,
            Err(no_executor) => return Choice::NoExecutor(no_executor.clone()),
        };
        let routing = match request.routing {
            Routing::Sharding if request.is_shard => Routing::Random,
            routing => routing,
        };
        let takes = routing.takes();
        let one_is_chosen = matches!(takes, Takes::One(_) | Takes::OneByUses(_));
        let left_out = match request.left_out(field.executors(), one_is_chosen) {
            Ok(left_out) => left_out,
            Err(no_executor) => return Choice::NoExecutor(no_executor),
        };
        if routing == Routing::ConsistentHash && !left_out.is_empty() {
            // The way past an executor is the same as on a ring without it, and needs no new ring.
            let place = field.on_ring(request.task_id, &left_out, &mut known.rings);
            return to(place, field.executors(), known);
        }
        let field = if left_out.is_empty() {
            field
        } else {
            let key = (request.task_id, left_out);
            narrowed.entry(key).or_insert_with_key(|(_, left_out)| field.without(left_out))
        };
        match takes {
            Takes::FirstThatAnswers { skip_busy } => {
                let executors = avoided_last(field.executors(), request.avoid);
                Choice::Probe(Probe { executors, skip_busy })
            }
            Takes::All => {
                for executor in field.executors().iter() {
                    give(known, executor.id);
                }
                Choice::Shards(Arc::clone(field.executors()))
            }
            Takes::One(place) | Takes::OneByUses(place) => {
                to(place(field, &request.turn(), known), field.executors(), known)
            }
        }
    }

    /// Counts a run that went to an executor otherwise than by [`Choice::To`] or
    /// [`Choice::Shards`].
    pub fn gave(&mut self, executor_id: ExecutorId) {
        give(&mut self.known, executor_id);
    }

    /// The uses to store, each once.
    pub fn take_use_changes(&mut self) -> Vec<UseChange> {
        self.known.uses.take_changes()
    }

    /// What is known now.
    #[must_use]
    pub fn finish(self) -> Known {
        self.known
    }
}

fn to(place: Option<usize>, executors: &Executors, known: &mut Known) -> Choice {
    // A field has at least one executor, and each of them has weight: there is a place.
    let Some(executor) = place.and_then(|place| executors.get(place)) else {
        return Choice::NoExecutor(NoExecutor::NoneOnline);
    };
    give(known, executor.id);
    Choice::To(Arc::clone(executor))
}

fn give(known: &mut Known, executor_id: ExecutorId) {
    *known.given.entry(executor_id).or_default() += 1;
    *known.newly_given.entry(executor_id).or_default() += 1;
}

fn avoided_last(executors: &Executors, avoid: Option<ExecutorId>) -> Executors {
    match executors.iter().position(|executor| Some(executor.id) == avoid) {
        None => Arc::clone(executors),
        Some(place) => {
            let mut executors = executors.to_vec();
            executors[place..].rotate_left(1);
            executors.into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{executor, fleet};
    use super::*;

    const ANY: &Tags = &Tags { all: Vec::new(), any: Vec::new(), none: Vec::new() };

    fn request(routing: Routing) -> Request<'static> {
        Request {
            tenant_id: TenantId(1),
            app_id: AppId(1),
            task_id: TaskId(1),
            handler: "h",
            tags: ANY,
            routing,
            run_id: LogId(1),
            seq: 0,
            attempt: 0,
            is_shard: false,
            refused_by: &[],
            avoid: None,
        }
    }

    fn executors(ids: &[i64]) -> Vec<ExecutorId> {
        ids.iter().copied().map(ExecutorId).collect()
    }

    /// Ids chosen: one, or all in their order.
    fn ids(choice: &Choice) -> Vec<i64> {
        let all = |executors: &Executors| executors.iter().map(|executor| executor.id.0).collect();
        match choice {
            Choice::To(executor) => vec![executor.id.0],
            Choice::Probe(probe) => all(&probe.executors),
            Choice::Shards(executors) => all(executors),
            Choice::NoExecutor(_) => Vec::new(),
        }
    }

    /// Ids chosen for runs 0, 1, … over a fleet of these weights.
    fn chosen(weights: &[i32], request: &Request<'_>, runs: i64) -> Vec<i64> {
        let mut chooser = Chooser::new(fleet(weights), Known::default());
        (0..runs).flat_map(|run| ids(&chooser.choose(&Request { run_id: LogId(run), seq: run, ..*request }))).collect()
    }

    #[test]
    fn each_routing_chooses_as_it_says() {
        let check = |routing, weights: &[i32], expect: &[i64]| {
            let runs = if routing == Routing::Sharding { 1 } else { 4 };
            assert_eq!(chosen(weights, &request(routing), runs), expect, "{routing:?}");
        };
        check(Routing::First, &[1, 9, 1], &[1, 1, 1, 1]);
        check(Routing::First, &[0, 9, 1], &[2, 2, 2, 2]);
        check(Routing::Last, &[1, 9, 1], &[3, 3, 3, 3]);
        check(Routing::Round, &[1, 1, 1], &[1, 2, 3, 1]);
        check(Routing::Round, &[1, 2], &[2, 1, 2, 2]);
        check(Routing::ConsistentHash, &[1], &[1, 1, 1, 1]);
        check(Routing::LeastFrequentlyUsed, &[1, 2], &[1, 2, 2, 1]);
        check(Routing::LeastRecentlyUsed, &[1, 2], &[1, 2, 1, 2]);
        check(Routing::Sharding, &[1, 0, 1], &[1, 3]);
        // Two each, since what was given in the batch counts.
        let mut loaded = chosen(&[1, 1], &request(Routing::LeastLoaded), 4);
        loaded.sort_unstable();
        assert_eq!(loaded, [1, 1, 2, 2]);
    }

    #[test]
    fn failover_and_busyover_ask_in_order_and_the_avoided_one_last() {
        let check = |routing, refused_by: &[i64], avoid: Option<i64>, expect: &[i64], skips| {
            let (refused_by, avoid) = (&executors(refused_by)[..], avoid.map(ExecutorId));
            let mut chooser = Chooser::new(fleet(&[1, 1, 1]), Known::default());
            let choice = chooser.choose(&Request { refused_by, avoid, ..request(routing) });
            assert!(matches!(&choice, Choice::Probe(probe) if probe.skip_busy == skips), "{choice:?}");
            assert_eq!(ids(&choice), expect);
        };
        check(Routing::Failover, &[], None, &[1, 2, 3], false);
        check(Routing::Failover, &[2], None, &[1, 3], false);
        check(Routing::Failover, &[], Some(1), &[2, 3, 1], false);
        check(Routing::Busyover, &[3], Some(1), &[2, 1], true);
        check(Routing::Busyover, &[], Some(7), &[1, 2, 3], true);
    }

    #[test]
    fn a_refusing_executor_is_left_out_and_an_avoided_one_comes_last() {
        let check = |routing, refused_by: &[i64], avoid: Option<i64>, expect: &[i64]| {
            let (refused_by, avoid) = (&executors(refused_by)[..], avoid.map(ExecutorId));
            assert_eq!(chosen(&[1, 1, 1], &Request { refused_by, avoid, ..request(routing) }, 1), expect);
        };
        check(Routing::First, &[1], None, &[2]);
        check(Routing::First, &[], Some(1), &[2]);
        check(Routing::First, &[2, 3], Some(1), &[1]);
        check(Routing::First, &[7, 1, 1], Some(2), &[3]);
        check(Routing::Last, &[3, 2], None, &[1]);
        check(Routing::First, &[1, 2, 3], Some(1), &[]);
        check(Routing::Sharding, &[1], Some(2), &[2, 3]);
    }

    #[test]
    fn a_repeated_run_moves_on_in_the_rotation() {
        let mut chooser = Chooser::new(fleet(&[1, 1, 1]), Known::default());
        let mut at = |attempt| ids(&chooser.choose(&Request { seq: 4, attempt, ..request(Routing::Round) }));
        assert_eq!([at(0), at(1), at(2)], [[2], [3], [1]]);
    }

    #[test]
    fn consistent_hash_is_xxl_jobs_and_goes_on_around_the_ring() {
        let at = |n: i64| Arc::new(executor(n, &format!("http://10.0.0.{n}:9999/")));
        let mut chooser = Chooser::new([at(3), at(1), at(2)], Known::default());
        let mut places = |refused_by: &[ExecutorId]| -> Vec<i64> {
            let of = |task_id| Request { task_id, refused_by, ..request(Routing::ConsistentHash) };
            (1..=8).flat_map(|task_id| ids(&chooser.choose(&of(TaskId(task_id))))).collect()
        };
        assert_eq!(places(&[]), [3, 3, 1, 3, 1, 3, 2, 2]);
        let without = places(&[ExecutorId(3)]);
        let smaller: Vec<i64> = {
            let mut chooser = Chooser::new([at(1), at(2)], Known::default());
            let of = |task_id| Request { task_id, ..request(Routing::ConsistentHash) };
            (1..=8).flat_map(|task_id| ids(&chooser.choose(&of(TaskId(task_id))))).collect()
        };
        assert_eq!(without, smaller);
    }

    #[test]
    fn one_shard_goes_to_any_one() {
        let shard = Request { is_shard: true, ..request(Routing::Sharding) };
        assert_eq!(chosen(&[1, 1, 1], &shard, 50), chosen(&[1, 1, 1], &request(Routing::Random), 50));
    }

    #[test]
    fn runs_of_one_batch_see_each_other() {
        let known = Known { given: [(ExecutorId(1), 2)].into(), ..Known::default() };
        let mut chooser = Chooser::new(fleet(&[1, 1]), known);
        chooser.choose(&request(Routing::Sharding));
        chooser.gave(ExecutorId(2));
        chooser.gave(ExecutorId(2));
        chooser.gave(ExecutorId(2));
        let choice = chooser.choose(&Request { task_id: TaskId(2), ..request(Routing::LeastLoaded) });
        assert_eq!(ids(&choice), [1]);
        assert_eq!(chooser.finish().given, [(ExecutorId(1), 4), (ExecutorId(2), 4)].into());
    }

    #[test]
    fn only_executors_of_the_app_count() {
        let stranger = Executor { app_id: AppId(2), ..executor(7, "http://a:1") };
        let neighbour = Executor { tenant_id: TenantId(2), ..executor(8, "http://a:2") };
        let mut chooser = Chooser::new([stranger, neighbour].map(Arc::new), Known::default());
        assert!(matches!(chooser.choose(&request(Routing::First)), Choice::NoExecutor(NoExecutor::NoneOnline)));
    }

    #[test]
    fn no_choice_names_the_reason() {
        let spot = Tags { none: vec!["spot".to_owned()], ..Tags::default() };
        let check = |executors: &[Executor], request: Request<'_>, expect: &str| {
            let mut chooser = Chooser::new(executors.iter().cloned().map(Arc::new), Known::default());
            let Choice::NoExecutor(no_executor) = chooser.choose(&request) else { panic!("an executor takes it") };
            assert_eq!(no_executor.to_string(), expect);
        };
        let one = executor(1, "http://a:1");
        let base = request(Routing::Random);
        check(&[], base, "no executor of the app is online");
        check(std::slice::from_ref(&one), Request { handler: "x", ..base }, "1 online, but none has handler `x`");
        let tagged = Executor { tags: ["spot".to_owned()].into(), ..one.clone() };
        let text = "1 online with handler `h`, but none has the tags: none of [spot]";
        check(&[tagged], Request { tags: &spot, ..base }, text);
        let text = "all executors that fit handler `h` are closed: 1 disabled manually, 0 draining, 0 with weight 0";
        check(&[Executor { disabled: true, ..one.clone() }], base, text);
        let text = "every executor that fits handler `h` (1) refused the run or could not be reached";
        check(&[one], Request { refused_by: &[ExecutorId(1)], ..base }, text);
    }
}
