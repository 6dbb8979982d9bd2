//! A Galera cluster: three members of MariaDB, all in one state, over loopback.

use super::{Kind, Server, find_program, template};
use crate::folder;
use crate::port;
use crate::wait::{await_until, when};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::OnceCell;

/// Members of a cluster: the fewest of which one may be lost.
pub const MEMBERS: usize = 3;

/// How long a member may take to have what the others have. s
const JOIN_S: u64 = 60;

static TEMPLATE: OnceCell<PathBuf> = OnceCell::const_new();

/// Three members; each is a server that can be stopped, killed and paused.
#[derive(Debug)]
pub struct Galera {
    /// In the order of their names, `m0` to `m2`.
    pub members: Vec<Arc<Server>>,
}

impl Galera {
    /// A cluster with an empty database, all of its members synced.
    pub async fn start() -> Self {
        Self::start_with(|_| Vec::new()).await
    }

    /// The same; each member has this environment.
    pub async fn start_with(environment: impl Fn(usize) -> Vec<(String, String)>) -> Self {
        let template = TEMPLATE.get_or_init(make_template).await;
        let group: Vec<u16> = (0..MEMBERS).map(|_| port::free()).collect();
        let member = |number| {
            let arguments = arguments(number, &group);
            let server = Server::copied(Kind::MariaDb, template, true, arguments, port::free());
            Arc::new(Server { environment: environment(number), ..server })
        };
        let cluster = Self { members: (0..MEMBERS).map(member).collect() };
        let begun = cluster.position(0);
        cluster.members[0].start_with(&["--wsrep-new-cluster".to_owned(), begun]).await;
        for number in 1..MEMBERS {
            // They are the first one's copies, so nothing has to be sent to them.
            cluster.members[number].start_with(&[cluster.position(number)]).await;
        }
        for number in 0..MEMBERS {
            cluster.await_synced(number).await;
        }
        cluster.await_size(0, MEMBERS).await;
        cluster
    }

    /// Waits until this member has what the others have, and takes statements.
    pub async fn await_synced(&self, number: usize) {
        let member = &self.members[number];
        await_until(&format!("member {number} is synced"), JOIN_S, || async {
            assert!(member.process().is_running(), "{}", member.process().log_digest());
            let is_ready = status(member, "wsrep_ready").await.as_deref() == Some("ON");
            when(is_ready && status(member, "wsrep_local_state_comment").await.as_deref() == Some("Synced"))
        })
        .await;
    }

    /// Waits until a member is in a component of so many members that may go on.
    pub async fn await_size(&self, seen_by: usize, size: usize) {
        let member = &self.members[seen_by];
        await_until(&format!("member {seen_by} is one of {size}"), JOIN_S, || async {
            let is_primary = status(member, "wsrep_cluster_status").await.as_deref() == Some("Primary");
            when(is_primary && status(member, "wsrep_cluster_size").await == Some(size.to_string()))
        })
        .await;
    }

    /// Waits until a member has found that it is alone, and refuses statements.
    pub async fn await_refusing(&self, number: usize) {
        let member = &self.members[number];
        await_until(&format!("member {number} refuses statements"), JOIN_S, || async {
            when(status(member, "wsrep_ready").await.as_deref() == Some("OFF"))
        })
        .await;
    }

    /// SIGKILL of a member.
    pub async fn kill(&self, number: usize) {
        self.members[number].process().kill9().await;
    }

    /// A killed member comes back, and is synced: from where it was, if another still has what it lacks, else from a copy.
    /// If no member is left, the first to come back is to `begin` the cluster again; it must be the last that was killed.
    pub async fn rejoin(&self, number: usize, begins: bool) {
        let member = &self.members[number];
        let mut once: Vec<String> = recovered_position(member).await.into_iter().collect();
        if begins {
            mark_as_newest(&member.folder);
            once.push("--wsrep-new-cluster".to_owned());
        }
        member.start_with(&once).await;
        self.await_synced(number).await;
    }

    /// Cuts a member off from the others; nodes and tests still reach it.
    pub async fn isolate(&self, number: usize) {
        self.members[number].execute("SET GLOBAL wsrep_provider_options = 'gmcast.isolate=1'").await;
    }

    /// Lets a member that was cut off reach the others again.
    pub async fn connect(&self, number: usize) {
        self.members[number].execute("SET GLOBAL wsrep_provider_options = 'gmcast.isolate=0'").await;
    }

    /// The state that a member which ended in good order has written down, as an argument.
    fn position(&self, number: usize) -> String {
        let state = read_state(&self.members[number].folder);
        let of = |key: &str| {
            let line = state.lines().find_map(|line| line.strip_prefix(key));
            line.map_or_else(|| panic!("no {key} in {state}"), str::trim).to_owned()
        };
        format!("--wsrep-start-position={}:{}", of("uuid:"), of("seqno:"))
    }
}

async fn status(member: &Server, name: &str) -> Option<String> {
    member.ask(&format!("SHOW GLOBAL STATUS LIKE '{name}'")).await
}

fn read_state(data: &Path) -> String {
    let path = data.join("grastate.dat");
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn mark_as_newest(data: &Path) {
    let state = read_state(data).replace("safe_to_bootstrap: 0", "safe_to_bootstrap: 1");
    fs::write(data.join("grastate.dat"), state).expect("write the member's state");
}

/// What a member that was killed had, as an argument for its start; `None` if that cannot be known.
async fn recovered_position(member: &Server) -> Option<String> {
    let mut command = member.command();
    command.arg("--wsrep-recover");
    let done = tokio::task::spawn_blocking(move || command.output()).await.expect("recover a member").expect("run it");
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    let position = said.rsplit_once("Recovered position:")?.1.lines().next()?.trim();
    (!position.contains("-1")).then(|| format!("--wsrep-start-position={position}"))
}

/// What makes a server member `number` of the cluster whose members talk to each other at `group`.
fn arguments(number: usize, group: &[u16]) -> Vec<String> {
    let provider = find_program("Galera", &["/usr/lib/galera/libgalera_smm.so", "/usr/lib64/galera/libgalera_smm.so"]);
    let others: Vec<String> = group.iter().map(|port| format!("127.0.0.1:{port}")).collect();
    let (own, state_transfer, incremental) = (group[number], port::free(), port::free());
    vec![
        "--binlog-format=ROW".to_owned(),
        "--innodb-autoinc-lock-mode=2".to_owned(),
        "--wsrep-on=ON".to_owned(),
        format!("--wsrep-provider={}", provider.display()),
        "--wsrep-cluster-name=carillon-tests".to_owned(),
        format!("--wsrep-cluster-address=gcomm://{}", others.join(",")),
        format!("--wsrep-node-name=m{number}"),
        format!("--wsrep-node-address=127.0.0.1:{own}"),
        "--wsrep-sst-method=rsync".to_owned(),
        format!("--wsrep-sst-receive-address=127.0.0.1:{state_transfer}"),
        format!(
            "--wsrep-provider-options=gmcast.listen_addr=tcp://127.0.0.1:{own};\
             ist.recv_addr=127.0.0.1:{incremental};gcache.size=64M;pc.announce_timeout=PT1S"
        ),
    ]
}

/// The data of a member that has begun a cluster and ended in good order.
async fn make_template() -> PathBuf {
    let group = [port::free()];
    let plain = template(Kind::MariaDb).await;
    let first = Server::copied(Kind::MariaDb, plain, true, arguments(0, &group), port::free());
    first.start_with(&["--wsrep-new-cluster".to_owned()]).await;
    first.stop().await;
    let data = folder::fresh("galera-template").join("data");
    fs::rename(&first.folder, &data).expect("keep the template");
    mark_as_newest(&data);
    data
}
