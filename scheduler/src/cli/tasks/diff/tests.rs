use super::*;
use serde_json::json;

fn shown(answer: Value) -> String {
    show(&serde_json::from_value(answer).unwrap(), false)
}

fn task(name: &str, action: &str, changes: &Value) -> Value {
    json!({
        "id": "1", "tenant": "retail", "app": "orders", "name": name, "action": action, "state": "started",
        "changes": changes, "running": [], "unreachable": [],
    })
}

#[test]
fn reads_as_a_diff() {
    let changes = json!([
        { "field": "cron", "before": "0 0 * * * ?", "after": "0 5 * * * ?" },
        { "field": "max_retries", "before": 5, "after": 2 },
        { "field": "pause_note", "before": null, "after": "moving" },
        { "field": "fire_at", "before": 0, "after": 1_798_135_200_000_i64 },
        { "field": "params", "before": "{\n  \"a\": 1,\n  \"b\": 2\n}", "after": "{\n  \"a\": 1,\n  \"b\": 3\n}" },
    ]);
    let answer = json!({
        "dry_run": true, "created": 1, "changed": 1, "unchanged": 12, "elsewhere": 3,
        "tasks": [task("nightly-report", "create", &json!([])), task("hourly", "change", &changes)],
    });
    let expected = "\
+ retail/orders/nightly-report  created, started
~ retail/orders/hourly          5 changes
    cron: \"0 0 * * * ?\" → \"0 5 * * * ?\"
    max_retries: 5 → 2
    pause_note: none → \"moving\"
    fire_at: none → 2026-12-24T18:00:00Z
    params:
      … 2 equal lines
      -   \"b\": 2
      +   \"b\": 3
      … 1 equal line
= 12 unchanged
= 3 for other clusters
dry run: nothing was changed
";
    assert_eq!(shown(answer), expected);
}

#[test]
fn running_and_warning_states_are_reported() {
    let mut hourly = task("hourly", "change", &json!([{ "field": "started", "before": true, "after": false }]));
    hourly["running"] = json!(["7", "8"]);
    hourly["warning"] = json!("it will not fire");
    let answer = json!({ "dry_run": false, "created": 0, "changed": 1, "unchanged": 0, "tasks": [hourly] });
    let expected = "\
~ retail/orders/hourly  1 change
    started: true → false
    ! it will not fire
    ! continues with the old definition: run 7, 8
0 created, 1 changed, 0 unchanged
";
    assert_eq!(shown(answer), expected);
}

#[test]
fn long_texts_are_shown_around_what_differs() {
    let (before, after) = (format!("{}old{}", "a".repeat(200), "b".repeat(200)), "a".repeat(200) + &"b".repeat(200));
    let (left, right) = shortened(&before, &after);
    assert_eq!(left, format!("…\"{}old{}\"…", "a".repeat(AROUND), "b".repeat(AROUND)));
    assert_eq!(right, format!("…\"{}{}\"…", "a".repeat(AROUND), "b".repeat(AROUND)));
    // One that is the beginning of the other.
    let (left, right) = shortened(&"a".repeat(200), &"a".repeat(201));
    assert_eq!((left.len(), right.len()), (AROUND + 5, AROUND + 6));
}

#[test]
fn a_terminal_gets_no_commands() {
    assert_eq!(escaped("a\u{1b}[2J\u{9b}"), "a\\u001b[2J\\u009b");
}
