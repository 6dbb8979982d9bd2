//! Maps by run.

use carillon_protocol::RunKey;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, DefaultHasher};

/// A map whose order follows from what was done to it alone, unlike that of a `HashMap` with a random key: a
/// simulation can be repeated. No one can choose log ids to make it slow, because nodes make them.
pub(crate) type RunMap<V> = HashMap<RunKey, V, BuildHasherDefault<DefaultHasher>>;
