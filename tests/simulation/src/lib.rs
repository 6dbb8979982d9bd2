//! The world outside the engine as a model: a database in memory, clocks, a network that loses
//! things; and executors, which are the SDK itself, or plain ones, which are a model, too. All of it runs in one process on virtual time.
//!
//! The conformance suite holds [`ModelStore`] to the same behaviour as the three databases; the
//! simulator then trusts it. Two rules make a simulation repeatable:
//! - One source of time: everything derives from tokio's clock ([`SimTime`]).
//! - Chance depends on what happens, not on when it is asked for ([`Dice`]): the engine's hash
//!   maps iterate in another order in every process, and must not affect random choices.

// Test code: a broken assumption of the model should stop the test where it is.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::missing_panics_doc)]

pub mod clock;
pub mod dice;
pub mod executor;
pub mod gate;
pub mod keys;
pub mod machine;
pub mod machine_time;
mod messages;
pub mod net;
pub mod plain;
pub mod random;
pub mod store;
pub mod trace;
pub mod transport;

pub use clock::{ClockStep, SimClock, SimTime};
pub use dice::Dice;
pub use executor::{Ledger, MachineParts, NodeServer, SimExecutor};
pub use gate::{Gate, STATEMENT_MAX_MS};
pub use machine::Machine;
pub use machine_time::MachineTime;
pub use net::{Endpoint, Net};
pub use plain::PlainExecutor;
pub use store::{ModelStore, SimStore};
pub use trace::Trace;
pub use transport::{Peers, SimCarrier, SimRunDoor, SimTransport, knock, knock_plain, plain_message};
