//! Tasks that are scripts.

use super::{NEVER, Stand, TOKEN, by_hand, registered, stand};
use carillon_tests::job_admin::{EVERYTHING, JobAdmin, token_of};
use carillon_tests::plain_executor::{PlainExecutor, open_door};
use carillon_tests::wait::{await_until, when};
use carillon_tests::{Api, Kind};
use reqwest::Method;
use serde_json::{Value, json};

scenario!(a_script_is_sent_with_its_version: sqlite mariadb postgres);
scenario!(the_thirty_first_version_takes_the_place_of_the_first: sqlite mariadb postgres);
scenario!(scripts_are_off_until_an_app_allows_them: sqlite mariadb);
scenario!(a_script_needs_a_permission_of_its_own: sqlite postgres);
scenario!(scripts_of_others_are_not_there: sqlite mariadb);
scenario!(a_portal_writes_scripts: sqlite mariadb postgres);
scenario!(executors_with_the_sdk_get_no_script: sqlite postgres);

async fn allow(stand: &Stand, allowed: bool) {
    let apps = stand.api.get("/apps?tenant=retail&name=orders").await;
    let path = format!("/apps/{}/scripts", apps["items"][0]["id"].as_str().unwrap());
    let app = stand.api.put(&path, json!({ "allowed": allowed })).await;
    assert_eq!(app["scripts"], json!(allowed));
}

fn path(task: i64) -> String {
    format!("/tasks/{task}/script")
}

async fn write(api: &Api, task: i64, glue_type: &str, source: &str) -> Value {
    api.put(&path(task), json!({ "glue_type": glue_type, "source": source, "remark": "by hand" })).await
}

/// Runs the task; the body of what came for it.
async fn sent(stand: &Stand, executor: &PlainExecutor, task: i64) -> Value {
    let before = executor.got("/run").len();
    let log = stand.api.run(task, None).await;
    await_until("it has ended", 60, || async { when(stand.api.log(log).await["status"] == "succeeded") }).await;
    let runs = executor.got("/run");
    assert_eq!(runs.len(), before + 1);
    runs[before].body.clone()
}

async fn a_script_is_sent_with_its_version(kind: Kind) {
    let stand = stand(kind).await;
    let executor = registered(&stand).await;
    executor.script(|script| script.calls_back = Some((200, String::new())));
    let task = by_hand(&stand, "report", json!({ "params": "a b" })).await;
    let bean = sent(&stand, &executor, task).await;
    assert_eq!(
        (&bean["glueType"], &bean["glueSource"], &bean["glueUpdatetime"]),
        (&json!("BEAN"), &json!(""), &json!(0))
    );
    assert_eq!(bean["executorHandler"], "report");
    allow(&stand, true).await;
    let source = "echo \"one\" \u{4e2d}\n# \\ \t'end'\n";
    let first = write(&stand.api, task, "GLUE_SHELL", source).await["script"].clone();
    assert_eq!(
        (&first["version"], &first["glue_type"], &first["remark"]),
        (&json!(1), &json!("GLUE_SHELL"), &json!("by hand"))
    );
    assert_eq!(stand.api.get(&path(task)).await, first);
    assert_eq!(stand.api.task(task).await["script"], 1);
    let run = sent(&stand, &executor, task).await;
    assert_eq!((&run["glueType"], &run["glueSource"]), (&json!("GLUE_SHELL"), &json!(source)));
    assert_eq!((&run["glueUpdatetime"], &run["executorHandler"]), (&first["updated_at"], &json!("")));
    assert_eq!(run["executorParams"], "a b");
    // The same text is the same version, whatever else is written.
    assert_eq!(write(&stand.api, task, "GLUE_SHELL", source).await["script"], first);
    stand.api.edit(task, json!({ "params": "c" })).await;
    let run = sent(&stand, &executor, task).await;
    assert_eq!((&run["glueUpdatetime"], &run["executorParams"]), (&first["updated_at"], &json!("c")));
    let second = write(&stand.api, task, "GLUE_PYTHON", "print(2)").await["script"].clone();
    assert!(second["updated_at"].as_i64() > first["updated_at"].as_i64());
    let run = sent(&stand, &executor, task).await;
    assert_eq!((&run["glueType"], &run["glueUpdatetime"]), (&json!("GLUE_PYTHON"), &second["updated_at"]));
    // And back.
    let none = stand.api.put(&path(task), json!({ "glue_type": "BEAN" })).await;
    assert_eq!((&none["script"]["version"], &none["script"]["source"]), (&json!(0), &json!("")));
    assert_eq!(sent(&stand, &executor, task).await["executorHandler"], "report");
    let versions = stand.api.get(&format!("{}/versions", path(task))).await;
    assert_eq!(versions["items"].as_array().unwrap().len(), 2, "they are kept");
    let old = stand.api.get(&format!("{}/versions/1", path(task))).await;
    assert_eq!(old["source"], source);
    let entries = stand.api.get("/audit?tenant=retail&action=put_script").await;
    let entries = entries["items"].as_array().unwrap();
    assert_eq!(entries.len(), 3);
    assert!(!serde_json::to_string(entries).unwrap().contains("print(2)"), "the text is not in the audit");
}

async fn the_thirty_first_version_takes_the_place_of_the_first(kind: Kind) {
    let stand = stand(kind).await;
    allow(&stand, true).await;
    let task = by_hand(&stand, "report", json!({})).await;
    let other = by_hand(&stand, "other", json!({})).await;
    write(&stand.api, other, "GLUE_SHELL", "echo other").await;
    for version in 1..=31 {
        write(&stand.api, task, "GLUE_SHELL", &format!("echo {version}")).await;
    }
    let versions = stand.api.get(&format!("{}/versions", path(task))).await;
    let numbers: Vec<i64> =
        versions["items"].as_array().unwrap().iter().map(|one| one["version"].as_i64().unwrap()).collect();
    assert_eq!(numbers, (2..=31).rev().collect::<Vec<_>>());
    stand.api.expect(404, Method::GET, &format!("{}/versions/1", path(task)), None).await;
    // An old one is written again.
    let old = stand.api.get(&format!("{}/versions/2", path(task))).await;
    let restored = write(&stand.api, task, "GLUE_SHELL", old["source"].as_str().unwrap()).await;
    assert_eq!((&restored["script"]["version"], &restored["script"]["source"]), (&json!(32), &json!("echo 2")));
    assert_eq!(stand.api.get(&path(other)).await["source"], "echo other");
    // Who has not seen it does not overwrite it.
    let stale = json!({ "glue_type": "GLUE_SHELL", "source": "echo x" });
    let request = reqwest::Client::new().put(stand.api.address(&path(task))).bearer_auth(stand.api.token());
    let answer = request.header("If-Match", "\"1\"").json(&stale).send().await.unwrap();
    assert_eq!(answer.status().as_u16(), 409);
    assert_eq!(stand.api.get(&path(task)).await["source"], "echo 2");
    stand.api.delete(task).await;
    let left = stand.world.database.number("SELECT COUNT(*) FROM task_script").await;
    assert_eq!(left, 1, "a deleted task leaves no script");
}

async fn scripts_are_off_until_an_app_allows_them(kind: Kind) {
    let stand = stand(kind).await;
    let executor = registered(&stand).await;
    executor.script(|script| script.calls_back = Some((200, String::new())));
    let task = by_hand(&stand, "report", json!({ "max_retries": 3 })).await;
    let script = json!({ "glue_type": "GLUE_SHELL", "source": "echo" });
    let refused = stand.api.expect(409, Method::PUT, &path(task), Some(&script)).await;
    assert_eq!(refused["code"], "scripts_not_allowed");
    assert_eq!(stand.api.task(task).await["script"], 0);
    allow(&stand, true).await;
    write(&stand.api, task, "GLUE_SHELL", "echo").await;
    sent(&stand, &executor, task).await;
    allow(&stand, false).await;
    let before = executor.got("/run").len();
    // A node that has not heard of it may still send one.
    let ended = await_until("its runs fail", 60, || async {
        let log = stand.api.run(task, None).await;
        let ended = await_until("it has ended", 60, || async {
            Some(stand.api.log(log).await).filter(|log| log["finished_at"].is_i64())
        })
        .await;
        Some(ended).filter(|log| log["status"] == "failed")
    })
    .await;
    assert_eq!((&ended["reason"], &ended["attempt"]), (&json!("scripts_not_allowed"), &json!(0)));
    let sent_since = executor.got("/run").len() - before;
    let log = stand.api.run(task, None).await;
    await_until("it has failed", 60, || async { when(stand.api.log(log).await["status"] == "failed") }).await;
    assert_eq!(executor.got("/run").len() - before, sent_since, "nothing is sent any more");
    // What an app does not allow can still be taken away.
    stand.api.put(&path(task), json!({ "glue_type": "BEAN" })).await;
    sent(&stand, &executor, task).await;
    let entries = stand.api.get("/audit?tenant=retail&action=allow_scripts").await;
    assert_eq!(entries["items"].as_array().unwrap().len(), 2);
}

async fn a_script_needs_a_permission_of_its_own(kind: Kind) {
    let stand = stand(kind).await;
    let ann = stand.api.make_person("ann", Some("retail")).await;
    stand.api.grant(&ann, "tenant admin", Some("retail")).await;
    let with = async |permissions: &[&str]| {
        let token = token_of(&ann, permissions, Some("retail")).await;
        stand.api.carrying(&token)
    };
    let task = by_hand(&stand, "report", json!({})).await;
    let clerk = with(&EVERYTHING).await;
    let apps = stand.api.get("/apps?tenant=retail&name=orders").await;
    let switch = format!("/apps/{}/scripts", apps["items"][0]["id"].as_str().unwrap());
    let allowed = json!({ "allowed": true });
    clerk.expect(403, Method::PUT, &switch, Some(&allowed)).await;
    let author = with(&["tasks.read", "scripts.read", "scripts.edit"]).await;
    author.expect(403, Method::PUT, &switch, Some(&allowed)).await;
    with(&["scripts.allow"]).await.expect(200, Method::PUT, &switch, Some(&allowed)).await;
    let script = json!({ "glue_type": "GLUE_SHELL", "source": "echo" });
    for (method, path) in
        [(Method::PUT, path(task)), (Method::GET, path(task)), (Method::GET, format!("{}/versions", path(task)))]
    {
        let body = (method == Method::PUT).then_some(&script);
        let refused = clerk.expect(403, method, &path, body).await;
        assert_eq!(refused["code"], "permission_missing", "{path}");
    }
    // No other way leads to one.
    for fields in [json!({ "script": 1 }), json!({ "glue_type": "GLUE_SHELL" }), json!({ "source": "echo" })] {
        clerk.expect(400, Method::PATCH, &format!("/tasks/{task}"), Some(&fields)).await;
    }
    assert_eq!(stand.api.task(task).await["script"], 0);
    author.expect(200, Method::PUT, &path(task), Some(&script)).await;
    assert_eq!(author.get(&path(task)).await["author"], stand.api.get(&path(task)).await["author"]);
    // Who may not write scripts does not turn one into a call either.
    clerk.expect(403, Method::PUT, &path(task), Some(&json!({ "glue_type": "BEAN" }))).await;
    for (wrong, field, code) in [
        (json!({ "glue_type": "GLUE_SHELL", "source": " " }), "source", "required_for"),
        (json!({ "glue_type": "GLUE_SHELL", "source": "x".repeat(60_001) }), "source", "too_many_bytes"),
        (json!({ "glue_type": "GLUE_SHELL", "source": "x", "remark": "x".repeat(129) }), "remark", "too_long"),
        (json!({ "glue_type": "BEAN", "source": "x" }), "source", "not_with"),
    ] {
        let refused = author.expect(400, Method::PUT, &path(task), Some(&wrong)).await;
        let error = &refused["errors"][0];
        assert_eq!((&error["field"], &error["code"]), (&json!(field), &json!(code)), "{refused}");
    }
    author.expect(400, Method::PUT, &path(task), Some(&json!({ "glue_type": "GLUE_RUBY", "source": "x" }))).await;
    assert_eq!(stand.api.task(task).await["script"], 1);
}

async fn scripts_of_others_are_not_there(kind: Kind) {
    let stand = stand(kind).await;
    allow(&stand, true).await;
    let task = by_hand(&stand, "report", json!({})).await;
    write(&stand.api, task, "GLUE_SHELL", "echo mine").await;
    stand.api.make_app("far", "stock").await;
    let bob = stand.api.make_person("bob", Some("far")).await;
    stand.api.grant(&bob, "tenant admin", Some("far")).await;
    let apps = stand.api.get("/apps?tenant=retail&name=orders").await;
    let switch = format!("/apps/{}/scripts", apps["items"][0]["id"].as_str().unwrap());
    let script = json!({ "glue_type": "GLUE_SHELL", "source": "echo his" });
    for (method, path, body) in [
        (Method::GET, path(task), None),
        (Method::GET, format!("{}/versions", path(task)), None),
        (Method::GET, format!("{}/versions/1", path(task)), None),
        (Method::PUT, path(task), Some(script)),
        (Method::PUT, switch, Some(json!({ "allowed": false }))),
    ] {
        bob.api.expect(404, method, &path, body.as_ref()).await;
    }
    assert_eq!(stand.api.get(&path(task)).await["source"], "echo mine");
}

async fn a_portal_writes_scripts(kind: Kind) {
    let stand = stand(kind).await;
    let executor = registered(&stand).await;
    executor.script(|script| script.calls_back = Some((200, String::new())));
    let ann = stand.api.make_person("ann", Some("retail")).await;
    stand.api.grant(&ann, "tenant admin", Some("retail")).await;
    let portal = async |more: &[&str]| {
        let permissions: Vec<&str> = EVERYTHING.iter().chain(more).copied().collect();
        JobAdmin::new(&stand.world.node_urls()[0], &token_of(&ann, &permissions, Some("retail")).await)
    };
    let (clerk, author) = (portal(&[]).await, portal(&["scripts.edit"]).await);
    let job = |fields: Value| {
        let mut job = json!({
            "jobGroup": 1, "jobDesc": "nightly", "executorRouteStrategy": "FIRST", "jobCron": NEVER, "glueType": "GLUE_SHELL",
            "glueSource": "echo 1\r\necho 2\r\n", "glueRemark": "first", "executorHandler": "",
            "executorBlockStrategy": "SERIAL_EXECUTION", "author": "ann", "executorParam": "",
        });
        job.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        job
    };
    let says = |answer: &Value| {
        assert_eq!(answer["code"], 500, "{answer}");
        answer["msg"].as_str().unwrap().to_owned()
    };
    let off = says(&author.post_json("/jobinfo/add", &job(json!({}))).await);
    assert!(off.contains("does not allow scripts"), "{off}");
    allow(&stand, true).await;
    let refused = says(&clerk.post_json("/jobinfo/add", &job(json!({}))).await);
    assert!(refused.contains("scripts.edit"), "{refused}");
    assert_eq!(
        says(&author.post_json("/jobinfo/add", &job(json!({ "glueSource": "" }))).await).split(':').next(),
        Some("glueSource")
    );
    assert!(stand.api.tasks().await.is_empty(), "all or nothing");
    assert_eq!(author.post_json("/jobinfo/add", &job(json!({}))).await["content"], "1");
    let task = carillon_tests::api::id_of(&stand.api.tasks().await[0]["id"]).unwrap();
    let run = sent(&stand, &executor, task).await;
    assert_eq!((&run["glueType"], &run["glueSource"]), (&json!("GLUE_SHELL"), &json!("echo 1\necho 2\n")));
    let listed = clerk.get("/jobinfo/list?jobGroup=1").await["data"][0].clone();
    assert_eq!((&listed["glueType"], &listed["executorHandler"]), (&json!("GLUE_SHELL"), &json!("")));
    let paged = clerk.post_form("/jobinfo/pageList", &[("jobGroup", "1"), ("start", "0"), ("length", "10")]).await;
    assert_eq!(
        (&paged["data"][0]["glueType"], &paged["data"][0]["glueRemark"]),
        (&json!("GLUE_SHELL"), &json!("first"))
    );
    // What is not said of a script stays, and needs no permission for it.
    let unsaid = job(json!({ "id": 1, "glueSource": "", "executorParam": "x" }));
    assert_eq!(clerk.post_json("/jobinfo/update", &unsaid).await["code"], 200);
    let run = sent(&stand, &executor, task).await;
    assert_eq!((&run["glueSource"], &run["executorParams"]), (&json!("echo 1\necho 2\n"), &json!("x")));
    assert_eq!(stand.api.task(task).await["params"], "x");
    for change in [
        json!({ "id": 1, "glueSource": "echo 3" }),
        json!({ "id": 1, "glueType": "BEAN", "glueSource": "", "executorHandler": "h" }),
    ] {
        let refused = says(&clerk.post_json("/jobinfo/update", &job(change)).await);
        assert!(refused.contains("scripts.edit"), "{refused}");
    }
    let saved = [("id", "1"), ("glueSource", "echo 4"), ("glueRemark", "by form")];
    let refused = says(&clerk.post_form("/jobcode/save", &saved).await);
    assert!(refused.contains("scripts.edit"), "{refused}");
    assert_eq!(author.post_form("/jobcode/save", &saved).await["code"], 200);
    assert_eq!(sent(&stand, &executor, task).await["glueSource"], "echo 4");
    let python = job(json!({ "id": 1, "glueType": "GLUE_PYTHON", "glueSource": "print(5)" }));
    assert_eq!(author.post_json("/jobinfo/update", &python).await["code"], 200);
    assert_eq!(sent(&stand, &executor, task).await["glueType"], "GLUE_PYTHON");
    let bean = job(json!({ "id": 1, "glueType": "BEAN", "glueSource": "", "executorHandler": "report" }));
    assert_eq!(author.post_json("/jobinfo/update", &bean).await["code"], 200);
    let run = sent(&stand, &executor, task).await;
    assert_eq!((&run["glueType"], &run["executorHandler"]), (&json!("BEAN"), &json!("report")));
    assert!(says(&author.post_form("/jobcode/save", &saved).await).contains("calls a handler"));
}

/// A script goes to executors of xxl-job alone, whatever handlers others have.
async fn executors_with_the_sdk_get_no_script(kind: Kind) {
    let stand = stand(kind).await;
    let app = stand.api.make_app("retail", "own").await;
    let apps = stand.api.get("/apps?tenant=retail&name=own").await;
    let switch = format!("/apps/{}/scripts", apps["items"][0]["id"].as_str().unwrap());
    stand.api.put(&switch, json!({ "allowed": true })).await;
    let task = stand
        .api
        .make_task(&app, "report", "demo", json!({ "cron": NEVER, "no_executor_timeout_ms": 1_000, "max_retries": 0 }))
        .await;
    let script = json!({ "glue_type": "GLUE_SHELL", "source": "echo" });
    let refused = stand.api.expect(409, Method::PUT, &path(task), Some(&script)).await;
    assert_eq!(refused["code"], "no_plain_executors");
    open_door(&stand.api, &app, TOKEN).await;
    stand.api.expect(200, Method::PUT, &path(task), Some(&script)).await;
    let _sdk = stand.world.executor("own", &app).await;
    let log = stand.api.run(task, None).await;
    let ended = await_until("it has failed", 60, || async {
        Some(stand.api.log(log).await).filter(|log| log["status"] == "failed")
    })
    .await;
    assert_eq!((&ended["reason"], &ended["attempt"]), (&json!("no_executor"), &json!(0)), "{ended}");
}
