//! Who uses carillon, and what they may do.

use crate::schema::Kind::{Big, Int, Name, Text};
use crate::schema::{Index, Table, Value};

/// The tables.
pub const TABLES: &[Table] = &[
    // `tenant_id`: who may manage the account, 0 is the platform; `subject`: issuer and subject of an
    // OpenID Connect login, or empty. `user` is a word of SQL.
    Table {
        name: "user_account",
        keys: 1,
        columns: &[
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
        ],
        indexes: &[
            Index::unique("user_account_name", &["name"]),
            Index::new("user_account_tenant", &["tenant_id"]),
            Index::new("user_account_subject", &["subject"]),
        ],
        rows: &[],
    },
    // The id is the hash of the token.
    Table {
        name: "session",
        keys: 1,
        columns: &[
            ("id", Name),
            ("user_id", Big),
            ("number", Big),
            ("created_at", Big),
            ("used_at", Big),
            ("expires_at", Big),
            ("address", Name),
            ("agent", Name),
        ],
        indexes: &[Index::new("session_of_user", &["user_id"]), Index::new("session_expiry", &["expires_at"])],
        rows: &[],
    },
    // `tenant_id`: where it can be granted, 0 means everywhere. Built-in roles have no row.
    Table {
        name: "role",
        keys: 1,
        columns: &[
            ("id", Big),
            ("tenant_id", Big),
            ("name", Name),
            ("description", Text),
            ("permissions", Text),
            ("revision", Big),
            ("created_at", Big),
            ("updated_at", Big),
        ],
        indexes: &[Index::unique("role_name", &["tenant_id", "name"])],
        rows: &[],
    },
    // `apps`: ids as JSON; empty means all.
    Table {
        name: "role_grant",
        keys: 1,
        columns: &[
            ("id", Big),
            ("user_id", Big),
            ("role_id", Big),
            ("tenant_id", Big),
            ("apps", Text),
            ("created_by", Big),
            ("created_at", Big),
        ],
        indexes: &[
            Index::unique("role_grant_user", &["user_id", "role_id", "tenant_id"]),
            Index::new("role_grant_role", &["role_id"]),
            Index::new("role_grant_tenant", &["tenant_id"]),
        ],
        rows: &[],
    },
    Table {
        name: "api_token",
        keys: 1,
        columns: &[
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
        ],
        indexes: &[Index::unique("api_token_hash", &["hash"]), Index::new("api_token_user", &["user_id"])],
        rows: &[],
    },
    // Changes of permissions are serialised, so that the last admin stays.
    Table {
        name: "access_lock",
        keys: 1,
        columns: &[("id", Big), ("turn", Big)],
        indexes: &[],
        rows: &[&[Value::Number(1), Value::Number(0)]],
    },
];
