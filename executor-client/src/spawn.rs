//! Where tasks run.

use tokio::runtime::Handle;
use tokio::task::AbortHandle;

/// A tokio runtime, or, in a simulation, the part of one that stands for a process.
pub(crate) trait Spawn: Clone + Send + Sync + 'static {
    /// Runs `task`. Within a runtime of several threads, what a task spawns goes to its own thread's queue.
    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> AbortHandle;
}

impl Spawn for Handle {
    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> AbortHandle {
        Handle::spawn(self, task).abort_handle()
    }
}
