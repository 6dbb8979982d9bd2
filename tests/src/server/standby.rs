//! A PostgreSQL primary with a synchronous standby, and an address that follows the primary.

use super::{Kind, Server, make_folder_of, postgres, run_installer, template};
use crate::folder;
use crate::port;
use crate::relay::Relay;
use crate::wait::{await_until, when};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::{Arc, Mutex};

/// How the standby is called in `synchronous_standby_names`.
const STANDBY: &str = "standby";

/// What one commits, the other has.
#[derive(Debug)]
pub struct Replicated {
    /// The primary at first.
    pub first: Arc<Server>,
    /// The standby at first.
    pub second: Arc<Server>,
    /// The address that follows the primary.
    pub relay: Relay,
}

impl Replicated {
    /// A primary whose commits wait for its standby.
    pub async fn start() -> Self {
        let plain = template(Kind::Postgres).await;
        let first = Arc::new(Server::copied(Kind::Postgres, plain, true, Vec::new(), port::free()));
        first.start().await;
        let second = Arc::new(copy_of(&first));
        second.start().await;
        first.execute(&format!("ALTER SYSTEM SET synchronous_standby_names = '{STANDBY}'")).await;
        first.execute("SELECT pg_reload_conf()").await;
        await_until("the standby is synchronous", 30, || async {
            when(first.ask("SELECT sync_state FROM pg_stat_replication").await.as_deref() == Some("sync"))
        })
        .await;
        let relay = Relay::to(first.port).await;
        Self { first, second, relay }
    }

    /// The standby becomes the primary, and the address leads to it. Connections to the former primary stay what they are.
    pub async fn promote(&self) {
        self.second.execute("SELECT pg_promote()").await;
        await_until("the standby is the primary", 30, || async {
            when(self.second.ask("SELECT pg_is_in_recovery()::text").await.as_deref() == Some("false"))
        })
        .await;
        self.relay.lead_to(self.second.port);
    }
}

/// A standby of `primary` that is not started yet.
fn copy_of(primary: &Server) -> Server {
    let folder = folder::fresh("standby").join("data");
    make_folder_of(postgres::USER, &folder);
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).expect("close the standby's folder to others");
    let source = format!("host=127.0.0.1 port={} user=carillon application_name={STANDBY}", primary.port);
    let arguments = [
        format!("--pgdata={}", folder.display()),
        format!("--dbname={source}"),
        "--write-recovery-conf".to_owned(),
        "--checkpoint=fast".to_owned(),
        "--no-sync".to_owned(),
    ];
    run_installer(&postgres::program("pg_basebackup"), postgres::USER, &arguments);
    Server {
        kind: Kind::Postgres,
        is_durable: true,
        folder,
        arguments: Vec::new(),
        environment: Vec::new(),
        port: port::free(),
        process: Mutex::new(None),
    }
}
