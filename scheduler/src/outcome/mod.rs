//! What became of runs: results as they come in, and the reaper for those that do not come.

mod follow;
mod intake;
mod reaper;

pub use follow::Follower;
pub use intake::Intake;
pub use reaper::{Reaper, ReaperParts, ReaperSettings};
