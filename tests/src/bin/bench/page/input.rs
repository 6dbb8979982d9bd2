//! The files that a page is made of: what `scripts/bench --output json` printed, and `life.json`.

use crate::lateness::Lateness;
use crate::load::Load;
use crate::old_logs::Kept;
use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Everything that is drawn, of one version on one machine.
#[derive(Debug, Default)]
pub struct Input {
    /// Fixed rates, by database and rate.
    pub runs: Vec<Run>,
    /// The highest sustained rates, by database.
    pub highest: Vec<Run>,
    /// Ramps, by database.
    pub ramps: Vec<Ramp>,
    /// What a life costs, by database: steps, and in them the counters.
    pub lives: BTreeMap<String, Life>,
    /// Of all of them.
    pub machine: Machine,
    /// Of all of them.
    pub version: String,
    /// Each day on which something was measured, and each commit.
    pub days: Vec<String>,
    /// What was measured, from old to new.
    pub commits: Vec<String>,
    /// Each database's own name of its version.
    pub servers: BTreeMap<String, String>,
    /// Files that are not drawn, and what they are.
    pub left_out: Vec<String>,
}

/// A computer.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct Machine {
    /// Processors.
    pub cores: u32,
    /// Their name.
    pub cpu: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Origin {
    what: String,
    version: String,
    commit: Option<String>,
    date: String,
}

#[derive(Debug, Deserialize)]
struct Settings {
    version: String,
}

/// What every file has.
#[derive(Debug, Deserialize)]
struct File {
    measured: Origin,
    machine: Machine,
    database: String,
    database_settings: Settings,
}

/// One run at a fixed rate.
#[derive(Debug, Clone, Deserialize)]
pub struct Run {
    /// As options name it.
    pub database: String,
    /// Who took part.
    pub load: Load,
    /// The figures.
    #[serde(flatten)]
    pub window: Window,
    /// Where logs became old.
    pub retention: Option<Retention>,
}

/// The figures of one window.
#[derive(Debug, Clone, Deserialize)]
#[allow(missing_docs)]
pub struct Window {
    pub rate: u32,
    pub seconds: u32,
    pub sustained: bool,
    pub complaints: Vec<String>,
    pub handled: u64,
    pub lateness_ms: Lateness,
    pub cpu_us_per_fire: Parts,
    pub statements_per_fire: f64,
    pub rss_mb: Parts,
}

/// By process; `SQLite` is in the node.
#[derive(Debug, Clone, Copy, Deserialize)]
#[allow(missing_docs)]
pub struct Parts {
    pub node: Option<f64>,
    pub executor: Option<f64>,
    pub database: Option<f64>,
}

impl Parts {
    /// All together.
    pub fn sum(self) -> f64 {
        [self.node, self.executor, self.database].iter().flatten().sum()
    }
}

/// What retention and statistics did.
#[derive(Debug, Clone, Deserialize)]
#[allow(missing_docs)]
pub struct Retention {
    pub deleted_per_second: f64,
    pub start: Kept,
    pub end: Kept,
}

/// A rate that was raised step by step.
#[derive(Debug, Clone, Deserialize)]
#[allow(missing_docs)]
pub struct Ramp {
    pub database: String,
    pub last_sustained: Option<u32>,
    pub steps: Vec<Window>,
}

/// Counts of one database.
#[derive(Debug, Clone, Deserialize)]
#[allow(missing_docs)]
pub struct Life {
    pub steps: BTreeMap<String, BTreeMap<String, f64>>,
}

/// Reads all of them; they must be of one version and one machine.
pub fn read(files: &[PathBuf]) -> Result<Input> {
    let mut input = Input::default();
    for file in files {
        let name = file.display();
        let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {name}"))?;
        let json: Value = serde_json::from_str(&text).with_context(|| format!("{name} is not JSON"))?;
        input.add(file, json).with_context(|| format!("{name} cannot be drawn"))?;
    }
    ensure!(
        !(input.runs.is_empty() && input.ramps.is_empty() && input.highest.is_empty()),
        "nothing to draw: name files of `scripts/bench --rate N --output json` or `--ramp …`"
    );
    input.runs.sort_by_key(|run| (place(&run.database), run.window.rate));
    input.highest.sort_by_key(|run| place(&run.database));
    input.ramps.sort_by_key(|ramp| place(&ramp.database));
    input.days.sort();
    Ok(input)
}

/// Databases in the order in which they are shown.
pub fn place(database: &str) -> usize {
    DATABASES.iter().position(|(name, _)| *name == database).unwrap_or(DATABASES.len())
}

/// As options name them, and as people do.
pub const DATABASES: [(&str, &str); 3] = [("mariadb", "MariaDB"), ("postgres", "PostgreSQL"), ("sqlite", "SQLite")];

/// The name that people know.
pub fn title(database: &str) -> &str {
    DATABASES.iter().find(|(name, _)| *name == database).map_or(database, |(_, title)| title)
}

impl Input {
    fn add(&mut self, name: &Path, json: Value) -> Result<()> {
        if json.as_object().is_some_and(|counts| !counts.is_empty() && counts.values().all(Value::is_u64)) {
            self.left_out.push(format!("{}: counts of instructions are not drawn", name.display()));
            return Ok(());
        }
        if json.get("measured").is_none() {
            let lives: BTreeMap<String, Life> = serde_json::from_value(json)
                .context("neither figures of `scripts/bench --output json` nor the counts of `scripts/cost`")?;
            self.lives.extend(lives);
            return Ok(());
        }
        let file: File = serde_json::from_value(json.clone()).context("it lacks what every output has")?;
        self.belongs(&file)?;
        match file.measured.what.as_str() {
            "rate" => add_run(&mut self.runs, serde_json::from_value(json)?)?,
            "highest rate" => self.highest.push(serde_json::from_value(json)?),
            "ramp" => self.add_ramp(serde_json::from_value(json)?)?,
            what => {
                self.left_out.push(format!("{}: {what} is not drawn", name.display()));
                return Ok(());
            }
        }
        let Origin { commit, date, .. } = file.measured;
        let mut note = |list: fn(&mut Self) -> &mut Vec<String>, word: Option<String>| {
            let list = list(self);
            list.extend(word.filter(|word| !list.contains(word)).into_iter().collect::<Vec<_>>());
        };
        note(|input| &mut input.days, Some(date));
        note(|input| &mut input.commits, commit);
        self.servers.insert(file.database, file.database_settings.version);
        Ok(())
    }

    /// The first file says which version and which machine.
    fn belongs(&mut self, file: &File) -> Result<()> {
        if self.version.is_empty() {
            self.version.clone_from(&file.measured.version);
            self.machine = file.machine.clone();
        }
        let (version, machine) = (&file.measured.version, &file.machine);
        ensure!(*version == self.version, "it is of version {version}, those before of {}", self.version);
        ensure!(
            *machine == self.machine,
            "it is of another machine ({machine:?}) than those before ({:?})",
            self.machine
        );
        Ok(())
    }

    fn add_ramp(&mut self, ramp: Ramp) -> Result<()> {
        if self.ramps.iter().any(|other| other.database == ramp.database) {
            bail!("there is another ramp of {}; leave one out", title(&ramp.database));
        }
        self.ramps.push(ramp);
        Ok(())
    }

    /// One node, one tenant, one executor, no other tasks, and nothing becomes old.
    pub fn plain(&self) -> impl Iterator<Item = &Run> {
        self.runs.iter().filter(|run| run.is_plain())
    }
}

fn add_run(runs: &mut Vec<Run>, run: Run) -> Result<()> {
    let what = |run: &Run| (run.database.clone(), run.load, run.window.rate, run.retention.is_some());
    if runs.iter().any(|other| what(other) == what(&run)) {
        bail!("there is another file of {} at {} fires/s; leave one out", title(&run.database), run.window.rate);
    }
    runs.push(run);
    Ok(())
}

impl Run {
    /// Whether only the rate is special.
    pub fn is_plain(&self) -> bool {
        self.retention.is_none() && self.load == Load::ONE
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// As `--output json` prints it, as far as it is read.
    fn figures(database: &str, rate: u32) -> Value {
        json!({
            "measured": { "what": "rate", "version": "1.2.3", "commit": "abc1234", "date": "2026-11-28" },
            "machine": { "cores": 2, "cpu": "A Processor" },
            "database": database,
            "database_settings": { "version": "9" },
            "load": { "nodes": 1, "tenants": 1, "executors": 1, "tasks": 0 },
            "rate": rate, "seconds": 10, "sustained": true, "complaints": [], "handled": 10 * rate,
            "lateness_ms": { "p50": 1.0, "p99": 2.0, "p999": 3.0, "max": 4.0, "curve": [[0.0, 0.5], [100.0, 4.0]] },
            "cpu_us_per_fire": { "node": 1.5, "executor": 0.5, "database": null },
            "rss_mb": { "node": 50.0, "executor": null, "database": null },
            "statements_per_fire": 0.01,
        })
    }

    fn read_all(all: &[Value]) -> Result<Input> {
        let folder = tempfile::tempdir()?;
        let file = |(number, json): (usize, &Value)| {
            let file = folder.path().join(format!("{number}.json"));
            std::fs::write(&file, json.to_string()).map(|()| file)
        };
        let files: Vec<PathBuf> = all.iter().enumerate().map(file).collect::<std::io::Result<_>>()?;
        read(&files)
    }

    fn wrong(all: &[Value]) -> String {
        format!("{:#}", read_all(all).unwrap_err())
    }

    #[test]
    fn figures_are_sorted_and_their_origin_is_kept() {
        let life = json!({ "sqlite": { "version": "3", "steps": { "claim": { "statements": 0.002 } } } });
        let mut burst = figures("sqlite", 7);
        burst["measured"]["what"] = "burst".into();
        let instructions = json!({ "sign": 8, "verify": 3 });
        let all =
            [figures("sqlite", 500), figures("mariadb", 1_000), life, figures("mariadb", 500), burst, instructions];
        let input = read_all(&all).unwrap();
        let order: Vec<_> = input.runs.iter().map(|run| (run.database.as_str(), run.window.rate)).collect();
        assert_eq!(order, [("mariadb", 500), ("mariadb", 1_000), ("sqlite", 500)]);
        assert!((input.runs[0].window.cpu_us_per_fire.sum() - 2.0).abs() < 1e-9);
        assert_eq!((input.version.as_str(), input.days.len(), input.commits.len()), ("1.2.3", 1, 1));
        assert_eq!((input.lives.len(), input.left_out.len(), input.plain().count()), (1, 2, 3));
    }

    #[test]
    fn what_does_not_belong_together_is_refused() {
        let mut elsewhere = figures("sqlite", 500);
        elsewhere["machine"]["cores"] = 64.into();
        assert!(wrong(&[figures("mariadb", 500), elsewhere]).contains("of another machine"));
        let mut newer = figures("sqlite", 500);
        newer["measured"]["version"] = "2.0.0".into();
        assert!(wrong(&[figures("mariadb", 500), newer]).contains("of version 2.0.0, those before of 1.2.3"));
        let twice = wrong(&[figures("mariadb", 500), figures("mariadb", 500)]);
        assert!(twice.contains("1.json cannot be drawn: there is another file of MariaDB at 500 fires/s"), "{twice}");
    }

    #[test]
    fn what_is_no_figure_is_told() {
        assert!(wrong(&[json!({ "a": "b" })]).contains("neither figures of"));
        assert!(wrong(&[]).contains("nothing to draw"));
        let mut part = figures("mariadb", 500);
        part["lateness_ms"] = Value::Null;
        assert!(wrong(&[part]).contains("0.json cannot be drawn"));
    }
}
