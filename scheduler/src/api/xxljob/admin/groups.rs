//! Apps: what xxl-job calls groups, or executors.

use super::asked::Asked;
use super::paging::Pages;
use super::reply::{Paging, Refused, Reply};
use super::visitor::Visitor;
use crate::api::Api;
use crate::domain::AppId;
use crate::domain::access::Permission;
use crate::store::{GroupFilter, GroupView};
use serde_json::{Value, json};
use std::collections::HashMap;

/// Addresses of one app that are shown at most.
const ADDRESSES_MAX: usize = 1_000;

/// A page of them.
pub async fn list(api: &Api, visitor: &Visitor, asked: &Asked, pages: Pages) -> Result<Reply, Refused> {
    let access_scope = visitor.scope(Permission::AppsRead)?;
    let paging = Paging::read(asked, pages)?;
    let filter = GroupFilter {
        number: None,
        name: asked.searched("appname")?,
        title: asked.searched("title")?,
        offset: paging.offset,
        limit: paging.size,
    };
    let (total, groups) = api.store.job_groups(&access_scope, &filter).await?;
    let addresses = addresses(api, visitor);
    let items = groups.iter().map(|group| shown(group, &addresses)).collect();
    Ok(Reply::page(items, total, paging))
}

/// One of them.
pub async fn show(api: &Api, visitor: &Visitor, asked: &Asked) -> Result<Reply, Refused> {
    let group = find(api, visitor, Permission::AppsRead, "id", asked.id()?).await?;
    Ok(Reply::content(shown(&group, &addresses(api, visitor))))
}

/// The app of that number, where the caller holds the permission; `name` is the parameter that names it.
pub async fn find(
    api: &Api,
    visitor: &Visitor,
    needs: Permission,
    name: &str,
    number: i64,
) -> Result<GroupView, Refused> {
    let access_scope = visitor.scope(needs)?;
    let missing = || Refused::missing(name, "executor group", number);
    let known = i32::try_from(number).map_err(|_| missing())?;
    let filter = GroupFilter { number: Some(known), limit: 1, ..GroupFilter::default() };
    let (_, found) = api.store.job_groups(&access_scope, &filter).await?;
    found.into_iter().next().ok_or_else(missing)
}

/// Where executors are that the caller may see, by their apps.
fn addresses(api: &Api, visitor: &Visitor) -> HashMap<AppId, Vec<String>> {
    let mut addresses: HashMap<AppId, Vec<String>> = HashMap::new();
    let Ok(access_scope) = visitor.scope(Permission::ExecutorsRead) else { return addresses };
    for executor in api.engine.registry.everyone() {
        if access_scope.has(executor.tenant_id, executor.app_id) {
            addresses.entry(executor.app_id).or_default().push(executor.address.clone());
        }
    }
    for of_app in addresses.values_mut() {
        of_app.sort_unstable();
        of_app.dedup();
        of_app.truncate(ADDRESSES_MAX);
    }
    addresses
}

fn shown(group: &GroupView, addresses: &HashMap<AppId, Vec<String>>) -> Value {
    let registered = addresses.get(&group.owner.app_id);
    json!({
        "id": group.number,
        "appname": group.name,
        "title": group.title(),
        // They announce themselves.
        "addressType": 0,
        "addressList": registered.map(|list| list.join(",")).unwrap_or_default(),
        "registryList": registered,
    })
}
