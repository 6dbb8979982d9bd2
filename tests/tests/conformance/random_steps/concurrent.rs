//! Two nodes take random steps at the same time: what comes of them is what comes of them one after the other, in some order.

use super::calls::{Actor, Answer, Call, End, whole};
use super::steps::{Step, steps, story};
use super::{Tasks, Twins, furnished, holds_for, missing, picture};
use carillon::store::StoreErrorKind;
use carillon_tests::Kind;
use std::sync::atomic::{AtomicU32, Ordering};

/// Sequences tried with each database.
const CASES: u32 = 40;

/// Rows that a step takes at most: there are many orders of many.
const ROWS_MAX: usize = 3;

/// Runs of a tenant at once: a bound that both nodes keep to, whatever others they have.
const TENANT_BOUND: i32 = 3;

/// What comes of the calls of both, and what is there then.
#[derive(Debug)]
struct Outcome {
    ends: [Vec<End>; 2],
    rows: Vec<String>,
}

impl Outcome {
    /// Whether it is what comes of the calls in one order. A batch that has moved only some of its rows reads which: those that
    /// the other has changed since are missing in its answer. What they are now is theirs to go on with.
    fn is(&self, in_order: &Self) -> bool {
        let fits = |(found, modelled): (&End, &End)| match (found, modelled) {
            (Ok(Answer::Moved(found)), Ok(Answer::Moved(all))) => {
                found.iter().all(|(id, row)| all.get(id) == Some(row))
            }
            _ => found == modelled,
        };
        self.rows == in_order.rows && self.ends.iter().flatten().zip(in_order.ends.iter().flatten()).all(fits)
    }
}

async fn all(calls: &[Call], by: Actor) -> Vec<End> {
    let mut ends = Vec::new();
    for call in calls {
        ends.push(call.make(&by).await);
    }
    ends
}

/// Makes the calls on a model that has come to the same point, the next one by whom `order` says.
async fn one_by_one((tasks, at): (Tasks, i64), before: &[Call], calls: &[Vec<Call>; 2], order: &[usize]) -> Outcome {
    let model = furnished(crate::fixture::World::model().await, tasks).await;
    let by = Actor::of(&model);
    all(before, by.clone()).await;
    let mut parts = [0, 1].map(|who: usize| {
        calls[who].iter().enumerate().flat_map(|(at, call)| call.parts().into_iter().map(move |part| (at, part)))
    });
    let mut ends: [Vec<Vec<End>>; 2] = [0, 1].map(|who: usize| vec![Vec::new(); calls[who].len()]);
    for who in order {
        let (at, part) = parts[*who].next().expect("as many as the order names");
        ends[*who][at].push(part.make(&by).await);
    }
    Outcome { ends: ends.map(|ends| ends.into_iter().map(whole).collect()), rows: picture(&model, tasks, at).await }
}

/// What may end permits is no call of the one while the other asks for some.
fn leave_permits_alone(asking: &[Call], calls: &mut Vec<Call>) {
    if asking.iter().any(|call| matches!(call, Call::Acquire(_))) {
        calls.retain(|call| !call.may_end_permits());
    }
}

/// Every order in which `left` and `right` parts can follow each other; those without a change of turns come first.
fn orders(left: usize, right: usize) -> Vec<Vec<usize>> {
    fn extend(so_far: &mut Vec<usize>, left: usize, right: usize, found: &mut Vec<Vec<usize>>) {
        if left + right == 0 {
            found.push(so_far.clone());
        }
        for (who, [left_then, right_then]) in
            [[left.wrapping_sub(1), right], [left, right.wrapping_sub(1)]].into_iter().enumerate()
        {
            if [left, right][who] > 0 {
                so_far.push(who);
                extend(so_far, left_then, right_then, found);
                so_far.pop();
            }
        }
    }
    let mut found = Vec::new();
    extend(&mut Vec::new(), left, right, &mut found);
    found.sort_by_key(|order| order.windows(2).filter(|pair| pair[0] != pair[1]).count());
    found
}

/// Whether it could be judged.
async fn at_once(kind: Kind, before: &[Step], steps: [&[Step]; 2]) -> bool {
    let mut twins = Twins::new(kind).await;
    let mut made = Vec::new();
    for step in before {
        made.extend(twins.take(step).await);
    }
    twins.rows_max = ROWS_MAX;
    twins.bound_of_tenant = Some(TENANT_BOUND);
    let mut calls = [Vec::new(), Vec::new()];
    for (calls, steps) in calls.iter_mut().zip(steps) {
        for step in steps {
            calls.extend(twins.calls(step).await);
        }
    }
    let [left, right] = &mut calls;
    leave_permits_alone(left, right);
    leave_permits_alone(right, left);
    let (left, right) =
        tokio::join!(all(&calls[0], Actor::of(&twins.sql)), all(&calls[1], Actor::rival_of(&twins.sql)),);
    let found = Outcome { ends: [left, right], rows: picture(&twins.sql, twins.tasks, twins.clock).await };
    if found.ends.iter().flatten().any(|end| *end == Err(StoreErrorKind::Contention)) {
        // Whoever called would try again.
        return false;
    }
    let count = |calls: &[Call]| calls.iter().map(|call| call.parts().len()).sum();
    let mut nearest = None;
    for order in orders(count(&calls[0]), count(&calls[1])) {
        let outcome = one_by_one((twins.tasks, twins.clock), &made, &calls, &order).await;
        if found.is(&outcome) {
            return true;
        }
        nearest.get_or_insert(outcome);
    }
    let nearest = nearest.expect("there is an order");
    panic!(
        "no order comes to this. Calls:\n{calls:#?}\nEnds: {:?}\nin the first order: {:?}\nOnly found:\n{}\nOnly in the \
         first order:\n{}",
        found.ends,
        nearest.ends,
        missing(&found.rows, &nearest.rows),
        missing(&nearest.rows, &found.rows)
    );
}

fn holds(kind: Kind) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let (tried, judged) = (AtomicU32::new(0), AtomicU32::new(0));
    holds_for(CASES, 60, &(story(3..14), steps(1..3), steps(1..3)), |(before, left, right)| {
        let is_judged = runtime.block_on(at_once(kind, &before, [&left, &right]));
        tried.fetch_add(1, Ordering::Relaxed);
        judged.fetch_add(u32::from(is_judged), Ordering::Relaxed);
    });
    let (tried, judged) = (tried.into_inner(), judged.into_inner());
    assert!(judged * 2 > tried, "of {tried} cases {judged} did not end in contention");
}

#[test]
fn two_nodes_at_once_do_on_mariadb_what_they_do_in_some_order() {
    holds(Kind::MariaDb);
}

#[test]
fn two_nodes_at_once_do_on_postgres_what_they_do_in_some_order() {
    holds(Kind::Postgres);
}

#[test]
fn two_nodes_at_once_do_on_sqlite_what_they_do_in_some_order() {
    holds(Kind::Sqlite);
}
