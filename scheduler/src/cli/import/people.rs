//! Users of a document, with what they may do. Nobody gets a password: the one that a new account has is in no answer that is kept.

use super::here::{Tenant, text};
use super::report::Report;
use crate::cli::node::{ApiRequest, Node};
use crate::domain::access::Permission;
use crate::domain::import::{ImportDocument, ImportGrant, ImportRole, ImportUser, Uncarried};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};

/// The built-in role of those who could do everything.
const ADMIN: &str = "tenant admin";

/// The role of those who could do everything with the jobs of some groups.
const EDITOR: &str = "job editor";

/// What that role allows.
const EDITS: [Permission; 17] = [
    Permission::TenantsRead,
    Permission::AppsRead,
    Permission::ExecutorsRead,
    Permission::CalendarsRead,
    Permission::StatisticsRead,
    Permission::BackfillsRead,
    Permission::TasksRead,
    Permission::TasksCreate,
    Permission::TasksEdit,
    Permission::TasksDelete,
    Permission::TasksStart,
    Permission::TasksStop,
    Permission::TasksPause,
    Permission::TasksRun,
    Permission::TaskLogsRead,
    Permission::TaskLogsCancel,
    Permission::TaskLogsOutput,
];

/// Most roles that are looked through.
const ROLES_MAX: usize = 10_000;

/// Makes the users that are not there, and grants what they could do. An account that the tenant does not manage is left alone.
pub async fn users(
    node: &Node,
    document: &ImportDocument,
    here: &BTreeMap<String, Tenant>,
    report: &mut Report,
) -> anyhow::Result<()> {
    let mut roles = Roles::default();
    for user in &document.users {
        let Some(manager) = user.grants.first().map(|grant| grant.tenant.as_str()) else { continue };
        let manager_id = here.get(manager).and_then(|here| here.id.clone());
        let account = match find(node, &user.name).await? {
            Some(account) if account["tenant_id"].as_str() == manager_id.as_deref() => account,
            Some(_) => {
                let why = "there is an account of that name which the tenant does not manage: it is left as it is";
                let what = Uncarried::differs("username", &user.name, why, "Grant it what it needs.");
                report.left(format!("user {}", user.name), what);
                continue;
            }
            None => {
                report.users.push(user.name.clone());
                if report.dry_run {
                    continue;
                }
                make(node, user, manager).await?
            }
        };
        if !report.dry_run {
            grant(node, user, &account, here, &mut roles).await?;
        }
    }
    Ok(())
}

async fn find(node: &Node, name: &str) -> anyhow::Result<Option<Value>> {
    let found = node.answer(ApiRequest::get(["users"]).with("name", Some(name))).await?;
    Ok(found["items"].as_array().and_then(|items| items.iter().find(|user| user["name"] == name)).cloned())
}

async fn make(node: &Node, user: &ImportUser, tenant: &str) -> anyhow::Result<Value> {
    let body = json!({ "name": user.name, "display_name": user.display_name, "tenant": tenant });
    let made = node.answer(ApiRequest::post(["users"]).body(body)).await?;
    if !user.disabled {
        return Ok(made);
    }
    let disable = ApiRequest::patch(["users", &text(&made, "id")?]).body(json!({ "disabled": true }));
    node.answer(disable).await
}

/// Grants what the account has not.
async fn grant(
    node: &Node,
    user: &ImportUser,
    account: &Value,
    here: &BTreeMap<String, Tenant>,
    roles: &mut Roles,
) -> anyhow::Result<()> {
    for ImportGrant { tenant, apps, role } in &user.grants {
        let Some(here) = here.get(tenant) else { continue };
        let Some(tenant_id) = &here.id else { continue };
        let mut ids: Vec<&str> = apps.iter().filter_map(|app| here.apps.get(app)).map(String::as_str).collect();
        ids.sort_by_key(|id| id.parse::<i64>().unwrap_or_default());
        let role_id = roles.id(node, *role, (tenant.as_str(), tenant_id.as_str())).await?;
        let has = |grant: &Value| {
            grant["role_id"] == *role_id && grant["tenant_id"] == **tenant_id && grant["apps"] == json!(ids)
        };
        if account["grants"].as_array().is_some_and(|grants| grants.iter().any(has)) {
            continue;
        }
        let body = json!({ "role": role_id, "tenant": tenant, "apps": ids });
        node.answer(ApiRequest::post(["users", &text(account, "id")?, "grants"]).body(body)).await?;
    }
    Ok(())
}

/// Ids of roles, as they are asked for.
#[derive(Default)]
struct Roles {
    known: HashMap<(ImportRole, String), String>,
}

impl Roles {
    /// The id of the role in that tenant (name and id); it is made if it is not there.
    async fn id(&mut self, node: &Node, role: ImportRole, (tenant, tenant_id): (&str, &str)) -> anyhow::Result<String> {
        let key = (role, tenant.to_owned());
        if let Some(id) = self.known.get(&key) {
            return Ok(id.clone());
        }
        let (roles, _) = node.list(&ApiRequest::get(["roles"]), Some("after"), ROLES_MAX).await?;
        let is_it = |known: &&Value| match role {
            ImportRole::Admin => known["built_in"] == true && known["name"] == ADMIN,
            ImportRole::Member => known["tenant_id"] == tenant_id && known["name"] == EDITOR,
        };
        let id = if let Some(role) = roles.iter().find(is_it) {
            text(role, "id")?
        } else {
            let description =
                "Sees, changes, starts, stops and runs tasks: what users of an imported scheduler could do";
            let permissions = EDITS.map(Permission::as_str);
            let body =
                json!({ "name": EDITOR, "tenant": tenant, "description": description, "permissions": permissions });
            text(&node.answer(ApiRequest::post(["roles"]).body(body)).await?, "id")?
        };
        self.known.insert(key, id.clone());
        Ok(id)
    }
}
