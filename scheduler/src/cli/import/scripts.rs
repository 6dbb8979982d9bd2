//! Scripts of tasks, with their versions.

use super::calls::first_chars;
use super::here::Tenant;
use super::plan::Planned;
use super::report::Report;
use crate::cli::node::{ApiRequest, Node};
use crate::domain::import::{Effect, GlueVersion, ImportDocument, ImportGlue, Uncarried};
use crate::domain::xxljob::REMARK_CHARS_MAX;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Writes the scripts of tasks that are at rest, and allows them in the apps that have any.
pub async fn scripts(
    node: &Node,
    document: &ImportDocument,
    planned: &[Planned],
    here: &BTreeMap<String, Tenant>,
    report: &mut Report,
) -> anyhow::Result<()> {
    let fits = |uncarried: &[Uncarried]| uncarried.iter().all(|one| one.effect != Effect::Stops);
    let mut allowed = BTreeSet::new();
    for (task, one) in document.tasks.iter().zip(planned) {
        let Some(glue) = task.glue.as_ref().filter(|_| !one.is_used && fits(&task.uncarried)) else { continue };
        let (tenant, app) = (one.text("tenant"), one.text("app"));
        let found = here.get(tenant);
        let id = found.and_then(|here| here.origins.get(&one.origin));
        let Some(id) = id.filter(|_| !report.dry_run || one.id.is_some()) else {
            report.scripts.push(one.full_name());
            continue;
        };
        let news = news(node, id, glue).await?;
        if news.is_empty() {
            continue;
        }
        report.scripts.push(one.full_name());
        if report.dry_run {
            continue;
        }
        let is_allowed = found.is_some_and(|here| here.script_apps.contains(app));
        if !is_allowed && allowed.insert((tenant, app)) {
            allow(node, found.and_then(|here| here.apps.get(app)), &format!("{tenant}/{app}")).await?;
        }
        if let Err(why) = write(node, id, glue, &news).await? {
            report.scripts.pop();
            let remedy =
                format!("Make a token (carillon keys create {tenant}/{app} --kind token), and repeat the import.");
            let left = Uncarried::stops("glue_type", &glue.glue_type, why, remedy);
            report.left(format!("task {}", one.full_name()), left);
        }
    }
    Ok(())
}

/// Which versions are to be written, the oldest first: all, where there is none; the last, where there is another.
async fn news<'a>(node: &Node, id: &str, glue: &'a ImportGlue) -> anyhow::Result<Vec<&'a GlueVersion>> {
    let is_now = node.answer(ApiRequest::get(["tasks", id, "script"])).await?;
    let Some(last) = glue.versions.last() else { return Ok(Vec::new()) };
    if is_now["glue_type"] == glue.glue_type.as_str() && is_now["source"] == last.source.as_str() {
        return Ok(Vec::new());
    }
    let is_first = is_now["version"] == 0;
    Ok(if is_first { glue.versions.iter().filter(|one| is_text(one)).collect() } else { vec![last] })
}

/// A version without a text is none here.
fn is_text(version: &GlueVersion) -> bool {
    !version.source.trim().is_empty()
}

/// Allows scripts in an app; who may not is told.
async fn allow(node: &Node, id: Option<&String>, name: &str) -> anyhow::Result<()> {
    let Some(id) = id else { return Ok(()) };
    let ask = ApiRequest::put(["apps", id, "scripts"]).body(json!({ "allowed": true }));
    let answer = node.ask(&ask).await?;
    answer.map(drop).map_err(|refusal| {
        let message = format!(
            "scripts cannot be allowed in app {name} ({}): have somebody with scripts.allow do it, or import without --with-scripts",
            refusal.detail
        );
        refusal.in_words(message)
    })
}

/// Writes versions; says why the app can have none.
async fn write(
    node: &Node,
    id: &str,
    glue: &ImportGlue,
    versions: &[&GlueVersion],
) -> anyhow::Result<Result<(), String>> {
    for GlueVersion { source, remark, at } in versions {
        let mut body =
            json!({ "glue_type": glue.glue_type, "source": source, "remark": first_chars(remark, REMARK_CHARS_MAX) });
        if *at > 0 {
            body["updated_at"] = Value::from(*at);
        }
        match node.ask(&ApiRequest::put(["tasks", id, "script"]).body(body)).await? {
            Ok(_) => {}
            Err(refusal) if refusal.status == 409 => return Ok(Err(refusal.detail)),
            Err(refusal) => {
                let message = format!("the script of task {id} is refused: {}", refusal.detail);
                return Err(refusal.in_words(message));
            }
        }
    }
    Ok(Ok(()))
}
