//! The coming fires of schedules, saved and not, for the people who make them.

use carillon_tests::{Kind, World, now_ms};
use reqwest::Method;
use serde_json::{Value, json};

scenario!(previews: sqlite mariadb);

fn at(text: &str) -> i64 {
    chrono::DateTime::parse_from_rfc3339(text).unwrap().timestamp_millis()
}

fn fires(lines: &[Value]) -> Vec<i64> {
    let fires = lines.iter().filter(|line| line["kind"] == "fires");
    fires.map(|line| line["fire_time"].as_i64().unwrap()).collect()
}

/// (reason, when) of what is skipped.
fn skipped(lines: &[Value]) -> Vec<(String, i64)> {
    let skipped = lines.iter().filter(|line| line["kind"] == "skipped");
    skipped.map(|line| (line["reason"].as_str().unwrap().to_owned(), line["fire_time"].as_i64().unwrap())).collect()
}

async fn previews(kind: Kind) {
    let world = World::new(kind).await;
    world.node("a", &[("schedulers.time_zone", "Asia/Tokyo")]).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;

    // The clock of New York is put forward on 14 March 2027 at two, and back on 7 November.
    let new_york = |cron: &str, after: &str, more: Value| {
        let mut body = json!({ "cron": cron, "time_zone": "America/New_York", "after": at(after), "count": 2 });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body
    };
    let spring = "2027-03-14T00:00:00-05:00";
    let in_the_gap = at("2027-03-14T03:00:00-04:00");
    for (gap, expected) in [("auto", in_the_gap), ("after", in_the_gap), ("skip", at("2027-03-15T02:30:00-04:00"))] {
        let lines = api.preview(new_york("0 30 2 * * ?", spring, json!({ "dst_gap": gap }))).await;
        assert_eq!(fires(&lines)[0], expected, "{gap}: {lines:?}");
        if gap == "skip" {
            assert_eq!(skipped(&lines), [("dst_gap".to_owned(), in_the_gap)], "{lines:?}");
        } else {
            assert_eq!(lines[0]["note"]["what"], "after_gap", "{lines:?}");
        }
    }
    let autumn = "2027-11-07T00:00:00-04:00";
    let (first, second) = (at("2027-11-07T01:30:00-04:00"), at("2027-11-07T01:30:00-05:00"));
    let next_day = at("2027-11-08T01:30:00-05:00");
    for (overlap, expected, left_out) in [
        ("auto", [first, next_day], Some(("overlap_second_pass", second))),
        ("first", [first, next_day], Some(("overlap_second_pass", second))),
        ("second", [second, next_day], Some(("overlap_first_pass", first))),
        ("both", [first, second], None),
    ] {
        let lines = api.preview(new_york("0 30 1 * * ?", autumn, json!({ "dst_overlap": overlap }))).await;
        assert_eq!(fires(&lines), expected, "{overlap}: {lines:?}");
        let left_out: Vec<_> = left_out.into_iter().map(|(why, when)| (why.to_owned(), when)).collect();
        assert_eq!(skipped(&lines), left_out, "{overlap}: {lines:?}");
    }

    // The node's own zone is the default; every kind of schedule has a preview.
    let lines = api.preview(json!({ "cron": "0 0 9 * * ?", "after": at("2027-05-01T00:00:00+09:00") })).await;
    assert_eq!((lines.len(), fires(&lines)[0]), (10, at("2027-05-01T09:00:00+09:00")), "ten, in Tokyo: {lines:?}");
    assert_eq!(api.preview(json!({ "schedule": "none" })).await, Vec::<Value>::new());
    let later = now_ms() + 86_400_000;
    assert_eq!(fires(&api.preview(json!({ "schedule": "once", "fire_at": later })).await), [later]);
    let body = json!({ "schedule": "fixed_rate", "interval_ms": 60_000, "count": 3 });
    let rate = fires(&api.preview(body).await);
    assert!(rate.len() == 3 && rate[1] - rate[0] == 60_000 && rate[2] - rate[1] == 60_000, "{rate:?}");
    let body = json!({ "schedule": "fixed_delay", "interval_ms": 60_000, "count": 3 });
    assert_eq!(fires(&api.preview(body).await).len(), 1, "only the first is known beforehand");
    let (from, until) = (at("2027-05-02T00:00:00Z"), at("2027-05-04T00:00:00Z"));
    let body = json!({
        "cron": "0 0 12 * * ?", "time_zone": "UTC", "valid_from": "2027-05-02T00:00:00Z",
        "valid_until": "2027-05-04T00:00:00Z", "after": at("2027-05-01T00:00:00Z"), "count": 5,
    });
    let lines = api.preview(body).await;
    assert!(fires(&lines).iter().all(|fire| (from..until).contains(fire)) && fires(&lines).len() == 2, "{lines:?}");
    let reasons: Vec<String> = skipped(&lines).into_iter().map(|(why, _)| why).collect();
    assert_eq!(reasons, ["before_validity", "after_validity"], "{lines:?}");
    let body = json!({ "cron": "* * * * * ?", "jitter_ms": 500, "count": 20 });
    let lines = api.preview(body).await;
    let late: Vec<i64> =
        lines.iter().map(|l| l["due_time"].as_i64().unwrap() - l["fire_time"].as_i64().unwrap()).collect();
    assert!(late.iter().all(|ms| (0..=500).contains(ms)) && late.iter().any(|ms| *ms > 0), "{late:?}");

    // Bounds.
    let body = |count: i64| json!({ "cron": "* * * * * ?", "count": count });
    assert_eq!(api.preview(body(1)).await.len(), 1);
    assert_eq!(api.preview(body(1_000)).await.len(), 1_000);
    assert_eq!(api.preview(json!({ "cron": "* * * * * ?", "max_fires": 4 })).await.len(), 4);
    for wrong in [body(0), body(-1), body(1_001), json!({ "count": "ten" })] {
        let errors = api.refused(400, Method::POST, "/schedules/preview", &wrong).await;
        assert!(
            matches!(&errors[..], [(field, message)] if field == "count" && message.contains("allowed")),
            "{errors:?}"
        );
    }
    for (wrong, field) in [
        (json!({ "cron": "0 0 25 * * ?" }), "cron"),
        (json!({ "cron": "0 0 9 * * ?", "time_zone": "Mars/Olympus" }), "time_zone"),
        (json!({ "schedule": "sometimes" }), "schedule"),
        (json!({ "schedule": "once" }), "fire_at"),
        (json!({ "schedule": "fixed_rate", "interval_ms": 10 }), "interval_ms"),
        (json!({ "cron": "0 0 9 * * ?", "after": "tomorrow" }), "after"),
        (json!({ "cron": "0 0 9 * * ?", "dst_gap": "jump" }), "dst_gap"),
        (json!({ "cron": "0 0 9 * * ?", "tenant": 7 }), "tenant"),
        (json!({ "cronn": "0 0 9 * * ?" }), "cronn"),
    ] {
        let errors = api.refused(400, Method::POST, "/schedules/preview", &wrong).await;
        assert!(errors.len() == 1 && errors[0].0 == field, "{wrong}: {errors:?}");
    }

    // Saved: the task's own instants.
    let fields = json!({ "schedule": "fixed_rate", "interval_ms": 3_600_000, "max_fires": 3, "started": false });
    let task = api.make_task(&app, "saved", "tick", fields).await;
    let stopped = api.get(&format!("/tasks/{task}/preview")).await;
    let reasons = skipped(stopped["items"].as_array().unwrap());
    assert!(reasons.len() == 3 && reasons.iter().all(|(reason, _)| reason == "stopped"), "{stopped}");
    api.start(task).await;
    assert_eq!(fires(api.get(&format!("/tasks/{task}/preview")).await["items"].as_array().unwrap()).len(), 3);
    let shown = api.get(&format!("/tasks/{task}/preview?count=1")).await;
    let next = api.task(task).await["next_fire_at"].as_i64();
    assert_eq!(shown["items"][0]["fire_time"].as_i64(), next, "{shown}");
    assert_eq!(api.send(Method::GET, &format!("/tasks/{task}/preview?count=x"), None).await.0, 400);
    assert_eq!(api.send(Method::GET, "/tasks/1/preview", None).await.0, 404);
    world.end_well().await;
}
