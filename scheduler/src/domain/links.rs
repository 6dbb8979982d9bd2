//! Which task runs after which: the graph must have no cycle.

use std::collections::{HashMap, HashSet};

/// A cycle that `child` would be part of with the `links` (child, parent), as ids from `child`
/// back to itself; `None` when there is none.
#[must_use]
pub fn cycle(links: &[(i64, i64)], child: i64) -> Option<Vec<i64>> {
    let mut parents: HashMap<i64, Vec<i64>> = HashMap::new();
    for (child, parent) in links {
        parents.entry(*child).or_default().push(*parent);
    }
    // Depth first without recursion: the way so far is in `came_from`.
    let mut came_from: HashMap<i64, i64> = HashMap::new();
    let (mut open, mut seen) = (vec![child], HashSet::from([child]));
    while let Some(at) = open.pop() {
        for parent in parents.get(&at).into_iter().flatten() {
            if *parent == child {
                let mut way = vec![child, at];
                while let Some(before) = way.last().and_then(|last| came_from.get(last)) {
                    way.push(*before);
                }
                if at == child {
                    way.pop();
                    way.push(child);
                }
                way.reverse();
                return Some(way);
            }
            if seen.insert(*parent) {
                came_from.insert(*parent, at);
                open.push(*parent);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::cycle;

    #[test]
    fn cycles_are_found_and_named() {
        assert_eq!(cycle(&[(2, 1), (3, 2)], 3), None);
        assert_eq!(cycle(&[(1, 1)], 1), Some(vec![1, 1]));
        assert_eq!(cycle(&[(1, 2), (2, 3), (3, 1)], 1), Some(vec![1, 2, 3, 1]));
        // A diamond is none.
        assert_eq!(cycle(&[(4, 2), (4, 3), (2, 1), (3, 1)], 4), None);
    }
}
