//! The forms of xxl-job's admin, as scripts send them: those of 2.x, and those of 3.3.0 and later.

use super::{only_task, stand};
use carillon_tests::job_admin::{answer, form};
use carillon_tests::people::PASSWORD;
use carillon_tests::plain_executor::{PlainExecutor, open_door};
use carillon_tests::wait::{await_until, when};
use carillon_tests::{Kind, http};
use reqwest::header::{COOKIE, HeaderMap, SET_COOKIE};
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

scenario!(forms_of_2_x: sqlite mariadb postgres);
scenario!(forms_of_3_x: sqlite mariadb);
scenario!(schedules_show_their_next_fires: sqlite);
scenario!(runs_are_listed: sqlite mariadb postgres);
scenario!(who_signs_in_has_a_session: sqlite postgres);

/// A job as the form of 2.3.0 and later sends it.
const JOB: [(&str, &str); 16] = [
    ("jobGroup", "1"),
    ("jobDesc", "nightly report"),
    ("author", "ann"),
    ("alarmEmail", ""),
    ("scheduleType", "FIX_RATE"),
    ("scheduleConf", "30"),
    ("misfireStrategy", "FIRE_ONCE_NOW"),
    ("executorRouteStrategy", "ROUND"),
    ("executorHandler", "demo"),
    ("executorParam", "a=1&b=2"),
    ("executorBlockStrategy", "DISCARD_LATER"),
    ("executorTimeout", "60"),
    ("executorFailRetryCount", "2"),
    ("glueType", "BEAN"),
    ("glueRemark", "GLUE代码初始化"),
    ("childJobId", ""),
];

fn form_with<'a>(fields: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    let kept = JOB.into_iter().filter(|(name, _)| fields.iter().all(|(other, _)| other != name));
    kept.chain(fields.iter().copied()).collect()
}

async fn forms_of_2_x(kind: Kind) {
    let stand = stand(kind).await;
    let script = &stand.portal;
    let done = json!({ "code": 200, "msg": null, "content": null });
    let groups = script.post_form("/jobgroup/pageList", &[("start", "0"), ("length", "10"), ("appname", "ord")]).await;
    assert_eq!((&groups["recordsTotal"], &groups["data"][0]["appname"]), (&json!(1), &json!("orders")));
    let group = script.post_form("/jobgroup/loadById", &[("id", "1")]).await;
    assert_eq!((&group["code"], &group["content"]), (&json!(200), &groups["data"][0]));

    let added = script.post_form("/jobinfo/add", &JOB).await;
    assert_eq!(added, json!({ "code": 200, "msg": null, "content": "1" }));
    let list = async |fields: &[(&str, &str)]| {
        let page = script.post_form("/jobinfo/pageList", fields).await;
        assert_eq!(page["recordsTotal"], page["recordsFiltered"]);
        page["data"].as_array().unwrap().clone()
    };
    let all = [("jobGroup", "0"), ("triggerStatus", "-1"), ("jobDesc", ""), ("executorHandler", ""), ("author", "")];
    let rows = list(&all).await;
    assert_eq!(rows.len(), 1);
    for (name, value) in JOB.iter().filter(|(name, _)| *name != "glueRemark") {
        let shown = rows[0][*name].clone();
        let shown = shown.as_str().map_or_else(|| shown.to_string(), str::to_owned);
        assert_eq!(&shown, value, "{name}");
    }
    let beside = ["id", "triggerStatus", "triggerLastTime", "triggerNextTime", "jobCron", "glueSource"];
    assert_eq!(Value::from_iter(beside.map(|name| rows[0][name].clone())), json!([1, 0, 0, 0, "", ""]));
    let task = only_task(&stand.admin).await;
    let told = [
        "schedule",
        "interval_ms",
        "misfire_strategy",
        "routing",
        "params",
        "block_strategy",
        "timeout_ms",
        "max_retries",
    ];
    let expected = json!(["fixed_rate", 30_000, "fire_once", "round", "a=1&b=2", "discard_later", 60_000, 2]);
    assert_eq!(Value::from_iter(told.map(|field| task[field].clone())), expected);

    // What this interface has no word for survives what it sends back.
    let id = task["id"].as_str().unwrap().to_owned();
    stand.admin.patch(&format!("/tasks/{id}"), json!({ "timeout_ms": 59_500, "tags": ["gpu"], "priority": 9 })).await;
    let changed =
        form_with(&[("id", "1"), ("executorParam", "c=3"), ("scheduleType", "CRON"), ("scheduleConf", "0 0 1 * * ?")]);
    assert_eq!(script.post_form("/jobinfo/update", &changed).await, done);
    let task = only_task(&stand.admin).await;
    let told = ["schedule", "cron", "params", "timeout_ms", "tags", "priority"];
    let expected = json!(["cron", "0 0 1 * * ?", "c=3", 59_500, ["gpu"], 9]);
    assert_eq!(Value::from_iter(told.map(|field| task[field].clone())), expected);

    assert_eq!(script.post_form("/jobinfo/start", &[("id", "1")]).await, done);
    let rows = list(&[("jobGroup", "1"), ("triggerStatus", "1"), ("start", "0"), ("length", "1")]).await;
    assert_eq!(rows[0]["triggerStatus"], 1);
    assert_eq!(rows[0]["triggerNextTime"], only_task(&stand.admin).await["next_fire_at"]);
    assert_eq!(script.post_form("/jobinfo/stop", &[("id", "1")]).await, done);
    assert_eq!(script.post_form("/jobinfo/remove", &[("id", "1")]).await, done);
    assert!(list(&all).await.is_empty());
    assert!(stand.admin.tasks().await.is_empty());
    stand.world.assert_quiet(&[]);
}

async fn forms_of_3_x(kind: Kind) {
    let stand = stand(kind).await;
    let script = &stand.portal;
    let done = json!({ "code": 200, "msg": "Success", "data": null });
    let groups = script.post_form("/jobgroup/pageList", &[("offset", "0"), ("pagesize", "10")]).await;
    let page = &groups["data"];
    assert_eq!((&groups["code"], &groups["msg"]), (&json!(200), &json!("Success")));
    assert_eq!((&page["offset"], &page["pagesize"], &page["total"]), (&json!(0), &json!(10), &json!(1)));
    assert_eq!(page["data"][0]["appname"], "orders");

    let added = script.post_form("/jobinfo/insert", &JOB).await;
    assert_eq!(added, json!({ "code": 200, "msg": "Success", "data": "1" }));
    let list = [("offset", "0"), ("pagesize", "10"), ("jobGroup", "1"), ("triggerStatus", "-1")];
    let jobs = script.post_form("/jobinfo/pageList", &list).await;
    let job = &jobs["data"]["data"][0];
    assert_eq!((&jobs["data"]["total"], &job["jobDesc"]), (&json!(1), &json!("nightly report")));
    let added = job["addTime"].as_str().unwrap();
    assert!(chrono::NaiveDateTime::parse_from_str(added, "%Y-%m-%d %H:%M:%S").is_ok(), "{added}");
    for (path, started) in [("start", true), ("stop", false)] {
        assert_eq!(script.post_form(&format!("/jobinfo/{path}"), &[("ids[]", "1")]).await, done, "{path}");
        assert_eq!(only_task(&stand.admin).await["started"], started);
    }
    let two = script.post_form("/jobinfo/stop", &[("ids[]", "1"), ("ids[]", "2")]).await;
    assert_eq!((&two["code"], &two["data"]), (&json!(500), &Value::Null), "{two}");
    let missing = script.post_form("/jobinfo/delete", &[("ids[]", "2")]).await;
    assert_eq!(missing, json!({ "code": 500, "msg": "id: there is no job 2", "data": null }));
    assert_eq!(script.post_form("/jobinfo/delete", &[("ids[]", "1")]).await, done);
    assert!(stand.admin.tasks().await.is_empty());
    stand.world.assert_quiet(&[]);
}

async fn schedules_show_their_next_fires(kind: Kind) {
    let stand = stand(kind).await;
    let script = &stand.portal;
    let fires = async |fields: &[(&str, &str)]| script.post_form("/jobinfo/nextTriggerTime", fields).await;
    let expected = json!(["2098-01-01 00:00:00", "2099-01-01 00:00:00"]);
    let cron = "0 0 0 1 1 ? 2098-2099";
    assert_eq!(fires(&[("scheduleType", "CRON"), ("scheduleConf", cron)]).await["content"], expected);
    assert_eq!(fires(&[("cron", cron)]).await["content"], expected, "as in 2.2.0");
    let every = fires(&[("scheduleType", "FIX_RATE"), ("scheduleConf", "60")]).await;
    assert_eq!(every["content"].as_array().unwrap().len(), 5, "{every}");
    assert_eq!(fires(&[("scheduleType", "NONE"), ("scheduleConf", "")]).await["content"], json!([]));
    for wrong in [&[("scheduleType", "CRON"), ("scheduleConf", "soon")][..], &[("cron", "* * *")], &[]] {
        assert_eq!(fires(wrong).await["code"], 500, "{wrong:?}");
    }
    stand.world.assert_quiet(&[]);
}

async fn runs_are_listed(kind: Kind) {
    const TOKEN: &str = "a-token-that-nobody-guesses";
    let stand = stand(kind).await;
    let script = &stand.portal;
    open_door(&stand.admin, &stand.app, TOKEN).await;
    let executor = PlainExecutor::start("orders", TOKEN, &stand.world.node_urls()).await;
    assert_eq!(executor.register().await["code"], 200);
    script.post_form("/jobinfo/add", &form_with(&[("executorFailRetryCount", "0")])).await;
    for (code, text) in [(200, "well done"), (500, "no")] {
        executor.script(|script| script.calls_back = Some((code, text.to_owned())));
        let before = executor.got("/run").len();
        script.post_form("/jobinfo/trigger", &[("id", "1"), ("executorParam", text), ("addressList", "")]).await;
        await_until("it runs", 60, || async { when(executor.got("/run").len() > before) }).await;
        let open = "SELECT COUNT(*) FROM task_log WHERE status < 10";
        await_until("it ends", 60, || async { when(stand.world.database.number(open).await == 0) }).await;
    }
    let list = async |fields: &[(&str, &str)]| {
        let page = script.post_form("/joblog/pageList", fields).await;
        (page["recordsTotal"].as_u64().unwrap(), page["data"].as_array().unwrap().clone())
    };
    let all =
        [("jobGroup", "1"), ("jobId", "1"), ("logStatus", "-1"), ("filterTime", ""), ("start", "0"), ("length", "10")];
    let (total, rows) = list(&all).await;
    assert_eq!((total, rows.len()), (2, 2));
    let runs = executor.got("/run");
    for (row, run, code, text) in [(&rows[1], &runs[0], 200, "well done"), (&rows[0], &runs[1], 500, "no")] {
        let told = ["jobGroup", "jobId", "executorParam", "triggerCode", "handleCode", "handleMsg", "executorAddress"];
        let address = executor.address.trim_end_matches('/');
        let expected = json!([1, 1, text, 200, code, text, address]);
        assert_eq!(Value::from_iter(told.map(|name| row[name].clone())), expected);
        assert_eq!(row["id"], run.body["logId"], "the number that the executor was told");
    }
    assert_eq!(list(&[("jobId", "1"), ("logStatus", "1")]).await.1, [rows[1].clone()]);
    assert_eq!(list(&[("jobId", "1"), ("logStatus", "2")]).await.1, [rows[0].clone()]);
    let first = [("jobId", "1"), ("start", "0"), ("length", "1")];
    let (total, page) = list(&first).await;
    assert_eq!((total, page), (2, vec![rows[0].clone()]), "that there are more is told");
    let (_, page) = list(&[("jobId", "1"), ("start", "1"), ("length", "1")]).await;
    assert_eq!(page, [rows[1].clone()]);
    let span = "2020-01-01 00:00:00 - 2020-01-02 00:00:00";
    assert_eq!(list(&[("jobId", "1"), ("filterTime", span)]).await.0, 0);
    for wrong in [[("jobId", "7")], [("jobGroup", "7")], [("filterTime", "today")], [("start", "9999")]] {
        assert_eq!(script.post_form("/joblog/pageList", &wrong).await["code"], 500, "{wrong:?}");
    }
    stand.world.assert_quiet(&[]);
}

/// A request, its status, its body, and its headers.
async fn sent(request: RequestBuilder) -> (u16, Value, HeaderMap) {
    let answer = request.send().await.unwrap();
    let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
    (status, answer.json().await.unwrap(), headers)
}

async fn who_signs_in_has_a_session(kind: Kind) {
    let stand = stand(kind).await;
    let url = format!("{}/xxl-job-admin", stand.world.node_urls()[0]);
    let post = |path: &str| http::shared().post(format!("{url}{path}"));
    let sign_in = |name: &str, password: &str| {
        let fields = [("userName", name), ("password", password), ("ifRemember", "on")];
        [("/login", "XXL_JOB_LOGIN_IDENTITY", "content"), ("/auth/doLogin", "xxl_job_login_token", "data")]
            .map(|(path, cookie, field)| (form(post(path), &fields), cookie, field))
    };
    for (request, name, field) in sign_in("ann", PASSWORD) {
        let (status, body, headers) = sent(request).await;
        assert_eq!((status, &body["code"], &body[field]), (200, &json!(200), &Value::Null), "{body}");
        let cookie = headers[SET_COOKIE].to_str().unwrap().to_owned();
        assert!(cookie.starts_with(&format!("{name}=cs_")), "{cookie}");
        assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"), "{cookie}");
        let cookie = cookie.split(';').next().unwrap().to_owned();
        let with = |request: RequestBuilder| request.header(COOKIE, &cookie);
        let (status, body, _) = sent(form(with(post("/jobinfo/add")), &form_with(&[("jobDesc", name)]))).await;
        assert_eq!((status, &body["code"]), (200, &json!(200)), "{body}");
        // A form on a page of another site.
        let foreign = with(post("/jobinfo/remove?id=1")).header("sec-fetch-site", "same-site");
        let (status, body, _) = sent(foreign).await;
        assert_eq!((status, &body["code"]), (200, &json!(500)), "{body}");
        let listed = sent(with(post("/jobinfo/pageList"))).await.1;
        assert!(!listed["data"].as_array().unwrap().is_empty(), "{listed}");
        let out = if field == "content" { "/logout" } else { "/auth/logout" };
        assert_eq!(sent(with(post(out))).await.1["code"], 200);
        let (status, body, _) = sent(with(post("/jobinfo/pageList"))).await;
        assert_eq!((status, &body["code"]), (401, &json!(501)), "it has ended: {body}");
    }
    let tasks = stand.admin.tasks().await;
    assert_eq!(tasks.len(), 2);
    // Who may not: a wrong password, an account of no tenant, one that must choose another password first.
    let eve = stand.admin.make_person("eve", None).await;
    stand.admin.grant(&eve, "platform admin", None).await;
    let new = stand.admin.make_new_person("new", Some("retail")).await;
    stand.admin.grant(&new, "tenant admin", Some("retail")).await;
    for (name, password, said) in [
        ("ann", "123456", "password is wrong"),
        ("nobody", PASSWORD, "password is wrong"),
        ("eve", PASSWORD, "within one tenant"),
        ("new", carillon_tests::people::FIRST_PASSWORD, "choose a new password"),
        ("", "", "userName: it is required"),
    ] {
        for (request, ..) in sign_in(name, password) {
            let (status, body, headers) = sent(request).await;
            assert_eq!((status, &body["code"]), (200, &json!(500)), "{name}: {body}");
            assert!(body["msg"].as_str().unwrap().contains(said), "{name}: {body}");
            assert!(!headers.contains_key(SET_COOKIE), "{name}");
        }
    }
    // The console's own page is where it was.
    let root = stand.world.node_urls()[0].clone();
    assert_eq!(http::shared().get(format!("{root}/login")).send().await.unwrap().status(), 200);
    let found = stand.ann.api.get("/audit?tenant=retail&action=sign_in").await;
    assert!(found["items"].as_array().unwrap().len() >= 2, "{found}");
    let unknown = stand.portal.request(Method::GET, "/jobinfo/pageList").header("authorization", "Basic YTpi");
    assert_eq!(answer(unknown).await.0, 401);
    stand.world.assert_quiet(&[]);
}
