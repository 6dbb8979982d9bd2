//! What an import reads of a horace cron-job. Passwords of its users are not among it.

use super::connection::ForeignDatabase;
use super::failure::unfit;
use super::rows::{Holds, Read, Table, Values};
use super::schema::Schema;
use crate::domain::horace::{ForeignApp, ForeignHorace, ForeignMember, ForeignTask, ForeignTenant, ForeignUser};
use crate::store::error::Result;
use chrono_tz::Tz;

const ACTION: &str = "read the horace cron-job";

/// Reads everything but runs.
pub async fn read(database: &mut ForeignDatabase, zone: Tz) -> Result<ForeignHorace> {
    if database.schema != Schema::Horace {
        return Err(unfit(ACTION, &database.address, "these are the tables of an xxl-job"));
    }
    Ok(ForeignHorace {
        tenants: database.all(ACTION, &tenants(), zone, tenant).await?,
        apps: database.all(ACTION, &apps(), zone, app).await?,
        tasks: database.all(ACTION, &tasks(), zone, task).await?,
        users: database.all(ACTION, &users(), zone, user).await?,
        members: database.all(ACTION, &members(), zone, member).await?,
    })
}

fn table(name: &'static str, numbers: &[&'static str], texts: &[&'static str]) -> Table {
    let of = |names: &[&'static str], holds| names.iter().map(|name| (*name, holds)).collect::<Vec<_>>();
    Table { name, columns: [of(numbers, Holds::Number), of(texts, Holds::Text)].concat() }
}

fn tenants() -> Table {
    table("t_tenant", &["id"], &["name", "tenant", "remark"])
}

fn tenant(row: &Values<'_>) -> Read<ForeignTenant> {
    Ok(ForeignTenant {
        id: row.number("id")?,
        name: row.text("name")?,
        tenant: row.text("tenant")?,
        remark: row.text("remark")?,
    })
}

fn apps() -> Table {
    table("t_app", &["id", "tenant_id", "state"], &["app_name", "app_desc"])
}

fn app(row: &Values<'_>) -> Read<ForeignApp> {
    Ok(ForeignApp {
        id: row.number("id")?,
        tenant_id: row.number("tenant_id")?,
        app_name: row.text("app_name")?,
        app_desc: row.text("app_desc")?,
        state: row.number("state")?,
    })
}

#[rustfmt::skip] // a table
fn tasks() -> Table {
    let mut tasks = table(
        "t_task",
        &["id", "tenant_id", "app_id", "run_state", "router_strategy", "expired_strategy", "expired_time", "failure_strategy",
          "max_retry_count", "failure_retry_interval", "timeout"],
        &["name", "owner", "cron", "tag", "method", "task_params", "remark"],
    );
    tasks.columns.push(("create_time", Holds::Time));
    tasks
}

fn task(row: &Values<'_>) -> Read<ForeignTask> {
    Ok(ForeignTask {
        id: row.number("id")?,
        tenant_id: row.number("tenant_id")?,
        app_id: row.number("app_id")?,
        name: row.text("name")?,
        owner: row.text("owner")?,
        cron: row.text("cron")?,
        tag: row.text("tag")?,
        run_state: row.number("run_state")?,
        method: row.text("method")?,
        router_strategy: row.number("router_strategy")?,
        expired_strategy: row.number("expired_strategy")?,
        expired_time: row.number("expired_time")?,
        failure_strategy: row.number("failure_strategy")?,
        max_retry_count: row.number("max_retry_count")?,
        failure_retry_interval: row.number("failure_retry_interval")?,
        timeout: row.number("timeout")?,
        task_params: row.text("task_params")?,
        remark: row.text("remark")?,
        create_time: row.time("create_time")?,
    })
}

fn users() -> Table {
    table("t_user", &["id", "state"], &["username", "nickname"])
}

fn user(row: &Values<'_>) -> Read<ForeignUser> {
    Ok(ForeignUser {
        id: row.number("id")?,
        username: row.text("username")?,
        nickname: row.text("nickname")?,
        state: row.number("state")?,
    })
}

fn members() -> Table {
    table("t_user_tenant", &["id", "user_id", "tenant_id"], &[])
}

fn member(row: &Values<'_>) -> Read<ForeignMember> {
    Ok(ForeignMember { user_id: row.number("user_id")?, tenant_id: row.number("tenant_id")? })
}
