//! The routing strategies, each once: name, sentence, how it takes executors and by which function, what a weight means
//! to it, and when to use it. Made of this list: the word in the API, in files and in columns, the API's document and
//! through it the console's choices, and the tables of `docs/concepts.md` and `docs/policies.md`.
//!
//! A new strategy is an entry here and its function.

use super::field::Field;
use super::known::Known;
use super::load::least_loaded;
use crate::domain::TaskId;
use crate::domain::choice::choice;

/// What a strategy may go by, of the run that it chooses for.
pub(super) struct Turn {
    pub task_id: TaskId,
    /// The run's number within its task, attempts counted in.
    pub number: i64,
    /// Differs from run to run and from attempt to attempt, and is the same on every node.
    pub seed: u64,
}

/// How a strategy takes executors.
#[derive(Clone, Copy)]
pub(super) enum Takes {
    /// The one at the place that the function names.
    One(fn(&mut Field, &Turn, &mut Known) -> Option<usize>),
    /// The same by [`super::Uses`], which are loaded for the task before and stored after.
    OneByUses(fn(&mut Field, &Turn, &mut Known) -> Option<usize>),
    /// The first, in the order of candidates, that answers a probe.
    FirstThatAnswers {
        /// Whether one that is busy with the task is passed over.
        skip_busy: bool,
    },
    /// All of them, one shard each.
    All,
}

/// Weights make shares.
const SHARE: &str = "share";

/// A weight says only whether an executor takes part.
const PART: &str = "only 0 counts";

/// Makes the choice of strategies, and what belongs to each.
macro_rules! strategies {
    ($first:ident $first_says:literal, $first_takes:expr, $first_weight:expr, $first_when:literal;
     $($name:ident $says:literal, $takes:expr, $weight:expr, $when:literal;)*) => {
        choice! {
            /// How executors are chosen.
            Routing {
                #[doc = $first_says]
                $first,
                $(#[doc = $says] $name,)*
            }
        }

        impl Routing {
            /// How it takes executors.
            pub(super) fn takes(self) -> Takes {
                match self {
                    Self::$first => $first_takes,
                    $(Self::$name => $takes,)*
                }
            }

            /// What an executor's weight means to it.
            #[must_use]
            pub fn weight(self) -> &'static str {
                match self {
                    Self::$first => $first_weight,
                    $(Self::$name => $weight,)*
                }
            }

            /// When to use it.
            #[must_use]
            pub fn use_when(self) -> &'static str {
                match self {
                    Self::$first => $first_when,
                    $(Self::$name => $when,)*
                }
            }
        }
    };
}

strategies! {
    Random "A random one of the suitable executors.", Takes::One(random), SHARE, "executors are alike";
    First "The first that fits.", Takes::One(first), PART, "one does the work and the others stand by";
    Last "The last that fits.", Takes::One(last), PART, "one does the work and the others stand by";
    Round "In turn, by the number of the run within its task.", Takes::One(round), "share, exact",
        "executors are alike, and the work should be more even than `random` makes it";
    ConsistentHash
        "Always the same one for a task, computed as in xxl-job; when one leaves, only its tasks move.",
        Takes::One(consistent_hash), PART,
        "caches, local files; it also makes `block_scope: executor` meet itself while the fleet stays as it is";
    LeastFrequentlyUsed
        "The one that this task has used least; one that returns does not have to catch up.",
        Takes::OneByUses(least_frequently_used), SHARE,
        "executors come and go and each should do its share of this task";
    LeastRecentlyUsed
        "The one that this task has not used for the longest time.", Takes::OneByUses(least_recently_used), PART,
        "executors come and go and each should get its turn";
    Failover
        "The first that answers a probe.", Takes::FirstThatAnswers { skip_busy: false }, PART,
        "a failed dispatch to a machine that has just died is too costly";
    Busyover
        "The first that answers a probe and has no run of this task running, or due and waiting.",
        Takes::FirstThatAnswers { skip_busy: true }, PART,
        "a run should find an executor that is free of this task";
    LeastLoaded
        "The one with the fewest runs for its capacity, by its last heartbeat and the runs given to it since.",
        Takes::One(least_loaded_of), SHARE, "runs are long and differ in length";
    Sharding
        "All of them, one shard each, with `shard_index` and `shard_total`; a parent row sums them up.",
        Takes::All, PART, "every executor takes its part of the work";
}

impl Routing {
    /// Whether it goes by [`super::Uses`].
    #[must_use]
    pub fn goes_by_uses(self) -> bool {
        matches!(self.takes(), Takes::OneByUses(_))
    }

    /// Whether it goes by what executors have been given since their last heartbeats.
    #[must_use]
    pub fn goes_by_load(self) -> bool {
        self == Self::LeastLoaded
    }
}

fn first(_: &mut Field, _: &Turn, _: &mut Known) -> Option<usize> {
    Some(0)
}

fn last(field: &mut Field, _: &Turn, _: &mut Known) -> Option<usize> {
    field.executors().len().checked_sub(1)
}

fn random(field: &mut Field, turn: &Turn, _: &mut Known) -> Option<usize> {
    field.candidates.shape.weights.draw(turn.seed)
}

fn round(field: &mut Field, turn: &Turn, _: &mut Known) -> Option<usize> {
    field.candidates.rotation().at(turn.number)
}

fn consistent_hash(field: &mut Field, turn: &Turn, known: &mut Known) -> Option<usize> {
    field.on_ring(turn.task_id, &[], &mut known.rings)
}

fn least_frequently_used(field: &mut Field, turn: &Turn, known: &mut Known) -> Option<usize> {
    let uses = known.uses.of(turn.task_id);
    let slots = field.slots.get_or_insert_with(|| {
        let slots = uses.slots(&field.candidates.executors);
        uses.welcome(&field.candidates.executors, &slots);
        slots
    });
    uses.least_frequent(&field.candidates.executors, slots)
}

fn least_recently_used(field: &mut Field, turn: &Turn, known: &mut Known) -> Option<usize> {
    let uses = known.uses.of(turn.task_id);
    let slots = field.slots.get_or_insert_with(|| uses.slots(&field.candidates.executors));
    uses.least_recent(slots)
}

fn least_loaded_of(field: &mut Field, turn: &Turn, known: &mut Known) -> Option<usize> {
    least_loaded(field.executors(), &known.given, turn.seed)
}
