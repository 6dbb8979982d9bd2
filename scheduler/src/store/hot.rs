//! The hot statements of all files, to show how a database executes them.

use super::SqlStore;
use super::template::{Template, Text as _};
use super::{
    attempts, backfills, calendars, claiming, cluster, dispatching, executors, housekeeping, keys, links, logs,
    old_runs, origins, outbox, outcome, permits, planning, rates, revoked_runs, revoking, rule_changes, rules, scripts,
    skips, statistics, xxljob, xxljob_words,
};

impl SqlStore {
    /// The name and the text of every hot statement, as this database gets it.
    #[must_use]
    pub fn statements(&self) -> Vec<(&'static str, String)> {
        templates().map(|template| (template.name(), template.on(self.backend).text().to_owned())).collect()
    }

    /// The texts of hot statements by which this database gets a batch cell by cell.
    #[must_use]
    pub fn statements_of_cells(&self) -> Vec<String> {
        templates().flat_map(|template| template.on(self.backend).sized_texts()).map(str::to_owned).collect()
    }
}

fn templates() -> impl Iterator<Item = &'static &'static Template> {
    let lists = [
        attempts::STATEMENTS,
        backfills::STATEMENTS,
        calendars::STATEMENTS,
        claiming::STATEMENTS,
        cluster::STATEMENTS,
        executors::STATEMENTS,
        outbox::STATEMENTS,
        dispatching::STATEMENTS,
        housekeeping::STATEMENTS,
        keys::STATEMENTS,
        links::STATEMENTS,
        logs::STATEMENTS,
        old_runs::STATEMENTS,
        origins::STATEMENTS,
        outcome::STATEMENTS,
        permits::STATEMENTS,
        planning::STATEMENTS,
        rule_changes::STATEMENTS,
        rates::STATEMENTS,
        revoked_runs::STATEMENTS,
        revoking::STATEMENTS,
        rules::STATEMENTS,
        scripts::STATEMENTS,
        skips::STATEMENTS,
        statistics::STATEMENTS,
        xxljob::STATEMENTS,
        xxljob_words::STATEMENTS,
    ];
    lists.into_iter().flatten()
}
