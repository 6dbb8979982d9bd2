use super::super::job::Releases;
use super::*;
use crate::domain::import::{Effect, GlueVersion};
use crate::domain::task::file::TaskFile;

fn group(id: i64, name: &str) -> ForeignGroup {
    ForeignGroup { id, app_name: name.to_owned(), title: format!("group {id}"), ..ForeignGroup::default() }
}

fn manual(id: i64, name: &str, addresses: &str) -> ForeignGroup {
    ForeignGroup { address_type: 1, address_list: addresses.to_owned(), ..group(id, name) }
}

fn job(id: i64, group: i64, desc: &str) -> ForeignJob {
    ForeignJob {
        id,
        job_group: group,
        job_desc: desc.to_owned(),
        schedule_type: Some("CRON".to_owned()),
        schedule_conf: Some("0 0 0 * * ?".to_owned()),
        executor_handler: "h".to_owned(),
        glue_type: "BEAN".to_owned(),
        trigger_status: 1,
        ..ForeignJob::default()
    }
}

fn user(id: i64, username: &str, role: i64, permission: &str) -> ForeignUser {
    ForeignUser { id, username: username.to_owned(), role, permission: permission.to_owned() }
}

fn read(groups: Vec<ForeignGroup>, jobs: Vec<ForeignJob>) -> ForeignXxlJob {
    ForeignXxlJob { releases: Releases::V2_3, groups, jobs, glue: Vec::new(), users: Vec::new() }
}

fn options(groups: &[&str]) -> ImportOptions {
    let groups = groups.iter().map(ToString::to_string).collect();
    ImportOptions {
        source: "old".to_owned(),
        tenant: "shop".to_owned(),
        zone: Tz::Asia__Shanghai,
        groups,
        with_scripts: false,
    }
}

/// The document, whose tasks are a task file that is allowed.
fn made(read: &ForeignXxlJob, groups: &[&str]) -> ImportDocument {
    let document = document(read, &options(groups)).unwrap();
    let file = TaskFile::read(&document.task_file(), &TaskSpec::default(), "");
    assert_eq!(file.refused, []);
    assert_eq!(file.entries.len(), document.tasks.len());
    assert!(file.entries.iter().all(|entry| !entry.started), "the switch starts them");
    let text = serde_json::to_string(&document).unwrap();
    assert_eq!(serde_json::from_str::<ImportDocument>(&text).unwrap(), document);
    document
}

fn names(document: &ImportDocument) -> Vec<String> {
    let name =
        |task: &ImportTask| format!("{}/{}", task.task["app"].as_str().unwrap(), task.task["name"].as_str().unwrap());
    document.tasks.iter().map(name).collect()
}

#[test]
fn groups_become_apps_and_jobs_tasks() {
    let rows = read(vec![group(1, "orders"), group(2, "stock")], vec![job(7, 1, "close"), job(8, 2, "close")]);
    let document = made(&rows, &[]);
    assert_eq!(names(&document), ["orders/close", "stock/close"]);
    let task = &document.tasks[1];
    assert_eq!((task.origin.as_str(), task.number, task.starts), ("old#8", Some(8), true));
    let app = &document.apps[1];
    assert_eq!((app.tenant.as_str(), app.number, app.description.as_str()), ("shop", Some(2), "group 2"));
    assert_eq!(document.all_uncarried().count(), 0);
    assert_eq!(document.tenants.len(), 1);
}

#[test]
fn jobs_of_one_name_get_their_numbers() {
    let jobs = vec![job(7, 1, "close"), job(8, 1, "close"), job(9, 1, "a/b"), job(10, 1, "a-b")];
    let document = made(&read(vec![group(1, "orders")], jobs), &[]);
    assert_eq!(names(&document), ["orders/close", "orders/close #8", "orders/a-b", "orders/a-b #10"]);
    let descriptions: Vec<_> = document.tasks.iter().map(|task| task.task.get("description").cloned()).collect();
    assert_eq!(descriptions, [None, Some("close".into()), Some("a/b".into()), Some("a-b".into())]);
}

#[test]
fn groups_of_one_name_are_one_app_unless_addresses_were_entered() {
    let groups = vec![
        manual(1, "orders", "http://10.0.0.1:9999/, http://10.0.0.2:9999/"),
        group(2, "orders"),
        group(3, "orders"),
    ];
    let document = made(&read(groups, vec![job(7, 1, "a"), job(8, 2, "b"), job(9, 3, "c")]), &[]);
    assert_eq!(names(&document), ["orders-1/a", "orders/b", "orders/c"]);
    let apps: Vec<_> = document.apps.iter().map(|app| (app.name.as_str(), app.number, app.addresses.len())).collect();
    assert_eq!(apps, [("orders-1", Some(1), 2), ("orders", Some(2), 0)]);
    let said: Vec<_> = document.all_uncarried().map(|(of, one)| format!("{of}: {}", one.field)).collect();
    let expected = [
        "app shop/orders-1: xxl_job_group.app_name",
        "app shop/orders-1: xxl_job_group.address_list",
        "app shop/orders: xxl_job_group.id",
    ];
    assert_eq!(said, expected);
}

#[test]
fn a_name_that_is_not_allowed_is_made_fit_and_named() {
    let document = made(&read(vec![group(1, "订单 service"), group(2, "订单")], vec![job(7, 2, "a")]), &[]);
    let apps: Vec<_> = document.apps.iter().map(|app| app.name.as_str()).collect();
    assert_eq!(apps, ["service", "group-2"]);
    assert!(document.apps[0].uncarried[0].remedy.contains("`service`"));
}

#[test]
fn only_the_groups_that_are_asked_for() {
    let mut rows =
        read(vec![group(1, "orders"), group(2, "stock")], vec![job(7, 1, "a"), job(8, 2, "b"), job(9, 3, "c")]);
    rows.jobs[0].child_jobid = "8".to_owned();
    rows.users = vec![user(1, "ann", 0, "1,2"), user(2, "bob", 0, "2")];
    let document = made(&rows, &["orders"]);
    assert_eq!(names(&document), ["orders/a"]);
    let said: Vec<_> = document.all_uncarried().map(|(of, one)| format!("{of}: {} {}", one.field, one.value)).collect();
    let expected = [
        "source: xxl_job_info.job_group 3 (job 9: c)",
        "source: xxl_job_user.username bob",
        "task shop/orders/a: child_jobid 8",
        "user ann: xxl_job_user.password ",
        "user ann: xxl_job_user.permission 2",
    ];
    assert_eq!(said, expected);
    let refused = super::document(&rows, &options(&["billing"])).unwrap_err().to_string();
    assert_eq!(refused, "there is no group `billing`; there are: orders, stock");
    let wrong = super::document(&rows, &ImportOptions { source: "a#b".to_owned(), ..options(&[]) });
    assert!(wrong.unwrap_err().to_string().starts_with("`a#b` is no name of a source: "));
}

#[test]
fn users_get_what_they_could_do() {
    let mut rows = read(vec![group(1, "orders"), group(2, "stock")], Vec::new());
    rows.users =
        vec![user(1, "admin", 1, ""), user(2, "ann", 0, "2,1,2"), user(3, "王", 0, "1"), user(4, "idle", 0, "")];
    let document = made(&rows, &[]);
    let seen: Vec<_> = document.users.iter().map(|user| (user.name.as_str(), user.grants.clone())).collect();
    let grant = |apps: &[&str], role| {
        vec![ImportGrant { tenant: "shop".to_owned(), apps: apps.iter().map(ToString::to_string).collect(), role }]
    };
    let expected = [("admin", grant(&[], ImportRole::Admin)), ("ann", grant(&["orders", "stock"], ImportRole::Member))];
    assert_eq!(seen, expected);
    assert_eq!(document.uncarried.iter().map(|one| one.value.as_str()).collect::<Vec<_>>(), ["王", "idle"]);
}

#[test]
fn a_script_brings_its_versions() {
    let script = ForeignJob {
        glue_type: "GLUE_PYTHON".to_owned(),
        glue_source: "print(2)".to_owned(),
        executor_handler: String::new(),
        ..job(7, 1, "a")
    };
    let mut rows = read(vec![group(1, "orders")], vec![script]);
    let version = |id, source: &str| ForeignGlue {
        id,
        job_id: 7,
        glue_type: "GLUE_PYTHON".to_owned(),
        glue_source: source.to_owned(),
        glue_remark: format!("version {id}"),
        add_time: Some(id),
    };
    rows.glue = vec![version(1, "print(1)"), version(2, "print(2)"), ForeignGlue { job_id: 99, ..version(3, "x") }];
    let document = made(&rows, &[]);
    let version = |id: i64| GlueVersion { source: format!("print({id})"), remark: format!("version {id}"), at: id };
    let glue = document.tasks[0].glue.as_ref().unwrap();
    assert_eq!((glue.glue_type.as_str(), &glue.versions[..]), ("GLUE_PYTHON", &[version(1), version(2)][..]));
    assert_eq!((document.tasks[0].uncarried[0].effect, document.tasks[0].starts), (Effect::Stops, false));
}

#[test]
fn a_child_in_another_app_is_named_with_the_app() {
    let mut rows = read(vec![group(1, "orders"), group(2, "stock")], vec![job(7, 1, "a/b"), job(8, 2, "c")]);
    rows.jobs[0].child_jobid = "8".to_owned();
    rows.jobs[1].trigger_status = 0;
    let document = made(&rows, &[]);
    let child = &document.tasks[1];
    assert_eq!(child.task["parents"], serde_json::json!([{ "task": "orders/a-b", "on": "success" }]));
    // Its schedule rests, and reads as that.
    assert!(child.starts);
    assert_eq!((&child.task["schedule"], &child.task["cron"]), (&"none".into(), &"0 0 0 * * ?".into()));
}
