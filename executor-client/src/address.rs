//! How this executor is reached and what its machine is called.

use crate::node::Node;
use crate::settings::Settings;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;
use tokio::net::UdpSocket;

/// How long finding the address of this machine may take.
const FIND_TIMEOUT: Duration = Duration::from_secs(2);

/// What is announced to nodes.
pub(crate) struct Advertised {
    /// `http://host:port`.
    pub(crate) address: String,
    /// Whether this process itself listens there.
    pub(crate) is_own: bool,
}

/// The configured address, or the bound one, or, when bound to every interface, the one from which
/// this machine reaches `node`.
pub(crate) async fn advertised(settings: &Settings, node: &Node) -> Advertised {
    let address = match &settings.address {
        Some(address) => address.clone(),
        None => found(settings, node).await,
    };
    let is_own = match settings.own_address {
        Some(known) => known,
        None => tokio::time::timeout(FIND_TIMEOUT, is_own(&address, settings.port)).await.unwrap_or(false),
    };
    Advertised { address, is_own }
}

/// Whether the address has the port that is listened on, and leads to this machine alone. Only an address of this machine
/// can be bound.
async fn is_own(address: &str, port: u16) -> bool {
    let Some(authority) = address.split_once("://").map(|(_, rest)| rest.trim_end_matches('/')) else { return false };
    let Ok(found) = tokio::net::lookup_host(authority).await else { return false };
    let mut leads_here = false;
    for place in found {
        if place.port() != port || UdpSocket::bind((place.ip(), 0)).await.is_err() {
            return false;
        }
        leads_here = true;
    }
    leads_here
}

async fn found(settings: &Settings, node: &Node) -> String {
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

#[cfg(test)]
mod tests {
    use super::is_own;

    #[tokio::test]
    async fn only_what_leads_to_this_process_is_its_own() {
        assert!(is_own("http://127.0.0.1:9", 9).await);
        assert!(is_own("http://[::1]:9/", 9).await || std::net::UdpSocket::bind("[::1]:0").is_err());
        assert!(is_own("http://localhost:9", 9).await);
        assert!(!is_own("http://127.0.0.1:8", 9).await, "a mapped port");
        // Of a network for documentation (RFC 5737): no machine has it.
        assert!(!is_own("http://192.0.2.1:9", 9).await, "another machine, or a balancer");
        assert!(!is_own("http://no-such-name.invalid:9", 9).await);
        assert!(!is_own("http://127.0.0.1", 80).await, "no port");
    }
}
