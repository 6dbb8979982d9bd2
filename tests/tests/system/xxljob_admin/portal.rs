//! As a portal that was built for 2.2.0 calls it.

use super::{done, job, job_with, only_task, refused, stand};
use carillon_tests::Kind;
use carillon_tests::api::id_of;
use carillon_tests::job_admin::{EVERYTHING, token_of};
use carillon_tests::plain_executor::{PlainExecutor, open_door};
use carillon_tests::wait::{await_until, when};
use reqwest::Method;
use serde_json::{Value, json};

scenario!(replies_are_those_of_the_paper: sqlite mariadb postgres);
scenario!(what_was_added_runs_with_the_parameters_of_the_trigger: sqlite mariadb postgres);
scenario!(children_follow_their_parents: sqlite mariadb postgres);
scenario!(each_change_is_recorded: sqlite mariadb);
scenario!(jobs_may_share_a_description: sqlite postgres);

/// Takes a time out of a row, written as the paper does.
fn take_time(row: &mut Value, name: &str) {
    let time = row.as_object_mut().unwrap().remove(name).unwrap();
    let time = time.as_str().unwrap();
    let format = "%Y-%m-%dT%H:%M:%S%.3f%z";
    chrono::DateTime::parse_from_str(time, format).unwrap_or_else(|error| panic!("{time}: {error}"));
    assert!(time.ends_with("+0000"), "{time}");
}

async fn replies_are_those_of_the_paper(kind: Kind) {
    let stand = stand(kind).await;
    let portal = &stand.portal;
    let groups = |registered: Value, list: &str| {
        json!({
            "recordsFiltered": 1,
            "data": [{
                "id": 1, "appname": "orders", "title": "orders", "addressType": 0, "addressList": list,
                "registryList": registered,
            }],
            "recordsTotal": 1,
        })
    };
    let list = "/jobgroup/list?appname=ord&title=&pageNum=1&pageSize=10";
    assert_eq!(portal.get(list).await, groups(Value::Null, ""));
    assert_eq!(portal.at_root().get("/jobgroup/list").await, groups(Value::Null, ""));
    assert_eq!(portal.get("/jobgroup/list?appname=other").await["recordsTotal"], 0);
    assert_eq!(portal.get("/jobgroup/list?pageNum=2").await["data"], json!([]));

    let added = portal.post_json("/jobinfo/add", &job()).await;
    assert_eq!(added, json!({ "code": 200, "msg": null, "content": "1" }));
    let row = |fields: Value| {
        let mut row = job_with(json!({ "id": 1, "triggerStatus": 0 }));
        row.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        row
    };
    let listed = async |query: &str| {
        let mut page = portal.get(&format!("/jobinfo/list?jobGroup=1{query}")).await;
        assert_eq!((&page["recordsTotal"], &page["recordsFiltered"]), (&json!(1), &json!(1)), "{query}: {page}");
        assert_eq!(page.as_object().unwrap().len(), 3);
        let mut job = page["data"].as_array_mut().unwrap().remove(0);
        take_time(&mut job, "addTime");
        take_time(&mut job, "updateTime");
        job
    };
    assert_eq!(listed("").await, row(json!({})));
    for query in [
        "&triggerStatus=-1",
        "&triggerStatus=0",
        "&jobDesc=%E4%BB%BB%E5%8A%A1",
        "&executorHandler=cloud",
        "&author=WAR",
        "&triggerStatus=&jobDesc=&executorHandler=&author=&pageNum=1&pageSize=10",
    ] {
        assert_eq!(listed(query).await, row(json!({})), "{query}");
    }
    for query in ["&triggerStatus=1", "&jobDesc=other", "&executorHandler=other", "&author=other", "&pageNum=2"] {
        let page = portal.get(&format!("/jobinfo/list?jobGroup=1{query}")).await;
        assert_eq!(page["data"], json!([]), "{query}");
    }
    let task = only_task(&stand.admin).await;
    let told = ["name", "handler", "cron", "schedule", "routing", "block_strategy", "max_retries", "timeout_ms"];
    let expected =
        json!(["测试任务1", "springCloudDemoJobHandler", "0/5 * * * * ? *", "cron", "first", "serial", 0, 0]);
    assert_eq!(Value::from_iter(told.map(|field| task[field].clone())), expected);
    assert_eq!((&task["started"], &task["params"]), (&json!(false), &json!("")));

    let changes = json!({
        "jobCron": "0 0 2 * * ?", "executorRouteStrategy": "SHARDING_BROADCAST", "executorTimeout": 90,
        "executorFailRetryCount": 3, "executorParam": "a=1&b=\"2\"", "executorBlockStrategy": "COVER_EARLY",
        "alarmEmail": "a@example.com,b@example.com", "author": "XXL", "jobDesc": "a/b",
    });
    let mut update = job_with(changes.clone());
    update["id"] = json!(1);
    assert_eq!(portal.post_json("/jobinfo/update", &update).await, done());
    assert_eq!(listed("").await, row(changes));
    let task = only_task(&stand.admin).await;
    let told = ["name", "description", "cron", "routing", "timeout_ms", "max_retries", "params", "block_strategy"];
    let expected = json!(["a-b", "a/b", "0 0 2 * * ?", "sharding", 90_000, 3, "a=1&b=\"2\"", "cover_early"]);
    assert_eq!(Value::from_iter(told.map(|field| task[field].clone())), expected);

    assert_eq!(portal.post("/jobinfo/start?id=1").await, done());
    assert_eq!(listed("&triggerStatus=1").await["triggerStatus"], 1);
    assert_eq!(only_task(&stand.admin).await["started"], true);
    assert_eq!(portal.post("/jobinfo/start?id=1").await, done(), "once more");
    assert_eq!(portal.post("/jobinfo/stop?id=1").await, done());
    assert_eq!(listed("").await["triggerStatus"], 0);
    assert_eq!(portal.post_json("/jobinfo/remove", &json!({ "id": 1 })).await, done());
    assert_eq!(portal.get("/jobinfo/list?jobGroup=1").await["recordsTotal"], 0);
    assert_eq!(stand.admin.tasks().await, Vec::<Value>::new());
    let words = "SELECT COUNT(*) FROM xxljob_words";
    assert_eq!(stand.world.database.number(words).await, 0, "nothing is left of it");
    stand.world.assert_quiet(&[]);
}

async fn what_was_added_runs_with_the_parameters_of_the_trigger(kind: Kind) {
    const TOKEN: &str = "a-token-that-nobody-guesses";
    let stand = stand(kind).await;
    open_door(&stand.admin, &stand.app, TOKEN).await;
    let executor = PlainExecutor::start("orders", TOKEN, &stand.world.node_urls()).await;
    assert_eq!(executor.register().await["code"], 200);
    let portal = &stand.portal;
    let group = portal.get("/jobgroup/list").await["data"][0].clone();
    let address = executor.address.trim_end_matches('/');
    assert_eq!((&group["addressList"], &group["registryList"]), (&json!(address), &json!([address])));

    let fields = json!({ "executorHandler": "demo", "executorParam": "of the job", "executorTimeout": 7 });
    assert_eq!(portal.post_json("/jobinfo/add", &job_with(fields)).await["content"], "1");
    for (query, params) in [
        ("id=1&executorParam=of+the+trigger", "of the trigger"),
        ("id=1&executorParam=", ""),
        // As there: none is an empty one.
        ("id=1", ""),
    ] {
        let before = executor.got("/run").len();
        assert_eq!(portal.post(&format!("/jobinfo/trigger?{query}")).await, done(), "{query}");
        await_until("it runs", 60, || async { when(executor.got("/run").len() > before) }).await;
        let run = executor.got("/run").remove(before).body;
        assert_eq!((&run["jobId"], &run["executorHandler"]), (&json!(1), &json!("demo")));
        assert_eq!((&run["executorParams"], &run["executorTimeout"]), (&json!(params), &json!(7)), "{query}");
    }
    let task = id_of(&only_task(&stand.admin).await["id"]).unwrap();
    stand.world.await_successes(task, 3).await;
    stand.world.assert_quiet(&[]);
}

async fn children_follow_their_parents(kind: Kind) {
    let stand = stand(kind).await;
    let portal = &stand.portal;
    stand.admin.make_app("retail", "mail").await;
    for (name, group) in [("first", 1), ("second", 2)] {
        portal.post_json("/jobinfo/add", &job_with(json!({ "jobDesc": name, "jobGroup": group }))).await;
    }
    assert_eq!(portal.post("/jobinfo/start?id=1").await, done());
    let added = portal.post_json("/jobinfo/add", &job_with(json!({ "jobDesc": "parent", "childJobId": "2, 1" }))).await;
    assert_eq!((&added["code"], &added["content"]), (&json!(200), &json!("3")), "{added}");
    assert_eq!(added["msg"], "job 2 is stopped: it follows this one once it is started");
    let children =
        async || portal.get("/jobinfo/list?jobGroup=1&jobDesc=parent").await["data"][0]["childJobId"].clone();
    assert_eq!(children().await, "1,2");
    let parents = async |name: &str| {
        let found = stand.admin.get(&format!("/tasks?name={name}")).await;
        let parents = found["items"][0]["parents"].as_array().unwrap().clone();
        parents
            .iter()
            .map(|link| format!("{} {}", link["task"].as_str().unwrap(), link["on"].as_str().unwrap()))
            .collect::<Vec<_>>()
    };
    assert_eq!(parents("first").await, ["parent success"]);
    assert_eq!(parents("second").await, ["orders/parent success"]);
    // Renamed in the same step.
    let update = |fields: Value| {
        let mut body = job_with(json!({ "id": 3, "jobDesc": "parent" }));
        body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        body
    };
    let renamed = update(json!({ "jobDesc": "renamed parent", "childJobId": "2" }));
    assert_eq!(portal.post_json("/jobinfo/update", &renamed).await, done());
    assert!(parents("first").await.is_empty());
    assert_eq!(parents("second").await, ["orders/renamed parent success"]);
    // A circle is refused as a whole.
    let circle =
        job_with(json!({ "id": 2, "jobDesc": "second", "jobGroup": 2, "childJobId": "3", "executorParam": "x" }));
    assert!(refused(&portal.post_json("/jobinfo/update", &circle).await).contains("parents"));
    assert_eq!(stand.admin.get("/tasks?name=second").await["items"][0]["params"], "");
    // What may be edited here, but not there, stays.
    let clerk = stand.admin.make_person("clerk", Some("retail")).await;
    let apps = stand.admin.get("/apps?tenant=retail&name=orders").await;
    let body = json!({
        "role": stand.admin.role("tenant admin").await, "tenant": "retail", "apps": [apps["items"][0]["id"]],
    });
    stand.admin.expect(201, Method::POST, &format!("/users/{}/grants", clerk.id), Some(&body)).await;
    let of_orders = stand.with(&token_of(&clerk, &EVERYTHING, Some("retail")).await);
    let answer = of_orders.post_json("/jobinfo/update", &update(json!({ "jobDesc": "renamed parent" }))).await;
    assert_eq!(answer, done());
    assert_eq!(parents("second").await, ["orders/renamed parent success"]);
    let answer = of_orders.post_json("/jobinfo/update", &update(json!({ "childJobId": "2" }))).await;
    assert_eq!(refused(&answer), "childJobId: there is no job 2");
    assert_eq!(portal.post_json("/jobinfo/update", &update(json!({}))).await, done());
    assert!(parents("second").await.is_empty());
    stand.world.assert_quiet(&[]);
}

/// Each change has the entry that the same change by `/api/v1` has, in the name of the token's owner.
async fn each_change_is_recorded(kind: Kind) {
    let stand = stand(kind).await;
    let portal = &stand.portal;
    assert_eq!(portal.post_json("/jobinfo/add", &job()).await["content"], "1");
    let task = only_task(&stand.admin).await["id"].as_str().unwrap().to_owned();
    let mut update = job_with(json!({ "author": "XXL", "executorParam": "x" }));
    update["id"] = json!(1);
    portal.post_json("/jobinfo/update", &update).await;
    for path in ["start", "trigger", "stop", "remove"] {
        assert_eq!(portal.post(&format!("/jobinfo/{path}?id=1")).await, done(), "{path}");
    }
    let found = stand.admin.get(&format!("/audit?tenant=retail&kind=task&target={task}")).await;
    let mut entries = found["items"].as_array().unwrap().clone();
    entries.sort_by_key(|entry| entry["seq"].as_i64());
    let actions: Vec<&str> = entries.iter().map(|entry| entry["action"].as_str().unwrap()).collect();
    assert_eq!(actions, ["create_task", "edit_task", "start_task", "run_task", "stop_task", "delete_task"]);
    for entry in &entries {
        assert_eq!((&entry["actor_kind"], &entry["actor"]), (&json!("token"), &json!("ann (portal)")), "{entry}");
    }
    let read = |entry: &Value, at: &str| serde_json::from_str::<Value>(entry[at].as_str().unwrap()).unwrap();
    let (before, after) = (read(&entries[1], "before"), read(&entries[1], "after"));
    assert_eq!((&before["params"], &after["params"]), (&json!(""), &json!("x")));
    let words = (&before["xxl_job"]["author"], &after["xxl_job"]["author"]);
    assert_eq!(words, (&json!("warrior"), &json!("XXL")));
    assert_eq!(read(&entries[0], "after")["handler"], "springCloudDemoJobHandler");
    stand.world.assert_quiet(&[]);
}

/// Tasks of an app share no name, so the second one gets its number into it, and is shown as it was called.
async fn jobs_may_share_a_description(kind: Kind) {
    let stand = stand(kind).await;
    let portal = &stand.portal;
    for number in ["1", "2", "3"] {
        assert_eq!(portal.post_json("/jobinfo/add", &job_with(json!({ "jobDesc": "test" }))).await["content"], number);
    }
    let list = portal.get("/jobinfo/list?jobGroup=1&jobDesc=test").await;
    let shown: Vec<(i64, &str)> = list["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|job| (job["id"].as_i64().unwrap(), job["jobDesc"].as_str().unwrap()))
        .collect();
    assert_eq!(shown, [(3, "test"), (2, "test"), (1, "test")]);
    let names: Vec<String> =
        stand.admin.tasks().await.iter().map(|task| task["name"].as_str().unwrap().to_owned()).collect();
    assert_eq!(names, ["test", "test #2", "test #3"]);
    // Sent back as it was read, it keeps its name.
    let mut update = job_with(json!({ "jobDesc": "test", "executorParam": "x" }));
    update["id"] = json!(2);
    assert_eq!(portal.post_json("/jobinfo/update", &update).await, done());
    let task = stand.admin.get("/tasks?name=test%20%232").await["items"][0].clone();
    assert_eq!((&task["params"], &task["description"]), (&json!("x"), &json!("test")));
    // Only two of three are on the first page of two.
    let page = portal.get("/jobinfo/list?jobGroup=1&pageNum=2&pageSize=2").await;
    assert_eq!((&page["recordsTotal"], &page["data"][0]["id"]), (&json!(3), &json!(1)));
    assert_eq!(page["data"].as_array().unwrap().len(), 1);
    stand.world.assert_quiet(&[]);
}
