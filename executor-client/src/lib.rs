//! The SDK that services embed to run tasks for carillon.
//!
//! An [`Executor`] registers with the scheduler nodes, accepts runs shortly before they are due,
//! starts each on the millisecond and reports its outcome. A run is one call of a *handler*, a
//! named async function.
//!
//! ```no_run
//! use carillon_executor::{Executor, Output, TaskContext};
//!
//! #[tokio::main]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let executor = Executor::builder()
//!         .scheduler("http://10.0.0.1:8526")
//!         .tenant("retail")
//!         .app("orders")
//!         .key("key-id", "secret")
//!         .handler("close-books", |ctx: TaskContext| async move {
//!             Ok(Output::text(format!("closed for {}", ctx.fire_time())))
//!         })
//!         .build()?;
//!     executor.run().await?;
//!     Ok(())
//! }
//! ```
//!
//! # Invariants
//! - A run never starts before its due time by the cluster clock; this machine's wall clock
//!   is irrelevant.
//! - A run that may have been given to another executor is not started (see `lease`).
//! - A result is on disk before it is sent, and stays there until a node has committed it.
//! - No run waits for its log output to be written.
//! - Neither a request nor a reply is trusted without a valid signature.

mod sync;

mod assembled;
mod blocking;
mod build;
mod builder;
mod context;
mod env;
mod error;
mod executor;
mod handler;
mod settings;
mod surroundings;
mod testing;

mod acknowledged;
mod address;
mod carrier;
mod checked;
mod member;
mod node;
mod server;
mod tls;
mod verify;

mod clock;
mod lease;
mod parts;
mod ready;
mod remembered;
mod result;
mod run;
mod run_map;
mod runs;
mod slot;
mod spawn;
mod table;
mod tasks;
mod timer;
mod turns;

mod output;

mod disk;
mod drain;
mod journal;
mod pending_results;
mod sender;

#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzzing;
#[cfg(feature = "simulation")]
#[doc(hidden)]
pub mod simulation;

pub use blocking::BlockingPart;
pub use builder::ExecutorBuilder;
pub use carillon_protocol::HandlerInfo;
pub use carillon_protocol::sign::SignMethod;
pub use context::TaskContext;
pub use error::{BuildError, RunError, TaskError};
pub use executor::Executor;
#[cfg(feature = "layer")]
pub use output::layer::output_layer;
pub use result::Output;
pub use testing::{TestRun, TestRunBuilder};
