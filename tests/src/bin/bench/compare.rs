//! Counts of `--life` beside those that are checked in.

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::ExitCode;

/// A count that has grown by more than this part is a failure.
const GROWTH_MAX: f64 = 0.10;

/// Less than this for each life is nothing: half a row of a batch of a thousand.
const NOTHING: f64 = 0.000_5;

/// Database, step and counter of what differs by more than a fiftieth from run to run, so that nothing is concluded from it.
const UNSTEADY: [(&str, &str, &str); 3] = [
    // Both move an entry of an index: on a busy machine InnoDB's purge touches up to a sixth more or fewer pages to remove the old
    // ones, also when it runs after the step. What the step itself does is in the pages changed and in the log.
    ("mariadb", "claim", "pages_touched"),
    ("mariadb", "succeed", "pages_touched"),
    // InnoDB's purge takes away what retention has deleted while it goes on deleting, in parts as large as they happen to be.
    ("mariadb", "purge", "log_bytes"),
];

/// By step, by counter.
type Steps = BTreeMap<String, BTreeMap<String, f64>>;

/// Of one database.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Accepted {
    /// The server that counted.
    version: String,
    steps: Steps,
}

/// By database.
type File = BTreeMap<String, Accepted>;

/// A count that is another one now.
#[derive(Debug, PartialEq)]
struct Change {
    step: String,
    counter: String,
    before: f64,
    now: f64,
}

impl Change {
    fn has_grown(&self) -> bool {
        self.now > self.before * (1.0 + GROWTH_MAX) + NOTHING
    }

    fn has_shrunk(&self) -> bool {
        self.now < self.before * (1.0 - GROWTH_MAX) - NOTHING
    }

    fn text(&self, database: &str) -> String {
        let Self { step, counter, before, now } = self;
        let by = if *before > NOTHING { format!(" ({:+.0} %)", (now / before - 1.0) * 100.0) } else { String::new() };
        format!("  {database}, {step}: {counter} {before} -> {now}{by}")
    }
}

/// What is accepted of the figures of a run of `--life`.
fn of_figures(figures: &Value) -> Result<(String, Accepted)> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let database = text(&figures["database"]).context("no database")?;
    let version = text(&figures["database_settings"]["version"]).context("no version of the database")?;
    let steps = serde_json::from_value(figures["life"].clone()).context("no counts")?;
    Ok((database, Accepted { version, steps }))
}

/// Without what is unsteady.
fn steady(database: &str, mut steps: Steps) -> Steps {
    for (_, step, counter) in UNSTEADY.iter().filter(|(of, ..)| *of == database) {
        if let Some(counts) = steps.get_mut(*step) {
            counts.remove(*counter);
        }
    }
    steps
}

fn read(file: &Path) -> Result<File> {
    let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    serde_json::from_str(&text).with_context(|| format!("cannot understand {}", file.display()))
}

/// Writes the counts into the file in place of those of the same database.
pub fn accept(file: &Path, figures: &Value) -> Result<()> {
    let mut all = if file.exists() { read(file)? } else { File::new() };
    let (database, Accepted { version, steps }) = of_figures(figures)?;
    let accepted = Accepted { version, steps: steady(&database, steps) };
    println!("{database}: accepted into {}", file.display());
    all.insert(database, accepted);
    let text = serde_json::to_string_pretty(&all)? + "\n";
    std::fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))
}

/// Says what is another count than in the file; a failure if one has grown.
pub fn with(file: &Path, figures: &Value) -> Result<ExitCode> {
    let (database, now) = of_figures(figures)?;
    let before = read(file)?.remove(&database);
    let before = before.with_context(|| format!("{} has no counts of {database}", file.display()))?;
    let steps = steady(&database, now.steps);
    let changes = changes(&before.steps, &steps);
    let text = |which: fn(&Change) -> bool| -> Vec<String> {
        changes.iter().filter(|change| which(change)).map(|change| change.text(&database)).collect()
    };
    let (grown, shrunk) = (text(Change::has_grown), text(Change::has_shrunk));
    if !shrunk.is_empty() {
        println!("{database}: a life costs less than {} says, by more than a tenth:", file.display());
        println!("{}\n  accept it: scripts/cost --accept", shrunk.join("\n"));
    }
    if grown.is_empty() {
        let counts: usize = steps.values().map(BTreeMap::len).sum();
        println!("{database}: a life costs no more than {} says ({counts} counts)", file.display());
        return Ok(ExitCode::SUCCESS);
    }
    eprintln!(
        "{database}: a life costs more than {} says, by more than a tenth (for each life, before -> now):",
        file.display()
    );
    eprintln!("{}", grown.join("\n"));
    if before.version != now.version {
        eprintln!("  the counts before are of {database} {}, those now of {}", before.version, now.version);
    }
    eprintln!("  if it has to: scripts/cost --accept, and say why in the commit; what is counted: docs/benchmarks.md");
    Ok(ExitCode::FAILURE)
}

/// Every count of both; one that is not there is none.
fn changes(before: &Steps, now: &Steps) -> Vec<Change> {
    let names = |steps: &Steps| -> BTreeSet<(String, String)> {
        steps.iter().flat_map(|(step, counts)| counts.keys().map(|name| (step.clone(), name.clone()))).collect()
    };
    let of = |steps: &Steps, step: &str, name: &str| {
        steps.get(step).and_then(|counts| counts.get(name)).copied().unwrap_or_default()
    };
    let change = |(step, counter): (String, String)| Change {
        before: of(before, &step, &counter),
        now: of(now, &step, &counter),
        step,
        counter,
    };
    names(before).union(&names(now)).cloned().map(change).collect()
}

/// A line for each counter, a column for each step.
pub fn print_table(figures: &Value) -> Result<()> {
    let (database, Accepted { version, steps }) = of_figures(figures)?;
    let names: BTreeSet<&String> = steps.values().flat_map(BTreeMap::keys).collect();
    println!("{database} {version}, for each of {} lives:\n", figures["lives"]);
    let columns: Vec<&String> =
        crate::life::steps().filter_map(|step| steps.get_key_value(step)).map(|(step, _)| step).collect();
    let heads: Vec<&str> = columns.iter().map(|step| step.as_str()).chain(["life"]).collect();
    println!("| each | {} |\n| --- | {} |", heads.join(" | "), vec!["---"; heads.len()].join(" | "));
    for name in names {
        let counts: Vec<f64> = columns.iter().map(|step| steps[*step].get(name).copied().unwrap_or_default()).collect();
        let all: f64 = counts.iter().sum();
        let cells: Vec<String> = counts.into_iter().chain([all]).map(cell).collect();
        println!("| `{name}` | {} |", cells.join(" | "));
    }
    Ok(())
}

/// As many digits as tell something.
fn cell(count: f64) -> String {
    match count.abs() {
        size if size >= 100.0 => format!("{count:.0}"),
        size if size >= 1.0 => format!("{count:.2}"),
        size if size < NOTHING / 10.0 => "0".to_owned(),
        _ => format!("{count:.4}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn steps(rows: f64, statements: f64) -> Steps {
        serde_json::from_value(json!({ "claim": { "rows_read": rows, "statements": statements } })).unwrap()
    }

    fn verdicts(before: &Steps, now: &Steps) -> (Vec<String>, Vec<String>) {
        let changes = changes(before, now);
        let names = |which: fn(&Change) -> bool| {
            changes.iter().filter(|change| which(change)).map(|change| change.counter.clone()).collect()
        };
        (names(Change::has_grown), names(Change::has_shrunk))
    }

    fn none() -> Vec<String> {
        Vec::new()
    }

    #[test]
    fn a_count_that_grows_by_more_than_a_tenth_is_told_apart() {
        let before = steps(5.0, 0.002);
        assert_eq!(verdicts(&before, &steps(5.4, 0.002)), (none(), none()));
        assert_eq!(verdicts(&before, &steps(5.6, 0.002)), (vec!["rows_read".to_owned()], none()));
        assert_eq!(verdicts(&before, &steps(5.0, 0.003)), (vec!["statements".to_owned()], none()), "one more");
        assert_eq!(
            verdicts(&before, &steps(4.4, 0.001)),
            (none(), vec!["rows_read".to_owned(), "statements".to_owned()])
        );
    }

    #[test]
    fn a_count_that_was_not_there_has_grown() {
        assert_eq!(verdicts(&Steps::new(), &steps(0.001, 0.0)), (vec!["rows_read".to_owned()], none()));
        assert_eq!(verdicts(&steps(1.0, 0.0), &Steps::new()), (none(), vec!["rows_read".to_owned()]));
    }

    #[test]
    fn what_is_unsteady_is_left_out() {
        let all: Steps = serde_json::from_value(json!({ "purge": { "log_bytes": 9.0, "rows_read": 2.0 } })).unwrap();
        assert_eq!(steady("mariadb", all.clone())["purge"].len(), 1);
        assert_eq!(steady("postgres", all.clone()), all);
    }

    #[test]
    fn growth_against_a_file_is_a_failure_until_it_is_accepted() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("life.json");
        let figures = |database: &str, rows: f64| {
            let settings = json!({ "version": "1" });
            json!({ "database": database, "database_settings": settings, "life": { "claim": { "rows_read": rows } } })
        };
        accept(&file, &figures("sqlite", 1.0)).unwrap();
        accept(&file, &figures("mariadb", 7.0)).unwrap();
        let compared = |figures: &Value| format!("{:?}", with(&file, figures).unwrap());
        let (good, bad) = (format!("{:?}", ExitCode::SUCCESS), format!("{:?}", ExitCode::FAILURE));
        assert_eq!(compared(&figures("sqlite", 1.05)), good);
        assert_eq!(compared(&figures("sqlite", 1.5)), bad);
        assert_eq!(compared(&figures("sqlite", 0.5)), good, "less is not a failure");
        accept(&file, &figures("sqlite", 1.5)).unwrap();
        assert_eq!(compared(&figures("sqlite", 1.5)), good);
        assert_eq!(compared(&figures("mariadb", 7.0)), good, "what another database costs stays");
        assert!(with(&file, &figures("postgres", 1.0)).is_err(), "nothing is known of it");
    }
}
