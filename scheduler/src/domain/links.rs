//! Which task runs after which: the graph must have no cycle.

use super::TaskId;
use std::collections::{HashMap, HashSet};

/// A cycle that `child` would be part of with the `links` (child, parent), as ids from `child`
/// back to itself; `None` when there is none.
#[must_use]
pub fn cycle(links: &[(TaskId, TaskId)], child: TaskId) -> Option<Vec<TaskId>> {
    let mut parents: HashMap<TaskId, Vec<TaskId>> = HashMap::new();
    for (child, parent) in links {
        parents.entry(*child).or_default().push(*parent);
    }
    // Depth first without recursion: the way so far is in `came_from`.
    let mut came_from: HashMap<TaskId, TaskId> = HashMap::new();
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

/// The links that lie on cycles, or between two of them: none when the graph has no cycle. What
/// is large is looked at once, and what is left is small.
#[must_use]
pub fn knots(links: &[(TaskId, TaskId)]) -> Vec<(TaskId, TaskId)> {
    let mut left = links.to_vec();
    loop {
        let children: HashSet<TaskId> = left.iter().map(|(child, _)| *child).collect();
        let parents: HashSet<TaskId> = left.iter().map(|(_, parent)| *parent).collect();
        let before = left.len();
        left.retain(|(child, parent)| parents.contains(child) && children.contains(parent));
        if left.len() == before {
            return left;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::TaskId;

    fn ids(links: &[(i64, i64)]) -> Vec<(TaskId, TaskId)> {
        links.iter().map(|(child, parent)| (TaskId(*child), TaskId(*parent))).collect()
    }

    fn knots(links: &[(i64, i64)]) -> Vec<(i64, i64)> {
        super::knots(&ids(links)).into_iter().map(|(child, parent)| (child.0, parent.0)).collect()
    }

    fn cycle(links: &[(i64, i64)], child: i64) -> Option<Vec<i64>> {
        super::cycle(&ids(links), TaskId(child)).map(|way| way.into_iter().map(|id| id.0).collect())
    }

    #[test]
    fn only_cycles_are_left() {
        assert_eq!(knots(&[(4, 2), (4, 3), (2, 1), (3, 1)]), []);
        assert_eq!(knots(&[(2, 1), (3, 2), (5, 4), (4, 5), (6, 5), (4, 3)]), [(5, 4), (4, 5)]);
        assert_eq!(knots(&[(1, 1)]), [(1, 1)]);
    }

    #[test]
    fn cycles_are_found_and_named() {
        assert_eq!(cycle(&[(2, 1), (3, 2)], 3), None);
        assert_eq!(cycle(&[(1, 1)], 1), Some(vec![1, 1]));
        assert_eq!(cycle(&[(1, 2), (2, 3), (3, 1)], 1), Some(vec![1, 2, 3, 1]));
        // A diamond is none.
        assert_eq!(cycle(&[(4, 2), (4, 3), (2, 1), (3, 1)], 4), None);
    }
}
