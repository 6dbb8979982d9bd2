//! A horace cron-job's database, as far as an import reads it.

use super::{Row, insert, local};
use crate::database::Database;
use carillon::domain::horace::ForeignHorace;
use chrono_tz::Tz;

/// The statements that make its tables.
#[rustfmt::skip] // a table
pub const HORACE_TABLES: [&str; 5] = [
    "CREATE TABLE t_tenant (id BIGINT PRIMARY KEY, name VARCHAR(50) NOT NULL, tenant VARCHAR(50) NOT NULL UNIQUE, \
     remark VARCHAR(500) NOT NULL, create_time DATETIME(3), modify_time DATETIME(3))",
    "CREATE TABLE t_app (id BIGINT PRIMARY KEY, tenant_id BIGINT NOT NULL, app_name VARCHAR(100) NOT NULL, \
     app_desc VARCHAR(100) NOT NULL, state INT NOT NULL DEFAULT 0, create_time DATETIME(3), modify_time DATETIME(3), \
     UNIQUE (tenant_id, app_name))",
    "CREATE TABLE t_task (id BIGINT PRIMARY KEY, tenant_id BIGINT NOT NULL, app_id BIGINT NOT NULL, app_name VARCHAR(100) NOT NULL, \
     app_desc VARCHAR(100) NOT NULL, name VARCHAR(100) NOT NULL, owner VARCHAR(50), cron VARCHAR(100) NOT NULL, tag VARCHAR(100), \
     run_state INT NOT NULL, method VARCHAR(500) NOT NULL, router_strategy INT NOT NULL, expired_strategy INT NOT NULL, \
     expired_time INT NOT NULL, failure_strategy INT NOT NULL, max_retry_count INT NOT NULL, failure_retry_interval INT NOT NULL, \
     timeout INT NOT NULL, task_params VARCHAR(500), remark VARCHAR(500), create_time DATETIME(3), modify_time DATETIME(3))",
    "CREATE TABLE t_user (id BIGINT PRIMARY KEY, username VARCHAR(255) NOT NULL UNIQUE, password VARCHAR(255) NOT NULL, \
     nickname VARCHAR(255) NOT NULL, email VARCHAR(255) NOT NULL, state INT NOT NULL DEFAULT 0, phone VARCHAR(255) NOT NULL, \
     avatar VARCHAR(255) NOT NULL, address VARCHAR(255), signature VARCHAR(255), create_time DATETIME(3), modify_time DATETIME(3))",
    "CREATE TABLE t_user_tenant (id BIGINT PRIMARY KEY, user_id BIGINT NOT NULL, tenant_id BIGINT NOT NULL, \
     create_time DATETIME(3), modify_time DATETIME(3), UNIQUE (user_id, tenant_id))",
];

/// Makes the tables, and inserts everything.
pub async fn insert_horace(database: &Database, rows: &ForeignHorace, zone: Tz) {
    for statement in HORACE_TABLES {
        database.execute(statement).await;
    }
    let tenants = rows.tenants.iter().map(|tenant| -> Row {
        vec![
            ("id", tenant.id.into()),
            ("name", tenant.name.as_str().into()),
            ("tenant", tenant.tenant.as_str().into()),
            ("remark", tenant.remark.as_str().into()),
        ]
    });
    insert(database, "t_tenant", tenants).await;
    let apps = rows.apps.iter().map(|app| -> Row {
        vec![
            ("id", app.id.into()),
            ("tenant_id", app.tenant_id.into()),
            ("app_name", app.app_name.as_str().into()),
            ("app_desc", app.app_desc.as_str().into()),
            ("state", app.state.into()),
        ]
    });
    insert(database, "t_app", apps).await;
    let tasks = rows.tasks.iter().map(|task| -> Row {
        vec![
            ("id", task.id.into()),
            ("tenant_id", task.tenant_id.into()),
            ("app_id", task.app_id.into()),
            ("app_name", "".into()),
            ("app_desc", "".into()),
            ("name", task.name.as_str().into()),
            ("owner", super::text_or_null(&task.owner)),
            ("cron", task.cron.as_str().into()),
            ("tag", super::text_or_null(&task.tag)),
            ("run_state", task.run_state.into()),
            ("method", task.method.as_str().into()),
            ("router_strategy", task.router_strategy.into()),
            ("expired_strategy", task.expired_strategy.into()),
            ("expired_time", task.expired_time.into()),
            ("failure_strategy", task.failure_strategy.into()),
            ("max_retry_count", task.max_retry_count.into()),
            ("failure_retry_interval", task.failure_retry_interval.into()),
            ("timeout", task.timeout.into()),
            ("task_params", super::text_or_null(&task.task_params)),
            ("remark", super::text_or_null(&task.remark)),
            ("create_time", local(task.create_time, zone)),
        ]
    });
    insert(database, "t_task", tasks).await;
    let users = rows.users.iter().map(|user| -> Row {
        let mut row: Row = vec![
            ("id", user.id.into()),
            ("username", user.username.as_str().into()),
            ("nickname", user.nickname.as_str().into()),
            ("state", user.state.into()),
        ];
        row.extend(["password", "email", "phone", "avatar"].map(|name| (name, "not read".into())));
        row
    });
    insert(database, "t_user", users).await;
    let members = rows.members.iter().enumerate().map(|(at, member)| -> Row {
        vec![("id", (at as i64 + 1).into()), ("user_id", member.user_id.into()), ("tenant_id", member.tenant_id.into())]
    });
    insert(database, "t_user_tenant", members).await;
}
