//! Plain executors: processes that speak xxl-job's protocol. They cannot hold a run until it is due, so the node holds it
//! and sends it on the instant ([`Sender`]).
//!
//! All runs of a second are usually due at the same millisecond. So everything that can be done before that millisecond is
//! done before it: each request is made as bytes, and connections are open. On the instant the whole bucket is written,
//! and only then replies are read.
//!
//! ```text
//!  run()  ──order──▶  Turns, one thread      agenda: due ms ─▶ lanes
//!    ▲                  │                    Lane, one per address: runs by due time, connections
//!    └──────answer──────┘ ◀──event──  tasks: open a connection, read a reply, write the rest of a long request
//! ```
//!
//! **A request is written at most once.** Of a request that may have been written in part, nobody can say whether it was
//! processed, so its outcome is unknown, and it is never sent again. Only where the kernel took none of its bytes does it
//! go over another connection.

mod address;
mod connection;
mod held;
mod idle_runs;
mod inquiry;
mod job_numbers;
mod kill;
mod lane;
mod log_pages;
mod meetings;
mod names;
mod reply;
mod reports;
mod request;
mod run_door;
mod scripts;
mod sender;
mod sent_runs;
mod standin;
mod stops;
mod turns;
mod vouch;

#[cfg(test)]
mod played;

pub use address::Address;
pub use inquiry::{Inquiry, InquiryParts, InquirySettings};
pub use job_numbers::JobNumbers;
pub use reports::{Report, Reports};
pub use run_door::{HELD_MS_MAX, Hold, PreparedRun, RunDoor};
pub use scripts::Scripts;
pub use sender::{Sender, SenderSettings, SenderThread};
pub use sent_runs::{SentRun, SentRuns};
pub use standin::{StandIn, StandInParts};
pub use vouch::{Vouching, VouchingParts};
