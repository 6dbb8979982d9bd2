//! From the names that people use to the ids that the API wants.

use super::node::{ApiRequest, Node};
use anyhow::{Context, bail};
use serde_json::Value;

/// Most items of a list that are searched for a name.
const LOOKED_AT_MAX: usize = 100_000;

/// The id of the task `tenant/app/name`, or the id itself.
pub async fn task(node: &Node, text: &str) -> anyhow::Result<String> {
    if is_id(text) {
        return Ok(text.to_owned());
    }
    let [tenant, app, name] =
        parts(text).with_context(|| format!("`{text}` is not a task; write its id or tenant/app/name"))?;
    let ask = ApiRequest::get(["tasks"]).with("tenant", Some(tenant)).with("app", Some(app)).with("name", Some(name));
    id_of(node, &format!("task `{text}`"), ask, |task| {
        [("tenant", tenant), ("app", app), ("name", name)].iter().all(|(field, value)| task[*field] == **value)
    })
    .await
}

/// The id of the app `tenant/name`, or the id itself.
pub async fn app(node: &Node, text: &str) -> anyhow::Result<String> {
    if is_id(text) {
        return Ok(text.to_owned());
    }
    let [tenant, name] = parts(text).with_context(|| format!("`{text}` is not an app; write its id or tenant/name"))?;
    let ask = ApiRequest::get(["apps"]).with("tenant", Some(tenant)).with("name", Some(name));
    id_of(node, &format!("app `{text}`"), ask, |app| app["tenant"] == tenant && app["name"] == name).await
}

/// The id of the user of that name, or the id itself.
pub async fn user(node: &Node, text: &str) -> anyhow::Result<String> {
    if is_id(text) {
        return Ok(text.to_owned());
    }
    let ask = ApiRequest::get(["users"]).with("name", Some(text));
    id_of(node, &format!("user `{text}`"), ask, |user| user["name"] == text).await
}

/// The id of the role of that name, or the id itself.
pub async fn role(node: &Node, text: &str) -> anyhow::Result<String> {
    if is_id(text) {
        return Ok(text.to_owned());
    }
    id_of(node, &format!("role `{text}`"), ApiRequest::get(["roles"]), |role| role["name"] == text).await
}

/// The id of the executor at that address, or the id itself.
pub async fn executor(node: &Node, text: &str) -> anyhow::Result<String> {
    if is_id(text) {
        return Ok(text.to_owned());
    }
    id_of(node, &format!("executor `{text}`"), ApiRequest::get(["executors"]), |found| found["address"] == text).await
}

/// Splits names such as `tenant/app` into `N` parts.
pub fn parts<const N: usize>(text: &str) -> Option<[&str; N]> {
    let parts: Vec<&str> = text.splitn(N, '/').filter(|part| !part.is_empty()).collect();
    parts.try_into().ok()
}

fn is_id(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

async fn id_of(node: &Node, what: &str, ask: ApiRequest, is_it: impl Fn(&Value) -> bool) -> anyhow::Result<String> {
    let (items, _) = node.list(&ask, Some("after"), LOOKED_AT_MAX).await?;
    let found: Vec<_> = items.iter().filter(|item| is_it(item)).filter_map(|item| item["id"].as_str()).collect();
    match found[..] {
        [id] => Ok(id.to_owned()),
        [] => bail!("there is no {what}"),
        _ => bail!("there are several: {what} may be {}; use an id", found.join(", ")),
    }
}
