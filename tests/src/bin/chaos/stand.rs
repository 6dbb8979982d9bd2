//! Three nodes, three executors, and the database, each reached by ways that can break.

use crate::client::Client;
use crate::host::Host;
use crate::links::{Hop, Link};
use crate::options::Engine;
use crate::origin;
use crate::plan::{EXECUTORS, NODES, Target};
use crate::servers::Servers;
use crate::story::Story;
use anyhow::{Context as _, Result, ensure};
use carillon_protocol::sign::Key;
use carillon_tests::node::{TOKEN, configure};
use carillon_tests::proxy::{Fork, Speech, Way};
use carillon_tests::{App, Database, command, port};
use reqwest::Method;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::MutexGuard;

/// How long everything may take to be ready at first.
const READY_MAX: Duration = Duration::from_secs(90);

/// How long running handlers may finish when an executor is stopped.
const DRAIN_MS: u64 = 20_000;

/// After so long without a node an executor stops its handlers; some of them take longer, and some faults do.
const ABANDON_AFTER: &str = "20s";

/// A node, and its way to the database.
pub struct NodeSite {
    /// The process.
    pub host: Arc<Host>,
    /// Where it listens.
    port: u16,
    /// How it finds its database.
    pub database: Way,
}

/// An executor, and its address.
pub struct ExecutorSite {
    /// The process.
    pub host: Host,
    /// Where nodes find it.
    pub address: Fork,
    /// To and from each node.
    pub links: Vec<Link>,
}

/// Everything that runs.
pub struct Stand {
    /// Told what happens.
    pub story: Story,
    /// The database servers.
    pub servers: Servers,
    /// The nodes.
    pub nodes: Vec<NodeSite>,
    /// The executors.
    pub executors: Vec<ExecutorSite>,
    /// The nodes' API, reached directly.
    pub client: Client,
}

/// The tenants and their apps.
pub const TENANTS: [&str; 2] = ["north", "south"];

/// The executors of each tenant.
const TENANT_OF: [usize; EXECUTORS] = [0, 0, 1];

/// This executor says that its address is its own: a node that is refused there takes it for dead at once.
const OWN_ADDRESS: usize = 0;

impl Stand {
    /// Raises it, and waits until executors are registered.
    pub async fn raise(engine: Engine, story: &Story) -> Result<Self> {
        let servers = Servers::start(engine).await;
        let ports: Vec<u16> = (0..NODES).map(|_| port::free()).collect();
        let mut nodes = Vec::new();
        for (number, port) in ports.iter().enumerate() {
            nodes.push(node(engine, story, servers.of_node(number), number, *port).await?);
        }
        let urls = ports.iter().map(|port| format!("http://127.0.0.1:{port}")).collect();
        let client = Client::of(urls)?;
        let mut stand = Self { story: story.clone(), servers, nodes, executors: Vec::new(), client };
        // The first brings the schema, alone.
        for (number, node) in stand.nodes.iter().enumerate() {
            node.host.start();
            stand.await_node(number).await?;
        }
        let mut apps = Vec::new();
        for tenant in TENANTS {
            apps.push(stand.make_app(tenant).await?);
        }
        for (number, tenant) in TENANT_OF.into_iter().enumerate() {
            let executor = executor(&stand, number, &apps[tenant]).await?;
            executor.host.start();
            stand.executors.push(executor);
        }
        stand.await_executors().await?;
        Ok(stand)
    }

    async fn await_node(&self, number: usize) -> Result<()> {
        let began = Instant::now();
        while !matches!(self.client.once(number, Method::GET, "/tenants", None).await, Ok((200, _))) {
            ensure!(began.elapsed() < READY_MAX, "node {number} is not ready within {READY_MAX:?}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        Ok(())
    }

    /// The number of the tenant whose each is, by its name.
    pub fn tenants_of_executors(&self) -> BTreeMap<String, usize> {
        self.executors
            .iter()
            .zip(TENANT_OF)
            .map(|(executor, tenant)| (executor.host.name().to_owned(), tenant))
            .collect()
    }

    async fn make_app(&self, tenant: &str) -> Result<App> {
        let make = async |path: &str, body: Value| {
            self.client.until_done(0, Method::POST, path, Some(&body), READY_MAX).await.map(|answer| answer.body)
        };
        make("/tenants", json!({ "name": tenant })).await?;
        let app = make("/apps", json!({ "tenant": tenant, "name": "chaos" })).await?;
        let text = |at: &str| app["key"][at].as_str().map(str::to_owned).with_context(|| format!("no key.{at}"));
        let key = Key { id: text("id")?, secret: text("secret")? };
        Ok(App { tenant: tenant.to_owned(), name: "chaos".to_owned(), key })
    }

    /// Waits until every executor is registered.
    async fn await_executors(&self) -> Result<()> {
        let began = Instant::now();
        loop {
            let (_, shown) = self.client.once(0, Method::GET, "/executors", None).await?;
            if shown["items"].as_array().is_some_and(|items| items.len() >= EXECUTORS) {
                return Ok(());
            }
            ensure!(began.elapsed() < READY_MAX, "executors are not registered within {READY_MAX:?}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// As the checker reads the database.
    pub fn database(&self) -> &Database {
        self.servers.reader()
    }

    /// What leads from this node or executor to the executors or nodes, and back.
    pub fn hops_of(&self, target: Target) -> impl Iterator<Item = &Hop> {
        let is_of = move |executor: usize, node: usize| match target {
            Target::Node(number) => number == node,
            Target::Executor(number) => number == executor,
            Target::Database(_) => false,
        };
        let links =
            self.executors.iter().enumerate().flat_map(|(executor, site)| {
                site.links.iter().enumerate().map(move |(node, link)| (executor, node, link))
            });
        links.filter(move |(executor, node, _)| is_of(*executor, *node)).flat_map(|(_, _, link)| link.hops())
    }

    /// Waits until the fault before is mended: stopping a process takes as long as its handlers do, and on a busy machine a
    /// server may still be starting when the next fault is due.
    pub async fn turn(&self, target: Target) -> MutexGuard<'_, ()> {
        match target {
            Target::Node(number) => self.nodes[number].host.turn().await,
            Target::Executor(number) => self.executors[number].host.turn().await,
            Target::Database(number) => self.servers.turn(number).await,
        }
    }

    /// Every process that is watched.
    pub fn hosts(&self) -> impl Iterator<Item = &Host> {
        self.nodes.iter().map(|node| &*node.host).chain(self.executors.iter().map(|executor| &executor.host))
    }
}

async fn node(engine: Engine, story: &Story, database: &Database, number: usize, port: u16) -> Result<NodeSite> {
    let name = format!("node-{number}");
    let speech = if engine == Engine::Postgres { Speech::Postgres } else { Speech::MySql };
    let server = database.server().port;
    let to_database =
        Way::open(&format!("{name} to its database"), port::free(), local(server), speech, story.of_ways()).await?;
    let url = database.url.replace(&format!(":{server}/"), &format!(":{}/", to_database.port));
    let folder = story.path(&name);
    std::fs::create_dir_all(&folder)?;
    let host = Host::new(&name.clone(), story, move |_| {
        let mut command = command::carillon();
        command.arg("serve").current_dir(&folder);
        let settings = [
            ("server.name", name.as_str()),
            ("server.port", &port.to_string()),
            ("database.url", &url),
            ("api.token", TOKEN),
            ("executors.abandon_after", ABANDON_AFTER),
            ("log.level", "info"),
        ];
        configure(&mut command, &settings);
        command
    });
    Ok(NodeSite { host: Arc::new(host), port, database: to_database })
}

async fn executor(stand: &Stand, number: usize, app: &App) -> Result<ExecutorSite> {
    let story = stand.story.clone();
    let name = format!("executor-{number}");
    // Where an executor listens, and where nodes find it. An address is its own if it leads to its machine and its port is the
    // one that it listens on: then both have that port, on two addresses of this machine.
    let is_own = number == OWN_ADDRESS;
    let listens = SocketAddr::from(([127, 0, 0, if is_own { 2 } else { 1 }], port::free()));
    let reached = if is_own { listens.port() } else { port::free() };
    let links = links(stand, &name, listens).await?;
    let address = fork(stand, reached, &links).await?;
    let nodes: Vec<String> = links.iter().map(|link| format!("http://127.0.0.1:{}", link.to_node.way.port)).collect();
    let (url, app) = (format!("http://127.0.0.1:{reached}"), app.clone());
    let folder = story.path(&name);
    std::fs::create_dir_all(&folder)?;
    let host = Host::new(&name, &stand.story, move |incarnation| {
        let mut command = command::chaos_executor();
        command
            .current_dir(&folder)
            .env("CARILLON_SCHEDULERS", nodes.join(","))
            .env("CARILLON_TENANT", &app.tenant)
            .env("CARILLON_APP", &app.name)
            .env("CARILLON_KEY_ID", &app.key.id)
            .env("CARILLON_KEY_SECRET", &app.key.secret)
            .env("CARILLON_BIND", listens.ip().to_string())
            .env("CARILLON_PORT", listens.port().to_string())
            .env("CARILLON_ADDRESS", &url)
            .env("CARILLON_JOURNAL_DIR", folder.join("journal"))
            .env("CARILLON_CAPACITY", "256")
            .env("CHAOS_DRAIN_MS", DRAIN_MS.to_string())
            .env("CHAOS_RECORDS", folder.join(format!("records-{incarnation}.jsonl")))
            .env("RUST_LOG", "info");
        command
    });
    Ok(ExecutorSite { host, address, links })
}

async fn links(stand: &Stand, executor: &str, listens: SocketAddr) -> Result<Vec<Link>> {
    let mut links = Vec::new();
    for node in &stand.nodes {
        let (there, back) =
            (format!("{executor} to {}", node.host.name()), format!("{} to {executor}", node.host.name()));
        let to_node = Way::open(&there, 0, local(node.port), Speech::Unknown, stand.story.of_ways()).await?;
        let to_executor = Way::behind_a_fork(&back, listens, Speech::Unknown, stand.story.of_ways());
        links.push(Link { to_node: Hop::by(to_node), to_executor: Hop::by(to_executor) });
    }
    Ok(links)
}

/// All nodes know one address of the executor: whose a connection is, the kernel tells.
async fn fork(stand: &Stand, port: u16, links: &[Link]) -> Result<Fork> {
    let nodes: Vec<Arc<Host>> = stand.nodes.iter().map(|node| Arc::clone(&node.host)).collect();
    let choose = move |from: SocketAddr| {
        let socket = origin::socket(from.port(), port)?;
        nodes.iter().position(|node| node.pid().is_some_and(|pid| origin::has(pid, socket)))
    };
    let ways = links.iter().map(|link| Arc::clone(&link.to_executor.way)).collect();
    Ok(Fork::open(port, ways, Arc::new(choose)).await?)
}

fn local(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}
