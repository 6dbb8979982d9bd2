//! Names made fit: other schedulers let names hold what ours may not.

use crate::domain::task::NAME_MAX;
use std::collections::HashSet;
use std::hash::BuildHasher;

/// Longest name of a tenant or an app, bytes.
const PLAIN_NAME_MAX: usize = 64;

/// Whether a tenant or an app may have this name.
#[must_use]
pub fn is_plain_name(name: &str) -> bool {
    (1..=PLAIN_NAME_MAX).contains(&name.len())
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(is_plain)
}

fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')
}

/// The nearest name that a tenant or an app may have; `spare` where nothing of it is left.
#[must_use]
pub fn plain_name(name: &str, spare: &str) -> String {
    let plain: String = name.trim().chars().map(|c| if is_plain(c) { c } else { '-' }).collect();
    let plain = plain.trim_start_matches(['-', '_', '.']).trim_end_matches('-');
    let plain: String = plain.chars().take(PLAIN_NAME_MAX).collect();
    if plain.is_empty() { spare.to_owned() } else { plain }
}

/// The nearest name that a task may have, 1 to [`NAME_MAX`] characters; `spare` where nothing of it is left. A slash would
/// separate app and task where the task is named as a parent.
#[must_use]
pub fn task_name(text: &str, spare: &str) -> String {
    let fit: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let fit: Vec<&str> = fit.split_whitespace().collect();
    let fit: String = fit.join(" ").replace('/', "-").chars().take(NAME_MAX).collect();
    let fit = fit.trim_end();
    if fit.is_empty() { spare.to_owned() } else { fit.to_owned() }
}

/// `name`, followed by ` #number` where it is taken, by ` #number.2` and so on where that is, too; it is taken from then on.
pub fn unique_name<S: BuildHasher>(name: &str, number: i64, taken: &mut HashSet<String, S>) -> String {
    let mut unique = name.to_owned();
    let mut turn = 1;
    while !taken.insert(unique.clone()) {
        let suffix = if turn == 1 { format!(" #{number}") } else { format!(" #{number}.{turn}") };
        let kept: String = name.chars().take(NAME_MAX.saturating_sub(suffix.chars().count())).collect();
        unique = kept.trim_end().to_owned() + &suffix;
        turn += 1;
    }
    unique
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_of_apps_keep_what_they_may() {
        assert_eq!(plain_name(" xxl-job-executor_sample.1 ", "x"), "xxl-job-executor_sample.1");
        assert_eq!(plain_name("订单 orders/EU", "x"), "orders-EU");
        assert_eq!(plain_name("订单", "group-7"), "group-7");
        assert_eq!(plain_name(&"a".repeat(70), "x").len(), 64);
    }

    #[test]
    fn names_of_tasks_lose_only_what_they_may_not_hold() {
        assert_eq!(task_name("  测试任务1\t(nightly)\n", "x"), "测试任务1 (nightly)");
        assert_eq!(task_name("read/write", "x"), "read-write");
        assert_eq!(task_name(" \n", "job 7"), "job 7");
        assert_eq!(task_name(&"é".repeat(200), "x").chars().count(), 128);
    }

    #[test]
    fn the_second_of_a_name_gets_its_number() {
        let mut taken = HashSet::new();
        let mut name = |text: &str, number| unique_name(text, number, &mut taken);
        assert_eq!(name("report", 1), "report");
        assert_eq!(name("report #3", 2), "report #3");
        assert_eq!(name("report", 3), "report #3.2");
        assert_eq!(name("report", 4), "report #4");
        let long = "x".repeat(128);
        assert_eq!(name(&long, 5), long);
        assert_eq!(name(&long, 6), "x".repeat(125) + " #6");
    }

    proptest! {
        #[test]
        fn every_name_fits_and_is_unique(texts in prop::collection::vec(".{0,200}", 1..20)) {
            let mut taken = HashSet::new();
            for (number, text) in texts.iter().enumerate() {
                prop_assert!(is_plain_name(&plain_name(text, "spare")));
                // The same text and number again and again is the worst that can come.
                for _ in 0..3 {
                    let name = unique_name(&task_name(text, "spare"), number as i64, &mut taken);
                    prop_assert!((1..=NAME_MAX).contains(&name.chars().count()), "{name}");
                    prop_assert!(!name.contains('/') && !name.chars().any(char::is_control), "{name}");
                }
            }
            prop_assert_eq!(taken.len(), texts.len() * 3);
        }
    }
}
