//! Logs of former days, of which as many become old each second as are written: what retention finds in a database that has
//! carried the same rate for longer than logs are kept.
//!
//! ```text
//!   begin + 0 s      + 1 s                            the time at which they become old; they fired RETAIN_MS before
//!  ─┬────────────────┬────────────────┬──▶
//!   N logs of N tasks, N logs, …
//! ```

use crate::database::Database;
use crate::load::Load;
use crate::numbers::numbers;
use crate::options::Kind;
use crate::plan::Plan;
use crate::progress;
use anyhow::Result;
use carillon::domain::IdSource;
use carillon::domain::statistics::MINUTE_MS;
use carillon_tests::now_ms;
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// How long a node keeps logs by default, ms.
const RETAIN_MS: i64 = 5 * 86_400_000;

/// A run takes so long here, ms.
const TOOK_MS: i64 = 40;

/// Rows per second that a database is supposed to take in one INSERT.
const ROWS_PER_SECOND: i64 = 15_000;

/// What is there beyond the window: for what is written ahead and the warm-up before it, and the last runs after it, s.
const MORE_S: u32 = 200;

/// A node deletes once in so long by default, ms.
const ROUND_MS: i64 = 60_000;

/// A round of deleting may take as long as the time until the next.
const LAG_MAX_MS: i64 = 2 * ROUND_MS;

/// Minutes that are over and not counted; one is not begun before the next look, and takes its time.
const UNCOUNTED_MAX: i64 = 3;

/// Logs that become old from an instant on, the same number in each second.
#[derive(Debug, Clone, Copy)]
pub struct OldLogs {
    /// When the first becomes old, epoch ms; whole seconds.
    begin: i64,
    /// When tasks fire for the first time, epoch ms.
    fires_from: i64,
    /// In each second.
    rate: u32,
    seconds: u32,
    tenants: u32,
}

/// What retention and statistics have done by now.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Kept {
    /// Old logs deleted so far.
    pub deleted: i64,
    /// Rows of the table: old logs that are left, and those that were written.
    pub rows: i64,
    /// How long ago the oldest log became old, ms; up to a minute, if nodes delete once a minute.
    pub overdue_ms: i64,
    /// Whole minutes with fires that are over and have not been counted by the statistics.
    pub uncounted_minutes: i64,
}

impl OldLogs {
    /// Writes enough for a run of this plan whose tasks begin to fire afterwards; each second's by one statement.
    pub async fn write(plan: Plan, kind: Kind, database: &Database, template: i64) -> Result<Self> {
        let Plan { rate, load: Load { tenants, .. }, .. } = plan;
        let needed_s = plan.seconds + MORE_S;
        let writing_s = i64::from(rate) * i64::from(needed_s) / ROWS_PER_SECOND;
        let begin = (now_ms() / 1_000 + writing_s + 5) * 1_000;
        let mut logs = Self { begin, fires_from: begin, rate, seconds: 0, tenants };
        progress(&format!("{} old logs", rate * needed_s));
        let mut told = Instant::now();
        // Where writing takes longer than was supposed, those that are old by then come on top.
        while logs.used_up_at() < now_ms().max(begin) + i64::from(needed_s) * 1_000 {
            database.execute(&logs.of_second(kind, template, logs.seconds)).await?;
            logs.seconds += 1;
            if told.elapsed() > Duration::from_secs(10) {
                told = Instant::now();
                progress(&format!("{} old logs written", logs.count()));
            }
        }
        match kind {
            Kind::Mariadb => database.execute("ANALYZE TABLE task_log").await?,
            Kind::Postgres => database.execute("ANALYZE task_log").await?,
            Kind::Sqlite => {}
        }
        Ok(logs)
    }

    /// When the last one is old, epoch ms.
    fn used_up_at(&self) -> i64 {
        self.begin + i64::from(self.seconds) * 1_000
    }

    /// The same beside tasks that fire from `first` (epoch ms) on, or as late as the first of these logs becomes old.
    pub fn beside_fires(self, first: i64) -> Self {
        Self { fires_from: self.begin.max(first), ..self }
    }

    /// When tasks fire for the first time, epoch ms.
    pub fn fires_from(&self) -> i64 {
        self.fires_from
    }

    /// How many there are in all.
    pub fn count(&self) -> i64 {
        i64::from(self.rate) * i64::from(self.seconds)
    }

    fn first_id(&self) -> i64 {
        IdSource::first_at(self.begin - RETAIN_MS)
    }

    /// From the first id of a second to that of the next.
    fn second_of_ids(&self) -> i64 {
        IdSource::first_at::<i64>(self.begin + 1_000) - IdSource::first_at::<i64>(self.begin)
    }

    /// From one id to the next within a second.
    fn step(&self) -> i64 {
        self.second_of_ids() / i64::from(self.rate)
    }

    /// Successes of the tasks that fire, in the same order.
    fn of_second(&self, kind: Kind, template: i64, second: u32) -> String {
        let fired = self.begin - RETAIN_MS + i64::from(second) * 1_000;
        let (first, step, tenants) = (IdSource::first_at::<i64>(fired), self.step(), self.tenants);
        format!(
            "INSERT INTO task_log (id, tenant_id, app_id, task_id, revision, parent_id, shard_index, shard_total, bucket, \
             fire_time, due_time, status, version, attempt, failures, node_id, executor_id, queued_at, dispatched_at, \
             started_at, finished_at, reason) \
             SELECT {first} + (n.n - 1) * {step}, t.tenant_id + n.n % {tenants}, t.app_id + n.n % {tenants}, t.id + n.n, 1, \
             0, 0, 1, n.n % 1024, {fired}, {fired}, 10, 4, 1, 0, 1, 1, {fired} - 3000, {fired} - 3000, {fired} + 2, \
             {fired} + {TOOK_MS}, '' FROM {}, task t WHERE t.id = {template}",
            numbers(kind, self.rate)
        )
    }

    /// Looks at both ends of the table and at the list of the statistics: no work that grows with the number of logs.
    pub async fn look(&self, kind: Kind, database: &Database) -> Result<Kept> {
        let now = now_ms();
        let oldest = database.number("SELECT COALESCE(MIN(id), 9223372036854775807) FROM task_log").await?;
        let (deleted, overdue_ms) = self.progress(oldest, now);
        let integer = if kind == Kind::Mariadb { "SIGNED" } else { "BIGINT" };
        // Those that fire once a second.
        let written = format!(
            "SELECT CAST(SUM(next_fire_at - {}) AS {integer}) FROM task WHERE started = 1 AND cron = '* * * * * ?'",
            self.fires_from
        );
        let written = database.number(&written).await? / 1_000;
        let uncounted = "SELECT COALESCE((SELECT MIN(start) FROM statistic_work WHERE grain = 1 AND is_full = 1), \
                         (SELECT listed_until FROM statistic_state WHERE id = 1))";
        let counted_until = database.number(uncounted).await?;
        Ok(Kept {
            deleted,
            rows: self.count() - deleted + written,
            overdue_ms,
            uncounted_minutes: self.uncounted(counted_until, now),
        })
    }

    /// From the smallest id that is left: how many were deleted, and how long ago that log became old, ms. The node deletes in
    /// the order of ids.
    fn progress(&self, oldest: i64, now: i64) -> (i64, i64) {
        let (ids, rate) = ((oldest - self.first_id()).max(0), i64::from(self.rate));
        let in_second = (ids % self.second_of_ids()) / self.step();
        let deleted = (ids / self.second_of_ids() * rate + in_second.min(rate)).min(self.count());
        let became_old = self.begin + deleted * 1_000 / i64::from(self.rate);
        (deleted, (now - became_old).max(0))
    }

    fn uncounted(&self, counted_until: i64, now: i64) -> i64 {
        let since = counted_until.max(self.fires_from - self.fires_from.rem_euclid(MINUTE_MS));
        ((now - now.rem_euclid(MINUTE_MS) - since) / MINUTE_MS).max(0)
    }

    /// Why retention or statistics do not keep up between two looks; nothing if they do.
    pub fn complaints(&self, before: &Kept, after: &Kept) -> Vec<String> {
        let (mut complaints, lag) = (Vec::new(), after.overdue_ms);
        let mut complain = |holds: bool, text: String| complaints.extend(holds.then_some(text));
        complain(after.deleted == before.deleted, "no old log was deleted in the window".to_owned());
        complain(lag > LAG_MAX_MS, format!("the oldest log should have been deleted {lag} ms ago"));
        let round = i64::from(self.rate) * ROUND_MS / 1_000;
        let growth = after.rows - before.rows;
        complain(growth > round, format!("the table grew by {growth} rows"));
        complain(after.deleted == self.count(), "the old logs were used up before the end of the window".to_owned());
        let minutes = after.uncounted_minutes;
        complain(minutes > UNCOUNTED_MAX, format!("the statistics are {minutes} minutes behind"));
        complaints
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEGIN: i64 = 1_800_000_000_000;

    fn logs() -> OldLogs {
        OldLogs { begin: BEGIN, fires_from: BEGIN, rate: 500, seconds: 100, tenants: 3 }
    }

    #[test]
    fn the_oldest_id_tells_how_many_were_deleted() {
        let logs = logs();
        let id = |number: i64| logs.first_id() + number * logs.step();
        assert_eq!(logs.progress(id(0), BEGIN - 7), (0, 0), "the first is not old yet");
        assert_eq!(logs.progress(id(1_000), BEGIN + 2_500), (1_000, 500));
        assert_eq!(logs.progress(i64::MAX, BEGIN), (50_000, 0), "none is left");
        assert!(IdSource::first_at::<i64>(BEGIN - RETAIN_MS + 1_000) >= id(499), "a second's logs lie within it");
        assert!(id(499) > IdSource::first_at(BEGIN - RETAIN_MS + 990));
    }

    #[test]
    fn a_rate_that_does_not_divide_a_second_of_ids_miscounts_nothing() {
        let logs = OldLogs { rate: 5_000, seconds: 500, ..logs() };
        for number in [0, 1, 4_999, 5_000, 1_234_567, 2_499_999] {
            let second = IdSource::first_at::<i64>(BEGIN - RETAIN_MS + number / 5_000 * 1_000);
            assert_eq!(logs.progress(second + number % 5_000 * logs.step(), BEGIN).0, number);
        }
    }

    #[test]
    fn a_second_holds_a_log_of_each_task() {
        let sql = logs().of_second(Kind::Sqlite, 7, 2);
        let fired = BEGIN - RETAIN_MS + 2_000;
        assert!(
            sql.contains(&format!("{fired}, {fired}, 10, 4")) && sql.contains("n + 1 FROM c WHERE n < 500"),
            "{sql}"
        );
    }

    #[test]
    fn minutes_are_uncounted_from_the_first_fires_on() {
        let logs = logs();
        let minute = BEGIN - BEGIN % MINUTE_MS;
        assert_eq!(logs.uncounted(0, minute + 59_999), 0, "the first is not over");
        assert_eq!(logs.uncounted(0, minute + 2 * MINUTE_MS), 2);
        assert_eq!(logs.uncounted(minute + MINUTE_MS, minute + 2 * MINUTE_MS), 1);
    }

    #[test]
    fn what_does_not_keep_up_is_told() {
        let before = Kept { deleted: 1_000, rows: 90_000, overdue_ms: 30_000, uncounted_minutes: 1 };
        let good = Kept { deleted: 31_000, rows: 100_000, overdue_ms: 59_000, uncounted_minutes: 2 };
        assert_eq!(logs().complaints(&before, &good), Vec::<String>::new());
        for bad in [
            Kept { deleted: 1_000, ..good },
            Kept { deleted: 50_000, ..good },
            Kept { rows: 120_001, ..good },
            Kept { overdue_ms: 121_000, ..good },
            Kept { uncounted_minutes: 4, ..good },
        ] {
            assert_eq!(logs().complaints(&before, &bad).len(), 1, "{bad:?}");
        }
    }
}
