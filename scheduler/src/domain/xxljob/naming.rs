//! Names of tasks that are made of jobs: jobs may share a description, tasks of an app share no name.

use crate::domain::import::unique_name;
use crate::domain::task::TaskSpec;
use std::collections::HashSet;

/// The definition under the name that it gets where its own is taken: with the job's number behind it. What people called it
/// becomes its description, where it has none.
#[must_use]
pub fn beside_a_namesake(spec: TaskSpec, number: i64) -> TaskSpec {
    let mut taken = HashSet::from([spec.name.clone()]);
    let name = unique_name(&spec.name, number, &mut taken);
    let description = if spec.description.is_empty() { spec.name } else { spec.description };
    TaskSpec { name, description, ..spec }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_of_a_name_keeps_what_it_was_called() {
        let named = |name: &str, description: &str| {
            let (name, description) = (name.to_owned(), description.to_owned());
            let spec = beside_a_namesake(TaskSpec { name, description, ..TaskSpec::default() }, 7);
            (spec.name, spec.description)
        };
        assert_eq!(named("report", ""), ("report #7".to_owned(), "report".to_owned()));
        assert_eq!(named("read-write", "read/write"), ("read-write #7".to_owned(), "read/write".to_owned()));
    }
}
