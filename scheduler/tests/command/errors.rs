//! What is wrong is named with its place, and changes nothing.

use super::installation::{Installation, TOKEN};
use serde_json::json;
use std::os::unix::fs::PermissionsExt as _;

const HEAD: &str = "version = 1\ntenant = \"retail\"\napp = \"orders\"\n";

#[tokio::test]
async fn one_bad_task_among_three_changes_nothing() {
    let here = Installation::new().await;
    let file = r#"
[[task]]
name = "good"
handler = "h"

[[task]]
name = "bad"
handler = "h"
retry_intervall_ms = 5
retry_interval_ms = -5
cron = "0 0 25 * * ?"
routing = "randm"

[[task]]
name = "good too"
handler = "h"
"#;
    here.write("tasks.toml", &format!("{HEAD}{file}"));
    for args in [&["apply", "-f", "tasks.toml"][..], &["apply", "-f", "tasks.toml", "--dry-run"]] {
        let err = here.refused(args);
        let mut lines = err.lines();
        assert_eq!(lines.next(), Some("carillon: tasks.toml is refused: fields in error: 4; nothing was changed"));
        for (line, expected) in lines.zip([
            "retry_intervall_ms: retail/orders/bad: there is no such field; did you mean `retry_interval_ms`?",
            "routing: retail/orders/bad: `randm` is not allowed; `random`, `first`, `last`, `round`,",
            "cron: retail/orders/bad: hour (column 5): 25 is not between 0 and 23; allowed: 0-23 and * , - /",
            "retry_interval_ms: retail/orders/bad: 0 to 2592000000 ms are allowed",
        ]) {
            assert!(line.starts_with(&format!("  tasks.toml:9: task[1].{expected}")), "{line}");
        }
        assert_eq!(err.lines().count(), 5, "{err}");
        assert_eq!(here.names().await, [""; 0]);
    }
}

#[tokio::test]
async fn the_nodes_checks_apply_to_a_dry_run_too() {
    let here = Installation::new().await;
    here.post("/tasks", &json!({ "tenant": "retail", "app": "other", "name": "old", "handler": "h" })).await;
    let first = here.write("first.toml", &format!("{HEAD}[[task]]\nname = \"a\"\nhandler = \"h\"\n"));
    here.done(&["apply", "-f", first.to_str().unwrap()]);
    let yaml = r"
version: 1
tenant: retail
app: orders
task:
  - { name: a, handler: h, parents: [{ task: c }] }
  - { name: b, handler: h, parents: [{ task: orders/a }, { task: other/old }] }
  - { name: c, handler: h, parents: [{ task: b }, { task: nobody }, { task: other/nobody }] }
  - { name: d, handler: h, tenant: retial }
  - { name: e, handler: h, tenant: retial }
  - { name: f, handler: h, app: ordres }
  - { name: g, handler: h, calendar: holidays, started: true }
";
    here.write("tasks.yaml", yaml);
    let expected = "\
carillon: tasks.yaml is refused: fields in error: 6; nothing was changed
  tasks.yaml:11: task[5].app: retail/ordres/f: tenant `retail` has no app `ordres`; create it first (tasks of the file that name it: 1)
  tasks.yaml:9: task[3].tenant: retial/orders/d: there is no tenant `retial`; create it first (tasks of the file that name it: 2)
  tasks.yaml:12: task[6].calendar: retail/orders/g: tenant `retail` has no calendar `holidays`
  tasks.yaml:8: task[2].parents[1].task: retail/orders/c: there is no task `nobody`, and none in the file
  tasks.yaml:8: task[2].parents[2].task: retail/orders/c: there is no task `other/nobody`, and none in the file
  tasks.yaml:6: task[0].parents: retail/orders/a: a task cannot follow itself: a after c after b after a
";
    for args in [&["apply", "-f", "tasks.yaml", "--dry-run"][..], &["apply", "-f", "tasks.yaml"]] {
        assert_eq!(here.refused(args), expected);
        assert_eq!(here.names().await, ["a", "old"]);
    }
}

#[tokio::test]
async fn a_cycle_over_tasks_outside_the_file_is_seen() {
    let here = Installation::new().await;
    let task =
        |name: &str, parent: &str| format!("[[task]]\nname = \"{name}\"\nhandler = \"h\"\nparents = [{parent}]\n");
    here.write("one.toml", &format!("{HEAD}{}{}", task("b", "{ task = \"a\" }"), task("a", "")));
    here.done(&["apply", "-f", "one.toml"]);
    here.write("two.toml", &format!("{HEAD}{}", task("a", "{ task = \"b\" }")));
    let err = here.refused(&["apply", "-f", "two.toml", "--dry-run"]);
    assert!(err.contains("task[0].parents: retail/orders/a: a task cannot follow itself: a after b after a"), "{err}");
    // Two tasks may change places in one file.
    here.write("three.toml", &format!("{HEAD}{}{}", task("a", "{ task = \"b\" }"), task("b", "")));
    assert!(here.done(&["apply", "-f", "three.toml"]).ends_with("0 created, 2 changed, 0 unchanged\n"));
}

#[tokio::test]
async fn syntax_names_and_sizes() {
    let here = Installation::new().await;
    for (name, text, expected) in [
        ("a.toml", "version = 1\n[[task]]\nname = hourly\n", "carillon: a.toml is not TOML; nothing was changed\n"),
        ("a.toml", "version = 1\n[[task]]\nname = hourly\n", "line 3, column 8"),
        ("a.yaml", "version: 1\ntask:\n  - cron: * * * * * ?\n", "line 3 column 11"),
        ("a.json", "{\"version\": 1,\n \"task\": [}\n", "line 2 column 11"),
        ("a.txt", "", ".toml, .yaml, .yml and .json are known; name the format with --format"),
        ("a.toml", "", "a.toml: version: is required: `version = 1`"),
        ("a.toml", "version = 1\ntasks = []", "a.toml: tasks: there is no such field; did you mean `task`?"),
    ] {
        here.write(name, text);
        let err = here.refused(&["apply", "-f", name]);
        assert!(err.contains(expected), "{err}");
    }
    assert!(here.refused(&["apply", "-f", "none.toml"]).contains("none.toml cannot be read: No such file"));
    here.write("large.toml", &"#".repeat(8 * 1024 * 1024 + 1));
    let err = here.refused(&["apply", "-f", "large.toml"]);
    assert!(err.contains("large.toml is larger than 8388608 bytes (8 MiB); split it"), "{err}");
    let tasks = "[[task]]\n".repeat(5_001);
    here.write("many.toml", &format!("{HEAD}{tasks}"));
    let err = here.refused(&["apply", "-f", "many.toml"]);
    assert!(err.contains("task: 5001 tasks; at most 5000 are allowed in one file: split it"), "{err}");
    assert_eq!(here.tasks(&["apply"]).code, 2);
    assert_eq!(here.tasks(&["apply", "-f", "a.toml", "--exit-code"]).code, 2);
}

#[tokio::test]
async fn tokens_and_nodes() {
    let here = Installation::new().await;
    here.write("a.toml", HEAD);
    here.write("token", "not-the-token\n");
    here.write("good", &format!("{TOKEN}\n"));
    here.write("binary", "\u{1}\u{2}");
    let run = |more: &[&str], variables: &[(&str, &str)]| {
        let ran = here.tasks_with(&[&["apply", "-f", "a.toml"], more].concat(), "", variables);
        (ran.code, ran.err)
    };
    assert_eq!(run(&["--token-file", "good"], &[]).0, 0);
    assert_eq!(run(&[], &[("CARILLON_TOKEN", TOKEN)]).0, 0);
    // The file goes before the variable.
    assert_eq!(run(&["--token-file", "good"], &[("CARILLON_TOKEN", "wrong")]).0, 0);
    let unused = format!(
        "http://127.0.0.1:{}",
        std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
    );
    let login = format!("carillon login --url {}", here.url);
    for (more, variables, expected, code) in [
        (&[][..], &[][..], format!("not signed in at {}: {login} (or give a token", here.url), 4),
        (
            &["--token-file", "token"],
            &[],
            "refuses the token of token; provide a valid one (--token-file, CARILLON_TOKEN)".to_owned(),
            4,
        ),
        (&[], &[("CARILLON_TOKEN", "wrong")], "refuses the token of CARILLON_TOKEN;".to_owned(), 4),
        (&["--token-file", "none"], &[], "the token file none cannot be read (--token-file)".to_owned(), 1),
        (&["--token-file", "binary"], &[], "binary does not hold an API token".to_owned(), 1),
        (&["--url", &unused], &[], "no node answers at http://127.0.0.1:".to_owned(), 5),
        (&["--url", "ftp://x"], &[], "`ftp://x` is not the address of a node; use http://host:port".to_owned(), 1),
    ] {
        let (is, err) = run(more, variables);
        assert_eq!(is, code, "{err}");
        assert!(err.contains(&expected), "{err}");
    }
}

#[tokio::test]
async fn a_token_file_that_others_can_read_is_warned_of() {
    let here = Installation::new().await;
    here.write("a.toml", HEAD);
    let file = here.write("token", &format!("{TOKEN}\n"));
    for (mode, is_warned) in [(0o600, false), (0o400, false), (0o644, true), (0o640, true), (0o604, true)] {
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
        let ran = here.tasks_with(&["apply", "-f", "a.toml", "--token-file", "token"], "", &[]);
        assert_eq!(ran.code, 0, "{mode:o}: {}", ran.err);
        let warning = "warning: other users of this machine can read the token file token: chmod 600 it\n";
        assert_eq!(ran.err.contains(warning), is_warned, "{mode:o}: {}", ran.err);
    }
}

/// A server that is not a node is not mistaken for one that refuses.
#[tokio::test]
async fn another_server() {
    let here = Installation::new().await;
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let served = std::thread::spawn(move || {
        for answer in
            ["HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi", "HTTP/1.1 404 No\r\ncontent-length: 0\r\n\r\n", ""]
        {
            let (mut stream, _) = listener.accept().unwrap();
            let mut head = [0; 4_096];
            assert!(std::io::Read::read(&mut stream, &mut head).unwrap() > 0);
            std::io::Write::write_all(&mut stream, answer.as_bytes()).unwrap();
        }
    });
    for expected in
        ["is not a carillon node (200 OK)", "is not a carillon node (404 Not Found)", "closed the connection"]
    {
        let ran = here.fails(&["nodes", "list", "--url", &url]);
        assert!(ran.code == 5 && ran.err.contains(expected), "{}", ran.err);
    }
    served.join().unwrap();
}
