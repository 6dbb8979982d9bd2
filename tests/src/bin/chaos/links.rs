//! Between an executor and a node: a way for the connections of each, so that both can be cut off from everybody.

use crate::plan::Target;
use carillon_tests::proxy::Way;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

/// One direction: the connections that one of both makes to the other.
pub struct Hop {
    /// What they go by.
    pub way: Arc<Way>,
    /// Who is cut off: it passes when nobody is any more.
    cut_off: Mutex<BTreeSet<Target>>,
}

/// Both.
pub struct Link {
    /// Connections that the executor makes.
    pub to_node: Hop,
    /// Connections that the node makes.
    pub to_executor: Hop,
}

impl Hop {
    /// By this way.
    pub fn by(way: Way) -> Self {
        Self { way: Arc::new(way), cut_off: Mutex::default() }
    }

    /// Nothing passes, and nothing is closed, until it is not `who` that is cut off.
    pub fn freeze(&self, who: Target) {
        let mut cut_off = self.cut_off.lock().unwrap();
        if cut_off.is_empty() {
            self.way.freeze();
        }
        cut_off.insert(who);
    }

    /// The machine of `who` is gone: its connections are lost for good.
    pub fn vanish(&self, who: Target) {
        self.cut_off.lock().unwrap().insert(who);
        self.way.vanish();
    }

    /// It passes again, as far as it is for `who`.
    pub fn thaw(&self, who: Target) {
        let mut cut_off = self.cut_off.lock().unwrap();
        if cut_off.remove(&who) && cut_off.is_empty() {
            self.way.thaw();
        }
    }
}

impl Link {
    /// Both directions.
    pub fn hops(&self) -> [&Hop; 2] {
        [&self.to_node, &self.to_executor]
    }
}
