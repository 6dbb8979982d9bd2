//! Whether the name that a node wants to join under is free: a live node keeps its name.
//!
//! A process that died must give its name up at once, or a restart would take a whole offline
//! time-out. Where the holder of the name ran in the same network stack as this process, its port
//! tells whether it still lives; otherwise its heartbeat does, which is watched until the holder counts as offline.

use crate::store::{NameHolder, NodeInfo, SqlStore};
use anyhow::bail;
use chrono::DateTime;
use std::io::ErrorKind;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout};
use url::Url;

/// Polling interval for the holder's heartbeat.
const LOOK_INTERVAL: Duration = Duration::from_millis(250);

/// Added to the time after which the holder counts as offline: a statement may be slow.
const SLACK: Duration = Duration::from_millis(500);

/// How long the holder's port may take to answer.
const CONNECT_MAX: Duration = Duration::from_secs(1);

/// Waits until the name of `info` is free; this process listens at its address already.
///
/// # Errors
/// A live node holds it, or the database failed.
pub async fn await_free_name(store: &SqlStore, info: &NodeInfo, offline_after_ms: i64) -> anyhow::Result<()> {
    let Some(holder) = store.name_holder(&info.name).await? else { return Ok(()) };
    if holder.silent_ms.abs() >= offline_after_ms || (holder.is_here && is_gone(&holder, info).await) {
        return Ok(());
    }
    tracing::info!(name = info.name, address = holder.address, "another node had this name; watching its heartbeat");
    let since = Instant::now();
    let left_ms = u64::try_from(offline_after_ms - holder.silent_ms.abs()).unwrap_or(0);
    while since.elapsed() < Duration::from_millis(left_ms) + SLACK {
        sleep(LOOK_INTERVAL).await;
        let Some(now) = store.name_holder(&info.name).await? else { return Ok(()) };
        if (now.heartbeat_at, &now.incarnation) != (holder.heartbeat_at, &holder.incarnation) {
            let joined = DateTime::from_timestamp_millis(now.started_at).unwrap_or_default().to_rfc3339();
            bail!(
                "the name `{}` (server.name) belongs to a node that is alive: {}, which joined at {joined}. Names must \
                 be unique in the cluster: give this node another one, or stop that one first. Nothing was changed",
                info.name,
                now.address
            );
        }
    }
    Ok(())
}

/// Whether nothing listens any more where the holder did, in the network stack of this process.
async fn is_gone(holder: &NameHolder, info: &NodeInfo) -> bool {
    if holder.address == info.address {
        return true;
    }
    let Ok(url) = Url::parse(&holder.address) else { return false };
    let (Some(host), Some(port)) = (url.host_str(), url.port_or_known_default()) else { return false };
    let tried = timeout(CONNECT_MAX, TcpStream::connect((host, port))).await;
    matches!(tried, Ok(Err(error)) if error.kind() == ErrorKind::ConnectionRefused)
}
