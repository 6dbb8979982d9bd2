//! Executors that speak xxl-job's protocol, here scripted ones.

use carillon_tests::fires::assert_all;
use carillon_tests::plain_executor::{OnRun, PlainExecutor, await_door, open_door, tell};
use carillon_tests::wait::{await_until, when};
use carillon_tests::{Api, App, Fires, Kind, LogRow, Outage, Status, World, now_ms, pass};
use serde_json::{Value, json};
use std::collections::HashSet;

scenario!(runs_come_on_the_instant_and_callbacks_end_them: sqlite mariadb postgres);
scenario!(a_failure_is_tried_again_under_another_number: sqlite mariadb);
scenario!(a_run_whose_answer_is_lost_is_sent_once: sqlite mariadb);
scenario!(what_has_no_handler_there_goes_to_another: sqlite postgres);
scenario!(who_leaves_gets_nothing_more: sqlite mariadb);
scenario!(the_door_is_off_without_a_token: sqlite mariadb);
scenario!(callbacks_of_others_change_nothing: sqlite postgres);
scenario!(a_callback_that_cannot_be_written_is_not_refused: sqlite mariadb);

mod asking;
mod libraries;
mod logs;
mod refused;
mod scripts;
mod stops;

const TOKEN: &str = "a-token-that-nobody-guesses";

/// No schedule: it is run by hand.
const NEVER: &str = "0 0 0 1 1 ? 2099";

struct Stand {
    world: World,
    api: Api,
    app: App,
}

async fn stand(kind: Kind) -> Stand {
    stand_with(kind, &[]).await
}

async fn stand_with(kind: Kind, settings: &[(&str, &str)]) -> Stand {
    let world = World::new(kind).await;
    world.nodes(settings).await;
    stand_in(world).await
}

async fn stand_in(world: World) -> Stand {
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    open_door(&api, &app, TOKEN).await;
    Stand { world, api, app }
}

async fn registered(stand: &Stand) -> PlainExecutor {
    let executor = PlainExecutor::start("orders", TOKEN, &stand.world.node_urls()).await;
    assert_eq!(executor.register().await["code"], 200);
    executor
}

async fn every_second(stand: &Stand, fields: Value) -> i64 {
    let mut all = json!({ "cron": "* * * * * ?" });
    all.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    stand.api.make_task(&stand.app, "plain", "demo", all).await
}

/// A task that is run by hand, its handler called as itself.
async fn by_hand(stand: &Stand, name: &str, fields: Value) -> i64 {
    let mut all = json!({ "cron": NEVER });
    all.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    stand.api.make_task(&stand.app, name, name, all).await
}

/// Waits until so many runs of that handler have come; their numbers.
async fn await_runs(executor: &PlainExecutor, handler: &str, count: usize) -> Vec<i64> {
    await_until(&format!("{count} runs of {handler} have come"), 60, || async {
        Some(executor.runs_of(handler)).filter(|runs| runs.len() >= count)
    })
    .await
}

async fn rows_of(stand: &Stand, task: i64) -> Vec<LogRow> {
    stand.world.settle().await;
    stand.world.database.logs(&format!("task_id = {task}")).await
}

async fn runs_come_on_the_instant_and_callbacks_end_them(kind: Kind) {
    let stand = stand(kind).await;
    let executor = registered(&stand).await;
    executor.script(|script| script.calls_back = Some((200, "the output".to_owned())));
    let task = every_second(&stand, json!({ "params": "x=1", "timeout_ms": 2_500 })).await;
    let made_at = now_ms();
    pass(8.0).await;
    let until = now_ms() - 2_000;
    stand.api.stop(task).await;
    let rows = rows_of(&stand, task).await;
    let fires = Fires::every(1, &rows).assert_no_gap().between(made_at + 2_000, until);
    assert!(fires.len() >= 3, "{fires:?}");
    assert_all("succeeded at the first attempt", &fires, |row| {
        row.status == Status::Succeeded && row.attempt == 1 && row.output == "the output"
    });
    let runs = executor.got("/run");
    let numbers: HashSet<i64> = runs.iter().map(|run| run.body["logId"].as_i64().unwrap()).collect();
    assert_eq!(numbers.len(), runs.len(), "each run comes once");
    for run in &runs {
        assert_eq!(run.token, TOKEN);
        assert_eq!((&run.body["executorHandler"], &run.body["executorParams"]), (&json!("demo"), &json!("x=1")));
        assert_eq!((&run.body["executorTimeout"], &run.body["glueType"]), (&json!(3), &json!("BEAN")));
        assert!(run.body["logId"].as_i64().unwrap() < 1 << 53);
        // All of one clock: this machine's. Each comes at a whole second, and not before.
        assert!(run.at % 1_000 < 900, "at {}", run.at);
    }
}

async fn a_failure_is_tried_again_under_another_number(kind: Kind) {
    let stand = stand(kind).await;
    let executor = registered(&stand).await;
    executor.script(|script| script.calls_back = Some((500, "no".to_owned())));
    let fields = json!({ "cron": "0 0 0 1 1 ? 2099", "max_retries": 1, "retry_interval_ms": 1_000 });
    let task = stand.api.make_task(&stand.app, "fails", "demo", fields).await;
    let log = stand.api.run(task, None).await;
    await_until("it is tried again", 60, || async { when(executor.got("/run").len() == 2) }).await;
    let rows = rows_of(&stand, task).await;
    let row = rows.iter().find(|row| row.id == log).unwrap();
    assert_eq!((row.status, row.attempt, row.message.as_str()), (Status::Failed, 2, "no"));
    let numbers: Vec<i64> = executor.got("/run").iter().map(|run| run.body["logId"].as_i64().unwrap()).collect();
    assert_ne!(numbers[0], numbers[1]);
    assert!(numbers.iter().all(|number| (1..1 << 53).contains(number)));
}

/// X6: what may have arrived is not sent again, to whomever.
async fn a_run_whose_answer_is_lost_is_sent_once(kind: Kind) {
    let stand = stand(kind).await;
    let (executor, other) = (registered(&stand).await, registered(&stand).await);
    let fields = json!({ "cron": "0 0 0 1 1 ? 2099", "routing": "first" });
    let task = stand.api.make_task(&stand.app, "lost answer", "demo", fields).await;
    for on_run in [OnRun::Drop, OnRun::Hang] {
        for one in [&executor, &other] {
            one.script(|script| script.on_run = on_run.clone());
        }
        let before = executor.got("/run").len() + other.got("/run").len();
        let log = stand.api.run(task, None).await;
        await_until("its callback ends it", 60, || async { when(stand.api.log(log).await["status"] == "succeeded") })
            .await;
        let after = executor.got("/run").len() + other.got("/run").len();
        assert_eq!(after - before, 1, "{on_run:?}");
    }
}

async fn what_has_no_handler_there_goes_to_another(kind: Kind) {
    let stand = stand(kind).await;
    let (lacks, has) = (registered(&stand).await, registered(&stand).await);
    lacks.script(|script| script.on_run = OnRun::Refuse("job handler [demo] not found.".to_owned()));
    let fields = json!({ "cron": "0 0 0 1 1 ? 2099", "routing": "round" });
    let task = stand.api.make_task(&stand.app, "somewhere", "demo", fields).await;
    for _ in 0..4 {
        stand.api.run(task, None).await;
    }
    await_until("the other one has all", 60, || async { when(has.got("/run").len() == 4) }).await;
    assert!(!lacks.got("/run").is_empty(), "it was asked");
    assert_all("succeeded", &rows_of(&stand, task).await, |row| row.status == Status::Succeeded);
}

async fn who_leaves_gets_nothing_more(kind: Kind) {
    let stand = stand(kind).await;
    let (leaves, stays) = (registered(&stand).await, registered(&stand).await);
    let task = every_second(&stand, json!({ "routing": "round" })).await;
    await_until("both run", 60, || async { when(!leaves.got("/run").is_empty() && !stays.got("/run").is_empty()) })
        .await;
    assert_eq!(leaves.remove().await["code"], 200);
    let before = leaves.got("/run").len();
    pass(4.0).await;
    stand.api.stop(task).await;
    assert!(leaves.got("/run").len() <= before + 1, "what was on its way");
    assert_all("succeeded", &rows_of(&stand, task).await, |row| {
        row.status == Status::Succeeded || row.status == Status::Cancelled
    });
}

async fn the_door_is_off_without_a_token(kind: Kind) {
    let world = World::new(kind).await;
    let node = world.node("a", &[]).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    let body = json!({ "registryGroup": "EXECUTOR", "registryKey": "orders", "registryValue": "http://127.0.0.1:9/" });
    let said = async |token: &str| tell(&node.url, "registry", token, &body).await.unwrap();
    for token in ["", "default_token", TOKEN, &app.key.secret] {
        let answer = said(token).await;
        assert_eq!((&answer["code"], &answer["msg"]), (&json!(500), &json!("The access token is wrong.")), "{token}");
    }
    open_door(&api, &app, TOKEN).await;
    assert_eq!(said(TOKEN).await["code"], 200);
    for (change, why) in [
        (json!({ "registryKey": "stocks" }), "the token is of no app `stocks`"),
        (json!({ "registryValue": "http://169.254.169.254:80/" }), "never executors"),
        (json!({ "registryValue": "http://127.0.0.1:9/xxl?x=1" }), "without a query"),
        (json!({ "registryGroup": "ADMIN" }), ""),
        (json!({ "registryValue": node.url }), "a node of this cluster listens there"),
    ] {
        let mut other = body.clone();
        other.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        let answer = tell(&node.url, "registry", TOKEN, &other).await.unwrap();
        assert_eq!(answer["code"], 500, "{change}");
        assert!(answer["msg"].as_str().unwrap().contains(why), "{answer}");
    }
    assert_eq!(world.database.number("SELECT COUNT(*) FROM executor").await, 1);
}

async fn callbacks_of_others_change_nothing(kind: Kind) {
    let stand = stand(kind).await;
    let executor = registered(&stand).await;
    executor.script(|script| script.calls_back = None);
    let others = stand.api.make_app("wholesale", "orders").await;
    open_door(&stand.api, &others, "another-token-that-nobody-guesses").await;
    await_door(&stand.world.node_urls(), "another-token-that-nobody-guesses").await;
    let stranger = PlainExecutor::start("orders", "another-token-that-nobody-guesses", &stand.world.node_urls()).await;
    let fields = json!({ "cron": "0 0 0 1 1 ? 2099" });
    let task = stand.api.make_task(&stand.app, "mine", "demo", fields).await;
    let log = stand.api.run(task, None).await;
    await_until("it is sent", 60, || async { when(!executor.got("/run").is_empty()) }).await;
    let number = executor.got("/run")[0].body["logId"].as_i64().unwrap();
    assert_eq!(stranger.call_back(&[(number, 200, "")]).await["code"], 200, "it would be repeated for ever");
    let long_ago = number - (120_000 << 22);
    assert_eq!(executor.call_back(&[(long_ago, 200, ""), (-7, 200, "")]).await["code"], 200);
    pass(1.0).await;
    assert_eq!(stand.api.log(log).await["status"], "dispatched");
    assert_eq!(executor.call_back(&[(number, 200, "well")]).await["code"], 200);
    await_until("its own ends it", 60, || async { when(stand.api.log(log).await["status"] == "succeeded") }).await;
    assert_eq!(executor.call_back(&[(number, 200, "well")]).await["code"], 200, "once more");
    assert_eq!(executor.call_back(&[(number, 500, "late")]).await["code"], 200);
    assert_eq!(stand.api.log(log).await["status"], "succeeded");
}

/// Some clients take a refusal for the failure of the run.
async fn a_callback_that_cannot_be_written_is_not_refused(kind: Kind) {
    let world = World::private(kind).await;
    let node = world.node("a", &[]).await;
    let stand = stand_in(world).await;
    let executor = registered(&stand).await;
    executor.script(|script| script.calls_back = None);
    let fields = json!({ "cron": "0 0 0 1 1 ? 2099" });
    let task = stand.api.make_task(&stand.app, "away", "demo", fields).await;
    let log = stand.api.run(task, None).await;
    await_until("it is sent", 60, || async { when(!executor.got("/run").is_empty()) }).await;
    let number = executor.got("/run")[0].body["logId"].as_i64().unwrap();
    let outage = Outage::begin(&stand.world.database).await;
    let item = json!([{ "logId": number, "logDateTim": now_ms(), "handleCode": 200, "handleMsg": "well" }]);
    let said = tell(&node.url, "callback", TOKEN, &item).await;
    outage.end().await;
    assert!(said.is_err(), "it was answered: {said:?}");
    await_until("it is taken", 60, || async {
        when(tell(&node.url, "callback", TOKEN, &item).await.is_ok_and(|said| said["code"] == 200))
    })
    .await;
    await_until("it has ended", 60, || async { when(stand.api.log(log).await["status"] == "succeeded") }).await;
}
