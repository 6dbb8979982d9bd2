//! P2: nothing grows without need. When every run has ended there is nothing left of it where work is looked for; and while
//! runs go on, no permit is kept from others without need.

use super::Evidence;

/// What got a permit is dispatched, or gives it back, within this time, ms.
const USED_MS: i64 = 1_000;

impl Evidence<'_> {
    /// In the memory of nodes.
    pub fn nothing_is_left_over(&mut self) {
        for text in self.world.leftovers.lock().unwrap().clone() {
            self.breaks("P2 nothing is left over", None, text);
        }
    }

    /// A permit that counts, and whose run neither goes on nor is about to, keeps others from running. Executors may do
    /// what they like: where none takes the run, it gives its permit back. A permit counts by the state of its run, so none
    /// can outlive it, and at the end all runs have ended.
    pub fn permits_are_used(&mut self) {
        let state = self.state;
        for grant in state.grants.all() {
            let kept = grant.to.saturating_sub(grant.from);
            if kept <= USED_MS || self.disturbances(grant.from, grant.from + USED_MS).any(|one| !one.hits_executors()) {
                continue;
            }
            let detail = format!("from {} on it had a permit for {kept} ms without going out", grant.from);
            self.breaks("P11 a permit is used or given back", Some(grant.log), detail);
        }
    }
}
