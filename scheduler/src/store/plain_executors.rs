//! Executors that are announced instead of registering themselves. A row stands for an address of an app: the process there
//! may have been restarted without a word.

use super::row::from_row;
use super::rows;
use super::sql_store::retrying;
use super::values::to_json;
use super::{Announced, AnnouncedBy, Announcement, PlainExecutorStore, Result, SqlStore, StoreError, StoreErrorKind};
use crate::domain::{ExecutorId, IdSource, Owner};
use async_trait::async_trait;

const ANNOUNCE: &str = "announce an executor";

/// Columns of an [`Announced`].
const ANNOUNCED: &str = "id, tenant_id, app_id, instance, key_id, address, heartbeat_at";

#[async_trait]
impl PlainExecutorStore for SqlStore {
    async fn announce(
        &self,
        announcement: &Announcement<'_>,
        new_id: &(dyn Fn() -> i64 + Sync),
        now: i64,
    ) -> Result<ExecutorId> {
        match retrying(|| self.announce_once(announcement, new_id, now)).await {
            // Another node has heard it at the same time: it is there now.
            Err(error) if error.kind() == StoreErrorKind::Duplicate => {
                retrying(|| self.announce_once(announcement, new_id, now)).await
            }
            done => done,
        }
    }

    async fn withdraw(&self, owner: Owner, address: &str, now: i64) -> Result<Option<ExecutorId>> {
        const ACTION: &str = "withdraw an executor";
        let Owner { tenant_id, app_id } = owner;
        let find = sql!(
            "SELECT id FROM executor WHERE app_id = {1} AND instance = {2} AND tenant_id = {3} AND plain = 1 AND gone_at = 0"
        );
        let found: Vec<ExecutorId> =
            self.query(ACTION, &find, [app_id.into(), address.into(), tenant_id.into()]).await?;
        let Some(id) = found.first().copied() else { return Ok(None) };
        let sql = sql!(
            "UPDATE executor SET gone_at = {4}, draining = 1, heartbeat_at = {now} WHERE id = {1} AND tenant_id = {2} AND \
             app_id = {3} AND plain = 1 AND gone_at = 0"
        );
        let values = [id.into(), tenant_id.into(), app_id.into(), now.into()];
        let moved = self.execute(ACTION, &sql, values).await?;
        Ok((moved > 0).then_some(id))
    }

    async fn announced(&self, after: ExecutorId, limit: u64) -> Result<Vec<Announced>> {
        let sql = sql!(format!(
            "SELECT {ANNOUNCED} FROM executor WHERE plain = 1 AND gone_at = 0 AND id > {{1}} ORDER BY id LIMIT {{2}}"
        ));
        self.query("list announced executors", &sql, [after.into(), limit.into()]).await
    }

    async fn end_announcements(&self, now: i64) -> Result<u64> {
        let sql = sql!(
            "UPDATE executor SET gone_at = {1}, draining = 1, heartbeat_at = {now} WHERE plain = 1 AND gone_at = 0 AND \
             announced_until > 0 AND announced_until < {2}"
        );
        self.execute("end announcements", &sql, [now.into(), now.into()]).await
    }
}

impl SqlStore {
    async fn announce_once(
        &self,
        announcement: &Announcement<'_>,
        new_id: &(dyn Fn() -> i64 + Sync),
        now: i64,
    ) -> Result<ExecutorId> {
        let Announcement { owner: Owner { tenant_id, app_id }, key_id, address, version, by, until, tags } =
            *announcement;
        let tags = tags.map(|tags| to_json(ANNOUNCE, tags)).transpose()?;
        let tx = self.begin(ANNOUNCE).await?;
        let find = sql!("SELECT id, plain FROM executor WHERE app_id = {1} AND instance = {2} AND tenant_id = {3}");
        let known: Vec<(ExecutorId, bool)> = tx.query(&find, [app_id.into(), address.into(), tenant_id.into()]).await?;
        match known.first() {
            Some((id, true)) => {
                // One that comes back is described anew: nodes that have forgotten it read it whole. Who vouches for it says
                // whether it lives, unless it has just come or says so itself.
                let update = sql!(
                    "UPDATE executor SET described_at = CASE WHEN gone_at > 0 OR key_id <> {2} OR tags <> COALESCE({6}, tags) \
                     OR ({7} = 1 AND version <> {8}) THEN {3} ELSE described_at END, \
                     heartbeat_at = CASE WHEN gone_at > 0 OR {7} = 1 THEN {now} ELSE heartbeat_at END, \
                     tags = CASE WHEN gone_at > 0 THEN COALESCE({6}, '[]') ELSE COALESCE({6}, tags) END, \
                     version = CASE WHEN {7} = 1 THEN {8} ELSE version END, \
                     gone_at = 0, draining = 0, key_id = {2}, announced_until = {4}, announced_by = {5} WHERE id = {1}"
                );
                let says_so_itself = i32::from(by == AnnouncedBy::Registry);
                let values = [
                    (*id).into(),
                    key_id.into(),
                    now.into(),
                    until.into(),
                    by.as_str().into(),
                    tags.into(),
                    says_so_itself.into(),
                    version.into(),
                ];
                tx.execute(&update, values).await?;
                tx.commit().await?;
                Ok(*id)
            }
            Some((_, false)) => {
                let detail = "an executor that registers itself has this instance";
                Err(StoreError::new(StoreErrorKind::Conflict, ANNOUNCE, detail))
            }
            None => {
                let id = new_id();
                let insert = sql!(
                    "INSERT INTO executor (id, tenant_id, app_id, instance, address, host_name, pid, version, description, \
                     tags, handlers, capacity, held, running, draining, registered_at, described_at, heartbeat_at, gone_at, \
                     key_id, register_signed_at, heartbeat_signed_at, node_id, own_address, plain, announced_until, \
                     announced_by) VALUES ({1}, {2}, {3}, {4}, {4}, '', 0, {11}, '', {12}, '[]', {5}, 0, 0, 0, {6}, {6}, {now}, \
                     0, {7}, 0, 0, {8}, 1, 1, {9}, {10})"
                );
                let values = [
                    id.into(),
                    tenant_id.into(),
                    app_id.into(),
                    address.into(),
                    // It says nothing of its capacity.
                    i32::MAX.into(),
                    now.into(),
                    key_id.into(),
                    IdSource::made_by(id).into(),
                    until.into(),
                    by.as_str().into(),
                    version.into(),
                    tags.unwrap_or_else(|| "[]".to_owned()).into(),
                ];
                tx.execute(&insert, values).await?;
                tx.commit().await?;
                Ok(ExecutorId(id))
            }
        }
    }
}

from_row!(Announced { id, owner = rows::owner, instance, key_id, address, heartbeat_at });
