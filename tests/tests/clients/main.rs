//! Executors of xxl-job on published libraries that nobody here wrote, driven through a built node: `./scripts/clients test`
//! builds both and runs these; `./scripts/clients test java_2_5_0` those of one library.
//!
//! Each scenario is the same for all libraries. What differs between them stands in [`Library`], and why in
//! `tests/clients/README.md`.

// A scenario is one long future around the futures of an HTTP client and a database driver.
#![recursion_limit = "256"]
#![allow(clippy::unwrap_used, clippy::expect_used)] // test code

use carillon_tests::plain_executor::open_door;
use carillon_tests::wait::{await_until, when};
use carillon_tests::{Api, App, Client, Kind, Library, LogRow, World};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};

/// `clients!(name: java_2_5_0 go)` makes a test of the function of that name for each of these libraries.
macro_rules! clients {
    ($scenario:ident: $($library:ident)+) => {
        mod $scenario {
            $(#[tokio::test]
            async fn $library() {
                let _cost = carillon_tests::cost::Cost::of_this_test();
                Box::pin(super::$scenario(crate::$library())).await;
            })+
        }
    };
}

mod blocking;
mod ends;
mod runs;
mod scripts;

/// Refuses nothing and hides nothing.
const JAVA: Library =
    Library { name: "java-2.5.0", queues: true, covers: true, lets_runs_end: false, answers_json: false };

fn java_2_2_0() -> Library {
    Library { name: "java-2.2.0", ..JAVA }
}

fn java_2_5_0() -> Library {
    JAVA
}

fn java_3_3_2() -> Library {
    Library { name: "java-3.3.2", lets_runs_end: true, ..JAVA }
}

fn python() -> Library {
    Library { name: "python", lets_runs_end: true, ..JAVA }
}

fn go() -> Library {
    Library { name: "go", queues: false, covers: false, lets_runs_end: true, ..JAVA }
}

fn node() -> Library {
    Library { name: "node", queues: false, covers: false, lets_runs_end: true, answers_json: true }
}

const TOKEN: &str = "a-token-that-nobody-guesses";

/// No schedule: it is run by hand.
const NEVER: &str = "0 0 0 1 1 ? 2099";

/// What is lost is found soon: these clients have nothing to repeat.
const SOON: [(&str, &str); 4] = [
    ("executors.heartbeat_interval", "1s"),
    ("executors.offline_after", "5s"),
    ("executors.plain_patience", "2s"),
    ("schedulers.reap_interval", "500ms"),
];

/// A node, and an app with an open door.
struct Stand {
    world: World,
    api: Api,
    app: App,
    node: String,
    library: Library,
}

impl Stand {
    async fn new(library: Library, settings: &[(&str, &str)]) -> Self {
        let world = World::new(Kind::Sqlite).await;
        let node = world.node("a", settings).await.url;
        let api = world.api();
        let app = api.make_app("retail", "orders").await;
        open_door(&api, &app, TOKEN).await;
        Self { world, api, app, node, library }
    }

    /// A node and an executor that has registered.
    async fn with_client(library: Library) -> (Self, Client) {
        let stand = Self::new(library, &SOON).await;
        let client = stand.client().await;
        (stand, client)
    }

    async fn client(&self) -> Client {
        let client = Client::start(self.library, &self.node, "orders", TOKEN);
        self.await_online(&client, true).await;
        client
    }

    async fn await_online(&self, client: &Client, online: bool) {
        let what = format!("{} is online: {online}", client.process.name());
        await_until(&what, 60, || async {
            assert!(!online || client.process.is_running(), "{}", client.process.log_digest());
            when(self.is_online(client).await == online)
        })
        .await;
    }

    async fn is_online(&self, client: &Client) -> bool {
        let end = format!(":{}", client.port);
        let of =
            |one: &Value| one["address"].as_str().is_some_and(|address| address.replace("/job", "").ends_with(&end));
        self.api.get("/executors").await["items"].as_array().unwrap().iter().any(of)
    }

    /// A task of this handler that is run by hand.
    async fn task(&self, handler: &str, fields: Value) -> i64 {
        static TASKS: AtomicUsize = AtomicUsize::new(1);
        let mut all = json!({ "cron": NEVER, "retry_interval_ms": 500 });
        all.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        let name = format!("{handler} {}", TASKS.fetch_add(1, Ordering::Relaxed));
        self.api.make_task(&self.app, &name, handler, all).await
    }

    async fn run(&self, task: i64) -> i64 {
        self.api.run(task, None).await
    }

    async fn end(&self, log: i64) -> LogRow {
        self.world.await_end(log).await
    }
}
