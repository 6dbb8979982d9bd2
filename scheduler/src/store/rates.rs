//! Places in the rates of tenants: one transaction for each batch of runs whose tenants have a
//! quota of fires.

use super::connect::{Transaction, retrying};
use super::handing::change_row;
use super::rows::to_json;
use super::{Change, Result, SqlStore, StoreError, StoreErrorKind};
use crate::domain::rate::{Ask, Place, Rate};
use std::collections::{BTreeMap, BTreeSet};

const ACTION: &str = "take places in the rate of a tenant";

/// A tenant's quota of fires in a minute (0: none any more), and the places taken.
type Paced = (i32, Rate);

impl SqlStore {
    pub(super) async fn pace_all(&self, asks: &[Ask], now: i64) -> Result<Vec<Place>> {
        if asks.is_empty() {
            return Ok(Vec::new());
        }
        retrying(|| self.pace_once(asks, now)).await
    }

    async fn pace_once(&self, asks: &[Ask], now: i64) -> Result<Vec<Place>> {
        let tenants: BTreeSet<i64> = asks.iter().map(|ask| ask.tenant_id).collect();
        let tx = self.begin(ACTION).await?;
        self.lock_rates(&tx, &tenants).await?;
        let mut rates = self.read_rates(&tx, &tenants).await?;
        let mut delayed: Vec<Change> = Vec::new();
        let mut places = Vec::with_capacity(asks.len());
        for ask in asks {
            let place = match rates.get_mut(&ask.tenant_id) {
                Some((per_minute @ 1.., rate)) => rate.take(*per_minute, ask.at, ask.latest),
                _ => Place::Now,
            };
            if let Place::Later(due_time) = place {
                let per_minute = rates.get(&ask.tenant_id).map_or(0, |(per_minute, _)| *per_minute);
                delayed.push(Change::delayed(ask, due_time, per_minute));
            }
            places.push(place);
        }
        self.write_rates(&tx, rates, now).await?;
        if !delayed.is_empty() {
            let rows: Vec<_> = delayed.iter().map(change_row).collect();
            tx.execute(&self.sql.change, [to_json(ACTION, &rows)?.into()]).await?;
        }
        tx.commit().await?;
        Ok(places)
    }

    /// Whoever takes places of a tenant, or changes its quota, holds its row until the commit.
    pub(super) async fn lock_rates(&self, tx: &Transaction<'_>, tenants: &BTreeSet<i64>) -> Result<()> {
        let ids = list(tenants)?;
        if tx.execute(&self.sql.rate_lock, [ids.clone().into()]).await? < tenants.len() as u64 {
            tx.execute(&self.sql.rate_insert, [ids.clone().into()]).await?;
            tx.execute(&self.sql.rate_lock, [ids.into()]).await?;
        }
        Ok(())
    }

    /// Quotas and places of these tenants, whose rows are held.
    pub(super) async fn read_rates(
        &self,
        tx: &Transaction<'_>,
        tenants: &BTreeSet<i64>,
    ) -> Result<BTreeMap<i64, Paced>> {
        let read = |row: &sea_orm::QueryResult| {
            Ok((row.try_get_by_index(0)?, row.try_get_by_index(1)?, row.try_get_by_index::<String>(2)?))
        };
        let rows: Vec<(i64, i32, String)> = tx.query(&self.sql.rates, [list(tenants)?.into()], read).await?;
        rows.into_iter().map(|(id, per_minute, places)| Ok((id, (per_minute, parse(&places)?)))).collect()
    }

    pub(super) async fn write_rates(&self, tx: &Transaction<'_>, rates: BTreeMap<i64, Paced>, now: i64) -> Result<()> {
        let mut rows = Vec::with_capacity(rates.len());
        for (id, (_, mut rate)) in rates {
            rate.forget(now);
            rows.push((id, to_json(ACTION, &rate)?));
        }
        tx.execute(&self.sql.rate_write, [to_json(ACTION, &rows)?.into()]).await.map(drop)
    }
}

/// The places as they are stored.
pub(super) fn parse(places: &str) -> Result<Rate> {
    serde_json::from_str(places).map_err(|error| StoreError::new(StoreErrorKind::Other, ACTION, error.to_string()))
}

fn list(ids: &BTreeSet<i64>) -> Result<String> {
    to_json(ACTION, &ids.iter().map(|id| [id]).collect::<Vec<_>>())
}
