//! The jobs that follow a job. There a job names its children, here a task names its parents: so a job's change may change others.

use super::asked::Asked;
use super::jobs::find_all;
use super::reply::Refused;
use super::visitor::Visitor;
use crate::api::Api;
use crate::api::tasks::Changes;
use crate::domain::Action;
use crate::domain::access::Permission;
use crate::domain::task::{ParentLink, ParentOutcome, ParentRule};
use crate::store::JobView;
use std::collections::BTreeSet;

/// The parameter.
const NAME: &str = "childJobId";

/// Most jobs that follow one.
const CHILDREN_MAX: usize = 100;

/// The job whose children are meant.
pub struct Parent<'a> {
    /// Its number; none of one that is only made.
    pub number: Option<i32>,
    /// Its app.
    pub app: &'a str,
    /// Its name before the change, as its children know it; none of one that is only made.
    pub was: Option<&'a str>,
    /// Its name after the change.
    pub name: &'a str,
    /// Who follows its success now.
    pub children: &'a [i32],
}

impl Parent<'_> {
    /// As a task of that app names it.
    fn named(&self, name: &str, app: &str) -> String {
        if self.app == app { name.to_owned() } else { format!("{}/{name}", self.app) }
    }
}

/// Adds the changes that make exactly the wanted jobs follow the success of `parent`; answers what people should know of it.
pub async fn link(
    api: &Api,
    visitor: &Visitor,
    asked: &Asked,
    parent: &Parent<'_>,
    changes: &mut Changes<'_>,
) -> Result<Vec<String>, Refused> {
    let wanted = wanted(&asked.text(NAME)?.unwrap_or_default(), parent.number)?;
    let now: BTreeSet<i32> = parent.children.iter().copied().collect();
    let (new, gone): (BTreeSet<i32>, BTreeSet<i32>) = (&wanted - &now, &now - &wanted);
    if new.is_empty() && gone.is_empty() {
        return Ok(Vec::new());
    }
    let mut found = find_all(api, visitor, Permission::TasksEdit, new.union(&gone).copied().collect()).await?;
    found.sort_unstable_by_key(|job| job.number);
    let known: BTreeSet<i32> = found.iter().map(|job| job.number).collect();
    if let Some(missing) = new.difference(&known).next() {
        return Err(Refused::missing(NAME, "job", (*missing).into()));
    }
    if let Some(kept) = gone.difference(&known).next() {
        return Err(Refused::field(NAME, format!("job {kept} follows this one, and you may not change that")));
    }
    let mut notes = Vec::new();
    for JobView { task, number, .. } in found {
        let mut spec = task.spec.clone();
        let was = parent.was.map(|was| parent.named(was, &task.app));
        if gone.contains(&number) {
            spec.parents.retain(|link| Some(&link.task) != was.as_ref());
        } else {
            if spec.parents.iter().any(|link| Some(&link.task) == was.as_ref()) {
                let why =
                    format!("job {number} follows this one already, but not its success: change it in the console");
                return Err(Refused::field(NAME, why));
            }
            if spec.parents.is_empty() {
                // As there: each parent by itself.
                spec.parent_rule = ParentRule::Any;
            }
            let link = ParentLink { task: parent.named(parent.name, &task.app), on: ParentOutcome::Success };
            spec.parents.push(link);
            if !task.activity.started {
                notes.push(format!("job {number} is stopped: it follows this one once it is started"));
            }
        }
        if let Some(error) = spec.check().into_iter().next() {
            return Err(Refused::field(NAME, format!("job {number} would be refused: {error}")));
        }
        let activity = task.activity.clone();
        changes.edit(Action::EditTask, task, spec, activity).await?;
    }
    Ok(notes)
}

/// The numbers in a list with commas between them.
fn wanted(list: &str, own: Option<i32>) -> Result<BTreeSet<i32>, Refused> {
    let mut wanted = BTreeSet::new();
    for word in list.split(',').map(str::trim).filter(|word| !word.is_empty()) {
        let number = word.parse::<i32>().ok().filter(|number| *number > 0);
        let number = number.ok_or_else(|| Refused::field(NAME, format!("`{word}` is no number of a job")))?;
        if Some(number) == own {
            return Err(Refused::field(NAME, "a job cannot follow itself"));
        }
        wanted.insert(number);
    }
    if wanted.len() > CHILDREN_MAX {
        return Err(Refused::field(NAME, format!("at most {CHILDREN_MAX} are allowed")));
    }
    Ok(wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_are_numbers() {
        assert_eq!(wanted(" 3, 1,3,", None).unwrap(), BTreeSet::from([1, 3]));
        assert_eq!(wanted("", Some(1)).unwrap(), BTreeSet::new());
        for wrong in ["x", "1,-2", "0", "2147483648", "7"] {
            assert!(wanted(wrong, Some(7)).is_err(), "{wrong}");
        }
        let many: Vec<String> = (1..=101).map(|number| number.to_string()).collect();
        assert!(wanted(&many.join(","), None).is_err());
    }
}
