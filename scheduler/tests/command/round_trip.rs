//! What is exported and applied again is the same, here and elsewhere, in every format.

use super::every_field::every_field;
use super::installation::Installation;
use carillon::domain::task::TaskSpec;
use carillon::domain::task::file::Entry;
use serde_json::{Value, json};

/// Every field and every state, and what a default of an installation could bend.
fn entries() -> Vec<Entry> {
    let plain = |name: &str| TaskSpec { name: name.to_owned(), handler: "echo".to_owned(), ..TaskSpec::default() };
    let entry = |app: &str, spec: TaskSpec, started: bool, pause_note: Option<&str>| Entry {
        at: 0,
        tenant: "retail".to_owned(),
        app: app.to_owned(),
        started,
        pause_note: pause_note.map(str::to_owned),
        spec,
    };
    let resting = TaskSpec { cron: "0 0 0 * * ?".to_owned(), ..plain("a cron that rests") };
    let past = TaskSpec {
        schedule: carillon::domain::task::ScheduleKind::Once,
        fire_at: 1_000_000_000_000,
        retry_on: Vec::new(),
        ..plain("once, long ago")
    };
    vec![
        entry("orders", every_field(), true, None),
        entry("orders", resting, false, None),
        entry("orders", plain("first"), true, None),
        entry("orders", past, true, None),
        entry("orders", plain("paused"), false, Some("until the move\nis done")),
        entry("orders", plain("paused without a word"), false, Some("")),
        entry("other", plain("second"), false, None),
    ]
}

async fn prepare(installation: &Installation) {
    let holidays = json!({
        "excluded_days": ["10-01"], "excluded_weekdays": [], "workdays": [], "excluded_hours": [], "description": "",
    });
    installation.put("/calendars/retail/holidays", &holidays).await;
}

/// What the API shows of a task's definition and state.
async fn definitions(installation: &Installation) -> Vec<(Value, Value, Value, TaskSpec)> {
    let tasks = installation.get("/tasks?limit=500").await;
    let mut definitions: Vec<_> = tasks["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|task| {
            let fields = TaskSpec::field_names().map(|name| (name.to_owned(), task[name].clone()));
            let spec: TaskSpec = serde_json::from_value(fields.collect()).unwrap();
            (task["app"].clone(), task["started"].clone(), task["pause_note"].clone(), spec)
        })
        .collect();
    definitions.sort_by_key(|(app, _, _, spec)| (app.to_string(), spec.name.clone()));
    definitions
}

#[tokio::test]
async fn nothing_is_lost_in_any_format() {
    // Where tasks that name no zone have another one, they keep theirs.
    let shanghai = [("CARILLON__SCHEDULERS__TIME_ZONE", "Asia/Shanghai")];
    let (here, there) = (Installation::new().await, Installation::with(&shanghai).await);
    prepare(&here).await;
    prepare(&there).await;
    let file = json!({ "version": 1, "task": entries().iter().map(Entry::to_fields).collect::<Vec<_>>() });
    here.write("all.json", &file.to_string());
    let out = here.done(&["apply", "-f", "all.json"]);
    assert!(out.ends_with("7 created, 0 changed, 0 unchanged\n"), "{out}");
    assert!(out.contains("+ retail/orders/once, long ago"), "{out}");
    assert!(out.contains("    ! `fire_at` is in the past: the task will not fire\n"), "{out}");

    let made = definitions(&here).await;
    let mut expected = entries();
    expected.sort_by_key(|entry| (entry.app.clone(), entry.spec.name.clone()));
    for ((app, started, note, spec), entry) in made.iter().zip(&expected) {
        assert_eq!(*spec, entry.spec);
        assert_eq!((app, started, note), (&json!(entry.app), &json!(entry.started), &json!(entry.pause_note)));
    }

    for (format, other) in [("toml", "json"), ("yaml", "toml"), ("json", "yaml")] {
        let name = format!("tasks.{format}");
        let text = here.done(&["export", "--format", format]);
        let again = here.tasks(&["export", "-o", &name]);
        assert_eq!((again.code, again.out.as_str()), (0, ""), "{}", again.err);
        assert_eq!(std::fs::read_to_string(here.folder().join(&name)).unwrap(), text);
        let out = here.done(&["apply", "-f", &name, "--dry-run", "--exit-code"]);
        assert_eq!(out, "= 7 unchanged\ndry run: nothing was changed\n", "{text}");
        assert_eq!(here.done(&["apply", "-f", &name]), "= 7 unchanged\n0 created, 0 changed, 7 unchanged\n");

        // Into an empty installation, and back in another format.
        there.write(&name, &text);
        there.done(&["apply", "-f", &name]);
        assert_eq!(definitions(&there).await, made, "{text}");
        assert_eq!(there.done(&["export", "--format", other]), here.done(&["export", "--format", other]));
        for task in there.get("/tasks?limit=500").await["items"].as_array().unwrap() {
            there.delete(&format!("/tasks/{}", task["id"].as_str().unwrap())).await;
        }
        assert_eq!(there.names().await, [""; 0]);
    }
}

#[tokio::test]
async fn an_export_is_ordered_bounded_and_says_nothing_twice() {
    let here = Installation::new().await;
    let file = r#"
version = 1
tenant = "retail"
app = "orders"

[[task]]
name = "b"
handler = "echo"
cron = "0 0 3 * * ?"
params = """
one
two
"""

[[task]]
name = "a"
handler = "echo"
pause_note = "why"
schedule = "once"
fire_at = 2099-12-24T18:00:00+08:00
parents = [{ task = "b" }]

[[task]]
name = "c"
app = "other"
handler = "echo"
started = true
"#;
    here.write("tasks.toml", file);
    here.done(&["apply", "-f", "tasks.toml"]);
    let expected = "\
version = 1
tenant = \"retail\"
app = \"orders\"

[[task]]
name = \"a\"
pause_note = \"why\"
handler = \"echo\"
schedule = \"once\"
time_zone = \"UTC\"
fire_at = \"2099-12-24T10:00:00Z\"

[[task.parents]]
on = \"success\"
task = \"b\"

[[task]]
name = \"b\"
handler = \"echo\"
params = \"\"\"
one
two
\"\"\"
schedule = \"cron\"
cron = \"0 0 3 * * ?\"
time_zone = \"UTC\"
";
    assert_eq!(here.done(&["export", "--tenant", "retail", "--app", "orders"]), expected);
    let yaml = here.done(&["export", "--app", "other", "--format", "yaml"]);
    let expected = "version: 1\napp: other\ntask:\n- tenant: retail\n  name: c\n  started: true\n  handler: echo\n  \
                    time_zone: UTC\n";
    assert_eq!(yaml, expected);
    for (args, expected) in
        [(["--tenant", "retial"], "there is no tenant `retial`"), (["--app", "order"], "there is no app `order`")]
    {
        let err = here.refused(&["export", args[0], args[1]]);
        assert!(err.contains(expected), "{err}");
    }
}

#[tokio::test]
async fn an_export_goes_over_many_pages() {
    let here = Installation::new().await;
    let tasks: Vec<_> = (0..1_203)
        .map(|at| json!({ "name": format!("t{at:05}"), "handler": "echo", "tenant": "retail", "app": "orders" }))
        .collect();
    here.write("many.json", &json!({ "version": 1, "task": tasks }).to_string());
    here.done(&["apply", "-f", "many.json"]);
    let out = here.done(&["export", "--format", "yaml"]);
    let names: Vec<_> = out.lines().filter_map(|line| line.strip_prefix("  name: ")).collect();
    assert_eq!(names.len(), 1_203);
    assert!(names.is_sorted());
    here.write("back.yaml", &out);
    assert!(here.done(&["apply", "-f", "back.yaml"]).starts_with("= 1203 unchanged\n"));
}
