//! What is refused: who may not, what is another tenant's, what cannot be read.

use super::{job, job_with, only_task, refused, stand};
use carillon_tests::Kind;
use carillon_tests::job_admin::{EVERYTHING, answer, token_of};
use reqwest::Method;
use serde_json::{Value, json};

scenario!(rights_are_those_of_the_tasks: sqlite mariadb postgres);
scenario!(another_tenants_numbers_are_not_found: sqlite postgres);
scenario!(wrong_input_changes_nothing: sqlite mariadb);
scenario!(who_is_not_known_learns_nothing: sqlite);

/// What each call needs; without it nothing changes, and the answer names it.
async fn rights_are_those_of_the_tasks(kind: Kind) {
    let stand = stand(kind).await;
    assert_eq!(stand.portal.post_json("/jobinfo/add", &job()).await["content"], "1");
    let mut update = job_with(json!({ "executorParam": "x" }));
    update["id"] = json!(1);
    let before = only_task(&stand.admin).await;
    let calls: [(&str, &str, Option<Value>); 9] = [
        ("apps.read", "/jobgroup/list", None),
        ("tasks.read", "/jobinfo/list?jobGroup=1", None),
        ("tasks.create", "/jobinfo/add", Some(job_with(json!({ "jobDesc": "second" })))),
        ("tasks.edit", "/jobinfo/update", Some(update)),
        ("tasks.run", "/jobinfo/trigger?id=1", None),
        ("tasks.start", "/jobinfo/start?id=1", None),
        ("tasks.stop", "/jobinfo/stop?id=1", None),
        ("task_logs.read", "/joblog/pageList", None),
        ("tasks.delete", "/jobinfo/remove?id=1", None),
    ];
    for (needed, path, body) in &calls {
        let others: Vec<&str> = EVERYTHING.into_iter().filter(|one| one != needed).collect();
        let portal = stand.with(&token_of(&stand.ann, &others, Some("retail")).await);
        let answer = match body {
            Some(body) => portal.post_json(path, body).await,
            None => portal.post(path).await,
        };
        assert!(refused(&answer).contains(&format!("`{needed}`")), "{path}: {answer}");
        assert_eq!(only_task(&stand.admin).await, before, "{path}");
    }
    // One app of two.
    stand.admin.make_app("retail", "mail").await;
    let clerk = stand.admin.make_person("clerk", Some("retail")).await;
    let apps = stand.admin.get("/apps?tenant=retail&name=mail").await;
    let role = stand.admin.role("tenant admin").await;
    let body = json!({ "role": role, "tenant": "retail", "apps": [apps["items"][0]["id"]] });
    stand.admin.expect(201, Method::POST, &format!("/users/{}/grants", clerk.id), Some(&body)).await;
    let portal = stand.with(&token_of(&clerk, &EVERYTHING, Some("retail")).await);
    let groups = portal.get("/jobgroup/list").await;
    assert_eq!((&groups["recordsTotal"], &groups["data"][0]["appname"]), (&json!(1), &json!("mail")), "{groups}");
    assert_eq!(portal.get("/jobinfo/list?jobGroup=1").await["recordsTotal"], 0);
    assert_eq!(refused(&portal.post_json("/jobinfo/add", &job()).await), "jobGroup: there is no executor group 1");
    assert_eq!(refused(&portal.post("/jobinfo/trigger?id=1").await), "id: there is no job 1");
    assert_eq!(only_task(&stand.admin).await, before);
    stand.world.assert_quiet(&[]);
}

/// Numbers count within a tenant: those of another one lead nowhere, or to one's own.
async fn another_tenants_numbers_are_not_found(kind: Kind) {
    let stand = stand(kind).await;
    stand.admin.make_app("far", "stock").await;
    let bob = stand.admin.make_person("bob", Some("far")).await;
    stand.admin.grant(&bob, "tenant admin", Some("far")).await;
    let far = stand.with(&token_of(&bob, &EVERYTHING, Some("far")).await);
    for _ in 0..2 {
        stand.portal.post_json("/jobinfo/add", &job()).await;
    }
    let before = stand.admin.tasks().await;
    assert_eq!(before.len(), 2);
    assert_eq!(far.get("/jobinfo/list?jobGroup=1").await["data"], json!([]));
    let mut update = job();
    update["id"] = json!(2);
    assert_eq!(refused(&far.post_json("/jobinfo/update", &update).await), "id: there is no job 2");
    for path in ["remove", "start", "stop", "trigger"] {
        assert_eq!(refused(&far.post(&format!("/jobinfo/{path}?id=2")).await), "id: there is no job 2", "{path}");
    }
    let child = far.post_json("/jobinfo/add", &job_with(json!({ "childJobId": "2" }))).await;
    assert_eq!(refused(&child), "childJobId: there is no job 2");
    assert_eq!(stand.admin.tasks().await, before);
    // Its own first.
    assert_eq!(far.post_json("/jobinfo/add", &job()).await["content"], "1");
    let groups = far.get("/jobgroup/list").await;
    assert_eq!((&groups["data"][0]["id"], &groups["data"][0]["appname"]), (&json!(1), &json!("stock")));
    // Who is of two tenants, or of the platform, says by the token which.
    let eve = stand.admin.make_person("eve", None).await;
    stand.admin.grant(&eve, "platform admin", None).await;
    let anywhere = stand.with(&token_of(&eve, &EVERYTHING, None).await);
    assert!(refused(&anywhere.get("/jobgroup/list").await).contains("within one tenant"));
    let narrowed = stand.with(&token_of(&eve, &EVERYTHING, Some("far")).await);
    assert_eq!(narrowed.get("/jobgroup/list").await["data"][0]["appname"], "stock");
    stand.world.assert_quiet(&[]);
}

async fn wrong_input_changes_nothing(kind: Kind) {
    let stand = stand(kind).await;
    let portal = &stand.portal;
    assert_eq!(portal.post_json("/jobinfo/add", &job()).await["content"], "1");
    let before = only_task(&stand.admin).await;
    let list = portal.get("/jobinfo/list?jobGroup=1").await;
    let wrong: [(Value, &str); 20] = [
        (json!({ "executorRouteStrategy": "NEAREST" }), "executorRouteStrategy: `NEAREST`: it is none of FIRST, LAST"),
        (json!({ "executorBlockStrategy": "WAIT" }), "executorBlockStrategy: `WAIT`: it is none of SERIAL_EXECUTION"),
        (json!({ "misfireStrategy": "X" }), "misfireStrategy: `X`: it is none of DO_NOTHING"),
        (json!({ "glueType": "GLUE_SHELL" }), "glueSource: is required"),
        (json!({ "jobCron": "every day" }), "jobCron: `every day`: "),
        (json!({ "jobCron": "0 0 0 31 2 ?" }), "jobCron: `0 0 0 31 2 ?`: "),
        (json!({ "scheduleType": "FIX_RATE", "scheduleConf": "soon" }), "scheduleConf: `soon`: "),
        (json!({ "scheduleType": "LUNAR", "scheduleConf": "1" }), "scheduleType: `LUNAR`: "),
        (json!({ "jobDesc": " " }), "jobDesc: it is required"),
        (json!({ "jobDesc": "x".repeat(1_001) }), "jobDesc: "),
        (json!({ "author": null }), "author: it is required"),
        (json!({ "executorHandler": "" }), "executorHandler: it is required"),
        (json!({ "executorHandler": "x".repeat(129) }), "executorHandler: "),
        (json!({ "executorParam": "x".repeat(16_385) }), "executorParam: "),
        (json!({ "executorTimeout": 9_999_999 }), "executorTimeout: "),
        (json!({ "executorTimeout": "1s" }), "executorTimeout: it must be a whole number"),
        (json!({ "executorFailRetryCount": 1_001 }), "executorFailRetryCount: "),
        (json!({ "alarmEmail": "x".repeat(256) }), "alarmEmail: at most 255"),
        (json!({ "childJobId": "7" }), "childJobId: there is no job 7"),
        (json!({ "jobDesc": { "text": "no text" } }), "jobDesc: it must be a text"),
    ];
    for (fields, said) in wrong {
        for path in ["add", "update"] {
            let mut body = job_with(json!({ "id": 1 }));
            body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
            let answer = refused(&portal.post_json(&format!("/jobinfo/{path}"), &body).await);
            assert!(answer.starts_with(said), "{path} {said}: {answer}");
        }
    }
    for (path, body, said) in [
        ("add", json!({ "jobGroup": 1 }), "jobDesc: it is required"),
        ("add", job_with(json!({ "jobGroup": 7 })), "jobGroup: there is no executor group 7"),
        ("add", job_with(json!({ "jobGroup": 4_294_967_297i64 })), "jobGroup: there is no executor group 4294967297"),
        ("add", job_with(json!({ "jobGroup": null })), "jobGroup: it is required"),
        ("add", job_with(json!({ "jobCron": "" })), "jobCron: it is required"),
        ("update", job(), "id: it is required"),
        ("update", job_with(json!({ "id": 7 })), "id: there is no job 7"),
        ("update", job_with(json!({ "id": 1, "jobGroup": 2 })), "jobGroup: job 1 is of group 1"),
        ("update", job_with(json!({ "id": 1, "childJobId": "1" })), "childJobId: a job cannot follow itself"),
        ("trigger", json!({ "id": 1, "addressList": "http://10.0.0.1:9999" }), "addressList: "),
        ("trigger", json!({ "id": 1, "executorParam": "x".repeat(16_385) }), "executorParam: "),
        ("start", json!({ "id": "one" }), "id: it must be a whole number"),
        ("remove", json!({ "executorParam": "" }), "id: it is required"),
    ] {
        let answer = refused(&portal.post_json(&format!("/jobinfo/{path}"), &body).await);
        assert!(answer.starts_with(said), "{path} {said}: {answer}");
    }
    // Bodies that are none.
    let large = job_with(json!({ "glueSource": "x".repeat(300_000) }));
    assert!(refused(&portal.post_json("/jobinfo/add", &large).await).starts_with("the body is larger than"));
    let send = async |kind: &str, body: &str| {
        let request = portal.request(Method::POST, "/jobinfo/add").header("content-type", kind);
        answer(request.body(body.to_owned())).await
    };
    for (kind, body) in [("application/json", "[1]"), ("application/json", "{"), ("text/plain", "jobGroup=1")] {
        let (status, answer) = send(kind, body).await;
        assert_eq!((status, &answer["code"]), (200, &json!(500)), "{kind} {body}: {answer}");
    }
    // A link of a page must not change anything.
    for path in ["add", "update", "remove?id=1", "start?id=1", "stop?id=1", "trigger?id=1"] {
        let answer = refused(&portal.get(&format!("/jobinfo/{path}")).await);
        assert!(answer.contains("send it as POST"), "{path}: {answer}");
    }
    for query in ["pageSize=501", "pageSize=0", "pageNum=0", "pageNum=1000000", "triggerStatus=7"] {
        refused(&portal.get(&format!("/jobinfo/list?jobGroup=1&{query}")).await);
    }
    assert_eq!(refused(&portal.get("/jobinfo/list").await), "jobGroup: it is required");
    for path in ["/jobgroup/save", "/jobgroup/update", "/joblog/clearLog", "/user/add"] {
        assert!(refused(&portal.post(path).await).starts_with("not served: "), "{path}");
    }
    assert_eq!(only_task(&stand.admin).await, before);
    assert_eq!(portal.get("/jobinfo/list?jobGroup=1").await, list);
    assert_eq!(stand.world.database.number("SELECT COUNT(*) FROM task_log").await, 0, "nothing ran");
    stand.world.assert_quiet(&[]);
}

async fn who_is_not_known_learns_nothing(kind: Kind) {
    let stand = stand(kind).await;
    stand.portal.post_json("/jobinfo/add", &job()).await;
    let url = &stand.world.node_urls()[0];
    let client = carillon_tests::http::shared();
    for path in ["/jobgroup/list", "/jobinfo/list?jobGroup=1", "/jobinfo/remove?id=1", "/jobinfo/pageList"] {
        for request in [
            client.post(format!("{url}{path}")),
            client.post(format!("{url}/xxl-job-admin{path}")),
            stand.with("carillon_0000").request(Method::POST, path),
            client.post(format!("{url}{path}")).bearer_auth("default_token"),
            // The header of a node's own sessions is not one of this interface.
            client.post(format!("{url}{path}")).header("cookie", format!("carillon_session={}", stand.ann.api.token())),
        ] {
            let (status, answer) = answer(request).await;
            assert_eq!(
                (status, &answer["code"], &answer["content"]),
                (401, &json!(501), &Value::Null),
                "{path}: {answer}"
            );
            assert!(!answer["msg"].as_str().unwrap().is_empty());
        }
    }
    // Two tokens are none: whoever stands between might read the other.
    let twice = stand.portal.request(Method::POST, "/jobgroup/list").header("XXL-JOB-ACCESS-TOKEN", "another");
    assert_eq!(answer(twice).await.0, 401);
    let bearer = client.get(format!("{url}/jobgroup/list"));
    let token = token_of(&stand.ann, &["apps.read"], Some("retail")).await;
    assert_eq!(answer(bearer.bearer_auth(token)).await.1["recordsTotal"], 1);
    assert_eq!(only_task(&stand.admin).await["started"], false);
    stand.world.assert_quiet(&[]);
}
