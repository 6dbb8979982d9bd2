//! Roles that admins make. The built-in ones are the program's.

use super::conditions::Conditions;
use super::connect::retrying;
use super::dialect::Sql;
use super::rows::{clean, json, to_json};
use super::{Result, SqlStore, StoreError, StoreErrorKind};
use crate::domain::Reach;
use crate::domain::access::{PLATFORM, PermissionSet, Place};
use sea_orm::{DbErr, QueryResult};

/// A role.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoleView {
    /// Id.
    pub id: i64,
    /// Where it can be granted; [`PLATFORM`] is everywhere.
    pub tenant_id: i64,
    /// Name, unique there.
    pub name: String,
    /// For people.
    pub description: String,
    /// What it allows.
    pub permissions: PermissionSet,
    /// Grows with every change.
    pub revision: i64,
    /// ms.
    pub created_at: i64,
    /// ms.
    pub updated_at: i64,
}

/// Which roles to list.
#[derive(Debug, Clone, Default)]
pub struct RoleFilter {
    /// Only this one.
    pub id: Option<i64>,
    /// Only of this name.
    pub name: Option<String>,
    /// After this id.
    pub after: i64,
    /// At most so many.
    pub limit: u64,
}

const ACTION: &str = "change a role";

impl SqlStore {
    /// Roles that can be granted within reach, by id: those of its tenants and those of the
    /// platform.
    pub async fn list_roles(&self, reach: &Reach, filter: &RoleFilter) -> Result<Vec<RoleView>> {
        let head = "SELECT r.id, r.tenant_id, r.name, r.description, r.permissions, r.revision, r.created_at, \
             r.updated_at FROM role r WHERE r.id > {1}";
        let mut wanted = Conditions::new(head.to_owned(), vec![filter.after.into()]);
        let reach = match reach {
            Reach::All => Reach::All,
            Reach::Of(places) => {
                let platform = Place { tenant_id: PLATFORM, apps: Vec::new() };
                Reach::Of(places.iter().cloned().chain([platform]).collect())
            }
        };
        wanted.touching(&reach, "r.tenant_id");
        wanted.and("r.id = ", filter.id);
        wanted.and("r.name = ", filter.name.clone());
        self.query_raw("list roles", wanted.finish(self, "ORDER BY r.id", filter.limit), role).await
    }

    /// Creates a role.
    pub async fn create_role(&self, role: &RoleView) -> Result<()> {
        let sql = Sql::new(
            self.backend,
            "INSERT INTO role (id, tenant_id, name, description, permissions, revision, created_at, updated_at) VALUES \
             ({1}, {2}, {3}, {4}, {5}, 1, {6}, {6})",
        );
        let values = [
            role.id.into(),
            role.tenant_id.into(),
            role.name.as_str().into(),
            clean(&role.description).into(),
            to_json(ACTION, &role.permissions)?.into(),
            role.created_at.into(),
        ];
        self.execute("create a role", &sql, values).await.map(drop)
    }

    /// Writes a role's new content, if its revision still is the one read; whoever has it is
    /// affected at once.
    pub async fn update_role(&self, role: &RoleView, now: i64) -> Result<()> {
        let sql = Sql::new(
            self.backend,
            "UPDATE role SET name = {4}, description = {5}, permissions = {6}, revision = revision + 1, updated_at = {7} \
             WHERE id = {1} AND tenant_id = {2} AND revision = {3}",
        );
        let values = [
            role.id.into(),
            role.tenant_id.into(),
            role.revision.into(),
            role.name.as_str().into(),
            clean(&role.description).into(),
            to_json(ACTION, &role.permissions)?.into(),
            now.into(),
        ];
        if self.execute(ACTION, &sql, values).await? == 0 {
            let detail = format!("role `{}` was changed meanwhile; read it again", role.name);
            return Err(StoreError::new(StoreErrorKind::Conflict, ACTION, detail));
        }
        Ok(())
    }

    /// Deletes a role that nobody is granted.
    pub async fn delete_role(&self, role: &RoleView) -> Result<()> {
        const ACTION: &str = "delete a role";
        retrying(|| async {
            let tx = self.begin(ACTION).await?;
            self.lock_access(&tx).await?;
            let holders = Sql::new(
                self.backend,
                "SELECT u.name FROM role_grant g JOIN user_account u ON u.id = g.user_id WHERE g.role_id = {1} LIMIT 10",
            );
            let holders: Vec<String> = tx.query(&holders, [role.id.into()], |row| row.try_get_by_index(0)).await?;
            if !holders.is_empty() {
                let detail = format!("it is granted to {}; take it back first", holders.join(", "));
                return Err(StoreError::new(StoreErrorKind::Conflict, ACTION, detail));
            }
            let sql = Sql::new(self.backend, "DELETE FROM role WHERE id = {1} AND tenant_id = {2}");
            tx.execute(&sql, [role.id.into(), role.tenant_id.into()]).await?;
            tx.commit().await
        })
        .await
    }
}

fn role(row: &QueryResult) -> std::result::Result<RoleView, DbErr> {
    let words: Vec<String> = json(row, 4)?;
    Ok(RoleView {
        id: row.try_get_by_index(0)?,
        tenant_id: row.try_get_by_index(1)?,
        name: row.try_get_by_index(2)?,
        description: row.try_get_by_index(3)?,
        permissions: PermissionSet::known(words.iter().map(String::as_str)),
        revision: row.try_get_by_index(5)?,
        created_at: row.try_get_by_index(6)?,
        updated_at: row.try_get_by_index(7)?,
    })
}
