//! The command line.

use crate::load::Load;
use crate::rates::Ramp;
use clap::error::ErrorKind;
use clap::{Args, CommandFactory as _, Parser, ValueEnum};
use serde::Serialize;
use std::ffi::OsString;
use std::path::PathBuf;

/// Measures nodes and executors on a database server of their own.
#[derive(Debug, Parser)]
#[command(name = "scripts/bench")]
pub struct Options {
    /// The database.
    #[arg(long)]
    pub database: Kind,
    /// Fires per second; `max` searches for the highest rate that is sustained.
    #[arg(long, value_parser = rate, required_unless_present_any = INSTEAD)]
    pub rate: Option<Rate>,
    /// Length of the measured window, by default 60, of a step of a ramp and before a death 20, with retention 300; a multiple of 5 holds whole
    /// rounds of the node's workers.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=3600))]
    seconds: Option<u32>,
    /// Instead of a rate: more and more fires per second on one node, until a step is not sustained.
    #[arg(long, value_name = "FROM:TO:STEP", conflicts_with = "rate")]
    pub ramp: Option<Ramp>,
    /// Instead of a rate: an idle node with so many enabled daily tasks.
    #[arg(long, value_name = "N", conflicts_with = "rate")]
    pub idle_tasks: Option<u32>,
    /// Instead of a rate: a tenant with so many runs due at one instant, beside one that fires every second.
    #[arg(long, value_name = "N", conflicts_with_all = ["rate", "idle_tasks"])]
    pub burst: Option<u32>,
    /// Instead of a rate: lists of task logs among so many.
    #[arg(long, value_name = "N", conflicts_with_all = ["rate", "idle_tasks", "burst"])]
    pub lists: Option<u32>,
    /// Instead of a rate: so many fires per second, more than the node carries, beside another tenant; half as many before it.
    #[arg(long, value_name = "N", conflicts_with_all = ["rate", "idle_tasks", "burst", "lists"])]
    pub overload: Option<u32>,
    /// Instead of a rate: the start of a node after ten minutes in which so many fires per second were missed.
    #[arg(long, value_name = "N", conflicts_with_all = ["rate", "idle_tasks", "burst", "lists", "overload"])]
    pub recovery: Option<u32>,
    /// Instead of a rate: so many fires per second on two nodes, of which one is killed (kill -9).
    #[arg(long, value_name = "N", conflicts_with_all = ["rate", "idle_tasks", "burst", "lists", "overload", "recovery"])]
    pub node_death: Option<u32>,
    /// Asks for no list, but keeps the node with its logs until standard input ends: to look at them with the console.
    /// Its address and its API token are printed as JSON.
    #[arg(long, requires = "lists")]
    pub hold: bool,
    /// Instead of a rate: what a node's rounds of work cost the database among so many executors, tenants and runs.
    #[arg(long, conflicts_with_all = ["rate", "idle_tasks", "burst", "lists"])]
    pub growth: bool,
    /// What belongs to a rate.
    #[command(flatten)]
    beside: Beside,
    /// Runs that executors have had for an hour, and as many that are written ahead and have consequences.
    #[arg(long, value_name = "N", default_value_t = 100_000, requires = "growth", value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    runs: u32,
    /// Instead of a rate: what the life of a run costs the database, step by step, by the database's own counts.
    #[arg(long, conflicts_with_all = ["rate", "idle_tasks", "burst", "lists", "overload", "recovery", "growth", "profile"])]
    pub life: bool,
    /// Prints no counts, but what has changed against this file; fails if a count has grown by more than a tenth.
    #[arg(long, value_name = "FILE", requires = "life", conflicts_with = "accept")]
    pub compare: Option<PathBuf>,
    /// Prints no counts, but writes them into this file, beside those of other databases.
    #[arg(long, value_name = "FILE", requires = "life")]
    pub accept: Option<PathBuf>,
    /// Where the burst comes from.
    #[arg(long, default_value = "overdue", requires = "burst")]
    pub variant: Variant,
    /// Nodes that share the work.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=8))]
    pub nodes: u32,
    /// Folder with the built programs `carillon` and `examples/bench`.
    #[arg(long, value_name = "FOLDER", default_value = "target/release")]
    pub programs: PathBuf,
    /// What is printed on standard output.
    #[arg(long, default_value = "table")]
    pub output: Output,
}

/// What belongs to a rate; executors and tenants also to what grows.
#[derive(Debug, Args)]
struct Beside {
    /// Also what each statement costs the server (`MariaDB`, `PostgreSQL`); counting costs `MariaDB` itself.
    #[arg(long, requires = "rate")]
    profile: bool,
    /// As many logs become old in each second as are written, so that the node deletes as many as it carries.
    #[arg(long, requires = "rate")]
    retention: bool,
    /// Executors: of all tenants together, by default one of each tenant; with --growth of one app, by default 1000.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    executors: Option<u32>,
    /// Tenants: of the tasks that fire, by default one; with --growth those with an app and a key each, by default 1000.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    tenants: Option<u32>,
    /// What executors speak: the SDK's own protocol, or that of xxl-job.
    #[arg(long, default_value = "carillon", requires = "rate")]
    protocol: Protocol,
    /// Enabled daily tasks beside those that fire.
    #[arg(long, value_name = "N", requires = "rate", value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    tasks: Option<u32>,
}

/// What is measured instead of a rate.
const INSTEAD: [&str; 9] =
    ["idle_tasks", "burst", "lists", "growth", "overload", "recovery", "node_death", "life", "ramp"];

/// With `--growth`, of executors and tenants.
const GROWTH_EACH: u32 = 1_000;

/// Fewer executors than this have no third.
const GROWTH_EXECUTORS_MIN: u32 = 3;

impl Options {
    /// Reads the command line, or says what is wrong with it and ends the process.
    pub fn read(words: impl IntoIterator<Item = OsString>) -> Self {
        let options = Self::parse_from(words);
        match options.check() {
            Ok(()) => options,
            Err(wrong) => Self::command().error(ErrorKind::ArgumentConflict, wrong).exit(),
        }
    }

    /// What clap does not know.
    fn check(&self) -> Result<(), String> {
        let is_fixed = matches!(self.rate, Some(Rate::Fixed(_)));
        let wants = |is_given: bool, option: &str| {
            if is_given { Err(format!("{option} goes with --rate N only")) } else { Ok(()) }
        };
        if !is_fixed {
            wants(self.beside.retention, "--retention")?;
            wants(self.beside.tasks.is_some(), "--tasks")?;
            wants(self.protocol() != Protocol::Carillon, "--protocol")?;
        }
        if !is_fixed && !self.growth {
            let with_growth =
                |is_given, option| wants(is_given, option).map_err(|wrong| wrong.replace(" only", " or --growth"));
            with_growth(self.beside.executors.is_some(), "--executors")?;
            with_growth(self.beside.tenants.is_some(), "--tenants")?;
        }
        if !is_fixed && self.burst.is_none() && self.nodes > 1 {
            return Err("--nodes goes with --rate N or --burst".to_owned());
        }
        if (self.nodes > 1 || self.node_death.is_some()) && self.database == Kind::Sqlite {
            return Err(
                "SQLite has one node: leave out --nodes and --node-death, or take another --database".to_owned()
            );
        }
        if self.growth && self.growth_sizes().executors < GROWTH_EXECUTORS_MIN {
            return Err(format!("--growth needs {GROWTH_EXECUTORS_MIN} --executors or more, as a third of them beats"));
        }
        if is_fixed { self.load().map(drop) } else { Ok(()) }
    }

    /// Length of the measured window, s.
    pub fn seconds(&self) -> u32 {
        let default = match self {
            Self { ramp: Some(_), .. } | Self { node_death: Some(_), .. } => 20,
            Self { beside: Beside { retention: true, .. }, .. } => 300,
            _ => 60,
        };
        self.seconds.unwrap_or(default)
    }

    /// Whether the server counts what each statement costs.
    pub fn profile(&self) -> bool {
        self.beside.profile
    }

    /// Whether as many logs become old as are written.
    pub fn retention(&self) -> bool {
        self.beside.retention
    }

    /// What executors speak.
    pub fn protocol(&self) -> Protocol {
        self.beside.protocol
    }

    /// Who takes part in a run at a fixed rate.
    pub fn load(&self) -> Result<Load, String> {
        Load::new(self.nodes, self.beside.tenants.unwrap_or(1), self.beside.executors, self.beside.tasks.unwrap_or(0))
    }

    /// With `--growth`, how much there is.
    pub fn growth_sizes(&self) -> Growth {
        let [executors, tenants] =
            [self.beside.executors, self.beside.tenants].map(|count| count.unwrap_or(GROWTH_EACH));
        Growth { executors, tenants, runs: self.runs }
    }
}

/// How much there is, of which little changes.
#[derive(Debug, Clone, Copy)]
pub struct Growth {
    /// Executors of one app.
    pub executors: u32,
    /// Tenants with an app and a key each.
    pub tenants: u32,
    /// Runs that executors have had for an hour, and as many that are written ahead and have consequences.
    pub runs: u32,
}

/// The databases that carillon runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// `MariaDB`.
    Mariadb,
    /// `PostgreSQL`.
    Postgres,
    /// `SQLite`.
    Sqlite,
}

/// What executors speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// That of the SDK.
    Carillon,
    /// That of xxl-job: plain executors, which get each run on its instant.
    XxlJob,
}

/// Where the runs of a burst come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Variant {
    /// Written ahead: each is the fire of a task of its own.
    Ahead,
    /// Suddenly there and overdue, as after an outage or by the API.
    Overdue,
    /// The same, and the executor accepts connections and answers nothing.
    Hanging,
}

/// How many fires per second.
#[derive(Debug, Clone, Copy)]
pub enum Rate {
    /// As many as are sustained.
    Max,
    /// So many.
    Fixed(u32),
}

fn rate(text: &str) -> Result<Rate, String> {
    match text.parse() {
        _ if text == "max" => Ok(Rate::Max),
        Ok(rate @ 1..=1_000_000) => Ok(Rate::Fixed(rate)),
        _ => Err("a number from 1 to 1000000, or `max`".to_owned()),
    }
}

/// How the figures are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// One JSON object.
    Json,
    /// One figure per line.
    Table,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &str) -> Result<Options, String> {
        let words = ["bench", "--database", "mariadb"].into_iter().chain(words.split_whitespace());
        let options = Options::try_parse_from(words).map_err(|wrong| wrong.to_string())?;
        options.check().map(|()| options)
    }

    #[test]
    fn the_window_is_as_long_as_what_is_measured_needs() {
        for (words, seconds) in [
            ("--rate 500", 60),
            ("--rate 500 --seconds 10", 10),
            ("--rate 500 --retention", 300),
            ("--rate 500 --retention --seconds 60", 60),
            ("--ramp 500:1000:500", 20),
            ("--node-death 500", 20),
        ] {
            assert_eq!(read(words).unwrap().seconds(), seconds, "{words}");
        }
    }

    #[test]
    fn who_takes_part_belongs_to_a_fixed_rate() {
        let load = read("--rate 500 --nodes 2 --tenants 10 --executors 20 --tasks 1000").unwrap().load();
        assert_eq!(load, Ok(Load { nodes: 2, tenants: 10, executors: 20, tasks: 1_000 }));
        assert_eq!(read("--rate 500").unwrap().load(), Ok(Load::ONE));
        for (words, wrong) in [
            ("--rate max --retention", "--retention goes with --rate N only"),
            ("--rate max --protocol xxl-job", "--protocol goes with --rate N only"),
            ("--rate max --executors 3", "--executors goes with --rate N or --growth"),
            ("--ramp 1:2:1 --tenants 3", "--tenants goes with --rate N or --growth"),
            ("--node-death 5 --nodes 3", "--nodes goes with --rate N or --burst"),
            ("--life --nodes 2", "--nodes goes with --rate N or --burst"),
            ("--rate 5 --tenants 3 --executors 2", "say --executors 3 or more"),
            ("--rate 5 --executors 2000", "say --executors 1000 or fewer"),
            ("--growth --executors 2", "--growth needs 3 --executors or more"),
            ("--rate 5 --database sqlite --nodes 2", "cannot be used multiple times"),
            ("--rate 5 --ramp 1:2:1", "cannot be used with"),
            ("--ramp 5", "FROM:TO:STEP"),
        ] {
            let told = read(words).map(drop).unwrap_err();
            assert!(told.contains(wrong), "{words}: {told}");
        }
    }

    #[test]
    fn growth_has_its_own_defaults() {
        let Growth { executors, tenants, runs } = read("--growth --tenants 5").unwrap().growth_sizes();
        assert_eq!((executors, tenants, runs), (1_000, 5, 100_000));
        assert!(read("--burst 10 --nodes 2").is_ok());
    }
}
