//! This node among others: the cluster clock, heartbeats, who is alive, leases, executors.
//!
//! The database is the authority. A node judges others only after it has itself been in contact
//! for a whole offline time-out: after an outage of the database, or a pause of this process,
//! all heartbeats look old, and acting on that would be a storm of false deaths.

mod clock;
mod executors;
mod group_commit;
mod load_watch;
mod membership;
mod name;
mod registry;
mod rules;

#[cfg(test)]
pub(crate) mod fixture;

pub use clock::{Clock, ClusterClock};
pub use executors::{Executors, ExecutorsParts};
pub use load_watch::{Behind, LoadChange, LoadWatch, Overload};
pub use membership::{Membership, SettledContact, View};
pub use name::await_free_name;
pub use registry::{APP_RUNS_MAX, Registry, Room, Seen, Snapshot};
pub use rules::RuleBook;
