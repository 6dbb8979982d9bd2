//! Sends a document to a node: tenants, apps, tasks, their origins, users, in this order. Each step can be repeated.

use super::args::How;
use super::calls::{calls, first_chars};
use super::here::{Tenant, text};
use super::people;
use super::plan::{Planned, parents, plan};
use super::report::Report;
use super::scripts;
use crate::cli::node::{ApiRequest, Node};
use crate::domain::import::{ImportDocument, Uncarried};
use crate::domain::task::file::{TASKS_MAX, VERSION};
use crate::store::{ALARM_EMAIL_CHARS_MAX, AUTHOR_CHARS_MAX, ORIGINS_MAX};
use anyhow::{Context, bail};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashSet};
use std::mem;

/// Does what the document asks for, or says what would be done.
pub async fn run(node: &Node, document: ImportDocument, how: &How, with_scripts: bool) -> anyhow::Result<Report> {
    if document.tasks.len() > TASKS_MAX {
        let count = document.tasks.len();
        bail!("there are {count} tasks, and one import takes {TASKS_MAX}: import some at a time (--group, --tenant)");
    }
    let mut report = Report { dry_run: how.dry_run, ..Report::default() };
    let mut here = BTreeMap::new();
    for tenant in &document.tenants {
        here.insert(tenant.name.clone(), Tenant::read(node, &tenant.name).await?);
    }
    places(node, &document, &mut here, &mut report).await?;
    let adopted = adopted(node, &document, &here).await?;
    let planned = plan(&document, &here, &adopted);
    tasks(node, &document, &planned, &mut here, &mut report).await?;
    if with_scripts {
        scripts::scripts(node, &document, &planned, &here, &mut report).await?;
    }
    if !how.without_users {
        people::users(node, &document, &here, &mut report).await?;
    }
    report.leave(&document);
    report.document = how.dry_run.then_some(document);
    Ok(report)
}

/// Makes the tenants and apps that are not there.
async fn places(
    node: &Node,
    document: &ImportDocument,
    here: &mut BTreeMap<String, Tenant>,
    report: &mut Report,
) -> anyhow::Result<()> {
    for tenant in &document.tenants {
        let Some(here) = here.get_mut(&tenant.name).filter(|here| here.id.is_none()) else { continue };
        report.tenants.push(tenant.name.clone());
        if !report.dry_run {
            let body = json!({ "name": tenant.name, "description": cut(&tenant.description) });
            here.id = Some(text(&node.answer(ApiRequest::post(["tenants"]).body(body)).await?, "id")?);
        }
    }
    for app in &document.apps {
        let Some(here) = here.get_mut(&app.tenant).filter(|here| !here.apps.contains_key(&app.name)) else { continue };
        report.apps.push(format!("{}/{}", app.tenant, app.name));
        if !report.dry_run {
            let body = json!({ "tenant": app.tenant, "name": app.name, "description": cut(&app.description) });
            let made = node.answer(ApiRequest::post(["apps"]).body(body)).await?;
            here.apps.insert(app.name.clone(), text(&made, "id")?);
        }
    }
    Ok(())
}

/// Descriptions have 1,000 characters at most.
fn cut(text: &str) -> String {
    first_chars(text, 1_000)
}

/// The numbers by which scripts know the apps of a tenant, each once.
fn app_numbers(document: &ImportDocument, tenant: &str, here: Option<&Tenant>) -> Vec<Value> {
    let mut known = HashSet::new();
    let of_tenant = document.apps.iter().filter(|app| app.tenant == tenant);
    let numbers = of_tenant.filter_map(|app| {
        let (number, id) = (app.number?, here?.apps.get(&app.name)?);
        known.insert(number).then(|| json!({ "app": id, "number": number }))
    });
    numbers.collect()
}

/// Origins of the tasks that an import made which broke off before it noted them: they are exactly what this one would make.
async fn adopted(
    node: &Node,
    document: &ImportDocument,
    here: &BTreeMap<String, Tenant>,
) -> anyhow::Result<HashSet<String>> {
    let planned = plan(document, here, &HashSet::new());
    let met: HashSet<String> = planned.into_iter().filter(|one| one.meets).map(|one| one.origin).collect();
    if met.is_empty() {
        return Ok(met);
    }
    let planned = plan(document, here, &met).into_iter().filter(|one| met.contains(&one.origin));
    let (origins, entries): (Vec<String>, Vec<Value>) =
        planned.map(|one| (one.origin, Value::Object(one.entry))).unzip();
    // What is refused are other tasks.
    let Ok(answer) = node.ask(&applying(&entries, true)).await? else { return Ok(HashSet::new()) };
    let outcomes = answer["tasks"].as_array().into_iter().flatten();
    let same = origins.into_iter().zip(outcomes).filter(|(_, outcome)| outcome["action"] == "unchanged");
    Ok(same.map(|(origin, _)| origin).collect())
}

fn applying(entries: &[Value], dry_run: bool) -> ApiRequest {
    let ask = ApiRequest::post(["tasks", "apply"]).with("dry_run", dry_run.then_some(true));
    ask.body(json!({ "version": VERSION, "task": entries }))
}

/// Applies entries of a task file, or says what would change; each refusal is told.
pub async fn applied(node: &Node, entries: &[Value], dry_run: bool) -> anyhow::Result<Value> {
    node.ask(&applying(entries, dry_run)).await?.map_err(|refusal| {
        let fields = refusal.errors.iter().map(|error| format!("\n  {}: {}", error.field, error.message));
        let message = format!("the tasks are refused: {}{}", refusal.detail, fields.collect::<String>());
        refusal.in_words(message)
    })
}

/// Makes and changes tasks, and notes their origins.
async fn tasks(
    node: &Node,
    document: &ImportDocument,
    planned: &[Planned],
    here: &mut BTreeMap<String, Tenant>,
    report: &mut Report,
) -> anyhow::Result<()> {
    let (used, free): (Vec<_>, Vec<_>) = planned.iter().partition(|one| one.is_used);
    report.tasks.in_use = used.iter().map(|one| one.full_name()).collect();
    // A dry run cannot ask about apps that are not there: their tasks are new, and so is what follows them.
    let is_there =
        |one: &Planned| here.get(one.text("tenant")).is_some_and(|here| here.apps.contains_key(one.text("app")));
    let follows_absent = |one: &Planned| {
        let here = here.get(one.text("tenant"));
        parents(&one.entry).any(|(app, _)| here.is_none_or(|here| !here.apps.contains_key(app)))
    };
    let (asked, new): (Vec<_>, Vec<_>) = free.into_iter().partition(|one| is_there(one) && !follows_absent(one));
    for one in new {
        let names = if one.id.is_some() { &mut report.tasks.changed } else { &mut report.tasks.created };
        names.push(one.full_name());
    }
    let entries: Vec<Value> = asked.iter().map(|one| Value::Object(one.entry.clone())).collect();
    let answer = applied(node, &entries, report.dry_run).await?;
    let outcomes = answer["tasks"].as_array().context("the node's answer cannot be understood")?;
    let mut origins: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
    for (one, outcome) in asked.iter().zip(outcomes) {
        match outcome["action"].as_str() {
            Some("create") => report.tasks.created.push(one.full_name()),
            Some("change") => report.tasks.changed.push(one.full_name()),
            _ => report.tasks.unchanged += 1,
        }
        if let Some(id) = outcome["id"].as_str().filter(|_| one.id.is_none()) {
            let mut item = json!({ "task": id, "origin": one.origin, "number": one.number });
            item["author"] = first_chars(&one.author, AUTHOR_CHARS_MAX).into();
            item["alarm_email"] = first_chars(&one.alarm_email, ALARM_EMAIL_CHARS_MAX).into();
            origins.entry(one.text("tenant")).or_default().push(item);
        }
    }
    if report.dry_run {
        return Ok(());
    }
    for (tenant, items) in origins {
        let mut numbers = app_numbers(document, tenant, here.get(tenant));
        numbers.truncate(ORIGINS_MAX);
        for items in calls(items, ORIGINS_MAX) {
            let body = json!({ "items": items, "apps": mem::take(&mut numbers) });
            node.answer(ApiRequest::put(["tenants", tenant, "origins"]).body(body)).await?;
        }
    }
    for (tenant, here) in &mut *here {
        here.read_origins(node, tenant).await?;
    }
    numbers(planned, here, report);
    Ok(())
}

/// Names the tasks that could not keep their numbers.
fn numbers(planned: &[Planned], here: &BTreeMap<String, Tenant>, report: &mut Report) {
    for one in planned {
        let Some(here) = here.get(one.text("tenant")) else { continue };
        let number = here.origins.get(&one.origin).and_then(|id| here.numbers.get(id)).copied();
        let Some(wanted) = one.number.filter(|wanted| number != Some(i64::from(*wanted))) else { continue };
        let is_now =
            number.map_or_else(|| "it gets one with its first run".to_owned(), |number| format!("it is {number}"));
        let why = format!("the number belongs to another task of the tenant, or this one had one before: {is_now}");
        let remedy = "Scripts that name the number have to name the other one.";
        report.left(format!("task {}", one.full_name()), Uncarried::differs("id", wanted, why, remedy));
    }
}
