//! What a failed simulation prints: what broke, by which faults, and the events about it, in names and seconds.

use crate::promises::Broken;
use crate::world::World;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Events printed of each broken promise.
const EVENTS_MAX: usize = 60;

/// Broken promises of one kind that are printed.
const OF_A_KIND_MAX: usize = 2;

/// What broke, and how it came to that.
pub fn report(world: &World, broken: &[Broken]) -> String {
    let names = Names::of(world);
    let mut text = format!("  {:?}\n", world.shape);
    for planned in &world.faults {
        writeln!(text, "  {planned}").unwrap();
    }
    for intended in &world.operations {
        writeln!(text, "  {intended}").unwrap();
    }
    let mut told = BTreeMap::new();
    for one in broken {
        let times = told.entry(one.promise).or_insert(0);
        *times += 1;
        if *times > OF_A_KIND_MAX {
            continue;
        }
        let log = one.log.map(|log| format!(" (log {log})")).unwrap_or_default();
        writeln!(text, "\n  BROKEN {}: {}", one.promise, names.told(&format!("{}{log}", one.detail))).unwrap();
        let about = one.log.map(|log| world.trace.about(&log.to_string(), EVENTS_MAX)).unwrap_or_default();
        for event in about {
            writeln!(text, "    {}", names.told(&event)).unwrap();
        }
    }
    text
}

/// What numbers of a trace stand for.
pub struct Names {
    began: i64,
    tasks: BTreeMap<i64, String>,
    logs: BTreeMap<i64, usize>,
}

/// Numbers below this are counts, not ids or instants.
const SMALL: i64 = 1_000_000;

/// Longer than any simulation, ms.
const LONG_MS: i64 = 3_600_000;

impl Names {
    /// Of everything in a world.
    pub fn of(world: &World) -> Self {
        world.store.inspect(|state| Self {
            began: world.began,
            tasks: state.tasks.iter().map(|(id, row)| (id.0, row.view.spec.name.clone())).collect(),
            logs: state.logs.keys().enumerate().map(|(number, id)| (id.0, number + 1)).collect(),
        })
    }

    /// A line with instants as seconds since the beginning, runs as their numbers, and names of tasks.
    pub fn told(&self, line: &str) -> String {
        let mut text = String::with_capacity(line.len());
        let mut rest = line;
        while let Some(from) = rest.find(|c: char| c.is_ascii_digit()) {
            let (before, number) = rest.split_at(from);
            let until = number.find(|c: char| !c.is_ascii_digit()).unwrap_or(number.len());
            text.push_str(before);
            text.push_str(&self.name(before, &number[..until]));
            rest = &number[until..];
        }
        text + rest
    }

    fn name(&self, before: &str, digits: &str) -> String {
        let Ok(number) = digits.parse::<i64>() else { return digits.to_owned() };
        if before.ends_with("task ") {
            return self.tasks.get(&number).map_or_else(|| digits.to_owned(), |name| format!("“{name}”"));
        }
        if number < SMALL {
            return digits.to_owned();
        }
        if let Some(number) = self.logs.get(&number) {
            return format!("#{number}");
        }
        let since = number - self.began;
        if (-LONG_MS..LONG_MS).contains(&since) {
            return format!("{:.3} s", since as f64 / 1_000.0);
        }
        digits.to_owned()
    }
}
