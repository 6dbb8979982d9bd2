//! P2: nothing grows without need. When every run has ended there is nothing left of it where work is looked for.

use super::Evidence;

impl Evidence<'_> {
    /// In the memory of nodes, in the outbox, among permits that count.
    pub fn nothing_is_left_over(&mut self) {
        for text in self.world.leftovers.lock().unwrap().clone() {
            self.breaks("P2 nothing is left over", None, text);
        }
    }
}
