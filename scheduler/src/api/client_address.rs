//! Where a request comes from.

use super::Api;
use actix_web::HttpRequest;
use actix_web::http::header::HeaderMap;
use ipnet::IpNet;
use std::net::{IpAddr, SocketAddr};

/// The list of addresses that proxies keep: each appends the address that its request came from.
const FORWARDED_FOR: &str = "x-forwarded-for";

/// The address of the caller, without its port; behind trusted proxies the one that they report.
pub fn client_address(api: &Api, request: &HttpRequest) -> String {
    let peer = request.peer_addr().map(|address| address.ip());
    peer.map(|peer| origin(peer, request.headers(), &api.trusted_proxies).to_string()).unwrap_or_default()
}

/// Walks from the last proxy back to the first address that is not a trusted proxy's: anyone may
/// have written what comes before it.
fn origin(peer: IpAddr, headers: &HeaderMap, trusted: &[IpNet]) -> IpAddr {
    let mut origin = peer.to_canonical();
    let told: Vec<&str> = headers.get_all(FORWARDED_FOR).filter_map(|value| value.to_str().ok()).collect();
    let mut told = told.iter().rev().flat_map(|value| value.rsplit(','));
    while trusted.iter().any(|network| network.contains(&origin)) {
        let Some(before) = told.next().and_then(parse) else { break };
        origin = before;
    }
    origin
}

/// An address, perhaps with a port.
fn parse(text: &str) -> Option<IpAddr> {
    let text = text.trim();
    let address = text.parse::<IpAddr>().or_else(|_| text.parse::<SocketAddr>().map(|address| address.ip()));
    address.ok().map(|address| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;
    use actix_web::http::header::{HeaderName, HeaderValue};

    fn of(peer: &str, told: &[&str]) -> String {
        let trusted: Vec<IpNet> = ["10.0.0.0/8", "fd00::/8"].iter().map(|text| text.parse().unwrap()).collect();
        let mut headers = HeaderMap::new();
        for value in told {
            headers.append(HeaderName::from_static(FORWARDED_FOR), HeaderValue::from_str(value).unwrap());
        }
        origin(peer.parse().unwrap(), &headers, &trusted).to_string()
    }

    #[test]
    fn only_trusted_proxies_are_believed() {
        assert_eq!(of("192.0.2.1", &["198.51.100.7"]), "192.0.2.1");
        assert_eq!(of("10.0.0.1", &["198.51.100.7"]), "198.51.100.7");
        assert_eq!(of("::ffff:10.0.0.1", &["198.51.100.7"]), "198.51.100.7");
    }

    #[test]
    fn a_forwarded_address_from_the_caller_is_ignored() {
        assert_eq!(of("10.0.0.1", &["203.0.113.9, 198.51.100.7"]), "198.51.100.7");
        assert_eq!(of("10.0.0.1", &["10.0.0.9, 198.51.100.7, 10.0.0.2"]), "198.51.100.7");
        assert_eq!(of("10.0.0.1", &["203.0.113.9", "198.51.100.7", "10.0.0.2"]), "198.51.100.7");
    }

    #[test]
    fn without_a_readable_header_the_address_is_the_proxys() {
        assert_eq!(of("10.0.0.1", &[]), "10.0.0.1");
        assert_eq!(of("10.0.0.1", &["198.51.100.7, unknown"]), "10.0.0.1");
        assert_eq!(of("10.0.0.1", &["unknown, 10.0.0.2"]), "10.0.0.2");
        assert_eq!(of("10.0.0.1", &["10.0.0.3"]), "10.0.0.3");
    }

    #[test]
    fn ports_and_ipv6_are_understood() {
        assert_eq!(of("fd00::1", &["[2001:db8::7]:4711"]), "2001:db8::7");
        assert_eq!(of("fd00::1", &["198.51.100.7:80"]), "198.51.100.7");
        assert_eq!(of("fd00::1", &["::ffff:198.51.100.7"]), "198.51.100.7");
    }
}
