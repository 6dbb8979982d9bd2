//! Outcomes of runs: results as they come in, and the reaper for those that do not come.

mod ingestion;
mod marks;
mod outbox;
mod reaper;
mod refusals;
mod rounds;
mod shared_writes;

pub use ingestion::{LAG_MAX_MS, ResultIngestion};
pub use outbox::OutboxWorker;
pub use reaper::{PAGE_ROWS, Reaper, ReaperParts, ReaperSettings};
