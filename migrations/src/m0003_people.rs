//! People, what they are granted, and what they did.

use crate::schema::Kind::{self, Big, Int, Name, Text, TextNull};
use crate::schema::{Columns, add_columns, create_index, table};
use sea_orm_migration::prelude::*;

/// Third schema.
pub struct Migration;

impl MigrationName for Migration {
    fn name(&self) -> &'static str {
        "m0003_people"
    }
}

/// (table, column, kind, what old rows get)
const ADDED: &[(&str, &str, Kind, i64)] = &[
    ("tenant", "description", TextNull, 0),
    ("tenant", "revision", Big, 1),
    ("app", "description", TextNull, 0),
    ("app", "revision", Big, 1),
];

/// `tenant_id`: who may manage the account, 0 is the platform; `subject`: issuer and subject of an
/// OpenID Connect login, or empty. `user` is a word of SQL.
const USER_ACCOUNT: Columns = &[
    ("id", Big),
    ("name", Name),
    ("display_name", Name),
    ("tenant_id", Big),
    ("password_hash", Text),
    ("must_change", Int),
    ("disabled", Int),
    ("subject", Name),
    ("revision", Big),
    ("created_at", Big),
    ("updated_at", Big),
    ("password_changed_at", Big),
    ("last_login_at", Big),
];
/// The id is the hash of the token.
const SESSION: Columns = &[
    ("id", Name),
    ("user_id", Big),
    ("number", Big),
    ("created_at", Big),
    ("used_at", Big),
    ("expires_at", Big),
    ("address", Name),
    ("agent", Name),
];
/// `tenant_id`: where it can be granted, 0 is everywhere. Built-in roles have no row.
const ROLE: Columns = &[
    ("id", Big),
    ("tenant_id", Big),
    ("name", Name),
    ("description", Text),
    ("permissions", Text),
    ("revision", Big),
    ("created_at", Big),
    ("updated_at", Big),
];
/// `apps`: ids as JSON; none are all.
const ROLE_GRANT: Columns = &[
    ("id", Big),
    ("user_id", Big),
    ("role_id", Big),
    ("tenant_id", Big),
    ("apps", Text),
    ("created_by", Big),
    ("created_at", Big),
];
const API_TOKEN: Columns = &[
    ("id", Big),
    ("hash", Name),
    ("user_id", Big),
    ("name", Name),
    ("tenant_id", Big),
    ("permissions", Text),
    ("created_at", Big),
    ("expires_at", Big),
    ("used_at", Big),
    ("revoked_at", Big),
];
const AUDIT_ENTRY: Columns = &[
    ("id", Big),
    ("tenant_id", Big),
    ("seq", Big),
    ("at", Big),
    ("actor_kind", Name),
    ("actor_id", Big),
    ("actor", Name),
    ("address", Name),
    ("action", Name),
    ("target_kind", Name),
    ("target_id", Name),
    ("target", Name),
    ("before_json", TextNull),
    ("after_json", TextNull),
    ("previous", Name),
    ("hash", Name),
];
/// The end of each tenant's chain; the id is the tenant's, 0 the platform's.
const AUDIT_HEAD: Columns = &[("id", Big), ("seq", Big), ("hash", Name)];
/// Changes of who may do what are made one at a time, so that the last admin stays.
const ACCESS_LOCK: Columns = &[("id", Big), ("turn", Big)];

const TABLES: &[(&str, Columns)] = &[
    ("user_account", USER_ACCOUNT),
    ("session", SESSION),
    ("role", ROLE),
    ("role_grant", ROLE_GRANT),
    ("api_token", API_TOKEN),
    ("audit_entry", AUDIT_ENTRY),
    ("audit_head", AUDIT_HEAD),
    ("access_lock", ACCESS_LOCK),
];

/// (name, table, columns, unique).
const INDEXES: &[(&str, &str, &[&str], bool)] = &[
    ("user_account_name", "user_account", &["name"], true),
    ("user_account_tenant", "user_account", &["tenant_id"], false),
    ("user_account_subject", "user_account", &["subject"], false),
    ("session_user", "session", &["user_id"], false),
    ("session_expiry", "session", &["expires_at"], false),
    ("role_name", "role", &["tenant_id", "name"], true),
    ("role_grant_user", "role_grant", &["user_id", "role_id", "tenant_id"], true),
    ("role_grant_role", "role_grant", &["role_id"], false),
    ("role_grant_tenant", "role_grant", &["tenant_id"], false),
    ("api_token_hash", "api_token", &["hash"], true),
    ("api_token_user", "api_token", &["user_id"], false),
    ("audit_entry_seq", "audit_entry", &["tenant_id", "seq"], true),
    ("audit_entry_tenant", "audit_entry", &["tenant_id", "id"], false),
    ("audit_entry_target", "audit_entry", &["target_id", "id"], false),
    ("audit_entry_actor", "audit_entry", &["actor_id", "id"], false),
];

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let backend = manager.get_database_backend();
        for table in ["tenant", "app"] {
            let of_table = ADDED.iter().filter(|(of, ..)| *of == table);
            let columns: Vec<_> = of_table.map(|(_, name, kind, value)| (*name, *kind, Value::from(*value))).collect();
            add_columns(manager, table, &columns).await?;
        }
        for (name, columns) in TABLES {
            manager.create_table(table(name, columns, backend)).await?;
        }
        for (name, on, columns, unique) in INDEXES {
            create_index(manager, name, on, columns, *unique).await?;
        }
        seed(manager, "access_lock", &["id", "turn"], &[1.into(), 0.into()]).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for (name, _) in TABLES.iter().rev() {
            manager.drop_table(Table::drop().table(Alias::new(*name)).if_exists().to_owned()).await?;
        }
        for (table, column, ..) in ADDED.iter().rev() {
            let mut change = Table::alter();
            manager.alter_table(change.table(Alias::new(*table)).drop_column(Alias::new(*column)).to_owned()).await?;
        }
        Ok(())
    }
}

/// A row that is there from the beginning, unless it is there already.
async fn seed(manager: &SchemaManager<'_>, table: &str, columns: &[&str], values: &[Value]) -> Result<(), DbErr> {
    let id = Alias::new(columns[0]);
    let mut insert = Query::insert();
    insert
        .into_table(Alias::new(table))
        .columns(columns.iter().map(|column| Alias::new(*column)))
        .values_panic(values.iter().cloned().map(Expr::from))
        .on_conflict(OnConflict::column(id.clone()).do_nothing_on([id]).to_owned());
    manager.execute(insert).await
}
