//! How this executor is reached and what its machine is called.

use crate::node::Node;
use crate::settings::Settings;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;
use tokio::net::UdpSocket;

/// How long finding the address of this machine may take.
const FIND_TIMEOUT: Duration = Duration::from_secs(2);

/// The address announced to nodes: the configured one, or the bound one, or, when bound to
/// every interface, the one from which this machine reaches `node`.
pub(crate) async fn advertised(settings: &Settings, node: &Node) -> String {
    if let Some(address) = &settings.address {
        return address.clone();
    }
    let ip = if settings.bind.is_unspecified() {
        match tokio::time::timeout(FIND_TIMEOUT, route_to(&node.authority)).await {
            Ok(Ok(ip)) => ip,
            Ok(Err(error)) => unknown(&error.to_string()),
            Err(_) => unknown("the name service does not answer"),
        }
    } else {
        settings.bind
    };
    format!("http://{}", std::net::SocketAddr::new(ip, settings.port))
}

fn unknown(reason: &str) -> IpAddr {
    tracing::warn!(reason, "address.unknown: advertising 127.0.0.1; set `.address(…)` or CARILLON_ADDRESS");
    IpAddr::V4(Ipv4Addr::LOCALHOST)
}

/// The local address of the route to `authority`. Connecting a UDP socket sends nothing.
async fn route_to(authority: &str) -> std::io::Result<IpAddr> {
    let mut last = std::io::Error::other("the node's name has no address");
    for remote in tokio::net::lookup_host(authority).await? {
        let any: IpAddr =
            if remote.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { std::net::Ipv6Addr::UNSPECIFIED.into() };
        let socket = UdpSocket::bind((any, 0)).await?;
        match socket.connect(remote).await {
            Ok(()) => return Ok(socket.local_addr()?.ip()),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Name of the machine or container, as far as it can be found without a system call.
pub(crate) fn host_name() -> String {
    std::env::var("HOSTNAME")
        .ok()
        .filter(|name| !name.is_empty())
        .or_else(|| std::fs::read_to_string("/proc/sys/kernel/hostname").ok())
        .or_else(|| std::env::var("COMPUTERNAME").ok())
        .map_or_else(|| "unknown".to_owned(), |name| name.trim().to_owned())
}
