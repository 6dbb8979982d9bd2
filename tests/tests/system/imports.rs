//! `carillon import`: what an xxl-job has comes over once, whole, and without a start; groups are switched over and back.

use carillon::domain::xxljob::{ForeignGlue, ForeignGroup, ForeignJob, ForeignLog};
use carillon_tests::foreign::{Release, XxlJob, glue_of, groups, horace_rows, insert_horace, jobs, users};
use carillon_tests::node::TOKEN;
use carillon_tests::plain_executor::{PlainExecutor, open_door};
use carillon_tests::{Api, Database, Kind, World, command, now_ms, pass};
use chrono_tz::Tz;
use sea_orm::ConnectionTrait as _;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::process::Output;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

scenario!(a_hundred_jobs_come_over_once: sqlite mariadb postgres);
scenario!(an_import_that_broke_off_goes_on: sqlite postgres);
scenario!(a_horace_comes_over_once: sqlite);
scenario!(users_come_over_with_what_they_could_do: sqlite);
scenario!(old_runs_come_over_once: sqlite mariadb postgres);
scenario!(a_dry_run_changes_nothing: sqlite);
scenario!(scripts_come_along_where_that_is_asked_for: sqlite mariadb);
scenario!(groups_are_switched_and_given_back_without_a_gap: mariadb);
scenario!(a_switch_that_broke_off_goes_on: sqlite);
scenario!(what_belongs_together_is_switched_together: sqlite);

const ZONE: Tz = Tz::Asia__Shanghai;

/// The command against the source, as `tenant`.
async fn import(world: &World, source: &Database, what: &str, more: &[&str]) -> Output {
    let from = source.url.replacen(":carillon@", "@", 1);
    assert_ne!(from, source.url, "the password is no argument");
    let mut command = command::carillon();
    command.args(["import", what, "--from", &from, "--time-zone", ZONE.name(), "--output", "json"]).args(more);
    command.env("CARILLON_URL", &world.node_urls()[0]).env("CARILLON_TOKEN", TOKEN);
    command.env("CARILLON_IMPORT_PASSWORD", "carillon");
    tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap()
}

/// The same, which has to succeed; what it reports.
async fn imported(world: &World, source: &Database, what: &str, more: &[&str]) -> Value {
    let ran = import(world, source, what, more).await;
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    serde_json::from_slice(&ran.stdout).unwrap()
}

async fn a_hundred(release: Release) -> (XxlJob, Vec<ForeignJob>) {
    let source = XxlJob::new(release, ZONE).await;
    let jobs = jobs(7, release);
    source.insert_groups(&groups()).await;
    source.insert_jobs(&jobs).await;
    source.insert_glue(&glue_of(&jobs)).await;
    source.insert_users(&users()).await;
    (source, jobs)
}

async fn all(api: &Api, path: &str) -> Vec<Value> {
    api.get(&format!("{path}{}limit=500", if path.contains('?') { '&' } else { '?' })).await["items"]
        .as_array()
        .unwrap()
        .clone()
}

/// The imported tasks by their jobs' ids.
async fn tasks_by_job(api: &Api, tenant: &str) -> HashMap<i64, Value> {
    let tasks = all(api, &format!("/tasks?tenant={tenant}")).await;
    let tasks: HashMap<String, Value> =
        tasks.into_iter().map(|task| (task["id"].as_str().unwrap().to_owned(), task)).collect();
    let origins = all(api, &format!("/tenants/{tenant}/origins")).await;
    let by_job = origins.iter().map(|origin| {
        let id: i64 = origin["origin"].as_str().unwrap().split_once('#').unwrap().1.parse().unwrap();
        assert_eq!(origin["number"], id, "scripts know it by its number");
        (id, tasks[origin["task"].as_str().unwrap()].clone())
    });
    by_job.collect()
}

fn count(report: &Value, kind: &str) -> usize {
    report["tasks"][kind].as_array().unwrap().len()
}

/// What of a task stands in columns of its job, in our words.
fn expected(job: &ForeignJob) -> Value {
    let word = |text: &str| match text {
        "SHARDING_BROADCAST" => "sharding".to_owned(),
        "SERIAL_EXECUTION" => "serial".to_owned(),
        "DO_NOTHING" => "skip".to_owned(),
        "FIRE_ONCE_NOW" => "fire_once".to_owned(),
        other => other.to_lowercase(),
    };
    let handler = if job.glue_type == "BEAN" { &job.executor_handler } else { &job.glue_type };
    let conf = job.schedule_conf.clone().unwrap_or_default();
    let seconds = conf.parse::<i64>().unwrap_or(0);
    json!({
        "handler": handler,
        "params": job.executor_param,
        "cron": if seconds == 0 { conf } else { String::new() },
        "interval_ms": seconds * 1_000,
        "time_zone": ZONE.name(),
        "routing": word(&job.executor_route_strategy),
        "block_strategy": word(&job.executor_block_strategy),
        "misfire_strategy": word(job.misfire_strategy.as_deref().unwrap()),
        "timeout_ms": job.executor_timeout * 1_000,
        "max_retries": job.executor_fail_retry_count,
        "failure_strategy": "retry",
        "state": "stopped",
    })
}

fn assert_as_there(
    job: &ForeignJob,
    task: &Value,
    followed: &BTreeMap<i64, BTreeSet<i64>>,
    names: &HashMap<i64, String>,
) {
    for (field, value) in expected(job).as_object().unwrap() {
        assert_eq!(task[field], *value, "{field} of job {}: {task}", job.id);
    }
    // A job that runs after others rests while it is stopped, and its schedule with it.
    let is_child = followed.contains_key(&job.id);
    let schedule = match job.schedule_type.as_deref().unwrap() {
        _ if is_child && job.trigger_status == 0 && job.glue_type == "BEAN" => "none",
        "CRON" => "cron",
        "FIX_RATE" => "fixed_rate",
        _ => "none",
    };
    assert_eq!(task["schedule"], schedule, "{job:?}");
    let links: BTreeSet<&str> =
        task["parents"].as_array().unwrap().iter().map(|link| link["task"].as_str().unwrap()).collect();
    let parents = followed.get(&job.id).into_iter().flatten();
    let app = task["app"].as_str().unwrap();
    let parents: BTreeSet<&str> = parents
        .map(|parent| names[parent].as_str())
        .map(|name| name.strip_prefix(app).and_then(|name| name.strip_prefix('/')).unwrap_or(name))
        .collect();
    assert_eq!(links, parents, "parents of job {}", job.id);
}

async fn a_hundred_jobs_come_over_once(kind: Kind) {
    let world = World::new(kind).await;
    world.nodes(&[]).await;
    let api = world.api();
    for (release, tenant) in [(Release::V2_5_0, "old"), (Release::V3_4_2, "new")] {
        let (source, jobs) = a_hundred(release).await;
        let args = ["--tenant", tenant, "--source", tenant];
        let report = imported(&world, &source.database, "xxl-job", &args).await;
        assert_eq!((count(&report, "created"), report["apps"].as_array().unwrap().len()), (100, 4), "{report}");
        let tasks = tasks_by_job(&api, tenant).await;
        let names: HashMap<i64, String> = tasks
            .iter()
            .map(|(id, task)| (*id, format!("{}/{}", task["app"].as_str().unwrap(), task["name"].as_str().unwrap())))
            .collect();
        let mut followed: BTreeMap<i64, BTreeSet<i64>> = BTreeMap::new();
        for job in jobs.iter().filter(|job| !job.child_jobid.is_empty()) {
            followed.entry(job.child_jobid.parse().unwrap()).or_default().insert(job.id);
        }
        assert_eq!(tasks.len(), 100);
        for job in &jobs {
            assert_as_there(job, &tasks[&job.id], &followed, &names);
        }
        words_are_kept_for_portals(&world, tenant, &jobs).await;
        again_without_change(&world, &source, &args).await;
        what_changes_there_comes_over(&world, &source, &args, &jobs).await;
    }
    assert_eq!(all(&api, "/users?name=ann").await.len(), 1);
}

/// Authors, addresses of alarms, and numbers of groups.
async fn words_are_kept_for_portals(world: &World, tenant: &str, jobs: &[ForeignJob]) {
    let of_tenant = format!("JOIN tenant n ON n.id = x.tenant_id WHERE n.name = '{tenant}'");
    let words = format!(
        "SELECT t.number, x.author, x.alarm_email FROM xxljob_words x JOIN xxljob_task t ON t.task_id = x.task_id \
         {of_tenant} ORDER BY t.number"
    );
    let text = |row: &sea_orm::QueryResult, at: usize| row.try_get_by_index::<Option<String>>(at);
    let here = world.database.query(&words, |row| {
        Ok((
            i64::from(row.try_get_by_index::<i32>(0)?),
            text(row, 1)?.unwrap_or_default(),
            text(row, 2)?.unwrap_or_default(),
        ))
    });
    let there: BTreeSet<_> = jobs
        .iter()
        .map(|job| (job.id, job.author.clone(), job.alarm_email.clone()))
        .filter(|(_, author, mail)| !author.is_empty() || !mail.is_empty())
        .collect();
    assert!(there.len() > 10, "{there:?}");
    assert_eq!(here.await.into_iter().collect::<BTreeSet<_>>(), there);
    let numbers = format!("SELECT x.number FROM xxljob_app x {of_tenant} ORDER BY x.number");
    let numbers = world.database.query(&numbers, |row| row.try_get_by_index::<i32>(0).map(i64::from)).await;
    assert_eq!(numbers, groups().iter().map(|group| group.id).collect::<Vec<_>>());
}

/// The second import changes nothing: not even the audit has an entry of it.
async fn again_without_change(world: &World, source: &XxlJob, args: &[&str]) {
    let api = world.api();
    let last = all(&api, "/audit").await[0]["id"].clone();
    let report = imported(world, &source.database, "xxl-job", args).await;
    assert_eq!((count(&report, "created"), count(&report, "changed")), (0, 0), "{report}");
    assert_eq!(
        (&report["tasks"]["unchanged"], &report["apps"], &report["users"]),
        (&json!(100), &json!([]), &json!([]))
    );
    assert_eq!(all(&api, "/audit").await[0]["id"], last);
}

async fn what_changes_there_comes_over(world: &World, source: &XxlJob, args: &[&str], jobs: &[ForeignJob]) {
    let (api, tenant, job) = (world.api(), args[1], jobs[0].id);
    let task = tasks_by_job(&api, tenant).await[&job].clone();
    let id: i64 = task["id"].as_str().unwrap().parse().unwrap();
    api.edit(id, json!({ "name": "another name" })).await;
    source.database.execute(&format!("UPDATE xxl_job_info SET executor_param = 'x=2' WHERE id = {job}")).await;
    let report = imported(world, &source.database, "xxl-job", args).await;
    assert_eq!(
        (count(&report, "created"), count(&report, "changed"), &report["tasks"]["unchanged"]),
        (0, 1, &json!(99))
    );
    let task = &tasks_by_job(&api, tenant).await[&job];
    assert_eq!((&task["name"], &task["params"]), (&json!("another name"), &json!("x=2")));
    // Once it is started here, it is ours.
    api.start(id).await;
    source.database.execute(&format!("UPDATE xxl_job_info SET executor_param = 'x=3' WHERE id = {job}")).await;
    let report = imported(world, &source.database, "xxl-job", args).await;
    assert_eq!((count(&report, "in_use"), count(&report, "changed")), (1, 0), "{report}");
    assert_eq!(tasks_by_job(&api, tenant).await[&job]["params"], "x=2");
}

/// An import that ends between the tasks and their origins: the next one takes them for what they are.
async fn an_import_that_broke_off_goes_on(kind: Kind) {
    let world = World::new(kind).await;
    world.nodes(&[]).await;
    let (source, _) = a_hundred(Release::V2_5_0).await;
    let args = ["--tenant", "shop"];
    imported(&world, &source.database, "xxl-job", &args).await;
    world.database.execute("DELETE FROM task_origin").await;
    let report = imported(&world, &source.database, "xxl-job", &args).await;
    assert_eq!((count(&report, "created"), &report["tasks"]["unchanged"]), (0, &json!(100)), "{report}");
    assert_eq!(tasks_by_job(&world.api(), "shop").await.len(), 100);
    // A task that only has the name is none of them.
    world.database.execute("DELETE FROM task_origin").await;
    let mine = world.database.execute("UPDATE task SET handler = 'mine' WHERE name = 'close'").await;
    let report = imported(&world, &source.database, "xxl-job", &args).await;
    assert!(mine > 0 && count(&report, "created") as u64 == mine, "{report}");
    let kept = "SELECT COUNT(*) FROM task WHERE name = 'close' AND handler = 'mine'";
    assert_eq!(world.database.number(kept).await as u64, mine);
}

/// Runs of the last days, how they ended, and nothing of them runs or is counted twice.
async fn old_runs_come_over_once(kind: Kind) {
    let world = World::new(kind).await;
    world.nodes(&[]).await;
    let api = world.api();
    let (source, _) = daily(&[(1, 1, ""), (2, 1, "")]).await;
    let second = now_ms() / 1_000 * 1_000;
    let log = |id: i64, job_id, ago_ms: i64, codes: (i64, i64)| ForeignLog {
        id,
        job_group: 1,
        job_id,
        trigger_time: Some(second - ago_ms),
        trigger_code: codes.0,
        trigger_msg: "not sent".to_owned(),
        handle_time: (codes.1 > 0).then_some(second - ago_ms + 5_000),
        handle_code: codes.1,
        handle_msg: format!("run {id}<br>&"),
        ..ForeignLog::default()
    };
    let day = 86_400_000;
    source
        .insert_logs(&[
            log(1, 1, 40 * day, (200, 200)),
            log(2, 1, 3 * day, (200, 200)),
            log(3, 1, 2 * day, (200, 500)),
            log(4, 2, 2 * day, (200, 502)),
            log(5, 1, 2 * day, (500, 0)),
            log(6, 1, day / 2, (200, 0)),
            log(7, 99, day, (200, 200)),
        ])
        .await;
    let args = ["--tenant", "shop", "--runs", "30"];
    let report = imported(&world, &source.database, "xxl-job", &args).await;
    let runs = |written: u64, already: u64| json!({ "written": written, "already_there": already, "not_ended": 1, "without_task": 1 });
    assert_eq!(report["runs"], runs(4, 0), "{report}");
    let tasks = tasks_by_job(&api, "shop").await;
    let of = async |job: i64| {
        let logs = all(&api, &format!("/task-logs?task={}", tasks[&job]["id"].as_str().unwrap())).await;
        let shown = logs.iter().map(|log| {
            let text = |field: &str| log[field].as_str().unwrap_or_default().to_owned();
            (log["fire_time"].as_i64().unwrap() - second, text("status"), text("reason"), text("message"))
        });
        shown.collect::<BTreeSet<_>>()
    };
    let row = |ms: i64, status: &str, reason: &str, message: &str| {
        (ms, status.to_owned(), reason.to_owned(), message.to_owned())
    };
    let first = BTreeSet::from([
        row(-3 * day, "succeeded", "", "run 2\n&"),
        row(-2 * day, "failed", "handler_failed", "run 3\n&"),
        row(1 - 2 * day, "failed", "undelivered", "not sent"),
    ]);
    assert_eq!(of(1).await, first);
    assert_eq!(of(2).await, BTreeSet::from([row(-2 * day, "failed", "timed_out", "run 4\n&")]));
    let again = imported(&world, &source.database, "xxl-job", &args).await;
    assert_eq!(again["runs"], runs(0, 4), "{again}");
    assert_eq!(of(1).await, first);
    // More than a node takes at once.
    let wordy = |id: i64| ForeignLog { handle_msg: "行".repeat(3_000), ..log(id, 2, day + id * 1_000, (200, 500)) };
    source.insert_logs(&(100..200).map(wordy).collect::<Vec<_>>()).await;
    let more = imported(&world, &source.database, "xxl-job", &args).await;
    assert_eq!(more["runs"], runs(100, 4), "{more}");
    let wrong = import(&world, &source.database, "xxl-job", &["--tenant", "shop", "--runs", "0"]).await;
    assert_eq!(wrong.status.code(), Some(2));
}

async fn a_dry_run_changes_nothing(kind: Kind) {
    let world = World::new(kind).await;
    world.nodes(&[]).await;
    let api = world.api();
    let (source, _) = a_hundred(Release::V2_5_0).await;
    let report = imported(&world, &source.database, "xxl-job", &["--tenant", "shop", "--dry-run"]).await;
    assert_eq!((count(&report, "created"), &report["tenants"]), (100, &json!(["shop"])), "{report}");
    assert_eq!(report["document"]["tasks"].as_array().unwrap().len(), 100);
    assert!(!report.to_string().contains("the hash of a password"));
    assert!(
        all(&api, "/tasks").await.is_empty() && all(&api, "/tenants").await.iter().all(|one| one["name"] != "shop")
    );
    let ran = import(&world, &source.database, "xxl-job", &["--tenant", "shop", "--group", "nothing"]).await;
    assert_eq!(ran.status.code(), Some(1));
    let told = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert!(told.contains("there is no group `nothing`"), "{told}");
}

async fn a_horace_comes_over_once(kind: Kind) {
    let world = World::new(kind).await;
    world.nodes(&[]).await;
    let api = world.api();
    let (source, rows) = (Database::empty(Kind::MariaDb).await, horace_rows());
    insert_horace(&source, &rows, ZONE).await;
    let report = imported(&world, &source, "horace", &[]).await;
    let lengths = ["tenants", "apps", "users"].map(|kind| report[kind].as_array().unwrap().len());
    assert_eq!((count(&report, "created"), lengths), (100, [3, 6, 1]), "there is an admin: {report}");
    let mut found = 0;
    for there in &rows.tenants {
        let tenants = all(&api, "/tenants").await;
        let is_it = |one: &&Value| one["description"].as_str().unwrap().starts_with(&there.name);
        let tenant = tenants.iter().find(is_it).unwrap_or_else(|| panic!("{}: {tenants:?}", there.name));
        let mut tasks = all(&api, &format!("/tasks?tenant={}", tenant["name"].as_str().unwrap())).await;
        tasks.sort_by_key(|task| task["handler"].as_str().unwrap().to_owned());
        let of_tenant = rows.tasks.iter().filter(|task| task.tenant_id == there.id);
        let mut methods: Vec<_> = of_tenant.map(|task| (task.method.clone(), task.task_params.clone())).collect();
        methods.sort_unstable();
        let here = tasks.iter().map(|task| [&task["handler"], &task["params"]].map(|text| text.as_str().unwrap()));
        assert!(here.eq(methods.iter().map(|(method, params)| [method.as_str(), params.as_str()])), "{tasks:?}");
        assert!(tasks.iter().all(|task| task["state"] == "stopped" && task["time_zone"] == ZONE.name()));
        found += tasks.len();
    }
    assert_eq!(found, 100);
    let again = imported(&world, &source, "horace", &[]).await;
    assert_eq!((count(&again, "created"), count(&again, "changed"), &again["users"]), (0, 0, &json!([])), "{again}");
    assert_eq!(again["tasks"]["unchanged"], 100, "{again}");
}

/// Of each user the manager's tenant and the grants: role, and the names of apps.
async fn people(api: &Api) -> BTreeMap<String, Vec<(String, Vec<String>)>> {
    let apps = all(api, "/apps").await;
    let name = |id: &Value| apps.iter().find(|app| app["id"] == *id).unwrap()["name"].as_str().unwrap().to_owned();
    let roles = all(api, "/roles").await;
    let role = |grant: &Value| roles.iter().find(|role| role["id"] == grant["role_id"]).unwrap()["name"].clone();
    let grants = |user: &Value| {
        let grants = user["grants"].as_array().unwrap().iter().map(|grant| {
            let mut apps: Vec<String> = grant["apps"].as_array().unwrap().iter().map(name).collect();
            apps.sort_unstable();
            (role(grant).as_str().unwrap().to_owned(), apps)
        });
        (user["name"].as_str().unwrap().to_owned(), grants.collect())
    };
    all(api, "/users").await.iter().map(grants).collect()
}

async fn users_come_over_with_what_they_could_do(kind: Kind) {
    let world = World::new(kind).await;
    world.nodes(&[]).await;
    let api = world.api();
    let before = people(&api).await;
    assert!(before.contains_key("admin"), "{before:?}");
    let (source, _) = a_hundred(Release::V2_5_0).await;
    let report = imported(&world, &source.database, "xxl-job", &["--tenant", "shop"]).await;
    let after = people(&api).await;
    let apps = |ids: &[i64]| -> Vec<String> {
        let mut names: Vec<_> =
            groups().iter().filter(|group| ids.contains(&group.id)).map(|group| group.app_name.clone()).collect();
        names.sort_unstable();
        names
    };
    let editor = |ids: &[i64]| vec![("job editor".to_owned(), apps(ids))];
    assert_eq!(after["ann"], editor(&[1, 2]));
    assert_eq!(after["bob"], editor(&[9]));
    assert_eq!(after["admin"], before["admin"], "an account that the tenant does not manage is left alone");
    let told = report.to_string();
    for (name, why) in [("idle", "may do nothing"), ("王", "names to sign in with")] {
        assert!(!after.contains_key(name) && told.contains(name) && told.contains(why), "{name}: {told}");
    }
    // Whoever has lost a grant here gets it again, and nothing else changes.
    world.database.execute("DELETE FROM role_grant WHERE tenant_id > 0").await;
    imported(&world, &source.database, "xxl-job", &["--tenant", "shop"]).await;
    assert_eq!(people(&api).await, after);
    imported(&world, &source.database, "xxl-job", &["--tenant", "shop", "--without-users"]).await;
    assert_eq!(people(&api).await, after);
}

/// The other scheduler's scanner, as its statements show it: once a second it takes what is due within five seconds.
struct Scanner {
    stops: Arc<AtomicBool>,
    /// Job and instant of each fire that it took.
    taken: Arc<Mutex<Vec<(i64, i64)>>>,
    work: tokio::task::JoinHandle<()>,
}

impl Scanner {
    fn start(source: &XxlJob) -> Self {
        let (stops, taken) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(Vec::new())));
        let (source, is_over, fires) = (source.clone(), stops.clone(), taken.clone());
        let work = tokio::spawn(async move {
            let connection = source.database.connect().await;
            connection.execute_unprepared("SET autocommit = 0").await.unwrap();
            while !is_over.load(Ordering::Relaxed) {
                let lock = "SELECT * FROM xxl_job_lock WHERE lock_name = 'schedule_lock' FOR UPDATE";
                connection.execute_unprepared(lock).await.unwrap();
                let now = now_ms();
                let due = format!(
                    "SELECT id, trigger_next_time, schedule_conf FROM xxl_job_info WHERE trigger_status = 1 \
                     AND trigger_next_time <= {} ORDER BY id",
                    now + 5_000
                );
                let due = sea_orm::Statement::from_string(connection.get_database_backend(), due);
                for row in connection.query_all_raw(due).await.unwrap() {
                    let id: i32 = row.try_get_by_index(0).unwrap();
                    let mut next: i64 = row.try_get_by_index(1).unwrap();
                    let conf: String = row.try_get_by_index(2).unwrap();
                    assert!(now - next < 5_000, "job {id} is missed there");
                    let step = conf.parse::<i64>().unwrap_or(1) * 1_000;
                    while next <= now + 5_000 {
                        fires.lock().unwrap().push((i64::from(id), next));
                        next += step;
                    }
                    let update = format!(
                        "UPDATE xxl_job_info SET trigger_last_time = {now}, trigger_next_time = {next} WHERE id = {id} \
                         AND trigger_status = 1"
                    );
                    connection.execute_unprepared(&update).await.unwrap();
                }
                connection.execute_unprepared("COMMIT").await.unwrap();
                pass(1.0 - (now_ms() % 1_000) as f64 / 1_000.0).await;
            }
        });
        Self { stops, taken, work }
    }

    async fn stop(self) -> Vec<(i64, i64)> {
        self.stops.store(true, Ordering::Relaxed);
        self.work.await.unwrap();
        self.taken.lock().unwrap().clone()
    }
}

/// A job for each second, one for every third, and one that is stopped.
async fn ticking() -> XxlJob {
    let source = XxlJob::new(Release::V2_5_0, ZONE).await;
    let group = ForeignGroup { id: 1, app_name: "orders".to_owned(), ..ForeignGroup::default() };
    source.insert_groups(&[group]).await;
    let begin = (now_ms() / 1_000 + 6) * 1_000;
    let job = |id: i64, kind: &str, conf: &str, status| ForeignJob {
        id,
        job_group: 1,
        job_desc: format!("job {id}"),
        schedule_type: Some(kind.to_owned()),
        schedule_conf: Some(conf.to_owned()),
        misfire_strategy: Some("DO_NOTHING".to_owned()),
        executor_route_strategy: "FIRST".to_owned(),
        executor_block_strategy: "SERIAL_EXECUTION".to_owned(),
        executor_handler: "demo".to_owned(),
        glue_type: "BEAN".to_owned(),
        trigger_status: status,
        trigger_next_time: if status == 1 { begin } else { 0 },
        ..ForeignJob::default()
    };
    source
        .insert_jobs(&[job(1, "CRON", "* * * * * ?", 1), job(2, "FIX_RATE", "3", 1), job(3, "CRON", "* * * * * ?", 0)])
        .await;
    source
}

async fn groups_are_switched_and_given_back_without_a_gap(kind: Kind) {
    let world = World::new(kind).await;
    world.node("a", &[]).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    open_door(&api, &app, "a-token-that-nobody-guesses").await;
    let executor = PlainExecutor::start("orders", "a-token-that-nobody-guesses", &world.node_urls()).await;
    executor.script(|script| script.calls_back = Some((200, String::new())));
    assert_eq!(executor.register().await["code"], 200);
    let source = ticking().await;
    let scanner = Scanner::start(&source);
    let args = ["--tenant", "retail"];
    imported(&world, &source.database, "xxl-job", &args).await;
    for _ in 0..3 {
        pass(2.3).await;
        let moved = imported(&world, &source.database, "switch", &args).await;
        assert_eq!(moved["tasks"].as_object().unwrap().len(), 2, "{moved}");
        let again = imported(&world, &source.database, "switch", &args).await;
        assert_eq!(again["tasks"], json!({}), "{again}");
        pass(9.1).await;
        assert_eq!(executor.register().await["code"], 200);
        let back = imported(&world, &source.database, "undo", &args).await;
        assert_eq!(back["tasks"].as_object().unwrap().len(), 2, "{back}");
    }
    pass(8.0).await;
    let there = scanner.stop().await;
    let tasks = tasks_by_job(&api, "retail").await;
    for (job, step) in [(1, 1_000), (2, 3_000)] {
        let id = tasks[&job]["id"].as_str().unwrap();
        let here = format!("SELECT fire_time FROM task_log WHERE task_id = {id} AND status <> 14");
        let here = world.database.query(&here, |row| row.try_get_by_index::<i64>(0)).await;
        assert!(here.len() >= 3, "once each time at least: {here:?}");
        let mut fires: Vec<i64> = there.iter().filter(|(of, _)| *of == job).map(|(_, at)| *at).chain(here).collect();
        fires.sort_unstable();
        let wrong: Vec<_> = fires.windows(2).filter(|pair| pair[1] - pair[0] != step).collect();
        assert!(wrong.is_empty(), "job {job}: {wrong:?}");
    }
    assert_eq!(api.get(&format!("/tasks/{}", tasks[&3]["id"].as_str().unwrap())).await["state"], "stopped");
}

/// Status and next time of a job there.
async fn there(source: &XxlJob, job: i64) -> (i64, i64) {
    let sql = format!("SELECT CAST(trigger_status AS SIGNED), trigger_next_time FROM xxl_job_info WHERE id = {job}");
    source.database.query(&sql, |row| Ok((row.try_get_by_index(0)?, row.try_get_by_index(1)?))).await[0]
}

/// Jobs that fire once a day; the first fire that was not taken is that of the day after tomorrow.
async fn daily(jobs: &[(i64, i64, &str)]) -> (XxlJob, i64) {
    let source = XxlJob::new(Release::V3_4_2, ZONE).await;
    let group = |id| ForeignGroup { id, app_name: format!("app-{id}"), ..ForeignGroup::default() };
    source.insert_groups(&[group(1), group(2)]).await;
    let day = 86_400_000;
    // Midnight in Shanghai.
    let next = (now_ms() / day + 2) * day - 8 * 3_600_000;
    let job = |(id, job_group, children): &(i64, i64, &str)| ForeignJob {
        id: *id,
        job_group: *job_group,
        job_desc: format!("job {id}"),
        child_jobid: (*children).to_owned(),
        schedule_type: Some("CRON".to_owned()),
        schedule_conf: Some("0 0 0 * * ?".to_owned()),
        misfire_strategy: Some("DO_NOTHING".to_owned()),
        executor_handler: "demo".to_owned(),
        glue_type: "BEAN".to_owned(),
        trigger_status: 1,
        trigger_next_time: next,
        ..ForeignJob::default()
    };
    source.insert_jobs(&jobs.iter().map(job).collect::<Vec<_>>()).await;
    (source, next)
}

async fn a_switch_that_broke_off_goes_on(kind: Kind) {
    let world = World::new(kind).await;
    world.nodes(&[]).await;
    let api = world.api();
    let (source, next) = daily(&[(1, 1, ""), (2, 1, "")]).await;
    let args = ["--tenant", "shop"];
    let unknown = import(&world, &source.database, "switch", &args).await;
    assert_eq!(unknown.status.code(), Some(1), "nothing is imported yet");
    imported(&world, &source.database, "xxl-job", &args).await;
    let state = async |job: i64| {
        let task = tasks_by_job(&api, "shop").await[&job].clone();
        (task["state"].as_str().unwrap().to_owned(), task["next_fire_at"].as_i64())
    };
    // It broke off when the jobs were stopped there, and before the tasks were started here.
    let id: i64 = tasks_by_job(&api, "shop").await[&1]["id"].as_str().unwrap().parse().unwrap();
    api.edit(id, json!({ "valid_from": next })).await;
    source.database.execute("UPDATE xxl_job_info SET trigger_status = 0 WHERE id = 1").await;
    let moved = imported(&world, &source.database, "switch", &args).await;
    assert_eq!(moved["tasks"], json!({ "shop/app-1/job 1": next, "shop/app-1/job 2": next }), "{moved}");
    assert_eq!((there(&source, 1).await, there(&source, 2).await), ((0, next), (0, next)));
    assert_eq!((state(1).await, state(2).await), (("started".into(), Some(next)), ("started".into(), Some(next))));
    // A job that a person has stopped there has no next time, and is none of them.
    api.stop(id).await;
    source.database.execute("UPDATE xxl_job_info SET trigger_next_time = 0 WHERE id = 1").await;
    assert_eq!(imported(&world, &source.database, "switch", &args).await["tasks"], json!({}));
    // An undo broke off when the task was stopped here, and before its job was given back.
    let id: i64 = tasks_by_job(&api, "shop").await[&2]["id"].as_str().unwrap().parse().unwrap();
    api.stop(id).await;
    let back = imported(&world, &source.database, "undo", &args).await;
    assert_eq!(back["tasks"], json!({ "shop/app-1/job 2": next }), "{back}");
    assert_eq!((there(&source, 1).await, there(&source, 2).await), ((0, 0), (1, next)));
    assert_eq!(state(2).await.0, "stopped");
}

async fn what_belongs_together_is_switched_together(kind: Kind) {
    let world = World::new(kind).await;
    world.nodes(&[]).await;
    let (source, next) = daily(&[(1, 1, "2"), (2, 2, ""), (3, 2, "")]).await;
    source.database.execute("UPDATE xxl_job_info SET trigger_status = 0, trigger_next_time = 0 WHERE id = 2").await;
    source.database.execute("UPDATE xxl_job_info SET glue_type = 'GLUE_SHELL' WHERE id = 3").await;
    let args = ["--tenant", "shop"];
    imported(&world, &source.database, "xxl-job", &args).await;
    let split = import(&world, &source.database, "switch", &["--tenant", "shop", "--group", "app-1"]).await;
    let told = String::from_utf8_lossy(&split.stderr).into_owned();
    assert!(split.status.code() == Some(1) && told.contains("app-2 and app-1"), "{told}");
    assert_eq!(there(&source, 1).await, (1, next));
    let moved = imported(&world, &source.database, "switch", &args).await;
    assert_eq!(moved["tasks"], json!({ "shop/app-1/job 1": next, "shop/app-2/job 2": 0 }), "{moved}");
    // A script goes on there.
    assert_eq!(there(&source, 3).await, (1, next));
    assert!(moved["told"][0].as_str().unwrap().contains("job 3"), "{moved}");
    let follower = &tasks_by_job(&world.api(), "shop").await[&2];
    assert_eq!((&follower["state"], &follower["next_fire_at"]), (&json!("started"), &Value::Null));
}

async fn scripts_come_along_where_that_is_asked_for(kind: Kind) {
    let world = World::new(kind).await;
    world.nodes(&[]).await;
    let api = world.api();
    let (source, next) = daily(&[(1, 1, ""), (2, 1, ""), (3, 2, "")]).await;
    let version = |id: i64, text: &str, at: i64| ForeignGlue {
        id,
        job_id: 1,
        glue_type: "GLUE_SHELL".to_owned(),
        glue_source: text.to_owned(),
        glue_remark: format!("remark {id}"),
        add_time: Some(at),
    };
    source.insert_glue(&[version(1, "echo 1", 1_700_000_000_000), version(2, "echo 2", 1_700_000_100_000)]).await;
    let script =
        "UPDATE xxl_job_info SET glue_type = 'GLUE_SHELL', glue_source = 'echo 2', executor_handler = '' WHERE id = 1";
    source.database.execute(script).await;
    let args = ["--tenant", "shop"];
    imported(&world, &source.database, "xxl-job", &args).await;
    let task = async || tasks_by_job(&api, "shop").await[&1].clone();
    assert_eq!(task().await["script"], 0, "only where that is asked for");
    let with = ["--tenant", "shop", "--with-scripts"];
    // Nobody could run it.
    let report = imported(&world, &source.database, "xxl-job", &with).await;
    assert_eq!((&report["scripts"], &task().await["script"]), (&json!([]), &json!(0)), "{report}");
    let of_script = |report: &Value| {
        let left = report["uncarried"].as_array().unwrap().clone();
        left.into_iter().filter(|one| one["field"] == "glue_type").collect::<Vec<_>>()
    };
    assert!(of_script(&report)[0]["why"].as_str().unwrap().contains("has no token"), "{report}");
    let apps = all(&api, "/apps?tenant=shop").await;
    let app = |name: &str| apps.iter().find(|app| app["name"] == name).unwrap().clone();
    assert_eq!((&app("app-1")["scripts"], &app("app-2")["scripts"]), (&json!(true), &json!(false)));
    let path = format!("/apps/{}/keys", app("app-1")["id"].as_str().unwrap());
    api.expect(201, reqwest::Method::POST, &path, Some(&json!({ "kind": "token" }))).await;
    let dry = imported(&world, &source.database, "xxl-job", &[&with[..], &["--dry-run"]].concat()).await;
    assert_eq!((&dry["scripts"], &task().await["script"]), (&json!(["shop/app-1/job 1"]), &json!(0)));
    let report = imported(&world, &source.database, "xxl-job", &with).await;
    assert_eq!((&report["scripts"], of_script(&report).len()), (&json!(["shop/app-1/job 1"]), 0), "{report}");
    let id = task().await["id"].as_str().unwrap().to_owned();
    let versions = api.get(&format!("/tasks/{id}/script/versions")).await;
    let told: Vec<_> =
        versions["items"].as_array().unwrap().iter().map(|one| (&one["remark"], &one["updated_at"])).collect();
    let expected =
        [(json!("remark 2"), json!(1_700_000_100_000_i64)), (json!("remark 1"), json!(1_700_000_000_000_i64))];
    assert_eq!(told, expected.iter().map(|(remark, at)| (remark, at)).collect::<Vec<_>>());
    assert_eq!(api.get(&format!("/tasks/{id}/script")).await["source"], "echo 2");
    // Again: nothing. Changed there: one version more.
    let report = imported(&world, &source.database, "xxl-job", &with).await;
    assert_eq!((&report["scripts"], &task().await["script"]), (&json!([]), &json!(2)));
    source.database.execute("UPDATE xxl_job_info SET glue_source = 'echo 3' WHERE id = 1").await;
    let report = imported(&world, &source.database, "xxl-job", &with).await;
    assert_eq!((&report["scripts"], &task().await["script"]), (&json!(["shop/app-1/job 1"]), &json!(3)));
    // What came along is switched over with the others.
    let moved = imported(&world, &source.database, "switch", &["--tenant", "shop", "--group", "app-1"]).await;
    assert_eq!(moved["tasks"], json!({ "shop/app-1/job 1": next, "shop/app-1/job 2": next }), "{moved}");
}
