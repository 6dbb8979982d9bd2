use super::*;
use serde_json::json;

fn read(file: Value) -> TaskFile {
    let Value::Object(file) = file else { panic!("an object is needed") };
    TaskFile::read(&file, &TaskSpec::default(), "shanghai")
}

fn refused(file: Value) -> Vec<String> {
    read(file).refused.iter().map(ToString::to_string).collect()
}

#[test]
fn entries_inherit_tenant_and_app() {
    let file = read(json!({ "version": 1, "tenant": "retail", "app": "orders", "task": [
        { "name": "a", "handler": "h", "started": true },
        { "name": "a", "handler": "h", "app": "other", "pause_note": "moving" },
    ]}));
    assert_eq!(file.refused, []);
    let names: Vec<_> = file.entries.iter().map(Entry::full_name).collect();
    assert_eq!(names, ["retail/orders/a", "retail/other/a"]);
    let [first, second] = &file.entries[..] else { panic!("two entries") };
    assert_eq!((first.started, &first.pause_note), (true, &None));
    assert_eq!((second.started, second.pause_note.as_deref()), (false, Some("moving")));
}

#[test]
fn entries_for_other_clusters_are_left_out() {
    let file = json!({ "version": 1, "tenant": "retail", "app": "orders", "clusters": ["beijing", "shanghai"], "task": [
        { "name": "a", "handler": "h" },
        { "name": "b", "handler": "h", "clusters": ["beijing"] },
        { "name": "b", "handler": "h", "clusters": ["shanghai"] },
        { "name": "c", "handler": 7, "clusters": ["Shanghai"] },
    ]});
    let here = read(file.clone());
    assert_eq!((here.refused, here.elsewhere), (Vec::new(), 2));
    let names: Vec<_> = here.entries.iter().map(|entry| (entry.at, entry.full_name())).collect();
    assert_eq!(names, [(0, "retail/orders/a".to_owned()), (2, "retail/orders/b".to_owned())]);
    let Value::Object(file) = file else { panic!("an object") };
    let unnamed = TaskFile::read(&file, &TaskSpec::default(), "");
    let refused: Vec<_> = unnamed.refused.iter().map(|refused| refused.field.as_str()).collect();
    let clusters = [0, 1, 2, 3].map(|at| format!("task[{at}].clusters"));
    assert!(clusters.iter().all(|field| refused.contains(&field.as_str())), "{refused:?}");
    for bad in [json!("beijing"), json!([]), json!([7]), json!([""]), json!(null)] {
        let task = json!({ "name": "a", "handler": "h", "clusters": bad });
        let got = refused_of(&task);
        assert!(got.len() == 1 && got[0].contains("task[0].clusters: retail/orders/a: a list of names"), "{got:?}");
    }
}

fn refused_of(task: &Value) -> Vec<String> {
    refused(json!({ "version": 1, "tenant": "retail", "app": "orders", "task": [task] }))
}

#[test]
fn everything_wrong_is_named_at_once() {
    let got =
        refused(json!({ "version": 2, "tenants": "retail", "cron": "x", "tenant": "retail", "app": "orders", "task": [
            { "name": "a", "handler": "h", "retry_interval_ms": -1, "started": 1 },
            { "name": "a", "handler": "h" },
            { "name": "b", "pause_note": "why", "started": true, "handler": "h", "cron": "0 0 25 * * ?" },
            7,
            { "handler": "h", "tenant": null },
        ]}));
    let expected = [
        "cron: is a field of a task: it belongs in an entry of `task`",
        "tenants: there is no such field; did you mean `tenant`?",
        "version: 2 is not supported; 1 is",
        "task[0].started: retail/orders/a: true or false is allowed, not 1",
        "task[0].retry_interval_ms: retail/orders/a: 0 to 2592000000 ms are allowed",
        "task[1].name: retail/orders/a: is already in the file, as task[0]",
        "task[2].pause_note: retail/orders/b: not allowed together with `started`",
        "task[2].cron: retail/orders/b: hour (column 5): 25 is not between 0 and 23; allowed: 0-23 and * , - /",
        "task[3]: a table of fields is allowed, not 7",
        "task[4].tenant: text (in quotes) is allowed, not null",
        "task[4].name: is required",
    ];
    assert_eq!(got, expected, "{got:#?}");
}

#[test]
fn a_file_is_bounded_and_versioned() {
    assert_eq!(refused(json!({})), ["version: is required: `version = 1`"]);
    assert_eq!(refused(json!({ "version": 1 })), [""; 0]);
    let many = vec![json!({}); TASKS_MAX + 1];
    let got = refused(json!({ "version": 1, "task": many }));
    assert_eq!(got, ["task: 5001 tasks; at most 5000 are allowed in one file: split it"]);
}

#[test]
fn what_is_written_reads_as_the_same() {
    let spec = |spec: TaskSpec| TaskSpec { name: "a".to_owned(), handler: "h".to_owned(), ..spec };
    let resting = TaskSpec { cron: "0 0 0 * * ?".to_owned(), ..TaskSpec::default() };
    let once =
        TaskSpec { schedule: ScheduleKind::Once, fire_at: 1_798_135_200_001, valid_from: -1, ..TaskSpec::default() };
    for (spec, note) in [(spec(TaskSpec::default()), None), (spec(resting), Some("why")), (spec(once), None)] {
        let spec = TaskSpec { valid_from: spec.valid_from.max(0), ..spec };
        let entry = Entry {
            at: 0,
            tenant: "t".to_owned(),
            app: "x".to_owned(),
            started: note.is_none(),
            pause_note: note.map(str::to_owned),
            spec,
        };
        // Also where tasks without a zone have another one.
        let defaults = TaskSpec { time_zone: "Asia/Shanghai".to_owned(), ..TaskSpec::default() };
        let file = json!({ "version": 1, "task": [entry.to_fields()] });
        let Value::Object(file) = file else { panic!("an object is needed") };
        assert_eq!(TaskFile::read(&file, &defaults, ""), TaskFile { entries: vec![entry], ..TaskFile::default() });
    }
}

#[test]
fn instants_are_readable() {
    assert_eq!(instant_text(&json!(1_798_135_200_000_i64)), json!("2026-12-24T18:00:00Z"));
    assert_eq!(instant_text(&json!(1_798_135_200_001_i64)), json!("2026-12-24T18:00:00.001Z"));
    assert_eq!(instant_text(&json!(0)), json!(0));
}

#[test]
fn a_parent_of_the_same_app_has_one_name() {
    let file = read(json!({ "version": 1, "tenant": "t", "app": "x", "task": [
        { "name": "a", "handler": "h", "parents": [{ "task": "x/b" }, { "task": "xy/b" }] },
    ]}));
    let parents: Vec<_> = file.entries[0].spec.parents.iter().map(|link| link.task.as_str()).collect();
    assert_eq!(parents, ["b", "xy/b"]);
}
