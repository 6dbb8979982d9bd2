//! Permits of runs that may only run so many at once, and the state that routing remembers.
//!
//! A permit is a row beside the log. It counts while the log is DISPATCHED, or QUEUED with the
//! version for which it was given: so the end of a run, however it comes, gives it back without a
//! statement of its own, and a node that dies leaves nothing behind that counts.
//!
//! With the version's negative the row says that the run waits: where runs keep their order, later
//! ones on other nodes do not pass it. That, too, ends with the row's state.

use super::connect::{Transaction, retrying};
use super::rows::to_json;
use super::{PermitStore, Result, SqlStore};
use crate::domain::Reason;
use crate::domain::permit::{Ask, Held, Limit, grant};
use crate::domain::rate::{self, Place};
use crate::domain::routing::{Use, UseChange};
use async_trait::async_trait;
use std::collections::{BTreeSet, HashMap, HashSet};

const ACTION: &str = "give permits";

#[async_trait]
impl PermitStore for SqlStore {
    async fn acquire(&self, asks: &[Ask]) -> Result<HashMap<i64, Limit>> {
        if asks.is_empty() {
            return Ok(HashMap::new());
        }
        retrying(|| self.acquire_once(asks)).await
    }

    async fn release(&self, ids: &[i64]) -> Result<()> {
        let ids = to_json(ACTION, &ids.iter().map(|id| [id]).collect::<Vec<_>>())?;
        self.execute(ACTION, &self.sql.permit_back, [ids.into()]).await.map(drop)
    }

    async fn note_waits(&self, waits: &[(i64, i64, Reason)]) -> Result<()> {
        const ACTION: &str = "note what runs wait for";
        let rows: Vec<_> = waits.iter().map(|(id, version, reason)| (id, version, reason.as_str())).collect();
        self.execute(ACTION, &self.sql.note_waits, [to_json(ACTION, &rows)?.into()]).await.map(drop)
    }

    async fn pace(&self, asks: &[rate::Ask], now: i64) -> Result<Vec<Place>> {
        self.pace_all(asks, now).await
    }

    async fn holders(&self, tasks: &[i64]) -> Result<Vec<super::HandedRun>> {
        let tasks = to_json(ACTION, &tasks.iter().map(|id| [id]).collect::<Vec<_>>())?;
        self.query("read the runs that hold permits", &self.sql.permit_holders, [tasks.into()], super::rows::handed_run)
            .await
    }

    async fn uses(&self, tasks: &[i64]) -> Result<Vec<(i64, String, Use)>> {
        const ACTION: &str = "read the uses of executors";
        let tasks = to_json(ACTION, &tasks.iter().map(|id| [id]).collect::<Vec<_>>())?;
        self.query(ACTION, &self.sql.uses, [tasks.into()], |row| {
            let used = Use { count: row.try_get_by_index(2)?, last: row.try_get_by_index(3)? };
            Ok((row.try_get_by_index(0)?, row.try_get_by_index(1)?, used))
        })
        .await
    }

    async fn add_uses(&self, changes: &[UseChange], new_id: &(dyn Fn() -> i64 + Sync)) -> Result<()> {
        const ACTION: &str = "note the uses of executors";
        if changes.is_empty() {
            return Ok(());
        }
        let rows: Vec<_> = changes
            .iter()
            .map(|change| (new_id(), change.task_id, &change.address, change.floor, change.added, change.last))
            .collect();
        let rows = to_json(ACTION, &rows)?;
        self.execute(ACTION, &self.sql.use_insert, [rows.clone().into()]).await?;
        self.execute(ACTION, &self.sql.use_add, [rows.into()]).await.map(drop)
    }

    async fn overdue(&self, since: &[(i64, i64)], due_before: i64, limit: u64) -> Result<Vec<(i64, i64)>> {
        const ACTION: &str = "read overdue fires";
        let since = to_json(ACTION, since)?;
        let values = [since.into(), due_before.into(), limit.into()];
        let read = |row: &sea_orm::QueryResult| Ok((row.try_get_by_index(0)?, row.try_get_by_index(1)?));
        self.query(ACTION, &self.sql.overdue, values, read).await
    }
}

impl SqlStore {
    async fn acquire_once(&self, asks: &[Ask]) -> Result<HashMap<i64, Limit>> {
        let bounded = |id: fn(&Ask) -> (i64, Option<i32>)| -> BTreeSet<i64> {
            asks.iter().map(id).filter(|(_, bound)| bound.is_some()).map(|(id, _)| id).collect()
        };
        let tasks = bounded(|ask| (ask.task_id, ask.bounds.task));
        let apps = bounded(|ask| (ask.app_id, ask.bounds.app));
        let tenants = bounded(|ask| (ask.tenant_id, ask.bounds.tenant));
        let tx = self.begin(ACTION).await?;
        self.lock_scopes(&tx, [&tasks, &apps, &tenants]).await?;
        let of_tasks: BTreeSet<i64> = asks.iter().map(|ask| ask.task_id).collect();
        tx.execute(&self.sql.permit_clean, [list(&of_tasks)?.into()]).await?;
        let own = to_json(ACTION, &asks.iter().map(|ask| [ask.id]).collect::<Vec<_>>())?;
        let mut held = Held::default();
        for (scopes, sql, counts) in [
            (&tasks, &self.sql.permits_of_tasks, &mut held.tasks),
            (&apps, &self.sql.permits_of_apps, &mut held.apps),
            (&tenants, &self.sql.permits_of_tenants, &mut held.tenants),
        ] {
            if !scopes.is_empty() {
                let read = |row: &sea_orm::QueryResult| Ok((row.try_get_by_index(0)?, row.try_get_by_index(1)?));
                let found: Vec<(i64, i64)> = tx.query(sql, [list(scopes)?.into(), own.clone().into()], read).await?;
                *counts = found.into_iter().collect::<HashMap<_, _>>();
            }
        }
        let in_order: BTreeSet<i64> = asks.iter().filter(|ask| ask.in_order).map(|ask| ask.task_id).collect();
        let mut known: HashSet<i64> = HashSet::new();
        if !in_order.is_empty() {
            let read = |row: &sea_orm::QueryResult| Ok((row.try_get_by_index(0)?, row.try_get_by_index(1)?));
            held.waiting =
                tx.query(&self.sql.permits_waiting, [list(&in_order)?.into()], read).await?.into_iter().collect();
            let read = |row: &sea_orm::QueryResult| row.try_get_by_index(0);
            known = tx.query(&self.sql.permit_waits, [own.into()], read).await?.into_iter().collect();
        }
        let verdicts = asks.iter().zip(grant(asks, held));
        let held_up: HashMap<i64, Limit> = verdicts.filter_map(|(ask, limit)| Some((ask.id, limit?))).collect();
        let row = |ask: &Ask| {
            let version = if held_up.contains_key(&ask.id) { -ask.version } else { ask.version };
            (ask.id, ask.tenant_id, ask.app_id, ask.task_id, version)
        };
        let is_news = |ask: &&Ask| !held_up.contains_key(&ask.id) || (ask.in_order && !known.contains(&ask.id));
        let rows: Vec<_> = asks.iter().filter(is_news).map(row).collect();
        if rows.is_empty() {
            tx.rollback().await?;
            return Ok(held_up);
        }
        let ids = to_json(ACTION, &rows.iter().map(|row| [row.0]).collect::<Vec<_>>())?;
        tx.execute(&self.sql.permit_drop, [ids.into()]).await?;
        tx.execute(&self.sql.permit_insert, [to_json(ACTION, &rows)?.into()]).await?;
        tx.commit().await?;
        Ok(held_up)
    }

    /// Whoever gives permits of a task, app or tenant holds its row until the commit.
    pub(super) async fn lock_scopes(&self, tx: &Transaction<'_>, scopes: [&BTreeSet<i64>; 3]) -> Result<()> {
        // One order for everybody.
        let all: BTreeSet<i64> = scopes.into_iter().flatten().copied().collect();
        let ids = list(&all)?;
        if tx.execute(&self.sql.scope_lock, [ids.clone().into()]).await? < all.len() as u64 {
            tx.execute(&self.sql.scope_insert, [ids.clone().into()]).await?;
            tx.execute(&self.sql.scope_lock, [ids.into()]).await?;
        }
        Ok(())
    }
}

fn list(ids: &BTreeSet<i64>) -> Result<String> {
    to_json(ACTION, &ids.iter().map(|id| [id]).collect::<Vec<_>>())
}
