//! What runs log is read at their executor, in lines that each client counts and ends in its own way.

use super::{Stand, await_runs, by_hand, registered, stand_with};
use carillon_tests::Kind;
use carillon_tests::events::{Event, Events};
use carillon_tests::plain_executor::PlainExecutor;
use serde_json::{Value, json};

scenario!(live_logs_are_read_in_pages: sqlite mariadb postgres);

fn line(number: usize) -> String {
    format!("line {number} äöü€😀")
}

fn lines(count: usize) -> Vec<String> {
    (1..=count).map(line).collect()
}

fn text(count: usize) -> String {
    lines(count).into_iter().map(|line| line + "\n").collect()
}

/// Page by page, as long as there is more; the last page.
async fn whole(stand: &Stand, log: i64, bytes: u32) -> (String, Value) {
    let (mut all, mut offset) = (String::new(), 0);
    loop {
        let page = stand.api.get(&format!("/task-logs/{log}/output?offset={offset}&bytes={bytes}")).await;
        all.push_str(page["text"].as_str().unwrap());
        offset = page["next"].as_u64().unwrap();
        if page["more"] == false {
            return (all, page);
        }
    }
}

async fn live_logs_are_read_in_pages(kind: Kind) {
    let stand = stand_with(kind, &[]).await;
    let executor = registered(&stand).await;
    let task = by_hand(&stand, "talks", json!({})).await;
    // Java, pyxxl (which says that nothing follows whenever all was read), npm (which counts from 0).
    let clients =
        [("Java/17", 1, false), ("Python/3.11", 1, true), ("axios/1.7.4", 0, false), ("axios/1.7.4", 0, true)];
    for (round, (agent, first_line, is_end)) in clients.into_iter().enumerate() {
        executor.script(|script| {
            script.calls_back = None;
            agent.clone_into(&mut script.agent);
            script.lines = None;
            (script.first_line, script.is_end) = (first_line, is_end);
        });
        assert_eq!(executor.register().await["code"], 200);
        let log = stand.api.run(task, None).await;
        let number = await_runs(&executor, "talks", round + 1).await[round];
        let (nothing, page) = whole(&stand, log, 100).await;
        assert_eq!((nothing.as_str(), &page["final"]), ("", &json!(false)), "{agent}: {page}");
        followed(&stand, &executor, log, number, agent).await;
        for bytes in [7, 100, 65_536] {
            let (all, page) = whole(&stand, log, bytes).await;
            assert_eq!((&page["state"], &page["final"]), (&json!("ended"), &json!(true)), "{agent}: {page}");
            assert_eq!(all, text(9), "{agent}, {bytes} bytes a page");
        }
    }
    stand.world.assert_quiet(&[]);
}

/// Follows it while it is written.
async fn followed(stand: &Stand, executor: &PlainExecutor, log: i64, number: i64, agent: &str) {
    executor.script(|script| script.lines = Some(lines(3)));
    let reply = stand.api.open(&format!("/task-logs/{log}/output/stream"), None).await;
    assert_eq!(reply.status().as_u16(), 200);
    let mut events = Events::of(reply);
    let mut said = String::new();
    for count in [3, 6] {
        executor.script(|script| script.lines = Some(lines(count)));
        while said != text(count) {
            add(&mut said, &events.next().await.unwrap_or_else(|| panic!("{agent}: it ends before the run does")));
        }
    }
    executor.script(|script| script.lines = Some(lines(9)));
    assert_eq!(executor.call_back(&[(number, 200, "")]).await["code"], 200);
    let rest = events.rest().await;
    for event in &rest {
        add(&mut said, event);
    }
    assert_eq!(said, text(9), "{agent}");
    let end = rest.last().unwrap();
    assert_eq!((end.kind.as_str(), &end.data["why"]), ("end", &json!("complete")), "{agent}");
}

fn add(said: &mut String, event: &Event) {
    if event.kind == "message" {
        said.push_str(event.data["text"].as_str().unwrap());
    }
}
