//! What the rooms ask of a store, in the words of the domain; one file for each room.

mod cluster;
mod definitions;
mod discovery;
mod dispatch;
mod executors;
mod housekeeping;
mod keys;
mod outcome;
mod plain_executors;
mod pregenerate;
mod queue;
mod scripts;
mod statistics;
mod xxljob;

pub use cluster::*;
pub use definitions::*;
pub use discovery::*;
pub use dispatch::*;
pub use executors::*;
pub use housekeeping::*;
pub use keys::*;
pub use outcome::*;
pub use plain_executors::*;
pub use pregenerate::*;
pub use queue::*;
pub use scripts::*;
pub use statistics::*;
pub use xxljob::*;

/// Everything that the workers ask.
pub trait Store:
    ClusterStore
    + RuleStore
    + PlanStore
    + BackfillStore
    + ClaimStore
    + DispatchStore
    + PermitStore
    + OutcomeStore
    + OutboxStore
    + ExecutorStore
    + HousekeepingStore
    + StatisticsStore
{
}

impl<T> Store for T where
    T: ClusterStore
        + RuleStore
        + PlanStore
        + BackfillStore
        + ClaimStore
        + DispatchStore
        + PermitStore
        + OutcomeStore
        + OutboxStore
        + ExecutorStore
        + HousekeepingStore
        + StatisticsStore
{
}
