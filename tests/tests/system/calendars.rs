//! Calendars: versions, who uses them, and what they do to tasks that run.

use carillon_tests::api::whole_calendar;
use carillon_tests::fires::assert_all;
use carillon_tests::wait::{sample, when};
use carillon_tests::{Api, App, Fires, Kind, LogRow, Status, World, await_until, now_ms, now_us};
use chrono::{TimeZone, Timelike};
use reqwest::Method;
use serde_json::{Value, json};

scenario!(versions_and_users: sqlite mariadb);
scenario!(a_new_version_counts_at_once: sqlite mariadb);
scenario!(a_deleted_tenant_leaves_no_version: sqlite mariadb);

async fn put(api: &Api, name: &str, body: Value) -> Value {
    api.put_calendar(&format!("/calendars/retail/{name}"), body).await
}

async fn versions_and_users(kind: Kind) {
    let world = World::new(kind).await;
    world.node("a", &[]).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    api.make_app("finance", "ledger").await;
    let first = json!({ "excluded_weekdays": ["sat", "sun"], "description": "weekends" });
    let made = put(&api, "china", first).await;
    assert_eq!((&made["calendar"]["version"], &made["tasks"]), (&json!(1), &json!(0)), "{made}");
    put(&api, "other", json!({})).await;
    let second = json!({
        "excluded_weekdays": ["sat", "sun"], "excluded_days": ["2027-10-01", "12-25"], "workdays": ["2027-10-09"],
        "excluded_hours": ["22:00-06:00"], "description": "weekends and the first of October",
    });
    assert_eq!(put(&api, "china", second.clone()).await["calendar"]["version"], 2);

    let listed = api.get("/calendars/retail").await;
    let names: Vec<&Value> = listed["items"].as_array().unwrap().iter().map(|item| &item["name"]).collect();
    assert_eq!(names, ["china", "other"], "{listed}");
    let now = api.get("/calendars/retail/china").await;
    for (field, value) in second.as_object().unwrap() {
        assert_eq!(&now[field], value, "{field} of {now}");
    }
    let old = api.get("/calendars/retail/china?version=1").await;
    assert_eq!((&old["version"], &old["description"]), (&json!(1), &json!("weekends")), "{old}");
    assert_eq!(old["excluded_days"], json!([]));
    for absent in ["/calendars/retail/china?version=3", "/calendars/retail/nowhere", "/calendars/finance/china"] {
        assert_eq!(api.send(Method::GET, absent, None).await.0, 404, "{absent}");
    }
    the_preview_follows_it(&api).await;
    wrong_ones_are_named(&api, &app).await;

    let fields = json!({ "cron": "0 0 9 * * ?", "calendar": "china", "started": false });
    let task = api.make_task(&app, "user", "tick", fields).await;
    let (status, answer) = api.send(Method::DELETE, "/calendars/retail/china", None).await;
    assert!(status == 409 && answer["detail"].as_str().unwrap().contains("user"), "{answer}");
    api.edit(task, json!({ "calendar": "" })).await;
    assert_eq!(api.send(Method::DELETE, "/calendars/retail/china", None).await.0, 204);
    assert_eq!(api.send(Method::GET, "/calendars/retail/china", None).await.0, 404);
    assert_eq!(api.send(Method::DELETE, "/calendars/retail/china", None).await.0, 404);
    assert_eq!(put(&api, "china", json!({})).await["calendar"]["version"], 1, "a new one of the name");
    world.end_well().await;
}

/// Epoch ms of nine o'clock on a day in Shanghai.
fn nine(day: &str) -> i64 {
    let local = format!("{day}T09:00:00+08:00");
    chrono::DateTime::parse_from_rfc3339(&local).unwrap().timestamp_millis()
}

/// The first of October 2027 is a Friday; the ninth, a Saturday, is worked.
async fn the_preview_follows_it(api: &Api) {
    for (rule, expected) in [
        ("skip", ["2027-09-30", "2027-10-04", "2027-10-05"]),
        ("next", ["2027-09-30", "2027-10-04", "2027-10-05"]),
        ("previous", ["2027-09-30", "2027-10-04", "2027-10-05"]),
    ] {
        let body = json!({
            "tenant": "retail", "calendar": "china", "calendar_rule": rule, "cron": "0 0 9 * * ?",
            "time_zone": "Asia/Shanghai", "after": nine("2027-09-30") - 1, "count": 3,
        });
        let lines = api.preview(body).await;
        let fires: Vec<i64> = fires_of(&lines);
        assert_eq!(fires, expected.map(nine), "{rule}: {lines:?}");
    }
    // Only Fridays: they move, or not.
    for (rule, day, kind) in [
        ("skip", "2027-10-08", "calendar_day"),
        ("next", "2027-10-04", "moved_by_calendar"),
        ("previous", "2027-09-30", "moved_by_calendar"),
    ] {
        let body = json!({
            "tenant": "retail", "calendar": "china", "calendar_rule": rule, "cron": "0 0 9 ? * FRI",
            "time_zone": "Asia/Shanghai", "after": nine("2027-09-29"), "count": 2,
        });
        let lines = api.preview(body).await;
        assert_eq!(fires_of(&lines)[0], nine(day), "{rule}: {lines:?}");
        let skipped = lines.iter().find(|line| line["kind"] == "skipped").unwrap_or_else(|| panic!("{lines:?}"));
        assert_eq!((&skipped["reason"], &skipped["fire_time"]), (&json!(kind), &json!(nine("2027-10-01"))), "{rule}");
    }
    let at_night = json!({
        "tenant": "retail", "calendar": "china", "cron": "0 0 5,6 * * ?", "time_zone": "Asia/Shanghai",
        "after": nine("2027-10-03"), "count": 2,
    });
    let lines = api.preview(at_night).await;
    let fires = fires_of(&lines);
    assert_eq!(fires, [nine("2027-10-04") - 3 * 3_600_000, nine("2027-10-05") - 3 * 3_600_000], "{lines:?}");
    assert!(lines.iter().any(|line| line["reason"] == "calendar_hours"), "{lines:?}");
}

fn fires_of(lines: &[Value]) -> Vec<i64> {
    let fires = lines.iter().filter(|line| line["kind"] == "fires");
    fires.map(|line| line["fire_time"].as_i64().unwrap()).collect()
}

async fn wrong_ones_are_named(api: &Api, app: &App) {
    let body = json!({ "excluded_weekdays": ["caturday"], "excluded_days": ["2027-02-30", "12-24"], "excluded_hours": ["9-10"] });
    let body = whole_calendar(body);
    let errors = api.refused(400, Method::PUT, "/calendars/retail/wrong", &body).await;
    let fields: Vec<&str> = errors.iter().map(|(field, _)| field.as_str()).collect();
    assert_eq!(fields, ["excluded_weekdays[0]", "excluded_days[0]", "excluded_hours[0]"], "{errors:?}");
    assert!(errors.iter().all(|(_, message)| message.contains("allowed")), "{errors:?}");
    let unknown = api.refused(400, Method::PUT, "/calendars/retail/wrong", &json!({ "weekends": [] })).await;
    assert_eq!(unknown.first().map(|error| error.0.as_str()), Some("weekends"), "{unknown:?}");
    let missing = api.refused(400, Method::PUT, "/calendars/retail/wrong", &json!({ "workdays": [] })).await;
    let missing: Vec<&str> = missing.iter().map(|(field, _)| field.as_str()).collect();
    assert_eq!(
        missing,
        ["description", "excluded_days", "excluded_hours", "excluded_weekdays"],
        "none is taken for empty"
    );
    assert_eq!(api.send(Method::GET, "/calendars/retail/wrong", None).await.0, 404);
    assert_eq!(api.send(Method::PUT, "/calendars/nobody/any", Some(&whole_calendar(json!({})))).await.0, 404);

    // Of another tenant, or unknown: refused by name, started or not.
    put_finance(api).await;
    let good = api.make_task(app, "good", "tick", json!({ "cron": "0 0 9 * * ?", "started": false })).await;
    for started in [true, false] {
        for name in ["nowhere", "books"] {
            let body = json!({
                "tenant": app.tenant, "app": app.name, "name": "bad", "handler": "tick", "cron": "0 0 9 * * ?",
                "calendar": name, "started": started,
            });
            let errors = api.refused(400, Method::POST, "/tasks", &body).await;
            assert_names(&errors, name);
            let body = json!({ "calendar": name, "started": started });
            let errors = api.refused(400, Method::PATCH, &format!("/tasks/{good}"), &body).await;
            assert_names(&errors, name);
        }
    }
    let body = json!({ "tenant": "retail", "calendar": "nowhere", "cron": "0 0 9 * * ?" });
    let errors = api.refused(400, Method::POST, "/schedules/preview", &body).await;
    assert_names(&errors, "nowhere");
    assert_eq!(api.task(good).await["revision"], 1);
}

fn assert_names(errors: &[(String, String)], calendar: &str) {
    assert!(matches!(errors, [(field, message)] if field == "calendar" && message.contains(calendar)), "{errors:?}");
}

async fn put_finance(api: &Api) {
    api.expect(200, Method::PUT, "/calendars/finance/books", Some(&whole_calendar(json!({})))).await;
}

/// A range of hours around `now_ms` in Tokyo, wide enough for the whole scenario.
fn these_hours() -> String {
    let clock = |at: i64| {
        let local = chrono_tz::Asia::Tokyo.timestamp_millis_opt(at).unwrap();
        format!("{:02}:{:02}", local.hour(), local.minute())
    };
    format!("{}-{}", clock(now_ms() - 3_600_000), clock(now_ms() + 3_600_000))
}

async fn a_new_version_counts_at_once(kind: Kind) {
    let world = World::new(kind).await;
    world.node("a", &[]).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    world.executor("e1", &app).await;
    let hours = these_hours();
    put(&api, "open", json!({ "description": "every hour" })).await;
    put(&api, "closed", json!({ "excluded_hours": [hours] })).await;
    let make = |name: &'static str, calendar: &'static str, zone: &'static str| {
        let fields = json!({ "cron": "* * * * * ?", "calendar": calendar, "time_zone": zone });
        api.make_task(&app, name, "tick", fields)
    };
    let task = make("changing", "open", "Asia/Tokyo").await;
    let resting = make("resting", "closed", "Asia/Tokyo").await;
    let elsewhere = make("elsewhere", "closed", "UTC").await;
    let rate = json!({ "schedule": "fixed_rate", "interval_ms": 1_000, "calendar": "open", "time_zone": "Asia/Tokyo" });
    let rate = api.make_task(&app, "rate", "tick", rate).await;
    world.await_successes(task, 3).await;
    assert_eq!(world.database.logs_of(resting).await, [], "nothing fires in excluded hours");
    let until = now_ms() + 100_000;
    let ahead = world.database.logs_of(task).await.iter().filter(|row| row.fire_time > until).count();
    assert!(ahead > 0, "rows are written ahead");

    // Closed: what was written ahead is revoked.
    let changed = put(&api, "open", json!({ "excluded_hours": [hours] })).await;
    let closed_us = now_us();
    assert_eq!((&changed["calendar"]["version"], &changed["tasks"]), (&json!(2), &json!(2)), "{changed}");
    let rows = world.database.logs(&format!("task_id IN ({task}, {rate}) AND fire_time > {}", closed_us / 1_000)).await;
    assert!(!rows.is_empty());
    assert_all("given up", &rows, |row| row.status == Status::Cancelled && row.reason == "task_edited");
    let elsewhere_now = world.database.logs_of(elsewhere).await.len();
    world.await_successes(elsewhere, elsewhere_now.min(6)).await;
    let late: Vec<_> = world.starts().into_iter().filter(|start| start.started_at_us > closed_us).collect();
    let late: Vec<_> = late.into_iter().filter(|start| start.task == task || start.task == rate).collect();
    assert!(late.is_empty(), "started in excluded hours: {}", sample(&late));

    // Open again: every second from now on.
    put(&api, "open", json!({})).await;
    let opened_at = now_ms();
    let fired = format!("SELECT COUNT(*) FROM task_log WHERE status = 10 AND fire_time > {opened_at} AND task_id = ");
    for task in [task, rate] {
        await_until("it fires again", 40, || async {
            when(world.database.number(&format!("{fired}{task}")).await >= 3)
        })
        .await;
    }
    let until = now_ms() - 2_000;
    let (rows, _) = world.end_well().await;
    let of = |task: i64| -> Vec<LogRow> { rows.iter().filter(|row| row.task == task).cloned().collect() };
    let due = Fires::every(1, &of(task)).between(opened_at + 1, until);
    assert_all("run", &due, |row| row.status == Status::Succeeded);
    assert_eq!(of(resting), [], "nothing fired in excluded hours");
    let anchor = of(rate)[0].fire_time;
    assert_all("on the row of its rate", &of(rate), |row| (row.fire_time - anchor) % 1_000 == 0);
}

async fn a_deleted_tenant_leaves_no_version(kind: Kind) {
    let world = World::new(kind).await;
    world.node("a", &[]).await;
    let api = world.api();
    for tenant in ["retail", "finance"] {
        api.expect(201, Method::POST, "/tenants", Some(&json!({ "name": tenant }))).await;
        for day in ["sat", "sun"] {
            api.put_calendar(&format!("/calendars/{tenant}/work"), json!({ "excluded_weekdays": [day] })).await;
        }
    }
    let versions = "SELECT COUNT(*) FROM calendar_version";
    assert_eq!(world.database.number(versions).await, 4);
    api.expect(204, Method::DELETE, "/tenants/retail", None).await;
    assert_eq!(world.database.number(versions).await, 2, "the other tenant keeps its own");
}
